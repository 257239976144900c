"""Tracking the limit of a pool's running scan across samples, and its estimated maximum rate."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from zconsole.diagnosis.bottleneck.evidence import (
    Disk,
    Evidence,
    LeafStats,
    PoolLoad,
    StageCycleTracker,
    WatchedScan,
    disks_of,
    sorted_share,
)
from zconsole.diagnosis.bottleneck.finding import (
    CAUSES,
    LARGE_RAISE,
    TOO_LITTLE,
    Ceiling,
    TunableStep,
    Verdict,
)
from zconsole.pool.model import DatasetLoad, IoRates, Placed, Sample, Vdev, parse_version
from zconsole.tunables.effect import SETTLE, WINDOW, EffectSample, TunableEffect, measure
from zconsole.units import rate

ScanKey = tuple[str, str | None, float | None]
FEW = 64
"""Most vdevs of a pool for which every sample is judged."""
SELDOM = 20.0
"""Seconds between two judgments of larger pools."""


class BottleneckTracker:
    """Tracks every sample; judges the first running scan, using earlier samples as well.

    It remembers the disks from one scan to the next.
    """

    def __init__(self) -> None:
        self.verdict: Verdict | None = None
        self.effects = TunableEffects()
        self.ceiling: Ceiling | None = None
        self._best: tuple[object, Ceiling] | None = None
        """The last ceiling, and what it is that of: a kind of scan, its new disks, all disks."""
        self._past: dict[str, LeafStats] = {}
        self._load = PoolLoad()
        self._judged_at = float("-inf")
        self._begin(None, 0.0)

    def _begin(self, scan: ScanKey | None, clock: float) -> None:
        self._scan, self._since = scan, clock
        self._cycles = StageCycleTracker()
        self._sorted: float | None = None
        self._settled = VerdictFilter()
        self.effects.begin(scan)
        for past in self._past.values():
            past.begin()

    def push(
        self,
        sample: Sample,
        tree: Mapping[str, Placed],
        rates: Mapping[str, IoRates],
        scans: Sequence[WatchedScan],
        datasets: Sequence[DatasetLoad] = (),
    ) -> None:
        """Add a sample with its rates and scans, and the datasets with the most logical I/O."""
        watched = next((each for each in scans if each.scan.state == "running"), None)
        if watched is not None and watched.scan.key != self._scan:
            self._begin(watched.scan.key, sample.clock)
        rate = watched.rate if watched and not watched.averaged else None
        stage = (watched.stage or "") if watched else ""
        whole = rates.get(next(iter(tree), ""), IoRates())
        found = self.verdict
        limit = CAUSES[found.cause] if found and found.is_out_of_reach else ""
        point = EffectSample(sample.clock, rate, whole.latency, limit, stage)
        changed = self.effects.add(point, sample.tunables)
        if self.verdict and self.verdict.suggestion.tunable in changed:
            self._settled = VerdictFilter()  # what was suggested about it is outdated
        if watched is None:
            # Keep the ceiling of a paused scan, without the share that it reaches.
            paused = any(w.scan.key == self._scan for w in scans if w.scan.state == "paused")
            self.verdict = None
            self.ceiling = self.ceiling._replace(share=None) if paused and self.ceiling else None
            return
        before = self._cycles.stage
        if sample.exact:
            self._cycles.add(sample.t, sample.clock, watched.scan)
        now = sorted_share(watched.scan)
        if self._cycles.stage != before or self._sorted is None or now is None:
            self._sorted = now
        else:
            self._sorted = max(self._sorted, now)
        if self.verdict is None:
            self.verdict = TOO_LITTLE  # the first sample of a scan has no rates to judge by
        elif len(tree) <= FEW or sample.clock - self._judged_at >= SELDOM:
            self._judged_at = sample.clock
            self._judge(sample, watched, tree, rates, datasets)
        if self.ceiling is not None and watched.rate is not None:
            self.ceiling = self.ceiling.at(watched.rate)

    def _judge(
        self,
        sample: Sample,
        watched: WatchedScan,
        tree: Mapping[str, Placed],
        rates: Mapping[str, IoRates],
        datasets: Sequence[DatasetLoad],
    ) -> None:
        for key, place in tree.items():
            if not place.vdev.children and key in rates:
                self._past.setdefault(key, LeafStats()).add(sample.clock, place.vdev, rates[key])
        for key in self._past.keys() - tree.keys():
            del self._past[key]
        moved = [rates[key] for key in self._past if key in rates]
        self._load = self._load.after(sum((r.read or 0.0) + (r.write or 0.0) for r in moved))
        cycles, scan = self._cycles.cycles(), watched.scan
        disks = disks_of(scan, tree, rates, self._past)
        total, walked = scan.total_bytes, scan.scanned_bytes
        stage = self._cycles.stage or watched.stage
        seen = Evidence(
            scan=scan,
            stage=stage,
            rate=watched.rate or 0.0,
            disks=disks,
            tops={disk.top: tree[disk.top].vdev for disk in disks if disk.top in tree},
            cpu=sample.host.cpu if sample.host else None,
            memory=sample.host.memory_total if sample.host else None,
            seconds=sample.clock - self._since,
            cycles=cycles,
            walked=walked / total if walked is not None and total and scan.two_stage else None,
            sorted_share=self._sorted,
            foreground_writes=sum(d.rates.write or 0.0 for d in disks if not d.target),
            datasets=datasets,
            load=self._load,
            version=parse_version(sample.version),
            tunables=sample.tunables,
            steps=self.effects.steps,
        )
        # Lazy import: a first sample has nothing to judge.
        from zconsole.diagnosis.bottleneck.rules import judge

        found = judge(seen)
        between = self._cycles.stage is not None and cycles.limited
        self.verdict = self._settled.push(sample.clock, seen.stage, found, between)
        shared = self.verdict is not None and self.verdict.cause == "bus"
        if not between or seen.stage == "issuing":
            new = frozenset(disk.name for disk in disks if disk.target)
            scanned = scan.function, new, frozenset(self._past)
            self.ceiling = ceiling_of(seen, self._load.most if shared else None)
            if self.ceiling is not None:
                self._best = scanned, self.ceiling
            elif self._best is not None and self._best[0] == scanned:
                self.ceiling = self._best[1]._replace(share=None)  # that of the scan before


LASTING = 15.0
"""Seconds for which another cause must be found before it replaces the one shown.

Three txgs, so that one burst of writes changes nothing.
"""


class VerdictFilter:
    """Filter for verdicts: the cause changes only if the evidence lasts."""

    def __init__(self) -> None:
        self._shown: Verdict | None = None
        self._stage: str | None = None
        self._other: tuple[str, str] | None = None
        """Cause and device of a verdict that may replace the one shown."""
        self._since = 0.0

    def push(
        self, clock: float, stage: str | None, found: Verdict | None, alternates: bool = False
    ) -> Verdict | None:
        """Add a verdict found at the monotonic ``clock``; return the one to show.

        ``alternates``: scanning and issuing alternate; then the limit of issuing is shown, once
        known.
        """
        shown = self._shown
        if alternates and stage != "issuing" and shown is not None and self._stage == "issuing":
            if shown.sure == 0:
                return found
            walking = f"{shown.text}, while issuing; now finding blocks"
            return shown if shown.cause == "memory" else shown._replace(text=walking)
        if found is None or shown is None or shown.sure == 0 or stage != self._stage:
            self._shown, self._stage, self._other = found, stage, None
        elif (found.cause, found.disk) == (shown.cause, shown.disk):
            self._shown, self._other = found, None
        elif (found.cause, found.disk) != self._other:
            self._other, self._since = (found.cause, found.disk), clock
        elif clock - self._since >= LASTING:
            self._shown, self._other = found, None
        return self._shown


UNEVEN = 0.9
"""Share of the sum of all vdevs' rates below which a scrub waits for one of them."""


def ceiling_of(seen: Evidence, bus: float | None = None) -> Ceiling | None:
    """Estimate the maximum of a running scan in issued bytes/s; None before any disk was active.

    A scan's rate counts allocated bytes: on a mirror those of one disk, on raidz those of all
    disks, parity included. So a scrub can reach one disk's rate per mirror, all disks' together per
    raidz, and lasts until the slowest vdev is done. A resilver reaches no more than the new disk's
    write rate, times the width of a raidz. ``bus`` is the known capacity of a shared link in
    bytes/s, over all disks.
    """
    walking = seen.stage == "scanning" and seen.scan.two_stage and seen.scan.function != "rebuild"
    if seen.scan.state != "running" or walking:
        return None
    rates = {
        key: _of_top(top, [disk for disk in seen.disks if disk.top == key])
        for key, top in seen.tops.items()
    }
    if not rates or not all(rates.values()):
        return None
    total, words = sum(rates.values()), "the best observed rates of the disks, summed"
    if seen.targets:
        words = "the new disk at its best observed rate"
    elif all(top.kind == "mirror" for top in seen.tops.values()):
        words = "the best observed rates of one disk per mirror, summed"
    # The average of the pass was possible, too, even if no sample showed it.
    average = float(seen.scan.zpool_issue_rate or 0)
    held = {key: size for key in rates if (size := seen.tops[key].alloc_bytes) is not None}
    if seen.scan.function == "scrub" and len(held) == len(rates) and any(held.values()):
        # What it reaches until the vdev with the most data for its rate is done.
        last = max(held, key=lambda key: held[key] / rates[key])
        reached = sum(held.values()) * rates[last] / held[last]
        if reached < UNEVEN * total:
            average = 0.0  # it includes vdevs that are done by now
            name = seen.tops[last].name
            words = f"{name} takes longest, at the best observed rates of its disks"
        total = min(total, reached)
    if bus is not None:
        # All sides of a mirror are read, so each issued byte crosses the link once per side.
        sides = [len(t.children) if t.kind == "mirror" else 1 for t in seen.tops.values()]
        limited = bus / max(1.0, sum(sides) / len(sides))
        if limited < total:
            total, words = limited, f"the shared link carries {rate(bus)}"
    return Ceiling(max(total, average), None, words).at(seen.rate)


def _of_top(top: Vdev, disks: list[Disk]) -> float:
    """Return the issued bytes/s that one top-level vdev allows; 0 if unknown."""
    sources = [d.past.best_read for d in disks if not d.target and d.past.best_read]
    targets = [d.past.best_write for d in disks if d.target and d.past.best_write]
    # The width converts bytes on one disk to allocated bytes.
    width = len(top.children) if top.kind.startswith(("raidz", "draid")) else 1
    read = min(sources, default=0.0) * width  # the slowest disk holds the others up
    if not any(d.target for d in disks):
        return read
    write = min(targets, default=0.0) * width
    if top.kind == "mirror":
        read = sum(sources)  # the sides of a mirror share the reads
    return min(write, read) if read else write


KEPT = 3600
"""Samples kept to measure effects."""


class TunableEffects:
    """Issue rate and latency of a pool over time, and the effect of changed tunables on them.

    It measures each large raise during one scan. It compares the kernel's values, so it notices a
    raise by anyone, and remembers one that was set back.
    """

    def __init__(self) -> None:
        self.steps: dict[str, TunableStep] = {}
        """Newest large raise, by tunable."""
        self.scan: ScanKey | None = None
        """The scan whose rates are known."""
        self._known: dict[str, int] = {}
        self._points: deque[EffectSample] = deque(maxlen=KEPT)
        """Samples by the monotonic clock."""
        self._changed: dict[str, float] = {}
        """Times (monotonic clock) of the steps not measured yet, by tunable."""
        self._times: list[float] = []

    def begin(self, scan: ScanKey | None) -> None:
        """Forget the rates and steps of the scan before: they say nothing about this one."""
        self.scan, self.steps = scan, {}
        self._points = deque((replace(p, issue_rate=None) for p in self._points), KEPT)
        for kept in (self._known, self._changed, self._times):
            kept.clear()

    @property
    def best_rate(self) -> float | None:
        """The highest issue rate seen during the scan, in bytes/s."""
        return max((p.issue_rate for p in self._points if p.issue_rate), default=None)

    def effect(self, changed: float, others: Iterable[float]) -> TunableEffect | None:
        """Return the effect of a change, as ``measure`` does; None if nothing was seen before it.

        Times are by the monotonic clock.
        """
        if not self._points or changed < self._points[0].t:
            return None
        return measure(self._points, changed, others)

    def add(self, point: EffectSample, tunables: Mapping[str, int]) -> set[str]:
        """Add a sample, its time by the monotonic clock; return the tunables that changed."""
        changed_names = set[str]()
        for name, value in tunables.items():
            before = self._known.setdefault(name, value)
            if value != before:
                changed_names.add(name)
                self._known[name] = value
                self._times.append(point.t)
                tried = self.steps.get(name)
                if tried is not None and before < value < tried.after:
                    continue  # a restored value, as by an autopilot: more was tried before
                if value >= LARGE_RAISE * before:
                    self.steps[name] = TunableStep(before, value, at=point.t)
                    self._changed[name] = point.t
                elif value < before and (changed := self._changed.pop(name, None)) is not None:
                    found = measure(self._points, changed, self._times)
                    if found.gain is None:
                        del self.steps[name]  # set back before it could be measured
                    else:
                        self.steps[name] = self.steps[name]._replace(effect=found)
        self._points.append(point)
        for name in list(self._changed):
            self._measure(point.t, name)
        return changed_names

    def _measure(self, clock: float, name: str) -> None:
        """Measure a step once enough samples follow it, or at once if none was before it."""
        changed = self._changed[name]
        cut = any(changed < t < clock for t in self._times)
        if not cut and changed < clock < changed + SETTLE + WINDOW:
            return
        found = measure(self._points, changed, self._times)
        if found.gain is None and not (cut or found.over):
            return  # samples are rare: wait for more
        del self._changed[name]
        self.steps[name] = self.steps[name]._replace(effect=found)
