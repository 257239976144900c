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
    checkpoint_of,
    completed,
    completed_copy,
    completed_rebuild,
    error_scrub,
    in_order,
)
from zconsole.zfs.decode.values import epoch, integers

_FUNCTIONS = {1: "scrub", 2: "resilver", 3: "errorscrub"}
_STATES = {1: "running", 2: "finished", 3: "canceled", 4: "running"}
_REBUILD_STATES = {1: "running", 2: "canceled", 3: "finished"}
_WITH_SKIPPED = 22
"""Length of ``scan_stats`` from 2.2 on, which counts skipped bytes and knows error scrubs; before
that, the entry of skipped bytes was one that nothing kept up to date (pss_to_process)."""


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
        scans.append(_scan(stats, now, version))
    if stats and len(stats) >= _WITH_SKIPPED and stats[17]:
        scans.append(_error_scrub(stats))
    for name, child in zip(tops, tree.get("children", ()), strict=True):
        rebuild = integers(child.get("org.openzfs:rebuild_stats") or (), "rebuild_stats")
        if rebuild and rebuild[0] in _REBUILD_STATES:
            scans.append(_rebuild(name, rebuild))
    return in_order(scans)


def _at(values: Sequence[int], index: int) -> int | None:
    return values[index] if index < len(values) else None


def _scan(values: Sequence[int], now: float | None, version: str | None) -> Scan:
    issued, skipped = _at(values, 14), values[6] if len(values) >= _WITH_SKIPPED else None
    scan = Scan(
        function=_FUNCTIONS[values[0]],
        state=_STATES.get(values[1], "none"),
        start=epoch(values[2]),
        end=epoch(values[3]),
        total_bytes=values[4],
        scanned_bytes=values[5],
        issued_bytes=issued,
        skipped_bytes=skipped,
        processed_bytes=values[7],
        errors=values[8],
        paused_since=epoch(_at(values, 11)),
        pass_start=epoch(values[10]),
        pass_scanned=values[9],
        pass_issued=_at(values, 13),
        pass_paused=float(_at(values, 12) or 0),
        two_stage=issued is not None,
    )
    return completed(scan, now, cautious=skipped is not None or is_cautious(version))


def is_cautious(version: str | None) -> bool:
    """Whether this OpenZFS waits for the first repaired or issued byte (2.1.12+)."""
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", version or "")
    return numbers is None or tuple(map(int, numbers.groups())) >= (2, 1, 12)


def _error_scrub(values: Sequence[int]) -> Scan:
    state, blocks = _STATES.get(values[16], "none"), (values[19], values[20])
    return error_scrub(state, epoch(values[17]), epoch(values[18]), epoch(values[21]), blocks)


def _rebuild(name: str, values: Sequence[int]) -> Scan:
    scan = Scan(
        function="rebuild",
        state=_REBUILD_STATES[values[0]],
        vdev=name,
        start=epoch(values[1]),
        end=epoch(values[2]),
        total_bytes=values[7],
        scanned_bytes=values[4],
        issued_bytes=values[5],
        skipped_bytes=_at(values, 12),
        processed_bytes=values[6],
        errors=values[8],
        duration=values[3] / 1e3,
        pass_scanned=values[10],
        pass_issued=values[11],
    )
    return completed_rebuild(scan, values[9])


def activities_of(
    tree: Mapping[str, Any], tops: Sequence[str], now: float | None
) -> tuple[Activity, ...]:
    """Removal, expansion and checkpoint, in the order zpool prints them."""
    found = []
    for key, kind in (("removal_stats", "removal"), ("raidz_expand_stats", "expansion")):
        stats = integers(tree.get(key) or (), key)
        if stats and stats[0] in _STATES:
            found.append(_copy(kind, stats, tops, now))
    checkpoint = integers(tree.get("checkpoint_stats") or (), "checkpoint_stats")
    if checkpoint and checkpoint[0] in (1, 2):
        found.insert(len(found[:1]), checkpoint_of(checkpoint[0] == 2, *checkpoint[1:3]))
    return tuple(found)


def _copy(kind: str, values: Sequence[int], tops: Sequence[str], now: float | None) -> Activity:
    copy = Activity(
        kind=kind,
        state=_STATES[values[0]],
        vdev=tops[values[1]] if 0 <= values[1] < len(tops) else None,
        start=epoch(values[2]),
        end=epoch(values[3]),
        done_bytes=values[5],
        total_bytes=values[4],
    )
    return completed_copy(copy, kind == "expansion" and bool(_at(values, 6)), now)
