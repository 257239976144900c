"""Everything that may hold a running job back, in the order it is asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from zconsole.rebalance.job.gates import PoolGate, SnapshotGate, SpaceGate
from zconsole.rebalance.job.move_effect import MoveEffect
from zconsole.rebalance.job.pacer import (
    Backoff,
    DiskWait,
    Gate,
    device_names,
    device_of,
    window_gate,
)
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.plan_model import JobDirectory
from zconsole.rebalance.planning.settings import Limits


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the gates look at."""

    reader: FactsReader
    places: Sequence[JobDirectory]
    space: SpaceGate
    effect: MoveEffect | None
    clock: Callable[[], float]
    local: Callable[[], datetime]
    left: Callable[[], int]
    """Bytes still to move."""
    note: Callable[[str], None]
    during_scan: bool

    @property
    def pool(self) -> str | None:
        """The pool of all directories; None without ZFS."""
        dataset = self.places[0].dataset
        return dataset.pool if dataset else None


def lasting(around: Surroundings) -> list[Gate]:
    """Gates that stay the same for the whole job: pool, snapshots, free space."""
    gates: list[Gate] = []
    if around.pool is not None:
        gates.append(PoolGate(around.reader, around.pool, around.during_scan, around.clock))
        names = sorted({place.dataset.name for place in around.places if place.dataset})
        gates.append(
            SnapshotGate(
                around.reader,
                names,
                around.left,
                around.space.room,
                around.clock,
                around.note,
            )
        )
    return [*gates, around.space]


def limiting(limits: Limits, around: Surroundings) -> list[Gate]:
    """Gates that follow from the limits, which may change while the job runs."""
    gates: list[Gate] = []
    if limits.window:
        gates.append(window_gate(limits.window, lambda: _minutes(around.local())))
    if limits.max_latency:
        wait = DiskWait(_devices(around))
        gates.append(Backoff(limits.max_latency, wait, around.clock))
    return gates


def _minutes(now: datetime) -> int:
    return now.hour * 60 + now.minute


def _devices(around: Surroundings) -> frozenset[str]:
    if around.pool is not None:
        return device_names(around.reader.device_paths(around.pool))
    device = Path(os.fsdecode(around.places[0].root)).stat().st_dev
    return device_of(os.major(device), os.minor(device))
