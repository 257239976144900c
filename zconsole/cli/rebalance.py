"""``zconsole rebalance plan|run|status|pause|resume|stop``: plans, runs and controls jobs."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zconsole.cli.config import refuse_denied
from zconsole.errors import ExitCode, NotFoundError, NotUnderstoodError, UsageError, ZconsoleError
from zconsole.rebalance import held_vdevs
from zconsole.rebalance.backend import JobStatus, JobView
from zconsole.rebalance.job import control, job_store
from zconsole.rebalance.job.control import UnreadableJob
from zconsole.rebalance.job.job_output import Show, job_line, job_lines, lasting, say, summary_lines
from zconsole.rebalance.job.job_store import Record
from zconsole.rebalance.planning.plan_document import plan_lines
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.system.audit import audit_log
from zconsole.system.patient import in_time, left_when_deaf, made_state_dir
from zconsole.system.printable import clean
from zconsole.system.safe_path import resolved
from zconsole.units import counted

if TYPE_CHECKING:
    from zconsole.rebalance.job.creation import Created
    from zconsole.rebalance.planning.forecast import RebalancePlan
    from zconsole.rebalance.planning.plan_document import PlanDocument
    from zconsole.rebalance.planning.survey import Ages, Sink
    from zconsole.rebalance.planning.walk import Portion

CHANGE_NOTHING = frozenset({"plan", "status"})
"""Actions that change nothing."""
MOST_NAMED_JOBS = 5
"""Unreadable jobs that are named; further ones are counted."""
MOST_NAMED_FILES = 100
"""Skipped files of a job that are named."""
COUNT_INTERVAL = 0.2
"""Seconds between two lines of ``plan --progress``."""
PLAN_EXITS_AFTER, EXITS_AFTER = 3.0, 30.0
"""Seconds after a signal until the program exits though a system call hangs: planning, other.

A call hangs on a dead server, for example. The second is as long as a sync may take on busy disks.
Exiting is safe at any moment: the journal is always consistent.
"""
AT_ONCE = frozenset({"pause", "stop", "status"})
"""Actions that end, or fail, within ANSWER."""
ANSWER = 20.0
"""Seconds for actions that read or write journals: SQLite waits up to 10 for a busy one."""


def run(args: argparse.Namespace) -> int:
    """Run the action; return the exit code. Raises ZconsoleError."""
    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "plan": _plan,
        "run": _run,
        "status": _status,
        "pause": _steer,
        "stop": _steer,
        "resume": _resume,
    }
    if args.action not in CHANGE_NOTHING:
        refuse_denied(args, f"{args.action} changes files", undoes=args.action in ("pause", "stop"))
    action = partial(actions[args.action], args)
    # Sent when somebody writes to a file that is leased to try it; its default action is to end us.
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    with (
        _journal_errors(),
        left_when_deaf(PLAN_EXITS_AFTER if args.action == "plan" else EXITS_AFTER),
    ):
        return in_time(action, ANSWER) if args.action in AT_ONCE else action()


@contextlib.contextmanager
def _journal_errors() -> Iterator[None]:
    """Turn SQLite's errors about a journal into NotUnderstoodError or ZconsoleError."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise ZconsoleError(f"the job's journal: {error}") from error
    except sqlite3.DatabaseError as error:
        raise NotUnderstoodError(f"the job's journal is damaged: {error}") from error


def _limits(args: argparse.Namespace) -> dict[str, Any]:
    """Return the limits on the command line, by their names in the settings."""
    given = ((limit.name, getattr(args, limit.name)) for limit in fields(Limits))
    return {name: value for name, value in given if value is not None}


def _settings(args: argparse.Namespace) -> Settings:
    if not args.dirs:
        raise UsageError("name at least one directory")
    # To os.path.realpath, an empty word, likely an unset variable, is the working directory.
    if not all(args.dirs):
        raise UsageError("the directory argument is empty")
    return Settings(
        dirs=tuple(os.path.realpath(word) for word in args.dirs),
        engine=args.engine,
        aim=args.aim,
        accept_races=args.accept_races,
        allow_non_zfs=args.allow_non_zfs,
        rewrite_options=args.rewrite_options,
        fill_new=args.fill_new,
        during_scan=getattr(args, "during_scan", False),
        limits=Limits(**_limits(args)),
    )


def _plan(args: argparse.Namespace) -> int:
    from zconsole.rebalance.job.locks import conflicting_job
    from zconsole.rebalance.planning import plan
    from zconsole.rebalance.planning.facts import FactsReader

    settings, reader = _settings(args), FactsReader()
    found = plan.locate(settings.dirs, reader)
    sink = _counter(time.monotonic) if args.progress else None
    made = plan.make(reader, found, settings, sink).document
    if busy := conflicting_job([place.root for place in found]):
        made = replace(made, notes=(*made.notes, busy))
    if args.json:
        _print_json(made.as_json())
    else:
        print("\n".join(plan_lines(made)))
    return ExitCode.FAILED if made.refused else ExitCode.OK


def _counter(clock: Callable[[], float]) -> Sink:
    """Return a function that prints the progress of a walk, a few times a second."""
    files = size = 0
    shown = float("-inf")

    def _count(portion: Portion, _: Ages) -> None:
        nonlocal files, size, shown
        files += len(portion.files)
        size += sum(status.st_size for _, status in portion.files)
        if clock() - shown >= COUNT_INTERVAL:
            shown = clock()
            where = os.fsdecode(portion.directory.name)
            _print_json({"progress": {"files": files, "bytes": size, "where": where}})

    return _count


def _run(args: argparse.Namespace) -> int:
    from zconsole.rebalance.engine.item import StopJobError

    try:
        journal = _journal(args)
        if journal is not None and os.path.lexists(journal):
            record, made = _resume_journal(args, journal), None
        else:
            made = _create(args, journal)
            record = made.record
    except StopJobError:
        say("stopped while counting files: nothing was moved")
        return ExitCode.OK
    if args.detach:
        control.detach(audit_log(), record)
        return ExitCode.OK
    return _execute(record, args.json, made)


def _journal(args: argparse.Namespace) -> Path | None:
    """Return the path of the journal that was named, with links resolved; None without one.

    Links of other users are refused. Raises NotFoundError, StateError.
    """
    if args.journal is None:
        return None
    try:
        return resolved(args.journal)
    except FileNotFoundError as error:
        raise NotFoundError(f"{args.journal}: no such directory") from error


def _resume_journal(args: argparse.Namespace, journal: Path) -> Record:
    """Resume the job of a journal; its files are counted again if the journal has no plan yet."""
    from zconsole.rebalance.job import creation
    from zconsole.rebalance.planning.facts import FactsReader

    made_state_dir()  # first: unlike adopt(), which writes to it, this fails in time if it hangs
    record = control.adopt(journal)
    given = {name: getattr(args, name) for name in creation.OPTIONS}
    dirs = _settings(args).dirs if args.dirs else ()
    creation.refuse_difference(journal, control.status(record).settings, dirs, given)
    say(f"job {record.job}")
    control.run_again(record, _limits(args))
    with control.refusals_kept(record):
        if not args.detach and (recounted := creation.recount(record, FactsReader())):
            _show_plan(recounted.document)
    return record


def _create(args: argparse.Namespace, journal: Path | None) -> Created:
    """Plan a new job, show the plan and ask for confirmation; the job can start only then.

    If it is to run in this process, it and its directory trees stay locked, so that no other job
    can start in them before.
    """
    from zconsole.rebalance.job import creation
    from zconsole.rebalance.planning.facts import FactsReader

    settings = _settings(args)
    if not args.yes and not sys.stdin.isatty():
        raise UsageError("not a terminal, so nobody can confirm: pass --yes")

    def _ask(plan: RebalancePlan) -> None:
        _show_plan(plan.document)
        if not args.yes and not _agreed():
            raise ZconsoleError("canceled: nothing was changed")

    def _begun(record: Record) -> None:
        say(f"job {record.job}")

    made_state_dir()
    hold = not args.detach
    return creation.create(settings, FactsReader(), journal, args.yes, _begun, ask=_ask, hold=hold)


def _show_plan(plan: PlanDocument) -> None:
    if plan.refused:
        raise ZconsoleError(f"refused: {plan.refused}")
    say("\n".join(plan_lines(plan)))


def _agreed() -> bool:
    asked = say("Move these files? [y/N] ", end="")
    return asked and sys.stdin.readline().strip().lower() in ("y", "yes")


def _execute(record: Record, as_json: bool, made: Created | None = None) -> int:
    """Run a job in this process."""
    from zconsole.rebalance.job import runner

    # Enters ``held`` before ``running``, which may fail to write the log: the locks are released.
    held = made.held if made else contextlib.nullcontext()
    with control.refusals_kept(record), held, control.running(audit_log(), record):
        failed, interrupted = runner.execute(
            record, lasting(_printer(as_json)), made.locks if made else None
        )
    if interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.FAILED if failed else ExitCode.OK


def _printer(as_json: bool) -> Show:
    """Return a function that prints files as they end, and the summary.

    As text, only files that were not moved are printed.
    """

    def _print(event: JobStatus) -> None:
        ended, summary = event.ended_files, event.summary
        if as_json:
            lines = [json.dumps(file._asdict()) for file in ended]
            lines += [json.dumps({"summary": summary})] if summary else []
        else:
            left = (file for file in ended if file.outcome != "moved")
            lines = [f"{file.outcome}: {clean(file.path)}: {file.reason}" for file in left]
            lines += summary_lines(summary) if summary else []
        if lines:
            print("\n".join(lines), flush=True)

    return _print


def _status(args: argparse.Namespace) -> int:
    if args.job:
        _show_job(control.status(job_store.find(args.job), MOST_NAMED_FILES), args.json)
        return ExitCode.OK
    unread: list[UnreadableJob] = []
    for view in control.list_jobs(unread, MOST_NAMED_FILES if args.json else 0):
        if args.json:
            _show_job(view, args.json)
        else:
            print(job_line(view))
    _report_unread(unread)
    return ExitCode.OK


def _show_job(view: JobView, as_json: bool) -> None:
    if as_json:
        _print_json({**view.as_json(), **view.left_as_json()})
    else:
        print("\n".join(job_lines(view)))


def _steer(args: argparse.Namespace) -> int:
    record = job_store.find(args.job)
    control.steer(audit_log(), record, args.action)
    say(f"{args.action}: job {record.job}")
    if args.json:
        _print_json(control.status(record).as_json())
    return ExitCode.OK


def _resume(args: argparse.Namespace) -> int:
    if args.all == bool(args.job):
        raise UsageError("resume needs either a JOB or --all")
    unread: list[UnreadableJob] = []
    log = audit_log()

    def _records() -> list[Record]:
        if args.all:
            return control.resumable(unread)
        return [job_store.find(args.job)]

    if args.all:
        try:
            held_vdevs.MachineHolds().resume()
        except (OSError, ZconsoleError) as error:
            say(f"zconsole: full vdevs: {clean(str(error))}")
    records = in_time(_records, ANSWER)
    code = _report_unread(unread)
    for record in records:
        try:
            control.resume(log, record, _limits(args))
        except ZconsoleError as error:
            code = error.code
            say(f"zconsole: job {record.job}: {clean(str(error))}")
            continue
        say(f"resumed job {record.job}")
        if args.json:
            _print_json(control.status(record).as_json())
    return code


def _report_unread(unread: Sequence[UnreadableJob]) -> ExitCode:
    """Report jobs whose journals are gone or damaged; return the exit code for them, else OK."""
    for record, error in unread[:MOST_NAMED_JOBS]:
        forget = f"to forget the job, delete {record.file}"
        say(f"zconsole: job {record.job}: {clean(f'{error}; {forget}')}")
    if len(unread) > MOST_NAMED_JOBS:
        more = counted(len(unread) - MOST_NAMED_JOBS, "more job")
        say(f"zconsole: {more} cannot be read")
    errors = [error for _, error in unread if isinstance(error, ZconsoleError)]
    return errors[-1].code if errors else ExitCode.FAILED if unread else ExitCode.OK


def _print_json(data: Mapping[str, Any]) -> None:
    print(json.dumps(data), flush=True)
