"""Bytes issued in bursts, as the devices work them off.

A scan issues what a transaction group may hold at once and stands still until the devices are done
with it (``dsl_scan_sync`` waits for its ``scn_zio_root``): for two seconds on fast disks, for a
quarter of a minute on disks that do 400 requests a second. So when a burst begins, all that was
issued before it is done, and from one such moment to the next the devices have worked evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

FEWEST = 3
"""Bursts from which their period is known."""
RECENT = 4
"""Of so many periods the last speed is the mean."""
LONG_STILL = 8.0
"""Seconds without a byte that are longer than a transaction group of fast disks takes."""


def starts(issued: Sequence[float]) -> list[int]:
    """Indexes of the points at which a burst begins, after at least one step without a byte."""
    steps = [b - a for a, b in pairwise(issued)]
    return [n for n in range(1, len(steps)) if steps[n] > 0 >= steps[n - 1]]


def levelled(
    xs: Sequence[float], issued: Sequence[float], moved: Sequence[float] | None = None
) -> list[float] | None:
    """Bytes the devices have done at each point; None while the period is not known yet.

    ``moved``: what stands still between bursts, if that is more than the bytes issued.
    Before the first burst, and where points are too far apart to show one, all that was issued.
    """
    found = starts(issued if moved is None else moved)
    if len(found) < FEWEST:
        return None
    done = list(issued[: found[0]])
    for a, b in pairwise(found):
        speed = (issued[b] - issued[a]) / (xs[b] - xs[a])
        done += [issued[a] + speed * (x - xs[a]) for x in xs[a:b]]
    last, early = found[-1], found[max(0, len(found) - 1 - RECENT)]
    speed = (issued[last] - issued[early]) / (xs[last] - xs[early])
    ahead = (
        min(issued[n], issued[last] + speed * (xs[n] - xs[last])) for n in range(last, len(xs))
    )
    return [*done, *ahead]


def longest_still(xs: Sequence[float], issued: Sequence[float]) -> float:
    """Seconds of the longest stretch without a byte."""
    longest = since = 0.0
    for (x, a), (y, b) in pairwise(zip(xs, issued, strict=True)):
        since = since + y - x if b <= a else 0.0
        longest = max(longest, since)
    return longest
