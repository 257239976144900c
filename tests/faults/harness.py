"""Run the engines in this process, over system calls that fail or die when told to."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from traceback import walk_stack
from typing import Any

import pytest

import zconsole
from zconsole.rebalance.backend import JobStatus
from zconsole.rebalance.engine.file_locks import FilesInUse, Users
from zconsole.rebalance.engine.holders import Holders
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.workplace import JobClocks
from zconsole.rebalance.job import creation
from zconsole.rebalance.job.job import Job, Request, request_file, terms_of
from zconsole.rebalance.job.runner import JobRunner
from zconsole.rebalance.planning import plan
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.settings import Settings
from zconsole.system import mounts
from zconsole.system.mounts import View
from zconsole.system.state_dir import write_private

ALL = os.environ.get("ZCONSOLE_FAULTS") == "all"
"""Whether every fault is tried, as `.ci/long` does, and not only a sample of them."""

CHANGING = frozenset(
    {
        "open_new",
        "pwrite",
        "ftruncate",
        "fchown",
        "fchmod",
        "set_times",
        "setxattr",
        "removexattr",
        "link_fd",
        "link",
        "rename",
        "exchange",
        "unlink",
        "syncfs",
    }
)


class Killed(BaseException):
    """The process ended here: nothing after this call happens."""


class FaultySys(Sys):
    """Counted system calls; ``fault`` is called before each, ``after`` after it. Both may raise."""

    def __init__(
        self,
        fault: Callable[[int, str], None] = lambda number, name: None,
        after: Callable[[int, str, Any], None] = lambda number, name, result: None,
    ) -> None:
        self.calls: list[str] = []
        self.fault = fault
        self.after = after
        self.dead = False
        numbers = itertools.count()
        for name in dir(type(self)):
            found = getattr(self, name)
            if callable(found) and name != "die" and not name.startswith("_"):
                setattr(self, name, self._counted(name, found, numbers))

    def _counted(
        self, name: str, call: Callable[..., Any], numbers: Iterator[int]
    ) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            # Threads of the engine may still run: their calls must have no effect any more.
            if self.dead:
                raise Killed
            number = next(numbers)  # atomic: a sync runs in a thread of its own
            self.calls.append(name)
            self.fault(number, name)
            try:
                result = call(*args, **kwargs)
            except OSError:
                self.after(number, name, None)
                raise
            self.after(number, name, result)
            return result

        return counted

    def die(self) -> None:
        """End the process at this call; every later call ends it, too."""
        self.dead = True
        raise Killed


def kill_after(number: int) -> FaultySys:
    """Return system calls of a process that dies right after its Nth call has taken effect."""
    sys = FaultySys()

    def after(count: int, _name: str, _result: Any) -> None:
        if count == number:
            sys.die()

    sys.after = after
    return sys


def fail_at(number: int, code: int) -> FaultySys:
    """Return system calls of a process whose Nth call fails."""

    def fault(count: int, _name: str) -> None:
        if count == number:
            raise OSError(code, os.strerror(code))

    return FaultySys(fault)


PACKAGE = str(Path(zconsole.__file__).parent)
Place = tuple[tuple[str, int], ...]
"""File and line of the engine that makes a call, and those of its caller."""


def place() -> Place:
    """Return the place where the engine is working now."""
    stack = ((frame.f_code.co_filename, line) for frame, line in walk_stack(None))
    return tuple(islice((each for each in stack if each[0].startswith(PACKAGE)), 2))


def first_of_each(keys: Iterable[object]) -> set[int]:
    """Return the positions at which a key occurs for the first time."""
    first: dict[object, int] = {}
    for number, key in enumerate(keys):
        first.setdefault(key, number)
    return set(first.values())


def descriptors() -> set[int]:
    """Return the open descriptors of this process that may be the engine's.

    Not those of a look at processes or exports, which ends in a thread of its own.
    """
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        try:
            where = str(path.readlink())
        except FileNotFoundError:
            continue
        except OSError:  # a directory deeper than any path
            where = ""
        if not where.startswith(("/dev/null", "/proc/", "pipe:")):
            found.add(int(path.name))
    return found


@contextmanager
def descriptors_closed() -> Iterator[None]:
    """Close what was opened in the block, as the kernel does for a dead process."""
    before = descriptors()
    try:
        yield
    finally:
        for number in descriptors() - before:
            try:
                os.close(number)
            except OSError:
                continue


def tree_of(area: Path, files: int, size: int) -> Path:
    """Create a directory of files with random content; ``size`` is in bytes."""
    root = area / "tree"
    root.mkdir()
    for number in range(files):
        (root / f"file{number}").write_bytes(os.urandom(size))
    return root


ALONE = JobClocks(sleep=lambda seconds: None)
"""Clocks for trees in which nobody else works: a job need not wait for anybody."""


SELF = Path("/proc/self")


class Nobody(Users):
    """Users that are never there. The mounts are this process's, as they are at first."""

    own = View(SELF, mounts.parse(mounts.table_of(SELF)))

    def look(self, *_: object, **__: object) -> FilesInUse:
        self.last = FilesInUse(0.0, self.own, (), Holders(), {}, {}, (), 0)
        return self.last


def create(
    root: Path, journal: Path, others: bool = False, more: Iterable[Path] = (), **settings: Any
) -> None:
    """Walk trees into a new journal. The plan looks for other processes if ``others`` is set."""
    wanted = Settings((str(root), *map(str, more)), allow_non_zfs=True, **settings)
    with nullcontext() if others else _nobody_else():
        created = creation.create(wanted, FactsReader(), journal)
    assert created.plan.document.refused is None, created.plan.document.refused


def ask(journal: Path, order: str, **limits: Any) -> None:
    """Send a job a request, as another process does."""
    write_private(request_file(journal), Request(order, limits).encoded())


@contextmanager
def _nobody_else() -> Iterator[None]:
    """Skip the look at every process and export, which takes longer than moving a small tree."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "Users", Nobody)
        patch.setattr(plan.exports, "look", lambda run: [])
        patch.setattr(plan.plan_notes, "of_other_users", lambda look, plans: ())
        yield


def run(
    journal_path: Path,
    sys: Sys | None = None,
    clocks: JobClocks | None = None,
    threads: Executor | None = None,
    users: Users | None = None,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Run or resume a job in this process; returns the finished files and the summary."""
    shown: list[dict[str, Any]] = []

    def _show(event: JobStatus) -> None:
        shown.extend(file._asdict() for file in event.ended_files)

    journal = Journal.open(journal_path)
    try:
        journal.retry()
        terms, reader = terms_of(journal), FactsReader()
        places = plan.locate(terms.settings.dirs, reader)
        job = Job(journal, terms, clocks or JobClocks(), reader, places)
        users = users or (Nobody() if clocks is ALONE else Users())
        runner = JobRunner(sys or Sys(), job, _show, threads, users)
        signal.signal(signal.SIGIO, runner.alarm)
        try:
            summary = runner.run()
        finally:
            signal.signal(signal.SIGIO, signal.SIG_IGN)  # a signal may still be pending
    finally:
        journal.close()
    return shown, summary
