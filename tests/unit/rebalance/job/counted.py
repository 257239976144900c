"""Jobs without files, for tests of their accounts."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from zconsole.rebalance.engine.directories import Directories
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.workplace import JobClocks
from zconsole.rebalance.job.accounts import JobAccounts, SpreadWatch
from zconsole.rebalance.job.job import Job, JobTerms
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.settings import Settings


def terms_with(**terms: Any) -> JobTerms:
    """Return the terms of a job off ZFS, with some changed."""
    usual = {"settings": Settings(()), "engines": {}, "spaces": (), "raw_factor": 1.0, "floors": {}}
    return JobTerms(**{"name": "abc123", **usual, **terms})


def job_of(journal: Journal, clocks: JobClocks | None = None, **terms: Any) -> Job:
    """Return a job off ZFS that has just begun."""
    return Job(journal, terms_with(**terms), clocks or JobClocks())


def watch_of(reader: Any, terms: JobTerms, clock: Callable[[], float] = lambda: 0.0) -> SpreadWatch:
    """Return the watch of the pool of a job that exists only by its terms."""
    clocks, limits = JobClocks(clock, clock), terms.settings.limits
    job = SimpleNamespace(terms=terms, clocks=clocks, limits=limits)
    return SpreadWatch(reader, "tank", cast("Job", job))


def accounts_of(
    journal: Journal, clock: Callable[[], float], clocks: JobClocks | None = None
) -> JobAccounts:
    """Return the accounts of a job off ZFS."""
    job = job_of(journal, clocks or JobClocks(clock, clock))
    directories = Directories(Sys(), journal.directory)
    watch = SpreadWatch(FactsReader(), "", job)
    return JobAccounts(job, directories, watch, lambda _: None)
