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
from zconsole.rebalance.planning.facts import FactsReader, JobDirectory
from zconsole.rebalance.planning.settings import Settings


def terms_with(**terms: Any) -> JobTerms:
    """Return the terms of a job off ZFS, with some changed."""
    usual = {"settings": Settings(()), "engines": {}, "spaces": (), "raw_factor": 1.0, "floors": {}}
    return JobTerms(**{"name": "abc123", **usual, **terms})


ELSEWHERE = JobDirectory(b"/", "ext4", "/dev/sda1", None)


def job_of(
    journal: Journal,
    clocks: JobClocks | None = None,
    reader: FactsReader | None = None,
    place: JobDirectory = ELSEWHERE,
    **terms: Any,
) -> Job:
    """Return a job on one directory, off ZFS if none is given, that has just begun."""
    clocks, reader = clocks or JobClocks(), reader or FactsReader()
    return Job(journal, terms_with(**terms), clocks, reader, [place])


def watch_of(reader: Any, terms: JobTerms, clock: Callable[[], float] = lambda: 0.0) -> SpreadWatch:
    """Return the watch of the pool of a job that exists only by its terms."""
    clocks, limits = JobClocks(clock, clock), terms.settings.limits
    known = {"reader": reader, "pool": "tank", "terms": terms, "clocks": clocks, "limits": limits}
    return SpreadWatch(cast("Job", SimpleNamespace(**known)))


def accounts_of(
    journal: Journal, clock: Callable[[], float], clocks: JobClocks | None = None
) -> JobAccounts:
    """Return the accounts of a job off ZFS."""
    job = job_of(journal, clocks or JobClocks(clock, clock))
    return JobAccounts(job, Directories(Sys(), journal.directory), lambda _: None)
