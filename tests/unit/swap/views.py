"""Pools and disks as a swap sees them, without a machine."""

from __future__ import annotations

from tests.records import replace
from tests.unit.actions.pools import MODERN, at, pool, top
from zconsole.hardware.device import Contents, Device
from zconsole.pool.chassis import Enclosure, Slot
from zconsole.pool.model import Vdev
from zconsole.swap.choice import SwapChoice, choose
from zconsole.swap.disk import MachineView

KEY = "1000"


def device(name: str, **fields) -> Device:
    path = f"/dev/disk/by-id/{name}"
    return replace(
        Device(path, f"/dev/{name}", (f"{path}-part1",), size=2**40, serial=f"S-{name}", bay=name),
        **fields,
    )


FULL = (Enclosure("shelf", "SAS3x40", (Slot("Slot 01", 1, ("sda",)),)),)
"""Enclosures without an empty bay."""
DISKS = tuple(device(f"d0{n}", contents=Contents(zfs_pool="tank")) for n in range(6))


def view(
    *changes: Vdev, disks=DISKS, kind: str = "raidz2", others=(), enclosures=FULL, **fields
) -> MachineView:
    facts = replace(MODERN, devices=disks)
    found = pool(top(kind, 0, 6 if kind.startswith("raidz") else 2, *changes), **fields)
    return MachineView(at(found, facts), others, enclosures=enclosures)


def chosen(v: MachineView, key: str = KEY) -> SwapChoice:
    found = choose(v, key)
    assert found is not None
    return found
