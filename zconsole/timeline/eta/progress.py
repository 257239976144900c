"""The work of a scan or activity, and the course of what it has done.

``Work`` is the work to do and a ``ProgressReading`` what was done by some moment, both in the
finest figures that a sample has. ``ProgressCurve`` keeps the readings over running time, which
excludes pauses, exports and clock faults, so that a rate is bytes per second of work. Recent points
are all kept; older ones are thinned out, so that days fit in a few hundred points.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from zconsole import units
from zconsole.pool.model import Activity, Scan, Vdev, data_vdevs, is_group
from zconsole.pool.redundancy import parity

MIN_SECONDS = 5.0
"""Seconds of work that must be seen, a transaction group (``zfs_txg_timeout``): within one, bytes
come in bursts several times as fast, or as slow, as the devices."""
PERCENT_STEP = 0.00005
"""Half the last printed digit of ``percent``, as a share."""
PROCESSED_SLACK = 32 * 2**20
"""Repaired bytes that are rounded more coarsely than a queue is deep are less useful than issued
bytes."""
LEAST_REPAIRED = 0.5
"""If less than this share of the expected bytes was repaired, many issued bytes were skipped."""
TWO_GROUPS = 10.0
"""Seconds: an activity counts its bytes only when a transaction group is written, all at once."""
REBUILD_TAIL = 4.0
"""Seconds: a rebuild ends after one more transaction group is synced
(``vdev_rebuild_complete``)."""
MAX_POINTS = 600
"""Points of a course above which older ones are thinned out."""
RECENT_POINTS = 240
"""Newest points that are never thinned out: four minutes at a sample per second."""
OLDER_POINTS = 270
"""Number of older points after thinning; below the limit, so that this is not repeated with every
sample."""
NEARER = 6.0
"""Points from the last 1/6 of the time are kept closer the newer they are: windows of minutes look
at the last hour, windows of hours at the first one."""
HOLE_INTERVALS = 3.0
"""Mean intervals between points from which a pause in sampling counts as a hole."""
LEAP_FACTOR = 4.0
"""Bytes that grew by more than this factor over the usual rate across a hole in the sampling were
not worked off."""
STANDSTILL = 60.0
STANDSTILL_SHARE = 0.05
"""A hole of this many seconds, with less than this share of the usual work, was a standstill."""
IMPORT_SHARE = 0.5
"""Share of the usual work below which a hole was a standstill if the pool was imported in the
meantime."""
BESIDE = 10.0
"""Seconds by which readings saved by another console may be ahead of our first sample."""
SANE = 2**60
"""Counters beyond this are the kernel's unsigned underflow, not bytes (openzfs/zfs#17990)."""


class Work(NamedTuple):
    """Work to do, and how exactly it is known; bytes and seconds."""

    total: float
    """Total bytes to issue."""
    issued: float
    processed: float = 0.0
    """Bytes repaired or rebuilt; 0 if the source has none, or only inexactly."""
    share: float | None = None
    """Bytes repaired per byte issued, if the topology determines it."""
    sure: bool = False
    """True if ``share`` holds however far issuing runs ahead."""
    start: float | None = None
    """Epoch seconds."""
    walked: bool = False
    """True once the metadata walk that precedes issuing is complete."""
    tail: float = 0.0
    """Seconds from the last byte done to the end. The transaction group that detects it takes half
    a second, and the kernel writes the end in whole seconds, rounded down (``dsl_scan_done``)."""
    resolution: float = 0.0
    """Bytes of rounding in ``issued``."""
    average: float | None = None
    """zpool's average in bytes/s over this pass."""
    averaged: float | None = None
    """Seconds of that pass; None if unknown."""
    skips: bool = False
    """True if ``issued`` includes skipped bytes, so that the average says nothing."""
    ends_at_total: bool = True
    """True if the work ends at ``total``, give or take what is written in the meantime."""
    verb: str = "resilvering"
    alternates: bool = False
    """True while metadata is being walked, so that walking and issuing may alternate."""
    to_scan: float | None = None
    """Bytes whose metadata is walked in total, if bytes issued in the meantime count as work."""
    least_seconds: float = MIN_SECONDS
    """Seconds of work that must be seen before they give a speed."""


class Totals(NamedTuple):
    """Total bytes to issue and to walk; ``walk`` is 0 if nothing is walked first."""

    issue: float
    walk: float


class ProgressReading(NamedTuple):
    """Progress in one sample: bytes since the start, as the source has them."""

    t: float
    clock: float
    running: bool
    issued: float
    scanned: float = 0.0
    processed: float = 0.0
    pass_start: float | None = None
    paused: float = 0.0
    """Seconds this pass was paused."""
    before: float | None = None
    """Bytes issued before this pass, once the metadata walk is complete; None if unknown."""
    exact: bool | None = None
    """True if ``issued`` is not rounded; None if that is unknown."""


def issued_bytes(scan: Scan) -> tuple[float, float] | None:
    """Return bytes of work done and their rounding; None if the source does not have them.

    One-stage dialects work as they scan. In text the percentage is often finer than the bytes; in
    JSON, which has the counters of the pass, it is derived from them. The percentage of a rebuild
    is of the bytes scanned (print_rebuild_status_impl, cmd/zpool/zpool_main.c).
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
    """Return bytes done and their rounding, from the percentage if that is finer."""
    step = PERCENT_STEP * (total or 0)
    if percent is not None and total and step < rounding:
        return percent / 100 * total, step
    return float(done), rounding


def rounding_of(printed: float) -> float:
    """Return half the last digit of a printed number of bytes."""
    return units.size_resolution(units.size(printed))


def scan_reading(at: float, clock: float, scan: Scan) -> ProgressReading | None:
    """Return the progress of a scan in a sample; None if it has no counters."""
    done = issued_bytes(scan)
    if done is None:
        return None
    walked = _has_walked(scan)
    # A rebuild resumes where it was: no import makes its bytes jump (vdev_rebuild.c), but it issues
    # a whole metaslab at once.
    pass_start = scan.start if scan.function == "rebuild" else scan.pass_start
    return ProgressReading(
        at,
        clock,
        scan.state == "running",
        done[0],
        float(scan.scanned_bytes or 0),
        float(scan.processed_bytes or 0),
        pass_start,
        scan.pass_paused or 0.0,
        done[0] - scan.pass_issued if walked and scan.pass_issued is not None else None,
        not done[1],
    )


def scan_work(scan: Scan, root: Vdev) -> Work | None:
    """Return the work of a scan; None if its total or its progress is unknown."""
    done, total = issued_bytes(scan), scan.to_issue_bytes
    if done is None or total is None:
        return None
    processed = _processed(scan, done)
    rebuild = scan.function == "rebuild"
    walks = scan.two_stage and not rebuild
    return Work(
        total=_rebuild_total(scan) if rebuild else float(total),
        issued=done[0],
        processed=processed,
        share=repaired_share(scan, root) if processed else None,
        sure=rebuild,
        start=scan.start,
        walked=_has_walked(scan),
        alternates=walks and scan.stage == "scanning",
        # Only with the kernel's exact counters, and if skipped bytes are not counted as issued
        # (2.2).
        to_scan=float(scan.total_bytes or 0)
        if walks and not (scan.printed or scan.resolution) and scan.skipped_bytes is not None
        else None,
        tail=REBUILD_TAIL if rebuild else 0.0,
        resolution=done[1],
        average=scan.zpool_issue_rate if scan.two_stage else scan.zpool_scan_rate,
        averaged=_averaged(scan),
        skips=_counts_skipped(scan, root),
        verb=doing(scan),
    )


def doing(scan: Scan) -> str:
    """Return the verb for what a scan does with the blocks it found."""
    return {"resilver": "resilvering", "rebuild": "rebuilding"}.get(scan.function, "checking")


def _averaged(scan: Scan) -> float | None:
    """Return the seconds over which zpool averages its rate, from the bytes of this pass.

    Text does not contain these, but for most scans the first pass is the only one.
    """
    issues = scan.two_stage and bool(scan.zpool_issue_rate)
    rate = scan.zpool_issue_rate if issues else scan.zpool_scan_rate
    whole = scan.issued_bytes if issues else scan.scanned_bytes
    passed = scan.pass_issued if issues else scan.pass_scanned
    done = whole if passed is None else passed
    return done / rate if done is not None and rate else None


def _counts_skipped(scan: Scan, root: Vdev) -> bool:
    """Return whether the issued bytes include skipped ones, which pass as fast as they are scanned.

    This happens before 2.2, while a resilver scans: nothing is read of blocks on vdevs that are
    complete. If only one vdev holds data, a new device lacks all of them, so nothing is skipped.
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
    """Return the bytes that a scan walks and issues in total; None if unknown."""
    total = scan.total_bytes if scan.function == "rebuild" else scan.to_issue_bytes
    if not total:
        return None
    walks = scan.two_stage and scan.scanned_bytes is not None and scan.function != "rebuild"
    return Totals(float(total), float(scan.total_bytes or 0) if walks else 0.0)


def _has_walked(scan: Scan) -> bool:
    """Return whether the scan has walked all metadata."""
    return scan.two_stage and scan.stage == "issuing" and scan.function != "rebuild"


def _processed(scan: Scan, done: tuple[float, float]) -> float:
    """Return repaired bytes if they are exact enough to measure the work; else 0."""
    if scan.function not in ("resilver", "rebuild") or not scan.processed_bytes:
        return 0.0
    if not (scan.printed or scan.resolution):
        return float(scan.processed_bytes)
    rounding = rounding_of(scan.processed_bytes)
    in_issued = rounding / scan.processed_bytes * done[0]
    return float(scan.processed_bytes) if in_issued <= max(PROCESSED_SLACK, done[1]) else 0.0


def _rebuild_total(scan: Scan) -> float:
    """Return the bytes a rebuild has to issue.

    Skipped bytes (dRAID groups without the device) count as scanned only; the rest is assumed to be
    skipped in the same proportion.
    """
    total = float(scan.total_bytes or 0)
    if not scan.scanned_bytes or scan.issued_bytes is None:
        return total
    ahead = total - scan.scanned_bytes
    return scan.issued_bytes + ahead * min(1.0, scan.issued_bytes / scan.scanned_bytes)


def repaired_share(scan: Scan, root: Vdev) -> float | None:
    """Return bytes repaired per byte issued, from the one top-level vdev that the scan works on.

    Issued bytes count allocated bytes with parity (dsl_scan.c, ``count_block``), once for all sides
    of a mirror; repaired bytes count what was written to each leaf (vdev.c, ``vdev_stat_update``).
    None if several top-level vdevs are worked on, or for other kinds.
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
    """Return the share for dRAID groups that a rebuild does not skip: those with the failed device.

    A distributed spare is on the other devices, which are therefore written to as well.
    """
    filling = sum(x.resilvering for group in top.children if group.children for x in group.leaves())
    if not filling or not top.data_disks or not parity(top):
        return None
    return filling / (top.data_disks + parity(top))


def copied_bytes(activity: Activity) -> tuple[float, float] | None:
    """Return bytes an activity has done and their rounding; None if the source lacks them."""
    if activity.done_bytes is None:
        return None
    given = (activity.done_bytes, activity.percent, activity.total_bytes, activity.resolution)
    return _finest(*given)


def activity_work(activity: Activity) -> Work | None:
    """Return the work of an activity; None if it is unknown."""
    done, total, average = copied_bytes(activity), activity.total_bytes, activity.zpool_rate
    if done is None or total is None:
        return None
    return Work(
        total=float(total),
        issued=done[0],
        start=activity.start,
        resolution=done[1],
        average=average,
        averaged=activity.done_bytes / average if activity.done_bytes and average else None,
        verb="moving",
        ends_at_total=False,
        least_seconds=TWO_GROUPS,
    )


class CurvePoint(NamedTuple):
    """Counters summed over every continuous stretch watched, against running seconds."""

    x: float
    """Seconds of work since the first sample."""
    t: float
    issued: float
    scanned: float
    processed: float


class ProgressCurve:
    """Points of one scan, oldest first; breaks in the counters are bridged, never counted."""

    def __init__(
        self,
        points: Iterable[CurvePoint] = (),
        last: ProgressReading | None = None,
        goes_on: bool = False,
    ) -> None:
        """``goes_on`` means that more readings come, so that the first need not give an end."""
        self.goes_on = goes_on
        self.points: list[CurvePoint] = list(points)
        self.last = last if self.points else None
        self._remembered = self.last is not None
        """True if ``last`` is from an earlier run, whose clock does not apply now."""
        self.moved_at = self.points[-1].x if self.points else 0.0
        """Running seconds at which a counter last moved."""

    def add(self, reading: ProgressReading) -> bool:
        """Add a sample; return whether the counters or the clock broke since the last one."""
        if not all(0 <= n < SANE for n in (reading.issued, reading.scanned, reading.processed)):
            return False
        last = self.last
        if last is None:
            self.last = reading
            self.points = [
                CurvePoint(0.0, reading.t, reading.issued, reading.scanned, reading.processed)
            ]
            return False
        # A source that is sometimes exact usually is so again: skip rounded readings in between,
        # and measure over both intervals.
        coarser = last.exact and reading.exact is False and last.running and reading.running
        if coarser and 0 <= self._since(last, reading) < STANDSTILL:
            return False
        walked = _walked(last, reading, self._since(last, reading))
        if walked is None:
            return self._append(last, reading, last.pass_start != reading.pass_start)
        broken = self._append(last, walked, False)
        return self._append(walked, reading, False) or broken

    def _since(self, last: ProgressReading, reading: ProgressReading) -> float:
        return reading.t - last.t if self._remembered else reading.clock - last.clock

    def _append(self, last: ProgressReading, reading: ProgressReading, imported: bool) -> bool:
        seconds = self._since(last, reading)
        # A sample seen twice, or one that another console had already saved.
        if seconds == 0 or (self._remembered and -BESIDE < seconds < 0):
            return False
        self.last, self._remembered = reading, False
        steps = (
            reading.issued - last.issued,
            reading.scanned - last.scanned,
            reading.processed - last.processed,
        )
        # Rounded and exact bytes differ by a constant, which is not work.
        other = None not in (last.exact, reading.exact) and last.exact != reading.exact
        leapt = min(steps[:2]) < 0 or self._jumped(last, reading, seconds)
        broken = seconds < 0 or (leapt and not other)
        if broken or other or not (last.running and reading.running):
            seconds, steps = 0.0, (0.0, 0.0, 0.0)
        seconds = max(0.0, seconds - max(0.0, reading.paused - last.paused))
        worked = self._worked(seconds, steps, imported)
        old, processed = self.points[-1], max(0.0, steps[2])
        moved = (old.issued + steps[0], old.scanned + steps[1], old.processed + processed)
        point = CurvePoint(old.x + worked, reading.t, *moved)
        self.moved_at = point.x if max(steps) > 0 else self.moved_at - (seconds - worked)
        if worked == 0:
            self.points[-1] = point
        else:
            self.points.append(point)
        if len(self.points) > MAX_POINTS:
            self.points = thinned(self.points)
        return broken

    def _worked(self, seconds: float, steps: tuple[float, float, float], imported: bool) -> float:
        """Return seconds of work between two samples: fewer for a hole in which little was done.

        In that case the clock was set, or the machine or the pool stood still, which says nothing
        about the speed. ``imported`` means that a new pass has begun, as it does when a pool is
        imported again.
        """
        least = 0.0 if imported else STANDSTILL
        if len(self.points) < 2 or seconds < max(least, HOLE_INTERVALS * self._interval):
            return seconds
        first, last, watched = self.points[0], self.points[-1], self.seconds
        usual = ((last.issued - first.issued), (last.scanned - first.scanned))
        if not imported and any(s > 0 >= u for s, u in zip(steps, usual, strict=False)):
            return seconds  # work of a kind not seen before
        shares = [s * watched / (u * seconds) for s, u in zip(steps, usual, strict=False) if u > 0]
        share = max(shares, default=1.0)
        most = IMPORT_SHARE if imported else STANDSTILL_SHARE
        return share * seconds if share < most else seconds

    @property
    def _interval(self) -> float:
        """Mean time between two points."""
        return self.seconds / (len(self.points) - 1)

    def _jumped(self, last: ProgressReading, reading: ProgressReading, seconds: float) -> bool:
        """Return whether bytes jumped across a hole in the sampling, as they do on import.

        The kernel then counts as issued what its last checkpoint had walked (dsl_scan.c,
        ``dsl_scan_init``) and begins a pass. It also begins one when the metadata walk is complete
        (2.1.12 and later), so a new pass alone is not a jump.
        """
        if last.pass_start is not None and last.pass_start == reading.pass_start:
            return False
        if len(self.points) < 3 or seconds < HOLE_INTERVALS * self._interval:
            return False
        usual = (self.points[-1].issued - self.points[0].issued) / self.seconds
        return 0 < LEAP_FACTOR * usual * seconds < reading.issued - last.issued

    @property
    def seconds(self) -> float:
        """Running seconds watched."""
        return self.points[-1].x - self.points[0].x if self.points else 0.0

    @property
    def idle(self) -> float:
        """Running seconds since a counter last moved."""
        return self.points[-1].x - self.moved_at if self.points else 0.0


def _walked(
    last: ProgressReading, reading: ProgressReading, seconds: float
) -> ProgressReading | None:
    """Return the reading at the end of the metadata walk, if that lies between two distant samples.

    A new pass begins at that moment (dsl_scan_sync, module/zfs/dsl_scan.c, 2.1.12 and later). A
    mean over walking and issuing would be the speed of neither.
    """
    if reading.before is None or reading.pass_start is None or last.scanned >= reading.scanned:
        return None
    ago = reading.t - reading.pass_start
    if not (last.running and reading.running and seconds >= STANDSTILL and 0 < ago < seconds):
        return None
    issued = min(reading.issued, max(last.issued, reading.before))
    moved = reading.issued - last.issued
    share = (issued - last.issued) / moved if moved > 0 else 0.0
    return reading._replace(
        t=reading.pass_start,
        clock=reading.clock - ago,
        issued=issued,
        processed=last.processed + share * (reading.processed - last.processed),
        paused=0.0,
    )


def thinned(points: list[CurvePoint]) -> list[CurvePoint]:
    """Thin out older points, evenly over the whole time; the first and the newest stay."""
    old, new = points[:-RECENT_POINTS], points[-RECENT_POINTS:]
    part = 1 / 1024
    while len(kept := _apart(old, new[-1].x, part)) > OLDER_POINTS:
        part *= 2
    return kept + new


def _apart(points: Sequence[CurvePoint], now: float, part: float) -> list[CurvePoint]:
    """Keep only points needed to avoid holes longer than a part of the whole, or of their age."""
    kept = [points[0]]
    for point, after in pairwise(points):
        most = part * min(now - points[0].x, NEARER * (now - point.x))
        if point is not kept[-1] and after.x - kept[-1].x > most:
            kept.append(point)
    return [*kept, points[-1]]
