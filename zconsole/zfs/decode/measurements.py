"""Adds to a pool what a raw form has besides its state: rates, capacities, disk counters.

Rates come from ``zpool iostat``: ``-v``, or ``-Hpvlq`` for latencies and queues, with or without
``-P`` or ``-g``. Source: print_iostat_header, print_vdev_stats and the tables of columns in
cmd/zpool/zpool_main.c (0.7 to 2.4). The ``-l`` columns follow the six plain ones, the ``-q``
columns follow those.

Capacities come from ``zpool list [-v]``: plain, ``-H``, ``-Hp`` and JSON, from FreeBSD 9 to OpenZFS
2.4. Source: zpool_do_list, print_list_stats and print_one_column in the same file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import (
    FAILED,
    GROUP_KINDS,
    NOTHING,
    SITTING_OUT,
    IoRates,
    Pool,
    Scan,
    Vdev,
    path_is_reused,
)
from zconsole.units import parse_size
from zconsole.zfs.decode.builders import MOST_VDEVS
from zconsole.zfs.decode.values import (
    documents_of,
    has_documents,
    is_cell,
    is_time,
    mapping,
    merge_documents,
    number,
    without_nbsp,
)
from zconsole.zfs.decode.words import CLASSES, disk_name, kind_of, leaf_kind
from zconsole.zfs.raw import QUEUES, Raw

_PLAIN = 6
"""Columns of ``zpool iostat`` without options, after the name."""
_WAITS = {22: 10, 25: 11}
"""Number of columns after the six plain ones, and how many of these are latencies; the others are
queues. 0.8 to 2.1; 2.2 and later."""
_DISK_WAITS = slice(2, 4)
"""``disk_wait`` of reads and of writes, among the latency columns."""


class IostatRow(NamedTuple):
    """One row; None where a dash is printed."""

    name: str
    indent: int | None
    """Blanks before the name; None with -H, which does not indent."""
    rates: IoRates
    """Rates and latency; the latter is the mean time of a request in the device, over reads and
    writes."""
    queues: Mapping[str, tuple[int, int]]


def latest(text: str, pool: str) -> tuple[IostatRow, ...]:
    """Return the rows of one pool from the last sample in the text; () if the pool is not in it.

    Its rows end at the next line that is not indented. Class headings, which have no figures, are
    left out.
    """
    rows = [_iostat_row(line) for line in without_nbsp(text).splitlines() if line.strip()]
    starts = [i for i, row in enumerate(rows) if row.name == pool and not row.indent]
    if not starts:
        return ()
    start = starts[-1]
    end = next((i for i in range(start + 1, len(rows)) if rows[i].indent == 0), len(rows))
    return tuple(
        row for row in rows[start:end] if row.rates != IoRates() or row.name not in CLASSES
    )


def _iostat_row(line: str) -> IostatRow:
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
    """Return the mean time of a request in seconds, from nanoseconds.

    None if there are only dashes.
    """
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
"""Columns of ``zpool wait -Hp`` by their number (print_wait_status_row, 2.0 to 2.4); six columns if
discard and free were not requested."""


Change = Callable[[Vdev], Mapping[str, Any]]
"""Function that returns the fields to change in a vdev; empty for no change."""


def with_measurements(pool: Pool, raw: Raw) -> Pool:
    """Add data of other commands to a pool: rates, capacities, sit-outs, exact bytes left."""
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
        lost = {id(v) for v, disk in found if path_is_reused(v, root, disk.serial, disk.wwn)}
        if lost:
            root = _mapped(root, lambda v: {"disk": None} if id(v) in lost else NOTHING)
    if raw.get("wait"):
        scans = _with_remaining(scans, str(raw["wait"]))
    return replace(pool, root=root, scans=scans)


def _mapped(vdev: Vdev, change: Change) -> Vdev:
    """Return the tree with the fields that ``change`` returns for each vdev."""
    fields = dict(change(vdev))
    if vdev.children:
        fields["children"] = tuple(_mapped(child, change) for child in vdev.children)
    return vdev._replace(**fields) if fields else vdev


def _sitting_out(listed: Sequence[Mapping[str, str]]) -> Change:
    """Return a change that notes which leaves sit out.

    A leaf is matched by GUID, else path, else name.
    """
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
    """Return a change that sets rates from iostat rows, matched by GUID, else path, else name."""
    by_name: dict[str, list[IostatRow]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)

    def _measured(vdev: Vdev) -> Mapping[str, Any]:
        if vdev.vclass == "spare":
            return NOTHING
        for key in (vdev.guid, vdev.path, vdev.name):
            matching = by_name.get(key or "")
            if matching:
                # Rows with the same name are in the order of the vdevs.
                row = matching.pop(0) if len(matching) > 1 else matching[0]
                return {"rates": row.rates, "queues": vdev.queues or row.queues}
        return NOTHING

    return _measured


def _with_capacity(root: Vdev, pool: str, listing: Mapping[str, Any] | str) -> Vdev:
    """Add space and fragmentation to top-level vdevs.

    Unchanged if the listing has nothing on them.
    """
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
    """Add fields of the listing that a top-level vdev lacks."""
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
    """Set ``issued`` of text scans from the exact remaining bytes of ``zpool wait``.

    Remaining is to_examine − issued (2.0 to 2.4), and to_examine stays what it was at the start. So
    printed total − remaining is off by a constant below half a printed digit, and differences
    between samples are exact: resolution 0. A rebuild's total is re-estimated while it runs; its
    difference would not be exact, so its issued bytes stay as printed.
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
"""Seconds by which the times of one scan may differ: history has the time of the log record."""


def with_history(pool: Pool, raw: Raw) -> Pool:
    """Add creation time, the last full scrub, and which scrubs are full, from the pool's history.

    A recording may come from anyone: values of an unexpected type count as unknown.
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
        scans=tuple(_with_coverage(scan, scrubs) for scan in pool.scans),
    )


def _with_coverage(scan: Scan, scrubs: Sequence[Mapping[str, Any]]) -> Scan:
    """Set whether a scrub is full, from history.

    It is matched by its start or, in text, its end.
    """
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


_FIELDS = {
    "SIZE": "size",
    "ALLOC": "alloc",
    "USED": "alloc",
    "FREE": "free",
    "AVAIL": "free",
    "FRAG": "frag",
    "HEALTH": "health",
}
_PROPERTIES = {
    "size": "size",
    "allocated": "alloc",
    "free": "free",
    "fragmentation": "frag",
    "health": "health",
}
_MODERN = ("NAME", "SIZE", "ALLOC", "FREE", "CKPOINT", "EXPANDSZ", "FRAG", "CAP", "DEDUP", "HEALTH")
_BARE_LAYOUTS = {
    11: (*_MODERN, "ALTROOT"),
    10: (*_MODERN[:4], *_MODERN[5:], "ALTROOT"),
    8: ("NAME", "SIZE", "ALLOC", "FREE", "CAP", "DEDUP", "HEALTH", "ALTROOT"),
    7: ("NAME", "SIZE", "ALLOC", "FREE", "CAP", "HEALTH", "ALTROOT"),
}
"""Columns of ``-H`` output, which has no heading, by the number of fields in a pool's line."""
MOST_ROWS = 10 * MOST_VDEVS
"""Most lines of a listing, or of several concatenated."""
_HEALTH = re.compile(r"[A-Z]{3,}")
_CLOSED = frozenset({"FAULTED", "UNAVAIL", "SUSPENDED"})
_BROKEN_HEADING = re.compile(r"^NAME +SIZE\b.*\n[A-Z \r]+$", re.MULTILINE)
"""A heading that a narrow window broke, which means that every row below it is broken, too."""
_REST = re.compile(r"-$|[\d.,]*[%x]$|(?!NAME$)[A-Z]+$")
"""A cell of FRAG, CAP, DEDUP, HEALTH or ALTROOT, or the end of one: the remainder of a broken
row."""


def capacities(listing: Mapping[str, Any] | str) -> tuple[Vdev, ...]:
    """Parse a listing, JSON or text, to the root of every pool with its top-level vdevs.

    Sizes are the printed ones: for a single device (2.1+) its own size, which is more than can be
    allocated (``space_of``). From text, the ``width`` of a vdev counts positions: a device being
    replaced and its replacement share one.

    Raises NotUnderstoodError if it is not ``zpool list`` output.
    """
    if isinstance(listing, str) and has_documents(listing):
        try:
            listing = merge_documents(documents_of(listing))
        except NotUnderstoodError as error:
            raise NotUnderstoodError(f"not `zpool list -j` output: {error}") from None
    if isinstance(listing, str) and listing.count("\n") > MOST_ROWS:
        raise NotUnderstoodError(f"not `zpool list` output: more than {MOST_ROWS} lines")
    try:
        found = tuple(
            _from_text(listing)
            if isinstance(listing, str)
            else _from_json(mapping(listing, "list"))
        )
    except RecursionError:
        raise NotUnderstoodError("not `zpool list` output: nested too deep") from None
    if not found and not (isinstance(listing, str) and "no pools available" in listing):
        raise NotUnderstoodError("not `zpool list` output")
    return found


def space_of(top: Vdev) -> int | None:
    """Return the allocatable bytes of a listed vdev: allocated plus free."""
    if top.alloc_bytes is None or top.free_bytes is None:
        return top.size_bytes
    return top.alloc_bytes + top.free_bytes


def _from_text(text: str) -> Iterator[Vdev]:
    columns: Sequence[str] = ()
    headed = reading = False
    broken = _BROKEN_HEADING.search(text) is not None
    found: Vdev | None = None
    tops: list[Vdev] = []
    vclass = "normal"
    for line in without_nbsp(text).splitlines():
        words = line.split()
        if words[:2] == ["NAME", "SIZE"]:
            columns, headed, reading = words, True, True
        elif not words or (headed and not reading) or (broken and all(map(_REST.match, words))):
            continue
        elif words[0] in CLASSES and set(words[1:]) <= {"-"}:
            vclass = CLASSES[words[0]]
        elif line[0] in " \t" or (found is not None and _is_vdev(line, columns)):
            if found is not None:
                _add_vdev(tops, vclass, line, columns)
        else:
            if found is not None:
                yield found._replace(children=tuple(tops))
            tops, vclass = [], "normal"
            if not columns:
                cells = line.split("\t")
                layout = _BARE_LAYOUTS.get(len(cells), ())
                is_pool = layout and _HEALTH.fullmatch(cells[layout.index("HEALTH")])
                columns = layout if is_pool else ()
            row = _row(*_cells(line, columns), "root", "normal")
            reading = row.size_bytes is not None or bool(row.state)
            found = row if reading else None  # the table has ended: other output follows
    if found is not None:
        yield found._replace(children=tuple(tops))


def _is_vdev(line: str, columns: Sequence[str]) -> bool:
    """Return whether a line without indentation is that of a vdev.

    Vdevs have no DEDUP; pools lack it only if zpool cannot open them.
    """
    name, values = _split(line)
    cells = dict(zip(columns[1:], values, strict=False))
    closed = cells.get("SIZE") == "-" and cells.get("HEALTH") in _CLOSED
    return kind_of(name) is not None or (cells.get("DEDUP") == "-" and not closed)


def _add_vdev(tops: list[Vdev], vclass: str, line: str, columns: Sequence[str]) -> None:
    """Add one line below a pool: a top-level vdev, or a device of the last one.

    ``-H`` has no indentation, but only top-level vdevs have their own value in ALLOC.
    """
    name, cells = _cells(line, columns)
    if not cells:
        return
    row = _row(name, cells, kind_of(name) or leaf_kind(name), vclass)
    indent = len(line) - len(line.lstrip(" "))
    if row.alloc_bytes is not None or (indent == 2 and line[0] == " "):
        tops.append(row)
    elif tops:
        more = -1 if row.kind in GROUP_KINDS else 1
        tops[-1] = tops[-1]._replace(width=(tops[-1].width or 0) + more)


def _cells(line: str, columns: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the name, and the cells by field name."""
    name, values = _split(line)
    cells = dict(zip(columns[1:], values, strict=False))
    return name, {_FIELDS[c]: v.strip() for c, v in cells.items() if c in _FIELDS}


def _split(line: str) -> tuple[str, list[str]]:
    """Split a line into the name, which may contain blanks, and the cells."""
    if "\t" in line:
        name, *values = line.strip("\n").lstrip("\t").split("\t")
        return name, values
    words = line.split()
    end = next((i for i, word in enumerate(words) if i and is_cell(word)), len(words))
    return " ".join(words[:end]), words[end:]


def _row(name: str, cells: Mapping[str, Any], kind: str, vclass: str) -> Vdev:
    health = cells.get("health")
    return Vdev(
        name,
        kind,
        vclass,
        state=str(health) if health not in (None, "-") else "",
        size_bytes=number(cells.get("size")),
        alloc_bytes=number(cells.get("alloc")),
        free_bytes=number(cells.get("free")),
        fragmentation=_share(cells.get("frag")),
    )


def _share(value: object) -> float | None:
    """Convert a percentage, with or without sign, to a share."""
    try:
        return float(str(value).rstrip("%").replace(",", ".")) / 100
    except ValueError:
        return None


def _from_json(document: Mapping[str, Any]) -> Iterator[Vdev]:
    for key, value in mapping(document.get("pools"), "pools").items():
        node = mapping(value, key)
        cells = _properties(node)
        if not cells:
            raise NotUnderstoodError(f"not `zpool list -j` output: pool {key!r} has no properties")
        # Vdevs of the other classes are grouped, among the normal top-level vdevs.
        tops: list[Vdev] = []
        for name, each in mapping(node.get("vdevs"), "vdevs").items():
            vdev = mapping(each, name)
            if name in CLASSES and "properties" not in vdev:
                members = ((inner, mapping(m, inner)) for inner, m in vdev.items())
                tops += [_json_row(inner, member, CLASSES[name]) for inner, member in members]
            else:
                tops.append(_json_row(name, vdev, "normal"))
        row = _row(str(node.get("name", key)), cells, "root", "normal")
        yield row._replace(children=tuple(tops))


def _json_row(key: str, node: Mapping[str, Any], vclass: str) -> Vdev:
    name = str(node.get("name", key))
    if node.get("vdev_type") == "disk" and name.startswith("/"):
        name = disk_name(name, None)
    return _row(name, _properties(node), kind_of(name) or leaf_kind(name), vclass)


def _properties(node: Mapping[str, Any]) -> dict[str, Any]:
    properties = mapping(node.get("properties"), "properties")
    return {
        short: mapping(properties[name], name).get("value")
        for name, short in _PROPERTIES.items()
        if name in properties
    }
