"""``zconsole export``: Prometheus metrics, served or written."""

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
from zconsole.cli.output import say
from zconsole.errors import ExitCode, UsageError, ZconsoleError
from zconsole.output.prometheus.metrics import Page, families, write
from zconsole.output.prometheus.server import address_of, serve
from zconsole.rebalance.job import control
from zconsole.scan_report.store import LastScans, ReportStore
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.patient import Patient
from zconsole.system.state_dir import StateError, state_dirs
from zconsole.timeline.feed import Update

ANSWER = 5.0
"""Seconds for reading what is stored; while its disk hangs, there are only metrics of pools.
And for writing the file: while its disk hangs, it stays as it is."""


def run(args: argparse.Namespace) -> int:
    """Export until interrupted, or ``--count`` samples; returns the exit code."""
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
        with contextlib.suppress(asyncio.CancelledError), remote.opened(args) as feed:
            rounds = event_loop.rounds(feed, args.count)
            await publish(rounds, page, args.textfile)
    finally:
        stop()
    return ExitCode.OK


async def publish(rounds: AsyncGenerator[Update, None], page: Page, textfile: str | None) -> None:
    """Put every round on the page, and in the file if requested.

    A file that cannot be written any more is told as it begins, and tried with each later round.
    Raises ZconsoleError where it could never be written, or not with the last round.
    """
    store, last, jobs_disk = ReportStore(None, state_dirs()), LastScans(), Patient()
    disk, failure, written = Patient(), None, False
    async with contextlib.aclosing(rounds) as following:
        async for update in following:
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
    """Read the stored reports of a pool's scans; what fails is tried again with the next round."""
    with contextlib.suppress(StateError, OSError):
        last.recall(guid, store.reports(guid=guid, seconds=ANSWER))


def _jobs(patient: Patient) -> Sequence[Mapping[str, Any]]:
    """The jobs that can be read in time; failures don't affect the metrics of pools."""
    with contextlib.suppress(StateError, OSError):
        return [status.as_json() for status in patient.call(partial(control.listed, []), ANSWER)]
    return []


# Files that an operator installs: units of systemd, the dashboard, alert rules.

FILES = {
    "dashboard": "grafana-dashboard.json",
    "rules": "prometheus-rules.yml",
    "export-unit": "zconsole-export.service",
    "watch-unit": "zconsole-watch@.service",
    "rebalance-unit": "zconsole-rebalance.service",
}
"""What ``export --print`` calls them, and their names."""
INSTALLED = "/usr/bin/zconsole"
"""The program in the units as they stand."""


def shipped(name: str) -> str:
    """The text of a file of FILES; a unit starts this very program."""
    text = (resources.files("zconsole") / "share" / FILES[name]).read_text()
    return for_program(text, sys.argv[0], sys.executable)


def for_program(unit: str, program: str, interpreter: str) -> str:
    """A unit with this program's full path: systemd searches few directories.

    ``program`` is how it was started; if that is a module or an archive, ``interpreter`` runs it.
    """
    path = _word(str(Path(program).absolute()))
    if Path(program).name == "zconsole":
        command = path
    elif Path(program).suffix == ".pyz":
        command = f"{_word(interpreter)} {path}"
    else:
        command = f"{_word(interpreter)} -m zconsole"
    for start in ("ExecStart=", "ExecStart=-"):  # with - its failure doesn't count
        unit = unit.replace(f"{start}{INSTALLED} ", f"{start}{command} ")
    return unit


def _word(path: str) -> str:
    """A path quoted so that systemd reads one word (systemd.service(5))."""
    safe = path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{safe}"' if safe != path or " " in path else path
