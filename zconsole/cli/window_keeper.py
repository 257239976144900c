"""The process that keeps scrubs to their hours: pauses and resumes them until each has ended.

One for all pools of the machine, in a session of its own: it outlives whoever set the hours. It
holds a lock while it runs. Run as ``python -m zconsole.cli.window_keeper``.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from zconsole.actions.backend import ActionBackend, live_backend
from zconsole.actions.plan import Facts
from zconsole.actions.refresh import FreshFrame, Refresher, situation_of
from zconsole.actions.scrub_window import LOOK, due
from zconsole.actions.window_records import KEEPER, MachineWindows
from zconsole.cli import local
from zconsole.cli.swap import RoundsOnDemand
from zconsole.errors import ZconsoleError
from zconsole.pool.scrub_window import ScrubWindow
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.state_dir import try_lock
from zconsole.timeline.feed import SessionFeed
from zconsole.timeline.frame import Frame
from zconsole.zfs.sources.live import LiveSource

Frames = Callable[[], Awaitable[Sequence[Frame]]]
"""The newest frame of every pool."""
Said = Callable[[str], object]
"""Takes a line for the log of the process."""


def main(argv: Sequence[str] | None = None) -> int:
    """Keep the windows until none is left; returns the exit code."""
    parser = argparse.ArgumentParser(prog="zconsole.cli.window_keeper", allow_abbrev=False)
    parser.add_argument("--state", type=Path, required=True)
    args = parser.parse_args(argv)
    lock = try_lock(args.state / KEEPER)
    if lock is None:  # another one does it
        return 0
    asyncio.run(_keep_here(MachineWindows(args.state), lock))
    return 0


async def _keep_here(records: MachineWindows, lock: int) -> None:
    feed = SessionFeed(LiveSource(()), local.session(keep=False), 0.0)
    rounds = RoundsOnDemand(feed)
    keeper = WindowKeeper(records, live_backend(read_only=False), rounds.frames, rounds.fresh)
    try:
        while not records.idle(lock):
            await keeper.look()
            await asyncio.sleep(LOOK)
    finally:
        await feed.aclose()


class WindowKeeper:
    """Does what is due about each window, by plans as the console runs them."""

    def __init__(
        self,
        records: MachineWindows,
        backend: ActionBackend,
        frames: Frames,
        fresh: FreshFrame,
        said: Said = lambda text: print(text, flush=True),
    ) -> None:
        """``fresh`` samples a pool anew, for the executor."""
        self._records = records
        self._backend = backend
        self._frames = frames
        self._fresh = fresh
        self._said = said

    async def look(self) -> None:
        """Look at every window once; what fails is tried again at the next look."""
        try:
            windows = await in_daemon_thread(self._records.windows)
            frames = await self._frames()
        except (OSError, ZconsoleError) as error:
            self._said(str(error))
            return
        for window in windows:
            frame = next((f for f in frames if f.guid == window.guid), None)
            if frame is None or frame.problem:
                continue  # exported, or it does not answer: what is kept of it stays
            try:
                await self._one(window, frame)
            except (OSError, ZconsoleError) as error:
                self._said(f"{window.pool}: {error}")

    async def _one(self, window: ScrubWindow, frame: Frame) -> None:
        bare = situation_of(frame, Facts())
        s = situation_of(frame, await self._backend.ask(bare.pool, bare.suspended))
        found = due(window, s, datetime.fromtimestamp(self._backend.clock(), UTC).astimezone())
        after = None if found.over else replace(found.window, pool=s.pool.name)
        if after != window and not await in_daemon_thread(self._records.replaced, window, after):
            return  # somebody changed it: look again
        if found.over:
            self._said(f"{window.pool}: the scrub has ended")
        if found.plan is None or found.plan.refused is not None:
            return
        executor = self._backend.executor(Refresher(self._fresh, self._backend.ask))
        async for event in executor.run(found.plan):
            self._said(f"{window.pool}: {event.kind} {event.text}")


if __name__ == "__main__":
    sys.exit(main())
