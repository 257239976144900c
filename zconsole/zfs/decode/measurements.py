"""Adds to a pool what a raw form has besides its state: rates, capacities, disk counters.

Rates are those of ``zpool iostat``: ``-v``, or ``-Hpvlq`` where there are waits and queues, with
or without ``-P`` or ``-g``. Source: print_iostat_header, print_vdev_stats and the tables of columns
in cmd/zpool/zpool_main.c (0.7 to 2.4). ``-l`` follows the six plain columns, ``-q`` follows ``-l``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import NOTHING, SITTING_OUT, IoRates, Pool, Scan, Vdev
from zconsole.pool.topology import FAILED, is_taken
from zconsole.units import parse_size
from zconsole.zfs.decode.capacity import capacities, space_of
from zconsole.zfs.decode.values import is_cell, is_time, unspaced
from zconsole.zfs.decode.words import CLASSES
from zconsole.zfs.raw import QUEUES, Raw

_PLAIN = 6
_WAITS = {22: 10, 25: 11}
"""Number of columns after the plain six to how many of them are waits, the others queues: 0.8 to
2.1, 2.2 and later."""
_DISK_WAITS = slice(2, 4)
"""``disk_wait`` of reads and of writes, among the columns of waits."""


class IostatRow(NamedTuple):
    """One row; None where a dash is printed."""

    name: str
    indent: int | None
    """Blanks before the name; None with -H, which prints none."""
    rates: IoRates
    """Latency is what a request took in the device, reads and writes together, by their number."""
    queues: Mapping[str, tuple[int, int]]


def latest(text: str, pool: str) -> tuple[IostatRow, ...]:
    """One pool's rows, the newest of several samples; () when the pool is not among them.

    They end at the next line that is not indented. Rows of classes have no figures.
    """
    rows = [_row(line) for line in unspaced(text).splitlines() if line.strip()]
    starts = [i for i, row in enumerate(rows) if row.name == pool and not row.indent]
    if not starts:
        return ()
    start = starts[-1]
    end = next((i for i in range(start + 1, len(rows)) if rows[i].indent == 0), len(rows))
    return tuple(
        row for row in rows[start:end] if row.rates != IoRates() or row.name not in CLASSES
    )


def _row(line: str) -> IostatRow:
    bare = "\t" in line
    if bare:
        name, *cells = line.strip().split("\t")
    else:
        name, *cells = line.split()
        while cells and not is_cell(cells[0]):
            name = f"{name} {cells.pop(0)}"
    plain = [parse_size(cell) for cell in cells[:_PLAIN]] + [None] * _PLAIN
    _, _, read_ops, write_ops, read, write = plain[:_PLAIN]
    extras = cells[_PLAIN:]
    waits = _WAITS.get(len(extras), 0)
    depths = [parse_size(cell) or 0 for cell in extras[waits:]] if waits else []
    pairs = zip(depths[::2], depths[1::2], strict=False)
    wait = _mean_wait(extras[:waits][_DISK_WAITS], (read_ops, write_ops))
    return IostatRow(
        name=name,
        indent=None if bare else len(line) - len(line.lstrip(" ")),
        rates=IoRates(read, write, read_ops, write_ops, wait),
        queues=dict(zip(QUEUES, pairs, strict=False)),
    )


def _mean_wait(waits: Sequence[str], operations: Sequence[float | None]) -> float | None:
    """Seconds a request took, of nanoseconds; None where only dashes are printed."""
    pairs = zip(waits, operations, strict=False)
    known = [(int(wait) / 1e9, ops or 0.0) for wait, ops in pairs if wait.isdigit()]
    total = sum(ops for _, ops in known)
    if not total:
        return max((wait for wait, _ in known), default=None)
    return sum(wait * ops for wait, ops in known) / total


_WORK = (
    *("discard", "free", "initialize", "replace", "remove", "resilver", "scrub", "trim"),
    "raidz_expand",
)
_WAIT_COLUMNS = {6: _WORK[2:8], 8: _WORK[:8], 9: _WORK}
"""Columns of ``zpool wait -Hp`` by their number (print_wait_status_row, 2.0 to 2.4); without
discard and free when asked for the six others."""


Change = Callable[[Vdev], Mapping[str, Any]]
"""The fields that something said beside the state adds to a vdev; empty where it adds none."""


def enriched(pool: Pool, raw: Raw) -> Pool:
    """The pool with what other commands say: rates, capacities, who sits out, exact bytes left."""
    root, scans = pool.root, pool.scans
    if raw.get("iostat"):
        root = _mapped(root, _rates(latest(str(raw["iostat"]), pool.name)))
    if raw.get("list"):
        root = _with_capacity(root, pool.name, raw["list"])
    if raw.get("sitting_out"):
        root = _mapped(root, _sitting_out(raw["sitting_out"]))
    if raw.get("autosit"):
        known = {
            top.get(key): top.get("value") for top in raw["autosit"] for key in ("guid", "name")
        }
        values = ((top, known.get(top.guid or top.name)) for top in root.children)
        tops = (top if on is None else top._replace(autosit=on == "on") for top, on in values)
        root = root._replace(children=tuple(tops))
    if raw.get("disks"):
        found = [(v, v.disk) for v in root.leaves() if v.disk and v.state in FAILED]
        # The path of a failed leaf may lead to another disk by now.
        lost = {id(v) for v, disk in found if is_taken(v, root, disk.serial, disk.wwn)}
        if lost:
            root = _mapped(root, lambda v: {"disk": None} if id(v) in lost else NOTHING)
    if raw.get("wait"):
        scans = _with_remaining(scans, str(raw["wait"]))
    return replace(pool, root=root, scans=scans)


def _mapped(vdev: Vdev, change: Change) -> Vdev:
    """The tree with the fields that ``change`` has for each vdev."""
    fields = dict(change(vdev))
    if vdev.children:
        fields["children"] = tuple(_mapped(child, change) for child in vdev.children)
    return vdev._replace(**fields) if fields else vdev


def _sitting_out(listed: Sequence[Mapping[str, str]]) -> Change:
    """A leaf is known by the best of GUID, path and name that its form has."""
    guids, paths, names = ({leaf.get(key) for leaf in listed} for key in ("guid", "path", "name"))

    def _noted(vdev: Vdev) -> Mapping[str, Any]:
        if vdev.guid is not None:
            found = vdev.guid in guids
        else:
            found = vdev.path in paths if vdev.path else vdev.name in names
        if vdev.children or vdev.vclass == "spare" or not found:
            return NOTHING
        return {"note": "  ".join(filter(None, (vdev.note, SITTING_OUT)))}

    return _noted


def _rates(rows: Sequence[IostatRow]) -> Change:
    """Rates from ``zpool iostat`` rows, matched by GUID, path or printed name, in that order."""
    by_name: dict[str, list[IostatRow]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)

    def _measured(vdev: Vdev) -> Mapping[str, Any]:
        if vdev.vclass == "spare":
            return NOTHING
        for key in (vdev.guid, vdev.path, vdev.name):
            matching = by_name.get(key or "")
            if matching:
                row = matching.pop(0) if len(matching) > 1 else matching[0]
                return {"rates": row.rates, "queues": vdev.queues or row.queues}
        return NOTHING

    return _measured


def _with_capacity(root: Vdev, pool: str, listing: Mapping[str, Any] | str) -> Vdev:
    """Top-level vdevs with space and fragmentation; unchanged where the listing says nothing."""
    rows: dict[tuple[str, str], list[Vdev]] = {}
    try:
        pools = capacities(listing)
    except NotUnderstoodError:
        return root
    for listed in pools:
        if listed.name == pool:
            for row in listed.children:
                rows.setdefault((row.vclass, row.name), []).append(row)
    children = tuple(_filled(child, rows) for child in root.children)
    return root._replace(children=children)


def _filled(vdev: Vdev, rows: dict[tuple[str, str], list[Vdev]]) -> Vdev:
    """A top-level vdev with what the listing knows better than nothing."""
    matching = rows.get((vdev.vclass, vdev.name)) or rows.get((vdev.vclass, vdev.path or ""))
    if not matching:
        return vdev
    row = matching.pop(0)
    missing: dict[str, Any] = {
        "alloc_bytes": row.alloc_bytes,
        "size_bytes": space_of(row),
        "fragmentation": row.fragmentation,
    }
    changes = {k: v for k, v in missing.items() if getattr(vdev, k) is None and v is not None}
    return vdev._replace(**changes) if changes else vdev


def _with_remaining(scans: tuple[Scan, ...], row: str) -> tuple[Scan, ...]:
    """Text scans with ``issued`` from the exact bytes that ``zpool wait`` says remain.

    Remaining is to_examine − issued (2.0 to 2.4), to_examine stays what it was at the start, so
    printed total − remaining is off by a constant below half a printed digit, and differences
    between samples are exact: resolution 0. A rebuild's total is re-estimated while it runs; its
    difference would not be exact, so it stays as printed.
    """
    words, refined = row.split(), list[Scan]()
    remaining = dict(zip(_WAIT_COLUMNS.get(len(words), ()), words, strict=False))
    for scan in scans:
        left, total = remaining.get(scan.function, ""), scan.total_bytes
        usable = left.isdigit() and int(left) > 0 and scan.state == "running" and scan.resolution
        if usable and total is not None:
            refined.append(scan._replace(issued_bytes=max(0, total - int(left)), resolution=0.0))
        else:
            refined.append(scan)
    return tuple(refined)


SAME = 2.0
"""Seconds by which the times of one scan may differ: history has the time of its record."""


def with_history(pool: Pool, raw: Raw) -> Pool:
    """The pool with its creation, its last full scrub, and which of its scrubs are full.

    A recording may have been made by anybody: what has another shape is unknown.
    """
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
