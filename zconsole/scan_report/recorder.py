"""Collects reports of scans from frames; writes them from time to time and when a scan ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from zconsole.pool.model import Scan
from zconsole.pool.scan_outcome import same_scan
from zconsole.scan_report.devices import DeviceLog
from zconsole.scan_report.report import MOST_POINTS, Moment, ScanReport, TunableChange
from zconsole.scan_report.store import ReportStore
from zconsole.timeline.frame import Frame, ScanView
from zconsole.timeline.scrubs import is_full_scrub
from zconsole.tunables.effect import SETTLE, WINDOW, EffectSample, measure

FINEST = 1.0
"""Initial seconds between two stored moments; doubled whenever there are too many."""
GAP = 60.0
"""Seconds between two frames beyond which the time between is unknown."""
SAVE_SECONDS = 120.0

ScanKey = tuple[str, str | None, float | None]
"""See Scan.key."""


@dataclass(slots=True)
class _Ongoing:
    """The report of a running scan."""

    report: ScanReport
    devices: DeviceLog
    moments: list[Moment]
    limits: dict[str, float]
    changes: list[TunableChange]
    recent: deque[EffectSample]
    step: float = FINEST
    tunables: Mapping[str, int] | None = None
    last: float | None = None


class ReportKeeper:
    """Takes every frame; returns a report when its scan is over.

    With a store, unfinished reports continue where an earlier run stopped.
    """

    def __init__(self, store: ReportStore | None = None) -> None:
        self._store = store
        self._ongoing: dict[str, dict[ScanKey, _Ongoing]] = {}
        """By pool, then by scan."""
        self._saved: dict[str, float] = {}

    def full_scrub(self, guid: str) -> float | None:
        """See FrameKeeper."""
        return None if self._store is None else self._store.full_scrub(guid)

    def push(self, frame: Frame) -> tuple[ScanReport, ...]:
        """Take in a frame; returns the reports that are complete with it, which are written.

        Raises StateError when one cannot be written.
        """
        ongoing = self._ongoing.get(frame.pool)
        if ongoing is None:
            ongoing = self._ongoing[frame.pool] = self._unfinished(frame)
        done = () if frame.problem else tuple(_followed(ongoing, frame))
        self._write(done)
        if frame.t - self._saved.setdefault(frame.pool, frame.t) >= SAVE_SECONDS:
            self._saved[frame.pool] = frame.t
            self._write(map(_report, ongoing.values()))
        return done

    def current(self) -> tuple[ScanReport, ...]:
        """The reports so far of running scans."""
        every = (entry for ongoing in self._ongoing.values() for entry in ongoing.values())
        return tuple(map(_report, every))

    def close(self) -> None:
        """Write the reports of running scans once more. Raises StateError when that fails."""
        try:
            self._write(self.current())
        finally:
            if self._store is not None:
                self._store.close()

    def _unfinished(self, frame: Frame) -> dict[ScanKey, _Ongoing]:
        """The unfinished reports of an earlier run."""
        if self._store is None or self._store.directory is None or frame.guid is None:
            return {}
        left = self._store.unfinished(frame.guid)
        return {(r.function, r.vdev, r.start): _resumed(r) for r in left}

    def _write(self, reports: Iterable[ScanReport]) -> None:
        if self._store is not None:
            for report in reports:
                self._store.save(report)


def _followed(ongoing: dict[ScanKey, _Ongoing], frame: Frame) -> Iterator[ScanReport]:
    """Take the pool's frame into its reports; those of the scans that are over with it."""
    views = {view.scan.key: view for view in frame.scans if view.scan.start is not None}
    for key, view in views.items():
        if view.scan.active:
            entry = ongoing.get(key) or ongoing.setdefault(key, _begun(frame, view))
            _add(entry, frame, view)
    for key in [key for key in ongoing if key not in views or not views[key].scan.active]:
        if not _settling(ongoing[key], views.get(key), frame):
            yield _closed(ongoing.pop(key), views.get(key), frame)


def _closed(entry: _Ongoing, view: ScanView | None, frame: Frame) -> ScanReport:
    report = _report(entry)
    view = view or _end_of(report, frame)
    if view is None:
        return replace(report, state="restarted", end=frame.t)
    return replace(_seen(report, frame, view), end=view.scan.end or frame.t)


def _settling(entry: _Ongoing, view: ScanView | None, frame: Frame) -> bool:
    """Whether a scan has just ended and a device to replace is still there.

    Only what stays shows that nothing was restored.
    """
    if view is None:
        return False
    outcome = frame.outcome_of(view.scan)
    if not outcome.over or not outcome.left_behind:
        return False
    entry.report = replace(_seen(entry.report, frame, view), end=view.scan.end or frame.t)
    return outcome.restored is None


def _end_of(report: ScanReport, frame: Frame) -> ScanView | None:
    """The scan's own end where its start is not printed any more, as in text."""
    ran = Scan(report.function, "running", vdev=report.vdev, start=report.start)
    over = (view for view in frame.scans if not view.scan.active)
    return next((view for view in over if same_scan(ran, view.scan)), None)


def _begun(frame: Frame, view: ScanView) -> _Ongoing:
    scan = view.scan
    report = ScanReport(
        frame.pool, frame.guid, scan.function, scan.vdev, scan.start or 0.0, scan.state, frame.t
    )
    return _resumed(report)


def _resumed(report: ScanReport) -> _Ongoing:
    gaps = [b.t - a.t for a, b in zip(report.moments, report.moments[1:], strict=False)]
    step = max(FINEST, min(gaps, default=FINEST))
    kept, limits, changes = list(report.moments), dict(report.limits), list(report.changes)
    log = DeviceLog(report.devices)
    return _Ongoing(report, log, kept, limits, changes, deque(maxlen=1000), step)


def _add(entry: _Ongoing, frame: Frame, view: ScanView) -> None:
    seconds = 0.0 if entry.last is None else frame.t - entry.last
    entry.last = frame.t
    if seconds < 0 or seconds > GAP or view.scan.state != "running":
        seconds = 0.0
    entry.devices.add(frame.rows, seconds)
    if seconds and frame.limit is not None:
        cause = frame.limit.cause
        entry.limits[cause] = entry.limits.get(cause, 0.0) + seconds
    moment = _moment(frame, view)
    entry.recent.append(EffectSample(frame.t, moment.issue_rate, moment.latency))
    _note_changes(entry, frame)
    if not entry.moments or frame.t - entry.moments[-1].t >= entry.step:
        entry.moments.append(moment)
        if len(entry.moments) > MOST_POINTS:
            del entry.moments[1::2]
            entry.step *= 2
    entry.report = _seen(entry.report, frame, view)


def _moment(frame: Frame, view: ScanView) -> Moment:
    eta, host = view.estimate.eta, frame.host
    rate = view.issue_rate if view.scan.two_stage else view.scan_rate
    memory = None
    if host is not None and host.memory_total and host.memory_available is not None:
        memory = 1 - host.memory_available / host.memory_total
    return Moment(
        t=frame.t,
        issue_rate=rate,
        scan_rate=view.scan_rate,
        percent=view.percent,
        told_end=None if eta is None else frame.t + eta,
        cpu=host.cpu if host else None,
        memory=memory,
        latency=frame.rows[0].rates.latency if frame.rows else None,
        cause=frame.limit.cause if frame.limit else None,
    )


def _note_changes(entry: _Ongoing, frame: Frame) -> None:
    """Record changed module parameters, and measure their effect while it is fresh."""
    before, entry.tunables = entry.tunables, frame.tunables or entry.tunables
    if before is not None and frame.tunables:
        for name, value in frame.tunables.items():
            if name in before and before[name] != value:
                entry.changes.append(TunableChange(frame.t, name, before[name], value))
    times = [change.t for change in entry.changes]
    for i, change in enumerate(entry.changes):
        if frame.t - change.t <= SETTLE + WINDOW + GAP and entry.recent[0].t < change.t:
            found = measure(entry.recent, change.t, times)
            entry.changes[i] = replace(
                change,
                issue_before=found.issue_before,
                issue_after=found.issue_after,
                latency_before=found.latency_before,
                latency_after=found.latency_after,
            )


def _seen(report: ScanReport, frame: Frame, view: ScanView) -> ScanReport:
    scan, ceiling = view.scan, frame.ceiling
    issued = scan.issued_bytes if scan.two_stage else scan.scanned_bytes
    return replace(
        report,
        state=scan.state,
        total_bytes=scan.to_issue_bytes,
        issued_bytes=issued,
        processed_bytes=scan.processed_bytes,
        errors=scan.errors,
        restarts=view.restarts,
        health=frame.health.word,
        version=frame.version,
        notes=view.notes,
        full=is_full_scrub(scan, frame.version) if scan.state == "finished" else scan.full,
        tunables=report.tunables or dict(frame.tunables),
        ceiling=ceiling.rate if ceiling else report.ceiling,
        ceiling_text=ceiling.text if ceiling else report.ceiling_text,
        evidence={**report.evidence, **_evidence(frame)},
        troubles={**report.troubles, **{t.name: t.text for t in frame.troubles}},
    )


def _evidence(frame: Frame) -> Mapping[str, str]:
    limit = frame.limit
    return {limit.cause: limit.text} if limit is not None and limit.sure > 0 else {}


def _report(entry: _Ongoing) -> ScanReport:
    return replace(
        entry.report,
        moments=tuple(entry.moments),
        devices=entry.devices.reports(),
        limits=dict(entry.limits),
        changes=tuple(entry.changes),
    )
