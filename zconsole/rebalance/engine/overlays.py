"""The directories that make up overlays and other filesystems stacked by the kernel.

Stacks in user space (FUSE) need no such search: their servers open files as any process does.
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
"""One of a list of lower directories, which may have escapes; ``::`` precedes data-only ones."""


def directories(mount: MountPoint, aufs: Path = _AUFS) -> list[bytes]:
    """Return the directories of a mount of one of the ``KINDS``, as given, so perhaps relative."""
    if mount.kind == b"overlay":
        return layers(mount.options)
    return _branches(mount.options, aufs) if mount.kind == b"aufs" else [mount.source]


def _branches(options: bytes, aufs: Path) -> list[bytes]:
    """Return the branches of an aufs mount: from its options, or /sys/fs/aufs/si_ID.

    The option ``si=`` has the ID (fs/aufs/sysfs.c).
    """
    found: list[bytes] = []
    for option in options.split(b","):
        if option.startswith(b"br:"):
            found += plain(option[3:]).split(b":")
        elif option.startswith(b"si="):
            place = aufs / os.fsdecode(b"si_" + option[3:])
            found += [branch.read_bytes() for branch in place.glob("br[0-9]*")]
    return [branch.rpartition(b"=")[0] for branch in found]  # without permissions: PATH=rw


def layers(options: bytes) -> list[bytes]:
    """Return the directories in the options of an overlay (fs/overlayfs/params.c)."""
    found = []
    for option in options.split(b","):
        name, _, value = option.partition(b"=")
        value = plain(value)
        if name in _LISTS:
            found += [_ESCAPED.sub(rb"\1", path) for path in _COLON.findall(value)]
        elif name in _SINGLE:
            # Not every kernel and option has escapes here: try both readings.
            found += {value, _ESCAPED.sub(rb"\1", value)}
    return found


class Layers(NamedTuple):
    """The layers of an overlay, as far as they were found."""

    spots: set[Spot]
    lost: bool
    """Whether a relative directory was not found, or no directory is known."""


def found(mount: MountPoint, views: Iterable[View]) -> Layers:
    """Find the directories of an overlay, as far as the processes of ``views`` see them.

    A relative path began at the working directory of the process that mounted the overlay, which
    the kernel does not record: it is tried from every directory on the overlay's other paths.
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
