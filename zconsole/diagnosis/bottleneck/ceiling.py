"""The fastest a scan could go on its disks, from rates seen on this machine.

A scan's rate counts allocated bytes: on a mirror those of one disk, on raidz those of all disks,
parity included. So a scrub can reach one disk's rate a mirror, all disks' together a raidz, and a
resilver no more than its new disk takes in: its write rate, times the width of a raidz.
"""

from __future__ import annotations

from collections.abc import Mapping

from zconsole.diagnosis.bottleneck.evidence import Disk, Evidence
from zconsole.diagnosis.bottleneck.finding import Ceiling
from zconsole.pool.model import Vdev
from zconsole.units import rate


def ceiling_of(seen: Evidence, bus: float | None = None) -> Ceiling | None:
    """The ceiling of a running scan in issued bytes/s; None while no disk was seen to work.

    ``bus`` is what a shared link is known to carry in bytes/s, over all disks.
    """
    walking = seen.stage == "scanning" and seen.scan.two_stage and seen.scan.function != "rebuild"
    if seen.scan.state != "running" or walking:
        return None
    tops = {key: [d for d in seen.disks if d.top == key] for key in seen.tops}
    rates = [_top(seen.tops[key], disks) for key, disks in tops.items()]
    known = [value for value in rates if value]
    if not known or len(known) < len(rates):
        return None
    total, words = sum(known), _words(seen)
    if bus is not None and (limited := bus / _copies(seen.tops)) < total:
        total, words = limited, f"the shared link carries {rate(bus)}"
    total = max(total, seen.rate)
    return Ceiling(total, min(1.0, seen.rate / total) if total else None, words)


def _top(top: Vdev, disks: list[Disk]) -> float:
    """Issued bytes/s that one top-level vdev allows; 0 when unknown."""
    sources = [d.past.best_read for d in disks if not d.target and d.past.best_read]
    targets = [d.past.best_write for d in disks if d.target and d.past.best_write]
    if any(d.target for d in disks):
        write = min(targets) * _width(top) if targets else 0.0
        read = sum(sources) if top.kind == "mirror" else _slowest(sources) * _width(top)
        return min(write, read) if read else write
    return _slowest(sources) * _width(top)


def _slowest(rates: list[float]) -> float:
    return min(rates) if rates else 0.0


def _width(top: Vdev) -> int:
    """Allocated bytes a byte on one disk stands for."""
    return len(top.children) if top.kind.startswith(("raidz", "draid")) else 1


def _copies(tops: Mapping[str, Vdev]) -> float:
    """Bytes over a link for each issued byte: every side of a mirror is read."""
    sides = [len(t.children) if t.kind == "mirror" else 1 for t in tops.values()]
    return max(1.0, sum(sides) / max(1, len(sides)))


def _words(seen: Evidence) -> str:
    if seen.targets:
        return "what the new disk takes in at its best seen rate"
    kinds = {top.kind for top in seen.tops.values()}
    if kinds == {"mirror"}:
        return "one disk's best seen rate a mirror, summed"
    return "the disks' best seen rates, summed"
