"""Setting and restoring tunables: every value is checked, and every original saved before."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from zconsole.errors import UnavailableError, UsageError, ZconsoleError
from zconsole.system.audit import Log
from zconsole.system.host import alive
from zconsole.system.state_dir import StateError
from zconsole.tunables.catalog import (
    BY_NAME,
    HISTORICAL,
    TUNABLES,
    Tunable,
    exact,
    explain,
    named,
)
from zconsole.tunables.holds import Hold, Restoring, Scans, Setter, is_due, next_way
from zconsole.tunables.parameters import NOT_LOADED, Parameters
from zconsole.tunables.store import HURRY, Change, SavedTunable, SavedTunables, TunableStore

DONE = "done"


@dataclass(slots=True)
class TunableRecord:
    """The audit log's record of one change of tunables: a line before, and one after."""

    log: Log
    t: float
    """Epoch seconds."""
    action: str
    """set, ``preset NAME`` or restore."""
    done: list[Change] = field(default_factory=list)
    """Changes written to the kernel, in order."""
    _begun: bool = False

    def begin(self, wanted: Iterable[Change], restore: bool = False) -> None:
        """Log the changes about to be made. Raises AuditError if no log can be written.

        Restoring does not wait for the log, and raises nothing.
        """
        if changes := [change for change in wanted if change.before != change.after]:
            keep = self.log.note if restore else self.log.write
            keep(self.t, "begun", **self._fields(changes))
            self._begun = True

    def _fields(self, changes: Iterable[Change]) -> dict[str, Any]:
        values = [{"name": c.name, "old": c.before, "new": c.after} for c in changes]
        return {"kind": "tunable", "action": self.action, "values": values}

    def end(self, result: str) -> None:
        """Log the result of the changes that were begun; does not wait for the log."""
        if self._begun:
            fields = {**self._fields(self.done), "ok": result == DONE, "result": result}
            self.log.note(self.t, "ended", **fields)


@contextlib.contextmanager
def recorded(log: Log, at: float, action: str) -> Iterator[TunableRecord]:
    """Yield the record of a change at ``at``; its last line is written when the context ends."""
    record = TunableRecord(log, at, action)
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
    """Live value; None if this kernel does not have the tunable."""
    default: int | None
    path: str
    set_by_us: int | None = None
    """Value that was set from a console, even if somebody else changed it since."""
    original: int | None = None
    """Value before the first console changed it."""
    hold: Hold | None = None
    """Holder of the value; None if the live value is not one that we set."""

    @property
    def ours(self) -> bool:
        """Whether the live value is the one that we set."""
        return self.set_by_us is not None and self.value == self.set_by_us


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of restoring one parameter."""

    name: str
    put_back: bool
    text: str


@dataclass(frozen=True, slots=True)
class Past:
    """The changes made by consoles, for the rate timeline, and the holders of the values."""

    changes: tuple[Change, ...] = ()
    """Changes, oldest first."""
    holds: Mapping[str, Hold] = field(default_factory=dict)
    """Holder of each tunable that was set, even if somebody else changed it since."""
    in_place: tuple[str, ...] = ()
    """Names of tunables whose live value is one that we set."""

    @property
    def own(self) -> tuple[str, ...]:
        """Names in ``in_place`` that this console holds."""
        return tuple(name for name in self.in_place if self.holds[name].own)


class Control:
    """Reads, sets and restores the tunables of one machine, or of a simulated kernel."""

    def __init__(
        self,
        parameters: Parameters,
        memory: TunableStore,
        log: Log,
        owner: str | None = None,
        is_alive: Callable[[str], bool] = alive,
        wake: Callable[[], object] = lambda: None,
    ) -> None:
        """``log`` gets a line before and after every change of the kernel's values.

        ``owner`` is the mark of the process that holds the values set; None: they are set to stay.
        ``wake`` has the keeper watch the values that are to be restored later.
        """
        self._parameters = parameters
        self._memory = memory
        self._log = log
        self._owner = owner
        self._is_alive = is_alive
        self._wake = wake

    @property
    def _saved(self) -> SavedTunables:
        """The values set since the module was loaded, only to be read."""
        return self._memory.peek(self._parameters.era)

    def check_saved(self) -> None:
        """Raise StateError if the saved values can't be read, so that they aren't reported as none.

        May take some seconds.
        """
        self._memory.read(self._parameters.era)

    def list(self) -> tuple[Setting, ...]:
        """Return every known tunable; those that this kernel lacks have ``value`` None.

        Those of releases before 0.8 are left out if this kernel lacks them.
        """
        saved = self._saved
        found = (self._setting(tunable, saved) for tunable in TUNABLES)
        return tuple(s for s in found if s.value is not None or s.tunable.name not in HISTORICAL)

    def setting(self, name: str) -> Setting:
        """Return one tunable as it is now. Raises UsageError for an unknown name."""
        return self._setting(named(name), self._saved)

    def problem(self, name: str, value: int) -> str | None:
        """Return why a value would be refused here; None if it may be written."""
        return self._problem(name, {name: value})

    def set(
        self,
        values: Mapping[str, int],
        at: float,
        guard: bool = False,
        action: str = "set",
    ) -> tuple[Setting, ...]:
        """Write these values, all of which are checked before the first is written.

        ``guard``: whether the caller is the guard process. ``action`` is the name of the change in
        the audit log. Raises UsageError for a value or name that is refused, UnavailableError if
        the kernel lacks it or permission is missing, AuditError if no log can be written; the last
        may take some seconds.
        """
        for name, value in values.items():
            self._check(name, value, values, guard)
        with recorded(self._log, at, action) as record:
            record.begin(Change(at, n, self._parameters.read(n), v) for n, v in values.items())
            written = False
            try:
                with self._memory.open(self._parameters.era) as saved:
                    self._write(saved, record, values)
                    written = True
            except StateError:
                if not written:
                    raise
                # Each original was on the disk before its value was in the kernel; only the list
                # of changes could not be saved.
        return tuple(self.setting(name) for name in values)

    def restore(
        self,
        at: float,
        names: Iterable[str] | None = None,
        known: Mapping[str, SavedTunable] | None = None,
    ) -> tuple[Restored, ...]:
        """Restore tunables (by default all) whose live value is still one that we set.

        Never waits for the audit log, and needs no writable disk: an entry that can't be deleted
        is found restored already the next time. If the file can't be read, the values in ``known``
        and those read earlier are restored; only `check_saved` tells that there may be more. May
        take some seconds. Raises the kernel's first refusal, once all the others are restored.
        """
        chosen = None if names is None else tuple(names)
        choose = (lambda saved: tuple(saved.values)) if chosen is None else (lambda _: chosen)
        return self._restore(at, choose, known)

    def settle(self, at: float, scans: Scans | None = None) -> tuple[Restored, ...]:
        """Restore the tunables that are due, and have those watched that will be.

        ``scans``: the scans observed, by default none. Waits and raises as ``restore`` does.
        """
        seen = scans or Scans()
        due = self._due(self._saved, seen)
        restored = self._restore(at, lambda now: self._due(now, seen)) if due else ()
        self._have_watched(self._saved)
        return restored

    def watched(self) -> tuple[Hold, ...]:
        """Return the holds of other processes whose values are to be restored later, or now.

        Raises StateError if the saved values could never be read.
        """
        holds = self._holds(self._memory.peek(self._parameters.era, must_know=True)).values()
        return tuple(hold for hold in holds if hold.is_left or (hold.process and not hold.own))

    def _have_watched(self, saved: SavedTunables) -> None:
        """Have the keeper restore the values that need it, even if this process is killed."""
        if any(hold.is_left or hold.process for hold in self._holds(saved).values()):
            # Where no keeper can be started, a console that runs restores it, or the next one.
            with contextlib.suppress(OSError, ZconsoleError):
                self._wake()

    def held(self) -> tuple[str, ...]:
        """Return the names that this owner set and has not restored."""
        entries = self._saved.values.items()
        return tuple(name for name, entry in entries if entry.owner == self._owner)

    def until(self, pool_guid: str) -> Hold:
        """Switch when our values are restored, in turn; return how they are held now.

        At the end of this pool's scan, not before the next boot, or once this console is gone:
        unless it is the second, this console then holds all of them, also those without a holder.
        Values that another console, a guard or the autopilot holds are left to them. Raises
        UsageError if nothing else was set.
        """
        with self._memory.open(self._parameters.era) as saved:
            holds = self._holds(saved)
            ours = [name for name, hold in holds.items() if hold.can_switch]
            if not ours:
                others = ", or another process holds it" if holds else ""
                raise UsageError(f"nothing to restore: no tunable was set here{others}")
            way = next_way(holds.values(), pool_guid)
            owner = None if way is Restoring.NEVER else self._owner
            guid = pool_guid if way is Restoring.AT_END else None
            for name in ours:
                saved.values[name] = replace(saved.values[name], owner=owner, until=guid)
        self._have_watched(self._saved)
        return self._hold(ours[0], self._saved)

    def past(self) -> Past:
        """Return the changes made by consoles since the module was loaded."""
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
        if mark is None or not (mark == self._owner or self._is_alive(mark)):
            return Hold(by, until=entry.until)
        return Hold(by, mark.partition(":")[0], mark == self._owner, entry.until)

    def _due(self, saved: SavedTunables, scans: Scans) -> tuple[str, ...]:
        return tuple(n for n, hold in self._holds(saved).items() if is_due(hold, scans))

    def _restore(
        self,
        at: float,
        choose: Callable[[SavedTunables], Iterable[str]],
        known: Mapping[str, SavedTunable] | None = None,
    ) -> tuple[Restored, ...]:
        """Restore the names that ``choose`` picks from the saved values, read under the lock."""

        def _all_back(saved: SavedTunables) -> tuple[Restored, ...]:
            saved.values = {**(known or {}), **saved.values}
            return self._restore_all(saved, record, choose(saved))

        done: tuple[Restored, ...] | None = None
        with recorded(self._log, at, "restore") as record:
            try:
                with self._memory.open(self._parameters.era, HURRY) as saved:
                    done = _all_back(saved)
            except StateError:
                # The disk is gone or full: restoring the kernel's value matters more than the file.
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
        is_missing = self._parameters.read(name) is None
        if is_missing and (successors := explain(name)):
            raise UsageError(successors)
        if not self._parameters.era:
            raise UnavailableError(NOT_LOADED)
        if is_missing:
            raise UnavailableError(f"{name} does not exist on this kernel")
        if named(name).guarded and value and not guard:
            raise UsageError(f"{name} can only be set under a guard that restores it")

    def _problem(self, name: str, values: Mapping[str, int]) -> str | None:
        tunable = named(name)
        if tunable.never:
            return f"{name} is not written: {tunable.never}"
        return tunable.problem(values[name]) or self._pair_problem(values, name)

    def _pair_problem(self, values: Mapping[str, int], name: str) -> str | None:
        """Return a reason if a class's minimum I/Os would exceed its maximum (zfs(4)), or None."""
        prefix = name.removesuffix("_min_active").removesuffix("_max_active")
        low, high = f"{prefix}_min_active", f"{prefix}_max_active"
        if name not in (low, high) or not {low, high} <= BY_NAME.keys():
            return None
        least, most = (values.get(each, self._parameters.read(each)) for each in (low, high))
        if least is not None and most is not None and least > most:
            return f"{low}={least} would exceed {high}={most}"
        return None

    def _write(
        self, saved: SavedTunables, record: TunableRecord, values: Mapping[str, int]
    ) -> None:
        """Save the originals, have them watched, then write: a crash at any time loses none.

        They go back at the end of a scan if what this owner set before does. The order must not
        change. ``SavedTunables.has_set`` relies on it.
        """
        previous, changes = dict(saved.values), []
        ours = [e for e in saved.values.values() if e.owner is not None and e.owner == self._owner]
        until = next((entry.until for entry in ours if entry.until is not None), None)
        for name, value in values.items():
            before, entry = self._parameters.read(name), saved.values.get(name)
            if before is None or before == value:
                continue
            changes.append(Change(record.t, name, before, value))
            # A value that somebody else set meanwhile is the new original.
            original = entry.original if entry and saved.has_set(name, before) else before
            if value != original:
                saved.values[name] = SavedTunable(original, value, record.t, self._owner, until)
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
            for change in changes[len(record.done) :]:  # these were not written to the kernel
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
            except ZconsoleError as error:  # restore the others all the same
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
            # The original is live if a process died just before its write, or restored it but could
            # not save that.
            back = f"is {now} already"
            return Restored(name, False, back if live == entry.original else changed)
        self._parameters.write(name, entry.original)
        del saved.values[name]
        record.done.append(Change(record.t, name, live, entry.original))
        saved.changes.append(record.done[-1])
        other = hold.by is Setter.CONSOLE and hold.process and not hold.own
        held = f", which the console of process {hold.process} held" if other else ""
        return Restored(name, True, f"restored to {exact(name, entry.original)}{held}")
