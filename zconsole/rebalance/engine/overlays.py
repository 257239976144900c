"""The directories that mounted overlays are made of (overlayfs, linux/fs/overlayfs/params.c)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from zconsole.system.mounts import MountPoint, Spot, View, ancestors, plain

_LISTS = (b"lowerdir",)
_SINGLE = (b"upperdir", b"workdir", b"lowerdir+", b"datadir+")
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_COLON = re.compile(rb"(?:[^:\\]|\\.)+", re.DOTALL)
"""One of a list of lower directories; ``::`` before those that only hold data."""


def layers(options: bytes) -> list[bytes]:
    """The directories in the options of a mount table, as they were given: perhaps relative."""
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
    """What an overlay is made of, as far as that is found."""

    spots: set[Spot]
    lost: bool
    """Whether a relative directory is found nowhere."""


def found(mount: MountPoint, views: Iterable[View]) -> Layers:
    """Where the directories of an overlay are, as far as the processes of ``views`` see them.

    A relative one began at the working directory of whoever mounted it, which nobody remembers:
    it is looked for wherever the overlay's other paths lead along.
    """
    paths = layers(mount.options)
    absolute = {path for path in paths if path.startswith(b"/")}
    relative = {path for path in paths if path and not path.startswith(b"/")}
    along = {b for path in (*absolute, mount.point) for b in (path, *ancestors(path))}
    spots = {view.follow(path) for view in views for path in absolute}
    lost = False
    for path in relative:
        joined = [b"/".join((base, path)) for base in along]
        places = {v.follow(each, sure=True) for v in views for each in joined} - {None}
        spots |= places
        lost = lost or not places
    return Layers({spot for spot in spots if spot is not None}, lost)
