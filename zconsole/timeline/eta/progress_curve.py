"""The course of one scan or activity: its cumulative counters over running time, bounded.

Running time leaves out pauses, exports and clock faults, so that a rate is bytes per second of
work. Recent points are all kept; older ones thin out, so that days fit in a few hundred points.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

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
        self, points: Iterable[CurvePoint] = (), last: ProgressReading | None = None
    ) -> None:
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
        steps = _steps(last, reading)
        broken = seconds < 0 or min(steps[:2]) < 0 or self._jumped(last, reading, seconds)
        if broken or not (last.running and reading.running):
            seconds, steps = 0.0, (0.0, 0.0, 0.0)
        seconds = max(0.0, seconds - max(0.0, reading.paused - last.paused))
        worked = self._worked(seconds, steps, imported)
        self._append(reading.t, worked, steps)
        if max(steps) <= 0:
            self.moved_at -= seconds - worked
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

    def _append(self, t: float, seconds: float, steps: tuple[float, float, float]) -> None:
        old = self.points[-1]
        moved = (old.issued + steps[0], old.scanned + steps[1], old.processed + max(0.0, steps[2]))
        point = CurvePoint(old.x + seconds, t, *moved)
        if max(steps) > 0:
            self.moved_at = point.x
        if seconds == 0:
            self.points[-1] = point
            return
        self.points.append(point)
        if len(self.points) > MAX_POINTS:
            self.points = thinned(self.points)

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


def _steps(last: ProgressReading, reading: ProgressReading) -> tuple[float, float, float]:
    return (
        reading.issued - last.issued,
        reading.scanned - last.scanned,
        reading.processed - last.processed,
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
