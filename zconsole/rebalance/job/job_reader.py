"""The jobs of this machine as a console shows them, read from their journals without a write."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace

from zconsole.errors import ZconsoleError
from zconsole.pool.allocator import Space
from zconsole.rebalance.backend import JobView
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.job import aftermath, control, job_store
from zconsole.rebalance.job.control import JobStatus
from zconsole.rebalance.job.job import orders_of, understood
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
    pools: frozenset[str]
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
            if pool is None or pool in known.pools:
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
        status, now = control.status(record), self.clock()
        journal = Journal.open(record.journal, write=False)
        with closing(journal), understood(journal):
            keys = journal.get("keys") or {}
            stale = before is None or not stamp[0] or now - before.counted >= RECOUNT
            view = _shown(status, journal)
            if stale or before is None:
                skipped, failed = aftermath.skipped(journal), aftermath.failed(journal)
                left = tuple(aftermath.files(journal, NAMED))
                view, counted = replace(view, skipped=skipped, failed=failed, left_out=left), now
            else:
                known, counted = before.view, before.counted
                view = replace(
                    view, skipped=known.skipped, failed=known.failed, left_out=known.left_out
                )
            return _Known(stamp, frozenset(map(pool_of, keys.values())), view, counted)


def _written(record: Record) -> tuple[int, ...]:
    """When the journal and what SQLite keeps beside it were written last, nanoseconds."""
    files = [record.journal.with_name(record.journal.name + end) for end in ("", "-wal")]
    return tuple(file.stat().st_mtime_ns for file in files if file.exists())


def _shown(status: JobStatus, journal: Journal) -> JobView:
    data, settings = status.data, status.settings
    spaces = (journal.get("job") or {}).get("spaces", [])
    return JobView(
        job=status.record.job,
        state=status.state,
        why=status.why,
        settings=settings,
        limits=settings.limits.changed(orders_of(journal).limits),
        engine=",".join(sorted(set(status.engines.values()))),
        t=data.get("t"),
        files_done=data.get("files_done") or 0,
        files_total=data.get("files_total"),
        bytes_done=data.get("bytes_handled") or data.get("bytes_done") or 0,
        bytes_total=data.get("bytes_total"),
        rate=data.get("rate") if status.state == "running" else None,
        eta_seconds=data.get("eta_seconds") if status.state == "running" else None,
        current=data.get("current"),
        before={space.name: space.fill for space in (Space(*row) for row in spaces)},
        days=status.days,
        notes=tuple(data.get("notes") or ()),
    )


def pool_of(key: str) -> str:
    """The pool of a place's key, ``zfs:tank/data:GUID`` (JobDirectory.key); else nothing."""
    kind, _, rest = key.partition(":")
    source = rest.rpartition(":")[0] or rest
    return source.split("/")[0] if kind == "zfs" else ""
