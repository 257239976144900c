"""What is worth waking somebody for: rules over frames, each said once until it has passed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from zconsole.frame import Frame, ScanView
from zconsole.units import duration

KINDS = (
    "finished",
    "not-restored",
    "restarted",
    "stalled",
    "eta-slipped",
    "device-error",
    "no-redundancy",
    "suspended",
    "free-floor",
)
"""Every kind of alert, in the order the documentation lists them."""

QUIET = 30.0
"""Seconds a condition must be gone before it may be said again."""
SETTLE = 20.0
"""Seconds after a scan's end before it is judged: devices still detach, passes still follow."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The thresholds: seconds of standstill, share of the ETA, share of the pool kept free."""

    stalled_after: float = 600.0
    slip: float = 0.25
    free_floor: float = 0.05
    kinds: frozenset[str] = frozenset(KINDS)


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing to tell, in one line."""

    kind: str
    pool: str
    t: float
    text: str
    severity: str
    subject: str = ""
    """The device, vdev or scan it is about; what makes two alerts of a kind different."""


@dataclass(slots=True)
class _Promise:
    """The end that was expected when the estimate first stood on enough, and when that was."""

    end: float
    made: float


@dataclass(slots=True)
class _Watched:
    """What is remembered of one pool between two frames."""

    active: dict[str, float] = field(default_factory=dict)
    """Condition (kind and subject) to the last time it held."""
    errors: dict[str, int] = field(default_factory=dict)
    running: dict[str, ScanView] = field(default_factory=dict)
    ended: dict[str, tuple[ScanView, float]] = field(default_factory=dict)
    restarts: int | None = None
    promises: dict[str, _Promise] = field(default_factory=dict)


class Vigil:
    """Looks at every round of frames and says what is new; pure but for what it remembers."""

    def __init__(self, rules: Rules | None = None) -> None:
        self._rules = rules or Rules()
        self._pools: dict[str, _Watched] = {}

    def look(self, frames: Sequence[Frame]) -> tuple[Alert, ...]:
        """The alerts of this round. A condition that holds on is said once, and again only
        after it has been gone for half a minute."""
        return tuple(alert for frame in frames for alert in self._pool(frame))

    def _pool(self, frame: Frame) -> Iterator[Alert]:
        seen = self._pools.setdefault(frame.pool, _Watched())
        for alert in (*self._conditions(frame), *self._happenings(frame, seen)):
            if alert.kind not in self._rules.kinds:
                continue
            condition = f"{alert.kind}:{alert.subject}"
            last = seen.active.get(condition)
            seen.active[condition] = frame.t
            if last is None or frame.t - last > QUIET:
                yield alert

    def _conditions(self, frame: Frame) -> Iterator[Alert]:
        """What holds now: suspended, no redundancy, stalled, too little free."""
        if "SUSPENDED" in (frame.kstat, frame.state):
            yield _alert(frame, "suspended", "error", "the pool is SUSPENDED: all I/O waits")
        if frame.problem:
            return
        for entry in frame.redundancy:
            if entry.left == 0 and len(entry.untouchable) > 1 or _reduced_to_one(frame, entry.vdev):
                text = f"{entry.vdev} has no redundancy left"
                yield _alert(frame, "no-redundancy", "error", text, entry.vdev)
        for view in frame.scans:
            if view.stalled is not None and view.stalled >= self._rules.stalled_after:
                text = f"the {view.scan.function} has not moved for {duration(view.stalled)}"
                yield _alert(frame, "stalled", "warning", text, view.key)
        yield from self._free(frame)

    def _free(self, frame: Frame) -> Iterator[Alert]:
        fill = frame.balance.target_fill
        if fill is not None and 1 - fill < self._rules.free_floor:
            text = f"only {100 * (1 - fill):.1f}% of the pool is free"
            yield _alert(frame, "free-floor", "warning", text)

    def _happenings(self, frame: Frame, seen: _Watched) -> Iterator[Alert]:
        """What happened since the last frame: new errors, restarts, a slipped ETA, an end."""
        if frame.problem:
            return
        yield from _new_errors(frame, seen)
        yield from _restarts(frame, seen)
        yield from self._slips(frame, seen)
        yield from _ends(frame, seen)

    def _slips(self, frame: Frame, seen: _Watched) -> Iterator[Alert]:
        for view in frame.scans:
            if view.estimate.eta is None or not view.scan.active:
                continue
            end = frame.t + view.estimate.eta
            promise = seen.promises.setdefault(view.key, _Promise(end, frame.t))
            allowed = max(60.0, self._rules.slip * (promise.end - promise.made))
            if end - promise.end > allowed:
                late = duration(end - promise.end)
                text = f"the {view.scan.function} will end {late} later than expected"
                seen.promises[view.key] = _Promise(end, frame.t)
                yield _alert(frame, "eta-slipped", "warning", text, f"{view.key}@{frame.t:.0f}")


def _alert(frame: Frame, kind: str, severity: str, text: str, subject: str = "") -> Alert:
    return Alert(kind, frame.pool, frame.t, text, severity, subject)


def _reduced_to_one(frame: Frame, name: str) -> bool:
    """Whether a redundant top-level vdev hangs on a single device: an n-way mirror with one left."""
    for row in frame.rows:
        if row.depth == 1 and row.vdev.name == name and row.vdev.kind == "mirror":
            return next(e.left == 0 for e in frame.redundancy if e.vdev == name)
    return False


def _new_errors(frame: Frame, seen: _Watched) -> Iterator[Alert]:
    counts = {row.key: row.vdev for row in frame.rows if not row.vdev.children}
    first = not seen.errors
    for key, vdev in counts.items():
        before, now = seen.errors.get(key), vdev.errors.total
        seen.errors[key] = now
        if not first and before is not None and now > before:
            counters = vdev.errors
            text = f"{vdev.name}: {now - before} new errors (now {counters.read or 0} read, "
            text += f"{counters.write or 0} write, {counters.cksum or 0} checksum)"
            yield _alert(frame, "device-error", "error", text, key)


def _restarts(frame: Frame, seen: _Watched) -> Iterator[Alert]:
    view = frame.scan
    if view is None or view.restarts is None:
        return
    before, seen.restarts = seen.restarts, view.restarts
    if before is not None and view.restarts > before:
        cause = f": {view.notes[0]}" if view.notes else ""
        text = f"the {view.scan.function} restarted from the beginning{cause}"
        yield _alert(frame, "restarted", "warning", text, f"{view.key}@{view.restarts}")


def _ends(frame: Frame, seen: _Watched) -> Iterator[Alert]:
    now = {view.key: view for view in frame.scans}
    for key, view in list(seen.running.items()):
        current = now.get(key)
        if current is None or not current.scan.active:
            del seen.running[key]
            seen.ended[key] = (current or view, frame.t)
    seen.running.update({key: view for key, view in now.items() if view.scan.active})
    if seen.running:
        seen.ended.clear()
        return
    for key, (view, since) in list(seen.ended.items()):
        bad = frame.health.word != "OK" or bool(view.scan.errors) or view.scan.state == "canceled"
        if not bad or frame.t - since >= SETTLE:
            del seen.ended[key]
            yield _end(frame, view, bad)


def _end(frame: Frame, view: ScanView, bad: bool) -> Alert:
    name = view.scan.function
    if not bad:
        return _alert(frame, "finished", "notice", f"the {name} finished, the pool is safe", view.key)
    why = frame.health.reasons[0] if frame.health.reasons else frame.health.word
    if view.scan.state == "canceled":
        why = "it was canceled"
    elif view.scan.errors:
        why = f"{view.scan.errors} errors"
    return _alert(frame, "not-restored", "error", f"the {name} is over, but: {why}", view.key)
