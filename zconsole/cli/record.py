"""``zconsole record FILE``: writes samples as JSON lines, until interrupted or the scan ends."""

from __future__ import annotations

import argparse
import asyncio
import contextlib

from zconsole.cli import event_loop, local
from zconsole.cli.output import say
from zconsole.cli.watch import scans_ended
from zconsole.errors import ExitCode
from zconsole.timeline.feed import SessionFeed
from zconsole.units import counted
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.base import Capabilities, Source
from zconsole.zfs.sources.recording import Recorder


class RecordedSource:
    """A source that records each raw form that another source gives."""

    def __init__(self, source: Source, recorder: Recorder) -> None:
        self._source = source
        self._recorder = recorder
        self.recorded = 0
        """Number of samples recorded: those in which at least one pool answered."""

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the recorded source."""
        return self._source.capabilities

    async def sample(self) -> tuple[Raw, ...] | None:
        """Take a sample and write it. Raises ZconsoleError if it can't be written."""
        raws = await self._source.sample()
        self.recorded += self._recorder.write(raws or ()) > 0
        return raws

    async def aclose(self) -> None:
        """Close the recorded source; the recorder stays open."""
        await self._source.aclose()


def run(args: argparse.Namespace) -> int:
    """Record; return 0 when the scan ended, the count was reached or it was interrupted."""
    try:
        return event_loop.run(_record(args))
    except KeyboardInterrupt:
        return ExitCode.OK


async def _record(args: argparse.Namespace) -> int:
    seen_running = False
    with contextlib.suppress(asyncio.CancelledError), Recorder(args.file) as recorder:
        source = RecordedSource(local.source(args.pools), recorder)
        feed = SessionFeed(source, local.session(), args.interval)
        async with contextlib.aclosing(event_loop.rounds(feed, args.count)) as following:
            async for update in following:
                # A recording may be started before its scan: it goes on until one has run.
                running = (view.scan.active for frame in update.frames for view in frame.scans)
                seen_running = seen_running or any(running)
                if seen_running and scans_ended(update.frames):
                    break
    say(f"{counted(source.recorded, 'sample')} in {args.file}")
    return ExitCode.OK
