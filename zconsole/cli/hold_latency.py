"""``zconsole tunables hold-latency``: the plan of the autopilot, and starting and stopping it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from zconsole.cli import local
from zconsole.cli.output import say
from zconsole.errors import UnavailableError, UsageError
from zconsole.pool.model import Pool
from zconsole.system.async_process import ProcessRunner
from zconsole.system.patient import in_time
from zconsole.system.printable import clean
from zconsole.system.state_dir import state_dir
from zconsole.tunables import autopilot
from zconsole.tunables.control import Control, Setting
from zconsole.tunables.hold_latency import FASTEST, GENTLEST, LEVERS, STEERS_BY, values
from zconsole.units import latency

OFF = "off"
LEAST, MOST = 0.0005, 10.0
"""Seconds that may be held."""


def wanted(words: Sequence[str]) -> float | None:
    """The latency in seconds; None for ``off``. Raises UsageError for anything else."""
    try:
        (word,) = words
        target = None if word == OFF else float(word)
    except ValueError:
        raise UsageError(f"hold-latency needs SECONDS, such as 0.02, or {OFF}") from None
    if target is not None and not LEAST <= target <= MOST:
        raise UsageError(f"{word} is out of range: {LEAST:g} to {MOST:g} seconds")
    return target


def switch(target: float | None, control: Control, module: Path) -> tuple[Setting, ...]:
    """Start or stop the autopilot; returns the tunables it sets, as they are now.

    Raises UnavailableError where no pool scans or its latencies can't be read, UsageError where
    tunables set earlier would be in the way.
    """
    place = in_time(partial(state_dir, create=True))
    if target is None:
        stopped = autopilot.stop(place)
        say("the autopilot ended; the originals are restored" if stopped else "no autopilot runs")
        return _levers(control)
    if ours := [each.tunable.name for each in _levers(control) if each.ours]:
        raise UsageError(f"restore {ours[0]} first: zconsole tunables restore {' '.join(ours)}")
    pools = _scanning()
    for line in plan(target, pools, _levers(control)):
        say(clean(line))
    asyncio.run(autopilot.start(ProcessRunner(), place, target, module))
    say("holding; stop and restore with: zconsole tunables hold-latency off")
    return _levers(control)


def _levers(control: Control) -> tuple[Setting, ...]:
    found = map(control.setting, LEVERS)
    return tuple(setting for setting in found if setting.value is not None)


def _scanning() -> tuple[Pool, ...]:
    update = asyncio.run(local.once(()))
    pools = autopilot.scanning(f.sample.pool for f in update.frames if f.sample)
    if not pools:
        raise UnavailableError("no pool has a resilver, scrub or rebuild: nothing to steer")
    for pool in pools:
        if "sync_r" not in autopilot.histograms(pool):
            raise UnavailableError(f"{pool.name}: no latency histograms; they need libzfs")
    return pools


def plan(target: float, pools: Sequence[Pool], levers: Sequence[Setting]) -> list[str]:
    """What the autopilot would do, in lines."""
    risky = [pool.name for pool in pools if autopilot.at_risk(pool)]
    lowest = 0.0 if risky else GENTLEST
    found = {each.tunable.name: each.value for each in levers if each.value is not None}
    slow, fast = values(lowest, found), values(FASTEST, found)
    lines = [
        f"hold the latency of applications at {latency(target)}, by one autopilot for all pools",
        *(f"  {pool.name}: {pool.scan.function}" for pool in pools),
        f"steers by {STEERS_BY}; buckets are powers of two, so within a factor of 2",
        *(
            f"  {name}: {each.tunable.rounded(slow[name])} to {each.tunable.rounded(fast[name])},"
            f" now {each.tunable.rounded(found[name])}"
            for each in levers
            for name in (each.tunable.name,)
        ),
    ]
    if risky:
        lines.append(
            f"never slower than now while {', '.join(risky)} can't lose another device:"
            " the latency may stay above the target"
        )
    return [*lines, "restores the originals when no scan runs, when you set one, and on off"]
