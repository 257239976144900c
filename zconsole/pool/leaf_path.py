"""Whether the path of a failed leaf leads to its own disk still, or to another one by now.

Paths move: after a boot without it, the next disk has its kernel name, and the leaf is printed as
``was /dev/sdb1`` beside the healthy one that is ``/dev/sdb1`` now.
"""

from __future__ import annotations

from zconsole.pool.model import Vdev

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
