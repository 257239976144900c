"""Free hot spares: where they fit, and those that stand idle though a device has failed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from zconsole.keyed_text import KeyedText
from zconsole.pool.health import LOST_STATES, SpareProblem, least_bytes
from zconsole.pool.model import APART, Placed, Pool, Vdev, is_group
from zconsole.units import size

PATIENCE = 180.0
"""Seconds after a failure until a spare that fits counts as idle.

ZED lets a spare stand in within seconds of the kernel's event; for some failures it waits 15 s
first, as the disk may have been removed (REMOVE_TIMEOUT, cmd/zed/agents/zfs_diagnosis.c). A shelf
that restarts has its disks back within two minutes.
"""


def spares(pool: Pool) -> dict[str, Vdev]:
    """Return the pool's available hot spares by the name to give to zpool.

    The name is the whole disk's path, or the name of a distributed spare.
    """
    free = (v for v in pool.root.children if v.vclass == "spare" and v.state == "AVAIL")
    # A spare that is a whole disk is listed by the partition that zpool made on it.
    return {(v.path or v.name).removesuffix("-part1"): v for v in free}


def ashift_of(top: Vdev) -> int | None:
    """Return the ashift of a top-level vdev; None if unknown."""
    return next((vdev.ashift for vdev in top.walk() if vdev.ashift), None)


def unfit_spare(spare: Vdev, device: Vdev, top: Vdev) -> str | None:
    """Return why zpool would refuse a hot spare in the place of a device (spa_vdev_attach, spa.c).

    None if it would not, as far as sizes and sectors are known.
    """
    if top.vclass == "log":
        return "a hot spare cannot replace a log device"
    # Named draid<parity>-<top-level vdev>-<number> (vdev_draid_spare_name, vdev_draid.c).
    if spare.kind == "dspare" and spare.name.split("-")[1] != top.name.rpartition("-")[2]:
        return "spares are distributed over a dRAID vdev, for its own devices"
    for group in top.walk():
        original = group.children[0] if group.kind == "spare" and group.children else None
        if original is not None and device in original.walk():
            return f"{group.children[-1].called} stands in already: choose a disk that is no spare"
    least, ashift, room = least_bytes(top) or 0, ashift_of(top), spare.size_bytes
    if spare.kind == "dspare" or _is_disk_for(spare, least, ashift):
        return None
    if room and room < least:
        return f"too small: {size(room)}, this place needs {size(least)}"
    sectors, own = 1 << (spare.logical_ashift or 0), 1 << (ashift or 0)
    return f"its sectors are {sectors} bytes, {top.name} is laid out for {own}"


def _is_disk_for(spare: Vdev, least: int, ashift: int | None) -> bool:
    """Whether size and sectors of a spare are enough, as far as they are known."""
    is_large = not spare.size_bytes or spare.size_bytes >= least
    return is_large and not (ashift and (spare.logical_ashift or 0) > ashift)


def idle_spares(
    pool: Pool,
    tree: Mapping[str, Placed],
    failed: Mapping[str, float],
    now: float,
    zed: bool | None,
) -> Iterator[SpareProblem]:
    """Yield each free spare that fits a device that failed at least PATIENCE ago, with that device.

    ``failed``: keys of the devices to consider, and when each failed (epoch seconds). Nothing for
    devices whose vdev is lost, as there is nothing to fill a spare from, and for spares of unknown
    size. ``zed``: whether ZED runs; None if unknown.
    """
    free = dict(sorted(spares(pool).items(), key=lambda each: each[1].size_bytes or 0))
    for key, since in failed.items():
        _, _, device, parent, of = tree[key]
        top = tree[of or key].vdev
        apart = device.vclass in APART or top.state in LOST_STATES or pool.suspended
        if apart or now - since < PATIENCE or is_group(tree[parent or key].vdev):
            continue
        least, ashift = least_bytes(top) or 0, ashift_of(top)
        for path, spare in free.items():
            known = spare.size_bytes and least and _is_disk_for(spare, least, ashift)
            # Cheap checks come first: an odd text may list hundreds of spares and failures.
            if (known or spare.kind == "dspare") and unfit_spare(spare, device, top) is None:
                del free[path]
                yield _idle(pool, device, spare, path, ashift, zed)
                break


def _idle(
    pool: Pool, device: Vdev, spare: Vdev, path: str, ashift: int | None, zed: bool | None
) -> SpareProblem:
    # Some releases choose a larger ashift by the sectors that the spare prefers, and then refuse.
    options = ("-o", f"ashift={ashift}") if ashift and (spare.physical_ashift or 0) > ashift else ()
    command = shlex.join(("zpool", "replace", *options, pool.name, device.argument, path))
    text = f"spare {spare.name} fits {device.name} and is not used"
    if zed is not None:
        text += ", though zfs-zed runs" if zed else ": zfs-zed is not running"
    # The console has a key for it, told as the next step.
    told = KeyedText(f"{text}; to use it: {command}", text)
    return SpareProblem("unused", spare.name, told, device.name, command, zed)
