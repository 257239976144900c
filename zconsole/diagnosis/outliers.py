"""The odd one out: a leaf much slower than the others of its top-level vdev."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import inf

from zconsole.pool.model import IoRates
from zconsole.pool.topology import Placed
from zconsole.units import latency, percent

LATENCY_FACTOR = 3.0
LATENCY_FLOOR = 0.010
"""Below 10 ms, latency says more about caches than about the disk."""
BUSY_SHARE = 0.9
BUSY_GAP = 0.3


def slow_siblings(rows: Sequence[Placed], rates: Mapping[str, IoRates]) -> dict[str, str]:
    """Keys of leaves that stand out, with why: ``61ms, siblings 8ms`` or ``97 % busy, …``.

    A leaf stands out when its wait is over three times the median of the other leaves of the same
    top-level vdev (and over 10 ms), or when it is at least 90 % busy and 30 points above theirs.
    A device that is being filled is no source disk: it is compared with no other.
    """
    by_top: dict[str, list[str]] = {}
    for key, _, vdev, _, top in rows:
        filled = vdev.resilvering or vdev.awaiting_resilver
        data = vdev.state == "ONLINE" and vdev.vclass in ("normal", "special", "dedup")
        if top is not None and not vdev.children and data and not filled:
            by_top.setdefault(top, []).append(key)
    found: dict[str, str] = {}
    for leaves in by_top.values():
        known = {leaf: rates[leaf] for leaf in leaves if leaf in rates}
        waits = sorted([each.latency for each in known.values() if each.latency is not None])
        shares = sorted([each.busy for each in known.values() if each.busy is not None])
        for leaf, own in known.items():
            if len(leaves) > 2 and (why := _stands_out(own, waits, shares)):
                found[leaf] = why
    return found


def _stands_out(own: IoRates, waits: Sequence[float], shares: Sequence[float]) -> str | None:
    """Why it does, if it does; nothing stands out among devices of which nothing is known.

    ``waits`` and ``shares`` are the latencies and busy shares of all, sorted.
    """
    if own.latency is not None and own.latency >= LATENCY_FLOOR:
        usual = _usual(waits, own.latency)
        if own.latency > LATENCY_FACTOR * usual:
            return f"{latency(own.latency)}, siblings {latency(usual)}"
    if own.busy is not None and own.busy >= BUSY_SHARE:
        usual = _usual(shares, own.busy)
        if own.busy - usual >= BUSY_GAP:
            return f"{percent(own.busy)} busy, siblings {percent(usual)}"
    return None


def _usual(values: Sequence[float], own: float) -> float:
    """The median of sorted values without ``own``, one of them; infinite where it is alone."""
    rest, place = len(values) - 1, bisect_left(values, own)
    if rest == 0:
        return inf
    low, high = (rest - 1) // 2, rest // 2
    return (values[low + (low >= place)] + values[high + (high >= place)]) / 2
