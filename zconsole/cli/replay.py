"""``zconsole replay FILE``: the console, or watch's output, over a recording."""

from __future__ import annotations

import argparse
from datetime import UTC

from zconsole.cli import event_loop, output
from zconsole.cli.terminal import has_terminal, open_console
from zconsole.errors import ExitCode
from zconsole.monitor.session import Session
from zconsole.monitor.session_feed import SessionFeed
from zconsole.zfs.sources.replay import ReplaySource
from zconsole.zfs.sources.samples import Gaps


def run(args: argparse.Namespace) -> int:
    """Play it, independent of this machine's clock and zone; returns the exit code."""
    if args.json or not has_terminal():
        return event_loop.run(_print(args))
    return _console(args)


async def _print(args: argparse.Namespace) -> int:
    """Samples go to stdout. What is missing is no sample: it is said once, at the end."""
    gaps = Gaps()
    source, session = ReplaySource(args.file, gaps=gaps, speed=None), Session(zone=UTC, gaps=gaps)
    async for update in event_loop.rounds(SessionFeed(source, session, 0.0)):
        output.show([frame for frame in update.frames if not frame.problem], args.json, UTC)
    output.say_gaps(gaps)
    return ExitCode.OK


def _console(args: argparse.Namespace) -> int:
    gaps = Gaps()
    source = ReplaySource(args.file, gaps=gaps, speed=args.speed)
    session = Session(zone=UTC, flags=source.capabilities.flags, gaps=gaps)
    # A recording does not say whose pool it was; it was hardly this machine's.
    code = open_console(args, SessionFeed(source, session, 0.0), UTC, host="")
    output.say_gaps(gaps)
    return code
