"""Whether a scrub reads all blocks, or only those of some txgs.

No form of a pool's state says so; the kernel notes it where a scan begins (``scan setup`` in
``zpool history -i`` and in events: dsl_scan_setup_sync in module/zfs/dsl_scan.c, 2.1 to master).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zconsole.pool.model import Scan
from zconsole.zfs.decode.values import is_time

TXG_INITIAL = 4
"""The txg a pool begins with (include/sys/txg.h): no block is older."""
SCRUB = 1
"""POOL_SCAN_SCRUB, include/sys/fs/zfs.h."""
_LATER = 60.0
"""Seconds from a scan's start to its note: both are of one txg's sync, the note at its end."""


def is_setup(note: Mapping[str, Any]) -> bool:
    """Whether it has all that such a note has."""
    counts = (note.get(name) for name in ("func", "mintxg", "maxtxg", "txg"))
    return is_time(note.get("t")) and all(isinstance(count, int) for count in counts)


def with_extent(scans: tuple[Scan, ...], setup: Mapping[str, Any]) -> tuple[Scan, ...]:
    """The scans, and of the scrub that this note is about, whether it is full."""
    if int(setup["func"]) != SCRUB:
        return scans
    full, t = is_full(setup), float(setup["t"])
    return tuple(scan._replace(full=full) if _began_then(scan, t) else scan for scan in scans)


def is_full(setup: Mapping[str, Any]) -> bool:
    """Whether it reads from the pool's first txg to the one it began in."""
    return int(setup["mintxg"]) <= TXG_INITIAL and int(setup["maxtxg"]) >= int(setup["txg"])


def _began_then(scan: Scan, t: float) -> bool:
    start = scan.start
    return scan.function == "scrub" and start is not None and 0 <= t - int(start) <= _LATER
