"""Setting tunables and putting them back, with every value checked and every original kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from zconsole.errors import UnavailableError, UsageError, ZconsoleError
from zconsole.system.audit import Log
from zconsole.system.host import alive
from zconsole.system.state_dir import StateError
from zconsole.tunables.catalog import BY_NAME, TUNABLES, Tunable, exact, named
from zconsole.tunables.holds import Hold, Scans, Setter, is_due
from zconsole.tunables.parameters import NOT_LOADED, Parameters
from zconsole.tunables.store import HURRY, Change, SavedTunable, SavedTunables, TunableStore

DONE = "done"


@dataclass(slots=True)
class TunableRecord:
    """What the audit log says of one change of tunables, before and after, inside ``recorded``."""

    log: Log
    t: float
    """Epoch seconds."""
    action: str
    """set, ``preset NAME`` or restore."""
    done: list[Change] = field(default_factory=list)
    """What was written to the kernel, in order."""
    _begun: bool = False

    def begin(self, wanted: Iterable[Change], restore: bool = False) -> None:
        """Write down what is about to be set. Raises AuditError when that can be kept nowhere.

        What is put back waits for no log.
        """
        if changes := [change for change in wanted if change.before != change.after]:
            keep = self.log.note if restore else self.log.write
            keep(self.t, "begun", **self._fields(changes))
            self._begun = True

    def _fields(self, changes: Iterable[Change]) -> dict[str, Any]:
        values = [{"name": c.name, "old": c.before, "new": c.after} for c in changes]
        return {"kind": "tunable", "action": self.action, "values": values}

    def end(self, result: str) -> None:
        """Write down what became of what was begun; waits for no log."""
        if self._begun:
            fields = {**self._fields(self.done), "ok": result == DONE, "result": result}
            self.log.note(self.t, "ended", **fields)


@contextlib.contextmanager
def recorded(log: Log, t: float, action: str) -> Iterator[TunableRecord]:
    """The record of a change at ``t``; its last line is written when the block ends."""
    record = TunableRecord(log, t, action)
    try:
        yield record
    except BaseException as error:
        record.end(f"failed: {error}")
        raise
    record.end(DONE)


@dataclass(frozen=True, slots=True)
class Setting:
    """A tunable as it is now on one machine."""

    tunable: Tunable
    value: int | None
    """Live; None when this kernel does not have it."""
    default: int | None
    path: str
    set_by_us: int | None = None
    original: int | None = None
    hold: Hold | None = None
    """Who holds it; None where the live value is not one that we set."""

    @property
    def ours(self) -> bool:
        """Whether the live value is the one we set."""
        return self.set_by_us is not None and self.value == self.set_by_us


@dataclass(frozen=True, slots=True)
class Restored:
    """What putting back did with one parameter."""

    name: str
    put_back: bool
    text: str


@dataclass(frozen=True, slots=True)
class Past:
    """What was done from consoles, for the rate timeline, and who holds what was set."""

    changes: tuple[Change, ...] = ()
    """Oldest first."""
    holds: Mapping[str, Hold] = field(default_factory=dict)
    """Who holds each tunable that was set, also where somebody else changed it since."""
    in_place: tuple[str, ...] = ()
    """Names whose live value is the one set from here."""

    @property
    def own(self) -> tuple[str, ...]:
        """Names in place that this very console holds."""
        return tuple(name for name in self.in_place if self.holds[name].own)


class Control:
    """The tunables of one machine, or one simulated kernel."""

    def __init__(
        self,
        parameters: Parameters,
        memory: TunableStore,
        log: Log,
        owner: str | None = None,
        is_alive: Callable[[str], bool] = alive,
        wake: Callable[[], object] = lambda: None,
    ) -> None:
        """``log`` has a line before and after all that is written to the kernel.

        ``owner`` is the mark of the process that holds what is set; None: it is set to stay.
        ``wake`` has somebody watch what is to be restored later: the keeper.
        """
        self._parameters = parameters
        self._memory = memory
        self._log = log
        self._owner = owner
        self._is_alive = is_alive
        self._wake = wake

    @property
    def _saved(self) -> SavedTunables:
        """What was set since the module was loaded, only to be read."""
        return self._memory.peek(self._parameters.era)

    def check_saved(self) -> None:
        """Raise StateError where what was set can't be read, so that it isn't said to be nothing.

        May take some seconds.
        """
        self._memory.read(self._parameters.era)

    def list(self) -> tuple[Setting, ...]:
        """Every known tunable, those that this kernel lacks with ``value`` None."""
        saved = self._saved
        return tuple(self._setting(tunable, saved) for tunable in TUNABLES)

    def setting(self, name: str) -> Setting:
        """One tunable as it is now. Raises UsageError for a name that is none."""
        return self._setting(named(name), self._saved)

    def problem(self, name: str, value: int) -> str | None:
        """Why a value would be refused here, None when it may be written."""
        return self._problem(name, {name: value})

    def set(
        self,
        values: Mapping[str, int],
        t: float,
        guard: bool = False,
        action: str = "set",
    ) -> tuple[Setting, ...]:
        """Write these values, all checked before the first is written.

        ``guard``: whether the caller is the guard process. ``action`` is what the audit log calls
        it. Raises UsageError for a value or name that is refused, UnavailableError where the kernel
        lacks it or permission is missing, AuditError where no log can be written; the last may take
        some seconds.
        """
        for name, value in values.items():
            self._check(name, value, values, guard)
        with recorded(self._log, t, action) as record:
            record.begin(Change(t, n, self._parameters.read(n), v) for n, v in values.items())
            written = False
            try:
                with self._memory.open(self._parameters.era) as saved:
                    self._write(saved, record, values)
                    written = True
            except StateError:
                if not written:
                    raise
                # Each original was on the disk before its value was in the kernel; what the disk
                # would not take is the time of the change.
        return tuple(self.setting(name) for name in values)

    def restore(
        self,
        t: float,
        names: Iterable[str] | None = None,
        known: Mapping[str, SavedTunable] | None = None,
    ) -> tuple[Restored, ...]:
        """Put back what we set, where the live value is still ours; all of it by default.

        Never waits for the audit log, and needs no disk that can be written: what can't be
        forgotten is found restored already the next time. Where the file can't be read, ``known``
        goes back, and what was read of it before; of the rest nobody is told but by `check_saved`.
        May take some seconds. Raises, once all the others are back, what the kernel answered to the
        first it refused.
        """
        chosen = None if names is None else tuple(names)
        choose = (lambda saved: tuple(saved.values)) if chosen is None else (lambda _: chosen)
        return self._restore(t, choose, known)

    def settle(self, t: float, scans: Scans | None = None) -> tuple[Restored, ...]:
        """Restore what is due, and have watched what will be; as ``restore`` otherwise.

        ``scans``: what is seen of them, by default nothing.
        """
        seen = scans or Scans()
        due = self._due(self._saved, seen)
        restored = self._restore(t, lambda now: self._due(now, seen)) if due else ()
        self._have_watched(self._saved)
        return restored

    def watched(self) -> tuple[Hold, ...]:
        """What others set that is to be restored later, or now.

        Raises StateError where what was set could never be read.
        """
        holds = self._holds(self._memory.peek(self._parameters.era, must_know=True)).values()
        return tuple(hold for hold in holds if hold.is_left or (hold.process and not hold.own))

    def _have_watched(self, saved: SavedTunables) -> None:
        """Have the keeper restore later what is to be, whatever becomes of this process."""
        if any(hold.is_left or hold.process for hold in self._holds(saved).values()):
            # Where no keeper can be started, a console that runs restores it, or the next one.
            with contextlib.suppress(OSError, ZconsoleError):
                self._wake()

    def held(self) -> tuple[str, ...]:
        """What this very owner set and has not put back."""
        entries = self._saved.values.items()
        return tuple(name for name, entry in entries if entry.owner == self._owner)

    def until(self, pool_guid: str) -> bool:
        """Switch whether what we set goes back at the end of this pool's scan; whether it will.

        What nobody restores then, this console does; what shall not go back is set to stay. What
        another console, a guard or the autopilot holds is left to them. Raises UsageError when
        nothing else was set.
        """
        with self._memory.open(self._parameters.era) as saved:
            holds = self._holds(saved)
            ours = [name for name, hold in holds.items() if hold.can_switch]
            if not ours:
                others = ", or another process holds it" if holds else ""
                raise UsageError(f"nothing to restore: no tunable was set here{others}")
            on = any(holds[name].until != pool_guid for name in ours)
            owner, guid = (self._owner, pool_guid) if on else (None, None)
            for name in ours:
                saved.values[name] = replace(saved.values[name], owner=owner, until=guid)
        self._have_watched(self._saved)
        return on

    def past(self) -> Past:
        """What was set from consoles since the module was loaded."""
        saved = self._saved
        read = self._parameters.read
        in_place = tuple(name for name in saved.values if saved.has_set(name, read(name)))
        return Past(tuple(saved.changes), self._holds(saved), in_place)

    def _holds(self, saved: SavedTunables) -> dict[str, Hold]:
        return {name: self._hold(name, saved) for name in saved.values}

    def _hold(self, name: str, saved: SavedTunables) -> Hold:
        entry = saved.values[name]
        mark, tunable = entry.owner, BY_NAME.get(name)
        by = Setter.COMMAND if mark is None else Setter.CONSOLE
        if mark is not None and mark == saved.pilot:
            by = Setter.AUTOPILOT
        if tunable is not None and tunable.guarded:
            by = Setter.GUARD
        if mark is None or not self._is_alive(mark):
            return Hold(by, until=entry.until)
        return Hold(by, mark.partition(":")[0], mark == self._owner, entry.until)

    def _due(self, saved: SavedTunables, scans: Scans) -> tuple[str, ...]:
        return tuple(n for n, hold in self._holds(saved).items() if is_due(hold, scans))

    def _restore(
        self,
        t: float,
        choose: Callable[[SavedTunables], Iterable[str]],
        known: Mapping[str, SavedTunable] | None = None,
    ) -> tuple[Restored, ...]:
        """Put back the names chosen of what was set, as it is now."""

        def _all_back(saved: SavedTunables) -> tuple[Restored, ...]:
            saved.values = {**(known or {}), **saved.values}
            return self._restore_all(saved, record, choose(saved))

        done: tuple[Restored, ...] | None = None
        with recorded(self._log, t, "restore") as record:
            try:
                with self._memory.open(self._parameters.era, HURRY) as saved:
                    done = _all_back(saved)
            except StateError:
                # The disk is gone or full; the kernel's value is what matters, so go on without.
                if done is None:
                    done = _all_back(self._saved)
        return done

    def _setting(self, tunable: Tunable, saved: SavedTunables) -> Setting:
        ours, value = saved.values.get(tunable.name), self._parameters.read(tunable.name)
        in_place = saved.has_set(tunable.name, value)
        return Setting(
            tunable,
            value,
            tunable.default(self._parameters.version),
            self._parameters.path(tunable.name),
            value if in_place else ours.value if ours else None,
            ours.original if ours else None,
            self._hold(tunable.name, saved) if in_place else None,
        )

    def _check(self, name: str, value: int, values: Mapping[str, int], guard: bool) -> None:
        if problem := self._problem(name, values):
            raise UsageError(problem)
        if not self._parameters.era:
            raise UnavailableError(NOT_LOADED)
        if self._parameters.read(name) is None:
            raise UnavailableError(f"{name} does not exist on this kernel")
        if named(name).guarded and value and not guard:
            raise UsageError(f"{name} can only be set under a guard that restores it")

    def _problem(self, name: str, values: Mapping[str, int]) -> str | None:
        tunable = named(name)
        if tunable.never:
            return f"{name} is not written: {tunable.never}"
        return tunable.problem(values[name]) or self._pair_problem(values, name)

    def _pair_problem(self, values: Mapping[str, int], name: str) -> str | None:
        """A class's least number of I/Os must not exceed its greatest (zfs(4))."""
        for low, high in (
            (name, _partner(name, "_min_active", "_max_active")),
            (_partner(name, "_max_active", "_min_active"), name),
        ):
            if low is None or high is None or low not in BY_NAME or high not in BY_NAME:
                continue
            least = values.get(low, self._parameters.read(low))
            most = values.get(high, self._parameters.read(high))
            if least is not None and most is not None and least > most:
                return f"{low}={least} would exceed {high}={most}"
        return None

    def _write(
        self, saved: SavedTunables, record: TunableRecord, values: Mapping[str, int]
    ) -> None:
        """Remember first, have it watched, then write: a crash at any time loses no original.

        See ``SavedTunables.has_set``.
        """
        previous, changes = dict(saved.values), []
        for name, value in values.items():
            before, entry = self._parameters.read(name), saved.values.get(name)
            if before is None or before == value:
                continue
            changes.append(Change(record.t, name, before, value))
            original = entry.original if entry and saved.has_set(name, before) else before
            if value != original:
                saved.values[name] = SavedTunable(original, value, record.t, self._owner)
        try:
            saved.save()
            self._have_watched(saved)
            for change in changes:
                self._parameters.write(change.name, change.after)
                if saved.values[change.name].original == change.after:
                    del saved.values[change.name]
                record.done.append(change)
                saved.changes.append(change)
        except ZconsoleError:
            for change in changes[len(record.done) :]:  # the kernel does not have these
                del saved.values[change.name]
                if change.name in previous:
                    saved.values[change.name] = previous[change.name]
            raise

    def _restore_all(
        self, saved: SavedTunables, record: TunableRecord, names: Iterable[str]
    ) -> tuple[Restored, ...]:
        chosen = [name for name in names if name in saved.values]
        live = {n: now for n in chosen if saved.has_set(n, now := self._parameters.read(n))}
        writes = (Change(record.t, n, now, saved.values[n].original) for n, now in live.items())
        record.begin(writes, restore=True)
        done, refused = [], None
        for name in chosen:
            try:
                done.append(self._restore_one(saved, record, name))
            except ZconsoleError as error:  # the others go back all the same
                refused = refused or error
        if refused is not None:
            raise refused
        return tuple(done)

    def _restore_one(self, saved: SavedTunables, record: TunableRecord, name: str) -> Restored:
        entry, hold = saved.values[name], self._hold(name, saved)
        live = self._parameters.read(name)
        if not saved.has_set(name, live):
            del saved.values[name]
            now, ours = exact(name, live), exact(name, entry.value)
            changed = f"left at {now}: somebody else changed it ({ours} was set here)"
            # After a death just before the write, or where restoring it could not be written down.
            back = f"is {now} already"
            return Restored(name, False, back if live == entry.original else changed)
        self._parameters.write(name, entry.original)
        del saved.values[name]
        record.done.append(Change(record.t, name, live, entry.original))
        saved.changes.append(record.done[-1])
        other = hold.by is Setter.CONSOLE and hold.process and not hold.own
        held = f", which the console of process {hold.process} held" if other else ""
        return Restored(name, True, f"restored to {exact(name, entry.original)}{held}")


def _partner(name: str, ending: str, other: str) -> str | None:
    if name == "zfs_vdev_max_active" or not name.endswith(ending):
        return None
    return name.removesuffix(ending) + other
