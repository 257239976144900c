"""The jobs of this machine as a console shows them, read from their journals without a write."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from zconsole.errors import ZconsoleError
from zconsole.rebalance.backend import JobView
from zconsole.rebalance.job import control, job_store
from zconsole.rebalance.job.job_store import Record

RECOUNT = 5.0
"""Seconds between two counts of reasons, which look at every file of a running job."""

NAMED = 20
"""Files that are named of those that were left out."""

Stamp = tuple[bool, tuple[int, ...]]


@dataclass(slots=True)
class _Known:
    """What was read of a job, and as of when."""

    stamp: Stamp
    view: JobView
    counted: float


@dataclass(slots=True)
class JobReader:
    """Reads every job; one that has ended is not read again until somebody writes to it."""

    clock: Callable[[], float]
    _known: dict[str, _Known] = field(default_factory=dict)

    def read(self, pool: str | None) -> tuple[JobView, ...]:
        """The jobs on a pool, or all for None, newest first; unreadable ones are left out."""
        found = []
        for record in job_store.records():
            try:
                known = self._read(record)
            except (ZconsoleError, OSError, sqlite3.Error):
                continue
            if pool is None or pool in known.view.pools:
                found.append(known.view)
        return tuple(reversed(found))

    def _read(self, record: Record) -> _Known:
        stamp = (job_store.is_alive(record), _written(record))
        known = self._known.get(record.job)
        # A running job is always read: SQLite writes first and commits after, so times may be late.
        if known is None or known.stamp != stamp or stamp[0]:
            known = self._known[record.job] = self._view(record, stamp, known)
        return known

    def _view(self, record: Record, stamp: Stamp, before: _Known | None) -> _Known:
        now = self.clock()
        if before is None or not stamp[0] or now - before.counted >= RECOUNT:
            return _Known(stamp, control.status(record, NAMED), now)
        known = before.view
        view = replace(
            control.status(record),
            skipped=known.skipped, failed=known.failed, left_out=known.left_out,
        )  # fmt: skip
        return _Known(stamp, view, before.counted)


def _written(record: Record) -> tuple[int, ...]:
    """When the journal and what SQLite keeps beside it were written last, nanoseconds."""
    files = [record.journal.with_name(record.journal.name + end) for end in ("", "-wal")]
    return tuple(file.stat().st_mtime_ns for file in files if file.exists())
