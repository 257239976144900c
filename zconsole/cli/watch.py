"""``zconsole watch``: a line, or a JSON object, a pool and sample; and when a scan is over."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence

from zconsole.cli import event_loop, output, remote
from zconsole.cli.alert_options import wake_of
from zconsole.errors import ExitCode
from zconsole.monitor.alerts.dispatcher import AlertDispatcher
from zconsole.monitor.frame import Frame
from zconsole.units import clean


def run(args: argparse.Namespace) -> int:
    """Follow the pools; returns the exit code."""
    return event_loop.run(_follow(args))


async def _follow(args: argparse.Namespace) -> int:
    wake = wake_of(args, _say)
    try:
        return await _rounds(args, remote.sampled(args, needed=True), wake)
    finally:
        if wake is not None:
            await wake.aclose()


async def _rounds(
    args: argparse.Namespace,
    rounds: AsyncGenerator[list[Frame], None],
    wake: AlertDispatcher | None,
) -> int:
    """Show each round and wake whoever asked for it, until it is time to stop."""
    taken = 0
    async with contextlib.aclosing(rounds) as following:
        async for frames in following:
            output.show(frames, args.json, None)
            if wake is not None:
                _tell(wake, frames)
            if not frames and not taken:
                _say("no pools are imported")
            taken += 1
            if args.until_done and over(frames):
                return ending_code(frames)
            if args.count is not None and taken >= args.count:
                break
    return ExitCode.OK


def _tell(wake: AlertDispatcher, frames: Sequence[Frame]) -> None:
    """Alerts go to stderr, which is the terminal or somebody's log; stdout carries data only."""
    for alert in wake.look(frames):
        _say(f"{alert.pool}: {alert.text}")
        if sys.stderr.isatty():
            print(wake.ways.terminal(alert), end="", file=sys.stderr, flush=True)


def _say(text: str) -> None:
    print(f"zconsole: {clean(text)}", file=sys.stderr, flush=True)


def over(frames: Sequence[Frame]) -> bool:
    """Whether nothing runs any more and what follows an end has had time to happen."""
    return all(not frame.problem and frame.outcome.restored is not None for frame in frames)


def ending_code(frames: Sequence[Frame]) -> ExitCode:
    """10 if any pool is not restored or its scan had errors, 12 if canceled, else 0."""
    outcomes = [frame.outcome for frame in frames]
    if any(not outcome.restored and not outcome.canceled for outcome in outcomes):
        return ExitCode.DEGRADED
    if any(outcome.canceled for outcome in outcomes):
        return ExitCode.CANCELED
    return ExitCode.OK


def running(frames: Sequence[Frame]) -> Mapping[str, bool]:
    """Which pools have a scan running or paused."""
    return {f.pool: any(view.scan.active for view in f.scans) for f in frames}
