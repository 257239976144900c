"""Control of jobs for the command line and the console: list, read, request, start.

Jobs are read from their journals, without writing to them. Requests to a running job go through its
request file, and nothing here waits for the job to obey.
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
    parse_key,
    request_file,
    requested,
    skipped_files,
    terms_of,
    understood,
    walking_settings,
)
from zconsole.rebalance.job.job_output import PREFIX, last_line
from zconsole.rebalance.job.job_store import Record
from zconsole.system.audit import Log
from zconsole.system.printable import clean
from zconsole.system.process import own, start_detached
from zconsole.system.state_dir import StateError, open_private, read_end, write_private

START_SECONDS = 20.0
START_LOOK = 0.05
BEGINNING = 2.0
"""Seconds after which a job that counts its files is considered to be working."""
GONE = "its process is gone"
SOON = 5.0
"""Tolerance in seconds for a clock set back since the job wrote its status."""
TAIL = 4096
"""Bytes to read from the end of a log."""
AT_ONCE = ("pause", "stop")
"""Orders that don't wait for the audit log: whoever gives them wants disks left alone at once."""


class EndedAtOnceError(ZconsoleError):
    """A job that was started ended before it began to work; ``code`` is its exit code."""

    def __init__(self, reason: str, code: ExitCode) -> None:
        super().__init__(reason)
        self.code = code


def adopt(journal_path: Path) -> Record:
    """Return the record of an existing journal; create one if the state directory lost it."""
    known = job_store.by_journal(journal_path)
    if known is not None:
        return known
    with closing(Journal.open(journal_path)) as journal:
        name = terms_of(journal).name
    return job_store.add(journal_path, name)


UnreadableJob = tuple[Record, Exception]
"""A job whose journal is gone or unreadable, and the error."""


def list_jobs(unread: list[UnreadableJob], named: int = 0) -> list[JobView]:
    """List jobs, oldest first; unreadable ones go to ``unread``. ``named`` as in ``status``."""
    return [found for _, found in _each(unread, named)]


def _each(unread: list[UnreadableJob], named: int = 0) -> Iterator[tuple[Record, JobView]]:
    for record in job_store.records():
        try:
            yield record, status(record, named)
        except (ZconsoleError, OSError, sqlite3.Error) as error:
            if not record.given_up:
                unread.append((record, error))


def status(record: Record, named: int = 0) -> JobView:
    """Read the state of one job. Raises NotFoundError, NotUnderstoodError.

    ``named`` is how many failed or skipped files to list. Counting their reasons reads all files;
    with 0 that is saved.
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
    if not alive or data.get("state") not in RUNNING:  # figures from when files were being moved
        data |= dict.fromkeys(("rate", "eta_seconds", "current", "limits"))
    elif state == "waiting" and not data.get("rate") and data.get("eta_seconds") and data.get("t"):
        # It waits for its hours: with a rate it would wait for busy disks, which hold its end back.
        # Written when the wait began, and not again until it ends: let sleeping disks sleep.
        passed = max(0.0, time.time() - data["t"])
        data["eta_seconds"] = max(0.0, data["eta_seconds"] - passed)
    said = {each.name: data[each.name] for each in fields(JobStatus) if each.name in data}
    told = {
        "state": state,
        "why": why,
        # A running job reports the limits that it obeys; any other will obey these.
        "limits": settings.limits.changed(data.get("limits") or requested(journal.path).limits),
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
    """Return the state of a job (a value of ``JobStatus.state``) and the reason.

    One that has written its end still runs until its process lets go of it: none can start before.
    """
    state, why = data.get("state", "planned"), data.get("why")
    if counting and state == "planned":
        state, why = "running", WALKING
    if state in RUNNING and not alive:
        return "dead", f"{_last(record.log, data.get('t') or 0.0) or GONE}; resume it"
    if state not in RUNNING and alive:
        return ("running", None) if agreed else ("waiting", "waiting for confirmation")
    return state, why


@contextmanager
def refusals_kept(record: Record) -> Iterator[None]:
    """Log why this process could not run a job, as the output of a detached job is logged.

    Nothing is logged if another process is running the job.
    """
    try:
        yield
    except ZconsoleError as error:
        if not job_store.is_alive(record):
            with suppress(OSError, StateError):
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
                with os.fdopen(open_private(record.log, flags), "a") as log:
                    log.write(f"{PREFIX}{clean(str(error))}\n")
        raise


def _last(log: Path, since: float) -> str:
    """Return the last line of a log if it is a message of ours written after ``since``."""
    try:
        lines = read_end(log, TAIL).decode(errors="surrogateescape").splitlines()
        late = log.stat().st_mtime >= since - SOON
    except (OSError, StateError):
        return ""
    last = lines[-1] if lines and late else ""
    return last.removeprefix(PREFIX) if last.startswith(PREFIX) else ""


def pool_of(key: str) -> str:
    """Return the pool in a key ``zfs:tank/data:GUID`` (JobDirectory.key); empty without ZFS."""
    kind, source, _ = parse_key(key)
    return source.split("/")[0] if kind == "zfs" else ""


def run_again(record: Record, limits: Mapping[str, Any]) -> None:
    """Request that an ended job run again, whatever its last order, with the given limits.

    Raises ZconsoleError if it is running already, NotFoundError, NotUnderstoodError.
    """
    with job_store.locked(record):  # waits for a process that is about to end
        pass
    ended = status(record).state in ("dead", "stopped", "finished")
    if ended or limits:
        ask(record, "run" if ended else None, limits)


def ask(record: Record, order: str | None, limits: Mapping[str, Any] | None = None) -> None:
    """Write a request to a job: an order (None keeps the last one), and changes of limits.

    Raises NotFoundError, NotUnderstoodError, StateError.
    """
    with job_store.asking(record), closing(Journal.open(record.journal)) as journal:
        before = requested(journal.path)
        request = Request(order or before.order, {**before.limits, **(limits or {})})
        write_private(request_file(record.journal), request.encoded())


def begin(words: Sequence[str]) -> Record:
    """Start a new job with the command line words after ``rebalance run``, as ``start`` does.

    The new process counts the files, too. If it ends without a journal, as when the job is refused,
    nothing of the job is kept.
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
    """Start a job in a separate process and session, which outlives this one.

    Returns when the job is working, so that its state is not read as dead a moment later. Raises
    EndedAtOnceError if it could not begin.
    """
    said = record.log.lstat().st_size if os.path.lexists(record.log) else 0
    argv = own("zconsole", "rebalance", "run", "--yes", f"--journal={record.journal}", *words)
    pid = start_detached(argv, record.log)
    alive, until = 0, time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None:
            _raise_if_failed(record, pid, ended, said)
            break
        alive += job_store.is_alive(record)
        found = _seen(record) if alive else None
        if found is not None and found.pid == pid:
            break
        # Wait longer for a job with a plan: it may still be refused before it writes a status.
        if alive * START_LOOK >= BEGINNING and (found is None or found.why == WALKING):
            break
        time.sleep(START_LOOK)


def _seen(record: Record) -> JobView | None:
    """Return the state of a job; None if it can't be read."""
    try:
        return status(record)
    except (ZconsoleError, OSError, sqlite3.Error):
        return None


def _raise_if_failed(record: Record, pid: int, ended: os.waitid_result, said: int) -> None:
    """Raise EndedAtOnceError unless the ended process finished its job."""
    found = _seen(record)
    found = found if found is not None and found.pid == pid else None
    if ended.si_status == ExitCode.OK or (found is not None and found.state == "finished"):
        return
    exited = ended.si_code == os.CLD_EXITED and ended.si_status in set(ExitCode)
    words = read_end(record.log, TAIL, said).decode(errors="surrogateescape")
    why = found.why if found is not None and found.state == "stopped" else None
    code = ExitCode(ended.si_status) if exited else ExitCode.FAILED
    raise EndedAtOnceError(why or last_line(words) or "it has ended at once", code)


def resumable(unread: list[UnreadableJob]) -> list[Record]:
    """List jobs that a crash, a reboot or a closed terminal interrupted, rather than an order."""
    return [
        record
        for record, found in _each(unread)
        if found.interrupted and (found.agreed or found.state != "planned")
    ]


def steer(
    log: Log, record: Record, order: str | None, limits: Mapping[str, Any] | None = None
) -> None:
    """Give a running job an order (pause or stop; None keeps the last), or other limits.

    Raises ZconsoleError if the job is not running, and AuditError if the audit log can't be
    written, except for a pause or stop without changed limits.
    """
    action = order or "limits"
    with _logged(log, action, record, limits, at_once=action in AT_ONCE and not limits):
        if not job_store.is_alive(record):
            raise ZconsoleError(f"job {record.job} does not run")
        ask(record, order, limits)


def resume(log: Log, record: Record, limits: Mapping[str, Any] | None = None) -> None:
    """Let a paused job go on, or start a dead or stopped one again, detached.

    Raises AuditError if the audit log can't be written, ZconsoleError if the job takes long to obey
    an earlier stop, and what ``start`` raises.
    """
    with _logged(log, "resume", record, limits):
        _let_stop(record)
        ask(record, "run", limits)
        if not job_store.is_alive(record):
            start(record)


def _let_stop(record: Record) -> None:
    """Wait for a job that was told to stop: once it obeys, no other order reaches it."""
    until = time.monotonic() + START_SECONDS
    while requested(record.journal).order == "stop" and job_store.is_alive(record):
        if time.monotonic() > until:
            raise ZconsoleError(f"job {record.job} is still stopping: try again later")
        time.sleep(START_LOOK)


def detach(log: Log, record: Record) -> None:
    """Start a job detached. Raises AuditError if the audit log can't be written."""
    with _logged(log, "start", record):
        start(record)


@contextmanager
def running(log: Log, record: Record) -> Iterator[None]:
    """Log the run of a job in this process. Raises AuditError if the audit log can't be written."""
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
    """Write a line to the audit log before and after an action on a job."""
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
"""Seconds between two counts of reasons, which read every file of a running job."""

NAMED = 20
"""Most failed or skipped files to list."""


@dataclass(slots=True)
class JobReader:
    """Reads every job; caches one that has ended until its files change."""

    clock: Callable[[], float]
    _known: dict[str, tuple[Sequence[int], JobView, float]] = field(default_factory=dict)
    """By id: whether a job was alive, and its files' times; its view; when reasons were counted."""

    def read(self, pool: str | None) -> tuple[JobView, ...]:
        """Return the jobs on a pool (None: all), newest first; unreadable ones are left out."""
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
        # Always read a running job: SQLite may commit after the last write that changed the times.
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
    """Modification times (ns) of the journal, SQLite's write-ahead log, and the request file."""
    wal = record.journal.with_name(f"{record.journal.name}-wal")
    files = record.journal, wal, request_file(record.journal)
    return tuple(file.stat().st_mtime_ns for file in files if file.exists())
