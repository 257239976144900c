"""Scripts of keys: for the parts of the console, and one for each scenario."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

FILE = Path(__file__).with_suffix(".toml")
THEME = Path(__file__).parent / "roles.toml"
START, KEY, SECOND = 0.4, 0.04, 0.04
"""Approximate CPU seconds of a start, a key, and a second of the demo's time."""

ALL_SIZES = (
    *("resilver", "failed-disk", "flaky", "suspended", "swap", "added-vdev", "memory-limited"),
    *("draid", "removal", "thousand", "two-pools", "healthy"),
)
"""Scenarios that are also seen at 120×40 and 200×50."""
TWO_SIZES = (
    *("second-replace", "not-restored", "damaged", "hot-spare", "six-disk-swap", "new-disk"),
    *("scrub-delay", "nvme", "mirror-scrub", "foreground", "straggler", "shingled", "random"),
    *("few-requests", "shared-bus", "cpu", "sequential", "expansion", "trim", "paused", "overdue"),
    *("sit-out", "stuck"),
)


@dataclass(frozen=True, slots=True)
class Script:
    """Keys typed in one run of the program, as in scripts.toml."""

    name: str
    run: str
    keys: str = ""
    size: tuple[int, int] = (80, 24)
    early: str = ""
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        """Return the words of the command line."""
        words = self.run.split()
        return words if "--theme" in words else [*words, "--theme", str(THEME)]

    @property
    def cost(self) -> float:
        """Return the approximate CPU seconds that it takes."""
        seconds = sum(map(int, re.findall(r"\b(\d+)s\b", self.keys)))
        samples = min(80, seconds / 10 if "--interval 10" in self.run else seconds)
        return START + KEY * len(self.keys.split()) + SECOND * samples


def read() -> Iterator[Script]:
    """Yield all scripts: those of the scenarios, and those of scripts.toml."""
    for name in (*ALL_SIZES, *TWO_SIZES):
        larger = "120x40 200x50 q" if name in ALL_SIZES else "q"
        keys = f"5s End Tab z Esc 60x15 3s {larger}"
        yield Script(f"scenarios/{name}", f"demo {name} --seed 7", keys)
    tables = tomllib.loads(FILE.read_text())
    shared = tables.pop("shared")
    for name, table in tables.items():
        keys = re.sub(r"\$(\w+)", lambda found: shared[found[1]], table.pop("keys", ""))
        run = table.pop("run")
        if run.startswith("demo ") and run != "demo --list":
            run += " --seed 7" + ("" if "--interval" in run else " --interval 10")
        size = tuple(table.pop("size", (80, 24)))
        yield Script(name, run, " ".join(keys.split()), size, **table)
