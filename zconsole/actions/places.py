"""Which disks a plan is about, and where they sit: said of every disk that its commands name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from zconsole.hardware.device import Device
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import Pool, Vdev
from zconsole.pool.topology import is_taken

MOST = 12
"""Disks that are named; more than that nobody looks for at once."""


def places(words: Collection[str], pool: Pool, devices: Iterable[Device]) -> tuple[str, ...]:
    """``sda: Slot 05, serial ZC1A2B3C`` for each disk that these words of commands name.

    Empty where nothing tells the place nor the serial number.
    """
    found = tuple(dict.fromkeys(_places(words, pool, tuple(devices))))
    more = (f"and {len(found) - MOST} more",) if len(found) > MOST else ()
    return (*found[:MOST], *more)


def _places(words: Collection[str], pool: Pool, devices: tuple[Device, ...]) -> Iterator[str]:
    told: set[Device] = set()
    for leaf in pool.root.leaves():
        device = next((d for d in devices if leaf.path in (d.path, *d.aliases)), None)
        if device and is_taken(leaf, pool.root, device.serial, device.wwn):
            device = None
        if not _names_leaf(words, leaf):
            continue
        if device is not None:
            told.add(device)
        out = device is None and _is_out(leaf, devices)
        yield from _said(leaf.name, _disk_of(leaf, device), " (not there now)" * out)
    for device in devices:
        names = {device.path, device.node, device.locate, *device.aliases}
        if device not in told and names & set(words):
            yield from _said(device.path.rpartition("/")[2], _of_device(device))


def _said(name: str, disk: LeafDisk, more: str = "") -> Iterator[str]:
    """Its place and serial number, where those tell more than its name; ``more`` behind them."""
    if text := disk.words(name if disk.bay == name else ""):
        yield f"{name}: {text}{more}"


def _is_out(leaf: Vdev, devices: tuple[Device, ...]) -> bool:
    """Whether the machine no longer has the disk of a leaf, as its serial number tells."""
    serial = leaf.disk.serial if leaf.disk else ""
    return bool(serial and devices) and all(device.serial != serial for device in devices)


def _names_leaf(words: Collection[str], leaf: Vdev) -> bool:
    path = leaf.path or leaf.name
    return any(name in words for name in (leaf.guid, path, path.removesuffix("-part1")))


def _disk_of(leaf: Vdev, device: Device | None) -> LeafDisk:
    """What the sample knows: it remembers a disk that is gone; else what the machine tells now."""
    if leaf.disk is not None:
        return leaf.disk
    return LeafDisk() if device is None else _of_device(device)


def _of_device(device: Device) -> LeafDisk:
    return LeafDisk(bay=device.bay, serial=device.serial)
