"""``zconsole tunables hold-latency``: the plan of the autopilot, and starting and stopping it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from zconsole.actions.autopilots import make_way
from zconsole.cli import local
from zconsole.cli.output import say
from zconsole.errors import UsageError, ZconsoleError
from zconsole.system.async_process import ProcessRunner
from zconsole.system.patient import in_time
from zconsole.system.printable import clean
from zconsole.system.state_dir import state_dir
from zconsole.tunables import autopilot
from zconsole.tunables.control import Control, Setting
from zconsole.tunables.hold_latency import LEVERS
from zconsole.tunables.hold_plan import HoldPlan, Order, order, plan
from zconsole.tunables.parameters import Parameters

OFF = "off"


def wanted(words: Sequence[str]) -> Order | None:
    """What to hold; None for ``off``. Raises UsageError for anything else."""
    return None if list(words) == [OFF] else order(words)


def switch(
    asked: Order | None, control: Control, parameters: Parameters, module: Path, yes: bool = False
) -> tuple[Setting, ...]:
    """Start or stop the autopilot; returns the tunables it sets, as they are now.

    ``yes``: go below the defaults without asking. Raises UnavailableError where no pool scans or
    its latencies can't be read, UsageError where tunables set earlier would be in the way,
    ZconsoleError where it doesn't start or is not confirmed.
    """
    place = in_time(partial(state_dir, create=True))
    if asked is None:
        _stop(place, control)
        return _levers(control)
    make_way(control)
    _show(_plan(asked, parameters))
    if asked.below and not yes:
        _confirm()
    asyncio.run(autopilot.start(ProcessRunner(), place, asked.targets, asked.below, module=module))
    say(f"holding latency at {asked.targets}; stop it with: zconsole tunables hold-latency off")
    return _levers(control)


def _stop(place: Path, control: Control) -> None:
    stopped = autopilot.stop(place)
    left = control.settle(time.time()).restored
    if stopped:
        say("the autopilot ended; the original values are restored")
    else:
        say("no autopilot runs" + (": restored what a killed one left" if left else ""))


def _levers(control: Control) -> tuple[Setting, ...]:
    found = map(control.setting, LEVERS)
    return tuple(setting for setting in found if setting.value is not None)


def _plan(asked: Order, parameters: Parameters) -> HoldPlan:
    frames = [f for f in asyncio.run(local.once(())).frames if f.sample]
    left = {f.seen.name: f.scan.left if f.scan else None for f in frames}
    return plan(asked, [f.seen for f in frames], parameters, left)


def _show(made: HoldPlan) -> None:
    for line in made.lines:
        say(clean(line))


def _confirm() -> None:
    if not sys.stdin.isatty():
        raise UsageError("not a terminal, so nobody can confirm: pass --yes")
    say("Go below the defaults without redundancy? [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ZconsoleError("canceled: nothing was changed")
