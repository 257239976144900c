"""``zconsole export``: Prometheus metrics, served over HTTP or written to a file."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from zconsole.cli import event_loop, remote
from zconsole.cli.options import SHIPPED
from zconsole.cli.output import say
from zconsole.errors import ExitCode, UsageError, ZconsoleError
from zconsole.output.prometheus.metrics import Page, families, write
from zconsole.output.prometheus.server import address_of, serve
from zconsole.rebalance.job import control
from zconsole.scan_report.store import LastScans, ReportStore
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.patient import NotAskedError, Patient
from zconsole.system.state_dir import StateError, state_dirs
from zconsole.timeline.feed import Update

ANSWER = 5.0
"""Seconds for reading stored reports and jobs, and for writing the text file.

If the disk hangs, the page has only the metrics of pools, and the file stays as it is.
"""


def run(args: argparse.Namespace) -> int:
    """Export until interrupted, or for ``--count`` samples; return the exit code."""
    if args.shipped is not None:
        print(shipped(args.shipped), end="")
        return ExitCode.OK
    if (args.textfile is None) == (args.listen is None):
        raise UsageError("export needs either --listen [ADDR:]PORT or --textfile PATH")
    address = address_of(args.listen) if args.listen is not None else None
    page = Page()
    try:
        return event_loop.run(_export(args, page, address))
    except KeyboardInterrupt:
        return ExitCode.OK


async def _export(args: argparse.Namespace, page: Page, address: tuple[str, int] | None) -> int:
    stop: Callable[[], None] = serve(page, address) if address else lambda: None
    if address:
        say(f"metrics at http://{address[0]}:{address[1]}/metrics")
    try:
        # Interrupting is the usual end of an export, and not an error.
        with contextlib.suppress(asyncio.CancelledError), remote.opened(args) as feed:
            rounds = event_loop.rounds(feed, args.count)
            await publish(rounds, page, args.textfile)
    finally:
        stop()
    return ExitCode.OK


async def publish(rounds: AsyncGenerator[Update, None], page: Page, textfile: str | None) -> None:
    """Put every round on the page, and in the text file if requested.

    When the file can no longer be written, that is reported once and tried again at each round.
    Raises ZconsoleError if the first attempt to write it fails, or the last.
    """
    store, last, jobs_disk = ReportStore(None, state_dirs()), LastScans(), Patient()
    disk, failure, written = Patient(), None, False
    async with contextlib.aclosing(rounds) as following:
        async for update in following:
            jobs: Sequence[Mapping[str, Any]] = []
            with contextlib.suppress(NotAskedError):
                for guid in filter(None, map(last.wanted, update.frames)):
                    await in_daemon_thread(_recall, store, last, guid)
                jobs = await in_daemon_thread(_jobs, jobs_disk)
            page.families = families(update.frames, jobs, last.push)
            if textfile is not None:
                before, failure = failure, None
                try:
                    to_disk = partial(write, page, Path(textfile))
                    await in_daemon_thread(disk.call, to_disk, ANSWER)
                    written = True
                except ZconsoleError as error:
                    if not written:
                        raise
                    failure = error
                    if before is None:
                        say(str(error))
    if failure is not None:
        raise failure


def _recall(store: ReportStore, last: LastScans, guid: str) -> None:
    """Read the stored reports of a pool's scans; the next round tries again if that fails."""
    with contextlib.suppress(StateError, OSError):
        last.recall(guid, store.reports(guid=guid, seconds=ANSWER))


def _jobs(patient: Patient) -> Sequence[Mapping[str, Any]]:
    """Return all rebalance jobs; none if they can't be read in time: pools still have metrics."""
    with contextlib.suppress(StateError, OSError):
        return [status.as_json() for status in patient.call(partial(control.list_jobs, []), ANSWER)]
    return []


# Files that an operator installs: systemd units, the dashboard, alert rules.

INSTALLED = "/usr/bin/zconsole"
"""Path of the program in the packaged units, replaced by the path of the running one."""


def shipped(name: str) -> str:
    """Return the text of a file of SHIPPED; a unit is changed to start the running program."""
    text = (resources.files("zconsole") / "share" / SHIPPED[name]).read_text()
    return for_program(text, sys.argv[0], sys.executable)


def for_program(unit: str, program: str, interpreter: str) -> str:
    """Return a unit with the full path of a program, as systemd searches few directories.

    ``program`` is the path it was started by; ``interpreter`` runs it if it is a module or archive.
    """
    path = _word(str(Path(program).absolute()))
    if Path(program).name == "zconsole":
        command = path
    elif Path(program).suffix == ".pyz":
        command = f"{_word(interpreter)} {path}"
    else:
        command = f"{_word(interpreter)} -m zconsole"
    for start in ("ExecStart=", "ExecStart=-"):  # -: a failure is ignored (systemd.service(5))
        unit = unit.replace(f"{start}{INSTALLED} ", f"{start}{command} ")
    return unit


def _word(path: str) -> str:
    """Quote a path so that systemd reads it as one word (systemd.service(5))."""
    safe = path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{safe}"' if safe != path or " " in path else path
