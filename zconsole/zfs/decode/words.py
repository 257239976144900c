"""The words that zpool prints for the kernel's numbers, and the information in vdev names."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from zconsole.pool.model import ERRORS, MULTIHOST, UNEXPLAINED

VDEV_STATES = (
    "UNKNOWN",
    "CLOSED",
    "OFFLINE",
    "REMOVED",
    "CANT_OPEN",
    "FAULTED",
    "DEGRADED",
    "ONLINE",
)
"""``vdev_state_t`` by value (include/sys/fs/zfs.h, 0.6 to 2.4)."""

AUX_WORDS = (
    "NONE",
    "OPEN_FAILED",
    "CORRUPT_DATA",
    "NO_REPLICAS",
    "BAD_GUID_SUM",
    "TOO_SMALL",
    "BAD_LABEL",
    "VERSION_NEWER",
    "VERSION_OLDER",
    "UNSUP_FEAT",
    "SPARED",
    "ERR_EXCEEDED",
    "IO_FAILURE",
    "BAD_LOG",
    "EXTERNAL",
    "SPLIT_POOL",
    "BAD_ASHIFT",
    "EXTERNAL_PERSIST",
    "ACTIVE",
    "CHILDREN_OFFLINE",
    "ASHIFT_TOO_BIG",
)
"""``vdev_aux_t`` by value (include/sys/fs/zfs.h, 0.6 to 2.4)."""

_AUX_TEXTS = {
    "OPEN_FAILED": "cannot open",
    "BAD_GUID_SUM": "missing device",
    "NO_REPLICAS": "insufficient replicas",
    "VERSION_NEWER": "newer version",
    "UNSUP_FEAT": "unsupported feature(s)",
    "ASHIFT_TOO_BIG": "unsupported minimum blocksize",
    "SPARED": "currently in use",
    "ERR_EXCEEDED": "too many errors",
    "IO_FAILURE": "experienced I/O failures",
    "BAD_LOG": "bad intent log",
    "EXTERNAL": "external device fault",
    "SPLIT_POOL": "split into new pool",
    "ACTIVE": "currently in use",
    "CHILDREN_OFFLINE": "all children offline",
    "BAD_LABEL": "invalid label",
}

_CANT_OPEN = {"CORRUPT_DATA": "FAULTED", "BAD_LOG": "FAULTED", "SPLIT_POOL": "SPLIT"}

_UNCHANGED = frozenset({"OFFLINE", "REMOVED", "FAULTED", "DEGRADED", "ONLINE"})

AUX_TEXTS = ("corrupted data", "too many slow I/Os", *_AUX_TEXTS.values())
"""All texts for auxiliary states."""


def aux_text(aux: str, slow_only: bool = False) -> str:
    """Return the text that ``zpool status`` prints for an auxiliary state, "" for none.

    ``slow_only`` means a leaf with slow I/Os but no errors, which 2.2+ words differently.

    Source: print_status_config in cmd/zpool/zpool_main.c (2.3.9).
    """
    if aux in ("", "NONE"):
        return ""
    if aux == "ERR_EXCEEDED" and slow_only:
        return "too many slow I/Os"
    return _AUX_TEXTS.get(aux, "corrupted data")


def state_word(state: str, aux: str = "") -> str:
    """Return the printed state of a vdev, from its enum word and auxiliary word.

    Source: zpool_state_to_name in lib/libzfs/libzfs_pool.c (2.3.9). An unknown word is returned
    unchanged.
    """
    if state in _UNCHANGED:
        return state
    if state == "CANT_OPEN":
        return _CANT_OPEN.get(aux, "UNAVAIL")
    return "OFFLINE" if state == "CLOSED" else state


_OTHER_HOSTS = re.compile(r"multihost writes|ZFS-8000-MM\b", re.IGNORECASE)
_NO_IO = re.compile(
    r"in response to I/?O failures|ZFS-8000-(?:HC|JQ)\b|pool is suspended|is currently suspended",
    re.IGNORECASE,
)
"""Texts that zpool prints only for a suspended pool (check_status in
lib/libzfs/libzfs_status.c)."""


def suspension(state: str | None, *said: str | None) -> str | None:
    """Return why a pool is suspended, by its state and zpool's messages; None if it is not.

    zpool shows SUSPENDED as a state since 0.8; before that only its messages show it.
    """
    text = " ".join(filter(None, said))
    if _OTHER_HOSTS.search(text):
        return MULTIHOST
    if _NO_IO.search(text):
        return ERRORS
    return UNEXPLAINED if state == "SUSPENDED" else None


_REMEMBERED = 8192
"""Names cached between samples: the same leaves occur again every second."""

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
"""Prefixes that are removed from a disk's path (zfs_strip_path, zpool_default_search_paths in
lib/libzutil, Linux, 2.3)."""

_PARTITION = re.compile(
    r"(?P<disk>.+)-part\d+|(?P<numbered>.+\d)p\d+|(?P<letters>(?:[hsv]d|xvd)[a-z]+)\d+"
)
"""Name of a whole disk, followed by zpool's own partition (zfs_strip_partition, Linux)."""
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
"""Class of vdevs by its name in zpool's headings, JSON and nvlists; normal vdevs have none."""


@lru_cache(maxsize=_REMEMBERED)
def disk_name(path: str, whole_disk: bool | None) -> str:
    """Return the name of the disk at ``path`` as ``zpool status`` without options prints it.

    If it is unknown whether zpool partitioned the disk itself (JSON has no ``whole_disk``),
    partition 1 is taken for zpool's own, which always has number 1; a partition 1 made by hand then
    loses its suffix (``sda1`` shows as ``sda``). Other partition numbers are kept.
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
    """Return the kind in a printed name: mirror, raidz2, draid1, replacing, …; None for a disk.

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
    """Return ``file`` for a name that is a path outside /dev, else ``disk``."""
    return "file" if name.startswith("/") and not name.startswith("/dev/") else "disk"


class DraidShape(NamedTuple):
    """Layout given in a dRAID's name: data disks, distributed spares, and failure groups."""

    data: int
    spares: int
    width: int
    """Total number of devices."""
    group: int | None = None
    """Devices per failure group, if there are several groups (``w``, since 2.4.99)."""


def draid_shape(name: str) -> DraidShape | None:
    """Parse ``draid1:3d:7c:1s-0``, or ``draid1:2d:4c:8w:1s-0``, two groups of four."""
    match = re.match(r"draid\d?:(\d+)d:(\d+)c:(?:(\d+)w:)?(\d+)s", name)
    if match is None:
        return None
    group, width = int(match[2]), int(match[3] or match[2])
    return DraidShape(int(match[1]), int(match[4]), width, group if match[3] else None)


def parity_of(kind: str) -> int | None:
    """Return the number of parity devices of a raidz or dRAID kind, else None."""
    if kind.startswith(("raidz", "draid")) and kind[-1:].isdigit():
        return int(kind[-1])
    return None
