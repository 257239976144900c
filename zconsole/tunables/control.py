"""Setting tunables and putting them back, with every value checked and every original kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from zconsole.errors import UnavailableError, UsageError, ZconsoleError
from zconsole.system.audit import Log
from zconsole.system.host import alive
from zconsole.system.state_dir import StateError
from zconsole.tunables.catalog import BY_NAME, TUNABLES, Tunable, explain
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
    """What was done from consoles, for the rate timeline and for the ends of scans."""

    changes: tuple[Change, ...] = ()
    """Oldest first."""
    ends: Mapping[str, str] = field(default_factory=dict)
    """Names that go back at the end of a scan, with the GUID of its pool."""
    in_place: tuple[str, ...] = ()
    """Names whose live value is the one set from here."""
    own: tuple[str, ...] = ()
    """Those of them that this very console set."""

    def due(self, pool_guid: str | None) -> tuple[str, ...]:
        """Names to put back now that this pool's scan has ended."""
        return tuple(name for name, guid in self.ends.items() if guid == pool_guid)


class Control:
    """The tunables of one machine, or one simulated kernel."""

    def __init__(
        self, parameters: Parameters, memory: TunableStore, log: Log, owner: str | None = None
    ) -> None:
        """``log`` has a line before and after all that is written to the kernel."""
        self._parameters = parameters
        self._memory = memory
        self._log = log
        self._owner = owner

    def list(self) -> tuple[Setting, ...]:
        """Every known tunable, those that this kernel lacks with ``value`` None."""
        saved = self._memory.peek(self._parameters.era)
        return tuple(self._setting(tunable, saved) for tunable in TUNABLES)

    def setting(self, name: str) -> Setting:
        """One tunable as it is now. Raises UsageError for a name that is none."""
        return self._setting(known(name), self._memory.peek(self._parameters.era))

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
                    for name, value in values.items():
                        self._write(saved, record, name, value)
                    written = True
            except StateError:
                if not written:
                    raise
                # Each original was on the disk before its value was in the kernel; what the disk
                # would not take is the time of the change.
        return tuple(self.setting(name) for name in values)

    def restore(self, t: float, names: Iterable[str] | None = None) -> tuple[Restored, ...]:
        """Put back what we set, where the live value is still ours; all of it by default.

        Never waits for the audit log, and needs no disk that can be written or that answers: what
        can't be forgotten is found changed by somebody else the next time. May take some seconds.
        Raises, once all the others are back, what the kernel answered to the first it refused.
        """
        done: tuple[Restored, ...] | None = None
        with recorded(self._log, t, "restore") as record:
            try:
                with self._memory.open(self._parameters.era, HURRY) as saved:
                    done = self._put_all_back(saved, record, names)
            except StateError:
                # The disk is gone or full; the kernel's value is what matters, so go on without.
                if done is None:
                    saved = self._memory.peek(self._parameters.era)
                    done = self._put_all_back(saved, record, names)
        return done

    def orphans(self, is_alive: Callable[[str], bool] = alive) -> dict[str, SavedTunable]:
        """What a console that is no longer there had set, still in place: offer to put it back."""
        saved = self._memory.peek(self._parameters.era)
        return {
            name: entry
            for name, entry in saved.values.items()
            if entry.owner is not None
            and not is_alive(entry.owner)
            and self._parameters.read(name) == entry.value
        }

    def held(self) -> tuple[str, ...]:
        """What this very owner set and has not put back."""
        saved = self._memory.peek(self._parameters.era)
        return tuple(n for n, entry in saved.values.items() if entry.owner == self._owner)

    def until(self, pool_guid: str) -> bool:
        """Switch whether all we set goes back at the end of this pool's scan; whether it will.

        Raises UsageError when nothing to restore: no tunable was set here.
        """
        with self._memory.open(self._parameters.era) as saved:
            if not saved.values:
                raise UsageError("nothing to restore: no tunable was set here")
            on = any(entry.until != pool_guid for entry in saved.values.values())
            for name, entry in saved.values.items():
                saved.values[name] = replace(entry, until=pool_guid if on else None)
            return on

    def past(self) -> Past:
        """What was set from consoles since the module was loaded."""
        saved = self._memory.peek(self._parameters.era)
        ends = {name: entry.until for name, entry in saved.values.items() if entry.until}
        read = self._parameters.read
        in_place = tuple(name for name, entry in saved.values.items() if read(name) == entry.value)
        own = tuple(name for name in in_place if saved.values[name].owner == self._owner)
        return Past(tuple(saved.changes), ends, in_place, own)

    def _setting(self, tunable: Tunable, saved: SavedTunables) -> Setting:
        ours = saved.values.get(tunable.name)
        return Setting(
            tunable,
            self._parameters.read(tunable.name),
            tunable.default(self._parameters.version),
            self._parameters.path(tunable.name),
            ours.value if ours else None,
            ours.original if ours else None,
        )

    def _check(self, name: str, value: int, values: Mapping[str, int], guard: bool) -> None:
        if problem := self._problem(name, values):
            raise UsageError(problem)
        if not self._parameters.era:
            raise UnavailableError(NOT_LOADED)
        if self._parameters.read(name) is None:
            raise UnavailableError(f"{name} does not exist on this kernel")
        if known(name).guarded and value and not guard:
            raise UsageError(f"{name} can only be set under a guard that restores it")

    def _problem(self, name: str, values: Mapping[str, int]) -> str | None:
        tunable = known(name)
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

    def _write(self, saved: SavedTunables, record: TunableRecord, name: str, value: int) -> None:
        """Remember first, then write: a crash between leaves a memory that no live value meets."""
        before = self._parameters.read(name)
        if before is None or before == value:
            return
        entry = saved.values.get(name)
        original = entry.original if entry and entry.value == before else before
        previous = dict(saved.values)
        try:
            if value == original:
                saved.values.pop(name, None)
            else:
                saved.values[name] = SavedTunable(original, value, record.t, self._owner)
                saved.save()  # durable before the kernel has the value: a crash must find it
            self._parameters.write(name, value)
        except BaseException:
            saved.values = previous
            raise
        record.done.append(Change(record.t, name, before, value))
        saved.changes.append(record.done[-1])

    def _put_all_back(
        self, saved: SavedTunables, record: TunableRecord, names: Iterable[str] | None
    ) -> tuple[Restored, ...]:
        chosen = list(saved.values) if names is None else [n for n in names if n in saved.values]
        ours = {n: saved.values[n] for n in chosen}
        writes = (Change(record.t, n, e.value, e.original) for n, e in ours.items())
        record.begin((w for w in writes if self._parameters.read(w.name) == w.before), restore=True)
        done, refused = [], None
        for name in chosen:
            try:
                done.append(self._put_back(saved, record, name))
            except ZconsoleError as error:  # the others go back all the same
                refused = refused or error
        if refused is not None:
            raise refused
        return tuple(done)

    def _put_back(self, saved: SavedTunables, record: TunableRecord, name: str) -> Restored:
        entry = saved.values[name]
        live, tunable = self._parameters.read(name), known(name)
        if live != entry.value:
            del saved.values[name]
            now, ours = tunable.exact(live), tunable.exact(entry.value)
            return Restored(
                name, False, f"left at {now}: somebody else changed it ({ours} was set here)"
            )
        self._parameters.write(name, entry.original)
        del saved.values[name]
        record.done.append(Change(record.t, name, entry.value, entry.original))
        saved.changes.append(record.done[-1])
        return Restored(name, True, f"restored to {tunable.exact(entry.original)}")


def put_back(
    parameters: Parameters,
    ours: Mapping[str, int],
    originals: Mapping[str, int],
    record: Callable[[], AbstractContextManager[TunableRecord]],
) -> None:
    """Write the originals of what still has our value; what somebody else changed is left.

    Asks no file. Raises, once all the others are back, what the kernel answered to the first that
    it refused.
    """
    changes = [(n, v, originals[n]) for n, v in ours.items() if parameters.read(n) == v]
    if not changes:
        return
    refused: ZconsoleError | None = None
    with record() as written:
        todo = [Change(written.t, *change) for change in changes]
        written.begin(todo, restore=True)
        for change in todo:
            try:
                parameters.write(change.name, change.after)
                written.done.append(change)
            except ZconsoleError as error:
                refused = refused or error
        if refused is not None:
            raise refused


def known(name: str) -> Tunable:
    """The tunable of this name. Raises UsageError that explains an old or foreign one."""
    tunable = BY_NAME.get(name)
    if tunable is None:
        raise UsageError(explain(name) or f"no tunable {name!r}; see zconsole tunables list")
    return tunable


def _partner(name: str, ending: str, other: str) -> str | None:
    if name == "zfs_vdev_max_active" or not name.endswith(ending):
        return None
    return name.removesuffix(ending) + other
