"""How fast a scan goes now: what an operator looks at after a change, and what graphs show.

An estimate asks what to expect of the hours to go, so the windows it is based on are as long; of a
tunable that was changed a quarter of an hour ago they say half.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from zconsole.eta.bursts import levelled
from zconsole.eta.progress_curve import RECENT_POINTS, CurvePoint
from zconsole.eta.windows import ROUNDINGS

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
