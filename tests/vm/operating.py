"""Somebody who sees a console and presses keys."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.vm.terminal import Terminal

CURSOR = "›"


@dataclass(frozen=True)
class Operator:
    """Works with the console by what is on its screen."""

    terminal: Terminal

    def see(self, pattern: str, seconds: int = 60) -> str:
        """The screen once it matches."""
        return self.terminal.wait(pattern, seconds)

    def press(self, *keys: str) -> None:
        """Type keys, by tmux's names."""
        self.terminal.press(*keys)

    def back(self, pattern: str) -> None:
        """Leave a screen and see the one below: a key right after Escape is Alt with it."""
        self.press("Escape")
        self.see(pattern)

    def point(self, text: str) -> str:
        """Put the cursor on the line of a list that begins with a text; the screen then."""
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
        """Go to the line of a list that begins with a text, and press Enter."""
        self.point(text)
        self.press("Enter")

    def go_to(self, name: str) -> None:
        """Put the cursor on the row of a device."""
        lines = self.see(name).splitlines()
        first = next(n for n, line in enumerate(lines) if re.match(r"\W*tank ", line))
        row = next(n for n in range(first, len(lines)) if name in lines[n])
        self.press("g", *["j"] * (row - first))

    def run(self, said: str, done: str = "Done|Started") -> str:
        """Read the plan, go from Cancel to Run, and see it done; returns the plan."""
        self.see("Cancel +Run")
        plan = self.see(said)
        self.press("Tab", "Enter")
        self.see(done)
        self.back("REDUNDANCY")
        return plan

    def refused(self, text: str, why: str) -> None:
        """A line of a menu is grey, and tells why below the list."""
        whole = " ".join(self.point(text).split())
        assert why in whole, whole
