"""One experiment, from its choices to its verdict: a crash, a failing call, or interference."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from tests.cuts import oracle, others, scripts
from tests.cuts.choices import Choose
from tests.cuts.kept_journal import rows_of
from tests.cuts.machine import Before, Machine
from tests.cuts.model_sys import TICK, ModelSys
from tests.cuts.oracle import Seen, Wanted
from tests.cuts.others import ACTS, Other
from tests.cuts.timeline import Change, Crash, Timeline
from tests.cuts.workloads import Workload
from tests.faults.harness import CHANGING

SPOILED = 0
"""Instead of an error: the call silently writes other data than it was given."""
COMMIT = -1
"""Instead of an error: the number is that of a journal commit, which fails."""
FULL = -2
"""Instead of an error: from the journal commit with that number on, its disk is full."""
OF_ALL = (errno.EIO, errno.EINTR, errno.EACCES, errno.ENOENT)
OF_CHANGES = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
NOT_ERRORS = {
    ("lstat", errno.ENOENT),
    ("set_times", errno.EACCES),
    ("ioctl", errno.EACCES),
}
"""Errors that are normal answers: no such name; the time of another user's directory, or a project,
cannot be set.
"""
MOST_PAUSE = 5
SELDOM = 5
"""After one crash in SELDOM + 1, somebody changes a file before the job is resumed, and after one
in so many the first recovery is stopped.
"""
MOST_TICKS = 12
"""Most pieces of work of a recovery that is stopped."""
AGAIN = 3
"""One crash in AGAIN is followed by a second one during the recovery."""


@dataclass(slots=True)
class Failing:
    """One failing call of a run."""

    number: int
    code: int
    called: str = ""

    def __call__(self, system: ModelSys, call: str) -> None:
        if self.code == SPOILED:
            system.spoiled = self.number
        elif self.code > 0 and system.calls == self.number:
            self.called = call
            raise OSError(self.code, os.strerror(self.code))


@dataclass(slots=True)
class Experiments:
    """Everything that can happen to one workload; states that ended well are not tried again."""

    workload: Workload
    states: int = 0
    """Crash states tried so far."""
    _ended_well: set[int] = field(default_factory=set)
    _new: Machine = field(init=False)
    _before: Seen = field(init=False)
    _run: tuple[Timeline, Machine] = field(init=False)

    def __post_init__(self) -> None:
        self._new = self.workload.machine()
        self._before = oracle.seen(self._new.disk)
        self._run = self._to_the_end(None)

    def _to_the_end(self, before: Before | None) -> tuple[Timeline, Machine]:
        machine = self._new.again()
        machine.before = before
        if isinstance(before, Failing) and before.code in (COMMIT, FULL):
            machine.failing_commit, before.called = before.number, "commit"
            machine.full = before.code == FULL
        timeline, machine.ended = machine.run()
        machine.before = None
        return timeline, machine

    @property
    def timeline(self) -> Timeline:
        """Return the timeline of an undisturbed run."""
        return self._run[0]

    @property
    def calls(self) -> int:
        """Return the number of calls in an undisturbed run."""
        return len(self.names)

    @property
    def names(self) -> list[str]:
        """Return the calls of an undisturbed run."""
        return self._run[1].calls

    def faults(self) -> list[tuple[int, int]]:
        """Return every call that can fail, by its number, with every error it can return."""
        calls = [
            (number, code)
            for number, call in enumerate(self.names, start=1)
            for code in _errors_of(call)
            if (call, code) not in NOT_ERRORS
        ]
        commits = range(1, self._run[1].commits + 1)
        return calls + [(number, code) for code in (COMMIT, FULL) for number in commits]

    def any(self, choose: Choose) -> Iterator[str]:
        """Run a chosen experiment; the choices made are what repeats it.

        It is a crash, a failing call or an interfering process; the last two with or without a
        crash.
        """
        match choose(1 if self.workload.alone else 2):
            case 0:
                cuts = self.timeline.cuts()
                yield from self.crash(cuts[choose(len(cuts) - 1)], choose)
            case 1:
                faults = self.faults()
                yield from self.error(*faults[choose(len(faults) - 1)], choose)
            case 2:
                yield from self.other(self._someone(choose), choose)

    def _someone(self, choose: Choose) -> Other:
        paths = list(self._before.files)
        if self.workload.steps:
            script = partial(scripts.follow, steps=self.workload.steps)
            return Other(script, b"", choose(self.calls - 1) + 1, choose(MOST_PAUSE))
        acts = list(ACTS.values())
        act, path = acts[choose(len(acts) - 1)], paths[choose(len(paths) - 1)]
        return Other(act, path, choose(self.calls - 1) + 1, choose(MOST_PAUSE))

    def _wanted(self, timeline: Timeline, cut: int, power: bool) -> Wanted:
        return Wanted(self._before, timeline.notes(cut), timeline.steps(cut), power)

    # Crashes.

    def undisturbed(self) -> Iterator[str]:
        """Yield what is wrong at the end of a run without a crash."""
        timeline, machine = self._run
        wanted = self._wanted(timeline, len(timeline.events), power=False)
        yield from oracle.finished(oracle.seen(machine.disk), machine.rows, wanted)

    def crash(self, cut: int, choose: Choose) -> Iterator[str]:
        """Yield what is wrong after a crash at a cut, or after another crash during recovery."""
        timeline, machine = self._run
        crash = timeline.crash(cut, choose, self.workload.modes)
        if crash is None:
            return
        yield from self._crashed(machine, crash, self._wanted(timeline, cut, crash.power), choose)

    def _crashed(
        self, machine: Machine, crash: Crash, wanted: Wanted, choose: Choose, again: bool = True
    ) -> Iterator[str]:
        self.states += 1
        found = oracle.seen(crash.disk)
        yield from (
            f"at the crash ({crash.mode}): {problem}"
            for problem in oracle.at_crash(found, rows_of(crash.journal), wanted)
        )
        if again:
            wanted = self._meanwhile(machine, crash, wanted, choose)
        after = machine.crashed(crash)
        if again and choose(SELDOM) == SELDOM:
            after.recover(choose(MOST_TICKS))
            yield from (
                f"after a stopped recovery ({crash.mode}): {problem}"
                for problem in oracle.at_crash(oracle.seen(after.disk), after.rows, wanted)
            )
        recovery = after.recover()
        yield from (
            f"after the recovery ({crash.mode}): {problem}"
            for problem in self._settled(after, wanted)
        )
        if again and choose(AGAIN - 1) == AGAIN - 1:
            cuts = recovery.cuts()
            second = recovery.crash(cuts[choose(len(cuts) - 1)], choose, self.workload.modes)
            if second is not None:
                wanted = replace(wanted, power=wanted.power or second.power)
                yield from (
                    f"in the recovery, {problem}"
                    for problem in self._crashed(after, second, wanted, choose, again=False)
                )

    def _meanwhile(self, machine: Machine, crash: Crash, wanted: Wanted, choose: Choose) -> Wanted:
        """Let other processes continue after the crash, or change files before the job resumes."""
        tick = machine.clock.tick + TICK
        done = [] if crash.power else others.goes_on(crash.disk, wanted.notes, tick)
        lonely = self.workload.alone or bool(self.workload.steps)
        if not done and not lonely and choose(SELDOM) == SELDOM:
            paths = list(self._before.files)
            path = paths[choose(len(paths) - 1)]
            done = others.meanwhile(crash.disk, path, self._before.group(path), tick)
        return replace(wanted, notes=[*wanted.notes, *done])

    def _settled(self, machine: Machine, wanted: Wanted) -> Iterator[str]:
        """Yield what is wrong after a recovery, after a second one, and at the end of the job."""
        found = oracle.seen(machine.disk)
        problems = list(oracle.recovered(found, machine.rows, wanted))
        yield from problems
        key = _fingerprint(machine, found, wanted)
        if problems or key in self._ended_well:
            return
        problems = list(self._ends(machine.again(), wanted))
        yield from problems
        if not problems:
            self._ended_well.add(key)

    def _ends(self, machine: Machine, wanted: Wanted) -> Iterator[str]:
        for event in machine.recover().events:
            if isinstance(event, Change):
                yield f"a second recovery calls {event.call}"
        _, ended = machine.run()
        if ended != "done":
            yield f"the job resumed ended with {ended}"
        found = oracle.seen(machine.disk)
        for problem in oracle.finished(found, machine.rows, wanted):
            yield f"at the end: {problem}"

    # Errors, and others.

    def error(self, number: int, code: int, choose: Choose) -> Iterator[str]:
        """Yield what is wrong when a call fails and the job is resumed, or crashes before that."""
        failing = Failing(number, code)
        timeline, machine = self._to_the_end(failing)
        unwatched = failing.called in WATCHING or code == FULL
        wanted = Wanted(self._before, power=False, errors=True, unwatched=unwatched)
        for problem in self._disturbed(timeline, machine, wanted, choose):
            yield f"{errno.errorcode.get(code, 'no success')} from {failing.called}: {problem}"

    def other(self, other: Other, choose: Choose) -> Iterator[str]:
        """Yield what is wrong when somebody works in the tree, with or without a crash."""
        timeline, machine = self._to_the_end(other)
        if machine.ended != "done":
            yield f"the job ended with {machine.ended}"
        wanted = self._wanted(timeline, len(timeline.events), power=False)
        for problem in self._disturbed(timeline, machine, wanted, choose):
            yield f"{other}: {problem}"

    def _disturbed(
        self, timeline: Timeline, machine: Machine, wanted: Wanted, choose: Choose
    ) -> Iterator[str]:
        self.states += 1
        yield from self._failed(machine, wanted)
        if choose(1):
            cuts = timeline.cuts()
            cut = cuts[choose(len(cuts) - 1)]
            crash = timeline.crash(cut, choose, self.workload.modes)
            if crash is not None:
                crashed = self._wanted(timeline, cut, crash.power)
                wanted = replace(crashed, errors=wanted.errors, unwatched=wanted.unwatched)
                yield from self._crashed(machine, crash, wanted, choose)

    def _failed(self, machine: Machine, wanted: Wanted) -> Iterator[str]:
        """Yield what is wrong after a job that met an error has ended."""
        found = oracle.seen(machine.disk)
        yield from oracle.at_crash(found, machine.rows, wanted)
        after = machine.again()
        after.recover()
        yield from self._settled(after, wanted)


WATCHING = ("watcher", "watch", "changes")
"""Calls that watch directories; if one fails, changes by others go unnoticed.

A journal whose disk is full does not hear of changes, either.
"""


def _errors_of(call: str) -> tuple[int, ...]:
    if call == "pwrite":
        return (SPOILED, *OF_ALL, *OF_CHANGES)
    return (*OF_ALL, *OF_CHANGES) if call in CHANGING else OF_ALL


def _fingerprint(machine: Machine, found: Seen, wanted: Wanted) -> int:
    """Return a key that is equal for machines on which a job does the same."""
    rows = tuple(tuple(row.values()) for row in machine.rows)
    parts = (found.files, found.numbers, found.folders)
    facts = tuple(frozenset(part.items()) for part in parts)
    return hash((facts, rows, tuple(machine.folders), tuple(wanted.notes), wanted.power))
