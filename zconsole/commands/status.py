"""``zconsole status``: a one-shot health report of live pools or of saved output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from zconsole.commands import printing
from zconsole.errors import ExitCode, NotFoundError, UsageError, ZconsoleError
from zconsole.frame import Frame
from zconsole.raw import Raw
from zconsole.session import Session
from zconsole.sources.saved import read_saved
from zconsole.stdout import for_who_reads
from zconsole.units import clean

NONE = "no pools are imported"
FAULTED = frozenset({"FAULTED", "SUSPENDED", "UNAVAIL"})
FINE = frozenset({"OK", "UNKNOWN"})

Found = tuple[tuple[Frame, ...], tuple[ZconsoleError, ...]]
"""The pools, and what of other machines is not to be had."""


def run(args: argparse.Namespace) -> int:
    """Print the report; returns the exit code."""
    if args.saved and args.host is not None:
        raise UsageError("--from reads a file, --host another machine: not both")
    frames, failures = (_saved(args), ()) if args.saved else _live(args)
    lacking = [str(failure) for failure in failures]
    for text in lacking or ([] if frames or args.saved else [NONE]):
        print(f"zconsole: {clean(text)}", file=sys.stderr)
    with for_who_reads():
        printing.report(frames, args.json)
    code = exit_status(frames) if args.exit_status else ExitCode.OK
    return code or next((failure.code for failure in failures), ExitCode.OK)


def exit_status(frames: Sequence[Frame]) -> ExitCode:
    """The worst of all pools: 11 faulted or suspended, 10 degraded or with data errors."""
    worst = ExitCode.OK
    for frame in frames:
        words = (frame.state, frame.kstat if frame.problem else None, frame.health.word)
        if FAULTED.intersection(words):
            return ExitCode.FAULTED
        if frame.problem or frame.error_count or frame.health.word not in FINE:
            worst = ExitCode.DEGRADED
    return worst


def _saved(args: argparse.Namespace) -> tuple[Frame, ...]:
    zone = printing.local_zone()
    raw = read_saved(args.saved, zone)
    frames = _chosen(Session(zone=zone).advance([raw]), args.pools)
    if not frames:
        print(f"zconsole: {clean(_in_place(raw))}", file=sys.stderr)
    return frames


def _in_place(raw: Raw) -> str:
    """What is to be said of saved output without a pool: what zpool said."""
    from zconsole.decode.text import no_pools  # only here: JSON needs none of it

    return no_pools(raw.get("text", "")) or NONE


def _chosen(frames: tuple[Frame, ...], names: Sequence[str]) -> tuple[Frame, ...]:
    if not names:
        return frames
    known = {frame.pool for frame in frames}
    for name in names:
        if name not in known:
            raise NotFoundError(f"no pool {name!r} in that output")
    return tuple(frame for frame in frames if frame.pool in names)


def _live(args: argparse.Namespace) -> Found:
    # Only here: saved output is read without what it takes to sample a machine.
    from zconsole.commands import common

    return common.run(_sampled(args))


async def _sampled(args: argparse.Namespace) -> Found:
    if args.host is not None:
        from zconsole.commands import remote

        return await remote.once(args.host, args.pools)
    from zconsole.commands import live
    from zconsole.sources.live import LiveSource

    source = LiveSource(args.pools)
    try:
        return live.session(keep=False).advance(await source.sample() or ()), ()
    finally:
        await source.aclose()
