"""Large pools that count on without being simulated: what the libzfs helper would answer.

Simulating ten thousand disks takes more time and memory than the console, so they are simulated up
to their first sample, and from then on every counter grows by the same each second. An answer has
the form that the helper sends (``zfs.sources.libzfs.nvlist``): what stays, once, and what moves,
arrays of it packed. ``python -m tests.bench.large LEAVES`` gives them to ``LargeSource`` from a
process of its own, so that neither its time nor its memory counts for the console's.
"""

from __future__ import annotations

import argparse
import marshal
import subprocess
import sys
from array import array
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self, cast

from zconsole.sim import scan, simulation
from zconsole.sim.build import BULK, Build
from zconsole.sim.models import EXOS_16T
from zconsole.sim.source import EPOCH, raw
from zconsole.sim.state import SCRUB
from zconsole.sim.topology import Top
from zconsole.zfs.raw import QUEUES, Raw
from zconsole.zfs.sources.libzfs.nvlist import Form, Values, assembled
from zconsole.zfs.sources.pool_poller import leaf_paths

WIDTH = 10
"""Leaves of a vdev, a raidz2."""
BEFORE = 600.0
"""Seconds a scrub ran before the first sample."""
STEPS = 12
BYTES, OPS = 150_000_000, 600
"""What a leaf reads in a second."""
_MOVING = {"error_count", *(name for pair in QUEUES.values() for name in pair)}
_SUMMED = {9: OPS, 15: BYTES}
"""Where ``vdev_stats`` counts reads."""
_SCAN = {5: BYTES, 9: BYTES, 13: BYTES, 14: BYTES}
"""Where ``scan_stats`` counts what was scanned and issued, for each leaf."""
_SLOW, _FAST = 22, 24
"""Buckets of a histogram of latencies: 4 and 16 ms."""


class _Node(NamedTuple):
    """What moves in one nvlist: integers, and arrays by the position they have."""

    values: list[Any]
    stats: int | None
    """Where its ``vdev_stats`` are."""
    leaves: int


class LargePool:
    """One pool of many raidz2 vdevs under a scrub."""

    def __init__(self, name: str, leaves: int, seed: int = 1) -> None:
        first = _first(name, leaves, seed)
        self.name = name
        self._leaves = leaves
        self._nodes: list[_Node] = []
        self.form = self._taken(cast("dict[str, Any]", first.pop("libzfs")))
        self._rows = [(row[2], int(row[3]), int(row[5]), int(row[6])) for row in first["diskstats"]]
        first.pop("diskstats")
        first["events"] = []
        self._raw = first
        self._ticks = 0

    def advance(self) -> None:
        """A second passes."""
        self._ticks += 1
        for node in self._nodes:
            if node.stats is None:
                continue
            stats = node.values[node.stats]
            stats[0] += 1_000_000_000
            for at, more in _SUMMED.items():
                stats[at] += more * node.leaves
            if node.leaves == 1:
                for value in node.values:
                    if isinstance(value, array) and value is not stats:
                        value[_FAST] += OPS - 100
                        value[_SLOW] += 100
        for at, more in _SCAN.items():
            self._scan[at] += more * self._leaves

    def values(self) -> list[Values]:
        """Every nvlist's values, as the helper reads them."""
        return [
            tuple(v.tobytes() if isinstance(v, array) else v for v in node.values)
            for node in self._nodes
        ]

    def diskstats(self) -> list[str]:
        """The lines of /proc/diskstats."""
        ticks = self._ticks
        return [
            f"   8   1 {name} {ops + OPS * ticks} 0 {sectors + BYTES // 512 * ticks}"
            f" {ms + 4000 * ticks} 0 0 0 0 2 {900 * ticks} {4000 * ticks} 0 0 0 0"
            for name, ops, sectors, ms in self._rows
        ]

    @property
    def begun(self) -> dict[str, Any]:
        """All of the first raw form but what moves."""
        return self._raw

    def _taken(self, node: Mapping[str, Any], below: str = "") -> Form:
        """The form of an nvlist; what moves in it is kept in the same order."""
        kept: dict[str, Any] = {}
        names, values = [], []
        for key, value in node.items():
            if _packs(value) and key != "children":
                names.append(key)
                values.append(array("Q", value))
                if key == "scan_stats":
                    self._scan = values[-1]
            elif key in _MOVING:
                names.append(key)
                values.append(value)
            elif not isinstance(value, (dict, list)):
                kept[key] = value
        self._nodes.append(_Node(values, *_place(names, node)))
        nested = (
            (key, isinstance(value, list), tuple(self._taken(each, key) for each in _each(value)))
            for key, value in node.items()
            if isinstance(value, dict) or (isinstance(value, list) and not _packs(value))
        )
        return kept, tuple(names), tuple(nested)


def large_pools(leaves: int, pools: int = 4) -> list[LargePool]:
    """Pools of so many leaves together."""
    return [LargePool(f"exa{n}", leaves // pools, n + 1) for n in range(pools)]


class LargeSource:
    """The raw forms of large pools, a second further with each round; the process that counts."""

    def __init__(self, leaves: int, pools: int = 4) -> None:
        command = [sys.executable, "-m", "tests.bench.large", str(leaves), "--pools", str(pools)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe)
        self._pools = pools
        self._first: list[tuple[Form, dict[str, Any]]] = self.receive()
        shelves = [shelf for _, begun in self._first for shelf in begun.pop("enclosures", ())]
        for _, begun in self._first:
            begun["enclosures"] = shelves  # those of the machine, whatever pool is in them

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def ask(self) -> None:
        """Begin a round, and wait until it is there to be read."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def receive(self) -> list[Any]:
        """What the process counted, an answer for each pool, as the helper gives them."""
        return [self._received() for _ in range(self._pools)]

    def raws(self, received: list[Any]) -> Iterator[Raw]:
        """The raw forms of a round, as the live source makes them."""
        return map(_raw, self._first, received)

    def _received(self) -> Any:
        output = self._process.stdout
        assert output is not None
        size = int.from_bytes(output.read(8), "little")
        return marshal.loads(output.read(size))  # noqa: S302 - our own process


def _raw(first: tuple[Form, dict[str, Any]], now: tuple[int, list[Values], list[str]]) -> Raw:
    (form, begun), (ticks, values, lines) = first, now
    moved = {
        "t": begun["t"] + ticks,
        "clock": begun["clock"] + ticks,
        "began": begun["clock"] + ticks,
        "libzfs": assembled(form, iter(values)),
        "diskstats": [line.split() for line in lines],
    }
    raw = cast("Raw", {**begun, **moved})
    for _ in range(2):  # the poller looks for its disks, and the places of disks are looked for
        tuple(leaf_paths(raw))
    return raw


def serve(pools: list[LargePool]) -> None:
    """Send what stays of the pools, then what moved for each line that is read."""
    for pool in pools:
        _send((pool.form, pool.begun))
    for ticks, _ in enumerate(sys.stdin.buffer, 1):
        for pool in pools:
            pool.advance()
        for pool in pools:
            _send((ticks, pool.values(), pool.diskstats()))


def _send(answer: tuple[Any, ...]) -> None:
    body = marshal.dumps(answer)
    sys.stdout.buffer.write(len(body).to_bytes(8, "little") + body)
    sys.stdout.buffer.flush()


def _first(name: str, leaves: int, seed: int) -> dict[str, Any]:
    """The raw form of the simulated pool."""
    make = Build(seed, name, EPOCH - BEFORE)
    tops: list[Top] = [
        make.raidz(2, make.leaves(WIDTH, EXOS_16T), fill=make.random.uniform(0.35, 0.7))
        for _ in range(max(1, leaves // WIDTH))
    ]
    pool = make.pool(tops, load=make.load(read=300e6, write=200e6, sequential=8.0), layout=BULK)
    pool.host.memory, pool.host.throughput, pool.host.arc = 4 << 40, 250e9, 1 << 40
    scan.begin(pool, SCRUB)
    simulation.advance(pool, BEFORE, STEPS)
    return cast("dict[str, Any]", raw(pool))


def _packs(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], int)


def _each(value: Any) -> Iterator[Mapping[str, Any]]:
    yield from value if isinstance(value, list) else (value,)


def _place(names: list[str], node: Mapping[str, Any]) -> tuple[int | None, int]:
    """Where ``vdev_stats`` is among the names, and how many leaves are below the node."""
    return (names.index("vdev_stats") if "vdev_stats" in names else None), _leaves(node)


def _leaves(node: Mapping[str, Any]) -> int:
    return sum(map(_leaves, node["children"])) if "children" in node else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("leaves", type=int)
    parser.add_argument("--pools", type=int, default=4)
    given = parser.parse_args()
    serve(large_pools(given.leaves, given.pools))
