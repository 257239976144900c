"""``zconsole watch``: one line or JSON object per pool and sample, and how a scan ended."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence

from zconsole.cli import event_loop, output, remote
from zconsole.cli.output import say
from zconsole.errors import ExitCode
from zconsole.pool.model import NOTHING, Scan
from zconsole.pool.scan_outcome import is_end
from zconsole.timeline.feed import Update
from zconsole.timeline.frame import Frame


def run(args: argparse.Namespace) -> int:
    """Follow the pools; returns the exit code."""

    async def _follow() -> int:
        with remote.opened(args, needed=True, complain=say) as feed:
            return await _rounds(args, event_loop.rounds(feed, args.count))

    return event_loop.run(_follow())


async def _rounds(args: argparse.Namespace, rounds: AsyncGenerator[Update, None]) -> int:
    """Show each round and its alerts, until it is time to stop."""
    watched = False
    begun: dict[str, dict[str, Scan]] = {}
    async with contextlib.aclosing(rounds) as following:
        async for update in following:
            output.show(update.frames, args.json, None)
            _tell(update)
            if not update.frames and not watched:
                say("no pools are imported")
                if args.until_done:
                    return ExitCode.NOT_FOUND
            watched = True
            for frame in update.frames:
                active = {view.key: view.scan for view in frame.scans if view.scan.active}
                begun.setdefault(frame.pool, {}).update(active)
            if args.until_done and over(update.frames):
                return ending_code(update.frames, begun)
    return ExitCode.OK


def _tell(update: Update) -> None:
    """Alerts go to stderr, a terminal or a log; stdout carries data only."""
    for alert in update.alerts:
        say(f"{alert.pool}: {alert.words}")
    if update.ring and sys.stderr.isatty():
        print(update.ring, end="", file=sys.stderr, flush=True)


def over(frames: Sequence[Frame]) -> bool:
    """Whether no scan runs any more and what follows its end has had time to happen."""
    done = [not frame.problem and frame.outcome.restored is not None for frame in frames]
    return bool(done) and all(done)


def ending_code(
    frames: Sequence[Frame], begun: Mapping[str, Mapping[str, Scan]] = NOTHING
) -> ExitCode:
    """10 if any pool is not restored or its scan had errors, 12 if canceled, else 0.

    ``begun``: scans that were seen to run, by pool. One of which no sample shows the end has none.
    """
    outcomes = [frame.outcome for frame in frames]
    if any(
        not any(is_end(scan, view.scan) for view in frame.scans)
        for frame in frames
        for scan in begun.get(frame.pool, {}).values()
    ):
        return ExitCode.DEGRADED
    if any(not outcome.restored and not outcome.canceled for outcome in outcomes):
        return ExitCode.DEGRADED
    if any(outcome.canceled for outcome in outcomes):
        return ExitCode.CANCELED
    return ExitCode.OK
