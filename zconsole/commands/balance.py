"""``zconsole balance``: how evenly data is spread over the top-level vdevs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from zconsole.balance import balance
from zconsole.commands import common
from zconsole.decode.capacity import CapacityRow, PoolCapacity, capacities
from zconsole.errors import ExitCode, NotFoundError, UnavailableError
from zconsole.frame import Balance
from zconsole.model import Vdev
from zconsole.report import json, text
from zconsole.sources.live import LiveSource
from zconsole.sources.saved import read_text

Named = tuple[str, Balance]


def run(args: argparse.Namespace) -> int:
    """Print the balance of each pool; returns the exit code."""
    found = _saved(args) if args.saved else common.run(_live(args))
    if not found:
        print("zconsole: no pools are imported", file=sys.stderr)
    for name, entry in found:
        if args.json:
            print(json.line({"version": 1, "pool": name, **json.balance_object(entry)}))
        else:
            print(text.balance_report(name, entry), end="")
    return ExitCode.OK


def _saved(args: argparse.Namespace) -> Sequence[Named]:
    pools = capacities(read_text(args.saved))
    found = [(found.pool.name, balance(_tree(found))) for found in pools]
    chosen = [entry for entry in found if args.pool in (None, entry[0])]
    if not chosen and args.pool is not None:
        raise NotFoundError(f"no pool {args.pool!r} in that output")
    return chosen


def _tree(found: PoolCapacity) -> Vdev:
    """The listing's top-level vdevs under a root."""
    return Vdev(found.pool.name, "root", children=tuple(_vdev(row) for row in found.vdevs))


def _vdev(row: CapacityRow) -> Vdev:
    """A single device's printed size is the device's own, so alloc and free together are used."""
    size = row.space_bytes if row.kind in ("disk", "file") else row.size_bytes
    return Vdev(
        row.name,
        row.kind,
        row.vclass,
        size_bytes=size,
        alloc_bytes=row.alloc_bytes,
        free_bytes=row.free_bytes,
        fragmentation=row.fragmentation,
    )


async def _live(args: argparse.Namespace) -> Sequence[Named]:
    source = LiveSource([args.pool] if args.pool else [])
    try:
        frames = common.live_session(keep=False).advance(await source.sample() or ())
    finally:
        await source.aclose()
    for frame in frames:
        if frame.problem:
            raise UnavailableError(f"{frame.pool}: {frame.problem}")
    return [(frame.pool, frame.balance) for frame in frames]
