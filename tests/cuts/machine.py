"""A machine of the model: it runs the real job on a disk and a journal, and crashes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

import pytest

from tests.cuts import kept_journal
from tests.cuts.descriptors import DEVICE
from tests.cuts.disk import Disk
from tests.cuts.model_sys import Clock, ModelSys
from tests.cuts.others import Other
from tests.cuts.timeline import Committed, Crash, Timeline
from tests.faults.harness import Nobody
from zconsole.errors import ZconsoleError
from zconsole.rebalance.engine import content, copy_engine, file_locks
from zconsole.rebalance.engine.directories import Directories, Notes
from zconsole.rebalance.engine.item import StopJobError
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.recovery import CHANGING_UNTIL, Recovery
from zconsole.rebalance.engine.workplace import JobClocks
from zconsole.rebalance.job.job import FreeSpace, Job, terms_of
from zconsole.rebalance.job.runner import JobRunner
from zconsole.rebalance.planning.facts import FactsReader, JobDirectory
from zconsole.rebalance.planning.settings import Settings

START = 1_800_000_000.0
PLACE = JobDirectory(b"/", "model", "disk", None)
REBOOT = 60.0
"""Seconds that the machine is down after a power cut."""
BOOTED_BEFORE = 10_000.0
Before = Callable[[ModelSys, str], None]


class AtOnce:
    """An executor without a thread: work is done immediately, when it is submitted."""

    def __init__(self, _threads: int) -> None:
        pass

    def __enter__(self) -> AtOnce:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, act: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run the call now; returns its finished future."""
        done: Future[Any] = Future()
        try:
            done.set_result(act(*arguments))
        except OSError as error:
            done.set_exception(error)
        return done


@contextmanager
def isolated() -> Iterator[None]:
    """Isolate the engine from the real machine, and make everything happen in a fixed order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(content, "fastest", lambda: content.MAKERS[32])
        patch.setattr(copy_engine, "ThreadPoolExecutor", AtOnce)
        patch.setattr(file_locks, "locked_inodes", frozenset)
        patch.setattr(FreeSpace, "_look", lambda *_: {DEVICE: 1 << 40})
        yield


def values(disk_options: dict[str, Any]) -> dict[str, Any]:
    """Return the header that a journal of the model has for its job."""
    settings = Settings(("/",), engine="copy", allow_non_zfs=True, **disk_options)
    job = {
        "name": kept_journal.NAME,
        "settings": settings.as_json(),
        "engines": {"/": "copy"},
        "spaces": [],
        "raw_factor": 1.0,
        "floors": {"/": [0, 0.0]},
        "rooms": {"/": 0},
    }
    return {"job": job, "keys": {"/": PLACE.key}, "walk_skipped": {}, "status": {}}


@dataclass(slots=True)
class Machine:
    """Disk, journal and clock of a machine. ``batch`` is the largest number of files in a batch."""

    disk: Disk
    journal: bytes
    clock: Clock
    batch: int = 4000
    system: type[ModelSys] = ModelSys
    before: Before | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    """The files in the journal when the last process ended."""
    folders: list[tuple[Any, ...]] = field(default_factory=list)
    failing_commit: int = 0
    """Number of the commit of the next process that fails."""
    full: bool = False
    """Whether the journal's disk is full from that commit on."""
    commits: int = 0
    """Commits that the last job started."""
    ended: str = ""
    """Why the last job ended."""
    calls: list[str] = field(default_factory=list)
    """Calls that the last process made."""

    def again(self) -> Machine:
        """Return an independent copy of this machine."""
        clock = Clock(self.clock.now + 1, self.clock.booted)
        return Machine(self.disk.copy(), self.journal, clock, self.batch, self.system)

    def boot(self) -> tuple[ModelSys, Journal]:
        """Start a process with nothing open, and the journal; both write to one timeline."""
        timeline = Timeline(self.disk.copy(), self.journal)
        system = self.system(self.disk, timeline, self.clock)
        if self.before is not None:
            system.before = self.before

        def _committed(image: bytes, durable: bool) -> None:
            self.journal = image
            timeline.events.append(Committed(image, durable))

        return system, kept_journal.opened(self.journal, _committed, self.failing_commit, self.full)

    def run(self) -> tuple[Timeline, str]:
        """Run the job to its end; returns the timeline, and why the job ended.

        A job that raised counts as dead.
        """
        system, journal = self.boot()
        with closing(journal):
            try:
                journal.retry()
                runner = self._runner(system, journal)
                why = str(runner.run()["stopped_by"])
            except (OSError, ZconsoleError, sqlite3.Error) as error:
                why = f"died: {error!r}"
            self._read(journal)
            self.commits = kept_journal.begun(journal)
        if isinstance(self.before, Other):
            self.before.finish(system)
        self.calls = system.names
        return system.timeline, why

    def recover(self, ticks: float = inf) -> Timeline:
        """Run only the recovery after a crash; it is stopped after so many ticks."""
        system, journal = self.boot()
        clock, left = self.clock, ticks

        def _tick(_: int) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise StopJobError("stop")

        with closing(journal):
            notes = Notes(partial(journal.jot, CHANGING_UNTIL), journal.leave_directory)
            directories = Directories(system, journal.directory, notes, lambda: clock.now)
            recovery = Recovery(
                system, journal, directories, _tick, lambda: clock.now, lambda: clock.booted,
                system.sync, clock.sleep, Nobody(),
            )  # fmt: skip
            with nullcontext() if ticks == inf else suppress(StopJobError):
                recovery.run()
            self._read(journal)
        return system.timeline

    def _read(self, journal: Journal) -> None:
        self.rows, self.folders = kept_journal.rows(journal), kept_journal.directories(journal)

    def _runner(self, system: ModelSys, journal: Journal) -> JobRunner:
        clock = self.clock
        clocks = JobClocks(lambda: clock.now, lambda: clock.now, lambda: clock.booted, clock.sleep)
        job = Job(journal, terms_of(journal), clocks, FactsReader(), [PLACE])
        runner = JobRunner(system, job, lambda _: None, users=Nobody())
        runner._batches.files = self.batch
        system.alarm = runner.alarm
        return runner

    def crashed(self, crash: Crash) -> Machine:
        """Return the machine after a crash."""
        now = self.clock.now + (REBOOT if crash.power else 1.0)
        booted = now - 5.0 if crash.power else START - BOOTED_BEFORE
        return Machine(crash.disk, crash.journal, Clock(now, booted), self.batch, self.system)


def machine_of(disk: Disk, batch: int = 4000, **options: Any) -> Machine:
    """Return a machine with a new job for everything on a disk."""
    journal = kept_journal.created(disk, values(options))
    return Machine(disk, journal, Clock(START, START - BOOTED_BEFORE), batch)
