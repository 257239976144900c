"""Seeded scans of 8 hours to 20 days on the simulated pool, for benchmarks of the ETA.

Each has its own disks, layout, memory, and a load that varies over the day. Some have an event that
nobody can predict, a disk that becomes slow or a second replacement, whose time is known here.
``again`` gives the next scan of the same pool, which has grown a little.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from zconsole.pool.model import Pool, Sample, Vdev
from zconsole.sim import emit, scan, simulation
from zconsole.sim.build import DAY, HOUR, Build
from zconsole.sim.disk import EXOS_16T, MIB, RED_4T, RED_8T, ULTRASTAR_18T
from zconsole.sim.lifecycle import resilver_all
from zconsole.sim.source import clock, raw
from zconsole.sim.state import RESILVER, SCRUB, DataLayout, Host, Incident, PoolState
from zconsole.sim.topology import Member
from zconsole.zfs.decode import decode
from zconsole.zfs.decode.scans import scans_of, stats_of_work

SHORTEST, LONGEST = 8 * HOUR, 20 * DAY
STEP = 60.0
"""Simulated seconds per step."""
EPOCH = 1_795_000_000.0
LAYOUTS = (
    DataLayout(float(MIB), 64.0 * MIB, span=24.0 * MIB),
    DataLayout(131072.0, 24.0 * MIB, span=6.0 * MIB),
    DataLayout(65536.0, 4.0 * MIB, span=3.0 * MIB),
    DataLayout(24576.0, 1.0 * MIB, span=1.5 * MIB),
)
Track = list[tuple[float, float]]
"""Epoch seconds and bytes issued, at every step."""


@dataclass(frozen=True)
class LongScan:
    """One scan with its samples."""

    name: str
    samples: tuple[Sample, ...]
    track: Track
    start: float
    onset: float
    """Epoch seconds from which the end can be predicted: the start, or when a disk became slow."""
    end: float


def long_scans(seed: int) -> Iterator[Callable[[], LongScan]]:
    """Yield scans without end: the first call of each runs it, the next call runs its successor."""
    number = 0
    while True:
        number += 1
        story = _Story(seed * 1000 + number)
        if SHORTEST <= story.length() <= LONGEST:
            yield story.play


class _Story:
    """A pool and its scans."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.times = 0
        self.rng = random.Random(f"long {seed}")
        self.trouble = self.rng.choice(("", "", "", "", "straggler", "second"))
        self.function = RESILVER if self.trouble == "second" else self.rng.choice((SCRUB, RESILVER))
        self.model = self.rng.choice((RED_4T, RED_8T, EXOS_16T, ULTRASTAR_18T))
        self.layout = self.rng.choice(LAYOUTS)
        self.memory = self.rng.choice((4, 8, 16, 64, 256)) << 30
        self.fill, self.width = self.rng.uniform(0.25, 0.85), self.rng.randint(5, 12)
        self.parity = self.rng.choice((1, 2, 3))
        self.daily, self.peak = self.rng.choice((0.0, 0.6, 0.95)), self.rng.uniform(0, DAY)
        self.busy = self.rng.choice((0.0, 0.15, 0.35, 0.55))
        self.bursty = self.rng.uniform(0.1, 0.6)
        self.at = self.rng.uniform(0.3, 0.6)
        self.hour = self.rng.uniform(0, DAY)
        self.usual = 0.0
        """Seconds that the scan takes if nothing happens."""
        trouble, self.trouble = self.trouble, ""
        self.usual = self.length()
        self.trouble = trouble

    def pool(self, fill: float) -> PoolState:
        make = Build(self.seed, "long", EPOCH)
        disks = make.leaves(self.width, self.model)
        old, new = make.leaf(self.model), make.leaf(self.model)
        group = [make.replacing(old, new)] if self.function == RESILVER else []
        members: list[Member] = [*disks, *group]
        requests = self.busy * 110.0 * self.width / 2
        load = make.load(
            read=requests * 65536.0,
            write=requests * 8192.0,
            daily=self.daily,
            peak=self.peak,
            bursty=self.bursty,
            sync=0.2,
        )
        pool = make.pool(
            [make.raidz(self.parity, members, fill)],
            load=load,
            layout=self.layout,
            host=Host(memory=self.memory),
        )
        pool.t = self.hour + self.times * 30.3 * DAY
        new.dtl = 1.0 if self.function == RESILVER else 0.0
        scan.begin(pool, self.function, [new] if self.function == RESILVER else None)
        return pool

    def length(self) -> float:
        """Return the seconds from its last start to its end, or more than the longest allowed."""
        if self.usual and not self.trouble:
            return self.usual
        pool = self.begun()
        while pool.scan is not None and pool.scan.running:
            if pool.now - pool.scan.start > LONGEST:
                break
            _stepped(pool)
        return pool.now - (pool.scan.start if pool.scan is not None else 0.0)

    def begun(self) -> PoolState:
        """Return the pool with its future incidents; each call is a month later, and 4 % fuller."""
        pool = self.pool(min(0.95, self.fill * 1.04**self.times))
        if self.trouble:
            after = self.at * self.usual * 1.05**self.times
            pool.incidents = [Incident(pool.t + after, getattr(self, f"_{self.trouble}"))]
        return pool

    def play(self) -> LongScan:
        """Run the scan and sample it."""
        pool, interval = self.begun(), self._interval(self.usual)
        self.times += 1
        words = f"{'scrub' if self.function == SCRUB else 'resilver'} {self.trouble}".strip()
        return _played(pool, f"{self.seed} {words}", interval)

    @staticmethod
    def _interval(length: float) -> float:
        """Return the seconds between samples: at least one step, and a thousand samples a scan."""
        return max(STEP, round(length / 1000 / STEP) * STEP)

    def _straggler(self, pool: PoolState) -> None:
        leaf = next(iter(pool.tops[0].leaves()))
        leaf.slow = 0.4

    def _second(self, pool: PoolState) -> None:
        make = Build(self.seed + 1, "second", EPOCH)
        top = pool.tops[0]
        top.members[0] = make.replacing(next(iter(top.leaves())), make.leaf(self.model))
        resilver_all(pool)


def _played(pool: PoolState, name: str, interval: float) -> LongScan:
    onset = pool.now
    found: list[Sample] = []
    track: Track = []
    tree = _sampled(pool)
    due = pool.t
    while pool.scan is not None and pool.scan.running:
        if pool.t >= due - 1e-6:
            found.append(_lean(pool, tree))
            due += interval
        if _stepped(pool):
            onset, tree = pool.now, _sampled(pool)
            track.clear()
        if pool.scan is not None:
            track.append((pool.now, pool.scan.issued))
    assert pool.scan is not None
    found.append(_lean(pool, tree))
    return LongScan(name, tuple(found), track, pool.scan.start, onset, pool.scan.end)


def _stepped(pool: PoolState) -> bool:
    """Advance by one step; returns whether the unpredictable event happened."""
    due = bool(pool.incidents) and pool.t >= pool.incidents[0].t
    if due:
        pool.incidents.pop(0).happen(pool)
    simulation.step(pool, STEP)
    return due


def _sampled(pool: PoolState) -> Vdev:
    (seen,) = decode(raw(pool))
    assert isinstance(seen, Sample)
    return seen.pool.root


def _lean(pool: PoolState, root: Vdev) -> Sample:
    """Return a sample in which only the scan's figures are new: all that estimates need."""
    assert pool.scan is not None
    stats = stats_of_work({"scan_stats": emit.scan_stats(pool.scan)}, ())
    scans = scans_of(stats["scan_stats"], pool.now)
    known = Pool(pool.name, "ONLINE", root, guid=str(pool.guid), scans=scans)
    return Sample(pool.now, clock(pool), "demo", True, known)
