"""``zconsole status``: prints the health of live pools, or of pools in saved output, once."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

from zconsole.cli import output
from zconsole.cli.config import scrub_overdue_after
from zconsole.cli.output import say
from zconsole.errors import ExitCode, NotFoundError, UnavailableError, UsageError, ZconsoleError
from zconsole.pool.scan_outcome import WELL
from zconsole.system.printable import for_who_reads
from zconsole.timeline.frame import Frame
from zconsole.timeline.session import Session
from zconsole.units import duration
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.base import NO_READER
from zconsole.zfs.sources.recording import Gaps
from zconsole.zfs.sources.saved import read_states

NONE = "no pools are imported"
NO_POOLS = "no pools available"
"""Zpool's own words for that."""
FAULTED = frozenset({"FAULTED", "SUSPENDED", "UNAVAIL"})
LONG_BEFORE = 60.0
"""Seconds before the end of a recording from which a pool's last sample counts as old."""

Sentence = tuple[str, str | None]
"""A sentence that zpool prints instead of a pool, and the name of the pool if it is about one."""


class Found(NamedTuple):
    """The pools found, and what else was said."""

    frames: tuple[Frame, ...]
    failures: tuple[ZconsoleError, ...] = ()
    """Errors of machines that failed."""
    healthy: bool = False
    """Whether zpool said that pools are healthy, without showing them (``zpool status -x``)."""


def run(args: argparse.Namespace) -> int:
    """Print the report; return the exit code."""
    if args.saved and args.host is not None:
        raise UsageError("use --from (a file) or --host (other machines), not both")
    if args.saved:
        frames, failures, healthy = _saved(args)
    else:
        from zconsole.cli import event_loop  # lazy: saved output needs nothing that samples

        frames, failures, healthy = event_loop.run(_sampled(args))
    lacking = [str(failure) for failure in failures]
    for text in lacking or ([] if frames or args.saved else [NONE]):
        say(text)
    with for_who_reads():
        output.report(frames, args.json)
    code = ExitCode.OK
    if args.exit_status:
        code = exit_status(frames) if frames or failures or healthy else ExitCode.NOT_FOUND
    return code or next((failure.code for failure in failures), ExitCode.OK)


def exit_status(frames: Sequence[Frame]) -> ExitCode:
    """Return the code of the worst pool: 11 faulted or suspended, 10 degraded or with data errors.

    5 if no pool is worse than one of unknown health, 0 if all are well.
    """
    worst = ExitCode.OK
    for frame in frames:
        # The kstat has the pool's state even while the pool hangs and gives no sample.
        words = (frame.state, frame.kstat if frame.problem else None, frame.health.word)
        if FAULTED.intersection(words):
            return ExitCode.FAULTED
        if frame.health.word == "UNKNOWN" and not frame.problem:
            worst = worst or ExitCode.NOT_UNDERSTOOD
        elif frame.problem or frame.seen.error_count or frame.health.word not in WELL:
            worst = ExitCode.DEGRADED
    return worst


def _saved(args: argparse.Namespace) -> Found:
    zone = output.local_zone()
    gaps = Gaps()
    raws = read_states(args.saved, zone, gaps)
    session = Session(zone=zone, gaps=gaps, scrub_overdue_after=None)
    # Frames with a problem are gaps in a recording: the frame before the gap is shown.
    shown = tuple(frame for frame in session.advance(raws) if not frame.problem)
    session.end()
    said = [each for each in _in_place(raws[-1]) if each[1] not in {frame.pool for frame in shown}]
    _check_names(args.pools, shown, said)
    frames = tuple(frame for frame in shown if not args.pools or frame.pool in args.pools)
    for frame in frames:
        if (before := raws[-1]["t"] - frame.t) > LONG_BEFORE:
            say(f"{frame.pool}: last recorded {duration(before)} before the end")
    for text, name in said:
        if name in args.pools if args.pools else name or not shown:
            say(text)
    if not shown and not said:
        say(NONE)
    output.say_gaps(gaps)
    return Found(frames, healthy=any(text != NO_POOLS for text, _ in said))


def _in_place(raw: Raw) -> Sequence[Sentence]:
    """Return the sentences that zpool printed instead of pools, such as that all are healthy."""
    if "text" not in raw:
        return ()
    from zconsole.zfs.decode.text import in_place  # lazy: JSON needs none of it

    return in_place(raw["text"])


def _check_names(names: Sequence[str], shown: Sequence[Frame], said: Sequence[Sentence]) -> None:
    """Raise NotFoundError for a name that is neither shown nor reported healthy."""
    known = {frame.pool for frame in shown} | {name for _, name in said}
    why = next((f": {text}" for text, name in said if name is None and not shown), "")
    for name in names:
        if name not in known:
            raise NotFoundError(f"no pool {name!r} in that output{why}")


async def _sampled(args: argparse.Namespace) -> Found:
    overdue_after = scrub_overdue_after(args)
    if args.host is not None:
        from zconsole.cli import remote

        return Found(*await remote.once(args.host, args.pools, overdue_after))
    from zconsole.cli import local

    update = await local.once(args.pools, overdue_after)
    if not update.frames or update.capabilities.name != NO_READER:
        return Found(update.frames)
    why = update.capabilities.reason
    return Found(update.frames, (UnavailableError(f"cannot read pools: {why}"),))
