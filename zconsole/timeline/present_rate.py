"""How fast a scan goes now: what an operator looks at after a change, and what graphs show.

An estimate asks what to expect of the hours to go, so the windows it is based on are as long; of a
tunable that was changed a quarter of an hour ago they say half.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from zconsole.timeline.eta.estimate import levelled
from zconsole.timeline.eta.progress import RECENT_POINTS, CurvePoint
from zconsole.timeline.eta.windows import ROUNDINGS

SPAN = 60.0
"""Seconds that count: a dozen transaction groups, and several bursts of slow disks."""
LEAST = 10.0
"""Seconds that say something."""


class PresentRate(NamedTuple):
    """Bytes/s issued, and the seconds they were seen over."""

    rate: float
    seconds: float


def present_rate(
    points: Sequence[CurvePoint], walks: bool, rounding: float = 0.0
) -> PresentRate | None:
    """The rate of the newest points; None while they say too little.

    ``walks``: whether the scan walks metadata first, which is over at the newest point: the time
    until then does not count. ``rounding``: bytes by which a counter may be off.
    """
    if not points:
        return None
    now = points[-1]
    recent = [p for p in points[-RECENT_POINTS:] if not walks or p.scanned == now.scanned]
    xs = [p.x for p in recent]
    first, early = (max(0, bisect_right(xs, now.x - n * SPAN) - 1) for n in (1, 2))
    # What is before the span evens out the burst that it begins in.
    issued = [p.issued for p in recent[early:]]
    done = levelled(xs[early:], issued) or issued
    seconds, moved = now.x - xs[first], max(0.0, done[-1] - done[first - early])
    if seconds < LEAST or (rounding and moved < 2 * ROUNDINGS * rounding):
        return None
    # A sample more or less in the span is nothing to show.
    return PresentRate(moved / seconds, SPAN if SPAN <= seconds < 1.1 * SPAN else seconds)


def rate_by_turns(points: Sequence[CurvePoint], rounding: float = 0.0) -> PresentRate | None:
    """The rate while metadata is still walked, and what that finds is issued by turns.

    Of the last minute where it was issuing through all of that, else over whole turns: neither a
    minute of walking nor one of issuing says what the scan does.
    """
    starts, issuing = _turns(points)
    if not starts:
        return None
    now, last = points[-1], points[starts[-1]]
    period = last.x - points[starts[-2]].x if len(starts) > 1 else 0.0
    if issuing and (now.x - last.x >= SPAN or not period):
        return present_rate(points[starts[-1] :], False, rounding)
    back = ceil(SPAN / period) * period if period else now.x - last.x
    xs = [p.x for p in points]
    first = points[max(starts[0], bisect_right(xs, now.x - back) - 1)]
    seconds, moved = now.x - first.x, max(0.0, now.issued - first.issued)
    if seconds < LEAST or (rounding and moved < 2 * ROUNDINGS * rounding):
        return None
    return PresentRate(moved / seconds, seconds)


def _turns(points: Sequence[CurvePoint]) -> tuple[list[int], bool]:
    """Indexes of the points at which issuing began, and whether it is issuing now.

    Where both counters move between two points, as they do where samples are far apart, it issues.
    """
    starts: list[int] = []
    issuing = False
    for n, (a, b) in enumerate(pairwise(points)):
        if b.issued > a.issued:
            starts += [] if issuing else [n]
            issuing = True
        elif b.scanned > a.scanned:
            issuing = False
    return starts, issuing
