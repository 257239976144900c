"""Scans from a seeded generator, as a sampler would have seen them; for ETA tests.

They keep the properties of real recordings: issued bytes run ahead of the devices by a queue's
depth and in bursts as long as a transaction group, repaired bytes follow the devices, the end waits
for a transaction group, and text rounds to three digits.
"""

from __future__ import annotations

import math
import random
from bisect import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from zconsole.pool.model import Pool, Sample, SampleFailure, Scan, Vdev
from zconsole.units import parse_size, size, size_resolution

MIB = 2**20
START = 1_800_000_000.0
Speed = Callable[[float], float]
"""Takes the share of work done (0…1) and the seconds passed; returns a factor on the usual rate."""


@dataclass(frozen=True)
class Plan:
    """Parameters of a generated scan."""

    kind: str
    seconds: float
    """Approximate seconds at its usual speed."""
    rate: float
    """Usual bytes/s."""
    interval: float = 1.0
    function: str = "resilver"
    share: float = 0.25
    exact: bool = True
    walk: float = 0.0
    """Share of the time spent walking metadata before anything is issued."""
    alternate: float = 0.0
    """Seconds of walking and of issuing in turn, for a scan at its memory limit."""
    pause: tuple[float, float] | None = None
    """Share done at which it is paused, and for how many seconds."""
    export: float | None = None
    """Share done at which the pool is exported, so that the scan starts over."""
    burst: float = 0.0
    """Bytes issued at once; the devices work them off while nothing is issued."""
    away: tuple[float, float] | None = None
    """Share done at which the pool is exported, and for how many seconds; then the scan continues.
    """


def speed(kind: str, rng: random.Random, seconds: float) -> Callable[[float, float], float]:
    """Return a factor on the usual rate, as a function of the share done and the seconds passed."""
    at, factor = rng.uniform(0.2, 0.7), rng.choice((0.3, 0.5, 2.0, 3.5))
    begin = rng.uniform(0.2, 0.45)
    load = rng.uniform(0.3, 0.6)
    phase, swing = rng.uniform(0, 6.28), rng.uniform(0.2, 0.5)
    end = rng.uniform(0.3, 0.7)
    switches = list(_switches(rng, seconds))
    table: dict[str, Callable[[float, float], float]] = {
        "step": lambda done, t: factor if done > at else 1.0,
        "load": lambda done, t: load if begin < t / seconds < begin + 0.4 else 1.0,
        "slowing": lambda done, t: 1.4 - (1.4 - end) * done,
        "wave": lambda done, t: 1 + swing * math.sin(phase + 6.28 * t / seconds * 3),
        "tail": lambda done, t: 1.0 if done < 0.9 else end,
        "on-off": lambda done, t: load if bisect(switches, t) % 2 else 1.0,
        "levels": lambda done, t: (1.0, 1.5, 0.7)[bisect(switches, t) % 3],
    }
    return table.get(kind, lambda done, t: 1.0)


def _switches(rng: random.Random, seconds: float) -> Iterator[float]:
    """Yield the moments at which a load starts or ends, or a tunable is set."""
    t = 0.0
    while t < 5 * seconds:
        t += seconds * rng.uniform(0.05, 0.25)
        yield t


def samples(plan: Plan, seed: int, month: int = 0) -> list[Sample | SampleFailure]:
    """Return every sample of the scan, from two seconds after its start to two after its end.

    ``month``: the pool this many months later; each adds three per cent more bytes, and other
    random events.
    """
    rng = random.Random(f"{plan.kind} {seed}")
    machine = _Machine(plan, rng, month)
    found: list[Sample | SampleFailure] = []
    next_sample = 2.0
    while machine.ended is None:
        machine.step()
        if machine.t + 1e-9 >= next_sample and (plan.away or not machine.away):
            found.append(machine.missing() if machine.away else machine.sample())
            next_sample = machine.t + plan.interval
    return [*found, *(machine.sample(1.0 + k) for k in range(2))]


class _Machine:
    """The scan itself, simulated in steps of a fraction of a second."""

    def __init__(self, plan: Plan, rng: random.Random, month: int = 0) -> None:
        self.plan, self.rng = plan, rng
        self.start = START + month * 30 * 86400.0
        self.factor = speed(plan.kind, rng, plan.seconds)
        self.total = plan.rate * plan.seconds * (1 - plan.walk) * 1.03**month
        self.dt = min(0.5, plan.interval / 2) if plan.seconds < 1000 else plan.interval / 4
        self.t = 0.0
        self.work = self.issued = self.scanned = 0.0
        self.noise = 0.0
        self.ended: float | None = None
        self.paused_left = 0.0
        self.paused_for = 0.0
        self.pass_start, self.pass_base, self.pass_paused = self.start, 0.0, 0.0
        self.away = False
        self.away_left = 0.0
        self.pause = plan.pause
        self.export = plan.export
        self.leave = plan.away
        self.queue = max(48 * MIB, plan.rate * rng.uniform(1.5, 3.0))
        self.cycle, self.issue_part = rng.uniform(5.5, 9.0), rng.uniform(0.6, 0.8)
        self.walking = plan.walk > 0 or plan.alternate > 0
        self.turn = 0.0
        self.tail = rng.uniform(0.5, 3.0)
        self.spread = {"noisy": 0.35, "steady": 0.03}.get(plan.kind, 0.12)
        if month:
            rng.seed(f"{rng.random()} {month}")

    def step(self) -> None:
        dt = self.dt
        self.t += dt
        if self.away:
            self.away_left -= dt
            self.away = self.away_left > 0
            return
        if self.paused_left > 0:
            self.paused_left -= dt
            self.pass_paused += dt
            return
        done = self.work / self.total
        if self.pause and done >= self.pause[0]:
            self.paused_left, self.pause = self.pause[1], None
            return
        if self.leave and done >= self.leave[0]:
            self.away, self.away_left, self.leave = True, self.leave[1], None
            self.pass_start, self.pass_base = self.start + self.t + self.away_left, self.issued
            self.pass_paused = 0.0
            return
        if self.export is not None and done >= self.export:
            self.away, self.away_left, self.export = True, 8.0, None
            self.work = self.issued = self.scanned = 0.0
            self.pass_start, self.pass_base, self.pass_paused = self.start + self.t + 8, 0.0, 0.0
            return
        self._advance(dt, done)

    def _advance(self, dt: float, done: float) -> None:
        keep = math.exp(-dt / max(40.0, self.plan.seconds / 40))
        self.noise = self.noise * keep + self.rng.gauss(0, self.spread) * math.sqrt(1 - keep**2)
        rate = self.plan.rate * self.factor(done, self.t) * math.exp(self.noise)
        self._walk(dt, rate)
        if self.walking:
            return
        limit = min(self.scanned, self.total)
        if self.plan.burst:
            if self.work >= self.issued:
                self.issued = min(limit, self.issued + self.plan.burst * self.rng.uniform(0.8, 1.2))
        elif dt > 2.0 or (self.t % self.cycle) / self.cycle < self.issue_part:
            self.issued = min(limit, max(self.issued, self.work + self.queue + rate * dt))
        self.work = min(self.issued, self.work + rate * dt)
        if self.work >= self.total:
            self.tail -= dt
            if self.tail <= 0:
                self.ended = math.floor(self.start + self.t)

    def _walk(self, dt: float, rate: float) -> None:
        plan = self.plan
        if plan.alternate:
            self.turn += dt
            if self.walking and self.turn >= plan.alternate / 4:
                self.walking, self.turn = False, 0.0
                self.scanned = min(self.total, self.scanned + plan.rate * plan.alternate)
            elif not self.walking and self.work >= self.scanned < self.total:
                self.walking, self.turn = True, 0.0
        elif plan.walk:
            self.scanned = min(
                self.total, self.scanned + self.total / plan.walk / plan.seconds * dt
            )
            self.walking = self.scanned < self.total
        else:
            self.scanned = self.total

    def missing(self) -> SampleFailure:
        """Return the failed sample that a sampler has while the pool is exported."""
        t = self.start + self.t
        return SampleFailure("made", t, t, "no pools available", absent=True, gap=True)

    def sample(self, later: float = 0.0) -> Sample:
        """Return a sample of the pool, ``later`` seconds from now."""
        t = self.start + self.t + later
        scan = self._scan(t) if self.plan.exact else rounded(self._scan(t))
        pool = Pool("made", "ONLINE", Vdev("made", "root"), guid="1", scans=(scan,))
        return Sample(t, t, "replay", self.plan.exact, pool)

    def _scan(self, t: float) -> Scan:
        running = "paused" if self.paused_left > 0 else "running"
        scan = Scan(
            function=self.plan.function,
            state="finished" if self.ended else running,
            stage="issuing" if self.scanned >= self.total else "scanning",
            start=self.start,
            end=self.ended,
            total_bytes=int(self.total),
            scanned_bytes=int(self.scanned),
            issued_bytes=int(self.issued),
            skipped_bytes=0,
            processed_bytes=int(self.work * self.plan.share) if self._repairs else 0,
            percent=100 * self.issued / self.total,
            pass_start=self.pass_start,
            pass_paused=self.pass_paused,
        )
        elapsed = max(1, int(t) - int(self.pass_start) - int(self.pass_paused))
        rate = int(self.issued - self.pass_base) // elapsed
        # With bursts, the average must be beaten below 10 MiB/s too, where zpool prints no ETA.
        least = 1 if self.plan.burst else 10 * MIB
        eta = (int(self.total) - int(self.issued)) // rate if rate >= least else None
        going = scan.state == "running"
        return scan._replace(zpool_eta=eta if going else None, zpool_issue_rate=rate)

    @property
    def _repairs(self) -> bool:
        return self.plan.function != "scrub"


def rounded(scan: Scan) -> Scan:
    """Return the scan as text shows it: bytes with three digits, percent with two decimals."""
    texts = {
        name: size(getattr(scan, name))
        for name in ("total_bytes", "scanned_bytes", "issued_bytes", "processed_bytes")
    }
    parsed: dict[str, Any] = {name: parse_size(text) for name, text in texts.items()}
    return scan._replace(
        **parsed,
        percent=round(scan.percent or 0.0, 2),
        resolution=size_resolution(texts["issued_bytes"]),
        pass_start=None,
        pass_paused=None,
    )


KINDS = ("steady", "noisy", "step", "load", "slowing", "wave", "tail")


def plans(seed: int) -> Iterator[Plan]:
    """Yield one plan of every kind and length, with function, form and size drawn from ``seed``."""
    for kind in KINDS:
        rng = random.Random(f"plan {kind} {seed}")
        short = Plan(kind, rng.uniform(80, 300), rng.uniform(3, 60) * MIB)
        yield _dressed(short, rng)
        hours = rng.uniform(0.7, 20)
        long = Plan(kind, hours * 3600, rng.uniform(5, 900) * MIB, interval=hours * 7)
        yield _dressed(replace(long, walk=rng.choice((0.0, 0.02, 0.15))), rng)
    rng = random.Random(f"plan special {seed}")
    base = Plan("steady", rng.uniform(80, 300), rng.uniform(12, 60) * MIB)
    yield replace(base, kind="pause", function="scrub", pause=(rng.uniform(0.2, 0.8), 25.0))
    yield replace(base, kind="export", export=rng.uniform(0.2, 0.7))
    yield replace(base, kind="memory", alternate=rng.uniform(10, 25))
    yield replace(base, kind="memory", seconds=7200, alternate=rng.uniform(60, 300), interval=10)


def hard_plans(seed: int) -> Iterator[Plan]:
    """Yield scans that advance in bursts, under intermittent load, or with an export in between.

    A raidz2 of small blocks on disks that do 400 requests a second issues 100 to 150 MB at once and
    stands still for the 15 to 18 s that these take; a scan at its memory limit walks and issues in
    turns of minutes to hours.
    """
    rng = random.Random(f"plan hard {seed}")
    burst = rng.uniform(100, 150) * 1e6
    rate = burst / rng.uniform(15, 18)
    for kind in ("steady", "load", "on-off"):
        plan = Plan(kind, rng.uniform(180, 500), rate, function="scrub", burst=burst)
        yield replace(plan, exact=rng.random() < 0.6)
    yield Plan("noisy", rng.uniform(2400, 5000), rate, interval=5.0, function="scrub", burst=burst)
    hours = rng.uniform(2, 40)
    for turn in (rng.uniform(120, 600), rng.uniform(1200, 7200)):
        yield Plan("steady", hours * 3600, 100 * MIB, hours * 5, "scrub", alternate=turn)
    for kind in ("on-off", "on-off", "levels"):
        yield _dressed(Plan(kind, rng.uniform(120, 400), rng.uniform(5, 60) * MIB), rng)
        hours = rng.uniform(1, 20)
        yield _dressed(Plan(kind, hours * 3600, 100 * MIB, interval=hours * 7), rng)
    away = (rng.uniform(0.2, 0.7), rng.uniform(20, 60))
    yield Plan("steady", rng.uniform(120, 300), 20 * MIB, function="scrub", away=away)


def _dressed(plan: Plan, rng: random.Random) -> Plan:
    function = rng.choice(("resilver", "resilver", "scrub"))
    share = rng.choice((0.25, 0.2, 1.0, 0.1))
    return replace(plan, function=function, share=share, exact=rng.random() < 0.6)
