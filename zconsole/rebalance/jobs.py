"""Jobs as the command line and the console see them: create, list, read, steer, start.

Nothing here waits for a job; a running one is read and steered through its journal.
"""

from __future__ import annotations

import os
import sqlite3
import sys as python
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zconsole.errors import NotFoundError, NotUnderstoodError, ZconsoleError
from zconsole.rebalance import plan, store
from zconsole.rebalance.facts import Reader
from zconsole.rebalance.job import Job
from zconsole.rebalance.journal import Journal
from zconsole.rebalance.locks import TreeLocks
from zconsole.rebalance.plan import Plan
from zconsole.rebalance.predict import Space
from zconsole.rebalance.settings import Settings
from zconsole.rebalance.store import Record
from zconsole.rebalance.survey import Ages
from zconsole.rebalance.syscalls import Sys
from zconsole.rebalance.walk import Portion
from zconsole.sources.runner import start_detached

RUNNING = ("running", "paused", "waiting")
START_SECONDS = 20.0
START_LOOK = 0.05
WALKING = "counting files"
"""What a job says that is still being planned by the process that will run it."""
STATUS = (
    "files_done", "files_total", "bytes_done", "bytes_total", "rate", "eta_seconds", "current",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Status:
    """What is known of one job, without disturbing it."""

    record: Record
    state: str
    """running, paused, waiting, finished, stopped, dead, or planned before its first run."""
    why: str | None
    settings: Settings
    engines: Mapping[str, str]
    data: Mapping[str, Any]
    days: tuple[Mapping[str, Any], ...] = ()

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
            "notes": self.data.get("notes", []),
            "days": [dict(day) for day in self.days],
        }


@dataclass(slots=True)
class Created:
    """A job that was planned and has its journal, but has not run."""

    record: Record
    plan: Plan


@dataclass(slots=True)
class WalkSink:
    """Writes a walk into a journal."""

    journal: Journal
    last: int = 0
    skipped: dict[str, int] = field(default_factory=dict)

    def __call__(self, portion: Portion, ages: Ages) -> None:
        """Store a portion, every file with its rank in the order of work."""
        row = portion.directory
        if row.number > self.last:
            self.last = row.number
            self.journal.add_directory(row)
        for _, reason in portion.skipped:
            self.skipped[reason] = self.skipped.get(reason, 0) + 1
        self.journal.add_files(
            (
                row.number, name, status.st_ino, status.st_size, status.st_nlink,
                _rank(status, ages.addition),
            )
            for name, status in portion.files
        )  # fmt: skip


def _rank(status: os.stat_result, addition: float | None) -> int:
    """Files older than the newest vdev first, then large before small."""
    newer = addition is not None and status.st_ctime >= addition
    return (64 if newer else 0) + 63 - status.st_size.bit_length()


def create(settings: Settings, reader: Reader, journal_path: Path | None = None) -> Created:
    """Walk and plan a new job; with a refusal in its plan, nothing of it is kept.

    Raises ZconsoleError and what ``plan.places`` and ``plan.make`` raise.
    """
    system = Sys()
    found = plan.places(settings.dirs, reader)
    locks = TreeLocks(system, [place.root for place in found])
    record = store.add(journal_path)
    lock = store.JobLock(record)
    made: Plan | None = None
    try:
        journal = Journal.create(record.journal)
        try:
            made = _walk_into(journal, system, reader, found, settings, record)
        finally:
            journal.close()
    except FileExistsError as error:
        raise ZconsoleError(f"{record.journal} exists already") from error
    finally:
        lock.close()
        locks.close()
        if made is None or made.refused:
            store.remove(record)
            if made is not None:
                delete_journal(record.journal)
    return Created(record, made)


def delete_journal(path: Path) -> None:
    """Remove a journal and SQLite's files beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _walk_into(
    journal: Journal,
    system: Sys,
    reader: Reader,
    found: list[plan.Place],
    settings: Settings,
    record: Record,
) -> Plan:
    sink = WalkSink(journal)
    journal.set("keys", {os.fsdecode(place.root): place.key for place in found})
    journal.set("walking", settings.as_json())
    journal.begin()
    made = plan.make(system, reader, found, settings.wish, settings.goal, sink)
    journal.commit()
    engines = {os.fsdecode(d.place.root): d.choice.engine or "" for d in made.directories}
    journal.finish_walk(split_links="copy" in engines.values())
    status = os.statvfs(found[0].root)
    pool = made.pool
    journal.set("walk_skipped", sink.skipped)
    journal.set(
        "job",
        {
            "name": record.job,
            "settings": settings.as_json(),
            "engines": engines,
            "spaces": [[s.name, s.size, s.alloc, s.weight] for s in pool.spaces] if pool else [],
            "raw_factor": pool.raw_factor if pool else 1.0,
            "reserve": max(0, status.f_bavail * status.f_frsize - made.available),
            "bytes_to_target": made.bytes_to_target,
            "created": time.time(),
        },
    )
    store.make_names_durable(journal.path.parent)
    return made


def read_job(journal: Journal) -> Job:
    """What a journal says about its job. Raises NotUnderstoodError for an unfinished walk."""
    data = journal.get("job")
    if data is None:
        raise NotUnderstoodError(f"{journal.path}: the walk was not finished; delete it")
    return Job(
        name=data["name"],
        settings=Settings.from_json(data["settings"]),
        engines=data["engines"],
        spaces=tuple(Space(*space) for space in data["spaces"]),
        raw_factor=data["raw_factor"],
        reserve=data["reserve"],
        bytes_to_target=data["bytes_to_target"],
    )


def adopt(journal_path: Path) -> Record:
    """The record of an existing journal, made again if the state directory lost it."""
    known = store.by_journal(journal_path)
    if known is not None:
        return known
    journal = Journal.open(journal_path)
    try:
        name = read_job(journal).name
    finally:
        journal.close()
    return store.add(journal_path, name)


def listed() -> list[Status]:
    """Every job, oldest first; one whose journal is gone or unreadable is left out."""
    found = []
    for record in store.records():
        try:
            found.append(status(record))
        except (ZconsoleError, OSError, sqlite3.Error):
            continue
    return found


def status(record: Record) -> Status:
    """The state of one job. Raises NotFoundError, NotUnderstoodError."""
    alive = store.is_alive(record)
    try:
        journal = Journal.open(record.journal, write=False)
    except sqlite3.OperationalError as error:
        raise NotFoundError(f"{record.journal}: {error}") from error
    try:
        if alive and journal.get("job") is None and (asked := journal.get("walking")):
            return Status(record, "running", WALKING, Settings.from_json(asked), {}, {})
        job, data = read_job(journal), journal.get("status") or {}
        days = tuple(journal.days())
    finally:
        journal.close()
    state, why = data.get("state", "planned"), data.get("why")
    if state in RUNNING and not alive:
        state, why = "dead", "its process is gone; resume it"
    return Status(record, state, why, job.settings, job.engines, data, days)


def steer(record: Record, order: str | None, limits: Mapping[str, Any] | None = None) -> None:
    """Give a running job an order (run, pause or stop; None keeps the last), and limits to change.

    Raises ZconsoleError when the job does not run.
    """
    if not store.is_alive(record):
        raise ZconsoleError(f"job {record.job} does not run")
    _write_control(record, order, limits)


def _write_control(record: Record, order: str | None, limits: Mapping[str, Any] | None) -> None:
    journal = Journal.open(record.journal)
    try:
        control = journal.get("control") or {}
        merged = {**control.get("limits", {}), **(limits or {})}
        given = order or control.get("order", "run")
        journal.set("control", {"order": given, "limits": merged})
    finally:
        journal.close()


def resume(record: Record, limits: Mapping[str, Any] | None = None) -> None:
    """Let a paused job go on, or start a dead or stopped one again, detached."""
    _write_control(record, "run", limits)
    if not store.is_alive(record):
        start(record)


def start(record: Record) -> None:
    """Start a job in a process and session of its own; it outlives this one.

    Returns when it has taken its job, so that nobody finds it dead who asks a moment later.
    """
    argv = [python.executable, "-m", "zconsole", "rebalance", "run", "--yes"]
    pid = start_detached([*argv, "--journal", os.fspath(record.journal)], record.log)
    for _ in range(round(START_SECONDS / START_LOOK)):
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None or store.is_alive(record):
            return
        time.sleep(START_LOOK)


def resumable() -> list[Status]:
    """Jobs that a reboot or a death interrupted."""
    return [found for found in listed() if found.state in ("dead", "planned", "paused")]
