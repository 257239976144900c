"""Block devices under leaves: which rows of /proc/diskstats belong to them, and their properties.

Fields of /proc/diskstats: Documentation/admin-guide/iostats.rst of Linux. Partitions and device
mapper nodes have counters of their own, so a leaf needs the row of the node it was given. Without
/proc/diskstats, psutil's counters are used: on FreeBSD (untested there) these cover whole disks
only (devstat(9)), so a partition gets the row of its disk.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from zconsole.system.host import ROOT, bytes_in, text_in
from zconsole.zfs.sources.kstat import find_psutil

SECTOR = 512
"""Bytes per unit of /sys/block/*/size, whatever the device's own sector size is."""


def node_name(path: str, root: Path = ROOT) -> str | None:
    """Return the kernel's name of a leaf's device, as in /proc/diskstats.

    None for a file or a missing device.
    """
    resolved = Path(os.path.realpath(root / path.lstrip("/")))
    devices = Path(os.path.realpath(root / "dev"))
    if not resolved.is_relative_to(devices):
        return None
    name = resolved.relative_to(devices).as_posix()
    if _class(root, name).exists():
        return name
    # A node that is not a link, as in a /dev/mapper made without udev, is identified by its number.
    try:
        status = resolved.stat()
    except OSError:
        return None
    if not stat.S_ISBLK(status.st_mode):  # character devices have numbers of their own
        return None
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    link = root / "sys/dev/block" / number
    return Path(os.path.realpath(link)).name.replace("!", "/") if link.exists() else None


def diskstats_names(path: str, known: Iterable[str], root: Path = ROOT) -> tuple[str, ...]:
    """Return the rows of /proc/diskstats that count a leaf's I/O, () if there are none.

    ``known`` are the names that have a row. A device mapper node (LUKS, LVM, multipath) without a
    row is replaced by the devices it is made of.
    """
    if not (root / "sys/class/block").exists():
        # psutil has a row per disk, not per partition. A GPT label or a file gets no row.
        disk, rows = path.removeprefix("/dev/"), frozenset(known)
        return next(((each,) for each in (disk, _PART.sub("", disk)) if each in rows), ())
    name = node_name(path, root)
    return () if name is None else _rows(name, frozenset(known), root)


def _rows(name: str, known: frozenset[str], root: Path) -> tuple[str, ...]:
    if name in known:
        return (name,)
    below = (_rows(each, known, root) for each in slaves(name, root))
    return tuple(row for rows in below for row in rows)


def slaves(name: str, root: Path = ROOT) -> tuple[str, ...]:
    """Return the devices a stacked device is made of (/sys/class/block/NAME/slaves)."""
    try:
        return tuple(sorted(each.name for each in (_class(root, name) / "slaves").iterdir()))
    except OSError:
        return ()


def diskstats_rows(root: Path = ROOT) -> Mapping[str, str]:
    """Return the lines of /proc/diskstats by device name, or equivalent lines made from psutil."""
    try:
        lines = bytes_in(root / "proc/diskstats").decode("utf-8", "replace").splitlines()
    except OSError:
        return _psutil_rows()
    return {words[2]: line for line in lines if len(words := line.split(None, 3)) == 4}


def udev_properties(block: Path, root: Path = ROOT) -> Mapping[str, str]:
    """Return a device's udev properties: ``E:KEY=VALUE`` lines of /run/udev/data/bMAJOR:MINOR."""
    text = text_in(root / "run/udev/data" / f"b{text_in(block / 'dev')}")
    pairs = (line[2:].partition("=") for line in text.splitlines() if line.startswith("E:"))
    return {key: value for key, _, value in pairs}


def _class(root: Path, name: str) -> Path:
    return root / "sys/class/block" / name.replace("/", "!")


_PSUTIL_KEYS = (
    *("read_count", "read_bytes", "read_time", "write_count", "write_bytes", "write_time"),
    "busy_time",
)
_PART = re.compile(r"(?:p\d+|s\d+[a-h]?)(?:\.eli)?$")
"""GPT partition or MBR slice suffix of a disk's name (gpart(8))."""


def _psutil_rows() -> Mapping[str, str]:
    """Return a line in the format of /proc/diskstats for every disk; empty without psutil.

    Fields 1 to 14 of iostats.rst; merged and in-flight requests are unknown here.
    """
    psutil = find_psutil()
    counters = (psutil.disk_io_counters(perdisk=True, nowrap=False) or {}) if psutil else {}
    rows = {}
    for name, found in counters.items():
        counts = (int(getattr(found, key, 0)) for key in _PSUTIL_KEYS)
        reads, read, read_ms, writes, written, write_ms, busy = counts
        moved = f"{reads} 0 {read // SECTOR} {read_ms} {writes} 0 {written // SECTOR} {write_ms}"
        rows[name] = f"0 0 {name} {moved} 0 {busy} 0"
    return rows
