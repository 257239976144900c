"""Everything a checklist is judged by: the pool, the machine's other pools, its disks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from zconsole.actions.plan import Situation
from zconsole.actions.target import Target, find
from zconsole.diagnosis.device_errors.faults import DeviceFault, SmartCounts
from zconsole.hardware.device import Device
from zconsole.swap.disk import SwapDisk


@dataclass(frozen=True, slots=True)
class MachineView:
    """A pool at one moment, and what else matters for pulling one of its disks."""

    situation: Situation
    others: tuple[Situation, ...] = ()
    """The machine's other pools."""
    faults: tuple[DeviceFault, ...] = ()
    """Devices of the pool with new errors, or that disconnected."""
    smart: Mapping[str, SmartCounts] = field(default_factory=dict)
    """What disks say of themselves, by ``Device.path``; what was not asked is missing."""
    leaving: tuple[SwapDisk, ...] = ()
    """Disks that other open checklists swap: their pull is no mistake."""
    boot: str = ""
    """The id of this boot; empty where unknown."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """The machine's disks; none where they could not be read."""
        return self.situation.facts.devices

    @property
    def situations(self) -> tuple[Situation, ...]:
        """Every pool, the one with the checklist first."""
        return (self.situation, *self.others)

    @property
    def faulty(self) -> tuple[str, ...]:
        """The keys of devices of the pool with new errors, or that disconnected."""
        return tuple(fault.key for fault in self.faults)

    def of(self, pool: str) -> Situation | None:
        """The pool of this name; None while it is not imported."""
        return next((s for s in self.situations if s.pool.name == pool), None)

    def having(self, s: Situation) -> MachineView:
        """The same, with the pool of this name as ``s`` has it."""
        if s.pool.name == self.situation.pool.name:
            return replace(self, situation=s)
        beside = (s if other.pool.name == s.pool.name else other for other in self.others)
        return replace(self, others=tuple(beside))

    def leaf_of(self, disk: SwapDisk) -> tuple[Situation, Target] | None:
        """The leaf of a disk, with its pool; None where there is none, or its pool is away."""
        s = self.of(disk.pool)
        target = None if s is None else find(s.pool, disk.key)
        return None if s is None or target is None else (s, target)
