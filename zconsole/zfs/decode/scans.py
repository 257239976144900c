"""Scans, removals, expansions and checkpoints, under the names that ``zpool status -j`` prints.

Source: scan_status_nvlist, removal_status_nvlist, checkpoint_status_nvlist and
raidz_expand_status_nvlist in cmd/zpool/zpool_main.c (2.3.9), condense_status_nvlist there (master
of August 2026). The kernel's arrays are first converted to the same names (``scan_stats``,
``copies``): ``pool_scan_stat_t``, ``vdev_rebuild_stat_t``, ``pool_removal_stat_t``,
``pool_raidz_expand_stat_t``, ``pool_checkpoint_stat_t`` (include/sys/fs/zfs.h). These arrays have
only ever grown at the end, so their length indicates the version; what an older version's array
lacks is None, and what zpool omits is 0.

Percentages, rates and estimates are computed as in print_scan_scrub_resilver_status,
print_rebuild_status_impl, print_err_scrub_status, print_removal_status and
print_raidz_expand_status (0.6.5, 0.8.6, 2.1.15, 2.3.9): integer division everywhere except in
percentages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any

from zconsole.pool.model import Activity, Progress, Scan
from zconsole.units import size, size_resolution
from zconsole.zfs.decode.values import count, integers, mapping, moment, number

_FUNCTIONS = {"SCRUB": "scrub", "RESILVER": "resilver", "ERRORSCRUB": "errorscrub"}
_STATES = {
    "SCANNING": "running",
    "FINISHED": "finished",
    "CANCELED": "canceled",
    "ERRORSCRUBBING": "running",
}
_REBUILD_STATES = {"ACTIVE": "running", "CANCELED": "canceled", "COMPLETE": "finished"}
_Node = Mapping[str, Any]

_FUNCTION_WORDS, _STATE_WORDS, _REBUILD_WORDS, _CHECKPOINT_WORDS = (
    dict(enumerate(words.split()))
    for words in (
        "NONE SCRUB RESILVER ERRORSCRUB",
        "NONE SCANNING FINISHED CANCELED ERRORSCRUBBING",
        "NONE ACTIVE CANCELED COMPLETE",
        "NONE EXISTS DISCARDING",
    )
)
_SCAN = (
    *("function", "state", "start_time", "end_time", "to_examine", "examined", "skipped"),
    *("processed", "errors", "bytes_per_scan", "pass_start", "scrub_pause", "scrub_spent_paused"),
    *("issued_bytes_per_scan", "issued", "err_scrub_func", "err_scrub_state"),
    *("err_scrub_start_time", "err_scrub_end_time", "err_scrub_examined", "err_scrub_to_examine"),
    *("err_scrub_pause", "flags"),
)
_REBUILD = (
    *("state", "start_time", "end_time", "scan_time", "scanned", "issued", "rebuilt", "to_scan"),
    *("errors", "pass_time", "pass_scanned", "pass_issued", "pass_skipped"),
)
COPIES = {
    "removal_stats": ("state", "vdev", "start_time", "end_time", "to_copy", "copied"),
    "raidz_expand_stats": (
        *("state", "vdev", "start_time", "end_time", "to_reflow", "reflowed"),
        "waiting_for_resilver",
    ),
}
_CONDENSE = "com.klarasystems:condense_stats"
_CONDENSED = {"log_spacemap": "metaslabs"}
"""Unit counted for each type of metadata (condense_unit, cmd/zpool/zpool_main.c)."""
_THOROUGH = 1
"""Bit of ``pss_pass_scrub_flags``, the 23rd element since 2.4.99 (POOL_SCRUB_THOROUGH)."""
_WITH_SKIPPED = 22
"""Length of ``scan_stats`` since 2.2, which counts skipped bytes and has error scrubs. Before that,
the element of skipped bytes was pss_to_process, which was never updated."""


def work_of(
    pool: _Node,
    scans: tuple[Scan, ...],
    now: float | None,
    moving: tuple[str | None, str | None],
    zone: tzinfo = UTC,
) -> dict[str, Any]:
    """Return fields of ``Pool`` for scans and other work, with zpool's figures at epoch ``now``.

    ``moving`` are the printed names of the vdevs being removed and expanded. A kind or state that
    no known release has is not decoded but reported in ``lacks``.
    """
    scan = mapping(pool.get("scan_stats"), "scan_stats")
    rebuilds = mapping(scan.get("rebuild_stats"), "rebuild_stats").items()
    scan_words = [
        (scan.get("function"), _FUNCTION_WORDS),
        *((scan.get(key), _STATE_WORDS) for key in ("state", "err_scrub_state")),
        *((mapping(node, key).get("state"), _REBUILD_WORDS) for key, node in rebuilds),
    ]
    work_words = [
        *((mapping(pool.get(key), key).get("state"), _STATE_WORDS) for key in COPIES),
        (mapping(pool.get("checkpoint_stats"), "checkpoint_stats").get("state"), _CHECKPOINT_WORDS),
    ]
    known_scan, known_work = (
        all(word in (None, *words.values()) for word, words in found)
        for found in (scan_words, work_words)
    )
    lacks = None if known_work else "its removal, expansion or checkpoint is in no known state"
    if not known_scan or ("function" in scan) != ("state" in scan):
        known_scan, lacks = False, "its scan is of no known kind or state"
    return {
        "scans": scans,
        "scans_known": known_scan,
        "activities": _activities(pool, *moving, now, zone),
        "lacks": lacks,
    }


def scans_of(scan: _Node, now: float | None, zone: tzinfo = UTC) -> tuple[Scan, ...]:
    """Decode every scan in a pool's ``scan_stats``, active ones first."""
    scans = []
    if str(scan.get("function")) in _FUNCTIONS and scan.get("state") in _STATE_WORDS.values():
        scans.append(_as_printed(completed(_scan(scan, zone), now), scan))
    if scan.get("err_scrub_state") in _STATES:
        scans.append(_error_scrub(scan, zone))
    for key, node in mapping(scan.get("rebuild_stats"), "rebuild_stats").items():
        if mapping(node, key).get("state") in _REBUILD_STATES:
            scans.append(_as_printed(_rebuild(key, node, zone), node))
    return in_order(scans)


def _as_printed(scan: Scan, node: _Node) -> Scan:
    """Set the rounding of a scan's bytes, which without ``--json-int`` are printed as in text."""
    issued = node.get("issued")
    rounding = size_resolution(issued) if isinstance(issued, str) else 0.0
    return scan._replace(resolution=rounding, printed=True) if rounding else scan


def _known(node: _Node, key: str) -> int | None:
    """Return a counter; None if it is present as None, as for versions that lack it."""
    return None if node.get(key, 0) is None else count(node, key)


def _scan(scan: _Node, zone: tzinfo) -> Scan:
    issued, active = _known(scan, "issued"), scan.get("state") == "SCANNING"
    # JSON has no flags.
    flagged = scan["function"] == "SCRUB" and "flags" in scan
    return Scan(
        function=_FUNCTIONS[str(scan["function"])],
        state=_STATES.get(str(scan.get("state")), "none"),
        start=moment(scan.get("start_time"), zone),
        end=moment(scan.get("end_time"), zone),
        total_bytes=count(scan, "to_examine"),
        scanned_bytes=count(scan, "examined"),
        issued_bytes=issued,
        skipped_bytes=_known(scan, "skipped"),
        processed_bytes=count(scan, "processed"),
        errors=number(scan.get("errors")),
        paused_since=moment(scan.get("scrub_pause"), zone),
        pass_start=moment(scan.get("pass_start"), zone),
        pass_scanned=count(scan, "bytes_per_scan"),
        pass_issued=_known(scan, "issued_bytes_per_scan"),
        pass_paused=float(count(scan, "scrub_spent_paused")),
        issues_skipped=active and issued is not None and _known(scan, "skipped") is None,
        two_stage=issued is not None,
        thorough=bool(count(scan, "flags") & _THOROUGH) if flagged else None,
    )


def _error_scrub(scan: _Node, zone: tzinfo) -> Scan:
    """Decode an error scrub, which counts blocks with errors instead of bytes.

    Its ``to_examine`` is what is left, while that of other scans is the total
    (print_err_scrub_status).
    """
    keys = ("start_time", "end_time", "pause")
    start, end, paused = (moment(scan.get(f"err_scrub_{key}"), zone) for key in keys)
    done, left = count(scan, "err_scrub_examined"), count(scan, "err_scrub_to_examine")
    state = _STATES[str(scan["err_scrub_state"])]
    active = state == "running"
    end = None if active else end
    return Scan(
        function="errorscrub",
        state="paused" if paused and active else state,
        start=start,
        end=end,
        percent=100.0 * done / (done + left) if active and done + left else None,
        duration=max(0.0, end - start) if start and end else None,
        paused_since=paused,
        two_stage=False,
    )


def _rebuild(key: str, node: _Node, zone: tzinfo) -> Scan:
    """Decode a sequential resilver, with zpool's percent, rates and estimate.

    zpool bases the estimate on the bytes scanned, as a rebuild immediately issues what it scans.
    The kernel itself measures the current pass, in milliseconds.
    """
    end, pass_seconds = moment(node.get("end_time"), zone), _seconds(node, "pass_time")
    scan = Scan(
        function="rebuild",
        state=_REBUILD_STATES[str(node["state"])],
        vdev=str(node.get("name", key)),
        start=moment(node.get("start_time"), zone),
        end=end,
        total_bytes=count(node, "to_scan"),
        scanned_bytes=count(node, "scanned"),
        issued_bytes=count(node, "issued"),
        skipped_bytes=_known(node, "pass_skipped"),
        processed_bytes=count(node, "rebuilt"),
        errors=count(node, "errors"),
        duration=_seconds(node, "scan_time") if end else None,
        pass_scanned=count(node, "pass_scanned"),
        pass_issued=count(node, "pass_issued"),
    )
    if scan.state != "running":
        return scan
    scanned, total = scan.scanned_bytes or 0, scan.total_bytes or 0
    scan_rate = issue_rate = None
    if pass_seconds is not None:
        pass_ms = round(pass_seconds * 1000) + 1
        scan_rate = (scan.pass_scanned or 0) * 1000 // pass_ms
        issue_rate = (scan.pass_issued or 0) * 1000 // pass_ms
    eta = None
    if scan_rate is not None and scan_rate >= SLOWEST_ESTIMATE and total >= scanned:
        eta = float((total - scanned) // scan_rate)
    return scan._replace(
        stage=_stage(scan, scan_rate),
        percent=min(100.0, scanned * 100.0 / (total + 1)),
        zpool_eta=eta,
        zpool_scan_rate=scan_rate or None,
        zpool_issue_rate=issue_rate or None,
    )


_TIME = re.compile(r"(\d+)(ns|us|ms|s)")
_TIME_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def _seconds(node: _Node, key: str) -> float | None:
    """Return a time in seconds, from nanoseconds or as plain ``-j`` prints it (zfs_nicetime).

    None from 1,000 s on, where it prints thousands of seconds, without a unit.
    """
    printed = node.get(key)
    if isinstance(printed, str) and not printed.isdigit() and printed != "-":
        match = _TIME.fullmatch(printed)
        return int(match[1]) * _TIME_UNITS[match[2]] if match else None
    return count(node, key) / 1e9


def _activities(
    pool: _Node,
    removed: str | None,
    expanding: str | None,
    now: float | None,
    zone: tzinfo,
) -> tuple[Activity, ...]:
    """Return removal, checkpoint, expansion and condensing of a pool, in zpool's order."""
    found = []
    removal = mapping(pool.get("removal_stats"), "removal_stats")
    if removal.get("state") in _STATES:
        copy = _copy("removal", removal, removed, ("to_copy", "copied"), zone)
        found.append(completed_copy(copy, False, now))
    checkpoint = mapping(pool.get("checkpoint_stats"), "checkpoint_stats")
    if (state := checkpoint.get("state")) in ("EXISTS", "DISCARDING"):
        start, space = moment(checkpoint.get("start_time"), zone), count(checkpoint, "space")
        # Space that the checkpoint holds, or that is still to be freed.
        word = "running" if state == "DISCARDING" else "exists"
        found.append(Activity("checkpoint", word, start=start, total_bytes=space))
    expand = mapping(pool.get("raidz_expand_stats"), "raidz_expand_stats")
    if expand.get("state") in _STATES:
        copy = _copy("expansion", expand, expanding, ("to_reflow", "reflowed"), zone)
        found.append(completed_copy(copy, bool(count(expand, "waiting_for_resilver")), now))
    for what, each in mapping(pool.get("condense"), "condense").items():
        node = mapping(each, what)
        times = start, end = tuple(moment(node.get(f"{k}_time"), zone) for k in ("start", "end"))
        done, total = count(node, "processed"), count(node, "total")
        # Canceled if it ended before everything was done (print_condense_status).
        state = "running" if end is None else "canceled" if done < total else "finished"
        unit = str(node.get("unit", "items"))
        found.append(condense(what, state, (done, total), unit, times))
    return tuple(found)


def _copy(
    kind: str, node: _Node, vdev: str | None, keys: tuple[str, str], zone: tzinfo
) -> Activity:
    """``keys`` are those of the total bytes and of the bytes done."""
    return Activity(
        kind=kind,
        state=_STATES[str(node["state"])],
        vdev=vdev,
        start=moment(node.get("start_time"), zone),
        end=moment(node.get("end_time"), zone),
        done_bytes=count(node, keys[1]),
        total_bytes=count(node, keys[0]),
    )


def stats_of_work(tree: Mapping[str, Any], tops: Sequence[str]) -> dict[str, Any]:
    """Return the kernel's figures of scans and other work under the names of zpool's JSON.

    ``tops`` are printed names by vdev id.
    """
    values = integers(tree.get("scan_stats") or (), "scan_stats")
    found = _named(_SCAN, values, _STATE_WORDS) if values else {}
    if values:
        found["function"] = _FUNCTION_WORDS.get(values[0], "")
    if len(values) < _WITH_SKIPPED:
        found["skipped"] = found["err_scrub_state"] = None
    else:
        found["err_scrub_state"] = _STATE_WORDS.get(values[16], "") if values[17] else None
    rebuilds = {}
    for name, top in zip(tops, tree.get("children", ()), strict=True):
        if values := integers(top.get("org.openzfs:rebuild_stats") or (), "rebuild_stats"):
            rebuilds[name] = {**_named(_REBUILD, values, _REBUILD_WORDS), "name": name}
            for key in ("scan_time", "pass_time"):
                rebuilds[name][key] *= 1_000_000  # the document has ns, the array ms
    stats = {"scan_stats": {**found, "rebuild_stats": rebuilds}}
    checkpoint = {"checkpoint_stats": ("state", "start_time", "space")}
    for key, names in {**COPIES, **checkpoint}.items():
        if values := integers(tree.get(key) or (), key):
            words = _CHECKPOINT_WORDS if key in checkpoint else _STATE_WORDS
            stats[key] = _named(names, values, words)
    condensed = (tree.get(_CONDENSE) or {}).items()
    if begun := {what: node for what, node in condensed if node["start_time"]}:
        stats["condense"] = {
            what: {**node, "unit": _CONDENSED.get(what, "items")} for what, node in begun.items()
        }
    return stats


def _named(
    names: Sequence[str], values: Sequence[int], states: Mapping[int, str]
) -> dict[str, Any]:
    """Return values by name, None for those the array lacks, with the state as a word."""
    found: dict[str, Any] = {**dict.fromkeys(names), **dict(zip(names, values, strict=False))}
    found["state"] = states.get(found["state"], "")
    return found


SLOWEST_ESTIMATE = 10 * 1024 * 1024
"""Bytes/s below which zpool prints no estimated completion time (0.8+)."""

_LONGEST_ESTIMATE = 30 * 24 * 3600
"""Seconds beyond which zpool calls a scan (0.6, 0.7) or a copy slow and prints no estimate."""


def completed(scan: Scan, now: float | None) -> Scan:
    """Add zpool's percent, rates and estimate at epoch ``now`` to a scan's counters.

    If ``now`` is None, the length of the pass is unknown, so there is no rate and no estimate. The
    percentage is of bytes issued (before 0.8: scanned), and above 100 if the pool has grown.
    """
    # A paused scrub has the counters of a running one: only the pause time shows it.
    state = "paused" if scan.paused_since and scan.state == "running" else scan.state
    took = max(0.0, scan.end - scan.start) if scan.start and scan.end else None
    scan = scan._replace(state=state, duration=took)
    if not scan.active:
        return scan
    done, total = scan.progress_bytes
    scan = scan._replace(percent=100.0 * (done or 0) / total if total else None)
    if state == "paused":
        return scan
    counts = scan.pass_scanned or 0, scan.pass_issued or 0
    if now is None:
        scan_rate, issue_rate = (None if count else 0 for count in counts)
    else:
        # Unsigned in zpool, so that a clock set back makes it huge; here it becomes 1.
        elapsed = max(1, int(now) - int(scan.pass_start or now) - int(scan.pass_paused or 0))
        scan_rate, issue_rate = (count // elapsed for count in counts)
    unprinted = None if scan.skipped_bytes is not None else 0  # 2.2+ prints no rate of 0
    return scan._replace(
        stage=_stage(scan, scan_rate) if scan.two_stage else None,
        zpool_eta=_eta(scan, scan_rate, issue_rate),
        zpool_scan_rate=unprinted if scan_rate == 0 else scan_rate,
        zpool_issue_rate=unprinted if issue_rate == 0 else issue_rate,
    )


def _stage(scan: Scan, scan_rate: int | None) -> str:
    """Return ``issuing`` once the metadata walk is over as far as zpool shows, else ``scanning``.

    It is over if scanned and total are printed alike (the walk often ends a few KB short), or if
    2.2+ would print no scan rate, because the end of the walk resets the counters it is computed
    from. Before 2.2, which introduced skipped bytes, the rate is printed even if it is 0, so it
    shows nothing.
    """
    scanned, total = scan.scanned_bytes or 0, scan.total_bytes or 0
    no_rate = scan.skipped_bytes is not None and scan_rate == 0 and scanned
    over = scanned >= total or size(scanned) == size(total) or no_rate
    return "issuing" if over else "scanning"


def _eta(scan: Scan, scan_rate: int | None, issue_rate: int | None) -> float | None:
    """Return the seconds left.

    None until the first byte is repaired, or issued by a scrub (2.1.12+).
    """
    if not scan.two_stage:
        # Before 0.8: in whole minutes, from the bytes scanned.
        left = (scan.total_bytes or 0) - (scan.scanned_bytes or 0)
        seconds = left // max(1, scan_rate or 0) // 60 * 60
        known = scan_rate is not None and 0 <= seconds < _LONGEST_ESTIMATE
        return float(seconds) if known else None
    issued = scan.issued_bytes or 0
    left = (scan.to_issue_bytes or 0) - issued
    if left < 0 or not issue_rate or issue_rate < SLOWEST_ESTIMATE:
        return None
    work = scan.processed_bytes if scan.function == "resilver" else issued
    return float(left // issue_rate) if work else None


def completed_copy(copy: Activity, waiting: bool, now: float | None) -> Activity:
    """Add zpool's percent and estimate at epoch ``now`` to a removal's or expansion's counters.

    ``waiting`` means that an expansion waits for a resilver or ``zpool clear``
    (pres_waiting_for_resilver). zpool counts at least one byte as copied, so that it never divides
    by a rate of 0.
    """
    if copy.state != "running":
        return copy
    done, total = max(1, copy.done_bytes or 0), copy.total_bytes or 0
    rate = None if now is None else max(1, done // max(1, int(now) - int(copy.start or now)))
    left = (total - done) // rate if rate else -1
    if copy.kind == "removal":
        left = left // 60 * 60  # printed in whole minutes
    estimated = not waiting and 0 <= left < _LONGEST_ESTIMATE
    return copy._replace(
        state="paused" if waiting else "running",
        percent=100.0 * done / total if total else None,
        zpool_eta=float(left) if estimated else None,
        zpool_rate=rate,
        note="paused for resilver or clear" if waiting else "",
    )


def condense(
    what: str, state: str, counts: tuple[int, int], unit: str, times: tuple[float | None, ...] = ()
) -> Activity:
    """Build the condensing of one type of metadata (zpool-condense(8)) for the model.

    ``state`` is one of the model's words, ``counts`` are units done and in total, not bytes, and
    ``times`` start and end, if known. The note has the amount that zpool prints
    (print_condense_status, master of August 2026).
    """
    done, total = counts
    amount = size(done) if state == "finished" else f"{size(done)}/{size(total)}"
    start, end = times or (None, None)
    percent = 100.0 * done / total if state == "running" and total else None
    note = f"{amount} {unit}"
    return Activity("condense", state, what, start, end, percent=percent, note=note)


PROGRESS_STATES = ("none", "active", "canceled", "suspended", "complete")
"""``vdev_trim_state_t`` and ``vdev_initializing_state_t`` by value (include/sys/fs/zfs.h)."""


def progress_of(
    state: str, done: int | None, total: int | None, time: float | None
) -> Progress | None:
    """Build trim or initialize of one leaf, with zpool's share; None for one that never ran."""
    if state not in PROGRESS_STATES[1:]:
        return None
    share = done / (total + 1) if done is not None and total is not None else None
    return Progress(state, done, total, 1.0 if state == "complete" else share, time)


def in_order(scans: list[Scan]) -> tuple[Scan, ...]:
    """Sort scans as the model keeps them: active ones first, then newest first.

    If both have the same second, an error scrub counts as newer, as in zpool (print_scan_status,
    cmd/zpool/zpool_main.c 2.3): it can only follow a scrub that found errors.
    """
    return tuple(
        sorted(
            scans,
            key=lambda scan: (
                not scan.active,
                -(scan.end or scan.start or 0.0),
                scan.function != "errorscrub",
            ),
        )
    )
