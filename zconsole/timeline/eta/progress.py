"""What a scan or activity has to do, and the course of what it has done.

``Work`` is what is left and a ``ProgressReading`` what was done by then, in the finest figures that
a sample has. ``ProgressCurve`` keeps the readings over running time, which leaves out pauses,
exports and clock faults, so that a rate is bytes per second of work. Recent points are all kept;
older ones thin out, so that days fit in a few hundred points.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from zconsole import units
from zconsole.pool.model import Activity, Scan, Vdev
from zconsole.pool.redundancy import parity
from zconsole.pool.topology import data_vdevs, is_group

MIN_SECONDS = 5.0
"""Seconds of work that have to be seen, a transaction group (``zfs_txg_timeout``): within one,
bytes come in bursts that are several times as fast, or as slow, as the devices."""
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
MAX_POINTS = 600
RECENT_POINTS = 240
"""The newest points are never thinned out: at a sample a second, four minutes."""
OLDER_POINTS = 270
"""What older ones are thinned out to; below the rest, so that it isn't done with every sample."""
NEARER = 6.0
"""Where points are older than the newest by less than 1/6 of the whole, they are the closer, the
newer they are: the last hour is looked at by windows of minutes, the first one by hours."""
HOLE_INTERVALS = 3.0
LEAP_FACTOR = 4.0
"""Bytes this many times faster than ever, across a hole in the sampling, were not worked off."""
STANDSTILL = 60.0
STANDSTILL_SHARE = 0.05
"""A hole this many seconds long, with less than this share of its usual work, was not work."""
IMPORT_SHARE = 0.5
"""The same where the pool was imported meanwhile."""
BESIDE = 10.0
"""Seconds by which what another console remembered may be ahead of a sample of ours."""
SANE = 2**60
"""Counters beyond this are the kernel's unsigned underflow, not bytes (openzfs/zfs#17990)."""


class Work(NamedTuple):
    """The work to do, and how exactly it is known; bytes and seconds."""

    total: float
    """Bytes to issue in all."""
    issued: float
    processed: float = 0.0
    """Bytes repaired or rebuilt; 0 where the source has none, or none this exact."""
    share: float | None = None
    """Bytes repaired for each byte issued, where the topology tells."""
    sure: bool = False
    """Whether ``share`` holds however far the issuing runs ahead."""
    start: float | None = None
    """Epoch seconds."""
    walked: bool = False
    """Whether the metadata walk that comes before the issuing is complete."""
    tail: float = 0.0
    """Seconds from the last byte done to the end. The transaction group that notices takes half a
    second, and the kernel writes the end in whole seconds, rounded down (``dsl_scan_done``)."""
    resolution: float = 0.0
    """Bytes of rounding in ``issued``."""
    average: float | None = None
    """Bytes/s that zpool averages over this pass."""
    averaged: float | None = None
    """Seconds of that pass; None where they are not known."""
    skips: bool = False
    """Whether ``issued`` has bytes that were skipped, so that the average says nothing."""
    ends_at_total: bool = True
    """Whether the work is over at ``total``, give or take what is written meanwhile."""
    verb: str = "resilvering"
    by_turns: bool = False
    """Whether metadata is still walked, and what that finds may be issued by turns."""
    to_scan: float | None = None
    """Bytes whose metadata is walked in all, where bytes issued meanwhile are work, too."""
    least_seconds: float = MIN_SECONDS
    """Seconds of work that have to be seen before they tell its speed."""


class Totals(NamedTuple):
    """Bytes to issue and to walk in all; ``walk`` 0 where nothing is walked first."""

    issue: float
    walk: float


class ProgressReading(NamedTuple):
    """What one sample says about the work: bytes since its start, as the source has them."""

    t: float
    clock: float
    running: bool
    issued: float
    scanned: float = 0.0
    processed: float = 0.0
    pass_start: float | None = None
    paused: float = 0.0
    """Seconds this pass has spent paused."""
    before: float | None = None
    """Bytes issued before this pass, once the metadata walk is complete; None where unknown."""
    exact: bool | None = None
    """Whether ``issued`` is not rounded; None where that is not known."""


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
    # A rebuild goes on where it was: no import makes its bytes leap (vdev_rebuild.c), but it issues
    # a metaslab at once.
    pass_start = scan.start if scan.function == "rebuild" else scan.pass_start
    return ProgressReading(
        t,
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
    """What is left of a scan; None when its total or its progress is unknown."""
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
        by_turns=walks and scan.stage == "scanning",
        # Where its counters are the kernel's, and those issued are not skipped ones (2.2).
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
    """What a scan does with the blocks it found, in words."""
    return {"resilver": "resilvering", "rebuild": "rebuilding"}.get(scan.function, "checking")


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


def _has_walked(scan: Scan) -> bool:
    """Whether it has walked all of the metadata."""
    return scan.two_stage and scan.stage == "issuing" and scan.function != "rebuild"


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
    if not filling or not top.data_disks or not parity(top):
        return None
    return filling / (top.data_disks + parity(top))


def copied_bytes(activity: Activity) -> tuple[float, float] | None:
    """Bytes an activity has done and their rounding; None when the source says nothing of it."""
    if activity.done_bytes is None:
        return None
    given = (activity.done_bytes, activity.percent, activity.total_bytes, activity.resolution)
    return _finest(*given)


def activity_work(activity: Activity) -> Work | None:
    """What is left of an activity; None when that is unknown."""
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
    """Counters summed over every unbroken stretch watched, against running seconds."""

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
        """``goes_on``: whether more readings come, so that the first one need not tell an end."""
        self.goes_on = goes_on
        self.points: list[CurvePoint] = list(points)
        self.last = last if self.points else None
        self._remembered = self.last is not None
        """Whether ``last`` is from an earlier run, whose clock says nothing now."""
        self.moved_at = self.points[-1].x if self.points else 0.0
        """Running seconds at which a counter last moved."""

    def add(self, reading: ProgressReading) -> bool:
        """Take a sample in; returns whether the counters or the clock broke since the last one."""
        if not all(0 <= n < SANE for n in (reading.issued, reading.scanned, reading.processed)):
            return False
        last = self.last
        if last is None:
            self.last = reading
            self.points = [
                CurvePoint(0.0, reading.t, reading.issued, reading.scanned, reading.processed)
            ]
            return False
        # What is exact now and then comes again, as a rule, and measures over both intervals.
        coarser = last.exact and reading.exact is False and last.running and reading.running
        if coarser and 0 <= self._since(last, reading) < STANDSTILL:
            return False
        walked = _walked(last, reading, self._since(last, reading))
        if walked is None:
            return self._take(last, reading, last.pass_start != reading.pass_start)
        broken = self._take(last, walked, False)
        return self._take(walked, reading, False) or broken

    def _since(self, last: ProgressReading, reading: ProgressReading) -> float:
        return reading.t - last.t if self._remembered else reading.clock - last.clock

    def _take(self, last: ProgressReading, reading: ProgressReading, imported: bool) -> bool:
        seconds = self._since(last, reading)
        # A sample seen twice, or one that another console had already written down.
        if seconds == 0 or (self._remembered and -BESIDE < seconds < 0):
            return False
        self.last, self._remembered = reading, False
        steps = (
            reading.issued - last.issued,
            reading.scanned - last.scanned,
            reading.processed - last.processed,
        )
        # Bytes that are rounded differ from those that are not by a constant, which is no work.
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
        """Seconds of work between two samples: a hole in which next to nothing was done has few.

        The clock was set, or the machine or the pool stood still: that says nothing of the speed.
        ``imported``: a pass has begun since, as it does when a pool is imported again.
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
        """The mean time between two points."""
        return self.seconds / (len(self.points) - 1)

    def _jumped(self, last: ProgressReading, reading: ProgressReading, seconds: float) -> bool:
        """Whether bytes leapt across a hole in the sampling, as they do on import.

        The kernel then counts as issued what its last checkpoint had walked (dsl_scan.c,
        ``dsl_scan_init``) and begins a pass. It also begins one when the metadata walk is
        complete (2.1.12 and later): a pass alone says nothing.
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
    """The moment between two samples far apart at which the walk was complete, if it was then.

    A pass begins with it (dsl_scan_sync, module/zfs/dsl_scan.c, 2.1.12 and later). Of time in
    which metadata was walked and then bytes were issued, the mean is the speed of neither.
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
    """With few enough older points, spread over all of the time; the first and the newest stay."""
    old, new = points[:-RECENT_POINTS], points[-RECENT_POINTS:]
    part = 1 / 1024
    while len(kept := _apart(old, new[-1].x, part)) > OLDER_POINTS:
        part *= 2
    return kept + new


def _apart(points: Sequence[CurvePoint], now: float, part: float) -> list[CurvePoint]:
    """Those without which a hole would be longer than a part of the whole, or of its age."""
    kept = [points[0]]
    for point, after in pairwise(points):
        most = part * min(now - points[0].x, NEARER * (now - point.x))
        if point is not kept[-1] and after.x - kept[-1].x > most:
            kept.append(point)
    return [*kept, points[-1]]
