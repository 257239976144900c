"""A scan at its memory limit, which walks metadata and issues what that found by turns.

It stops walking while it issues (``dsl_scan_visit`` and ``scan_io_queues_run`` take turns by
``scn_clearing``), for minutes to hours. Neither counter alone tells the speed; but a byte walked
and a byte issued each cost their time, wherever in a turn it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from zconsole.timeline.eta.progress_curve import CurvePoint

FEWEST = 2
"""Times that it walked on after issuing, from which on it is known to take turns."""
MOST_MIXED = 0.5
"""Share of the time in which both counters moved, beyond which their costs can't be told apart."""


class Costs(NamedTuple):
    """Seconds of work for each byte walked, and for each byte issued."""

    walk: float
    issue: float

    def of(self, scanned: float, issued: float) -> float:
        """Seconds for so many bytes."""
        return self.walk * scanned + self.issue * issued


def costs(points: Sequence[CurvePoint]) -> Costs | None:
    """What the turns so far cost; None for a scan that does not take turns."""
    walked = issued = walking = issuing = mixed = 0.0
    turns, before = 0, False
    for a, b in pairwise(points):
        walk, issue, seconds = b.scanned - a.scanned, b.issued - a.issued, b.x - a.x
        if walk > 0 and issue > 0:
            mixed += seconds
        elif walk > 0:
            walked, walking = walked + walk, walking + seconds
            turns, before = turns + before, False
        elif issue > 0:
            issued, issuing = issued + issue, issuing + seconds
            before = True
    if turns < FEWEST or not walked or not issued or mixed > MOST_MIXED * (walking + issuing):
        return None
    return Costs(walking / walked, issuing / issued)
