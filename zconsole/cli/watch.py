"""``zconsole watch``: prints a line or JSON object per pool and sample; reports how scans ended."""

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
from zconsole.cli.local import ScrubHours
from zconsole.cli.output import NO_POOLS, say
from zconsole.errors import ExitCode
from zconsole.pool.model import NOTHING, Scan
from zconsole.pool.scan_outcome import is_end
from zconsole.system.patient import Worker
from zconsole.timeline.feed import Update
from zconsole.timeline.frame import Frame

READ_WITHIN = 1.0
"""Seconds that a round waits until it is printed, if all earlier ones are."""
MOST_UNREAD = 100
"""Rounds kept for a reader that is stuck; later ones are not printed."""
LINGER = 60.0
"""Seconds that the printing thread waits for the next round before it ends."""


def run(args: argparse.Namespace) -> int:
    """Follow the pools; return the exit code."""

    async def _follow() -> int:
        with remote.opened(args, needed=True, alerts=True) as feed:
            if args.host is None:
                feed.contributor = ScrubHours()
            return await _rounds(args, event_loop.rounds(feed, args.count))

    return event_loop.run(_follow())


async def _rounds(args: argparse.Namespace, rounds: AsyncGenerator[Update, None]) -> int:
    """Print each round and its alerts, until the feed ends or, with --until-done, the scans do."""
    watched = False
    seen_running: dict[str, dict[str, Scan]] = {}
    async with (
        _Printer(_print_alerts) as alerts,
        _Printer(lambda update: output.show(update.frames, args.json, None)) as samples,
        contextlib.aclosing(rounds) as following,
    ):
        async for update in following:
            if update.alerts:
                await alerts.show(update)
            await samples.show(update)
            if not update.frames and not watched:
                say(NO_POOLS)
                if args.until_done:
                    return ExitCode.NOT_FOUND
            watched = True
            for frame in update.frames:
                active = {view.key: view.scan for view in frame.scans if view.scan.active}
                seen_running.setdefault(frame.pool, {}).update(active)
            if args.until_done and scans_ended(update.frames):
                return ending_code(update.frames, seen_running)
    if args.until_done:
        say("--count is reached before every scan was seen to end")
        return ExitCode.FAILED
    return ExitCode.OK


class _Printer:
    """Prints rounds in order in a thread, so that a watch goes on while its output is stuck.

    Everything is printed when its ``async with`` block ends, unless interrupted.
    """

    def __init__(self, show: Callable[[Update], None]) -> None:
        self._show = show
        self._worker = Worker("output", LINGER)
        self._unread: deque[asyncio.Future[None]] = deque()
        """Rounds that may not be printed yet, oldest first."""

    async def show(self, update: Update) -> None:
        """Print a round soon. Raises what printing raised, for this round or an earlier one."""
        self._forget_printed()
        if len(self._unread) >= MOST_UNREAD:
            return
        attempt = self._worker.ask(partial(self._show, update))
        self._unread.append(asyncio.wrap_future(attempt))
        if len(self._unread) == 1:
            await asyncio.wait(self._unread, timeout=READ_WITHIN)
            self._forget_printed()

    def _forget_printed(self) -> None:
        """Drop the rounds that are printed. Raises what printing one of them raised."""
        while self._unread and self._unread[0].done():
            self._unread.popleft().result()

    async def __aenter__(self) -> _Printer:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            while self._unread and kind is None:
                await asyncio.wait((self._unread[0],))
                self._forget_printed()
        finally:
            if self._unread:
                # A daemon thread hangs in one of the streams and holds its lock. At exit Python
                # flushes them and would wait for the lock, then abort: so it gets others.
                sys.stdout = sys.stderr = io.StringIO()


def _print_alerts(update: Update) -> None:
    """Print alerts on stderr, as stdout is for data only; if it is a terminal, also ring there."""
    for alert in update.alerts:
        say(f"{alert.pool}: {alert.words}")
    if update.ring and sys.stderr.isatty():
        print(update.ring, end="", file=sys.stderr, flush=True)


def scans_ended(frames: Sequence[Frame]) -> bool:
    """Return whether every scan has ended, and ZFS has had time to detach replaced disks.

    A pool that was exported or destroyed during a scan is waited for: it may be imported again.
    """
    done = [
        not any(view.scan.active for view in frame.scans)
        if frame.absent
        else not frame.problem and frame.outcome.restored is not None
        for frame in frames
    ]
    return bool(done) and all(done)


def ending_code(
    frames: Sequence[Frame], seen_running: Mapping[str, Mapping[str, Scan]] = NOTHING
) -> ExitCode:
    """Return 10 if any pool is not restored or its scan had errors, 12 if canceled, else 0.

    ``seen_running`` are the scans that were seen running, by pool; also 10 if no sample shows how
    one of them ended. A pool that was exported or destroyed is judged only if it is one of theirs.
    """
    judged = (frame for frame in frames if not frame.absent or seen_running.get(frame.pool))
    outcomes = [frame.outcome for frame in judged]
    if any(
        not any(is_end(scan, view.scan) for view in frame.scans)
        for frame in frames
        for scan in seen_running.get(frame.pool, {}).values()
    ):
        return ExitCode.DEGRADED
    if any(not outcome.restored and not outcome.canceled for outcome in outcomes):
        return ExitCode.DEGRADED
    if any(outcome.canceled for outcome in outcomes):
        return ExitCode.CANCELED
    return ExitCode.OK
