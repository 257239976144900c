"""The scans of one pool over time: which follows which, and why.

``ScanTracker`` keeps the newest scan of every slot of the kernel as a ``ScanTrack``: its course,
restarts and follow-on passes, rates, stage and estimate, as far as it was watched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import pairwise
from math import inf

from zconsole import units
from zconsole.pool.model import Event, Sample, Scan, Vdev
from zconsole.pool.redundancy import is_complete
from zconsole.pool.scan_outcome import same_scan, scan_notes, skipped_devices, started
from zconsole.timeline.eta.estimate import (
    MEASURING,
    PAST_TOTAL,
    SUSPENDED,
    Estimate,
    Forecast,
    forecast,
    nothing,
    ranged,
)
from zconsole.timeline.eta.pace import EVEN, Daily
from zconsole.timeline.eta.past import (
    Comparison,
    PastScan,
    RunningCourse,
    choose_past,
    combined,
    past_scan,
    predict_both,
    running_seconds,
    which,
)
from zconsole.timeline.eta.progress import (
    ProgressCurve,
    ProgressReading,
    doing,
    issued_bytes,
    rounding_of,
    scan_reading,
    scan_totals,
    scan_work,
)
from zconsole.timeline.eta.windows import ROUNDINGS
from zconsole.timeline.events import restart_cause
from zconsole.timeline.frame import RESTARTED, ScanView, work_name
from zconsole.timeline.scan_rate import (
    RECENT,
    KnownChange,
    PastRates,
    PastRecorder,
    PresentRate,
    alternating_rate,
    present_rate,
    rate_lag,
)
from zconsole.timeline.scrubs import is_full_scrub

WORDS = {"rebuild": "sequential rebuild", "errorscrub": "error scrub"}
ABORTED = ("scan aborted",)
DEFERRED = ("starting deferred resilver",)
"""Beginnings of internal history records (dsl_scan.c)."""
MOST_PAST, MOST_ALIKE = 16, 3
"""Finished scans kept in total, and per function and vdev."""


class ScanTracker:
    """Tracks the newest scan of every slot from sample to sample."""

    def __init__(self, tz: tzinfo, goes_on: bool = False) -> None:
        """``goes_on`` is True if more than one sample is taken."""
        self._tz = tz
        self._goes_on = goes_on
        self._tracks: dict[str, ScanTrack] = {}
        self._waiting: tuple[str, ...] = ()
        """Names of the leaves that waited for another resilver in the last sample."""
        self.past: tuple[PastScan, ...] = ()
        """Finished scans and their courses, newest first, used to predict the next ones."""
        self.over_since: float | None = None
        """Epoch seconds since when no scan runs; None while one runs or is paused."""
        self._last: float | None = None

    @property
    def tracks(self) -> tuple[ScanTrack, ...]:
        """The newest track of every slot."""
        return tuple(self._tracks.values())

    def restore(self, track: ScanTrack) -> None:
        """Resume a stored scan."""
        self._tracks[scan_slot(track.scan)] = track

    def push(
        self, sample: Sample, recent: Sequence[Event]
    ) -> tuple[list[Event], tuple[ScanView, ...]]:
        """Add a sample and recent events; return events for what scans did, and a view of each.

        Views are in the order of the sample's scans.
        """
        events: list[Event] = []
        # Follow rebuilds when their vdevs are renamed, which happens as devices leave.
        rebuilds = [scan for scan in sample.pool.scans if scan.function == "rebuild"]
        shown = {scan.vdev for scan in rebuilds} | {top.name for top in sample.pool.root.children}
        for scan in rebuilds:
            for place, followed in list(self._tracks.items()):
                known = followed.scan
                is_same = (known.function, known.start) == (scan.function, scan.start)
                if is_same and known.vdev not in shown:
                    followed.scan = known._replace(vdev=scan.vdev)
                    self._tracks[scan_slot(scan)] = self._tracks.pop(place)
        for scan in reversed(sample.pool.scans):  # oldest first: a newer one takes its slot
            slot = scan_slot(scan)
            track = self._tracks.get(slot)
            if track is not None and same_scan(track.scan, scan):
                events += _changes(sample.t, track.scan, scan)
                if track.scan.active:
                    self.learn(track.finished(sample, scan))
            elif scan.function == "none" or (track and not _is_later(scan, track.scan)):
                continue
            else:
                track, begun = self._open(sample, scan, track, recent)
                self._tracks[slot] = track
                events += begun
            track.add(sample, scan, self._clock(sample.t), self.past)
        if any(scan.active for scan in sample.pool.scans):
            self.over_since = None
        elif self.over_since is None or sample.t < self.over_since:  # or the clock was set back
            self.over_since = sample.t
        leaves = sample.pool.root.leaves()
        self._waiting = tuple(leaf.name for leaf in leaves if leaf.awaiting_resilver)
        self._last = sample.t
        views = []
        for scan in sample.pool.scans:
            track = self._tracks.get(scan_slot(scan))
            if track is None or not same_scan(track.scan, scan):  # a newer one has its slot
                track = ScanTrack(scan)
            views.append(track.view(sample, scan))
        return events, tuple(views)

    def shift(self, seconds: float) -> None:
        """Shift the times of past rates: the clock was set by so many seconds."""
        for track in self._tracks.values():
            track.rates.shift(seconds)

    def _open(
        self, sample: Sample, scan: Scan, before: ScanTrack | None, recent: Sequence[Event]
    ) -> tuple[ScanTrack, list[Event]]:
        """Create the track of a new scan: found running, started, restarted, or a next pass."""
        course = ProgressCurve(goes_on=self._goes_on)
        track = ScanTrack(scan, course, restarts=self._known(sample, scan))
        self.learn(track.finished(sample, scan))
        if before is None and self._last is None:
            return track, []
        name, severity, text = f"{scan.function}_start", "info", "started"
        if before is not None and _interrupted(before, scan, sample.t, recent):
            if before.scan.function == scan.function:
                name, severity = f"{scan.function}_restart", "warning"
                text = f"{RESTARTED}{self._clock(scan.start)}{restart_cause(recent, sample.t)}"
                track.restarts = (before.restarts or 0) + 1
                track.notes = [text, *before.notes]
                track.go_on(before, scan.start or sample.t, "restart")
            else:
                text = f"replaced the {_word(before.scan)} at {self._clock(scan.start)}"
                track.notes = [text]
        elif before is not None and self._waiting and scan.function == "resilver":
            names, more = ", ".join(self._waiting[:3]), len(self._waiting) - 3
            names += f" and {more} more" if more > 0 else ""
            text = f"follow-on pass since {self._clock(scan.start)} for {names}"
            track.notes = [text]
            track.go_on(before, scan.start or sample.t, "next pass")
        begun = started(scan) or (sample.t if scan.active else None)
        words = f"{_word(scan)} {text}"
        events = [Event(begun, name, words, severity, scan.vdev, "console")] if begun else []
        if not scan.active:  # it had ended before it was seen
            events += _changes(sample.t, scan._replace(state="running"), scan)
        return track, events

    def learn(self, past: PastScan | None) -> None:
        """Keep a finished scan, limited to the newest few of each kind."""
        if past is None:
            return
        again = [known for known in self.past if known.is_same(past)]
        best = max((*again, past), key=lambda known: known.watched)
        others = [known for known in self.past if known not in again]
        newest = sorted((*others, best), key=lambda known: -known.start)
        kinds = [(known.function, known.vdev) for known in newest]
        kept = [k for n, k in enumerate(newest) if kinds[:n].count(kinds[n]) < MOST_ALIKE]
        self.past = tuple(kept[:MOST_PAST])

    def _known(self, sample: Sample, scan: Scan) -> int | None:
        """Return 0 if the scan was watched from its start; None if it may have restarted before."""
        if scan.start is None:
            return 0 if self._last is not None else None
        seen = self._last is not None and scan.start >= self._last - FROM_START
        return 0 if seen or sample.t - scan.start <= FROM_START else None

    def _clock(self, at: float | None) -> str:
        return "" if at is None else datetime.fromtimestamp(at, self._tz).strftime("%H:%M")


def _is_later(scan: Scan, known: Scan) -> bool:
    """Return whether a scan runs, or is finished and later than another one."""
    if scan.active or scan.end is None or known.end is None:
        begun = started(scan) or scan.end or 0.0
        return scan.active or begun > (started(known) or 0.0)
    return scan.end > known.end


def _interrupted(before: ScanTrack, scan: Scan, at: float, recent: Sequence[Event]) -> bool:
    """Return whether ``scan`` took over from one that was neither finished nor canceled.

    A restart sets a new start time within the same transaction group (dsl_scan.c,
    ``dsl_scan_restart_resilver``), so the end of the earlier scan is never visible; the pool's
    history events report it directly, if they may be read.
    """
    if not before.scan.active or not scan.active or before.scan.start is None:
        return False
    last = before.course.last
    since = last.t if last is not None else at
    known = [e.text for e in recent if e.t >= since - 1 and e.text.startswith(ABORTED + DEFERRED)]
    if known:
        return known[-1].startswith(ABORTED)
    return not ended_unseen(before, max(0.0, (scan.start or at) - since))


def _changes(at: float, old: Scan, new: Scan) -> Iterator[Event]:
    """Yield an event for a scan that paused, resumed, finished or was canceled."""
    if old.state == new.state:
        return
    verbs = {
        "paused": ("pause", "info"),
        "running": ("resume", "info"),
        "finished": ("finish", "warning" if new.errors else "info"),
        "canceled": ("canceled", "warning"),
    }
    if new.state not in verbs:
        return
    verb, severity = verbs[new.state]
    done = "resumed" if new.state == "running" else new.state
    failed = new.errors if new.state == "finished" else 0
    text = f"{_word(new)} {done}" + (f" with {units.counted(failed, 'error')}" if failed else "")
    yield Event(new.end or at, f"{new.function}_{verb}", text, severity, new.vdev, "console")


def _word(scan: Scan) -> str:
    return work_name(WORDS.get(scan.function, scan.function), scan.vdev)


STALL_SECONDS = 60.0
"""A dozen transaction groups without a byte."""
FROM_START = 30.0
"""Seconds; a scan first seen this soon after its start counts as watched from its start."""
FRESH_SECONDS, FRESH_SHARE, FRESH_SEEN = 30.0, 0.01, 0.05
"""Limits of how long a forecast, which takes milliseconds, is only counted down: seconds, share of
the predicted time, and share of the time watched."""
STAGE_SECONDS = 3.0
"""Seconds over which counters are compared to find the stage; at least to the previous sample."""
ENDED_SHARE = 0.98
"""Share issued from which a scan that is gone is assumed to have finished."""
FINAL = (PAST_TOTAL, SUSPENDED)
"""Reasons for no estimate that an earlier scan does not change."""
SORT_MEMORY = "zfs_scan_mem_lim_fact"
"""Tunable that determines how long an alternating scan walks, and then issues."""
MAX_NOTES = 8
"""Notes kept per scan."""
MARKED_TUNABLES = 2
"""If more tunables change at once, only the number is marked: a preset sets many."""


def scan_slot(scan: Scan) -> str:
    """Identify where the kernel stores a scan; a new scan replaces the previous one in its slot."""
    if scan.function == "rebuild":
        return f"rebuild:{scan.vdev or ''}"
    return "errorscrub" if scan.function == "errorscrub" else "scan"


class ScanTrack:
    """One scan (function, vdev, start) as far as it was watched."""

    def __init__(
        self,
        scan: Scan,
        course: ProgressCurve | None = None,
        restarts: int | None = None,
        notes: Sequence[str] = (),
        past: PastRates | None = None,
    ) -> None:
        self.scan = scan
        self.rates = PastRecorder(past)
        """Issue rate since it began, with marks; includes the scan that this one restarts."""
        self._tunables: Mapping[str, int] = {}
        self._resized = -inf
        """Running seconds at which SORT_MEMORY changed."""
        self.course = ProgressCurve() if course is None else course
        self._known = KnownChange(self.rates.past.tuned, self.course.points)
        self.restarts = restarts
        self.notes = list(notes)
        """Newest first."""
        self.forecast = Forecast(nothing("no estimate yet: 1 sample"))
        self._computed, self._computed_at = self.forecast, -inf
        """The last forecast that was computed, not just counted down, and the clock of its
        sample."""
        self.scan_rate: float | None = None
        self._present: PresentRate | None = None
        self.comparison: Comparison | None = None
        self.lag = ""
        self._until_paused: Estimate | None = None
        """The last estimate before it was paused; None while it runs, or if that was not seen."""

    def add(self, sample: Sample, scan: Scan, when: str, known: Sequence[PastScan] = ()) -> None:
        """Add one sample of this scan; ``when`` is its clock time in words.

        ``known`` are finished scans of the pool, used to predict this one.
        """
        changed = self._mark_changes(sample, scan)
        other_source = self.scan.printed != scan.printed  # its counters are rounded differently
        self.scan = scan
        reading = scan_reading(sample.t, sample.clock, scan)
        if not scan.active:
            return
        if reading is None:
            blocks = scan.function == "errorscrub"
            lacking = "progress" if scan.percent is None else "number of bytes done"
            uncounted = "counts blocks, not bytes" if blocks else f"the {lacking} is unknown"
            why = "paused" if scan.state == "paused" else f"no estimate: {uncounted}"
            self.forecast = Forecast(nothing(why))
            return
        before = self.course.last
        broken = self.course.add(reading)
        if broken and before is not None and not other_source:
            cause = _cause(before, reading)
            moved = f"from {units.size(before.issued)} to {units.size(reading.issued)} issued"
            self.notes = [f"{cause} by {when}: {moved}", *self.notes][:MAX_NOTES]
        age = sample.clock - self._computed_at
        share = FRESH_SHARE * (self._computed.estimate.eta or 0.0)
        fresh = min(FRESH_SECONDS, share, FRESH_SEEN * self.course.seconds)
        # If a reading was skipped because it is rounded, keep the estimate, too.
        held = self.course.last is before and reading.exact is False
        if broken or changed or sample.pool.suspended or (age >= fresh and not held):
            self._forecast_anew(sample, scan, known)
        else:
            self.forecast = self._computed.later(age)
        self._add_rates(sample, scan)

    def go_on(self, before: ScanTrack, at: float, why: str) -> None:
        """Take over the rates of the scan that this one follows, with a mark at ``at``."""
        self.rates = before.rates
        self.rates.mark(at, why)

    def _mark_changes(self, sample: Sample, scan: Scan) -> bool:
        """Mark a pause, a resume, the end of the metadata walk, and changed tunables.

        Returns whether the state, the stage or a tunable changed.
        """
        old, known = self.scan, self._tunables
        self._tunables = {**known, **sample.tunables}
        if not scan.active:
            return False
        if old.state != scan.state:
            pauses = scan.state == "paused"
            self.rates.mark(sample.t, "paused" if pauses else "resumed")
            self._until_paused = self.forecast.estimate if pauses else None
        if (old.stage, scan.stage) == ("scanning", "issuing"):
            self.rates.mark(sample.t, doing(scan))
        changed = [f"{n}={v}" for n, v in sample.tunables.items() if known.get(n, v) != v]
        if changed:
            self._known.add(known, self._tunables)
            if known.get(SORT_MEMORY) != self._tunables.get(SORT_MEMORY):
                self._resized = self.course.points[-1].x if self.course.points else -inf
            many = len(changed) > MARKED_TUNABLES
            text = f"{len(changed)} tunables changed" if many else ", ".join(changed)
            self.rates.mark(sample.t, text)
        return bool(changed) or (old.state, old.stage) != (scan.state, scan.stage)

    @property
    def _issue_rate(self) -> float | None:
        """Bytes/s now, else the rate of the estimate; None while the scan does not run."""
        if self._present is not None:
            return self._present.rate
        rate = self.forecast.rate
        return (
            rate if rate is not None or self.scan.state != "running" else self.scan.zpool_issue_rate
        )

    def _add_rates(self, sample: Sample, scan: Scan) -> None:
        """Measure the rates of now, and how the present one contradicts the estimate."""
        done, total, points = issued_bytes(scan), scan.to_issue_bytes, self.course.points
        self.scan_rate, window = scan.zpool_scan_rate, self.forecast.window
        if window is not None and len(points) >= 2:
            old = next((p for p in points if p.x >= points[-1].x - window), points[0])
            seconds, moved = points[-1].x - old.x, max(0.0, points[-1].scanned - old.scanned)
            rounding = rounding_of(scan.scanned_bytes or 0) if scan.printed else 0.0
            # Printed bytes stand still for minutes, then jump: then zpool's average is better.
            if not rounding or moved >= ROUNDINGS * 2 * rounding:
                self.scan_rate = moved / seconds if seconds > 0 else None
        # Without a present rate, that of the estimate, or zpool's, is shown.
        self._present = None
        if scan.state == "running" and done is not None and scan.stage == "scanning":
            self._present = alternating_rate(points, done[1])
        elif scan.state == "running" and done is not None:
            walks = scan.two_stage and scan.function != "rebuild"
            self._present = present_rate(points, walks, done[1], self._known.newest)
        # A paused scan issues nothing, nor does one whose walk has not yet found blocks.
        idle = scan.state == "paused" or scan.stage == "scanning"
        rate = self._issue_rate
        self.rates.add(sample.t, 0.0 if rate is None and idle else rate)
        was_told, self.lag = bool(self.lag), ""
        # While metadata is walked, time is spent on more than the bytes left to issue.
        if self._present and scan.stage != "scanning" and done is not None and total is not None:
            left, eta = total - done[0], self.forecast.estimate.eta
            self.lag = rate_lag(self._present.rate, left, eta, self.rates.past, was_told)
            # A known change may last: the range includes the end that the lag names.
            if self.lag and self._known.is_recent(points[-1].x):
                estimate = self.forecast.estimate.including(left / self._present.rate)
                self.forecast = self.forecast._replace(estimate=estimate)

    def finished(self, sample: Sample, scan: Scan) -> PastScan | None:
        """Return the finished scan's course, to predict later ones, if ``scan`` is finished."""
        ran, totals, last = self.scan, scan_totals(self.scan), self.course.last
        if scan.state != "finished" or totals is None or ran.start is None or scan.end is None:
            return None
        # A partial scrub prunes what is older than its range, without counting it as skipped.
        if scan.function == "scrub" and not is_full_scrub(scan, sample.version):
            return None
        key, end = (ran.function, ran.vdev, ran.start), scan.end
        if last is not None and 0 < last.clock <= sample.clock:  # even if the clock was set
            end = last.t + max(0.0, sample.clock - last.clock - (sample.t - end))
        return past_scan(key, end, self.course.points, totals, scan.pass_paused or 0.0)

    def _forecast_anew(self, sample: Sample, scan: Scan, known: Sequence[PastScan]) -> None:
        usual = self._forecast(sample, scan, known)
        work = scan_work(scan, sample.pool.root) if scan.state == "running" else None
        self.forecast = self._known.follow(usual, self.course, work)
        if work is not None and work.alternates and self._walks_longer():
            reason = f"{MEASURING}, the memory to sort in has changed"
            self.forecast = self.forecast._replace(estimate=nothing(reason))
        shown, told = self.forecast.estimate.eta, usual.estimate.eta
        if self.comparison is not None and told is not None and shown is not None:
            ahead = self.comparison.ahead + told - shown  # relative to the estimate that is shown
            self.comparison = self.comparison._replace(ahead=ahead)
        self._computed, self._computed_at = self.forecast, sample.clock

    def _walks_longer(self) -> bool:
        """Return whether it has walked more than issued since its memory changed, lately.

        Its first walk then lasts longer, or shorter, than those that the estimate is based on.
        """
        since = [p for p in self.course.points if p.x >= self._resized]
        if self._resized == -inf or not since or since[-1].x - since[0].x > RECENT:
            return False
        issuing = sum(b.x - a.x for a, b in pairwise(since) if b.issued > a.issued)
        return issuing <= (since[-1].x - since[0].x) / 2

    def _forecast(self, sample: Sample, scan: Scan, known: Sequence[PastScan]) -> Forecast:
        """Forecast from the scan's own course, and from the course of an earlier scan."""
        totals = scan_totals(scan)
        past = choose_past(known, scan.function, scan.vdev, totals) if totals else None
        own = self._own_forecast(sample, scan, EVEN if past is None else Daily(past.pace))
        self.comparison = None
        if scan.state != "running" or not sample.dated or own.estimate.reason in FINAL:
            return own
        if past is None or totals is None or scan.start is None or not self.course.points:
            return own
        done = issued_bytes(scan)
        ran = running_seconds(self.course.points, scan.start, scan.pass_paused or 0.0)
        rounding = done[1] if done else 0.0
        seen = RunningCourse(scan.function, self.course.points, totals, ran, rounding)
        told = predict_both(past, seen, own.daily)
        is_last = all(past.start >= each.start for each in known if each.function == past.function)
        if not told:
            # Nothing is issued yet: only tell how long the earlier scan took.
            if done is None or done[0] > 0:
                return own
            took = f"{which(past.function, is_last)} took {units.duration(past.seconds)}"
            return own._replace(estimate=nothing(f"{took}; {own.estimate.reason}"))
        eta, spread = combined(told, own)
        ahead = past.seconds - (seen.elapsed + eta)
        self.comparison = Comparison(past.function, past.seconds, ahead, seen.function, is_last)
        reason = f"{self.comparison.words}; {own.estimate.reason}"
        return own._replace(estimate=ranged(eta, spread, reason))

    def _own_forecast(self, sample: Sample, scan: Scan, day: Daily) -> Forecast:
        """Forecast from the scan's own course alone, or give the reason for no estimate."""
        work = scan_work(scan, sample.pool.root)
        if sample.pool.suspended:
            why = SUSPENDED
        elif scan.state == "paused":
            why = "paused"
        elif work is None:
            why = "no estimate: the total is unknown"
        elif work.issued <= 0:
            walks = scan.stage == "scanning" and scan.function != "rebuild"
            why = f"{'finding blocks, ' if walks else ''}nothing issued yet"
        # Rates of a pass are computed at the time of the sample, which saved JSON lacks.
        elif not sample.dated and scan.pass_start is not None:
            why = "no estimate: the time it was saved is unknown"
        else:
            return forecast(self.course, work, day)
        return Forecast(nothing(why))

    def view(self, sample: Sample, scan: Scan) -> ScanView:
        """Return the view of the scan."""
        over = scan.state if scan.state in ("finished", "canceled") else "no scan running"
        shown = self.forecast if scan.active else Forecast(nothing(over))
        lag = self.lag or self._known.followed if scan.state == "running" else ""
        if lag:
            why = f"{lag}; {shown.estimate.reason}"
            shown = shown._replace(estimate=shown.estimate._replace(reason=why))
        stalled, idle = None, self.course.idle
        if scan.state == "running" and idle >= STALL_SECONDS:
            rate, done = self.forecast.rate, issued_bytes(scan)
            rounding = done[1] if done else 0.0
            # Rounded bytes may hide progress for as long as a few last digits take.
            hidden = 4 * rounding / rate if rate else inf if rounding else 0.0
            stalled = idle if idle > hidden else None
        if stalled is not None:
            why = f"stalled: no progress for {units.duration(stalled)}"
            shown = shown._replace(estimate=shown.estimate._replace(reason=why))
        running = scan.state == "running" and not sample.pool.suspended
        return ScanView(
            scan=scan,
            key=f"scan:{scan.function}:{scan.vdev or ''}",
            stage=self.stage(sample, scan),
            percent=scan.percent,
            scan_rate=self.scan_rate if running else None,
            issue_rate=self._issue_rate if scan.active and not sample.pool.suspended else None,
            window=shown.window if self._present is None else self._present.seconds,
            estimate=shown.estimate,
            restarts=self.restarts,
            stalled=stalled,
            full=_to_full(sample.pool.root, scan, shown) if running else None,
            full_redundancy=_owes_redundancy(sample.pool.root, scan),
            notes=(*self.notes, *scan_notes(sample.pool.root, scan)),
            past=self.rates.past,
            comparison=self.comparison if running else None,
            lag=lag if stalled is None else "",
            until_paused=self._until_paused,
        )

    def stage(self, sample: Sample, scan: Scan) -> str | None:
        """Return the sample's stage; if a live, exact source sees both alternate, the active one.

        A scan at its memory limit (``zfs_scan_mem_lim_fact``) stops scanning metadata to issue what
        it has sorted, then continues. Without recent progress, it is the last active stage.
        """
        live = sample.exact and sample.source != "replay"
        points = self.course.points
        if scan.stage != "scanning" or not live or len(points) < 2:
            return scan.stage
        newest_first = [(points[n - 1], points[n], n) for n in range(len(points) - 1, 0, -1)]
        moved = (n for a, b, n in newest_first if b.issued > a.issued or b.scanned > a.scanned)
        last = next(moved, 1)
        least = points[-1].x - STAGE_SECONDS
        old = next((p for p in points[:last] if p.x >= least), points[last - 1])
        issues, scans = points[last].issued > old.issued, points[last].scanned > old.scanned
        return "issuing" if issues and not scans else scan.stage


def _cause(before: ProgressReading, reading: ProgressReading) -> str:
    """Return why a course broke between two readings, in words."""
    if reading.pass_start != before.pass_start:
        return "the pool was imported again"
    if reading.issued < before.issued:
        return "counters fell"
    return "the clock was set back" if reading.clock < before.clock else "counters jumped"


def _owes_redundancy(root: Vdev, scan: Scan) -> bool:
    """Return whether a device waits for another pass that replaces none that is whole."""
    replacing = (v for v in root.walk() if v.kind == "replacing" and is_complete(v))
    spared = {new.name for vdev in replacing for new in vdev.children[1:]}
    return not spared.issuperset(_waiting(root, scan))


def _waiting(root: Vdev, scan: Scan) -> list[str]:
    """Return the names of the devices that wait for another pass."""
    deferred = [leaf.name for leaf in root.leaves() if leaf.awaiting_resilver]
    return [*deferred, *skipped_devices(root, scan)]


def _to_full(root: Vdev, scan: Scan, shown: Forecast) -> Estimate | None:
    """Estimate the time until the devices are filled that wait for a further, whole pass."""
    waiting = len(_waiting(root, scan))
    estimate, total = shown.estimate, scan.to_issue_bytes
    if not waiting or scan.function != "resilver" or not shown.rate or total is None:
        return None
    if estimate.eta is None or estimate.high is None or estimate.low is None:
        return None
    further = total / shown.rate
    factor = max(1.0, estimate.high / estimate.eta) if estimate.eta > 0 else 2.0
    devices = "1 device waits" if waiting == 1 else f"{waiting} devices wait"
    reason = f"{devices} for another full pass, {units.duration(further)} at the current rate"
    return Estimate(
        estimate.eta + further,
        estimate.low + further / factor,
        estimate.high + further * factor,
        reason,
    )


def ended_unseen(track: ScanTrack, gap: float) -> bool:
    """Return whether a scan last seen running can have finished in the ``gap`` seconds since."""
    if track.scan.state != "running":
        return False
    eta, total = track.forecast.estimate.low, track.scan.to_issue_bytes
    done = issued_bytes(track.scan)
    share = done[0] / total if done and total else 0.0
    return share >= ENDED_SHARE or (eta is not None and eta <= gap)
