"""One pool over time: takes every sample and returns the frame that views read.

Does no I/O and reads no clock: time comes with the samples. A pool with a thousand leaves costs
some ten milliseconds per sample, and memory is bounded by ring buffers and windows.
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, tzinfo
from math import inf
from types import MappingProxyType
from typing import Any, TypeVar

from zconsole.config.settings import SCRUB_OVERDUE_AFTER
from zconsole.diagnosis.bottleneck.evidence import WatchedScan
from zconsole.diagnosis.bottleneck.tracker import BottleneckTracker
from zconsole.diagnosis.device_errors.faults import DeviceErrorTracker, DeviceFault
from zconsole.pool.balance import balance
from zconsole.pool.health import (
    SpareProblem,
    health,
    spare_problems,
    unreachable,
    without_redundancy,
)
from zconsole.pool.model import Placed, Sample, SampleFailure, Scan, placed
from zconsole.pool.redundancy import redundancy, unmarked_repairs
from zconsole.pool.spares import idle_spares
from zconsole.timeline.activities import ActivityTracker
from zconsole.timeline.eta.estimate import SUSPENDED, nothing
from zconsole.timeline.events import LEAST_LEAP, Absences, EventLog, is_ahead
from zconsole.timeline.frame import ActivityView, Frame, ScanView, VdevRow
from zconsole.timeline.rates import NONE, SCAN_METRICS, DatasetTracker, PoolRates, slow_siblings
from zconsole.timeline.scans import ScanTracker
from zconsole.timeline.scrubs import DamageTracker, ScrubTracker


def _reduced(mapping: MappingProxyType[Any, Any]) -> tuple[type, tuple[dict[Any, Any]]]:
    return MappingProxyType, (dict(mapping),)


copyreg.pickle(MappingProxyType, _reduced)  # else empty defaults of samples cannot be copied


class PoolTimeline:
    """State of one pool; takes every sample, in order, and builds its frame."""

    def __init__(
        self,
        zone: tzinfo = UTC,
        flags: tuple[str, ...] = (),
        scrub_overdue_after: float | None = SCRUB_OVERDUE_AFTER,
        goes_on: bool = False,
    ) -> None:
        """``scrub_overdue_after`` is in seconds; None if scrubs are not to be judged.

        ``goes_on`` is True if more than one sample is taken: then the first one gives no end.
        """
        self.frame: Frame | None = None
        """Frame of the newest sample; None before the first."""
        self.events = EventLog()
        self.absences = Absences()
        self.damage = DamageTracker(zone)
        self.rates = PoolRates()
        self.datasets = DatasetTracker()
        self.scans = ScanTracker(zone, goes_on)
        self.activities = ActivityTracker(goes_on)
        self.scrubs = ScrubTracker(scrub_overdue_after)
        self._errors = DeviceErrorTracker()
        self._limit = BottleneckTracker()
        self._flags = flags
        self._tree: Mapping[str, Placed] = {}
        """Vdevs of the newest sample by key, in the order ``zpool status`` prints."""
        self._known: Mapping[str, Placed] = {}
        """Vdevs by key, including those that the newest sample did not show although nothing says
        that they left."""
        self._newest: Sample | SampleFailure | None = None
        self._leaps: dict[tuple[str, float], float] = {}
        """Seconds by which to shift the times of scans from before the clock was set back, by
        function and start (or end)."""

    @property
    def until(self) -> float:
        """Time of the newest sample or failure (epoch seconds); minus infinity before any."""
        return -inf if self._newest is None else self._newest.t

    def copy(self) -> PoolTimeline:
        """Return a copy to which other samples can be added than to this one."""
        # What never changes is shared.
        shared = [self.frame, self._tree, self._known, self._newest]
        if self.frame is not None:
            shared.append(self.frame.sample)
        return deepcopy(self, {id(each): each for each in shared if each is not None})

    def push(self, sample: Sample) -> Frame:
        """Add a sample and build its frame."""
        pool = sample.pool
        tree = self._tree = {place.key: place for place in placed(pool.root)}
        # Cut-off text, or JSON without a tree, does not show vdevs that are there all the same.
        before = self._known
        known = tree if pool.root.children else before
        if any(top.partial for top in pool.root.children):
            known = {**before, **tree}
        self._known = known
        last = self.frame.sample if self.frame else None
        self._follow_clock(sample, pool.scans)
        # With times by the present clock, as all remembered times are.
        dated = sample
        if self._leaps:
            dated = replace(sample, pool=replace(pool, scans=tuple(map(self._dated, pool.scans))))

        # Changes first. Changes of devices come before those of scans, because the cause of a
        # restart is among them.
        self.absences.push(dated, known, before)
        root = self.absences.marked(pool.root, known)
        if root is not pool.root:
            pool = replace(pool, root=root)
            sample = replace(sample, pool=pool)
            dated = replace(dated, pool=replace(dated.pool, root=root))
            tree = self._tree = {place.key: place for place in placed(root)}
            self._known = known = {**known, **tree}
        self.events.push(sample, known, last, before)
        self.damage.push(dated, known)
        self._errors.push(sample.t, known)

        # Rates and estimates.
        self.rates.push(sample.t, sample.clock, tree)
        happened, scans = self.scans.push(sample, self.events.all)
        self.events.merge(happened)
        rates = {view.key: (view.scan_rate, view.issue_rate) for view in scans}
        self.rates.series.put(SCAN_METRICS, rates)
        is_scanning = any(view.scan.state == "running" for view in scans)
        self.datasets.push(sample.clock, sample.datasets, is_scanning)
        activities = self.activities.push(sample)
        events = self.events.all

        # Problems: what limits the scan, devices, spares, redundancy.
        if last is not None and sample.clock < last.clock:
            self._limit = BottleneckTracker()  # its state uses the clock from before a reboot
        watched = [WatchedScan(v.scan, v.stage, v.issue_rate, v.window is None) for v in scans]
        busiest = self.datasets.busiest
        self._limit.push(sample, tree, self.rates.now, watched, busiest or ())
        troubles = self._errors.faults(sample.t, tree, events, dated.pool.scans)
        back = self.absences.returned
        spares = (
            *spare_problems(pool.root, pool.scans, sample.t, back),
            *self._idle_spares(sample, tree, troubles),
        )
        lacking = self.absences.unfilled(sample)
        left = redundancy(lacking)
        word = health(
            pool,
            sample.t,
            regrouped=self.absences.regrouped,
            unsteady=(each.unsteady for each in troubles if each.flaps),
            damaged=self._errors.damaged(dated.pool.scans),
            spares=spares,
            unchecked=self.damage.unchecked(dated.pool, sample.t),
        )
        self.frame = Frame(
            pool=pool.name,
            sample=sample,
            failure=None,
            health=without_redundancy(
                word, left, pool.scans, unmarked_repairs(lacking.root, pool.scans)
            ),
            series=self.rates.series,
            scans=scans,
            activities=activities,
            redundancy=tuple(entry for _, entry in left),
            rows=self._rows(),
            balance=balance(pool.root, sample.version, pool.volumes),
            over_since=self.scans.over_since,
            events=events,
            flags=self._flags,
            limit=self._limit.verdict,
            busiest_datasets=busiest,
            ceiling=self._limit.ceiling,
            troubles=troubles,
            failed_disks=self._errors.failed,
            minutes_watched=self._errors.minutes_watched(sample.t),
            spares=spares,
            quiet_since=self._errors.quiet_since,
            scrub=self.scrubs.push(dated),
            past=self.scans.past,
            age=sample.age,
            effects=self._limit.effects,
        )
        return self.frame

    def _idle_spares(
        self, sample: Sample, tree: Mapping[str, Placed], troubles: Iterable[DeviceFault]
    ) -> Iterator[SpareProblem]:
        """Return the spares that stand idle, but for devices that most likely are good."""
        judged = tree.keys() - {fault.key for fault in troubles if fault.common}
        failed = {key: t for key, t in self.absences.failed.items() if key in judged}
        zed = sample.host.zed if sample.host else None
        return idle_spares(sample.pool, tree, failed, sample.t, zed)

    def push_failure(self, failure: SampleFailure) -> Frame:
        """Build the frame of a pool without a new sample, from that of its newest sample.

        Its tree and ETA stay as they were: the ETA is not counted down, but the frame's
        ``stale_seconds`` give its age, and ``failure`` the reason why there is no newer one. Rates
        come from diskstats where available. While the pool is suspended nothing moves, so there is
        no ETA. A pool that never gave a sample has only its name and the reason.
        """
        self._follow_clock(failure, self.frame.seen.scans if self.frame else ())
        tree = {key: _with_block(place, failure) for key, place in self._known.items()}
        lost = self.absences.push_failure(failure, tree, self._known)
        self.events.push_failure(failure, lost)
        self.rates.push(failure.t, failure.clock, tree)
        last = self.frame
        if last is None:
            why = unreachable(failure, 0.0)._replace(reasons=(failure.text,))
            series = self.rates.series
            return Frame(failure.pool, None, failure, why, series, minutes_watched=0)
        suspended = failure.kstat == "SUSPENDED"
        rates, missing = self.rates.now, self.absences.missing
        return replace(
            last,
            failure=failure,
            series=self.rates.series,
            effects=self._limit.effects,
            busiest_datasets=None if suspended else last.busiest_datasets,
            health=unreachable(failure, max(0.0, failure.t - last.t)),
            scans=tuple(map(_halted, last.scans)) if suspended else last.scans,
            activities=tuple(map(_halted, last.activities)) if suspended else last.activities,
            rows=tuple(
                row._replace(rates=rates.get(row.key, NONE), missing_since=missing.get(row.key))
                for row in last.rows
            ),
            events=self.events.all,
        )

    def _follow_clock(self, seen: Sample | SampleFailure, scans: Sequence[Scan]) -> None:
        """Shift remembered times if the clock was set since the previous sample.

        After a reboot, and for damage that an earlier console saw, only a clock set back can be
        detected.
        """
        last, self._newest = self._newest, seen
        if last is None or seen.clock < last.clock:
            leap = min(0.0, seen.t - (last or self.damage.last).t)
        else:
            leap = seen.t - last.t - (seen.clock - last.clock)
        if abs(leap) < LEAST_LEAP:
            return
        for tracker in (self.events, self.absences, self._errors, self.scans):
            tracker.shift(leap)
        if leap < 0:
            self.damage.set_back(leap)
            for scan in scans:
                known = self._leaps.get(_when(scan), 0.0)
                if is_ahead(_when(scan)[1] + known, seen.t):
                    self._leaps[_when(scan)] = known + leap

    def _dated(self, scan: Scan) -> Scan:
        """Return a scan with its times by the present clock."""
        leap, start, end = self._leaps.get(_when(scan), 0.0), scan.start, scan.end
        if end is not None and end >= (start or 0.0):  # else it ended after the clock was set back
            end += leap
        return scan._replace(start=start and start + leap, end=end)

    def _rows(self) -> tuple[VdevRow, ...]:
        places = tuple(self._tree.values())
        rates, missing = self.rates.now, self.absences.missing
        slow, limit = slow_siblings(places, rates), self._limit.verdict
        if limit is not None and limit.cause == "slow-disk":
            # What stands out varies between samples; the verdict on the scan is steadier.
            blamed = (key for key, place in self._tree.items() if place.vdev.name == limit.disk)
            slow = dict.fromkeys(blamed, limit.mark) | slow
        return tuple(
            VdevRow(key, depth, vdev, rates[key], slow.get(key), missing.get(key))
            for key, depth, vdev, _, _ in places
        )


def _when(scan: Scan) -> tuple[str, float]:
    """Identify a scan by its time; text has no start time for a finished one."""
    return scan.function, scan.start or scan.end or 0.0


_View = TypeVar("_View", ScanView, ActivityView)


def _halted(view: _View) -> _View:
    """Return the view of a scan or activity for a suspended pool, if it is running.

    Others are returned unchanged.
    """
    work = view.scan if isinstance(view, ScanView) else view.activity
    if work.state != "running":
        return view
    if isinstance(view, ScanView):
        view = view._replace(scan_rate=None, issue_rate=None, full=None, lag="")
    return view._replace(estimate=nothing(SUSPENDED))


def _with_block(place: Placed, failure: SampleFailure) -> Placed:
    """Return the vdev with only the block counters that are still available."""
    block = failure.block.get(place.vdev.path or "")
    vdev = place.vdev._replace(io=None, rates=None, histograms={}, block=block)
    return place._replace(vdev=vdev)
