"""Field-by-field comparison of the same pool as read by two sources.

libzfs knows everything; fields that JSON and text omit are listed here, and must then be null. So
any field that a decoder drops, invents or takes from the wrong place is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.vm.states import NOT_UTF8, State
from zconsole.pool.model import Activity, ErrorCounters, Pool, Progress, Scan, Vdev
from zconsole.units import parse_size, size, size_resolution

DRIFT = 1 << 20
"""Bytes that an unused pool may gain between two samples by its own syncs."""

FILLING = 1 << 28
"""Bytes that a cache device, or any device in an active pool, may gain between two samples."""

MOVEMENT = 0.5
"""Share of a running scan's total by which it may advance while the sources are read."""

FASTER = 4.0
"""Allowed ratio between two pass averages, which are from the pass's first seconds."""

COUNTERS = {"io", "queues", "histograms"}
SPACE = {"alloc_bytes", "size_bytes", "fragmentation"}
PASS = {"pass_start", "pass_scanned", "pass_issued", "pass_paused"}
RATES = {"zpool_scan_rate", "zpool_issue_rate"}
LEAF_WORK = {f"{kind}.{part}" for kind in ("trim", "initialize") for part in Progress._fields}
NOT_COMPARED = {
    *("root", "children", "scans", "activities", "block", "rates"),
    *("resolution", "printed"),
}
"""Fields that are compared separately, or are not part of the pool's state."""

UNUSUAL = {"ashift", "physical_ashift", "allocating", "trimmable"}
"""Fields that zpool prints only if they are unusual, or if asked (``-t``): null or the same."""
KERNEL = {"logical_ashift", "unfilled"}
"""Fields that only the kernel's own form has."""

PROSE = {"skipped_bytes", "trim.state", "initialize.state"}
"""Fields that text omits if there is nothing to report, and sometimes otherwise."""

MOVING = {"done_bytes", "scan_processed", "trim.done", "initialize.done", "pass_scanned"} | {
    *("scanned_bytes", "issued_bytes", "skipped_bytes", "processed_bytes", "pass_issued"),
}
UNSTEADY = {"zpool_eta", "zpool_rate"}
"""Fields that may change completely in the first seconds of an activity."""

SHARES = {"percent": 100.0, "trim.share": 1.0, "initialize.share": 1.0}
"""Fields that tell how far something has advanced, with their value at its end."""


def assert_same_fields(pools: Mapping[str, Pool], state: State) -> None:
    """Compare the pools of one state, by source."""
    known = dict(records(pools["libzfs"]))
    for place, record in known.items():
        if isinstance(record, Vdev) and (record.kind, record.vclass) == ("disk", "normal"):
            counted = all(getattr(record, field) for field in COUNTERS)
            assert counted or record.state != "ONLINE", f"libzfs: {place}: no counters"
    for source in sorted(pools.keys() - {"libzfs"}):
        others = dict(records(pools[source]))
        assert known.keys() == others.keys() | _one_line_only(known, source), source
        for place, record in known.items():
            if place in others:
                _assert_same(source, place, record, others[place], state)


def assert_disks_known(pools: Mapping[str, Pool], raws: Mapping[str, Any]) -> None:
    """Check that every source has found the counters of the disks that the machine named."""
    for source, pool in pools.items():
        devices = raws[source].get("devices", {})
        for leaf in pool.root.leaves():
            if leaf.vclass != "spare" and leaf.path in devices:
                names = leaf.block and leaf.block.names
                assert names == tuple(devices[leaf.path]), f"{source}: {leaf.name}: {names}"


def _one_line_only(known: Mapping[str, Any], source: str) -> set[str]:
    """Return the scan that text omits when there are both a scrub and an error scrub."""
    errors_scrubbed = getattr(known.get("scan 0"), "function", "") == "errorscrub"
    return {"scan 1"} & known.keys() if source == "text" and errors_scrubbed else set()


def _assert_same(source: str, place: str, record: Any, other: Any, state: State) -> None:
    told, exact = dict(fields(other)), dict(fields(record))
    missing = unknown(source, record, place)
    omitted = UNUSUAL | (PROSE if source == "text" else set())
    if source == "json" and isinstance(record, Pool) and NOT_UTF8 in state.damaged:
        missing.add("errors")
    blind = source == "json" and "/draid" in place and state.shows == "rebuild running"
    rounded = source == "text" and not isinstance(record, Vdev)  # `zpool list -p` is exact
    for field in sorted(exact.keys() | told.keys()):
        value, known = told.get(field), exact.get(field)
        if field in missing:
            fits = value is None or value in ((), {})
        elif value is None and field in omitted:
            fits = True
        elif field == "errors.slow" and getattr(record, "children", ()):
            fits = True  # only text counts slow I/Os of interior vdevs
        elif blind and field in ("note", "resilvering"):
            fits = value in ("(resilvering)", True, known)
        elif field == "skipped_bytes" and rounded:
            fits = same_difference(known or 0, value, exact["total_bytes"], _movable(record, state))
        else:
            fits = same(field, known, value, rounded, _movable(record, state))
        assert fits, f"{source}: {place}: {field} is {value!r}, not {known!r}"


def _movable(record: Any, state: State) -> float:
    """Return the bytes by which a record's figures may differ between two samples."""
    if isinstance(record, Vdev) and record.vclass == "cache":
        return FILLING
    if not state.moving:
        return 0.0
    return MOVEMENT * (record.total_bytes or 0) if isinstance(record, Scan | Activity) else FILLING


def same(  # noqa: PLR0911 - a rule a line
    field: str, exact: Any, printed: Any, rounded: bool, moved: float
) -> bool:
    """Return whether a source's value matches libzfs's, which is off by up to ``moved`` bytes."""
    if exact == printed or (field in UNSTEADY and moved):
        return True
    if exact is None or printed is None or isinstance(exact, str | bool | tuple):
        return False
    if field == "alloc_bytes" or (field == "total_bytes" and moved):
        return bool(abs(exact - printed) <= DRIFT + moved)
    if field in MOVING or (rounded and field.endswith("_bytes")):
        return same_bytes(exact, printed, rounded, moved if field in MOVING else 0)
    if field in SHARES:
        return bool(abs(exact - printed) <= SHARES[field] * (MOVEMENT if moved else 0.0051))
    if field in RATES:
        return moved > 0 and exact <= FASTER * printed and printed <= FASTER * exact
    return rounded and field == "duration" and bool(abs(exact - printed) <= 1)


def same_bytes(exact: int, printed: int, rounded: bool, moved: float) -> bool:
    """Return whether two figures are equal, except for zpool's rounding of the second."""
    if not rounded:
        return abs(printed - exact) <= moved
    slack = size_resolution(size(exact)) + size_resolution(size(printed)) + 1
    return abs(printed - (parse_size(size(exact)) or 0)) <= moved + slack


def same_difference(exact: int, printed: int, of: int, moved: float) -> bool:
    """Return whether the difference of two printed totals, each rounded, matches libzfs's."""
    return abs(printed - exact) <= moved + 2 * size_resolution(size(of)) + 1


def records(pool: Pool) -> Iterator[tuple[str, Any]]:
    """Yield the pool, its vdevs with their path from the root, its scans and activities."""
    yield "pool", pool
    yield from _vdevs(pool.root, "root")
    for kind, found in (("scan", pool.scans), ("activity", pool.activities)):
        for index, record in enumerate(found):
            yield f"{kind} {index}", record


def _vdevs(vdev: Vdev, place: str) -> Iterator[tuple[str, Vdev]]:
    yield place, vdev
    for child in vdev.children:
        yield from _vdevs(child, f"{place}/{child.name}")


def fields(record: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a record; counters and progress are split into their parts."""
    for field in getattr(record, "_fields", None) or record.__slots__:
        value = getattr(record, field)
        if isinstance(value, ErrorCounters | Progress):
            yield from ((f"{field}.{part}", getattr(value, part)) for part in value._fields)
        elif field not in NOT_COMPARED:
            yield field, value


def unknown(source: str, record: Any, place: str) -> set[str]:
    """Return the fields of a record that libzfs has and this source lacks."""
    if isinstance(record, Vdev):
        spare = {"scan_processed"} if record.vclass == "spare" else set()
        return COUNTERS | KERNEL | (_unprinted(record, place) if source == "text" else spare)
    if source == "json":
        return {"thorough"} if isinstance(record, Scan) else set()
    return {"guid"} if isinstance(record, Pool) else _untold(record)


def _unprinted(vdev: Vdev, place: str) -> set[str]:
    """Return the fields that text lacks, except top-level space and distributed spares' paths."""
    listed = place.count("/") == 1
    missing = {"guid", "scan_processed"} | (LEAF_WORK - {"trim.state", "initialize.state"})
    return missing | (set() if listed else SPACE) | ({"path"} if vdev.kind == "dspare" else set())


def _untold(record: Scan | Activity) -> set[str]:
    """Return the fields that text lacks: it shows a scan's errors only when it has finished."""
    over = record.state in ("finished", "canceled")
    if isinstance(record, Activity) and record.kind == "condense":
        return {"start", "end"}
    if isinstance(record, Activity):
        return {"start", "total_bytes"} if over else set()
    if not over:
        return {"errors", *PASS}
    gone = {"start", "total_bytes", "scanned_bytes", "issued_bytes", "skipped_bytes"}
    # Of a canceled scrub, text shows only the end, and the pool's history only the start.
    untold = {"processed_bytes", "errors", "duration", "full"}
    canceled = untold if record.state == "canceled" else set()
    return gone | canceled | PASS
