"""``zconsole demo``: the console on a simulated pool."""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from zconsole.cli import output
from zconsole.cli.options import RECORDED
from zconsole.cli.terminal import has_terminal, open_console
from zconsole.errors import ExitCode, NotFoundError, UsageError
from zconsole.sim import scenarios
from zconsole.sim.source import SimulatedSource, samples
from zconsole.timeline.session import Session
from zconsole.units import counted
from zconsole.zfs.sources.recording import Recorder

if TYPE_CHECKING:
    from zconsole.actions.backend import ActionBackend
    from zconsole.pool.chassis import Lights
    from zconsole.swap.store import SwapBackend


def run(args: argparse.Namespace) -> int:
    """Run the demo; return the exit code."""
    if args.list:
        print("\n".join(scenarios.listed()))
        if sys.stdout.isatty():
            output.say("to run one: zconsole demo NAME")
        return ExitCode.OK
    if args.named is not None and args.scenario is not None:
        raise UsageError("name one scenario, with or without --scenario")
    if args.json and args.record is not None:
        raise UsageError("use --json or --record, not both")
    if args.count is not None and not args.json and args.record is None:
        raise UsageError("--count needs --json or --record")
    if args.scenario is None:
        args.scenario = args.named if args.named is not None else scenarios.DEFAULT
    try:
        scenarios.find(args.scenario)
    except NotFoundError as error:
        raise UsageError(str(error)) from None
    if args.record is not None:
        return _record(args)
    if args.json or not has_terminal():
        return _print(args)
    return _console(args)


def _record(args: argparse.Namespace) -> int:
    """Write simulated samples to a new file, or a pipe."""
    if Path(args.record).is_file():  # simulated times always begin at the same moment
        raise UsageError(f"{args.record} exists, and a demo extends no recording: name a new file")
    count = args.count or RECORDED
    with Recorder(args.record) as recorder:
        for raws in samples(args.scenario, args.seed, args.interval, count):
            recorder.write(raws)
    output.say(f"{counted(count, 'sample')} in {args.record}")
    return ExitCode.OK


def _print(args: argparse.Namespace) -> int:
    """Print samples as JSON with --json, otherwise one report of the simulated pool."""
    session = Session(flags=("DEMO",))
    for raws in samples(args.scenario, args.seed, args.interval, args.count if args.json else 1):
        if args.json:
            output.show(session.advance(raws), True, None)
        else:
            output.report(session.advance(raws), False)
            output.say("not a terminal: one report (--json streams)")
    return ExitCode.OK


def _console(args: argparse.Namespace) -> int:
    # lazy: --json needs no event loop
    from zconsole.sim.places import lights
    from zconsole.sim.probes import details_of, probe_results_of
    from zconsole.timeline.devices import DeviceProber
    from zconsole.timeline.feed import SessionFeed

    source = SimulatedSource(
        args.scenario, args.seed, args.speed, start=time.time(), clock=time.monotonic
    )
    session = Session(flags=("DEMO",), goes_on=True)
    probes = DeviceProber(partial(probe_results_of, source.world))
    details = partial(details_of, source.world)

    async def _lights() -> Lights:
        return lights(source.world.pools, source.world.lit)

    def _backend() -> ActionBackend:
        from zconsole.sim.backends.actions import simulated_backend  # lazy: as in cli.console

        return simulated_backend(source.world)

    def _swap() -> SwapBackend:
        from zconsole.sim.backends.swap import simulated_swap  # lazy: as in cli.console

        return simulated_swap(source.world)

    feed = SessionFeed(
        source, session, args.interval, details, probes, _lights, source.zpool_outputs
    )
    feed.faster = source.faster
    return open_console(
        args, feed, None, host="demo", make_backend=_backend, swap=_swap, saves=False
    )
