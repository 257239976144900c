"""Times of a refresh, a first paint, a tick and a start, by `tests/bench`: printed, not judged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).parents[2]
SAVED = "tests/fixtures/captures/2.4.4/replace-running/status.txt"
BENCHES = (
    ("terminal_bytes",),
    ("first_paint",),
    ("tick", "--leaves", "1000", "--pools", "1"),
    ("start", SAVED),
)
PATIENCE = 600.0
"""Seconds that one benchmark may take."""


def main() -> None:
    """Print the figures. If a benchmark exceeds its own budget, the next one still runs."""
    for name, *words in BENCHES:
        print(f"== {' '.join((name, *words))}", flush=True)
        command = [sys.executable, "-m", f"tests.bench.{name}", *words]
        try:
            subprocess.run(command, cwd=TREE, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            print(f"no end within {PATIENCE:.0f} s")
