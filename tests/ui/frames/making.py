"""Building blocks of hand-made frames: leaves, groups, rows with their rates and past."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.records import replace
from zconsole.pool.balance import Balance
from zconsole.pool.health import Health
from zconsole.pool.model import ErrorCounters, HostLoad, IoRates, Pool, Sample, Vdev, placed
from zconsole.timeline.frame import Frame, VdevRow

NOW = 1795178467.0
"""2026-11-20 12:41:07 UTC."""
KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40


@dataclass
class Past:
    """A series that answers from a table, and otherwise varies around a row's own rate."""

    rates: Mapping[str, IoRates] = field(default_factory=dict)
    tables: Mapping[tuple[str, str], Sequence[float | None]] = field(default_factory=dict)
    length: int = 240

    def ages(self, count: int) -> list[float]:
        return [float(age) for age in reversed(range(min(count, self.length)))]

    def tail(self, key: str, metric: str, count: int) -> Sequence[float | None]:
        if (key, metric) in self.tables:
            return list(self.tables[key, metric])[-count:]
        now = getattr(self.rates.get(key, IoRates()), metric, None)
        if now is None:
            return [None] * min(count, self.length)
        phase = sum(map(ord, key))
        return [now * (0.85 + 0.15 * math.sin(phase + i)) for i in range(min(count, self.length))]

    def peak(self, keys: Sequence[str], metrics: Sequence[str], count: int) -> float | None:
        values = (v for key in keys for metric in metrics for v in self.tail(key, metric, count))
        return max((v for v in values if v is not None), default=None)


def disk(name: str, **fields: object) -> Vdev:
    """Return a leaf with zero errors."""
    fields.setdefault("errors", ErrorCounters(0, 0, 0, 0))
    return Vdev(name, "disk", path=f"/dev/disk/by-id/{name}", **fields)  # type: ignore[arg-type]


def group(name: str, kind: str, *children: Vdev, **fields: object) -> Vdev:
    """Return an interior vdev."""
    fields.setdefault("errors", ErrorCounters(0, 0, 0))
    return Vdev(name, kind, children=children, **fields)  # type: ignore[arg-type]


def frame(
    root: Vdev,
    *,
    rates: Mapping[str, IoRates] | None = None,
    slow: Mapping[str, str] | None = None,
    missing: Mapping[str, float] | None = None,
    **fields: object,
) -> Frame:
    """Return a frame of a topology; rates, slow siblings and missing devices are by vdev name."""
    rates, slow, missing = rates or {}, slow or {}, missing or {}
    rows = tuple(
        VdevRow(
            place.key,
            place.depth,
            place.vdev,
            rates.get(place.vdev.name, IoRates()),
            slow.get(place.vdev.name),
            missing.get(place.vdev.name),
        )
        for place in placed(root)
    )
    past = Past({row.key: row.rates for row in rows})
    pool = Pool(root.name, root.state, root, guid="1027", error_count=0, errors=())
    host = HostLoad(0.1, 2**34, 2**33)
    bare = Frame(
        pool=root.name,
        sample=Sample(NOW, NOW, "libzfs", True, pool, kstat="ONLINE", host=host),
        failure=None,
        health=Health("OK", "ok"),
        scans=(),
        activities=(),
        redundancy=(),
        rows=rows,
        balance=Balance(None, None, None),
        series=past,
    )
    made: Frame = replace(bare, **fields)
    return made
