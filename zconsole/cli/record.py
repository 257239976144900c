"""``zconsole record FILE``: samples as JSON lines, until interrupted or the scan ends."""

from __future__ import annotations

import argparse
import asyncio
import sys

from zconsole.cli import event_loop, local
from zconsole.cli.watch import over, running
from zconsole.errors import ExitCode
from zconsole.zfs.sources.live import LiveSource
from zconsole.zfs.sources.record import Recorder


def run(args: argparse.Namespace) -> int:
    """Record; returns 0 when the scan ended, the count was reached or it was interrupted."""
    try:
        return event_loop.run(_record(args))
    except KeyboardInterrupt:
        return ExitCode.OK


async def _record(args: argparse.Namespace) -> int:
    interval = args.interval
    source, session = LiveSource(args.pools), local.session()
    loop = asyncio.get_running_loop()
    seen_running, taken = False, 0
    try:
        with Recorder(args.file) as recorder:
            while (raws := await source.sample()) is not None:
                started = loop.time()
                recorder.write(raws)
                frames = session.advance(raws)
                event_loop.complain(session.take_notes())
                taken += 1
                seen_running = seen_running or any(running(frames).values())
                if (seen_running and over(frames)) or taken == args.count:
                    break
                await asyncio.sleep(max(0.0, started + interval - loop.time()))
    except asyncio.CancelledError:
        pass
    finally:
        session.close()
        await source.aclose()
    print(f"{taken} samples in {args.file}", file=sys.stderr)
    return ExitCode.OK
