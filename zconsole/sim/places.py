"""Places of simulated disks: shelves of bays, and NVMe slots of the machine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

from zconsole.hardware.location import bay_names
from zconsole.pool.chassis import Enclosure, LeafDisk, Lights, Slot, SlotKey, SlotLights
from zconsole.sim.disk import CANT_OPEN, FAULTED, REMOVED, Leaf, bay_alias
from zconsole.sim.state import PoolState

FAILED = (REMOVED, CANT_OPEN, FAULTED)


class SimulatedPlaces(NamedTuple):
    """The shelves of one pool's machine, and its disks by leaf path."""

    enclosures: tuple[Enclosure, ...]
    disks: Mapping[str, LeafDisk]
    bays: Mapping[SlotKey, str]
    """Name of each slot's bay, as people use it."""


def places(pool: PoolState) -> SimulatedPlaces:
    """Return the current place of each disk on a pool's machine."""
    leaves = {leaf.path: leaf for leaf in machine_leaves(pool) if leaf.kind == "disk"}
    shelves = tuple(_enclosures(pool, leaves))
    bays = bay_names(shelves)
    if alias := pool.host.alias:  # names from vdev_id.conf, numbered through all shelves
        hard = [key for key in bays if key[0]]
        names = {key: bay_alias(alias, n, nvme=False) for n, key in enumerate(hard, 1)}
        bays = names | {("", str(n)): bay_alias("", n, nvme=True) for n in pool.host.flash}
    disks = {path: _disk(pool, leaf, bays) for path, leaf in leaves.items()}
    return SimulatedPlaces(shelves, disks, bays)


def lights(pools: Sequence[PoolState], lit: Collection[SlotKey]) -> Lights:
    """Return the lights of all slots: locate for slots in ``lit``, fault as ZED sets it.

    ``statechange-led.sh`` lights the slot of a failed device; an empty slot stays lit until it has
    another disk.
    """
    found: dict[SlotKey, SlotLights] = {}
    for pool in pools:
        for shelf in places(pool).enclosures:
            for slot in shelf.slots if shelf.key else ():
                status = "OK" if slot.disks else "not installed"
                key = shelf.key, slot.name
                found[key] = SlotLights(False, key in lit, status)
        for leaf in pool.leaves():
            key = place_of(pool, leaf)
            if key in found and leaf.state in FAILED:
                found[key] = found[key]._replace(fault=True)
    return found


def machine_leaves(pool: PoolState) -> Iterator[Leaf]:
    """Yield all devices of the pool's machine, in pools or not, including unplugged ones."""
    for each in pool.host.pools:
        yield from each.leaves()
    yield from pool.host.shelf


def slot_name(number: int) -> str:
    """Return the enclosure's name of slot ``number``."""
    return f"Slot {number:02d}"


def place_of(pool: PoolState, leaf: Leaf) -> tuple[str, str]:
    """Return the key of the enclosure and the name of the slot."""
    if leaf.is_nvme:
        return "", str(leaf.slot)
    shelf, slot = divmod(leaf.slot - 1, pool.host.slots)
    return _key(pool, shelf), slot_name(slot + 1)


def _key(pool: PoolState, shelf: int) -> str:
    # Ids in the form of SAS expanders', derived from a name so that they are reproducible.
    machine = pool.host.pools[0].name
    return f"0x50030480{crc32(machine.encode()) & 0xFFFF:04x}{0xE07F + 64 * shelf:04x}"


def _enclosures(pool: PoolState, leaves: Mapping[str, Leaf]) -> Iterator[Enclosure]:
    held: dict[SlotKey, tuple[str, ...]] = {}
    for leaf in leaves.values():
        if leaf.present:
            held.setdefault(place_of(pool, leaf), (leaf.disk,))
    every = (*leaves.values(), *pool.host.drawer)  # a shelf stays when its last disk is pulled
    last = max((leaf.slot for leaf in every if not leaf.is_nvme), default=0)
    for shelf in range(-(-last // pool.host.slots)):
        key = _key(pool, shelf)
        names = ((number, slot_name(number)) for number in range(1, pool.host.slots + 1))
        slots = (Slot(name, n, held.get((key, name), ())) for n, name in names)
        yield Enclosure(key, "LSI SAS3x40", tuple(slots))
    if pool.host.flash:
        slots = (Slot(str(n), n, held.get(("", str(n)), ())) for n in pool.host.flash)
        yield Enclosure("", "NVMe slots", tuple(slots))


def _disk(pool: PoolState, leaf: Leaf, bays: Mapping[tuple[str, str], str]) -> LeafDisk:
    key, name = place_of(pool, leaf)
    address = "65:00.0-nvme-1" if leaf.is_nvme else f"01:00.0-sas-exp{key}-phy{leaf.slot}-lun-0"
    return LeafDisk(
        bay=bays.get((key, name), ""),
        enclosure=key,
        slot=name,
        port=f"pci-0000:{address}",
        serial=leaf.serial,
        wwn=f"naa.5000c5{leaf.guid & 0xFF_FFFF_FFFF:010x}",
        model=leaf.model.name.partition("-")[2],
        temperature=_temperature(leaf),
        hubs="" if leaf.is_nvme else f"expander-0:{(leaf.slot - 1) // pool.host.slots}",
    )


def _temperature(leaf: Leaf) -> float | None:
    """Return degrees Celsius, rising with the load; None if the disk does not answer."""
    if not leaf.present or not leaf.online:
        return None
    return float(round((41 if leaf.is_nvme else 31) + 5 * leaf.swing + 6 * min(1.0, leaf.used)))
