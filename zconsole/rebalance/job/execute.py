"""Running a job in this process: locks, signals, and the clean end of everything."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from zconsole.errors import NotFoundError, ZconsoleError
from zconsole.rebalance.backend import HUNG_UP, TERMINATED
from zconsole.rebalance.engine.file_locks import Alarm
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job.free_space import READ_ONLY
from zconsole.rebalance.job.job import job_of
from zconsole.rebalance.job.job_output import Show
from zconsole.rebalance.job.job_store import Record, locked
from zconsole.rebalance.job.locks import TreeLocks
from zconsole.rebalance.job.runner import JobRunner
from zconsole.rebalance.job.wait_conditions import JobControl
from zconsole.rebalance.planning import plan
from zconsole.rebalance.planning.facts import FactsReader

STOPPING = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: TERMINATED,
    signal.SIGHUP: HUNG_UP,
}

THREADS = 32
"""Threads to wait for disks in. To close originals wants most of them: with ``discard`` so many
close twenty times what one does."""

UMASK = 0o022
"""A stricter one of the operator's would be taken back from every copy."""


def execute(record: Record, show: Show, held: TreeLocks | None = None) -> tuple[int, bool]:
    """Run a job to its end; returns how many files failed and whether SIGINT ended it.

    ``held`` are the locks of its trees, where it was created with them held. Raises ZconsoleError
    when it runs already, is refused, or its tree is busy or gone.
    """
    with ExitStack() as stack:
        if held is not None:
            stack.enter_context(closing(held))
        stack.enter_context(locked(record))
        journal = stack.enter_context(closing(Journal.open(record.journal)))
        return _run(journal, show, held)


def _run(journal: Journal, show: Show, held: TreeLocks | None) -> tuple[int, bool]:
    os.umask(UMASK)
    job, reader, system = job_of(journal), FactsReader(), Sys()
    places = plan.places(job.settings.dirs, reader, snapshots=False)
    for place in places:
        if place.mount.read_only:
            raise ZconsoleError(f"{os.fsdecode(place.root)}: {READ_ONLY}")
    locks = _locked(system, [place.root for place in places], held)
    try:
        journal.retry()
        with ThreadPoolExecutor(THREADS) as threads:
            runner = JobRunner(system, reader, journal, job, places, show, threads=threads)
            with _signals(runner.control, runner.alarm):
                summary = runner.run()
    finally:
        locks.close()
    show([{"summary": summary}])
    for place in places:
        if not Path(os.fsdecode(place.root)).is_dir():
            raise NotFoundError(f"{os.fsdecode(place.root)}: gone during the run")
    return summary["files_failed"], runner.control.stop == STOPPING[signal.SIGINT]


def _locked(system: Sys, roots: list[bytes], held: TreeLocks | None) -> TreeLocks:
    """The locks of these trees: those held, unless a link on the way was turned since."""
    if held is not None:
        if held.roots == tuple(roots):
            return held
        held.close()
    return TreeLocks(system, roots)


@contextmanager
def _signals(control: JobControl, alarm: Alarm) -> Iterator[None]:
    """Stop at the next chunk on the signals that nohup left us, and hear of broken leases."""

    def _stop(number: int, _: object) -> None:
        control.stop = STOPPING[signal.Signals(number)]

    heeded = [number for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    wanted: dict[signal.Signals, Any] = dict.fromkeys(heeded, _stop)
    wanted[signal.SIGIO] = alarm
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    # One may be on its way yet when the last lease is gone; unheard, it would end the process.
    before[signal.SIGIO] = signal.SIG_IGN
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
