"""The directories that mounted overlays are made of (overlayfs, linux/fs/overlayfs/params.c)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

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


def spots(mount: MountPoint, views: Iterable[View], bases: Iterable[bytes] = ()) -> set[Spot]:
    """Where the directories of an overlay are, as far as the processes of ``views`` see them.

    A relative one began at the working directory of whoever mounted it, which nobody remembers:
    it is looked for below ``bases``, and wherever the overlay's other paths lead along.
    """
    paths = layers(mount.options)
    absolute = {path for path in paths if path.startswith(b"/")}
    relative = [path for path in paths if path and not path.startswith(b"/")]
    along = {b for path in (*absolute, *bases, mount.point) for b in (path, *ancestors(path))}
    found: set[Spot | None] = set()
    for view in views:
        found |= {view.follow(path) for path in absolute}
        found |= {view.follow(b"/".join(p), sure=True) for p in _pairs(along, relative)}
    return {spot for spot in found if spot is not None}


def _pairs(bases: Iterable[bytes], relative: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    return ((base, path) for path in relative for base in bases)
