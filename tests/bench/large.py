"""Large pools without a running simulation: the packed configs that the kernel would return.

Simulating thousands of disks takes more time and memory than the console, so they are simulated up
to their first sample, and from then on every counter grows by the same amount each second. ``python
-m tests.bench.large LEAVES`` packs them and sends them to ``LargeSource`` from a process of its
own, so that neither its time nor its memory counts as the console's. Parsing a packed config, which
is the libzfs helper's work, is a separate step (``LargeSource.read``).
"""

from __future__ import annotations

import argparse
import marshal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Self, cast

from tests.unit.zfs.sources.kernel.nvpack import pack
from zconsole.sim import scan, simulation
from zconsole.sim.build import BULK, Build
from zconsole.sim.disk import EXOS_16T
from zconsole.sim.source import EPOCH, raw
from zconsole.sim.state import SCRUB
from zconsole.sim.topology import Top
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.kernel.helper import Answers, encoded
from zconsole.zfs.sources.kernel.nvlist import ConfigReader
from zconsole.zfs.sources.pool_poller import leaf_paths

WIDTH = 10
"""Leaves in each raidz2 vdev."""
BEFORE = 600.0
"""Seconds that the scrub had run before the first sample."""
STEPS = 12
BYTES, OPS = 150_000_000, 600
"""Bytes and operations that each leaf reads per second."""
_SUMMED = {9: OPS, 15: BYTES}
"""Indexes of the read counters in ``vdev_stats``, with their growth per second."""
_SCAN = {5: BYTES, 9: BYTES, 13: BYTES, 14: BYTES}
"""Indexes of the scanned and issued bytes in ``scan_stats``, with their growth per leaf."""
_SLOW, _FAST = 22, 24
"""Histogram buckets of latencies: 4 and 16 ms."""


class LargePool:
    """One pool of many raidz2 vdevs during a scrub."""

    def __init__(self, name: str, leaves: int, seed: int = 1) -> None:
        first = _first(name, leaves, seed)
        self.name = name
        self._leaves = leaves
        self._config = cast("dict[str, Any]", first.pop("libzfs"))
        self._nodes = [(node, _leaves(node)) for node in _vdevs(self._config["vdev_tree"])]
        self._rows = [(row[2], int(row[3]), int(row[5]), int(row[6])) for row in first["diskstats"]]
        first.pop("diskstats")
        first["events"] = []
        self._raw = first
        self._ticks = 0

    def advance(self) -> None:
        """Advance the pool by one second."""
        self._ticks += 1
        for node, leaves in self._nodes:
            stats = node["vdev_stats"]
            stats[0] += 1_000_000_000
            for at, more in _SUMMED.items():
                stats[at] += more * leaves
            for value in node.get("vdev_stats_ex", {}).values() if leaves == 1 else ():
                if isinstance(value, list):
                    value[_FAST] += OPS - 100
                    value[_SLOW] += 100
        for at, more in _SCAN.items():
            self._config["vdev_tree"]["scan_stats"][at] += more * self._leaves

    def packed(self) -> bytes:
        """Return the pool's config, as the kernel packs it."""
        return bytes(pack(self._config))

    def diskstats(self) -> list[str]:
        """Return the lines of /proc/diskstats."""
        ticks = self._ticks
        return [
            f"   8   1 {name} {ops + OPS * ticks} 0 {sectors + BYTES // 512 * ticks}"
            f" {ms + 4000 * ticks} 0 0 0 0 2 {900 * ticks} {4000 * ticks} 0 0 0 0"
            for name, ops, sectors, ms in self._rows
        ]

    @property
    def begun(self) -> dict[str, Any]:
        """Return the constant parts of the first raw form."""
        return self._raw


def large_pools(leaves: int, pools: int = 4) -> list[LargePool]:
    """Return pools with ``leaves`` leaves in total."""
    return [LargePool(f"exa{n}", leaves // pools, n + 1) for n in range(pools)]


class LargeSource:
    """Raw forms of large pools, one second later in each round, from a child process."""

    def __init__(self, leaves: int, pools: int = 4) -> None:
        command = [sys.executable, "-m", "tests.bench.large", str(leaves), "--pools", str(pools)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe)
        self._pools = pools
        self._readers = [ConfigReader() for _ in range(pools)]
        self._first: list[dict[str, Any]] = self.receive()
        shelves = [shelf for begun in self._first for shelf in begun.pop("enclosures", ())]
        for begun in self._first:
            begun["enclosures"] = shelves  # all enclosures of the machine, whatever pool is in them

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def ask(self) -> None:
        """Start a round, and wait until it can be read."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def receive(self) -> list[Any]:
        """Receive from the child process, for each pool: seconds, packed config, disk lines."""
        return [self._received() for _ in range(self._pools)]

    def read(self, received: list[Any]) -> list[bytes]:
        """Return the helper's answers, parsed from the packed configs."""
        configs = (config for _, config, _ in received)
        found = (
            reader.read(memoryview(c)) for reader, c in zip(self._readers, configs, strict=True)
        )
        return [encoded({"config": config}) for config in found]

    def raws(self, received: list[Any], answers: list[bytes]) -> Iterator[Raw]:
        """Yield the raw forms of a round, as the live source makes them."""
        for begun, (ticks, _, lines), data in zip(self._first, received, answers, strict=True):
            (answer,) = Answers().feed(data)
            yield _raw(begun, ticks, answer["config"], lines)

    def _received(self) -> Any:
        output = self._process.stdout
        assert output is not None
        size = int.from_bytes(output.read(8), "little")
        return marshal.loads(output.read(size))  # noqa: S302 - our own process


def _raw(begun: dict[str, Any], ticks: int, config: Mapping[str, Any], lines: list[str]) -> Raw:
    moved = {
        "t": begun["t"] + ticks,
        "clock": begun["clock"] + ticks,
        "began": begun["clock"] + ticks,
        "libzfs": config,
        "diskstats": [line.split() for line in lines],
    }
    raw = cast("Raw", {**begun, **moved})
    for _ in range(2):  # as the poller does twice: to find its disks and to find their places
        tuple(leaf_paths(raw))
    return raw


def serve(pools: list[LargePool]) -> None:
    """Send the constant parts of the pools, then the changed parts for each line of stdin."""
    for pool in pools:
        _send(pool.begun)
    for ticks, _ in enumerate(sys.stdin.buffer, 1):
        for pool in pools:
            pool.advance()
        for pool in pools:
            _send((ticks, pool.packed(), pool.diskstats()))


def _send(answer: Any) -> None:
    body = marshal.dumps(answer)
    sys.stdout.buffer.write(len(body).to_bytes(8, "little") + body)
    sys.stdout.buffer.flush()


def _first(name: str, leaves: int, seed: int) -> dict[str, Any]:
    """Return the raw form of the simulated pool."""
    make = Build(seed, name, EPOCH - BEFORE)
    tops: list[Top] = [
        make.raidz(2, make.leaves(WIDTH, EXOS_16T), fill=make.random.uniform(0.35, 0.7))
        for _ in range(max(1, leaves // WIDTH))
    ]
    pool = make.pool(tops, load=make.load(read=300e6, write=200e6, sequential=8.0), layout=BULK)
    pool.host.memory, pool.host.throughput = 4 << 40, 250e9
    scan.begin(pool, SCRUB)
    simulation.advance(pool, BEFORE, STEPS)
    return cast("dict[str, Any]", raw(pool))


def _vdevs(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("children", ()):
        yield from _vdevs(child)


def _leaves(node: Mapping[str, Any]) -> int:
    return sum(map(_leaves, node["children"])) if "children" in node else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("leaves", type=int)
    parser.add_argument("--pools", type=int, default=4)
    given = parser.parse_args()
    serve(large_pools(given.leaves, given.pools))
