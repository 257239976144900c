"""Rules that find what is worth waking someone for; each alert is sent once until it has passed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from zconsole.diagnosis.device_errors.faults import SUSPECTS, CommonCause
from zconsole.pool.health import LOST_STATES
from zconsole.pool.model import APART, Vdev
from zconsole.pool.scan_outcome import WELL, is_end
from zconsole.timeline.events import BROKEN
from zconsole.timeline.frame import Frame, ScanView, work_name
from zconsole.units import counted, days, duration, percent

QUIET = 30.0
"""Seconds a condition must be gone before it is sent again."""
ERRORS_QUIET = 900.0
"""Seconds without new errors of one device before further ones are sent: they occur
sporadically."""
GONE = ":gone"
"""Suffix of the subject for a missing device, to distinguish it from the device's errors."""
STANDING = 60.0
"""Seconds an estimate must be watched before a later ETA counts as a slip."""
SPARE_STANDING = 60.0
"""Seconds a spare must be in trouble: a spare in use is released soon after a resilver, and a
device returns some moments before its resilver begins."""
UNREACHABLE_AFTER = 300.0
"""Seconds without a sample after which a pool is unreachable, and not just slow."""
NOT_RESTORED = "not-restored"
"""Kind of the end of a scan that left the pool unrestored, and, without a subject, of that
condition."""
WITHOUT_SAMPLE = ("suspended", "unavailable", "unreachable")
"""Kinds of conditions that are detected without a sample; the others are unknown then."""
LEAST_SLIP = 60.0
"""Seconds by which an end may always move: estimates are not more precise."""
FREED = 0.01
"""Share above the floor that must be free again before low space can be reported a second time."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert, described in one line."""

    kind: str
    pool: str
    t: float
    text: str
    severity: str
    subject: str = ""
    """The device, vdev or scan it is about; distinguishes alerts of the same kind."""
    next_step: str = ""
    """The suggested command, quoted for a shell; empty if there is none."""

    @property
    def condition(self) -> Condition:
        """Identifies the alert among others."""
        return self.pool, self.kind, self.subject

    @property
    def words(self) -> str:
        """The event and the next step, in one line."""
        return f"{self.text}. Next: {self.next_step}" if self.next_step else self.text


Condition = tuple[str, str, str]
"""Pool, kind and subject of an alert."""


@dataclass(slots=True)
class _Promise:
    """The end expected when the estimate was first reliable, and when that was."""

    seen: float
    end: float | None = None
    made: float = 0.0


@dataclass(slots=True)
class _Watched:
    """State of one pool between two frames."""

    guid: str | None = None
    active: dict[tuple[str, str], float] = field(default_factory=dict)
    """Condition (kind and subject) to the last time it held."""
    held: frozenset[tuple[str, str]] = frozenset()
    """Conditions that held in the last frame, or in the frame before if that has no sample."""
    lasting: set[tuple[str, str]] = field(default_factory=set)
    """Conditions that last, unlike what happened at one time."""
    clock: float = 0.0
    """Clock of the last frame."""
    silent_since: float | None = None
    """Steady clock of the first of the samples missing now."""
    errors: dict[str, int] | None = None
    running: dict[str, ScanView] = field(default_factory=dict)
    ended: dict[str, ScanView] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)
    promises: dict[str, _Promise] = field(default_factory=dict)
    short_of_space: bool = False
    unrestored: bool | None = None
    """True if the pool was found not restored, or left so by a scan, and has been since."""
    spares: dict[tuple[str, str], float] = field(default_factory=dict)
    """Kind and name of each problem with a spare to when it was first seen."""


@dataclass(slots=True)
class AlertRules:
    """Finds new alerts in each round of frames; pure except for its memory."""

    stalled_after: float = 600.0
    """Seconds without progress."""
    slip: float = 0.25
    """Share of the expected time by which the end may move."""
    free_floor: float = 0.05
    """Share of the pool to be kept free."""
    _pools: dict[str, _Watched] = field(default_factory=dict, init=False)

    def look(self, frames: Sequence[Frame]) -> tuple[Alert, ...]:
        """Return the alerts of this round.

        A lasting condition is sent once, and again only after it has been gone for QUIET seconds,
        or ERRORS_QUIET.
        """
        return tuple(alert for frame in frames for alert in self._pool(frame))

    def standing(self) -> Iterator[Condition]:
        """Yield every condition that holds, or did a moment ago."""
        for pool, seen in self._pools.items():
            yield from ((pool, *condition) for condition in seen.active)

    def has_passed(self, alert: Alert) -> bool:
        """Return whether the condition of an alert is over; False for what happened at one time."""
        seen = self._pools.get(alert.pool, _Watched())
        return (alert.kind, alert.subject) in seen.lasting - seen.held

    def _pool(self, frame: Frame) -> Iterator[Alert]:
        seen = self._pools.get(frame.pool)
        if seen is None or (frame.guid and seen.guid and frame.guid != seen.guid):
            # Another pool had this name before: drop its state.
            seen = self._pools[frame.pool] = _Watched()
        seen.guid = frame.guid or seen.guid
        if frame.clock < seen.clock:  # rebooted, or the source has no steady clock
            seen.promises.clear()
            for times in (seen.active, seen.spares):
                times.update(dict.fromkeys(times, frame.clock))
        seen.clock = frame.clock
        found = [*self._conditions(frame, seen)]
        seen.lasting |= {(a.kind, a.subject) for a in found}
        found += self._happenings(frame, seen)
        now = {(a.kind, a.subject): a for a in found}
        clock = frame.failure.clock if frame.failure else frame.clock
        for condition in list(seen.active.keys() - seen.held):
            # New errors of a device come sporadically; a missing device is a lasting condition.
            trickles = condition[0] == "device-error" and not condition[1].endswith(GONE)
            quiet = ERRORS_QUIET if trickles else QUIET
            if clock - seen.active[condition] > quiet:
                del seen.active[condition]
        new = [alert for condition, alert in now.items() if condition not in seen.active]
        unseen = (each for each in seen.held if frame.problem and each[0] not in WITHOUT_SAMPLE)
        told = ((NOT_RESTORED, "") for alert in new if alert.kind == NOT_RESTORED)
        seen.held = frozenset((*now, *unseen, *told))
        seen.unrestored = seen.unrestored or (NOT_RESTORED, "") in seen.held
        seen.active.update(dict.fromkeys(seen.held, clock))
        yield from new

    def _conditions(self, frame: Frame, seen: _Watched) -> Iterator[Alert]:
        """Yield present conditions: suspended, no redundancy, stalled, full, scrub overdue, …."""
        yield from _lost(frame, seen)
        if frame.problem:
            return
        yield from _unrestored(frame, seen)
        yield from _damaged(frame)
        yield from _gone(frame)
        yield from _unprotected(frame)
        yield from _spares(frame, seen)
        yield from self._stalled(frame)
        yield from self._space(frame, seen)
        yield from _scrub_overdue(frame)

    def _stalled(self, frame: Frame) -> Iterator[Alert]:
        """Yield alerts for scans, removals, expansions and the like that do not move at all."""
        found = [(v.scan.function, v.stalled, "", _identity(v)) for v in frame.scans]
        for view in frame.activities:
            work = view.activity
            name = work_name(work.kind, work.vdev)
            subject = f"{name}:{work.start or 0:.0f}"
            found.append((name, view.stalled, f": {view.advice}", subject))
        for name, still, why, subject in found:
            if still is not None and still >= self.stalled_after:
                text = f"the {name} made no progress for {duration(still)}{why}"
                yield _alert(frame, "stalled", "warning", text, subject)

    def _space(self, frame: Frame, seen: _Watched) -> Iterator[Alert]:
        fill = frame.balance.target_fill
        if fill is None:
            return
        floor = self.free_floor + (FREED if seen.short_of_space else 0.0)
        seen.short_of_space = 1 - fill < floor
        if seen.short_of_space:
            text = f"only {percent(1 - fill, 1)} of the pool is free"
            yield _alert(frame, "free-floor", "warning", text)

    def _happenings(self, frame: Frame, seen: _Watched) -> Iterator[Alert]:
        """Yield what happened since the last frame: new errors, restarts, a slipped ETA, an end."""
        if frame.problem:
            return
        yield from _new_errors(frame, seen)
        for view in frame.scans:
            yield from _restarted(frame, view, seen)
            yield from self._slipped(frame, view, seen)
        yield from _ends(frame, seen)

    def _slipped(self, frame: Frame, view: ScanView, seen: _Watched) -> Iterator[Alert]:
        if view.estimate.eta is None or view.scan.state != "running":
            return
        end = frame.clock + view.estimate.eta
        promise = seen.promises.setdefault(_identity(view), _Promise(frame.clock))
        if frame.clock - promise.seen < STANDING:
            return
        if promise.end is None:
            promise.end, promise.made = end, frame.clock
        late = end - promise.end
        if late > max(LEAST_SLIP, self.slip * (promise.end - promise.made)):
            promise.end, promise.made = end, frame.clock
            text = f"the {view.scan.function} will end {duration(late)} later than expected"
            yield _alert(frame, "eta-slipped", "warning", text, f"{_identity(view)}@{frame.t:.0f}")


def _alert(frame: Frame, kind: str, severity: str, text: str, subject: str = "") -> Alert:
    t = frame.failure.t if frame.failure else frame.t
    return Alert(kind, frame.pool, t, text, severity, subject)


def _of_device(
    frame: Frame, vdev: Vdev, text: str, subject: str, common: CommonCause | None
) -> Alert:
    """Return an alert about a device, with the swap command if the device can be swapped.

    What it has in ``common`` with others in trouble is told instead: a new disk would not help.
    """
    if common is not None:
        text += f"; {common.where}: {common.suspects}"
        return _alert(frame, "device-error", "error", text, subject)
    alert = _alert(frame, "device-error", "error", text, subject)
    if vdev.vclass in APART or vdev.kind != "disk":
        return alert
    # With several machines, frame.pool includes the host; the command is run on that host.
    pool = frame.sample.pool.name if frame.sample else frame.pool
    return replace(alert, next_step=shlex.join(("zconsole", "swap", pool, vdev.name)))


def _identity(view: ScanView) -> str:
    """Identify a scan among the pool's scans, by its key and start."""
    return f"{view.key}:{view.scan.start or 0:.0f}"


def _lost(frame: Frame, seen: _Watched) -> Iterator[Alert]:
    """Yield an alert for a pool that is unusable, or that has not answered for a while."""
    if frame.failure is None:
        seen.silent_since = None
    elif seen.silent_since is None:
        seen.silent_since = frame.failure.clock
    if frame.suspended:
        yield _alert(frame, "suspended", "error", "the pool is SUSPENDED: all I/O waits")
    elif frame.health.word in LOST_STATES:
        yield _alert(frame, "unavailable", "error", f"the pool is {frame.health.word}")
    elif frame.failure is not None and not frame.absent and seen.silent_since is not None:
        silence = frame.failure.clock - seen.silent_since
        if silence >= UNREACHABLE_AFTER:
            text = f"no sample for {duration(frame.stale_seconds or silence)}: {frame.problem}"
            yield _alert(frame, "unreachable", "error", text)


def _unrestored(frame: Frame, seen: _Watched) -> Iterator[Alert]:
    """Yield an alert for a pool that is not restored; the end of a scan reports this itself."""
    seen.unrestored = frame.health.word == "NOT RESTORED" and seen.unrestored is not False
    if seen.unrestored:
        text = f"the pool is not restored: {frame.health.reasons[0]}"
        yield _alert(frame, NOT_RESTORED, "error", text)


def _damaged(frame: Frame) -> Iterator[Alert]:
    count = frame.seen.error_count
    if not frame.suspended and (count or frame.seen.damaged):
        text = f"{counted(count, 'data error') if count else 'data errors'}: files are damaged"
        yield _alert(frame, "data-errors", "error", text)


def _gone(frame: Frame) -> Iterator[Alert]:
    """Yield alerts for missing devices, with or without earlier errors; spares are left out."""
    common = frame.common_cause_of
    for row in frame.rows:
        vdev = row.vdev
        if not vdev.children and vdev.vclass != "spare" and vdev.state in BROKEN:
            text = f"{vdev.located} is {vdev.state} now"
            yield _of_device(frame, vdev, text, f"{row.key}{GONE}", common.get(vdev.name))


def _unprotected(frame: Frame) -> Iterator[Alert]:
    """Yield alerts for redundant top-level vdevs with no redundancy left; not for single disks."""
    tops = {row.vdev.name: row.vdev for row in frame.rows if row.depth == 1}
    for entry in frame.redundancy:
        top = tops.get(entry.vdev)
        redundant = top is not None and top.kind.startswith(("mirror", "raidz", "draid"))
        if entry.left == 0 and redundant:
            text = f"{entry.vdev} has no redundancy left"
            yield _alert(frame, "no-redundancy", "error", text, entry.vdev)


def _spares(frame: Frame, seen: _Watched) -> Iterator[Alert]:
    """Yield alerts for spares that would not help in a failure.

    A spare that another pool uses is left out.
    """
    found = {(s.kind, s.name): s for s in frame.spares if s.kind != "elsewhere"}
    seen.spares = {key: seen.spares.get(key, frame.clock) for key in found}
    for key, spare in found.items():
        if frame.clock - seen.spares[key] >= SPARE_STANDING:
            yield _alert(frame, "spare", spare.severity, spare.text, f"{spare.kind}:{spare.name}")


def _scrub_overdue(frame: Frame) -> Iterator[Alert]:
    """Yield an alert if the next full scrub is overdue, and no scrub runs that may be it."""
    scrub = frame.scrub
    running = any(v.scan.active and v.scan.function == "scrub" for v in frame.scans)
    if scrub.overdue and scrub.age is not None and not running:
        what = "the pool was created" if scrub.never else "the last full scrub ended"
        why = ", never scrubbed" if scrub.never else ""
        text = f"scrub overdue: {what} {days(scrub.age)} ago{why}"
        yield _alert(frame, "scrub-overdue", "warning", text)


def _new_errors(frame: Frame, seen: _Watched) -> Iterator[Alert]:
    before, common = seen.errors, frame.common_cause_of
    leaves = {row.key: row.vdev for row in frame.rows if not row.vdev.children}
    seen.errors = {key: vdev.errors.total for key, vdev in leaves.items()}
    for key, vdev in leaves.items():
        new = vdev.errors.total - (before or seen.errors).get(key, vdev.errors.total)
        if new <= 0:
            continue
        counters = vdev.errors
        text = f"{vdev.located}: {new} new error{'s' if new > 1 else ''} (now "
        text += f"{counters.read or 0} read, {counters.write or 0} write, "
        text += f"{counters.cksum or 0} checksum)"
        alone = (t for t in frame.troubles if t.key == key and t.common is None)
        text += "".join(f"; {SUSPECTS[fault.cause]}" for fault in alone)
        yield _of_device(frame, vdev, text, key, common.get(vdev.name))


def _restarted(frame: Frame, view: ScanView, seen: _Watched) -> Iterator[Alert]:
    """Yield an alert for an observed restart: a count that rose."""
    # A scan seen for the first time has no restarts to report, however many it had before.
    known = seen.restarts.get(view.key)
    now = view.restarts or 0
    seen.restarts[view.key] = now
    if known is not None and now > known and view.scan.active:
        cause = f": {view.notes[0]}" if view.notes else ""
        text = f"the {view.scan.function} restarted{cause}"
        yield _alert(frame, "restarted", "warning", text, f"{_identity(view)}:{now}")


def _ends(frame: Frame, seen: _Watched) -> Iterator[Alert]:
    now = {view.key: view for view in frame.scans}
    for key, view in list(seen.running.items()):
        current = now.get(key)
        if current is None or not current.scan.active:
            del seen.running[key]
            seen.ended[key] = current if current and is_end(view.scan, current.scan) else view
    seen.running.update({key: view for key, view in now.items() if view.scan.active})
    # If a follow-on pass or the scrub after a rebuild runs, its end counts, not the one before.
    if seen.running:
        seen.ended.clear()
        return
    for key, view in list(seen.ended.items()):
        restored = frame.outcome_of(view.scan).restored
        if restored is not None:
            del seen.ended[key]
            if restored and not any(is_end(view.scan, later.scan) for later in frame.scans):
                continue
            yield _end(frame, view, restored)


def _end(frame: Frame, view: ScanView, restored: bool) -> Alert:
    name, subject = view.scan.function, _identity(view)
    if restored:
        text = f"the {name} finished, the pool is safe"
        text += "".join(f"; check {reason}" for reason in frame.health.reasons[:1])
        return _alert(frame, "finished", "notice", text, subject)
    why = next(iter(frame.health.reasons), frame.health.word)
    if frame.health.word in WELL:
        why = "the device to replace is still in the pool"
    if view.scan.state == "canceled":
        why = "it was canceled"
    elif view.scan.errors:
        why = counted(view.scan.errors, "error")
    return _alert(frame, NOT_RESTORED, "error", f"the {name} ended, not restored: {why}", subject)
