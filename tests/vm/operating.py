"""An operator who watches a console and presses keys."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.vm.terminal import Terminal

CURSOR = "›"


@dataclass(frozen=True)
class Operator:
    """Operates the console by what is on its screen."""

    terminal: Terminal

    def see(self, pattern: str, seconds: int = 60) -> str:
        """Return the screen once it matches."""
        return self.terminal.wait(pattern, seconds)

    def press(self, *keys: str) -> None:
        """Type keys, by tmux's names."""
        self.terminal.press(*keys)

    def back(self, pattern: str) -> None:
        """Leave a screen and wait for the one below: Escape and a key at once would be Alt."""
        self.press("Escape")
        self.see(pattern)

    def point(self, text: str) -> str:
        """Put the cursor on the list line that begins with a text; returns the screen."""
        screen = self.see(f"^{CURSOR}")
        if not re.search(f"^[ {CURSOR}]+{re.escape(text)}", screen, re.MULTILINE):
            self.press("G")
            screen = self.see(f"^[ {CURSOR}]+{re.escape(text)}")
        lines = screen.splitlines()
        at = next(n for n, line in enumerate(lines) if line.startswith(CURSOR))
        row = next(n for n, line in enumerate(lines) if line.strip(f" {CURSOR}").startswith(text))
        if row != at:
            self.press(*["j" if row > at else "k"] * abs(row - at))
        return self.see(f"^{CURSOR} +{re.escape(text)}")

    def choose(self, text: str) -> None:
        """Select the list line that begins with a text, and press Enter."""
        self.point(text)
        self.press("Enter")

    def go_to(self, name: str) -> None:
        """Put the cursor on the row of a device."""
        lines = self.see(name).splitlines()
        first = next(n for n, line in enumerate(lines) if re.match(r"\W*tank ", line))
        row = next(n for n in range(first, len(lines)) if name in lines[n])
        self.press("g", *["j"] * (row - first))

    def run(self, said: str, typed: str = "") -> str:
        """Read the plan, type what it requires, run it, and wait for it; returns the plan."""
        self.see("Cancel .*Run")
        plan = self.see(said)
        self.press("Tab", *filter(None, [typed]), "Enter")
        self.see("Done|Started")
        self.back("REDUNDANCY")
        return plan

    def refused(self, text: str, why: str) -> None:
        """Check that a menu line is disabled, and that its reason is shown below the list."""
        whole = " ".join(self.point(text).split())
        assert why in whole, whole
