"""Questions to a topology: keys that stay the same from sample to sample, groups, data disks.

And whether the path of a failed leaf leads to its own disk still, or to another one by now. Paths
move: after a boot without it, the next disk has its kernel name, and the leaf is printed as ``was
/dev/sdb1`` beside the healthy one that is ``/dev/sdb1`` now.
"""

from __future__ import annotations

from typing import NamedTuple

from zconsole.pool.model import GROUP_KINDS, Vdev


class Placed(NamedTuple):
    """A vdev in its tree: its key, its depth and the keys above it."""

    key: str
    depth: int
    vdev: Vdev
    parent: str | None
    top: str | None
    """Key of the top-level vdev it belongs to (its own for a top-level, None for the root)."""


def placed(root: Vdev) -> tuple[Placed, ...]:
    """Every vdev below and including ``root``, in the order ``zpool status`` prints.

    The key is the GUID where the source knows it, else the path of names from the root with a
    counter where siblings share a name (``tank/raidz1#1/sda``). A hot spare's own row has its
    class before the GUID, in use or not: the device that stands in elsewhere is another row.
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
"""Classes of vdevs that hold the pool's data."""
APART = ("cache", "spare")
"""Classes of devices whose states and I/O are no part of the pool's own."""


def data_vdevs(root: Vdev) -> tuple[Vdev, ...]:
    """The top-level vdevs that hold data, no holes."""
    return tuple(
        v for v in root.children if v.vclass in DATA and v.kind not in ("hole", "indirect")
    )


def is_group(vdev: Vdev) -> bool:
    """Whether it is a replacing or hot-spare group (an interior vdev, not a spare device)."""
    return vdev.kind in GROUP_KINDS and bool(vdev.children)


def disks_of(kind: str, devices: int, spares: int = 0) -> int | None:
    """Data disks of a top-level vdev of so many devices, ``spares`` of them distributed ones.

    None where the layout is unknown. A mirror or a single disk counts as one (vdev_get_ndisks,
    module/zfs/vdev.c 2.3.9).
    """
    if kind in ("mirror", "disk", "file") or not devices:
        return 1
    if kind.startswith(("raidz", "draid")) and kind[-1].isdigit():
        return max(1, devices - spares - int(kind[-1]))
    return 1 if kind in GROUP_KINDS else None


FAILED = ("FAULTED", "UNAVAIL", "REMOVED", "OFFLINE")
"""States of a device from which nothing can be read."""
LEAST = 5
"""Characters of a serial number or World Wide Name from which on another leaf's id may have it."""


def is_taken(leaf: Vdev, root: Vdev, serial: str, wwn: str) -> bool:
    """Whether a failed leaf's path leads to another disk; ``serial`` and ``wwn`` are that disk's.

    False, too, where nothing tells.
    """
    if leaf.state not in FAILED or not leaf.path or is_named(leaf, serial, wwn):
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
    # The next disk gets the kernel's name, like /dev/sdb1.
    return bool(leaf.path.rpartition("/")[0] == "/dev" and leaf.devid and marks)


def is_named(leaf: Vdev, serial: str, wwn: str) -> bool:
    """Whether the id that ZFS noted of a leaf's disk has this serial number or WWN."""
    return any(mark in (leaf.devid or "") for mark in _marks(serial, wwn))


def _marks(serial: str, wwn: str) -> list[str]:
    """What ids of disks are made of: udev writes a blank as ``_``."""
    words = (serial.replace(" ", "_"), wwn.rpartition(".")[2].removeprefix("0x"))
    return [word for word in words if word]
