"""What ``zpool status`` computes from the kernel's scan counters, by version.

Source: print_scan_scrub_resilver_status, print_rebuild_status_impl, print_removal_status and
print_raidz_expand_status in cmd/zpool/zpool_main.c (0.6.5, 0.8.6, 2.1.15, 2.3.9): integer
division everywhere but in the percentages.
"""

from __future__ import annotations

from typing import NamedTuple

from zconsole.pool.model import Activity, Scan
from zconsole.units import size

SLOWEST_ESTIMATE = 10 * 1024 * 1024
"""Bytes/s below which zpool prints no estimated completion time (0.8+)."""

_LONGEST_ESTIMATE = 30 * 24 * 3600
"""Seconds beyond which zpool calls a scan (0.6, 0.7) or a copy slow and prints none."""


class ScanStats(NamedTuple):
    """``pool_scan_stat_t`` (include/sys/fs/zfs.h) by name; None for what a version lacks."""

    function: str
    state: str
    start: float | None
    end: float | None
    total: int
    scanned: int
    skipped: int | None
    processed: int
    errors: int | None
    pass_scanned: int
    pass_start: float | None
    paused_since: float | None
    pass_paused: int
    pass_issued: int | None
    issued: int | None
    cautious: bool = True
    """2.1.12+: no estimate before the first repaired (resilver) or issued (scrub) byte."""


class RebuildStats(NamedTuple):
    """``vdev_rebuild_stat_t`` by name; times in seconds."""

    vdev: str
    state: str
    start: float | None
    end: float | None
    scan_seconds: float
    scanned: int
    issued: int
    rebuilt: int
    estimate: int
    errors: int
    pass_ms: int
    pass_scanned: int
    pass_issued: int
    skipped: int | None


class CopyStats(NamedTuple):
    """A device removal (``pool_removal_stat_t``) or an expansion (``pool_raidz_expand_stat_t``)."""

    kind: str
    state: str
    vdev: str | None
    start: float | None
    end: float | None
    total: int
    copied: int
    waiting: bool = False


def stage_of(scanned: int, total: int, scan_rate: int | None) -> str:
    """``issuing`` once the metadata walk is over as far as zpool shows, else ``scanning``.

    Over means: scanned and total read the same (the walk often ends a few KB short), or 2.2+
    would print no scan rate, because the walk's end resets the counters it is made of.
    """
    if scanned >= total or size(scanned) == size(total) or (scan_rate == 0 and scanned):
        return "issuing"
    return "scanning"


def scan_of(stats: ScanStats, now: float | None) -> Scan:
    """The scan at epoch ``now`` with zpool's percent, rates and estimate of that moment.

    Without the moment there is no length of the pass, so no rate and no estimate.
    """
    running = stats.state == "running"
    active = running or stats.state == "paused"
    scan_rate, issue_rate = _pass_rates(stats, now) if running else (None, None)
    two_stage = stats.issued is not None
    return Scan(
        function=stats.function,
        state=stats.state,
        stage=_stage(stats, scan_rate) if running and two_stage else None,
        start=stats.start,
        end=stats.end,
        total_bytes=stats.total,
        scanned_bytes=stats.scanned,
        issued_bytes=stats.issued,
        skipped_bytes=stats.skipped,
        processed_bytes=stats.processed,
        errors=stats.errors,
        percent=_percent(stats) if active else None,
        zpool_eta=_eta(stats, scan_rate, issue_rate) if running else None,
        zpool_scan_rate=_shown(scan_rate, stats),
        zpool_issue_rate=_shown(issue_rate, stats),
        duration=duration_of(stats.start, stats.end),
        paused_since=stats.paused_since,
        pass_start=stats.pass_start,
        pass_scanned=stats.pass_scanned,
        pass_issued=stats.pass_issued,
        pass_paused=float(stats.pass_paused),
        two_stage=two_stage,
    )


def _shown(rate: int | None, stats: ScanStats) -> int | None:
    """A rate as printed: 2.2+ leaves one of 0 out."""
    return rate if stats.skipped is None else rate or None


def duration_of(start: float | None, end: float | None) -> float | None:
    """Seconds that a scan took, None while it runs."""
    return max(0.0, end - start) if start and end else None


def _stage(stats: ScanStats, scan_rate: int | None) -> str:
    # Before 2.2 the rate is printed even when it is 0, so its absence tells nothing.
    return stage_of(stats.scanned, stats.total, scan_rate if stats.skipped is not None else None)


def _to_issue(stats: ScanStats) -> int:
    return stats.total - (stats.skipped or 0)


def _pass_rates(stats: ScanStats, now: float | None) -> tuple[int | None, int | None]:
    if now is None:
        return (None if stats.pass_scanned else 0), (None if stats.pass_issued else 0)
    elapsed = int(now) - int(stats.pass_start or now) - stats.pass_paused
    elapsed = elapsed if elapsed > 0 else 1
    return stats.pass_scanned // elapsed, (stats.pass_issued or 0) // elapsed


def _percent(stats: ScanStats) -> float | None:
    done = stats.scanned if stats.issued is None else stats.issued
    total = stats.total if stats.issued is None else _to_issue(stats)
    return 100.0 * done / total if total else None


def _eta(stats: ScanStats, scan_rate: int | None, issue_rate: int | None) -> float | None:
    if stats.issued is None:
        if scan_rate is None:
            return None
        minutes = (stats.total - stats.scanned) // max(1, scan_rate) // 60
        return 60.0 * minutes if 0 <= minutes * 60 < _LONGEST_ESTIMATE else None
    work = stats.processed if stats.function == "resilver" else stats.issued
    left = _to_issue(stats) - stats.issued
    if left < 0 or not issue_rate or issue_rate < SLOWEST_ESTIMATE:
        return None
    return float(left // issue_rate) if work or not stats.cautious else None


def rebuild_of(stats: RebuildStats) -> Scan:
    """The sequential resilver of one top-level vdev, with zpool's percent, rates and estimate."""
    running = stats.state == "running"
    scan_rate = stats.pass_scanned * 1000 // (stats.pass_ms + 1) if running else 0
    issue_rate = stats.pass_issued * 1000 // (stats.pass_ms + 1) if running else 0
    left = stats.estimate - stats.scanned
    estimated = running and left >= 0 and scan_rate >= SLOWEST_ESTIMATE
    walked = scan_rate if stats.skipped is not None else None
    return Scan(
        function="rebuild",
        state=stats.state,
        stage=stage_of(stats.scanned, stats.estimate, walked) if running else None,
        vdev=stats.vdev,
        start=stats.start,
        end=stats.end,
        total_bytes=stats.estimate,
        scanned_bytes=stats.scanned,
        issued_bytes=stats.issued,
        skipped_bytes=stats.skipped,
        processed_bytes=stats.rebuilt,
        errors=stats.errors,
        percent=min(100.0, stats.scanned * 100.0 / (stats.estimate + 1)) if running else None,
        zpool_eta=float(left // scan_rate) if estimated else None,
        zpool_scan_rate=scan_rate or None,
        zpool_issue_rate=issue_rate or None,
        duration=stats.scan_seconds if stats.end else None,
        pass_scanned=stats.pass_scanned,
        pass_issued=stats.pass_issued,
    )


def copy_of(stats: CopyStats, now: float | None) -> Activity:
    """A removal or expansion with zpool's percent and estimate at epoch ``now``, where known."""
    running = stats.state == "running"
    rate = _copy_rate(stats, now) if running and now is not None else None
    return Activity(
        kind=stats.kind,
        state="paused" if stats.waiting and running else stats.state,
        vdev=stats.vdev,
        start=stats.start,
        end=stats.end,
        done_bytes=stats.copied,
        total_bytes=stats.total,
        percent=100.0 * max(1, stats.copied) / stats.total if running and stats.total else None,
        zpool_eta=None if rate is None or stats.waiting else _copy_eta(stats, rate),
        zpool_rate=rate,
        note="paused for resilver or clear" if stats.waiting and running else "",
    )


def _copy_rate(stats: CopyStats, now: float) -> int:
    elapsed = max(1, int(now) - int(stats.start or now))
    return max(1, max(1, stats.copied) // elapsed)


def _copy_eta(stats: CopyStats, rate: int) -> float | None:
    left = (stats.total - max(1, stats.copied)) // rate
    if stats.kind == "removal":
        left = left // 60 * 60
    return float(left) if 0 <= left < _LONGEST_ESTIMATE else None


def in_order(scans: list[Scan]) -> tuple[Scan, ...]:
    """Scans as the model keeps them: active ones first, then newest first.

    An error scrub is the newer one of the same second, as for zpool (print_scan_status,
    cmd/zpool/zpool_main.c 2.3): without the scrub before it there would be no errors to look at.
    """
    return tuple(sorted(scans, key=_age))


def _age(scan: Scan) -> tuple[bool, float, bool]:
    return not scan.active, -(scan.end or scan.start or 0.0), scan.function != "errorscrub"
