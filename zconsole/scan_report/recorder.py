"""Collects reports of scans from frames; writes them periodically and when a scan ends.

A report has the course of its scan, thinned out to a bounded number of moments, the totals of each
device, the limits of the scan, and the tunables that changed meanwhile with their effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from zconsole.pool.model import DATA, Scan
from zconsole.pool.scan_outcome import same_scan
from zconsole.scan_report.report import (
    MOST_POINTS,
    DeviceReport,
    Moment,
    ScanReport,
    TunableChange,
)
from zconsole.scan_report.store import ReportStore
from zconsole.system.host import is_due
from zconsole.timeline.frame import Frame, ScanView, VdevRow
from zconsole.timeline.scrubs import is_full_scrub
from zconsole.tunables.effect import SETTLE, WINDOW

FINEST = 1.0
"""Initial seconds between two stored moments; doubled whenever there are too many."""
GAP = 60.0
"""Seconds between two frames beyond which nothing is counted for the time between them."""
SAVE_SECONDS = 120.0
"""Seconds between two writes of unfinished reports."""
MOST_DEVICES = 256
"""Devices in a report; in larger pools, the first ones."""

ScanKey = tuple[str, str | None, float | None]
"""Function, vdev and start time of a scan, which tell it from others (``Scan.key``)."""


@dataclass(slots=True)
class _Sums:
    """Totals of a device, from which its means are computed."""

    name: str
    filled: bool = False
    """Whether it was being resilvered at any time."""
    read: float = 0.0
    """Bytes read."""
    write: float = 0.0
    """Bytes written."""
    seconds: float = 0.0
    """Seconds for which its rates are known."""
    busy: float = 0.0
    """Seconds in which it was busy."""
    busy_seconds: float = 0.0
    """Seconds for which it is known how busy it was."""
    waited: float = 0.0
    """Latency times requests, in seconds."""
    requests: float = 0.0
    """Requests for which the latency is known."""
    worst: float = 0.0
    """Highest mean latency between two frames, in seconds."""
    errors: int = 0
    """New errors."""
    counter: int | None = None
    """Total of the device's error counters in the last frame."""
    disk: str = ""


class DeviceLog:
    """The totals of all devices during one scan."""

    def __init__(self, earlier: Iterable[DeviceReport] = ()) -> None:
        """Continue from the devices in a report of an earlier run of this program."""
        self._sums: dict[str, _Sums] = {}
        self._earlier = {
            each.name: _Sums(
                each.name,
                each.filled,
                each.read_bytes,
                each.write_bytes,
                each.seconds,
                busy=(each.busy or 0.0) * each.seconds,
                busy_seconds=0.0 if each.busy is None else each.seconds,
                # The number of requests is not stored: seconds are the weight of the old mean.
                waited=(each.latency or 0.0) * each.seconds,
                requests=0.0 if each.latency is None else each.seconds,
                worst=each.worst_latency or 0.0,
                errors=each.new_errors,
                disk=each.disk,
            )
            for each in earlier
        }
        """Totals of the devices, by name, that were not seen in this run yet."""

    def add(self, rows: Sequence[VdevRow], seconds: float) -> None:
        """Add the rows of a frame: the errors that are new since the last frame, and the rates.

        ``seconds`` is the time since the last frame, for which the rates count; 0 if it is unknown.
        """
        for key, depth, vdev, rates, *_ in rows:
            if vdev.children or vdev.vclass not in DATA or depth == 0:
                continue
            entry = self._sums.get(key)
            if entry is None:
                if len(self._sums) >= MOST_DEVICES:
                    continue
                entry = self._earlier.pop(vdev.name, None) or _Sums(vdev.name)
                self._sums[key] = entry
            if vdev.disk is not None:
                entry.disk = vdev.disk.words()
            # New errors only, from the difference: a clear resets the device's counters.
            now = vdev.errors.total
            if entry.counter is not None:
                entry.errors += max(0, now - entry.counter)
            entry.counter = now
            if not seconds:
                continue
            entry.filled = entry.filled or vdev.resilvering
            entry.read += (rates.read or 0.0) * seconds
            entry.write += (rates.write or 0.0) * seconds
            entry.seconds += seconds
            if rates.busy is not None:
                entry.busy += rates.busy * seconds
                entry.busy_seconds += seconds
            if rates.latency is not None:
                requests = ((rates.read_ops or 0.0) + (rates.write_ops or 0.0)) * seconds
                entry.waited += rates.latency * requests
                entry.requests += requests
                entry.worst = max(entry.worst, rates.latency)

    def reports(self) -> tuple[DeviceReport, ...]:
        """Return a report on each device that read, wrote or had new errors."""
        return tuple(
            DeviceReport(
                x.name,
                x.filled,
                x.read,
                x.write,
                x.seconds,
                x.busy / x.busy_seconds if x.busy_seconds else None,
                x.waited / x.requests if x.requests else None,
                x.worst or None,
                x.errors,
                x.disk,
            )
            for x in (*self._sums.values(), *self._earlier.values())
            if x.seconds > 0 and (x.read + x.write > 0 or x.errors > 0)
        )


@dataclass(slots=True)
class _Ongoing:
    """The report of a running scan, in parts that grow with each frame."""

    report: ScanReport
    """All other fields of the report."""
    devices: DeviceLog
    moments: list[Moment]
    limits: dict[str, float]
    """Seconds that each cause was the limit."""
    changes: list[TunableChange]
    step: float = FINEST
    """Seconds between two stored moments."""
    tunables: Mapping[str, int] | None = None
    """Newest values of the tunables."""
    last: float | None = None
    """Epoch seconds of the last frame."""


class ReportKeeper:
    """Makes the reports of scans from frames, and returns each when its scan has ended.

    With a store, reports are saved there, and unfinished ones of an earlier run are continued that
    ``recall`` has read before a pool's first frame.
    """

    def __init__(self, store: ReportStore | None = None) -> None:
        self._store = store
        self._ongoing: dict[str, dict[ScanKey, _Ongoing]] = {}
        """Reports of running scans, by the pool's GUID, or its name without one, then by scan."""
        self._saved: dict[str, float] = {}
        """Epoch seconds of each pool's last periodic write."""

    def lacks(self, guid: str | None) -> bool:
        """Return whether the stored reports of a pool have not been read yet."""
        return self._store is not None and guid is not None and guid not in self._ongoing

    def recall(self, guid: str) -> float | None:
        """Read a pool's unfinished reports; return when its last full scrub ended (epoch seconds).

        Raises StateError if the disk doesn't answer in time.
        """
        if self._store is None:
            return None
        scrubbed = self._store.full_scrub(guid)
        if self.lacks(guid):
            left = () if self._store.directory is None else self._store.unfinished(guid)
            self._ongoing[guid] = {(r.function, r.vdev, r.start): _resumed(r) for r in left}
        return scrubbed

    def push(self, frame: Frame) -> tuple[ScanReport, ...]:
        """Add a frame; write and return the reports that it completes.

        Raises StateError if a report can't be written.
        """
        ongoing = self._ongoing.setdefault(frame.guid or frame.pool, {})
        done = () if frame.problem else tuple(_followed(ongoing, frame))
        self._write(done)
        if is_due(frame.t, self._saved.setdefault(frame.pool, frame.t), SAVE_SECONDS):
            self._saved[frame.pool] = frame.t
            self._write(map(_report, ongoing.values()))
        return done

    def current(self) -> tuple[ScanReport, ...]:
        """Return the reports of running scans as they are so far."""
        every = (entry for ongoing in self._ongoing.values() for entry in ongoing.values())
        return tuple(map(_report, every))

    def close(self) -> None:
        """Write the reports of running scans, and release the store. Raises StateError."""
        try:
            self._write(self.current())
        finally:
            if self._store is not None:
                self._store.close()

    def _write(self, reports: Iterable[ScanReport]) -> None:
        if self._store is not None:
            for report in reports:
                self._store.save(report)


def _followed(ongoing: dict[ScanKey, _Ongoing], frame: Frame) -> Iterator[ScanReport]:
    """Add a pool's frame to its reports; yield those of the scans that have ended.

    The report of a scan that has just ended waits while the device that it replaced is still there:
    ZFS detaches it some time later if redundancy was restored, and keeps it otherwise.
    """
    views = {view.scan.key: view for view in frame.scans if view.scan.start is not None}
    for key, view in views.items():
        if view.scan.active:
            if key not in ongoing:
                scan, start = view.scan, view.scan.start or 0.0
                begun = (scan.function, scan.vdev, start, scan.state, frame.t)
                ongoing[key] = _resumed(ScanReport(frame.pool, frame.guid, *begun))
            _add(ongoing[key], frame, view)
    over = [view for view in frame.scans if not view.scan.active]
    for key in [key for key in ongoing if key not in views or not views[key].scan.active]:
        entry, found = ongoing[key], views.get(key)
        if found is None:  # zpool's text has no start time for a scan that has ended
            ran = Scan(key[0], "running", vdev=key[1], start=key[2])
            found = next((view for view in over if same_scan(ran, view.scan)), None)
        if found is None:
            entry.report = replace(entry.report, state="restarted", end=frame.t)
        else:
            seen = _seen(entry.report, frame, found)
            entry.report = replace(seen, end=found.scan.end or frame.t)
            outcome = frame.outcome_of(found.scan)
            settles = outcome.over and outcome.left_behind and outcome.restored is None
            if key in views and settles:
                continue
        yield _report(ongoing.pop(key))


def _resumed(report: ScanReport) -> _Ongoing:
    gaps = [b.t - a.t for a, b in zip(report.moments, report.moments[1:], strict=False)]
    step = max(FINEST, min(gaps, default=FINEST))
    kept, limits, changes = list(report.moments), dict(report.limits), list(report.changes)
    log = DeviceLog(report.devices)
    return _Ongoing(report, log, kept, limits, changes, step)


def _add(entry: _Ongoing, frame: Frame, view: ScanView) -> None:
    seconds = 0.0 if entry.last is None else frame.t - entry.last
    entry.last = frame.t
    # No time counts if the clock was set back, watching was interrupted or the scan is paused.
    if seconds < 0 or seconds > GAP or view.scan.state != "running":
        seconds = 0.0
    entry.devices.add(frame.rows, seconds)
    if seconds and frame.limit is not None:
        cause = frame.limit.cause
        entry.limits[cause] = entry.limits.get(cause, 0.0) + seconds
    moment = _moment(frame, view)
    _note_changes(entry, frame, view)
    if not entry.moments or is_due(frame.t, entry.moments[-1].t, entry.step):
        entry.moments.append(moment)
        if len(entry.moments) > MOST_POINTS:  # keep every second one, from the first on
            del entry.moments[1::2]
            entry.step *= 2
    entry.report = _seen(entry.report, frame, view)


def _moment(frame: Frame, view: ScanView) -> Moment:
    eta, host = view.estimate.eta, frame.host
    memory = None
    if host is not None and host.memory_total and host.memory_available is not None:
        memory = 1 - host.memory_available / host.memory_total
    return Moment(
        t=frame.t,
        issue_rate=view.issue_rate,
        scan_rate=view.scan_rate,
        percent=view.percent,
        told_end=None if eta is None else frame.t + eta,
        cpu=host.cpu if host else None,
        memory=memory,
        latency=frame.rows[0].rates.latency if frame.rows else None,
        cause=frame.limit.cause if frame.limit else None,
    )


def _note_changes(entry: _Ongoing, frame: Frame, view: ScanView) -> None:
    """Record changed module parameters, and measure their effect while it is recent."""
    before, entry.tunables = entry.tunables, frame.tunables or entry.tunables
    if before is not None and frame.tunables:
        for name, value in frame.tunables.items():
            if name in before and before[name] != value:
                entry.changes.append(TunableChange(frame.t, name, before[name], value))
    if view.scan.key != frame.effects.scan:
        return  # of several rebuilds at once, effects on one are known
    times = [change.t for change in entry.changes]
    for i, change in enumerate(entry.changes):
        # As long as later samples can still change the result.
        is_recent = frame.t - change.t <= SETTLE + WINDOW + GAP
        if is_recent and (found := frame.effect(change.t, times)) is not None:
            entry.changes[i] = replace(
                change,
                issue_before=found.issue_before,
                issue_after=found.issue_after,
                latency_before=found.latency_before,
                latency_after=found.latency_after,
                doubt=found.doubt,
            )


def _seen(report: ScanReport, frame: Frame, view: ScanView) -> ScanReport:
    scan, ceiling, limit = view.scan, frame.ceiling, frame.limit
    evidence = {limit.cause: limit.text} if limit is not None and limit.sure > 0 else {}
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
        # Without a history, whether a finished scrub was full depends on the bytes it has read.
        full=is_full_scrub(scan, frame.version) if scan.state == "finished" else scan.full,
        tunables=report.tunables or dict(frame.tunables),
        ceiling=ceiling.rate if ceiling else report.ceiling,
        ceiling_text=ceiling.text if ceiling else report.ceiling_text,
        evidence={**report.evidence, **evidence},
        troubles={**report.troubles, **{t.name: t.text for t in frame.troubles}},
    )


def _report(entry: _Ongoing) -> ScanReport:
    return replace(
        entry.report,
        moments=tuple(entry.moments),
        devices=entry.devices.reports(),
        limits=dict(entry.limits),
        changes=tuple(entry.changes),
    )
