"""Jobs as the command line and the console see them: list, read, steer, start.

They are read from their journals without a write. Nothing here waits for a job; a running one is
read through its journal and asked through its request file.
"""

from __future__ import annotations

import os
import sqlite3
import sys as python
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from math import inf
from pathlib import Path
from typing import Any

from zconsole.errors import ExitCode, NotFoundError, ZconsoleError
from zconsole.rebalance.backend import RUNNING, JobStatus, JobView
from zconsole.rebalance.engine.journal import Journal, State
from zconsole.rebalance.job import job_store
from zconsole.rebalance.job.job import (
    WALKING,
    JobTerms,
    Request,
    left_out,
    of_key,
    request_file,
    requested,
    skipped_files,
    terms_of,
    understood,
    walking_settings,
)
from zconsole.rebalance.job.job_output import OURS, last_line
from zconsole.rebalance.job.job_store import Record
from zconsole.system.audit import Log
from zconsole.system.printable import clean
from zconsole.system.process import own, start_detached
from zconsole.system.state_dir import StateError, open_private, read_end, write_private

START_SECONDS = 20.0
START_LOOK = 0.05
BEGINNING = 2.0
"""Seconds after which a job that counts its files is taken to be at work."""
GONE = "its process is gone"
SOON = 5.0
"""Seconds by which the clock may have been set back since the job wrote its status."""
TAIL = 4096
"""Bytes of the end of a log that are looked at."""
AT_ONCE = ("pause", "stop")
"""Orders that wait for no log: whoever gives one wants a disk left alone."""


class EndedAtOnceError(ZconsoleError):
    """A job that was started ended before it was at work; ``code`` is what it ended with."""

    def __init__(self, reason: str, code: ExitCode) -> None:
        super().__init__(reason)
        self.code = code


def adopt(journal_path: Path) -> Record:
    """The record of an existing journal, made again if the state directory lost it."""
    known = job_store.by_journal(journal_path)
    if known is not None:
        return known
    with closing(Journal.open(journal_path)) as journal:
        name = terms_of(journal).name
    return job_store.add(journal_path, name)


Unread = tuple[Record, Exception]
"""A job whose journal is gone or unreadable, and why."""


def listed(unread: list[Unread], named: int = 0) -> list[JobView]:
    """Every job, oldest first; those that cannot be read go to ``unread``. See ``status``."""
    return [found for _, found in _each(unread, named)]


def _each(unread: list[Unread], named: int = 0) -> Iterator[tuple[Record, JobView]]:
    for record in job_store.records():
        try:
            yield record, status(record, named)
        except (ZconsoleError, OSError, sqlite3.Error) as error:
            if not record.given_up:
                unread.append((record, error))


def status(record: Record, named: int = 0) -> JobView:
    """The state of one job. Raises NotFoundError, NotUnderstoodError.

    ``named`` is how many of the files are named that were left out; their reasons are counted by
    going through all files, and with none that is saved.
    """
    alive = job_store.is_alive(record)
    try:
        journal = Journal.open(record.journal, write=False)
    except sqlite3.OperationalError as error:
        raise NotFoundError(f"{record.journal}: {error}") from error
    with closing(journal), understood(record.journal):
        return _view(record, journal, alive, named)


def _view(record: Record, journal: Journal, alive: bool, named: int) -> JobView:
    data = journal.get("status") or {}
    job: JobTerms | None = None
    settings = walking_settings(journal, alive) if journal.get("job") is None else None
    if settings is None:
        job = terms_of(journal)
        settings = job.settings
    agreed = job is None or (journal.get("walking") or {}).get("agreed", True)
    state, why = _state(record, data, alive, job is None, agreed)
    if state not in RUNNING:  # the last figures are of when files were being moved
        data |= dict.fromkeys(("rate", "eta_seconds", "current", "limits"))
    said = {each.name: data[each.name] for each in fields(JobStatus) if each.name in data}
    told = {
        "state": state,
        "why": why,
        # A job at work says which it obeys; of any other, those that it will.
        "limits": settings.limits.changed(data.get("limits") or requested(journal).limits),
        "notes": tuple(data.get("notes") or ()),
    }
    return JobView(
        **{**said, **told},
        job=record.job,
        settings=settings,
        engine=",".join(sorted(set(job.engines.values()))) if job else "",
        journal=os.fspath(record.journal),
        before={space.name: space.fill for space in job.spaces} if job else {},
        skipped=skipped_files(journal) if named else {},
        failed=journal.reasons(State.FAILED) if named else {},
        left_out=tuple(left_out(journal, named)),
        days=tuple(journal.days()) if job else (),
        began=job.created if job else None,
        pools=frozenset(map(pool_of, (journal.get("keys") or {}).values())),
        agreed=agreed,
    )


def _state(
    record: Record, data: Mapping[str, Any], alive: bool, counting: bool, agreed: bool
) -> tuple[str, str | None]:
    """The state of a job and why it is in it; see ``JobView.state``."""
    state, why = data.get("state", "planned"), data.get("why")
    if counting and state == "planned":
        state, why = "running", WALKING
    if state in RUNNING and not alive:
        return "dead", f"{_last(record.log, data.get('t') or 0.0) or GONE}; resume it"
    if state == "planned" and alive:
        return ("running", None) if agreed else ("waiting", "waiting for confirmation")
    return state, why


@contextmanager
def refusals_kept(record: Record) -> Iterator[None]:
    """Write to the log of a job why this process could not run it, as a detached one's output is.

    Not where another process runs it.
    """
    try:
        yield
    except ZconsoleError as error:
        if not job_store.is_alive(record):
            with suppress(OSError, StateError):
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
                with os.fdopen(open_private(record.log, flags), "a") as log:
                    log.write(f"{OURS}{clean(str(error))}\n")
        raise


def _last(log: Path, since: float) -> str:
    """The last line of a log if it is a message of ours that came later; else nothing."""
    try:
        lines = read_end(log, TAIL).decode(errors="surrogateescape").splitlines()
        late = log.stat().st_mtime >= since - SOON
    except (OSError, StateError):
        return ""
    last = lines[-1] if lines and late else ""
    return last.removeprefix(OURS) if last.startswith(OURS) else ""


def pool_of(key: str) -> str:
    """The pool of a place's key, ``zfs:tank/data:GUID`` (JobDirectory.key); else nothing."""
    kind, source, _ = of_key(key)
    return source.split("/")[0] if kind == "zfs" else ""


def take_up(record: Record, limits: Mapping[str, Any]) -> None:
    """Let a job that ended run again, whatever order it was given last; limits given now count.

    Raises NotFoundError, NotUnderstoodError.
    """
    ended = status(record).state in ("dead", "stopped", "finished")
    if ended or (limits and not job_store.is_alive(record)):
        ask(record, "run" if ended else None, limits)


def ask(record: Record, order: str | None, limits: Mapping[str, Any] | None = None) -> None:
    """Leave a request for a job: an order (None: the one it has), and limits that change.

    Raises NotFoundError, NotUnderstoodError, StateError.
    """
    with job_store.asking(record), closing(Journal.open(record.journal)) as journal:
        before = requested(journal)
        request = Request(order or before.order, {**before.limits, **(limits or {})})
        write_private(request_file(record.journal), request.encoded())


def begin(words: Sequence[str]) -> Record:
    """Start a new job, given what to type after ``rebalance run``; see ``start``.

    The process that will run it counts its files, too. Where it never came to a journal, as when
    it is refused, nothing of the job is kept.
    """
    record = job_store.add(None)
    try:
        start(record, words)
    except EndedAtOnceError:
        if not record.journal.exists():
            job_store.remove(record)
        raise
    return record


def start(record: Record, words: Sequence[str] = ()) -> None:
    """Start a job in a process and session of its own; it outlives this one.

    Returns when it is at work, so that nobody finds it dead who asks a moment later. Raises
    EndedAtOnceError when it could not begin.
    """
    said = record.log.lstat().st_size if os.path.lexists(record.log) else 0
    argv = own("zconsole", "rebalance", "run", "--yes", f"--journal={record.journal}", *words)
    pid = start_detached(argv, record.log)
    alive, until = 0, time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None:
            _judge_end(record, pid, ended, said)
            break
        alive += job_store.is_alive(record)
        found = _seen(record) if alive else None
        if found is not None and found.pid == pid:
            break
        # One that has its plan writes before it moves files, but may be refused before that.
        if alive * START_LOOK >= BEGINNING and (found is None or found.why == WALKING):
            break
        time.sleep(START_LOOK)


def _seen(record: Record) -> JobView | None:
    """The state of a job, where it can be read."""
    try:
        return status(record)
    except (ZconsoleError, OSError, sqlite3.Error):
        return None


def _judge_end(record: Record, pid: int, ended: os.waitid_result, said: int) -> None:
    """Raise EndedAtOnceError unless the process that has ended did what it was to do."""
    found = _seen(record)
    found = found if found is not None and found.pid == pid else None
    if ended.si_status == ExitCode.OK or (found is not None and found.state == "finished"):
        return
    exited = ended.si_code == os.CLD_EXITED and ended.si_status in set(ExitCode)
    words = read_end(record.log, TAIL, said).decode(errors="surrogateescape")
    why = found.why if found is not None and found.state == "stopped" else None
    code = ExitCode(ended.si_status) if exited else ExitCode.FAILED
    raise EndedAtOnceError(why or last_line(words) or "it has ended at once", code)


def resumable(unread: list[Unread]) -> list[Record]:
    """Jobs that a death, a reboot or the end of a terminal interrupted, and nobody's order."""
    return [
        record
        for record, found in _each(unread)
        if found.interrupted
        and (found.agreed or found.state != "planned")
        and not job_store.is_alive(record)
    ]


def steer(
    log: Log, record: Record, order: str | None, limits: Mapping[str, Any] | None = None
) -> None:
    """Give a running job an order (pause or stop; None keeps the last), or other limits.

    Raises ZconsoleError when the job does not run, and AuditError where no log can be written,
    but not for a pause or stop that changes nothing else.
    """
    action = order or "limits"
    with _logged(log, action, record, limits, at_once=action in AT_ONCE and not limits):
        if not job_store.is_alive(record):
            raise ZconsoleError(f"job {record.job} does not run")
        ask(record, order, limits)


def resume(log: Log, record: Record, limits: Mapping[str, Any] | None = None) -> None:
    """Let a paused job go on, or start a dead or stopped one again, detached.

    Raises AuditError where no log can be written, and what ``start`` raises.
    """
    with _logged(log, "resume", record, limits):
        ask(record, "run", limits)
        if not job_store.is_alive(record):
            start(record)


def detach(log: Log, record: Record) -> None:
    """Start a job detached. Raises AuditError where no log can be written."""
    with _logged(log, "start", record):
        start(record)


@contextmanager
def running(log: Log, record: Record) -> Iterator[None]:
    """The life of a job in this process. Raises AuditError where no log can be written."""
    settings = status(record).settings.as_json()
    with _logged(log, "run", record, settings["limits"], settings=settings):
        yield


@contextmanager
def _logged(
    log: Log,
    action: str,
    record: Record,
    limits: Mapping[str, Any] | None = None,
    at_once: bool = False,
    **more: Any,
) -> Iterator[None]:
    """Write a line to the audit log before and after what is done to a job."""
    what = {"kind": "job", "action": action, "job": record.job, "argv": list(python.argv)}
    fields = {**what, "limits": dict(limits or {}), **more}
    (log.note if at_once else log.write)(time.time(), "begun", **fields)
    result = "failed"
    try:
        yield
        result = "done"
    except (OSError, ZconsoleError) as error:
        result = f"failed: {error}"
        raise
    finally:
        log.note(time.time(), "ended", **what, ok=result == "done", result=result)


RECOUNT = 5.0
"""Seconds between two counts of reasons, which look at every file of a running job."""

NAMED = 20
"""Files that are named of those that were left out."""


@dataclass(slots=True)
class JobReader:
    """Reads every job; one that has ended is not read again until somebody writes to it."""

    clock: Callable[[], float]
    _known: dict[str, tuple[Sequence[int], JobView, float]] = field(default_factory=dict)
    """By id: when a job had been written to last, the job then, and when reasons were counted."""

    def read(self, pool: str | None) -> tuple[JobView, ...]:
        """The jobs on a pool, or all for None, newest first; unreadable ones are left out."""
        found = []
        for record in job_store.records():
            with suppress(ZconsoleError, OSError, sqlite3.Error):
                view = self._read(record)
                if pool is None or pool in view.pools:
                    found.append(view)
        return tuple(reversed(found))

    def _read(self, record: Record) -> JobView:
        alive, now = job_store.is_alive(record), self.clock()
        written = [alive, *_written(record)]
        before, old, counted = self._known.get(record.job, ((), None, -inf))
        # A running job is always read: SQLite writes first and commits after, so times may be late.
        if old is not None and before == written and not alive:
            return old
        if old is None or not alive or now - counted >= RECOUNT:
            view, counted = status(record, NAMED), now
        else:
            view = replace(
                status(record), skipped=old.skipped, failed=old.failed, left_out=old.left_out
            )
        self._known[record.job] = written, view, counted
        return view


def _written(record: Record) -> tuple[int, ...]:
    """When the journal, what SQLite keeps beside it, and the request were written last (ns)."""
    wal = record.journal.with_name(f"{record.journal.name}-wal")
    files = record.journal, wal, request_file(record.journal)
    return tuple(file.stat().st_mtime_ns for file in files if file.exists())
