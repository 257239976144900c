"""The directories that overlays and other filesystems stacked by the kernel consist of.

Stacks in user space (FUSE) are not meant: their servers open files as any process does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from zconsole.system.mounts import MountPoint, Spot, View, ancestors, plain

KINDS = frozenset({b"overlay", b"ecryptfs", b"shiftfs", b"aufs"})
_AUFS = Path("/sys/fs/aufs")
_LISTS = (b"lowerdir",)
_SINGLE = (b"upperdir", b"workdir", b"lowerdir+", b"datadir+")
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_COLON = re.compile(rb"(?:[^:\\]|\\.)+", re.DOTALL)
"""One of a list of lower directories; ``::`` before those that only hold data."""


def directories(mount: MountPoint, aufs: Path = _AUFS) -> list[bytes]:
    """The directories of a mount of one of the ``KINDS``, as they were given: perhaps relative."""
    if mount.kind == b"overlay":
        return layers(mount.options)
    return _branches(mount.options, aufs) if mount.kind == b"aufs" else [mount.source]


def _branches(options: bytes, aufs: Path) -> list[bytes]:
    """Those of aufs: in its options, or in sysfs by the number there (fs/aufs/sysfs.c)."""
    found: list[bytes] = []
    for option in options.split(b","):
        if option.startswith(b"br:"):
            found += plain(option[3:]).split(b":")
        elif option.startswith(b"si="):
            place = aufs / os.fsdecode(b"si_" + option[3:])
            found += [branch.read_bytes() for branch in place.glob("br[0-9]*")]
    return [branch.rpartition(b"=")[0] for branch in found]


def layers(options: bytes) -> list[bytes]:
    """The directories in the options of an overlay (fs/overlayfs/params.c)."""
    found = []
    for option in options.split(b","):
        name, _, value = option.partition(b"=")
        value = plain(value)
        if name in _LISTS:
            found += [_ESCAPED.sub(rb"\1", path) for path in _COLON.findall(value)]
        elif name in _SINGLE:
            found += {value, _ESCAPED.sub(rb"\1", value)}
    return found


class Layers(NamedTuple):
    """The layers of an overlay, as far as they are found."""

    spots: set[Spot]
    lost: bool
    """Whether a relative directory is found nowhere, or none is known."""


def found(mount: MountPoint, views: Iterable[View]) -> Layers:
    """Where the directories of an overlay are, as far as the processes of ``views`` see them.

    A relative one began at the working directory of whoever mounted it, which nobody remembers:
    it is looked for wherever the overlay's other paths lead along.
    """
    paths = directories(mount)
    absolute = {path for path in paths if path.startswith(b"/")}
    relative = {path for path in paths if path and not path.startswith(b"/")}
    along = {b for path in (*absolute, mount.point) for b in (path, *ancestors(path))}
    spots = {view.follow(path) for view in views for path in absolute}
    lost = not paths
    for path in relative:
        joined = [b"/".join((base, path)) for base in along]
        places = {v.follow(each, sure=True) for v in views for each in joined} - {None}
        spots |= places
        lost = lost or not places
    return Layers({spot for spot in spots if spot is not None}, lost)
