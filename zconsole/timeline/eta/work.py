"""What a scan or activity has to do, in the finest figures its source gives."""

from __future__ import annotations

from zconsole import units
from zconsole.pool.model import Activity, Scan, Vdev
from zconsole.pool.topology import data_vdevs, is_group
from zconsole.timeline.eta.estimate import Work
from zconsole.timeline.eta.past import Totals
from zconsole.timeline.eta.progress_curve import ProgressReading

PERCENT_STEP = 0.00005
"""Half the last printed digit of ``percent``, as a share."""
PROCESSED_SLACK = 32 * 2**20
"""Repaired bytes rounded more coarsely than a queue is deep say less than issued bytes do."""
LEAST_REPAIRED = 0.5
"""Share of what the issued bytes should have repaired below which many of them were skipped."""
TWO_GROUPS = 10.0
"""Seconds: an activity counts what it moved once a transaction group is written, all at once."""
REBUILD_TAIL = 4.0
"""Seconds: a rebuild ends with one more transaction group synced (``vdev_rebuild_complete``)."""


def issued_bytes(scan: Scan) -> tuple[float, float] | None:
    """Bytes of work done and their rounding; None when the source says nothing of it.

    One-stage dialects work as they scan. In text the percentage is often finer than the bytes; in
    JSON, which has the counters of the pass, it is worked out from them. That of a rebuild is of
    the bytes scanned (print_rebuild_status_impl, cmd/zpool/zpool_main.c).
    """
    done = scan.issued_bytes if scan.two_stage else scan.scanned_bytes
    total = scan.to_issue_bytes
    if done is None:
        return None
    told = scan.pass_start is None and scan.function != "rebuild"
    printed = scan.percent if told else None
    return _finest(done, printed, total, scan.resolution)


def _finest(
    done: int, percent: float | None, total: int | None, rounding: float
) -> tuple[float, float]:
    """Bytes done and their rounding, by the percentage where that is finer."""
    step = PERCENT_STEP * (total or 0)
    if percent is not None and total and step < rounding:
        return percent / 100 * total, step
    return float(done), rounding


def rounding_of(printed: float) -> float:
    """Half the last digit of bytes that were printed."""
    return units.size_resolution(units.size(printed))


def scan_reading(t: float, clock: float, scan: Scan) -> ProgressReading | None:
    """The sample of a scan for its course; None when it has no counters."""
    done = issued_bytes(scan)
    if done is None:
        return None
    walked = _has_walked(scan)
    return ProgressReading(
        t,
        clock,
        scan.state == "running",
        done[0],
        float(scan.scanned_bytes or 0),
        float(scan.processed_bytes or 0),
        scan.pass_start,
        scan.pass_paused or 0.0,
        done[0] - scan.pass_issued if walked and scan.pass_issued is not None else None,
    )


def scan_work(scan: Scan, root: Vdev) -> Work | None:
    """What is left of a scan; None when its total or its progress is unknown."""
    done, total = issued_bytes(scan), scan.to_issue_bytes
    if done is None or total is None:
        return None
    processed = _processed(scan, done)
    rebuild = scan.function == "rebuild"
    return Work(
        total=_rebuild_total(scan) if rebuild else float(total),
        issued=done[0],
        processed=processed,
        share=repaired_share(scan, root) if processed else None,
        sure=rebuild,
        start=scan.start,
        walked=_has_walked(scan),
        by_turns=_walks(scan),
        to_scan=float(scan.total_bytes or 0)
        if scan.two_stage and _exact(scan) and not rebuild
        else None,
        tail=REBUILD_TAIL if rebuild else 0.0,
        resolution=done[1],
        average=scan.zpool_issue_rate if scan.two_stage else scan.zpool_scan_rate,
        averaged=_averaged(scan),
        skips=_counts_skipped(scan, root),
        verb="issuing"
        if scan.two_stage and not rebuild
        else "rebuilding"
        if rebuild
        else "scanning",
    )


def _averaged(scan: Scan) -> float | None:
    """Seconds over which zpool averages its rate, which are those of the bytes of this pass.

    Text does not tell these, but of most scans the first pass is the only one.
    """
    issues = scan.two_stage and bool(scan.zpool_issue_rate)
    rate = scan.zpool_issue_rate if issues else scan.zpool_scan_rate
    whole = scan.issued_bytes if issues else scan.scanned_bytes
    passed = scan.pass_issued if issues else scan.pass_scanned
    done = whole if passed is None else passed
    return done / rate if done is not None and rate else None


def _counts_skipped(scan: Scan, root: Vdev) -> bool:
    """Whether the bytes issued are partly skipped ones, which go by as fast as they are scanned.

    Before 2.2, while a resilver scans: nothing is read of what is on vdevs that lack nothing. What
    is on the only vdev with data a new device lacks as a whole.
    """
    if scan.function != "resilver" or not scan.issues_skipped or scan.stage != "scanning":
        return False
    if len(data_vdevs(root)) == 1 and any(map(is_group, root.walk())):
        return False
    share = repaired_share(scan, root)
    if share is None:
        return len(data_vdevs(root)) > 1
    expected = share * (scan.issued_bytes or 0)
    return scan.processed_bytes is not None and scan.processed_bytes < LEAST_REPAIRED * expected


def scan_totals(scan: Scan) -> Totals | None:
    """What a scan walks and issues in all; None where that is unknown."""
    total = scan.total_bytes if scan.function == "rebuild" else scan.to_issue_bytes
    if not total:
        return None
    walks = scan.two_stage and scan.scanned_bytes is not None and scan.function != "rebuild"
    return Totals(float(total), float(scan.total_bytes or 0) if walks else 0.0)


def _walks(scan: Scan) -> bool:
    """Whether it still walks metadata."""
    return scan.stage == "scanning" and scan.two_stage and scan.function != "rebuild"


def _has_walked(scan: Scan) -> bool:
    """Whether it has walked all of the metadata."""
    return scan.two_stage and scan.stage == "issuing" and scan.function != "rebuild"


def _exact(scan: Scan) -> bool:
    """Whether its counters are the kernel's, and those issued are not skipped ones (2.2)."""
    return not (scan.printed or scan.resolution) and scan.skipped_bytes is not None


def _processed(scan: Scan, done: tuple[float, float]) -> float:
    """Repaired bytes where they are exact enough to follow the work by; else 0."""
    if scan.function not in ("resilver", "rebuild") or not scan.processed_bytes:
        return 0.0
    if not (scan.printed or scan.resolution):
        return float(scan.processed_bytes)
    rounding = rounding_of(scan.processed_bytes)
    in_issued = rounding / scan.processed_bytes * done[0]
    return float(scan.processed_bytes) if in_issued <= max(PROCESSED_SLACK, done[1]) else 0.0


def _rebuild_total(scan: Scan) -> float:
    """Bytes a rebuild has to issue.

    What it skips (dRAID groups without the device) counts as scanned only; what is still to be
    scanned is taken to be skipped as often.
    """
    total = float(scan.total_bytes or 0)
    if not scan.scanned_bytes or scan.issued_bytes is None:
        return total
    ahead = total - scan.scanned_bytes
    return scan.issued_bytes + ahead * min(1.0, scan.issued_bytes / scan.scanned_bytes)


def repaired_share(scan: Scan, root: Vdev) -> float | None:
    """Bytes repaired for each byte issued, from the one top-level vdev the scan works on.

    Issued bytes count allocated bytes with parity (dsl_scan.c, ``count_block``), once for all
    sides of a mirror; repaired bytes count what was written to each leaf (vdev.c,
    ``vdev_stat_update``). None when several top-level vdevs are worked on, or for other kinds.
    """
    tops = [(v, sum(x.resilvering for x in v.leaves())) for v in root.children]
    if scan.function == "rebuild":
        tops = [(v, max(1, filling)) for v, filling in tops if v.name == scan.vdev]
    tops = [(v, filling) for v, filling in tops if filling]
    if len(tops) != 1:
        return None
    top, filling = tops[0]
    if top.kind.startswith("raidz"):
        return filling / len(top.children) if top.children else None
    if top.kind.startswith("draid") and scan.function == "rebuild":
        return _draid_share(top)
    return float(filling) if top.kind in ("mirror", "replacing", "spare") else None


def _draid_share(top: Vdev) -> float | None:
    """Of the groups a rebuild does not skip: those that have the device it replaces.

    A distributed spare lies on the other devices, which are being written to as well.
    """
    filling = sum(x.resilvering for group in top.children if group.children for x in group.leaves())
    if not filling or not top.data_disks or not top.nparity:
        return None
    return filling / (top.data_disks + top.nparity)


def copied_bytes(activity: Activity) -> tuple[float, float] | None:
    """Bytes an activity has done and their rounding; None when the source says nothing of it."""
    if activity.done_bytes is None:
        return None
    given = (activity.done_bytes, activity.percent, activity.total_bytes, activity.resolution)
    return _finest(*given)


def activity_reading(t: float, clock: float, activity: Activity) -> ProgressReading | None:
    """The sample of an activity for its course; None when it has no counters."""
    done = copied_bytes(activity)
    return None if done is None else ProgressReading(t, clock, activity.state == "running", done[0])


def _since_start(activity: Activity) -> float | None:
    """Seconds of the average that zpool prints, which is that since the start."""
    if not (activity.zpool_rate and activity.done_bytes):
        return None
    return activity.done_bytes / activity.zpool_rate


def activity_work(activity: Activity) -> Work | None:
    """What is left of an activity; None when that is unknown."""
    done, total = copied_bytes(activity), activity.total_bytes
    if done is None or total is None:
        return None
    return Work(
        total=float(total),
        issued=done[0],
        start=activity.start,
        resolution=done[1],
        average=activity.zpool_rate,
        averaged=_since_start(activity),
        verb="moving",
        ends_at_total=False,
        least_seconds=TWO_GROUPS,
    )
