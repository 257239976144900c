"""Decodes raw forms of any kind into samples.

Besides a pool's state, a raw form may have what other commands said: rates from ``zpool iostat``,
capacities from ``zpool list`` (``listing``), sit-outs, exact bytes left, and the pool's history.

Rates come from ``-v``, or ``-Hpvlq`` for latencies and queues, with or without ``-P`` or ``-g``.
Source: print_iostat_header, print_vdev_stats and the tables of columns in
cmd/zpool/zpool_main.c (0.7 to 2.4). The ``-l`` columns follow the six plain ones, the ``-q``
columns follow those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Any, NamedTuple

from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import (
    FAILED,
    NOTHING,
    SITTING_OUT,
    Event,
    HostLoad,
    IoCounters,
    IoRates,
    Pool,
    Sample,
    SampleFailure,
    Scan,
    Vdev,
    Volumes,
    path_is_reused,
)
from zconsole.units import parse_size
from zconsole.zfs.decode import libzfs, status_json
from zconsole.zfs.decode.builders import TOO_DEEP, Devices, check_size
from zconsole.zfs.decode.listing import capacities, space_of
from zconsole.zfs.decode.values import (
    CLASSES,
    is_cell,
    is_time,
    mapping,
    number,
    without_nbsp,
    word,
)
from zconsole.zfs.raw import FORMS, QUEUES, Raw

_DAMAGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""Exceptions that a damaged form can cause; the decoders check values that would pass silently."""


def decode(raw: Raw, zone: tzinfo = UTC) -> tuple[Sample | SampleFailure, ...]:
    """Decode every pool in a raw form; libzfs is preferred to ``status``, and that to ``text``.

    ``zone`` is the time zone of dates in text, unless the raw form has ``utc_offset``.

    Raises NotUnderstoodError if there is no form or it is not ZFS output.
    """
    if not isinstance(raw, Mapping):
        raise NotUnderstoodError("not a sample: not a JSON object")
    if not is_time(raw.get("t")):
        raise NotUnderstoodError("not a sample: no time `t` in epoch seconds")
    try:
        if any(form in raw for form in FORMS):
            offset = raw.get("utc_offset")
            if isinstance(offset, (int, float)) and abs(offset) < 86400:
                zone = timezone(timedelta(seconds=offset))
            devices = Devices(raw)
            found = tuple(_sample(raw, devices, *pool) for pool in _pools(raw, devices, zone))
            check_size(sample.pool.root for sample in found)
            return found
        if "problem" in raw:
            return (_failure(raw),)
        raise NotUnderstoodError("not a sample: none of libzfs, status, text")
    except RecursionError:
        raise NotUnderstoodError(TOO_DEEP) from None
    except _DAMAGE as error:
        detail = " ".join(str(error).split())[:80]
        damage = f"{type(error).__name__} {detail}".strip()
        raise NotUnderstoodError(f"damaged ZFS output: {damage}") from error


def _pools(raw: Raw, devices: Devices, zone: tzinfo) -> Iterator[tuple[str, Pool, bool]]:
    """Yield the name of the best form, a pool in it, and whether its figures are exact."""
    # Undated output has no time at which zpool's rates and estimates could be computed.
    moment = None if raw.get("undated") is True else raw["t"]
    if "libzfs" in raw:
        config, message = mapping(raw["libzfs"], "libzfs"), mapping(raw.get("message"), "message")
        yield "libzfs", libzfs.pool_of_config(config, moment, devices, message), True
    elif "status" in raw:
        document = mapping(raw["status"], "status")
        for pool, exact in status_json.pools_of(document, moment, devices, zone):
            yield "json", pool, exact
    else:
        from zconsole.zfs.decode import text  # only here: slowest to load, often not needed

        for pool in text.pools_of(raw["text"], zone, devices):
            yield "text", pool, False


def _finite(value: object) -> float | None:
    """Return a finite number; None for anything else."""
    usable = isinstance(value, (int, float)) and math.isfinite(value)
    return float(value) if usable else None  # type: ignore[arg-type]


def _sample(raw: Raw, devices: Devices, form: str, pool: Pool, exact: bool) -> Sample:
    return Sample(
        **_moment(raw),
        source=str(raw.get("source", form)),
        exact=exact,
        pool=replace(with_history(with_measurements(pool, raw), raw), volumes=_volumes(raw)),
        version=word(raw.get("version")),
        events=tuple(
            Event(
                t=float(event["t"]),
                name=str(event.get("name", "")),
                text=str(event.get("text", "")),
                severity=str(event.get("severity", "info")),
                vdev=word(event.get("vdev")),
                origin=str(event.get("origin", "zpool")),
            )
            for event in raw.get("events") or ()
        ),
        tunables={
            str(name): int(value)
            for name, value in mapping(raw.get("tunables"), "tunables").items()
        },
        datasets=dict(_datasets(raw)),
        enclosures=devices.enclosures,
        dated=raw.get("undated") is not True,
        age=max(0.0, _finite(raw.get("age")) or 0.0),
    )


_OBJSET = ("snaptime", "reads", "writes", "nread", "nwritten")


def _datasets(raw: Raw) -> Iterator[tuple[tuple[str, str], IoCounters]]:
    """Yield name, creation time and counters of each dataset and volume."""
    for row in raw.get("objsets") or ():
        values = [value for key in _OBJSET if (value := number(row.get(key))) is not None]
        if len(values) == len(_OBJSET):
            read_at, *counted = values
            key = str(row.get("dataset_name")), str(row.get("crtime"))
            yield key, IoCounters(read_at / 1e9, *counted)


def _volumes(raw: Raw) -> Volumes | None:
    found = mapping(raw.get("volumes"), "volumes")
    count, used = number(found.get("count")), number(found.get("bytes"))
    return None if count is None or used is None else Volumes(count, used)


def _failure(raw: Raw) -> SampleFailure:
    blocks = Devices(raw).all_counters()
    return SampleFailure(
        **_moment(raw),
        pool=str(raw.get("pool", "")),
        text=" ".join(str(raw["problem"]).split()),
        block={path: counters for path, counters in blocks.items() if counters is not None},
        gone=tuple(path for path, counters in blocks.items() if counters is None),
        absent=raw.get("absent") is True,
    )


def _moment(raw: Raw) -> dict[str, Any]:
    """Return the fields that samples and failures share: times, the kernel's state word, load."""
    clock, host = _finite(raw.get("clock")), mapping(raw.get("host"), "host")
    sizes = ("memory_total", "memory_available", "arc_bytes")
    known: dict[str, Any] = {name: number(host.get(name)) for name in sizes}
    known["zed"] = zed if isinstance(zed := host.get("zed"), bool) else None
    return {
        "t": float(raw["t"]),
        "clock": float(raw["t"]) if clock is None else clock,
        "began": _finite(raw.get("began")),
        "kstat": word(raw.get("kstat")),
        "host": HostLoad(_finite(host.get("cpu")), **known) if host else None,
    }


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
