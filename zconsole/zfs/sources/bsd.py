"""Disk counters where there is no /proc/diskstats: psutil's, in that file's form.

FreeBSD counts whole disks only (devstat(9)), so a partition has its disk's row. Untested on
FreeBSD itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

SECTOR = 512
_PART = re.compile(r"(?:p\d+|s\d+[a-h]?)(?:\.eli)?$")
"""A GPT partition or an MBR slice behind a disk's name (gpart(8))."""


def psutil_rows() -> Mapping[str, str]:
    """A line in the form of /proc/diskstats for every disk; empty where psutil has none."""
    import psutil

    counters = psutil.disk_io_counters(perdisk=True, nowrap=False) or {}
    return {name: _line(name, found) for name, found in counters.items()}


def _line(name: str, found: object) -> str:
    """Fields 1 to 14 of iostats.rst; merged and in-flight requests are not known here."""
    keys = ("read_count", "read_bytes", "read_time", "write_count", "write_bytes", "write_time")
    reads, read, read_ms, writes, written, write_ms = (_count(found, key) for key in keys)
    moved = f"{reads} 0 {read // SECTOR} {read_ms} {writes} 0 {written // SECTOR} {write_ms}"
    return f"0 0 {name} {moved} 0 {_count(found, 'busy_time')} 0"


def _count(found: object, key: str) -> int:
    return int(getattr(found, key, 0))


def disk_row(path: str, known: Iterable[str]) -> tuple[str, ...]:
    """The row of the disk a leaf is on, () for a label or a file."""
    name = path.removeprefix("/dev/")
    rows = frozenset(known)
    return next(((each,) for each in (name, _PART.sub("", name)) if each in rows), ())
