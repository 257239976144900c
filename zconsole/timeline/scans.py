"""The scans of one pool over time: which follows which, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo

from zconsole.pool.model import Event, Pool, Sample, Scan
from zconsole.pool.scan_outcome import same_scan, started
from zconsole.timeline.eta.past import PastScan
from zconsole.timeline.eta.progress import ProgressCurve
from zconsole.timeline.frame import RESTARTED, ScanView, work_name
from zconsole.timeline.scan_track import FROM_START, ScanTrack, ended_unseen, scan_slot
from zconsole.units import counted

WORDS = {"rebuild": "sequential rebuild", "errorscrub": "error scrub"}
ABORTED = ("scan aborted",)
DEFERRED = ("starting deferred resilver",)
"""Beginnings of internal history records (dsl_scan.c)."""
MOST_PAST, MOST_ALIKE = 16, 3
"""Finished scans kept in total, and per function and vdev."""
CAUSE_SECONDS = 90.0
"""Seconds before a restart within which an event may have caused it."""


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

    def push(self, sample: Sample, recent: Sequence[Event]) -> list[Event]:
        """Add a sample and recent events; return events for what scans did."""
        events: list[Event] = []
        self._rename(sample.pool)
        for scan in reversed(sample.pool.scans):  # oldest first: a newer one takes its slot
            if scan.function != "none":
                events += self._follow(sample, scan, recent)
        if any(scan.active for scan in sample.pool.scans):
            self.over_since = None
        elif self.over_since is None or sample.t < self.over_since:  # or the clock was set back
            self.over_since = sample.t
        leaves = sample.pool.root.leaves()
        self._waiting = tuple(leaf.name for leaf in leaves if leaf.awaiting_resilver)
        self._last = sample.t
        return events

    def _rename(self, pool: Pool) -> None:
        """Follow rebuilds when their vdevs are renamed, which happens as devices leave."""
        rebuilds = [scan for scan in pool.scans if scan.function == "rebuild"]
        shown = {scan.vdev for scan in rebuilds} | {top.name for top in pool.root.children}
        for scan in rebuilds:
            for slot, track in list(self._tracks.items()):
                known = track.scan
                is_same = (known.function, known.start) == (scan.function, scan.start)
                if is_same and known.vdev not in shown:
                    track.scan = known._replace(vdev=scan.vdev)
                    self._tracks[scan_slot(scan)] = self._tracks.pop(slot)

    def shift(self, seconds: float) -> None:
        """Shift the times of past rates: the clock was set by so many seconds."""
        for track in self._tracks.values():
            track.rates.shift(seconds)

    def _follow(self, sample: Sample, scan: Scan, recent: Sequence[Event]) -> list[Event]:
        slot = scan_slot(scan)
        track = self._tracks.get(slot)
        if track is not None and same_scan(track.scan, scan):
            events = list(_changes(sample.t, track.scan, scan))
            if track.scan.active:
                self.learn(track.finished(sample, scan))
        elif track is not None and not _is_later(scan, track.scan):
            return []
        else:
            track, events = self._open(sample, scan, track, recent)
            self._tracks[slot] = track
        track.add(sample, scan, self._clock(sample.t), self.past)
        return events

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
                text = f"{RESTARTED}{self._clock(scan.start)}{cause(recent, sample.t)}"
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

    def views(self, sample: Sample) -> tuple[ScanView, ...]:
        """Return one view per scan of the sample, in the same order."""
        found = []
        for scan in sample.pool.scans:
            track = self._tracks.get(scan_slot(scan))
            if track is None or not same_scan(track.scan, scan):
                track = ScanTrack(scan)
            found.append(track.view(sample, scan))
        return tuple(found)

    def _clock(self, t: float | None) -> str:
        return "" if t is None else datetime.fromtimestamp(t, self._tz).strftime("%H:%M")


def _is_later(scan: Scan, known: Scan) -> bool:
    """Return whether a scan runs, or is finished and later than another one."""
    if scan.active or scan.end is None or known.end is None:
        begun = started(scan) or scan.end or 0.0
        return scan.active or begun > (started(known) or 0.0)
    return scan.end > known.end


def _interrupted(before: ScanTrack, scan: Scan, t: float, recent: Sequence[Event]) -> bool:
    """Return whether ``scan`` took over from one that was neither finished nor canceled.

    A restart sets a new start time within the same transaction group (dsl_scan.c,
    ``dsl_scan_restart_resilver``), so the end of the earlier scan is never visible; the pool's
    history events report it directly, if they may be read.
    """
    if not before.scan.active or not scan.active or before.scan.start is None:
        return False
    last = before.course.last
    since = last.t if last is not None else t
    known = [e.text for e in recent if e.t >= since - 1 and e.text.startswith(ABORTED + DEFERRED)]
    if known:
        return known[-1].startswith(ABORTED)
    return not ended_unseen(before, max(0.0, (scan.start or t) - since))


def cause(recent: Sequence[Event], t: float) -> str:
    """Return why a scan restarted: `` after sdc returned``; empty if no cause was seen.

    A resilver restarts when a device returns, or another is replaced or attached, or on ``zpool
    resilver`` while a device waits (vdev.c, ``vdev_online``; spa.c, ``spa_vdev_attach``).
    """
    for event in reversed(recent):
        if t - event.t > CAUSE_SECONDS or event.vdev is None:
            continue
        if event.name == "statechange" and event.text.endswith("to ONLINE"):
            return f" after {event.vdev} returned"
        if event.name == "statechange":
            return f" after {event.text}"
        if event.name == "vdev_added":
            return f" after {event.vdev} was added"
        if event.name in ("vdev.removed", "resource.fs.zfs.removed", "removed"):
            return f" after {event.vdev} was removed"
    return ""


def _changes(t: float, old: Scan, new: Scan) -> Iterator[Event]:
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
    text = f"{_word(new)} {done}" + (f" with {counted(failed, 'error')}" if failed else "")
    yield Event(new.end or t, f"{new.function}_{verb}", text, severity, new.vdev, "console")


def _word(scan: Scan) -> str:
    return work_name(WORDS.get(scan.function, scan.function), scan.vdev)
