"""Adds to a pool what a raw form has besides its state: rates, capacities, disk counters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import Pool, Scan, Vdev
from zconsole.zfs.decode.blocks import Blocks
from zconsole.zfs.decode.capacity import CapacityRow, capacities
from zconsole.zfs.decode.iostat import IostatRow, latest
from zconsole.zfs.decode.values import mapping
from zconsole.zfs.raw import Raw

_WAITS = (
    *("discard", "free", "initialize", "replace", "remove", "resilver", "scrub", "trim"),
    "raidz_expand",
)
_WAIT_COLUMNS = {6: _WAITS[2:8], 8: _WAITS[:8], 9: _WAITS}
"""Columns of ``zpool wait -Hp`` by their number (print_wait_status_row, 2.0 to 2.4); without
discard and free when asked for the six others."""


def enriched(pool: Pool, raw: Raw, blocks: Blocks) -> Pool:
    """The pool with rates, capacities, block device counters and exact remaining bytes."""
    changes: dict[str, Any] = {}
    root = pool.root
    if raw.get("names") and "text" in raw:
        root = _with_paths(root, mapping(raw["names"], "names"))
    if raw.get("iostat"):
        root = _with_rates(root, latest(str(raw["iostat"]), pool.name))
    if raw.get("list"):
        root = _with_capacity(root, pool.name, raw["list"])
    if blocks and "libzfs" not in raw:
        root = _with_block(root, blocks)
    if root is not pool.root:
        changes["root"] = root
    if raw.get("wait"):
        changes["scans"] = _with_remaining(pool.scans, str(raw["wait"]))
    return replace(pool, **changes) if changes else pool


def _mapped(vdev: Vdev, change: Callable[[Vdev], Mapping[str, Any]]) -> Vdev:
    """The tree with ``change``'s fields set on every vdev it has some for."""
    children = tuple(_mapped(child, change) for child in vdev.children)
    fields = dict(change(vdev))
    if any(new is not old for new, old in zip(children, vdev.children, strict=True)):
        fields["children"] = children
    return vdev._replace(**fields) if fields else vdev


def _with_paths(root: Vdev, names: Mapping[str, str]) -> Vdev:
    """Text prints names only; their paths, where the source found them out, lead to the disks."""
    paths = {name: path for path, name in names.items()}

    def _path(vdev: Vdev) -> Mapping[str, Any]:
        known = vdev.path is None and not vdev.children and vdev.name in paths
        return {"path": paths[vdev.name]} if known else {}

    return _mapped(root, _path)


def _with_block(root: Vdev, blocks: Blocks) -> Vdev:
    """Text on its own has no paths; but the name it prints of a disk in /dev is the disk's."""

    def _counters(vdev: Vdev) -> Mapping[str, Any]:
        if vdev.children or vdev.block is not None:
            return {}
        counters = blocks.of(vdev.path or vdev.name)
        return {"block": counters} if counters else {}

    return _mapped(root, _counters)


def _with_rates(root: Vdev, rows: Sequence[IostatRow]) -> Vdev:
    """Rates from ``zpool iostat`` rows, matched by GUID, path or printed name, in that order."""
    by_name: dict[str, list[IostatRow]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)

    def _measured(vdev: Vdev) -> Mapping[str, Any]:
        if vdev.vclass == "spare":
            return {}
        for key in (vdev.guid, vdev.path, vdev.name):
            matching = by_name.get(key or "")
            if matching:
                row = matching.pop(0) if len(matching) > 1 else matching[0]
                return {"rates": row.rates, "queues": vdev.queues or row.queues}
        return {}

    return _mapped(root, _measured)


def _with_capacity(root: Vdev, pool: str, listing: Mapping[str, Any] | str) -> Vdev:
    """Top-level vdevs with space and fragmentation; unchanged where the listing says nothing."""
    rows: dict[tuple[str, str], list[CapacityRow]] = {}
    try:
        pools = capacities(listing)
    except NotUnderstoodError:
        return root
    for listed in pools:
        if listed.name == pool:
            for row in listed.vdevs:
                rows.setdefault((row.vclass, row.name), []).append(row)
    children = tuple(_filled(child, rows) for child in root.children)
    return root._replace(children=children)


def _filled(vdev: Vdev, rows: dict[tuple[str, str], list[CapacityRow]]) -> Vdev:
    """A top-level vdev with what the listing knows better than nothing."""
    matching = rows.get((vdev.vclass, vdev.name)) or rows.get((vdev.vclass, vdev.path or ""))
    if not matching:
        return vdev
    row = matching.pop(0)
    missing: dict[str, Any] = {
        "alloc_bytes": row.alloc_bytes,
        "size_bytes": row.space_bytes,
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
    words = row.split()
    remaining = dict(zip(_WAIT_COLUMNS.get(len(words), ()), words, strict=False))
    return tuple(_refined(scan, remaining.get(scan.function)) for scan in scans)


def _refined(scan: Scan, remaining: str | None) -> Scan:
    usable = remaining is not None and remaining.isdigit() and int(remaining) > 0
    if not usable or scan.state != "running" or not scan.resolution or scan.total_bytes is None:
        return scan
    issued = max(0, scan.total_bytes - int(remaining or 0))
    return replace(scan, issued_bytes=issued, resolution=0.0)
