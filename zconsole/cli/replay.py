"""``zconsole replay FILE``: plays a recording in the console, or prints it as ``watch`` does."""

from __future__ import annotations

import argparse
from datetime import UTC

from zconsole.cli import event_loop, output
from zconsole.cli.terminal import has_terminal, open_console
from zconsole.errors import ExitCode
from zconsole.timeline.feed import ReplayFeed
from zconsole.timeline.session import Session
from zconsole.zfs.sources.recording import Gaps
from zconsole.zfs.sources.replay import ReplaySource


def run(args: argparse.Namespace) -> int:
    """Play the recording with times in UTC, whatever this machine's zone; return the exit code.

    Unreadable samples are reported once, at the end, on stderr.
    """
    prints, gaps = args.json or not has_terminal(), Gaps()
    source = ReplaySource(args.file, gaps=gaps, speed=None if prints else args.speed)

    def session(counted: Gaps) -> Session:
        return Session(zone=UTC, flags=source.capabilities.flags, gaps=counted, goes_on=not prints)

    feed = ReplayFeed(source, session(gaps), lambda: session(Gaps()))
    if prints:

        async def _print() -> int:
            async for update in event_loop.rounds(feed):
                frames = [frame for frame in update.frames if not frame.problem]
                output.show(frames, args.json, UTC)
            return ExitCode.OK

        code = event_loop.run(_print())
    else:
        # A recording doesn't say which machine it is from, and it is likely not this one.
        code = open_console(args, feed, UTC, host="")
    output.say_gaps(gaps)
    return code
