"""What ``zpool status`` computes from the kernel's scan counters, by version.

Source: print_scan_scrub_resilver_status, print_rebuild_status_impl, print_err_scrub_status,
print_removal_status and print_raidz_expand_status in cmd/zpool/zpool_main.c (0.6.5, 0.8.6, 2.1.15,
2.3.9): integer division everywhere but in the percentages. Decoders fill in the counters that
their form has; the functions here add what follows from them.
"""

from __future__ import annotations

from zconsole.pool.model import Activity, Progress, Scan
from zconsole.units import size

SLOWEST_ESTIMATE = 10 * 1024 * 1024
"""Bytes/s below which zpool prints no estimated completion time (0.8+)."""

_LONGEST_ESTIMATE = 30 * 24 * 3600
"""Seconds beyond which zpool calls a scan (0.6, 0.7) or a copy slow and prints none."""


def completed(scan: Scan, now: float | None, cautious: bool = True) -> Scan:
    """A scan's counters with zpool's percent, rates and estimate at epoch ``now``.

    Without the moment there is no length of the pass, so no rate and no estimate. ``cautious``
    (2.1.12+): no estimate before the first repaired (resilver) or issued (scrub) byte.
    """
    # Counters of a paused scrub are those of a running one: only its pause time tells.
    state = "paused" if scan.paused_since and scan.state == "running" else scan.state
    scan = scan._replace(state=state, duration=seconds_between(scan.start, scan.end))
    if not scan.active:
        return scan
    if state == "paused":
        return scan._replace(percent=_percent(scan))
    scan_rate, issue_rate = _pass_rates(scan, now)
    return scan._replace(
        stage=_stage(scan, scan_rate) if scan.two_stage else None,
        percent=_percent(scan),
        zpool_eta=_eta(scan, scan_rate, issue_rate, cautious),
        zpool_scan_rate=_shown(scan_rate, scan),
        zpool_issue_rate=_shown(issue_rate, scan),
    )


def _shown(rate: int | None, scan: Scan) -> int | None:
    """A rate as printed: 2.2+ leaves one of 0 out."""
    return rate if scan.skipped_bytes is None else rate or None


def seconds_between(start: float | None, end: float | None) -> float | None:
    """Seconds that a scan took, None while it runs."""
    return max(0.0, end - start) if start and end else None


def _stage(scan: Scan, scan_rate: int | None) -> str:
    """``issuing`` once the metadata walk is over as far as zpool shows, else ``scanning``.

    Over means: scanned and total read the same (the walk often ends a few KB short), or 2.2+
    would print no scan rate, because the walk's end resets the counters it is made of. Before 2.2,
    which brought skipped bytes, the rate is printed even when it is 0, so it tells nothing.
    """
    scanned, total = scan.scanned_bytes or 0, scan.total_bytes or 0
    no_rate = scan.skipped_bytes is not None and scan_rate == 0 and scanned
    over = scanned >= total or size(scanned) == size(total) or no_rate
    return "issuing" if over else "scanning"


def _pass_rates(scan: Scan, now: float | None) -> tuple[int | None, int | None]:
    scanned, issued = scan.pass_scanned or 0, scan.pass_issued or 0
    if now is None:
        return (None if scanned else 0), (None if issued else 0)
    # Unsigned in zpool, where a clock that went back makes it huge; here that counts as no time.
    elapsed = max(1, int(now) - int(scan.pass_start or now) - int(scan.pass_paused or 0))
    return scanned // elapsed, issued // elapsed


def _percent(scan: Scan) -> float | None:
    """Issued (before 0.8: scanned) of what is to be issued; above 100 where the pool has grown."""
    done, total = scan.progress_bytes
    return 100.0 * (done or 0) / total if total else None


def _eta(scan: Scan, scan_rate: int | None, issue_rate: int | None, cautious: bool) -> float | None:
    if not scan.two_stage:
        return _one_stage_eta(scan, scan_rate)
    issued = scan.issued_bytes or 0
    left = (scan.to_issue_bytes or 0) - issued
    if left < 0 or not issue_rate or issue_rate < SLOWEST_ESTIMATE:
        return None
    work = scan.processed_bytes if scan.function == "resilver" else issued
    return float(left // issue_rate) if work or not cautious else None


def _one_stage_eta(scan: Scan, scan_rate: int | None) -> float | None:
    """Before 0.8: whole minutes, of the bytes scanned."""
    if scan_rate is None:
        return None
    left = (scan.total_bytes or 0) - (scan.scanned_bytes or 0)
    seconds = left // max(1, scan_rate) // 60 * 60
    return float(seconds) if 0 <= seconds < _LONGEST_ESTIMATE else None


def completed_rebuild(scan: Scan, pass_ms: int) -> Scan:
    """A sequential resilver's counters with zpool's percent, rates and estimate.

    ``pass_ms``: length of the current pass, which the kernel counts itself. zpool estimates by the
    bytes scanned, as a rebuild issues what it scans at once.
    """
    scan = scan._replace(duration=scan.duration if scan.end else None)
    if scan.state != "running":
        return scan
    scanned, total = scan.scanned_bytes or 0, scan.total_bytes or 0
    scan_rate = (scan.pass_scanned or 0) * 1000 // (pass_ms + 1)
    issue_rate = (scan.pass_issued or 0) * 1000 // (pass_ms + 1)
    estimated = total >= scanned and scan_rate >= SLOWEST_ESTIMATE
    return scan._replace(
        stage=_stage(scan, scan_rate),
        percent=min(100.0, scanned * 100.0 / (total + 1)),
        zpool_eta=float((total - scanned) // scan_rate) if estimated else None,
        zpool_scan_rate=scan_rate or None,
        zpool_issue_rate=issue_rate or None,
    )


def completed_copy(copy: Activity, waiting: bool, now: float | None) -> Activity:
    """A removal's or expansion's counters with zpool's percent and estimate at epoch ``now``.

    ``waiting``: an expansion waits for a resilver or ``zpool clear`` (pres_waiting_for_resilver).
    zpool counts at least one byte as copied, so that it never divides by a rate of 0.
    """
    if copy.state != "running":
        return copy
    done, total = max(1, copy.done_bytes or 0), copy.total_bytes or 0
    rate = None if now is None else max(1, done // max(1, int(now) - int(copy.start or now)))
    return copy._replace(
        state="paused" if waiting else "running",
        percent=100.0 * done / total if total else None,
        zpool_eta=None if rate is None or waiting else _copy_eta(copy.kind, (total - done) // rate),
        zpool_rate=rate,
        note="paused for resilver or clear" if waiting else "",
    )


def _copy_eta(kind: str, left: int) -> float | None:
    """Seconds left as printed: of a removal whole minutes."""
    seconds = left // 60 * 60 if kind == "removal" else left
    return float(seconds) if 0 <= seconds < _LONGEST_ESTIMATE else None


def condense(
    what: str, state: str, counts: tuple[int, int], unit: str, times: tuple[float | None, ...] = ()
) -> Activity:
    """The condensing of one type of metadata (zpool-condense(8)), in the model's state words.

    ``counts``: units done and in all, which are no bytes. ``times``: start and end, where known.
    The note has the amount that zpool prints (print_condense_status, master of August 2026).
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
    state: str, done: int | None, total: int | None, time: float | None, errors: int | None
) -> Progress | None:
    """Trim or initialize of one leaf, with zpool's share; None for one that never ran."""
    if state not in PROGRESS_STATES[1:]:
        return None
    share = done / (total + 1) if done is not None and total is not None else None
    return Progress(state, done, total, 1.0 if state == "complete" else share, time, errors)


def in_order(scans: list[Scan]) -> tuple[Scan, ...]:
    """Scans as the model keeps them: active ones first, then newest first.

    An error scrub is the newer one of the same second, as for zpool (print_scan_status,
    cmd/zpool/zpool_main.c 2.3): without the scrub before it there would be no errors to look at.
    """
    return tuple(sorted(scans, key=_age))


def _age(scan: Scan) -> tuple[bool, float, bool]:
    return not scan.active, -(scan.end or scan.start or 0.0), scan.function != "errorscrub"
