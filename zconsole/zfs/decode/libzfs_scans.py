"""The arrays of a config nvlist about scans and copies, by the names that ``zpool status -j`` has.

``pool_scan_stat_t``, ``vdev_rebuild_stat_t``, ``pool_removal_stat_t``,
``pool_raidz_expand_stat_t``, ``pool_checkpoint_stat_t`` (include/sys/fs/zfs.h); they only ever
grew at the end, so that the length tells the version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zconsole.zfs.decode.values import integers

_FUNCTIONS = ("NONE", "SCRUB", "RESILVER", "ERRORSCRUB")
_STATES = ("NONE", "SCANNING", "FINISHED", "CANCELED", "ERRORSCRUBBING")
_REBUILD_STATES = ("NONE", "ACTIVE", "CANCELED", "COMPLETE")
_CHECKPOINT_STATES = ("NONE", "EXISTS", "DISCARDING")
_SCAN = (
    *("function", "state", "start_time", "end_time", "to_examine", "examined", "skipped"),
    *("processed", "errors", "bytes_per_scan", "pass_start", "scrub_pause", "scrub_spent_paused"),
    *("issued_bytes_per_scan", "issued", "err_scrub_func", "err_scrub_state"),
    *("err_scrub_start_time", "err_scrub_end_time", "err_scrub_examined", "err_scrub_to_examine"),
    "err_scrub_pause",
)
_REBUILD = (
    *("state", "start_time", "end_time", "scan_time", "scanned", "issued", "rebuilt", "to_scan"),
    *("errors", "pass_time", "pass_scanned", "pass_issued", "pass_skipped"),
)
_COPIES = {
    "removal_stats": ("state", "vdev", "start_time", "end_time", "to_copy", "copied"),
    "raidz_expand_stats": (
        *("state", "vdev", "start_time", "end_time", "to_reflow", "reflowed"),
        "waiting_for_resilver",
    ),
}
_WITH_SKIPPED = 22
"""Length of ``scan_stats`` from 2.2 on, which counts skipped bytes and knows error scrubs; before
that, the entry of skipped bytes was one that nothing kept up to date (pss_to_process)."""


def scan_stats(tree: Mapping[str, Any], tops: Sequence[str]) -> dict[str, Any]:
    """The pool's scans as ``scan_stats``. ``tops``: printed names by vdev id."""
    values = integers(tree.get("scan_stats") or (), "scan_stats")
    found = _named(_SCAN, values, _STATES) if values else {}
    if values:
        found["function"] = _word(_FUNCTIONS, values[0])
    if len(values) < _WITH_SKIPPED:
        found["skipped"] = found["err_scrub_state"] = None
    else:
        found["err_scrub_state"] = _word(_STATES, values[16]) if values[17] else None
    rebuilds = map(_rebuild, tops, tree.get("children", ()))
    return {**found, "rebuild_stats": dict(enumerate(rebuilds))}


def _rebuild(name: str, top: Mapping[str, Any]) -> dict[str, Any]:
    values = integers(top.get("org.openzfs:rebuild_stats") or (), "rebuild_stats")
    if not values:
        return {}
    found = {**_named(_REBUILD, values, _REBUILD_STATES), "name": name}
    for key in ("scan_time", "pass_time"):
        found[key] *= 1_000_000  # nanoseconds in the document, milliseconds in the array
    return found


def copies(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The pool's removal, expansion and checkpoint, each with the number of its ``vdev``."""
    found = {}
    for key, names in _COPIES.items():
        if values := integers(tree.get(key) or (), key):
            found[key] = _named(names, values, _STATES)
    if values := integers(tree.get("checkpoint_stats") or (), "checkpoint_stats"):
        names = ("state", "start_time", "space")
        found["checkpoint_stats"] = _named(names, values, _CHECKPOINT_STATES)
    return found


def _named(names: Sequence[str], values: Sequence[int], states: Sequence[str]) -> dict[str, Any]:
    """Values by name, None for what this version's array lacks; the state in a word."""
    found: dict[str, Any] = {**dict.fromkeys(names), **dict(zip(names, values, strict=False))}
    found["state"] = _word(states, found["state"])
    return found


def _word(words: Sequence[str], value: int) -> str:
    return words[value] if 0 <= value < len(words) else ""
