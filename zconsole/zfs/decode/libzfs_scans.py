"""Scans, removals, expansions and checkpoints of a config nvlist.

Arrays: ``pool_scan_stat_t``, ``vdev_rebuild_stat_t``, ``pool_removal_stat_t``,
``pool_raidz_expand_stat_t``, ``pool_checkpoint_stat_t`` (include/sys/fs/zfs.h); they only ever
grew at the end, so that the length tells the version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from zconsole.pool.model import Activity, Scan
from zconsole.zfs.decode.formulas import (
    CopyStats,
    RebuildStats,
    ScanStats,
    copy_of,
    duration_of,
    in_order,
    rebuild_of,
    scan_of,
)
from zconsole.zfs.decode.values import epoch, integers

_FUNCTIONS = {1: "scrub", 2: "resilver", 3: "errorscrub"}
_STATES = {1: "running", 2: "finished", 3: "canceled", 4: "running"}
_REBUILD_STATES = {1: "running", 2: "canceled", 3: "finished"}


def active_function(tree: Mapping[str, Any]) -> str | None:
    """The function of a healing scan that runs or is paused, None when there is none."""
    stats = integers(tree.get("scan_stats") or (), "scan_stats")
    if not stats or stats[1] != 1:
        return None
    return _FUNCTIONS.get(stats[0])


def scans_of(
    tree: Mapping[str, Any], tops: Sequence[str], now: float | None, version: str | None
) -> tuple[Scan, ...]:
    """Every scan the config knows, active ones first. ``tops``: printed names by vdev id."""
    scans = []
    stats = integers(tree.get("scan_stats") or (), "scan_stats")
    if stats and stats[0] in _FUNCTIONS:
        scans.append(scan_of(_scan_stats(stats, version), now))
    if stats and len(stats) > 21 and stats[17]:
        scans.append(_error_scrub(stats))
    for name, child in zip(tops, tree.get("children", ()), strict=True):
        rebuild = integers(child.get("org.openzfs:rebuild_stats") or (), "rebuild_stats")
        if rebuild and rebuild[0] in _REBUILD_STATES:
            scans.append(rebuild_of(_rebuild_stats(name, rebuild)))
    return in_order(scans)


def _at(values: Sequence[int], index: int) -> int | None:
    return values[index] if index < len(values) else None


def _scan_stats(values: Sequence[int], version: str | None) -> ScanStats:
    paused = epoch(_at(values, 11))
    state = _STATES.get(values[1], "none")
    return ScanStats(
        function=_FUNCTIONS[values[0]],
        state="paused" if paused and state == "running" else state,
        start=epoch(values[2]),
        end=epoch(values[3]),
        total=values[4],
        scanned=values[5],
        skipped=values[6] if len(values) >= 22 else None,
        processed=values[7],
        errors=values[8],
        pass_scanned=values[9],
        pass_start=epoch(values[10]),
        paused_since=paused,
        pass_paused=_at(values, 12) or 0,
        pass_issued=_at(values, 13),
        issued=_at(values, 14),
        cautious=len(values) >= 22 or is_cautious(version),
    )


def is_cautious(version: str | None) -> bool:
    """Whether this OpenZFS waits for the first repaired or issued byte (2.1.12+)."""
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", version or "")
    return numbers is None or tuple(map(int, numbers.groups())) >= (2, 1, 12)


def _error_scrub(values: Sequence[int]) -> Scan:
    state = _STATES.get(values[16], "none")
    paused = epoch(values[21])
    examined, left = values[19], values[20]
    return error_scrub(
        "paused" if paused and state == "running" else state,
        (epoch(values[17]), epoch(values[18])),
        (examined, left),
        paused,
    )


def error_scrub(
    state: str,
    span: tuple[float | None, float | None],
    blocks: tuple[int, int],
    paused_since: float | None,
) -> Scan:
    """An error scrub; it counts error blocks, ``(examined, left to examine)``, not bytes.

    Percent: examined / (examined + left), print_err_scrub_status in zpool_main.c (2.2.9).
    """
    active = state in ("running", "paused")
    done, left = blocks
    return Scan(
        function="errorscrub",
        state=state,
        start=span[0],
        end=None if active else span[1],
        percent=100.0 * done / (done + left) if active and done + left else None,
        duration=duration_of(*span) if state == "finished" else None,
        paused_since=paused_since,
        two_stage=False,
    )


def _rebuild_stats(name: str, values: Sequence[int]) -> RebuildStats:
    return RebuildStats(
        vdev=name,
        state=_REBUILD_STATES[values[0]],
        start=epoch(values[1]),
        end=epoch(values[2]),
        scan_seconds=values[3] / 1e3,
        scanned=values[4],
        issued=values[5],
        rebuilt=values[6],
        estimate=values[7],
        errors=values[8],
        pass_ms=values[9],
        pass_scanned=values[10],
        pass_issued=values[11],
        skipped=_at(values, 12),
    )


def activities_of(
    tree: Mapping[str, Any], tops: Sequence[str], now: float | None
) -> tuple[Activity, ...]:
    """Removal, expansion and checkpoint, in the order zpool prints them."""
    found = []
    for key, kind in (("removal_stats", "removal"), ("raidz_expand_stats", "expansion")):
        stats = integers(tree.get(key) or (), key)
        if stats and stats[0] in _STATES:
            found.append(copy_of(_copy_stats(kind, stats, tops), now))
    checkpoint = integers(tree.get("checkpoint_stats") or (), "checkpoint_stats")
    if checkpoint and checkpoint[0] in (1, 2):
        found.insert(len(found[:1]), checkpoint_of(*checkpoint[:3]))
    return tuple(found)


def _copy_stats(kind: str, values: Sequence[int], tops: Sequence[str]) -> CopyStats:
    return CopyStats(
        kind=kind,
        state=_STATES[values[0]],
        vdev=tops[values[1]] if 0 <= values[1] < len(tops) else None,
        start=epoch(values[2]),
        end=epoch(values[3]),
        total=values[4],
        copied=values[5],
        waiting=kind == "expansion" and bool(_at(values, 6)),
    )


def checkpoint_of(state: int, start: int, space: int) -> Activity:
    """A checkpoint (1) or its discarding (2); ``total_bytes`` is what it holds or still frees."""
    return Activity(
        kind="checkpoint",
        state="exists" if state == 1 else "running",
        start=epoch(start),
        total_bytes=space,
    )
