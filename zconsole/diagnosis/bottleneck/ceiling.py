"""The estimated maximum rate of a running scan, by the best that its disks were seen to do."""

from __future__ import annotations

from collections.abc import Mapping

from zconsole.diagnosis.bottleneck.evidence import Disk, Evidence
from zconsole.diagnosis.bottleneck.finding import Ceiling
from zconsole.pool.model import Vdev
from zconsole.units import rate

UNEVEN = 0.9
"""Share of what all vdevs can do together, below which it is one of them that a scrub waits for."""


def ceiling_of(seen: Evidence, bus: float | None = None) -> Ceiling | None:
    """The estimated maximum of a running scan in issued bytes/s; None before any disk was active.

    A scan's rate counts allocated bytes: on a mirror those of one disk, on raidz those of all
    disks, parity included. So a scrub can reach one disk's rate a mirror, all disks' together a
    raidz, and lasts until the vdev that takes longest is done; a resilver reaches no more than its
    new disk takes in: its write rate, times the width of a raidz. ``bus`` is what a shared link is
    known to carry in bytes/s, over all disks.
    """
    walking = seen.stage == "scanning" and seen.scan.two_stage and seen.scan.function != "rebuild"
    if seen.scan.state != "running" or walking:
        return None
    rates = {
        key: _of_top(top, [disk for disk in seen.disks if disk.top == key])
        for key, top in seen.tops.items()
    }
    if not rates or not all(rates.values()):
        return None
    total, words = sum(rates.values()), _basis(seen)
    # What it averaged over the pass it could do, though nobody watched.
    average = float(seen.scan.zpool_issue_rate or 0)
    longest = _longest(seen, rates)
    if longest is not None and longest.rate < total:
        if longest.rate < UNEVEN * total:
            average = 0.0  # vdevs are in it that are done by now
            words = longest.text
        total = longest.rate
    if bus is not None:
        # Every side of a mirror is read: as many bytes over the link for each issued one.
        sides = [len(t.children) if t.kind == "mirror" else 1 for t in seen.tops.values()]
        limited = bus / max(1.0, sum(sides) / len(sides))
        if limited < total:
            total, words = limited, f"the shared link carries {rate(bus)}"
    return Ceiling(max(total, average), None, words).at(seen.rate)


def _longest(seen: Evidence, rates: Mapping[str, float]) -> Ceiling | None:
    """What a scrub can reach until the vdev is done that has the most data for its rate.

    None where allocations are unknown.
    """
    known = {key: size for key in rates if (size := seen.tops[key].alloc_bytes) is not None}
    if seen.scan.function != "scrub" or len(known) < len(rates) or not any(known.values()):
        return None
    last = max(known, key=lambda key: known[key] / rates[key])
    reached = sum(known.values()) * rates[last] / known[last]
    text = f"{seen.tops[last].name} takes longest, at the best observed rates of its disks"
    return Ceiling(reached, None, text)


def _of_top(top: Vdev, disks: list[Disk]) -> float:
    """Issued bytes/s that one top-level vdev allows; 0 when unknown."""
    sources = [d.past.best_read for d in disks if not d.target and d.past.best_read]
    targets = [d.past.best_write for d in disks if d.target and d.past.best_write]
    # Allocated bytes that a byte on one disk stands for.
    width = len(top.children) if top.kind.startswith(("raidz", "draid")) else 1
    read = min(sources, default=0.0) * width
    if not any(d.target for d in disks):
        return read
    write = min(targets, default=0.0) * width
    if top.kind == "mirror":
        read = sum(sources)
    return min(write, read) if read else write


def _basis(seen: Evidence) -> str:
    if seen.targets:
        return "the new disk at its best observed rate"
    kinds = {top.kind for top in seen.tops.values()}
    if kinds == {"mirror"}:
        return "the best observed rates of one disk per mirror, summed"
    return "the best observed rates of the disks, summed"
