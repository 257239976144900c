"""The words zpool prints for what the kernel reports as numbers, and the other way round."""

from __future__ import annotations

import re

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
"""Every text of an auxiliary state."""


def aux_text(aux: str, slow_only: bool = False) -> str:
    """What ``zpool status`` prints for an auxiliary state, "" for none.

    ``slow_only``: a leaf with slow I/Os but no errors, which 2.2+ words differently.
    Source: print_status_config in cmd/zpool/zpool_main.c (2.3.9).
    """
    if aux in ("", "NONE"):
        return ""
    if aux == "ERR_EXCEEDED" and slow_only:
        return "too many slow I/Os"
    return _AUX_TEXTS.get(aux, "corrupted data")


def state_word(state: str, aux: str = "") -> str:
    """The printed state of a vdev, from its enum word and auxiliary word.

    Source: zpool_state_to_name in lib/libzfs/libzfs_pool.c (2.3.9). An unknown word is kept.
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
"""What zpool prints of no pool but a suspended one (check_status in lib/libzfs/libzfs_status.c)."""


def suspension(state: str | None, *said: str | None) -> str | None:
    """Why a pool is suspended, by its state and zpool's sentences; None if it is not.

    zpool shows SUSPENDED as a state since 0.8; before that only its sentences tell.
    """
    text = " ".join(filter(None, said))
    if _OTHER_HOSTS.search(text):
        return MULTIHOST
    if _NO_IO.search(text):
        return ERRORS
    return UNEXPLAINED if state == "SUSPENDED" else None
