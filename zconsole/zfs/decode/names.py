"""Names as ``zpool status`` prints them, and what a name says about its vdev."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_REMEMBERED = 8192
"""Names kept between samples: the same leaves come again every second."""

_SEARCH_PATHS = (
    "/dev/disk/by-vdev/",
    "/dev/mapper/",
    "/dev/disk/by-partlabel/",
    "/dev/disk/by-partuuid/",
    "/dev/disk/by-label/",
    "/dev/disk/by-uuid/",
    "/dev/disk/by-id/",
    "/dev/disk/by-path/",
    "/dev/",
)
"""Prefixes a disk's name loses (zfs_strip_path, zpool_default_search_paths in lib/libzutil, Linux,
2.3)."""

_PARTITION = re.compile(
    r"(?P<disk>.+)-part\d+|(?P<numbered>.+\d)p\d+|(?P<letters>(?:[hsv]d|xvd)[a-z]+)\d+"
)
"""A whole disk's name, and zpool's partition of it (zfs_strip_partition, Linux)."""
_GROUP = re.compile(r"(mirror|raidz[123]?|draid[123]?|replacing|spare)(?::[\w:]+)?(?:-\d+)?")
_DSPARE = re.compile(r"draid[123]-\d+-\d+")
_NUMBERED = re.compile(r"(indirect|hole|missing)-\d+")
_KNOWN_STEMS = ("mirror", "raidz", "draid", "replacing", "spare", "indirect", "hole", "missing")

CLASSES = {
    "log": "log",
    "logs": "log",
    "cache": "cache",
    "l2cache": "cache",
    "spare": "spare",
    "spares": "spare",
    "special": "special",
    "dedup": "dedup",
}
"""What zpool's headings, JSON and nvlists call the classes of vdevs that are not normal."""


@lru_cache(maxsize=_REMEMBERED)
def disk_name(path: str, whole_disk: bool | None) -> str:
    """The name of a disk at ``path`` as ``zpool status`` without options prints it.

    Where it is unknown whether zpool partitioned the disk itself (JSON has no ``whole_disk``),
    partition 1 is taken for zpool's own, which always is number 1; a partition 1 made by hand
    then loses its suffix (``sda1`` shows as ``sda``). Other numbers keep theirs.
    """
    name = next((path[len(each) :] for each in _SEARCH_PATHS if path.startswith(each)), path)
    if whole_disk is None:
        whole_disk = name.endswith(("-part1", "p1")) or (
            name[-1:] == "1" and not name[-2:-1].isdigit() and "-" not in name
        )
    match = _PARTITION.fullmatch(name) if whole_disk else None
    return name if match is None else match["disk"] or match["numbered"] or match["letters"]


@lru_cache(maxsize=_REMEMBERED)
def kind_of(name: str) -> str | None:
    """The kind that a printed name tells: mirror, raidz2, draid1, replacing, …; None for a disk.

    A bare ``raidz`` (before names had a number) is single parity.
    """
    if not name.startswith(_KNOWN_STEMS):
        return None
    if _DSPARE.fullmatch(name):
        return "dspare"
    if match := _NUMBERED.fullmatch(name):
        return match[1]
    match = _GROUP.fullmatch(name)
    if match is None:
        return None
    return f"{match[1]}1" if match[1] in ("raidz", "draid") else match[1]


def leaf_kind(name: str) -> str:
    """``file`` for a name that is a path outside /dev, else ``disk``."""
    return "file" if name.startswith("/") and not name.startswith("/dev/") else "disk"


class DraidShape(NamedTuple):
    """What a dRAID's name tells: data disks, distributed spares, and failure groups."""

    data: int
    spares: int
    width: int
    """Devices in all."""
    group: int | None = None
    """Devices of a failure group, where there are several of them (``w``, since 2.4.99)."""


def draid_shape(name: str) -> DraidShape | None:
    """The shape of ``draid1:3d:7c:1s-0``, or of ``draid1:2d:4c:8w:1s-0``, two groups of four."""
    match = re.match(r"draid\d?:(\d+)d:(\d+)c:(?:(\d+)w:)?(\d+)s", name)
    if match is None:
        return None
    group, width = int(match[2]), int(match[3] or match[2])
    return DraidShape(int(match[1]), int(match[4]), width, group if match[3] else None)


def parity_of(kind: str) -> int | None:
    """Parity devices of a raidz or dRAID kind, else None."""
    if kind.startswith(("raidz", "draid")) and kind[-1:].isdigit():
        return int(kind[-1])
    return None
