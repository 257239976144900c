"""Jobs as the command line and the console see them: list, read, steer, start.

Nothing here waits for a job; a running one is read and steered through its journal.
"""

from __future__ import annotations

import os
import sqlite3
import sys as python
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zconsole.errors import ExitCode, NotFoundError, ZconsoleError
from zconsole.rebalance.backend import RUNNING, interrupted
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.job import aftermath, job_store
from zconsole.rebalance.job.job import WALKING, job_of, orders_of, understood, walking_settings
from zconsole.rebalance.job.job_store import Record
from zconsole.rebalance.planning.settings import Settings
from zconsole.system.audit import Log
from zconsole.system.process import start_detached
from zconsole.system.state_dir import read_end

START_SECONDS = 20.0
START_LOOK = 0.05
BEGINNING = 2.0
"""Seconds after which a job that has not ended is taken to be at work: it may count its files."""
AUDITED = {"run": "resume", "pause": "pause", "stop": "stop"}
"""An order to what the log calls it."""
AT_ONCE = ("pause", "stop")
"""Orders that wait for no log: whoever gives one wants a disk left alone."""
STATUS = (
    "files_done", "files_total", "bytes_done", "bytes_total", "rate", "eta_seconds", "current",
    "vdevs",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What is known of one job, without disturbing it."""

    record: Record
    state: str
    """running, paused, waiting, finished, stopped, dead, or planned before its first run."""
    why: str | None
    settings: Settings
    engines: Mapping[str, str]
    data: Mapping[str, Any]
    days: tuple[Mapping[str, Any], ...] = ()
    agreed: bool = True
    """False until the operator has said yes to its plan, or asked for it to be resumed."""

    def as_json(self) -> dict[str, Any]:
        """The object of the contract."""
        engines = sorted(set(self.engines.values()))
        return {
            "job": self.record.job,
            "state": self.state,
            "why": self.why,
            "dirs": list(self.settings.dirs),
            "engine": engines[0] if len(engines) == 1 else ",".join(engines),
            **{key: self.data.get(key) for key in STATUS},
            "journal": os.fspath(self.record.journal),
            "accept_races": self.settings.accept_races,
            "notes": self.data.get("notes", []),
            "days": [dict(day) for day in self.days],
        }


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
        name = job_of(journal).name
    return job_store.add(journal_path, name)


Unread = tuple[Record, Exception]
"""A job whose journal is gone or unreadable, and why."""


def listed(unread: list[Unread] | None = None) -> list[JobStatus]:
    """Every job, oldest first; those that cannot be read go to ``unread``."""
    found = []
    for record in job_store.records():
        try:
            found.append(status(record))
        except (ZconsoleError, OSError, sqlite3.Error) as error:
            if unread is not None and not record.given_up:
                unread.append((record, error))
    return found


def status(record: Record) -> JobStatus:
    """The state of one job. Raises NotFoundError, NotUnderstoodError."""
    alive = job_store.is_alive(record)
    try:
        journal = Journal.open(record.journal, write=False)
    except sqlite3.OperationalError as error:
        raise NotFoundError(f"{record.journal}: {error}") from error
    with closing(journal), understood(journal):
        data = journal.get("status") or {}
        state, why = data.get("state", "planned"), data.get("why")
        counting = walking_settings(journal, alive) if journal.get("job") is None else None
        if counting is not None and state == "planned":
            state, why = "running", WALKING
        if state in RUNNING and not alive:
            state, why = "dead", aftermath.cause(record, data.get("t"))
        if state not in RUNNING:  # the last figures are of when files were being moved
            data |= dict.fromkeys(("rate", "eta_seconds", "current"))
        if counting is not None:
            return JobStatus(record, state, why, counting, {}, data)
        job, days = job_of(journal), tuple(journal.days())
        agreed = (journal.get("walking") or {}).get("agreed", True)
        if state == "planned" and alive and not agreed:
            state, why = "waiting", "its operator is asked"
        return JobStatus(record, state, why, job.settings, job.engines, data, days, agreed)


def steer(record: Record, order: str | None, limits: Mapping[str, Any] | None = None) -> None:
    """Give a running job an order (run, pause or stop; None keeps the last), and limits to change.

    Raises ZconsoleError when the job does not run.
    """
    if not job_store.is_alive(record):
        raise ZconsoleError(f"job {record.job} does not run")
    _write_control(record, order, limits)


def left_out(record: Record) -> dict[str, Any]:
    """What a job skipped and failed to move; see ``aftermath.as_json``."""
    with closing(Journal.open(record.journal, write=False)) as journal:
        return aftermath.as_json(journal)


def take_up(record: Record, limits: Mapping[str, Any]) -> None:
    """Let a job that ended run again, whatever order it was given last; limits given now count.

    Raises NotFoundError, NotUnderstoodError.
    """
    ended = status(record).state in ("dead", "stopped", "finished")
    if ended or (limits and not job_store.is_alive(record)):
        _write_control(record, "run" if ended else None, limits)


def _write_control(record: Record, order: str | None, limits: Mapping[str, Any] | None) -> None:
    with closing(Journal.open(record.journal)) as journal:
        before = orders_of(journal)
        merged = {**before.limits, **(limits or {})}
        journal.set("control", {"order": order or before.order, "limits": merged})


def resume(record: Record, limits: Mapping[str, Any] | None = None) -> None:
    """Let a paused job go on, or start a dead or stopped one again, detached."""
    _write_control(record, "run", limits)
    if not job_store.is_alive(record):
        start(record)


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
    argv = [python.executable, "-m", "zconsole", "rebalance", "run", "--yes"]
    pid = start_detached([*argv, f"--journal={record.journal}", *words], record.log)
    alive = 0
    for _ in range(round(START_SECONDS / START_LOOK)):
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None:
            _judge_end(record, pid, ended, said)
            break
        alive += job_store.is_alive(record)
        if alive * START_LOOK >= BEGINNING or (alive and _written_by(record, pid)):
            break
        time.sleep(START_LOOK)


def _written_by(record: Record, pid: int) -> JobStatus | None:
    """The state of a job when this process wrote it."""
    try:
        found = status(record)
    except (ZconsoleError, OSError, sqlite3.Error):
        return None
    return found if found.data.get("pid") == pid else None


def _judge_end(record: Record, pid: int, ended: os.waitid_result, said: int) -> None:
    """Raise EndedAtOnceError unless the process that has ended did what it was to do."""
    found = _written_by(record, pid)
    if ended.si_status == ExitCode.OK or (found is not None and found.state == "finished"):
        return
    exited = ended.si_code == os.CLD_EXITED and ended.si_status in set(ExitCode)
    words = read_end(record.log, aftermath.TAIL, said).decode(errors="surrogateescape")
    last = next(
        (line for line in reversed(words.split("\n")) if line.strip()), "it has ended at once"
    )
    why = found.why if found is not None and found.state == "stopped" else None
    code = ExitCode(ended.si_status) if exited else ExitCode.FAILED
    raise EndedAtOnceError(why or last.removeprefix("zconsole: "), code)


def resumable(unread: list[Unread] | None = None) -> list[JobStatus]:
    """Jobs that a death, a reboot or the end of a terminal interrupted, and nobody's order."""
    return [
        found
        for found in listed(unread)
        if interrupted(found.state, found.why)
        and (found.agreed or found.state != "planned")
        and not job_store.is_alive(found.record)
    ]


@dataclass(frozen=True, slots=True)
class AuditedJobs:
    """Orders to jobs, each with a line before and after it."""

    log: Log
    argv: Sequence[str] = field(default_factory=lambda: tuple(python.argv))
    clock: Callable[[], float] = time.time

    def steer(
        self, record: Record, order: str | None, limits: Mapping[str, Any] | None = None
    ) -> None:
        """See ``steer``. Raises AuditError where no log can be written.

        But not for a pause or stop that changes nothing else.
        """
        action = AUDITED.get(order or "", "limits")
        with self._logged(action, record, limits, at_once=action in AT_ONCE and not limits):
            steer(record, order, limits)

    def resume(self, record: Record, limits: Mapping[str, Any] | None = None) -> None:
        """See ``resume``. Raises AuditError where no log can be written."""
        with self._logged("resume", record, limits):
            resume(record, limits)

    def start(self, record: Record) -> None:
        """See ``start``. Raises AuditError where no log can be written."""
        with self._logged("start", record):
            start(record)

    @contextmanager
    def run(self, record: Record) -> Iterator[None]:
        """The life of a job in this process. Raises AuditError where no log can be written."""
        settings = status(record).settings.as_json()
        with self._logged("run", record, settings["limits"], settings=settings):
            yield

    @contextmanager
    def _logged(
        self,
        action: str,
        record: Record,
        limits: Mapping[str, Any] | None = None,
        at_once: bool = False,
        **more: Any,
    ) -> Iterator[None]:
        what = {"kind": "job", "action": action, "job": record.job, "argv": list(self.argv)}
        fields = {**what, "limits": dict(limits or {}), **more}
        (self.log.note if at_once else self.log.write)(self.clock(), "begun", **fields)
        result = "failed"
        try:
            yield
            result = "done"
        except (OSError, ZconsoleError) as error:
            result = f"failed: {error}"
            raise
        finally:
            self.log.note(self.clock(), "ended", **what, ok=result == "done", result=result)
