"""A tick of the demo's pool of 1,000 leaves: CPU of sample, model, frame and paint; memory.

``python -m tests.bench.tick [--hours H] [--samples N]`` prints the CPU milliseconds of each step
(medians of 40 ticks), and the process's peak memory after H simulated hours (24 by default).

``--leaves N [--pools P] [--ticks T]`` uses packed configs with N leaves (``large``) instead, which
another process advances: this measures the tick of a live console and its helper, memory without
the simulation, and the time of a fixed loop of Python, by which figures from busy and idle machines
can be compared.

A day at 1 Hz would take two hours of CPU time. The history of a pool does not depend on seconds: it
consists of rings and lists with a maximum number of samples. The longest has 600 points of a scan;
longer ones (1,000 figures of a scan's report, 3,600 of the console's own) have only a few numbers
each. So the day is divided into N samples (2,400), and memory is printed at each quarter: it must
not grow any more once every ring is full.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.large import LargeSource
from zconsole.sim.source import World, samples
from zconsole.timeline.feed import Feed, Update
from zconsole.timeline.frame import Pairs
from zconsole.timeline.pool import PoolTimeline
from zconsole.timeline.session import Session
from zconsole.ui.console_options import ConsoleOptions
from zconsole.ui.start import make_console
from zconsole.zfs.decode import decode
from zconsole.zfs.sources.base import Capabilities

TICKS = 40
SIZE = (80, 24)


class OneFeed(Feed):
    """A feed that waits forever: the benchmark passes frames itself."""

    async def sample(self) -> Update | None:
        await asyncio.Event().wait()
        return None

    async def details(self, pool: str, key: str) -> Pairs:
        return ()

    async def close_sources(self) -> None:
        return None


class Meter:
    """CPU seconds of each step, over many ticks."""

    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = {}

    def measure(self, step: str, work: Callable[[], Any]) -> Any:
        began = time.process_time()
        result = work()
        self.taken.setdefault(step, []).append(time.process_time() - began)
        return result

    def report(self, budget: str) -> None:
        total = 0.0
        for step, values in self.taken.items():
            each = 1e3 * median(values[3:] or values)
            total += each
            print(f"{step:<12} {each:7.1f} ms")
        print(f"{'a tick':<12} {total:7.1f} ms ({budget})")


async def ticks() -> None:
    """Measure the steps of a tick, painted in a console without a terminal."""
    world, timeline, meter = World("thousand", 1), PoolTimeline(), Meter()
    console = make_console(OneFeed(1.0), ConsoleOptions(host="bench"), {"LANG": "C.UTF-8"})
    async with console.run_test(size=SIZE) as pilot:
        for index in range(TICKS):
            meter.measure("simulation", partial(world.advance, float(index)))
            (raw,) = meter.measure("simulation", world.raws)
            (sample,) = meter.measure("decode", partial(decode, raw))
            frame = meter.measure("frame", partial(timeline.push, sample))
            update = Update((frame,), Capabilities("demo"))
            began = time.process_time()
            console.take(update)
            await pilot.pause()
            meter.taken.setdefault("paint", []).append(time.process_time() - began)
    meter.report("at most 100")


async def large(leaves: int, pools: int, count: int) -> None:
    """Measure the steps of a tick of large pools, and the console's memory afterwards."""
    meter, session = Meter(), Session()
    console = make_console(OneFeed(1.0), ConsoleOptions(host="bench"), {"LANG": "C.UTF-8"})
    with LargeSource(leaves, pools) as source:
        async with console.run_test(size=SIZE) as pilot:
            for index in range(1, count + 1):
                source.ask()
                received = source.receive()
                answers = meter.measure("helper", partial(source.read, received))
                raws = meter.measure("raw forms", partial(tuple, source.raws(received, answers)))
                del received, answers
                frames = meter.measure("frames", partial(session.advance, raws))
                del raws
                update = Update(frames, Capabilities("demo"))
                began = time.process_time()
                console.take(update)
                await pilot.pause()
                meter.taken.setdefault("paint", []).append(time.process_time() - began)
                if index in (15, count):
                    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                    print(f"memory after {index} ticks: {resident():.0f} MB, most {peak:.0f} MB")
                meter.measure("(yardstick)", yardstick)
    yard = meter.taken.pop("(yardstick)")
    meter.report("at most 110 with 1,000 leaves")
    print(f"yardstick    {1e3 * median(yard):7.1f} ms (a fixed loop of Python)")


def resident() -> float:
    """Return the process's current memory, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def yardstick() -> int:
    """Do a fixed amount of work."""
    return sum(len(str(n)) for n in range(50_000))


def day(hours: float, count: int) -> None:
    """Print the peak memory at each quarter of that many simulated hours."""
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
    parser.add_argument("--leaves", type=int)
    parser.add_argument("--pools", type=int, default=4)
    parser.add_argument("--ticks", type=int, default=TICKS)
    given = parser.parse_args()
    if given.leaves:
        asyncio.run(large(given.leaves, given.pools, given.ticks))
    else:
        asyncio.run(ticks())
        day(given.hours, given.samples)
