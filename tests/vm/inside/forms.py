"""Run inside the guest: one sample of a pool through each source, side by side, as JSON.

``python -m tests.vm.inside.forms POOL`` prints a line a source: its name, and either the sample
as ``zconsole status --json`` has it and the raw form it was read from, or why the source cannot be
used on this release.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from typing import Any

from zconsole.report.json import sample_object
from zconsole.session import Session
from zconsole.sources.live import LiveSource, this_system

SOURCES = ("libzfs", "json", "text")
DEADLINE = 60.0
"""Seconds for one read: an emulated processor is slow, and all sources want it at once."""


async def sampled(name: str, pool: str) -> dict[str, Any]:
    """The pool as one source sees it."""
    source = LiveSource([pool], prefer=name, system=replace(this_system(), deadline=DEADLINE))
    try:
        raws = await source.sample()
        capabilities = source.capabilities
    finally:
        await source.aclose()
    if capabilities.name != name:
        return {"source": name, "unusable": capabilities.reason}
    (frame,) = Session().advance(raws)
    return {"source": name, "sample": sample_object(frame), "raw": raws[0]}


async def main(pool: str) -> None:
    """Every source at the same time."""
    for found in await asyncio.gather(*(sampled(name, pool) for name in SOURCES)):
        print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
