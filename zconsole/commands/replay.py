"""``zconsole replay FILE``: the console, or watch's output, over a recording."""

from __future__ import annotations

import argparse
from datetime import UTC

from zconsole.commands import common
from zconsole.errors import ExitCode
from zconsole.session import Session


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("file", metavar="FILE", help="a recording; - is standard input")
    parser.add_argument(
        "--speed", type=common.positive, default=1.0, metavar="X", help="times real time"
    )
    parser.add_argument("--json", action="store_true", help="JSON lines, as fast as possible")


def run(args: argparse.Namespace) -> int:
    """Play it, independent of this machine's clock and zone; returns the exit code."""
    from zconsole.commands.console import has_terminal

    if args.json or not has_terminal():
        return common.run(_print(args))
    return _console(args)


async def _print(args: argparse.Namespace) -> int:
    from zconsole.sources.replay import ReplaySource

    session = Session(zone=UTC)
    async for frames in common.rounds(ReplaySource(args.file, speed=None), session, 0.0):
        common.show(frames, args.json, UTC)
    return ExitCode.OK


def _console(args: argparse.Namespace) -> int:
    from zconsole.commands.console import open_console
    from zconsole.feed import SessionFeed
    from zconsole.sources.replay import ReplaySource

    source = ReplaySource(args.file, speed=args.speed)
    session = Session(zone=UTC, flags=source.capabilities.flags)
    return open_console(args, SessionFeed(source, session, 0.0), UTC)
