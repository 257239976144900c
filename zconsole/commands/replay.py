"""``zconsole replay FILE``: the console, or watch's output, over a recording."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC

from zconsole.commands import common, printing
from zconsole.commands.terminal import has_terminal, open_console
from zconsole.errors import ExitCode
from zconsole.feed import SessionFeed
from zconsole.session import Session
from zconsole.sources.replay import ReplaySource
from zconsole.units import clean


def run(args: argparse.Namespace) -> int:
    """Play it, independent of this machine's clock and zone; returns the exit code."""
    if args.json or not has_terminal():
        return common.run(_print(args))
    return _console(args)


async def _print(args: argparse.Namespace) -> int:
    source, session = ReplaySource(args.file, speed=None), Session(zone=UTC)
    async for frames in common.rounds(source, session, 0.0):
        printing.show(frames, args.json, UTC)
    if note := source.capabilities.details.get("note"):
        print(f"zconsole: {clean(note)}", file=sys.stderr)
    return ExitCode.OK


def _console(args: argparse.Namespace) -> int:
    source = ReplaySource(args.file, speed=args.speed)
    session = Session(zone=UTC, flags=source.capabilities.flags)
    # A recording does not say whose pool it was; it was hardly this machine's.
    return open_console(args, SessionFeed(source, session, 0.0), UTC, host="")
