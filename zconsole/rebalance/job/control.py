"""Jobs as the command line and the console see them: create, list, read, steer, start.

Nothing here waits for a job; a running one is read and steered through its journal.
"""

from __future__ import annotations

import os
import sqlite3
import sys as python
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from zconsole.errors import ExitCode, NotFoundError, NotUnderstoodError, ZconsoleError
from zconsole.rebalance.backend import interrupted
from zconsole.rebalance.engine import database
from zconsole.rebalance.engine.item import StopJobError
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job import aftermath, job_store
from zconsole.rebalance.job.counting import WALKING, WalkSink
from zconsole.rebalance.job.job import JobClocks, job_of, understood
from zconsole.rebalance.job.job_store import Record
from zconsole.rebalance.job.locks import TreeLocks, refuse_interrupted
from zconsole.rebalance.planning import plan
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.plan_model import JobDirectory, RebalancePlan
from zconsole.rebalance.planning.settings import Settings
from zconsole.system.process import start_detached
from zconsole.system.safe_path import sync_directory
from zconsole.system.state_dir import read_end

RUNNING = ("running", "paused", "waiting")
START_SECONDS = 20.0
START_LOOK = 0.05
BEGINNING = 2.0
"""Seconds after which a job that has not ended is taken to be at work: it may count its files."""
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


@dataclass(slots=True)
class Created:
    """A job that was planned and has its journal, but has not run."""

    record: Record
    plan: RebalancePlan
    locks: TreeLocks | None = None
    """Those of its trees, where they were to be held."""


def create(
    settings: Settings,
    reader: FactsReader,
    journal_path: Path | None = None,
    agreed: bool = True,
    begun: Callable[[Record], None] = lambda record: None,
    clocks: JobClocks | None = None,
    ask: Callable[[RebalancePlan], None] = lambda plan: None,
    hold: bool = False,
) -> Created:
    """Walk and plan a new job; with a refusal in its plan, nothing of it is kept.

    ``begun`` is called before the walk, from when on the job can be steered. ``agreed``: nobody
    is going to be asked, so what ends the walk can be resumed. ``ask`` is given the plan while
    nobody else can run the job; when it raises, nothing is kept either. ``hold``: the trees stay
    locked, for ``execute`` to go on with. Raises StopJobError when told to stop, ZconsoleError, and
    what ``ask``, ``plan.places`` and ``plan.make`` raise.
    """
    found = plan.places(settings.dirs, reader)
    with ExitStack() as held:
        locks = held.enter_context(closing(_locked(found)))
        record = _record_for(journal_path)
        with closing(job_store.JobLock(record)):
            walking = {"settings": settings.as_json(), "agreed": agreed}
            journal = _new_journal(record, {"walking": walking})
            kept = False
            try:
                begun(record)
                made = _walk_into(journal, reader, found, settings, record, clocks or JobClocks())
                ask(made)
                journal.set("walking", {**walking, "agreed": True})
                kept = not made.refused
            except StopJobError:
                kept = agreed
                raise
            finally:
                journal.close()
                if not kept:
                    _forget(record)
        if hold:
            held.pop_all()
    return Created(record, made, locks if hold else None)


def recount(record: Record, reader: FactsReader) -> Created:
    """Walk and plan again where a death or an order ended that; the job stays, whatever happens.

    Raises what ``create`` raises.
    """
    with closing(job_store.JobLock(record)), closing(Journal.open(record.journal)) as journal:
        settings = _walking(journal, alive=False)
        if settings is None:
            raise NotUnderstoodError(f"{record.journal}: the walk was not finished; delete it")
        control = journal.get("control") or {}
        settings = replace(settings, limits=settings.limits.changed(control.get("limits") or {}))
        found = plan.places(settings.dirs, reader)
        with closing(_locked(found)):
            journal.clear_walk()
            journal.set("status", {"state": "running", "why": WALKING})
            made = _walk_into(journal, reader, found, settings, record, JobClocks())
    return Created(record, made)


def _locked(found: list[JobDirectory]) -> TreeLocks:
    """The locks of trees in which no other job works or has work to settle."""
    roots = [place.root for place in found]
    locks = TreeLocks(Sys(), roots)
    try:
        refuse_interrupted(roots)
    except BaseException:
        locks.close()
        raise
    return locks


def is_counted(record: Record) -> bool:
    """Whether the walk into a job's journal was finished."""
    with closing(Journal.open(record.journal, write=False)) as journal:
        return journal.get("job") is not None


def _record_for(journal_path: Path | None) -> Record:
    """A new record, or the one whose journal a death kept from being made."""
    known = job_store.by_journal(journal_path) if journal_path else None
    if known is not None and not known.journal.exists():
        return known
    return job_store.add(journal_path)


def _new_journal(record: Record, values: Mapping[str, Any]) -> Journal:
    try:
        return Journal.create(record.journal, values)
    except BaseException as error:
        job_store.remove(record)
        if isinstance(error, FileExistsError):
            raise ZconsoleError(f"{record.journal} exists already") from error
        raise


def _forget(record: Record) -> None:
    """Remove a job that never began, and its journal; its lock is held."""
    job_store.remove(record)
    database.delete(record.journal)


def _walk_into(
    journal: Journal,
    reader: FactsReader,
    found: list[JobDirectory],
    settings: Settings,
    record: Record,
    clocks: JobClocks,
) -> RebalancePlan:
    sink = WalkSink(journal, clocks)
    journal.set("keys", {os.fsdecode(place.root): place.key for place in found})
    with journal.lazily_durable():
        made = plan.make(Sys(), reader, found, settings.wish, settings.goal, sink)
        sink.flush()
        sink.obey()
        engines = {os.fsdecode(d.place.root): d.choice.engine or "" for d in made.directories}
        journal.finish_walk(split_links="copy" in engines.values())
    if made.refused:
        journal.set("status", {"state": "stopped", "why": f"refused: {made.refused}"})
        return made
    pool = made.pool
    journal.set("walk_skipped", sink.skipped)
    journal.set("status", {})
    journal.set(
        "job",
        {
            "name": record.job,
            "settings": settings.as_json(),
            "engines": engines,
            "spaces": [[s.name, s.size, s.alloc, s.weight] for s in pool.spaces] if pool else [],
            "raw_factor": pool.raw_factor if pool else 1.0,
            "floors": plan.floors(made),
            "rooms": {os.fsdecode(d.place.root): d.found.room or 0 for d in made.directories},
            "bytes_to_target": made.bytes_to_target,
            "created": time.time(),
        },
    )
    sync_directory(journal.path.parent)
    return made


def _walking(journal: Journal, alive: bool) -> Settings | None:
    """The settings of a job that counts its files, or will when it is resumed."""
    asked = journal.get("walking") or {}
    if not asked or not (asked["agreed"] or alive):
        return None
    return Settings.from_json(asked["settings"])


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
        counting = _walking(journal, alive) if journal.get("job") is None else None
        if counting is not None and state == "planned":
            state, why = "running", WALKING
        if state in RUNNING and not alive:
            state, why = "dead", aftermath.cause(record, data.get("t"))
        if state not in RUNNING:  # what was told last is of when something was being moved
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
        control = journal.get("control") or {}
        merged = {**control.get("limits", {}), **(limits or {})}
        given = order or control.get("order", "run")
        journal.set("control", {"order": given, "limits": merged})


def resume(record: Record, limits: Mapping[str, Any] | None = None) -> None:
    """Let a paused job go on, or start a dead or stopped one again, detached."""
    _write_control(record, "run", limits)
    if not job_store.is_alive(record):
        start(record)


def start(record: Record) -> None:
    """Start a job in a process and session of its own; it outlives this one.

    Returns when it is at work, so that nobody finds it dead who asks a moment later. Raises
    EndedAtOnceError when it could not begin.
    """
    said = record.log.lstat().st_size if os.path.lexists(record.log) else 0
    argv = [python.executable, "-m", "zconsole", "rebalance", "run", "--yes"]
    pid = start_detached([*argv, "--journal", os.fspath(record.journal)], record.log)
    alive = 0
    for _ in range(round(START_SECONDS / START_LOOK)):
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None:
            _judge_end(record, pid, ended, said)
            break
        alive += job_store.is_alive(record)
        if alive * START_LOOK >= BEGINNING or (alive and _told_by(record, pid)):
            break
        time.sleep(START_LOOK)


def _told_by(record: Record, pid: int) -> JobStatus | None:
    """The state of a job when it is this process that told it."""
    try:
        found = status(record)
    except (ZconsoleError, OSError, sqlite3.Error):
        return None
    return found if found.data.get("pid") == pid else None


def _judge_end(record: Record, pid: int, ended: os.waitid_result, said: int) -> None:
    """Raise EndedAtOnceError unless the process that has ended did what it was to do."""
    told = _told_by(record, pid)
    if ended.si_status == ExitCode.OK or (told is not None and told.state == "finished"):
        return
    exited = ended.si_code == os.CLD_EXITED and ended.si_status in set(ExitCode)
    words = read_end(record.log, aftermath.TAIL, said).decode(errors="surrogateescape")
    last = next(
        (line for line in reversed(words.split("\n")) if line.strip()), "it has ended at once"
    )
    why = told.why if told is not None and told.state == "stopped" else None
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
