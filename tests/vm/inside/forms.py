"""Run inside the guest: one sample of a pool through each source, in parallel, as JSON.

``python -m tests.vm.inside.forms POOL [SECONDS]`` prints a line per source: its name, and either
the sample as in ``zconsole status --json`` and the raw form it was read from, or why the source
cannot be used on this release. With SECONDS it is the second sample, that much after the first.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from typing import Any

from zconsole.output.json import sample_object
from zconsole.timeline.session import Session
from zconsole.zfs.raw import plain
from zconsole.zfs.sources.live import LiveSource, this_system
from zconsole.zfs.sources.occasional import OccasionalCommand

SOURCES = ("libzfs", "json", "text")
DEADLINE = 60.0
"""Deadline in seconds for one read: emulation is slow, and all sources read at once."""


async def sampled(name: str, pool: str, seconds: float) -> dict[str, Any]:
    """Return the pool as one source sees it, at once or in a second sample after some seconds."""
    source = LiveSource([pool], prefer=name, system=replace(this_system(), deadline=DEADLINE))
    session = Session()
    try:
        raws = await source.sample()
        if seconds:
            session.advance(raws)
            await asyncio.sleep(seconds)
            raws = await source.sample()
        capabilities = source.capabilities
    finally:
        await source.aclose()
    if capabilities.name != name:
        return {"source": name, "unusable": capabilities.reason}
    (frame,) = session.advance(raws)
    return {"source": name, "sample": sample_object(frame), "raw": raws[0]}


async def main(pool: str, seconds: float = 0.0) -> None:
    """Sample through every source at the same time; a single sample waits until it is complete."""
    for command in OccasionalCommand.__subclasses__() if not seconds else ():
        command.patience = DEADLINE
    for found in await asyncio.gather(*(sampled(name, pool, seconds) for name in SOURCES)):
        print(json.dumps(found, default=plain))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(float, sys.argv[2:])))
