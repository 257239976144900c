"""``zconsole watch``: one line or JSON object per pool and sample, and how a scan ended."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial

from zconsole.cli import event_loop, output, remote
from zconsole.cli.output import say
from zconsole.errors import ExitCode
from zconsole.pool.model import NOTHING, Scan
from zconsole.pool.scan_outcome import is_end
from zconsole.system.patient import Worker
from zconsole.timeline.feed import Update
from zconsole.timeline.frame import Frame

READ_WITHIN = 1.0
"""Seconds a round waits for who reads the output, if all before it was read."""
MOST_UNREAD = 100
"""Rounds that are kept for who reads them; later ones are not printed."""
LINGER = 60.0
"""Seconds that the printing thread waits for the next round."""


def run(args: argparse.Namespace) -> int:
    """Follow the pools; returns the exit code."""

    async def _follow() -> int:
        with remote.opened(args, needed=True, alerts=True) as feed:
            return await _rounds(args, event_loop.rounds(feed, args.count))

    return event_loop.run(_follow())


async def _rounds(args: argparse.Namespace, rounds: AsyncGenerator[Update, None]) -> int:
    """Show each round and its alerts, until it is time to stop."""
    watched = False
    begun: dict[str, dict[str, Scan]] = {}
    async with (
        _printer(_tell) as alerts,
        _printer(lambda update: output.show(update.frames, args.json, None)) as samples,
        contextlib.aclosing(rounds) as following,
    ):
        async for update in following:
            if update.alerts:
                await alerts.show(update)
            await samples.show(update)
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


class _Printer:
    """Prints rounds in a thread, in order: a watch goes on while its output is stuck."""

    def __init__(self, show: Callable[[Update], None]) -> None:
        self._show = show
        self._worker = Worker("output", LINGER)
        self.unread: deque[asyncio.Future[None]] = deque()
        """Rounds that may still be printing, oldest first."""

    async def show(self, update: Update) -> None:
        """Print a round soon. Raises what printing raises, also of an earlier one."""
        self.forget_printed()
        if len(self.unread) >= MOST_UNREAD:
            return
        attempt = self._worker.ask(partial(self._show, update))
        self.unread.append(asyncio.wrap_future(attempt))
        if len(self.unread) == 1:
            await asyncio.wait(self.unread, timeout=READ_WITHIN)
            self.forget_printed()

    def forget_printed(self) -> None:
        """Raises what printing raised."""
        while self.unread and self.unread[0].done():
            self.unread.popleft().result()


@contextlib.asynccontextmanager
async def _printer(show: Callable[[Update], None]) -> AsyncGenerator[_Printer, None]:
    """One that has printed everything in the end, unless it was interrupted."""
    printer = _Printer(show)
    try:
        yield printer
        while printer.unread:
            await asyncio.wait((printer.unread[0],))
            printer.forget_printed()
    finally:
        if printer.unread:
            # Both streams are left to the thread that hangs in one: Python would wait, and abort.
            sys.stdout = sys.stderr = io.StringIO()


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
