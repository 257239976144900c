"""What a sample costs in CPU time, side by side, on a machine with a real OpenZFS pool.

    python -m tests.bench.sample_cost POOL [SAMPLES]

Compares a libzfs sample (helper process, decoding and rates included) with spawning
`zpool status -jP` and `zpool iostat -HpPlqv`. The ways alternate, with a pause between two
samples as in real use: in a tight loop caches stay warm, which favors whatever is smallest. Their
order differs in every round, because each way leaves warm caches for the next.
The medians of CPU milliseconds are printed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

from zconsole.pool.model import Sample, placed
from zconsole.system.async_process import ProcessRunner
from zconsole.system.host import steady_clock
from zconsole.system.process import zfs_environment
from zconsole.timeline.rates import PoolRates
from zconsole.timeline.session import Session
from zconsole.zfs.decode import decode
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.kernel.client import KernelReader
from zconsole.zfs.sources.live import LiveSource

PAUSE = 0.05
"""Seconds between two samples."""

Measured = Callable[[], Awaitable[None]]


def own_ms() -> float:
    """Return the CPU milliseconds used so far by this process and its ended children."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime)


def helpers_ms() -> float:
    """Return the CPU milliseconds used so far by the running children."""
    return sum(_running_ms(pid) for pid in _children(os.getpid()))


def _children(pid: int) -> list[str]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [child for task in tasks for child in (task / "children").read_text().split()]


def _running_ms(pid: str) -> float:
    """Return the CPU milliseconds of all threads (`/proc/PID/task/TID/schedstat`, in ns)."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e6


class Bench:
    """The ways to take a sample that are compared."""

    def __init__(self, pool: str) -> None:
        self._pool = pool
        self._reader = KernelReader(ProcessRunner())
        self._rates = PoolRates()
        self._live = LiveSource([pool])
        self._session = Session()

    async def sample(self) -> None:
        form = await self._reader.read(self._pool, 30)
        raw = {"t": time.time(), "clock": steady_clock(), "source": "libzfs", **form}
        for sample in decode(cast("Raw", raw)):
            assert isinstance(sample, Sample)
            tree = {place.key: place for place in placed(sample.pool.root)}
            self._rates.push(sample.t, sample.clock, tree)

    async def frame(self) -> None:
        self._session.advance(await self._live.sample())

    async def status(self) -> None:
        self._spawn("zpool", "status", "-jP", "--json-int", self._pool)

    async def text(self) -> None:
        self._spawn("zpool", "status", "-P", self._pool)

    async def iostat(self) -> None:
        self._spawn("zpool", "iostat", "-HpPlqv", self._pool)

    async def close(self) -> None:
        await self._reader.aclose()
        await self._live.aclose()

    def _spawn(self, *argv: str) -> None:
        environment = zfs_environment()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, env=environment)


async def median_costs(ways: dict[str, Measured], samples: int) -> dict[str, float]:
    """Return the median CPU milliseconds per sample of each way, over alternating samples."""
    costs: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        await way()
    order = random.Random(0)
    for _ in range(samples):
        for name, way in order.sample(list(ways.items()), len(ways)):
            await asyncio.sleep(PAUSE)
            helpers_before = helpers_ms()
            own_before = own_ms()
            await way()
            own = own_ms() - own_before
            costs[name].append(own + helpers_ms() - helpers_before)
    return {name: statistics.median(found) for name, found in costs.items()}


async def main(pool: str, samples: int) -> None:
    bench = Bench(pool)
    version = Path("/sys/module/zfs/version").read_text().strip()
    has_json = not version.startswith(("0.", "2.0", "2.1", "2.2"))
    ways: dict[str, Measured] = {
        "libzfs sample, model and rates": bench.sample,
        "all of it: disks, host, estimate, limits and frame": bench.frame,
        "spawn zpool status": bench.status if has_json else bench.text,
        "spawn zpool iostat": bench.iostat,
    }
    costs = await median_costs(ways, samples)
    await bench.close()
    sample, _, status, iostat = costs.values()
    print(f"OpenZFS {version}, pool {pool}, medians of {samples} samples")
    for name, cost in costs.items():
        print(f"{cost:9.2f} ms CPU  {name}")
    print(f"sample / (status + iostat) = 1/{(status + iostat) / sample:.1f}   (budget 1/8)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pool")
    parser.add_argument("samples", nargs="?", type=int, default=50)
    given = parser.parse_args()
    asyncio.run(main(given.pool, given.samples))
