"""The odd one out: a leaf much slower than the others of its top-level vdev."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from zconsole.diagnosis.bottleneck.evidence import middle
from zconsole.pool.model import IoRates, Vdev
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
        if top is not None and not vdev.children and _comparable(vdev):
            by_top.setdefault(top, []).append(key)
    found: dict[str, str] = {}
    for leaves in by_top.values():
        if len(leaves) > 2:
            found.update(_among(leaves, rates))
    return found


def _comparable(vdev: Vdev) -> bool:
    if vdev.resilvering or vdev.awaiting_resilver or vdev.state != "ONLINE":
        return False
    return vdev.vclass in ("normal", "special", "dedup")


def _among(leaves: Sequence[str], rates: Mapping[str, IoRates]) -> dict[str, str]:
    found: dict[str, str] = {}
    known = [rates[leaf] for leaf in leaves if leaf in rates]
    waits = sorted([each.latency for each in known if each.latency is not None])
    shares = sorted([each.busy for each in known if each.busy is not None])
    least = _least(waits), _least(shares)
    worst = IoRates(latency=waits[-1] if waits else None, busy=shares[-1] if shares else None)
    if not _suspicious(worst, *least):
        return found
    for leaf in leaves:
        own = rates.get(leaf)
        if own is None or not _suspicious(own, *least):
            continue
        others = [rates[other] for other in leaves if other != leaf and other in rates]
        if why := _stands_out(own, others):
            found[leaf] = why
    return found


def _least(known: Sequence[float]) -> float:
    """The least that the median of these, which are sorted, can be without one of them."""
    return known[(len(known) - 2) // 2] if len(known) > 1 else inf


def _suspicious(own: IoRates, latency_of_others: float, busy_of_others: float) -> bool:
    """Whether a leaf may stand out: most don't, and to compare it takes a while."""
    if own.latency is not None and own.latency > LATENCY_FACTOR * latency_of_others:
        return True
    return own.busy is not None and own.busy - busy_of_others >= BUSY_GAP


def _stands_out(own: IoRates, others: Sequence[IoRates]) -> str | None:
    """Why it does, if it does; nothing stands out among devices of which nothing is known."""
    if own.latency is not None and own.latency >= LATENCY_FLOOR:
        usual = middle((o.latency for o in others), inf)
        if own.latency > LATENCY_FACTOR * usual:
            return f"{latency(own.latency)}, siblings {latency(usual)}"
    if own.busy is not None and own.busy >= BUSY_SHARE:
        usual = middle((o.busy for o in others), inf)
        if own.busy - usual >= BUSY_GAP:
            return f"{percent(own.busy)} busy, siblings {percent(usual)}"
    return None
