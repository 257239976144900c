"""What a pool's history tells of its scrubs, from the ``history`` of a raw form.

A recording may have been made by anybody: what has another shape is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from zconsole.pool.model import Pool, Scan
from zconsole.zfs.decode.values import is_time
from zconsole.zfs.raw import Raw

SAME = 2.0
"""Seconds by which the times of one scan may differ: history has the time of its record."""


def with_history(pool: Pool, raw: Raw) -> Pool:
    """The pool with its creation, its last full scrub, and which of its scrubs are full."""
    found = raw.get("history")
    if not isinstance(found, Mapping):
        return pool
    listed = found.get("scrubs")
    rows = listed if isinstance(listed, Sequence) else ()
    scrubs = [row for row in rows if isinstance(row, Mapping)]
    ends = [end for row in scrubs if row.get("full") is True and (end := _time(row, "end"))]
    return replace(
        pool,
        created=_time(found, "created"),
        full_scrub=max(ends, default=None),
        scans=tuple(_told(scan, scrubs) for scan in pool.scans),
    )


def _told(scan: Scan, scrubs: Sequence[Mapping[str, Any]]) -> Scan:
    """A scrub with what history says of it; known by its start or, in text, by its end."""
    if scan.function != "scrub":
        return scan
    for row in scrubs:
        is_full = row.get("full")
        same = _near(scan.start, _time(row, "start")) or _near(scan.end, _time(row, "end"))
        if same and isinstance(is_full, bool):
            return scan._replace(full=is_full)
    return scan


def _near(a: float | None, b: float | None) -> bool:
    return a is not None and b is not None and abs(a - b) <= SAME


def _time(row: Mapping[str, Any], key: str) -> float | None:
    value = row.get(key)
    return float(value) if is_time(value) else None  # type: ignore[arg-type]
