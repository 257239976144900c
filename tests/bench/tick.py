"""A tick of the demo's pool of 1,000 leaves: CPU of sample, model, frame and paint; memory.

``python -m tests.bench.tick [--hours H] [--samples N]`` prints milliseconds of CPU a step (the
medians of 40 ticks), and the process's largest memory after H simulated hours (24 unless told).

A day at 1 Hz would be two hours of CPU time. Nothing that is kept of a pool counts seconds: it is
rings and lists bounded by a number of samples, the longest of 600 points of a scan (the longest of
all, 1,000 figures of a scan's report and 3,600 of the console's own, are a few numbers each). So
the day is taken in N samples (2,400) as far apart as that makes them, and memory is told at each
quarter: it must not go on growing once every ring is full.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from zconsole.cli import main
from zconsole.monitor.feed import Feed, Pairs, Update
from zconsole.monitor.pool_monitor import PoolMonitor
from zconsole.monitor.session import Session
from zconsole.sim.source import World, samples
from zconsole.ui.console_options import ConsoleOptions
from zconsole.ui.start import make_console
from zconsole.zfs.decode import decode
from zconsole.zfs.sources.base import Capabilities

TICKS = 40
SIZE = (80, 24)


class OneFeed(Feed):
    """A feed that never ends its first wait: the bench hands over frames itself."""

    async def sample(self) -> Update | None:
        await asyncio.Event().wait()
        return None

    async def details(self, pool: str, key: str) -> Pairs:
        return ()

    async def close_sources(self) -> None:
        return None


class Meter:
    """CPU seconds of each step, many times."""

    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = {}

    def measure(self, step: str, work: Callable[[], Any]) -> Any:
        began = time.process_time()
        result = work()
        self.taken.setdefault(step, []).append(time.process_time() - began)
        return result

    def report(self) -> None:
        total = 0.0
        for step, values in self.taken.items():
            each = 1e3 * median(values[3:])
            total += each
            print(f"{step:<12} {each:7.1f} ms")
        print(f"{'a tick':<12} {total:7.1f} ms (at most 100)")


async def ticks() -> None:
    """The steps of a tick, painted in a console without a terminal."""
    world, monitor, meter = World("thousand", 1), PoolMonitor(), Meter()
    console = make_console(OneFeed(1.0), ConsoleOptions(host="bench"), {"LANG": "C.UTF-8"})
    async with console.run_test(size=SIZE) as pilot:
        for index in range(TICKS):
            meter.measure("simulation", partial(world.advance, float(index)))
            (raw,) = meter.measure("simulation", world.raws)
            (sample,) = meter.measure("decode", partial(decode, raw))
            frame = meter.measure("frame", partial(monitor.push, sample))
            update = Update((frame,), Capabilities("demo"))
            began = time.process_time()
            console.take(update)
            await pilot.pause()
            meter.taken.setdefault("paint", []).append(time.process_time() - began)
    meter.report()


def day(hours: float, count: int) -> None:
    """Largest memory at each quarter of that many simulated hours."""
    session = Session()
    for taken, raws in enumerate(samples("thousand", 1, hours * 3600 / count, count), 1):
        session.advance(raws)
        if taken % (count // 4) == 0:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            at = f"{taken} samples, {hours * taken / count:g} simulated hours"
            print(f"largest memory after {at}: {peak:.0f} MB (at most 120)", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--samples", type=int, default=2400)
    given = parser.parse_args()
    gc.set_threshold(main.YOUNG)
    asyncio.run(ticks())
    day(given.hours, given.samples)
