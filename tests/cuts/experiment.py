"""One crash from its choices to its verdict, and one call that fails."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tests.cuts import oracle
from tests.cuts.choices import Choose
from tests.cuts.kept_journal import rows_of
from tests.cuts.machine import Machine
from tests.cuts.model_sys import ModelSys
from tests.cuts.oracle import Seen, Wanted
from tests.cuts.timeline import Change, Crash, Timeline
from tests.cuts.workloads import Workload

ERRORS = (
    errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.ENOENT, errno.EINTR,
)  # fmt: skip
AGAIN = 3
"""Of so many crashes one has a second crash, in the midst of the recovery."""


@dataclass(slots=True)
class Failing:
    """One call that fails, of those a run makes."""

    number: int
    code: int
    called: str = ""

    def __call__(self, system: ModelSys, call: str) -> None:
        if system.calls == self.number:
            self.called = call
            raise OSError(self.code, os.strerror(self.code))


@dataclass(slots=True)
class Experiments:
    """Everything that can happen to one workload; what ended well once is not tried again."""

    workload: Workload
    modes: int = 2
    states: int = 0
    """Crash states that were tried."""
    _ended_well: set[int] = field(default_factory=set)
    _before: Seen = field(init=False)
    _run: tuple[Timeline, Machine] = field(init=False)

    def __post_init__(self) -> None:
        self._before = oracle.seen(self.workload.machine().disk)
        self._run = self._to_the_end(None)
        self.modes = self.workload.modes

    def _to_the_end(self, failing: Failing | None) -> tuple[Timeline, Machine]:
        machine = self.workload.machine()
        machine.before = failing or self.workload.others()
        timeline, machine.ended = machine.run()
        machine.before = None
        return timeline, machine

    @property
    def timeline(self) -> Timeline:
        """What a run did that nothing disturbed."""
        return self._run[0]

    @property
    def calls(self) -> int:
        """How many calls that took."""
        return self._run[1].calls

    # Crashes.

    def undisturbed(self) -> Iterator[str]:
        """What is wrong at the end without any crash."""
        timeline, machine = self._run
        wanted = Wanted(self._before, timeline.notes(len(timeline.events)), power=False)
        yield from oracle.finished(oracle.seen(machine.disk), machine.rows, wanted)

    def crash(self, cut: int, choose: Choose) -> Iterator[str]:
        """What is wrong after a crash at a cut, or one in the recovery from that."""
        timeline, machine = self._run
        crash = timeline.crash(cut, choose, self.modes)
        if crash is None:
            return
        wanted = Wanted(self._before, timeline.notes(cut), crash.power)
        yield from self._crashed(machine, crash, wanted, choose)

    def _crashed(
        self, machine: Machine, crash: Crash, wanted: Wanted, choose: Choose, again: bool = True
    ) -> Iterator[str]:
        self.states += 1
        found = oracle.seen(crash.disk)
        yield from (
            f"at the crash ({crash.mode}): {problem}"
            for problem in oracle.at_crash(found, rows_of(crash.journal), wanted)
        )
        after = machine.crashed(crash)
        recovery = after.recover()
        yield from (
            f"after the recovery ({crash.mode}): {problem}"
            for problem in self._settled(after, wanted)
        )
        if again and choose(AGAIN - 1) == AGAIN - 1:
            cuts = recovery.cuts()
            second = recovery.crash(cuts[choose(len(cuts) - 1)], choose, self.modes)
            if second is not None:
                wanted = replace(wanted, power=wanted.power or second.power)
                yield from (
                    f"in the recovery, {problem}"
                    for problem in self._crashed(after, second, wanted, choose, again=False)
                )

    def _settled(self, machine: Machine, wanted: Wanted) -> Iterator[str]:
        """What is wrong after a recovery, after a second one, and at the end of the job."""
        found = oracle.seen(machine.disk)
        problems = list(oracle.recovered(found, machine.rows, wanted))
        yield from problems
        key = _fingerprint(machine, found, wanted)
        if problems or key in self._ended_well:
            return
        yield from self._ends(machine.again(), wanted)
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

    # Errors.

    def error(self, number: int, code: int, choose: Choose) -> Iterator[str]:
        """What is wrong when one call fails and the job is resumed, or crashes before that."""
        failing = Failing(number, code)
        timeline, machine = self._to_the_end(failing)
        what = f"with {errno.errorcode[code]} from {failing.called}"
        self.states += 1
        wanted = Wanted(self._before, (), power=False)
        found = oracle.seen(machine.disk)
        known = list(oracle.at_crash(found, machine.rows, wanted))
        ends = list(self._ends(machine.again(), wanted))
        yield from (f"{what}: {problem}" for problem in known + ends)
        if choose(1):
            cuts = timeline.cuts()
            crash = timeline.crash(cuts[choose(len(cuts) - 1)], choose, self.modes)
            if crash is not None:
                wanted = replace(wanted, power=crash.power)
                for problem in self._crashed(machine, crash, wanted, choose):
                    yield f"{what}, {problem}"


def _fingerprint(machine: Machine, found: Seen, wanted: Wanted) -> int:
    """The same for machines of which a job makes the same."""
    rows = tuple(tuple(row.values()) for row in machine.rows)
    parts = (found.files, found.numbers, found.folders)
    looks = tuple(frozenset(part.items()) for part in parts)
    return hash((looks, rows, tuple(machine.folders), tuple(wanted.notes), wanted.power))
