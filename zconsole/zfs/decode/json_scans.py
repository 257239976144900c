"""Scans, removals, expansions and checkpoints of a ``zpool status -j`` pool object.

Source: scan_status_nvlist, removal_status_nvlist, checkpoint_status_nvlist and
raidz_expand_status_nvlist in cmd/zpool/zpool_main.c (2.3.9).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import tzinfo
from typing import Any

from zconsole.pool.model import Activity, Scan, Vdev
from zconsole.units import size_resolution
from zconsole.zfs.decode.formulas import (
    CopyStats,
    RebuildStats,
    ScanStats,
    copy_of,
    in_order,
    rebuild_of,
    scan_of,
)
from zconsole.zfs.decode.libzfs_scans import checkpoint_of, error_scrub
from zconsole.zfs.decode.names import disk_name
from zconsole.zfs.decode.values import mapping, moment, number

_FUNCTIONS = {"SCRUB": "scrub", "RESILVER": "resilver", "ERRORSCRUB": "errorscrub"}
_STATES = {
    "SCANNING": "running",
    "FINISHED": "finished",
    "CANCELED": "canceled",
    "ERRORSCRUBBING": "running",
}
_REBUILD_STATES = {"ACTIVE": "running", "CANCELED": "canceled", "COMPLETE": "finished"}
_CHECKPOINT_STATES = {"EXISTS": 1, "DISCARDING": 2}
_Node = Mapping[str, Any]


def active_function(scan: _Node) -> str | None:
    """The function of a healing scan that runs or is paused, None when there is none."""
    return _FUNCTIONS.get(str(scan.get("function"))) if scan.get("state") == "SCANNING" else None


def rebuilding(scan: _Node) -> frozenset[str]:
    """Names of top-level vdevs with an active sequential rebuild."""
    stats = mapping(scan.get("rebuild_stats"), "rebuild_stats")
    return frozenset(
        str(mapping(node, key).get("name", key))
        for key, node in stats.items()
        if mapping(node, key).get("state") == "ACTIVE"
    )


def scans_of(scan: _Node, now: float | None, zone: tzinfo) -> tuple[Scan, ...]:
    """Every scan of a pool's ``scan_stats``, active ones first."""
    scans = []
    if str(scan.get("function")) in _FUNCTIONS:
        scans.append(_as_printed(scan_of(_scan_stats(scan, zone), now), scan))
    if scan.get("err_scrub_state") in _STATES:
        scans.append(_error_scrub(scan, zone))
    for key, node in mapping(scan.get("rebuild_stats"), "rebuild_stats").items():
        if mapping(node, key).get("state") in _REBUILD_STATES:
            scans.append(_as_printed(rebuild_of(_rebuild_stats(key, node, zone)), node))
    return in_order(scans)


def _as_printed(scan: Scan, node: _Node) -> Scan:
    """The scan with the rounding of its bytes, which without ``--json-int`` are those of text."""
    issued = node.get("issued")
    rounding = size_resolution(issued) if isinstance(issued, str) else 0.0
    return replace(scan, resolution=rounding, printed=True) if rounding else scan


def _count(node: _Node, key: str) -> int:
    return number(node.get(key)) or 0


def _scan_stats(scan: _Node, zone: tzinfo) -> ScanStats:
    paused = moment(scan.get("scrub_pause"), zone)
    state = _STATES.get(str(scan.get("state")), "none")
    return ScanStats(
        function=_FUNCTIONS[str(scan["function"])],
        state="paused" if paused and state == "running" else state,
        start=moment(scan.get("start_time"), zone),
        end=moment(scan.get("end_time"), zone),
        total=_count(scan, "to_examine"),
        scanned=_count(scan, "examined"),
        skipped=_count(scan, "skipped"),
        processed=_count(scan, "processed"),
        errors=number(scan.get("errors")),
        pass_scanned=_count(scan, "bytes_per_scan"),
        pass_start=moment(scan.get("pass_start"), zone),
        paused_since=paused,
        pass_paused=_count(scan, "scrub_spent_paused"),
        pass_issued=_count(scan, "issued_bytes_per_scan"),
        issued=_count(scan, "issued"),
    )


def _error_scrub(scan: _Node, zone: tzinfo) -> Scan:
    state = _STATES[str(scan["err_scrub_state"])]
    paused = moment(scan.get("err_scrub_pause"), zone)
    return error_scrub(
        "paused" if paused and state == "running" else state,
        (
            moment(scan.get("err_scrub_start_time"), zone),
            moment(scan.get("err_scrub_end_time"), zone),
        ),
        (_count(scan, "err_scrub_examined"), _count(scan, "err_scrub_to_examine")),
        paused,
    )


def _rebuild_stats(key: str, node: _Node, zone: tzinfo) -> RebuildStats:
    return RebuildStats(
        vdev=str(node.get("name", key)),
        state=_REBUILD_STATES[str(node["state"])],
        start=moment(node.get("start_time"), zone),
        end=moment(node.get("end_time"), zone),
        scan_seconds=_count(node, "scan_time") / 1e9,
        scanned=_count(node, "scanned"),
        issued=_count(node, "issued"),
        rebuilt=_count(node, "rebuilt"),
        estimate=_count(node, "to_scan"),
        errors=_count(node, "errors"),
        pass_ms=_count(node, "pass_time") // 1_000_000,
        pass_scanned=_count(node, "pass_scanned"),
        pass_issued=_count(node, "pass_issued"),
        skipped=_count(node, "pass_skipped"),
    )


def activities_of(pool: _Node, root: Vdev, now: float | None, zone: tzinfo) -> tuple[Activity, ...]:
    """Removal, checkpoint and expansion of a pool object, in the order zpool prints them."""
    found = []
    removal = mapping(pool.get("removal_stats"), "removal_stats")
    if removal.get("state") in _STATES:
        name = _removed(removal)
        found.append(copy_of(_copy_stats("removal", "copy", "copied", removal, name, zone), now))
    checkpoint = mapping(pool.get("checkpoint_stats"), "checkpoint_stats")
    if checkpoint.get("state") in _CHECKPOINT_STATES:
        found.append(
            checkpoint_of(
                _CHECKPOINT_STATES[checkpoint["state"]],
                int(moment(checkpoint.get("start_time"), zone) or 0),
                _count(checkpoint, "space"),
            )
        )
    expand = mapping(pool.get("raidz_expand_stats"), "raidz_expand_stats")
    if expand.get("state") in _STATES:
        name = _expanding(expand, root)
        found.append(
            copy_of(_copy_stats("expansion", "reflow", "reflowed", expand, name, zone), now)
        )
    return tuple(found)


def _removed(node: _Node) -> str | None:
    """The vdev that goes, or what is left of it, which the document names without its number."""
    name = disk_name(str(node.get("name", "")), None) or None
    return f"indirect-{number(node.get('removing_vdev'))}" if name == "indirect" else name


def _expanding(node: _Node, root: Vdev) -> str | None:
    """The printed name of the expanding vdev; the document names it without its number."""
    suffix = f"-{number(node.get('expanding_vdev'))}"
    for child in root.children:
        if child.kind.startswith("raidz") and child.name.endswith(suffix):
            return child.name
    return str(node["name"]) if "name" in node else None


def _copy_stats(
    kind: str, total: str, done: str, node: _Node, vdev: str | None, zone: tzinfo
) -> CopyStats:
    return CopyStats(
        kind=kind,
        state=_STATES[str(node["state"])],
        vdev=vdev,
        start=moment(node.get("start_time"), zone),
        end=moment(node.get("end_time"), zone),
        total=_count(node, f"to_{total}"),
        copied=_count(node, done),
        waiting=bool(_count(node, "waiting_for_resilver")),
    )
