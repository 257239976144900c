"""How a scan that walks and issues by turns sorts what it has in memory.

What was walked waits in memory, sorted, until that is full; then it is issued, and the walk goes
on (dsl_scan.c, ``dsl_scan_should_clear``). The larger the share of all that is left is in memory
at once, the longer are the runs the devices read: the last turns are many times as fast as the
first ones. What one turn issues was sorted when it began.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import exp, sqrt
from typing import NamedTuple

from zconsole.timeline.eta.progress_curve import CurvePoint

MOST_TURNS = 60


class Memory(NamedTuple):
    """The share of what was left that was in memory, as bytes were issued."""

    seen: list[float]
    """At each point."""
    ahead: list[tuple[float, float]]
    """Of what is left: parts of it that add up to 1, and the share of each."""

    @property
    def varies(self) -> bool:
        """Whether it says anything of the speed."""
        return len({*self.seen, *(dense for _, dense in self.ahead)}) > 1


def memory(points: Sequence[CurvePoint], total: float, to_scan: float, walks: bool) -> Memory:
    """What was sorted at once, from the bytes walked and issued; ``walks``: still."""
    part = min(1.0, total / to_scan) if to_scan > 0 else 1.0
    held = [max(0.0, p.scanned * part - p.issued) for p in points]
    left = [max(1.0, total - p.issued) for p in points]
    seen = [min(1.0, held[0] / left[0])]
    for n, (a, b) in enumerate(pairwise(points), 1):
        seen.append(min(1.0, held[n] / left[n]) if b.scanned > a.scanned else seen[-1])
    if not walks:
        return Memory(seen, [(1.0, 1.0)])
    return Memory(seen, _turns(seen[-1], held[-1], max(held), left[-1]))


def _turns(dense: float, held: float, most: float, left: float) -> list[tuple[float, float]]:
    """What is left by turns: what is in memory now, then as much as fits in it each time."""
    parts = [(min(held, left) / left, dense)]
    rest = left - min(held, left)
    step = max(most, left / MOST_TURNS)
    while rest > 1e-9 * left:
        moved = min(rest, step)
        parts.append((moved / left, min(1.0, most / rest)))
        rest -= moved
    return parts


def cost(dense: float, seek: float, transfer: float) -> float:
    """The time for a byte: a seek for each run, ``e^seek`` times as long in memory, and itself."""
    return transfer + exp(-seek * sqrt(dense))
