"""The past of one pool: rates, scans, activities and changes, from its samples.

Pure: time comes with the samples. A pool with a thousand leaves costs a few ms a sample, and the
rings and windows bound the memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from math import inf

from zconsole.pool.model import BlockCounters, Event, IoRates, Sample, SampleFailure, Vdev
from zconsole.pool.redundancy import REPAIRS
from zconsole.pool.spares import STANDING
from zconsole.pool.topology import Placed, is_group, placed
from zconsole.timeline.activities import ActivityTracker
from zconsole.timeline.changes import device_changes, pool_change, without_duplicates
from zconsole.timeline.damage import DamageTracker
from zconsole.timeline.rates import NONE, RateWindows
from zconsole.timeline.scans import ScanTracker
from zconsole.timeline.series import RateSeries
from zconsole.timeline.views import ActivityView, ScanView

MAX_EVENTS = 500
NO_DATA = ("cache", "spare")
"""Classes whose I/O is not part of the pool's own sum."""


class PoolHistory:
    """The past of one pool; takes every sample, in order."""

    def __init__(self, tz: tzinfo = UTC) -> None:
        self.series = RateSeries()
        self.scans = ScanTracker(tz)
        self.activities = ActivityTracker()
        self.damage = DamageTracker(tz)
        self.tree: Mapping[str, Placed] = {}
        """The vdevs of the newest sample by key, in the order ``zpool status`` prints."""
        self.scan_views: tuple[ScanView, ...] = ()
        """The scans of the newest sample, in its order."""
        self.activity_views: tuple[ActivityView, ...] = ()
        """Its removal, expansion, checkpoint, and every trim and initialize."""
        self._windows = RateWindows()
        self.rates: dict[str, IoRates] = {}
        """Windowed rates of every vdev by its key (from ``pool.topology.placed``).

        An interior vdev has the kernel's own counters where there are any, else the sum of its
        leaves; its latency is the leaves' mean by requests, its busy share the busiest leaf's.
        """
        self.missing: dict[str, float] = {}
        """Epoch seconds at which a vdev was seen to leave ONLINE, by its key."""
        self._away: dict[str, Placed] = {}
        """The vdevs of the newest sample that are not ONLINE, by key."""
        self._returned: dict[str, float] = {}
        self._unfilled: frozenset[str] = frozenset()
        self.regrouped: float | None = None
        """When a replacing or spare vdev, or a waiting device, last appeared."""
        self._events: deque[Event] = deque(maxlen=MAX_EVENTS)
        self._last: Sample | None = None
        self._in_gap = False

    def push(self, sample: Sample) -> None:
        """Take in a sample of the pool."""
        self._in_gap = False
        tree = {place.key: place for place in placed(sample.pool.root)}
        # Changes of devices come before what scans did: a restart has its cause among them.
        if self._last is not None:
            self._notice(sample, tree)
        gap = sample.t - self._last.t if self._last is not None else 0.0
        self._tell(sample.events, gap, sample.t)
        self._track_regrouped(sample.t, tree)
        self._track_away(sample, tree)
        self.damage.push(sample, tree)
        self._measure(sample.t, sample.clock, tree)
        leaves = [place.vdev for place in tree.values() if not place.vdev.children]
        waiting = tuple(leaf.name for leaf in leaves if leaf.awaiting_resilver)
        self._tell(self.scans.push(sample, waiting, self._events), gap, sample.t)
        self.scan_views = self.scans.views(sample)
        tended = tuple(p for p in tree.values() if p.vdev.trim or p.vdev.initialize)
        self.activity_views = self.activities.push(sample, tended)
        self.series.put_scans({v.key: (v.scan_rate, v.issue_rate) for v in self.scan_views})
        self.tree, self._last = tree, sample

    def push_failure(self, failure: SampleFailure) -> None:
        """Take in a failed sample; the figures of diskstats continue."""
        if failure.gap and not self._in_gap:
            self._events.append(Event(failure.t, "gap", failure.text, "info", None, "console"))
        self._in_gap = failure.gap
        tree = {key: _with_block(place, failure) for key, place in self.tree.items()}
        for key, place in tree.items():
            lost = bool(failure.block and self.tree[key].vdev.block and not place.vdev.block)
            if (lost or place.vdev.path in failure.gone) and key not in self.missing:
                self.missing[key] = failure.t
                name = place.vdev.name
                text = f"the device of {name} is gone"
                self._events.append(Event(failure.t, "device_gone", text, "error", name, "console"))
            elif place.vdev.block and self.tree[key].vdev.state == "ONLINE":
                self.missing.pop(key, None)  # it is back, which the pool cannot say yet
        self._measure(failure.t, failure.clock, tree)

    @property
    def events(self) -> tuple[Event, ...]:
        """Events of ``zpool events`` and of the console itself, newest last."""
        return tuple(self._events)

    @property
    def returned(self) -> frozenset[str]:
        """Names of leaves that returned ONLINE, until a later repair has finished.

        They lack what was written while they were away; no source shows that before the first
        repaired byte.
        """
        return frozenset(self._returned)

    def _tell(self, events: Sequence[Event], gap: float, now: float) -> None:
        if events:
            self._events = deque(without_duplicates(self._events, events, gap, now), MAX_EVENTS)

    def _notice(self, sample: Sample, tree: dict[str, Placed]) -> None:
        old = self._last.pool if self._last else sample.pool
        reported = {_subject(event) for event in sample.events}
        seen = [
            *pool_change(sample.t, old.state, sample.pool.state),
            *device_changes(sample.t, self.tree, tree),
        ]
        self._events.extend(event for event in seen if _subject(event) not in reported)

    def _track_away(self, sample: Sample, tree: dict[str, Placed]) -> None:
        away = {key: place for key, place in tree.items() if place.vdev.state != "ONLINE"}
        missing = {key for key, place in away.items() if place.vdev.state not in STANDING}
        self.missing = {key: since for key, since in self.missing.items() if key in missing}
        for key in (missing - self._away.keys()) & self.tree.keys():
            self.missing.setdefault(key, sample.t)
        self._track_returned(sample, [tree[key].vdev for key in self._away if key in tree], away)
        self._away = away

    def _track_returned(
        self, sample: Sample, were_away: Iterable[Vdev], away: dict[str, Placed]
    ) -> None:
        ends = [s.end for s in sample.pool.scans if s.function in REPAIRS and s.end is not None]
        repaired = max(ends, default=-inf)
        back = [vdev for vdev in were_away if vdev.state == "ONLINE"]
        self._returned |= dict.fromkeys(_leaves_with_data(back), sample.t)
        gone = set(_leaves_with_data(place.vdev for place in away.values()))
        self._returned = {
            name: t for name, t in self._returned.items() if name not in gone and t > repaired
        }

    def _track_regrouped(self, t: float, tree: dict[str, Placed]) -> None:
        left = (key for key, p in tree.items() if is_group(p.vdev) or p.vdev.awaiting_resilver)
        unfilled = frozenset(left)
        if self._last is not None and unfilled - self._unfilled:
            self.regrouped = t
        self._unfilled = unfilled

    def _measure(self, t: float, clock: float, tree: dict[str, Placed]) -> None:
        self.series.forget(self.rates.keys() - tree.keys())
        windows = self._windows
        windows.add(clock, {key: place.vdev for key, place in tree.items()})
        self.rates = windows.windowed()
        fill_in(tree, self.rates, windows.short())
        self.series.advance(t)
        latest = windows.latest()
        fill_in(tree, latest, {})  # one interval long for all: there is no span to compare
        self.series.put_devices(latest)


def fill_in(tree: dict[str, Placed], rates: dict[str, IoRates], short: Mapping[str, float]) -> None:
    """Give every interior vdev what it lacks, from its children, bottom up.

    It lacks all that its own counters tell over a shorter time than its children's: they fell when
    a device left, and started again. ``short``: seconds covered where it is less than for most.
    """
    below: dict[str, list[str]] = {}
    covered = dict(short)
    for key, depth, vdev, parent, _ in reversed(tree.values()):  # children behind their parents
        if (children := below.pop(key, None)) is not None:
            own = rates[key]
            if covered:
                longest = max([covered.get(child, inf) for child in children])
                own = own if covered.get(key, inf) >= longest else NONE
                covered[key] = max(covered.get(key, inf), longest)
            rates[key] = _merged(own, [rates[child] for child in children])
        if parent is not None and (depth > 1 or vdev.vclass not in NO_DATA):
            below.setdefault(parent, []).append(key)


def _merged(own: IoRates, below: list[IoRates]) -> IoRates:
    busy = max([r.busy for r in below if r.busy is not None], default=None)
    latency = own.latency if own.latency is not None else _mean_latency(below)
    if own.read is not None:
        return IoRates(own.read, own.write, own.read_ops, own.write_ops, latency, busy)
    return IoRates(
        read=_sum(r.read for r in below),
        write=_sum(r.write for r in below),
        read_ops=_sum(r.read_ops for r in below),
        write_ops=_sum(r.write_ops for r in below),
        latency=latency,
        busy=busy,
    )


def _sum(values: Iterable[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def _mean_latency(below: list[IoRates]) -> float | None:
    requests = waited = 0.0
    for _, _, reads, writes, latency, _ in below:
        if latency is not None:
            count = (reads or 0.0) + (writes or 0.0)
            requests += count
            waited += count * latency
    return waited / requests if requests > 0 else None


def _leaves_with_data(vdevs: Iterable[Vdev]) -> Iterator[str]:
    """The names of those that are devices with the pool's data."""
    return (v.name for v in vdevs if not v.children and v.vclass not in NO_DATA)


def _subject(event: Event) -> tuple[str, str | None]:
    """The vdev of an event: the kernel names only the last part of the path zpool shows."""
    return event.name, event.vdev and event.vdev.rpartition("/")[2]


def _with_block(place: Placed, failure: SampleFailure) -> Placed:
    """The vdev with only the block counters that are still available."""
    block: BlockCounters | None = failure.block.get(place.vdev.path or "")
    vdev = place.vdev._replace(io=None, rates=None, histograms={}, block=block)
    return place._replace(vdev=vdev)
