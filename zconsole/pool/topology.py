"""Helpers for the vdev tree: keys that are stable across samples, groups, data disks.

Also tells whether the path of a failed leaf still leads to its own disk. Paths move: after a boot
without the disk, the next one gets its kernel name, and the leaf is printed as ``was /dev/sdb1``
next to the healthy one that is ``/dev/sdb1`` now.
"""

from __future__ import annotations

from typing import NamedTuple

from zconsole.pool.model import GROUP_KINDS, Vdev


class Placed(NamedTuple):
    """A vdev with its position in the tree: key, depth, and keys of its parents."""

    key: str
    depth: int
    vdev: Vdev
    parent: str | None
    top: str | None
    """Key of its top-level vdev (its own for a top-level vdev, None for the root)."""


def placed(root: Vdev) -> tuple[Placed, ...]:
    """Return every vdev from ``root`` on, in the order of ``zpool status``.

    The key is the GUID if the source knows it, otherwise the path of names from the root, with a
    counter if siblings share a name (``tank/raidz1#1/sda``). The key of a row in the spares section
    has its class before the GUID, as a spare in use has a second row in the group it is in.
    """
    found: list[Placed] = []
    seen: set[str] = set()
    rest: list[tuple[Vdev, Placed | None, str]] = [(root, None, "")]
    while rest:
        vdev, above, trail = rest.pop()
        trail = f"{trail}/{vdev.name}" if trail else vdev.name
        base = vdev.guid or trail
        if vdev.guid and vdev.vclass == "spare":
            base = f"spare:{vdev.guid}"
        key, count = base, 0
        while key in seen:
            count += 1
            key = f"{base}#{count}"
        seen.add(key)
        if above is None:
            each = Placed(key, 0, vdev, None, None)
        else:
            each = Placed(key, above.depth + 1, vdev, above.key, above.top or key)
        found.append(each)
        rest.extend((child, each, trail) for child in reversed(vdev.children))
    return tuple(found)


DATA = ("normal", "special", "dedup")
"""Classes of vdevs that hold data of the pool."""
APART = ("cache", "spare")
"""Classes of devices whose states and I/O don't count for the pool."""


def data_vdevs(root: Vdev) -> tuple[Vdev, ...]:
    """Return the top-level vdevs that hold data, without holes and removed ones."""
    return tuple(
        v for v in root.children if v.vclass in DATA and v.kind not in ("hole", "indirect")
    )


def is_group(vdev: Vdev) -> bool:
    """Whether a vdev is a replacing or hot-spare group (an interior vdev, not a spare device)."""
    return vdev.kind in GROUP_KINDS and bool(vdev.children)


def disks_of(kind: str, devices: int, spares: int = 0) -> int | None:
    """Return the data disks of a top-level vdev; ``spares`` is the number of distributed spares.

    None if the layout is unknown. A mirror or a single disk counts as one (vdev_get_ndisks,
    module/zfs/vdev.c 2.3.9).
    """
    if kind in ("mirror", "disk", "file") or not devices:
        return 1
    if kind.startswith(("raidz", "draid")) and kind[-1].isdigit():
        return max(1, devices - spares - int(kind[-1]))
    return 1 if kind in GROUP_KINDS else None


FAILED = ("FAULTED", "UNAVAIL", "REMOVED", "OFFLINE")
"""States in which a device can't be read."""
LEAST = 5
"""Least characters of a serial number or WWN to search for in the ids of other leaves."""


def path_is_reused(leaf: Vdev, root: Vdev, serial: str, wwn: str) -> bool:
    """Whether a failed leaf's path now leads to another disk, with this ``serial`` and ``wwn``.

    False if that is unknown.
    """
    if leaf.state not in FAILED or not leaf.path or has_disk_id(leaf, serial, wwn):
        return False
    others = [
        x
        for x in root.leaves()
        if x is not leaf and x.guid != (leaf.guid or "") and x.vclass != "spare"
    ]
    if any(x.path == leaf.path and x.state not in FAILED for x in others):
        return True
    marks = [mark for mark in _marks(serial, wwn) if len(mark) >= LEAST]
    if any(mark in (x.devid or "") for x in others for mark in marks):
        return True
    # A name directly in /dev, such as sdb1, goes to the next disk after a boot.
    return bool(leaf.path.rpartition("/")[0] == "/dev" and leaf.devid and marks)


def has_disk_id(leaf: Vdev, serial: str, wwn: str) -> bool:
    """Whether the device id that ZFS stored for a leaf contains this serial number or WWN."""
    return any(mark in (leaf.devid or "") for mark in _marks(serial, wwn))


def _marks(serial: str, wwn: str) -> list[str]:
    """Return serial number and WWN as they appear in udev's ids, which have ``_`` for a blank."""
    words = (serial.replace(" ", "_"), wwn.rpartition(".")[2].removeprefix("0x"))
    return [word for word in words if word]
