"""Accounts of a job without files, for the tests of what goes by them."""

from __future__ import annotations

from collections.abc import Callable

from zconsole.rebalance.engine.directories import Directories
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job.accounts import JobAccounts
from zconsole.rebalance.job.job import Job
from zconsole.rebalance.planning.settings import Settings


def accounts_of(
    journal: Journal, clock: Callable[[], float], outlook: Callable[[], str | None] = lambda: None
) -> JobAccounts:
    """Those of a job that has just begun, off ZFS."""
    job = Job("abc123", Settings(()), {}, (), 1.0, {}, None)
    directories = Directories(Sys(), journal.directory)
    return JobAccounts(
        journal, job, directories, None, lambda _: None, clock, clock, outlook=outlook
    )
