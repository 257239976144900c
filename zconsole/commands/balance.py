"""``zconsole balance``: how evenly data is spread over the top-level vdevs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from zconsole.balance import balance
from zconsole.commands import common
from zconsole.errors import ExitCode, NotFoundError, UnavailableError
from zconsole.frame import Balance
from zconsole.report import json, text

Named = tuple[str, Balance]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("pool", nargs="?", metavar="POOL", help="one pool (default: all)")
    parser.add_argument(
        "--from", dest="saved", metavar="FILE|-", help="read saved zpool list -v output instead"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a pool and line")


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
    from zconsole.decode.capacity import parse_capacity
    from zconsole.sources.saved import read_text

    pools = parse_capacity(read_text(args.saved))
    found = [(pool.name, balance(pool.root)) for pool in pools]
    chosen = [entry for entry in found if args.pool in (None, entry[0])]
    if not chosen and args.pool is not None:
        raise NotFoundError(f"no pool {args.pool!r} in that output")
    return chosen


async def _live(args: argparse.Namespace) -> Sequence[Named]:
    from zconsole.sources.live import LiveSource

    source = LiveSource([args.pool] if args.pool else [])
    try:
        frames = common.live_session().advance(await source.sample() or ())
    finally:
        await source.aclose()
    for frame in frames:
        if frame.problem:
            raise UnavailableError(f"{frame.pool}: {frame.problem}")
    return [(frame.pool, frame.balance) for frame in frames]
