"""``zconsole record FILE``: samples as JSON lines, until interrupted or the scan ends."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import Sequence

from zconsole.cli import event_loop, local
from zconsole.cli.output import say
from zconsole.cli.watch import over
from zconsole.errors import ExitCode
from zconsole.monitor.session_feed import SessionFeed
from zconsole.units import counted
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.live import LiveSource
from zconsole.zfs.sources.record import Recorder


class RecordedSource(LiveSource):
    """The pools of this machine, each raw form recorded as it comes."""

    def __init__(self, pools: Sequence[str], recorder: Recorder) -> None:
        super().__init__(pools)
        self._recorder = recorder
        self.recorded = 0
        """Samples with at least one pool that answered; others leave no line."""

    async def sample(self) -> tuple[Raw, ...]:
        """See Source.sample. Raises ZconsoleError when the disk refuses."""
        raws = await super().sample()
        self.recorded += self._recorder.write(raws) > 0
        return raws


def run(args: argparse.Namespace) -> int:
    """Record; returns 0 when the scan ended, the count was reached or it was interrupted."""
    try:
        return event_loop.run(_record(args))
    except KeyboardInterrupt:
        return ExitCode.OK


async def _record(args: argparse.Namespace) -> int:
    seen_running = False
    with contextlib.suppress(asyncio.CancelledError), Recorder(args.file) as recorder:
        source = RecordedSource(args.pools, recorder)
        feed = SessionFeed(source, local.session(), args.interval)
        async with contextlib.aclosing(event_loop.rounds(feed, args.count)) as following:
            async for update in following:
                running = (view.scan.active for frame in update.frames for view in frame.scans)
                seen_running = seen_running or any(running)
                if seen_running and over(update.frames):
                    break
    say(f"{counted(source.recorded, 'sample')} in {args.file}")
    return ExitCode.OK
