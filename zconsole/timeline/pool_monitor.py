"""One pool over time: from its samples and its history to the frames that views read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, tzinfo
from functools import partial
from typing import TypeVar

from zconsole.config.settings import SCRUB_OVERDUE_AFTER
from zconsole.diagnosis.bottleneck.tracker import BottleneckTracker
from zconsole.diagnosis.device_errors.faults import returned
from zconsole.diagnosis.device_errors.tracker import DeviceErrorTracker
from zconsole.diagnosis.outliers import slow_siblings
from zconsole.pool.balance import Balance, balance
from zconsole.pool.health import (
    DeviceStates,
    device_states,
    health,
    unreachable,
    without_redundancy,
)
from zconsole.pool.model import Pool, Sample, SampleFailure, Vdev
from zconsole.pool.redundancy import REPAIRS, Redundancy, of_pool
from zconsole.pool.spares import spare_troubles
from zconsole.timeline.eta.estimate import SUSPENDED, nothing
from zconsole.timeline.frame import ActivityView, Frame, ScanView, VdevRow
from zconsole.timeline.pool import PoolHistory
from zconsole.timeline.rates import NONE
from zconsole.timeline.scrubs import ScrubTracker
from zconsole.timeline.worked_out import WorkedOut

_ROW = partial(tuple.__new__, VdevRow)
"""Makes one of its fields; every sample makes one for every vdev."""


class PoolMonitor:
    """Turns the samples of one pool into frames; takes every sample, in order."""

    def __init__(
        self,
        zone: tzinfo = UTC,
        flags: tuple[str, ...] = (),
        scrub_overdue_after: float | None = SCRUB_OVERDUE_AFTER,
    ) -> None:
        """``scrub_overdue_after``: seconds; None: scrubs are not judged."""
        self.history = PoolHistory(zone)
        self.scrubs = ScrubTracker(scrub_overdue_after)
        self._flags = flags
        self._bottleneck = BottleneckTracker()
        self._device_errors = DeviceErrorTracker()
        self._counted: object = None
        """``history.still`` when errors and states of devices were last taken in."""
        self._states = WorkedOut[DeviceStates]()
        self._redundancy = WorkedOut[tuple[tuple[Vdev, Redundancy], ...]]()
        self._balance = WorkedOut[Balance]()

    def push(self, sample: Sample) -> Frame:
        """The frame of a fresh sample."""
        history, bottleneck, pool = self.history, self._bottleneck, sample.pool
        history.push(sample)
        if self._counted is not history.still:
            self._device_errors.push(sample.t, history.tree)
            self._counted = history.still
        scans = [view.watched for view in history.scan_views]
        bottleneck.push(sample, history.tree, history.rates, scans)
        troubles = self._device_errors.faults(sample.t, history.tree, history.events, pool.scans)
        damaged = self._device_errors.damaged(pool.scans)
        spares = spare_troubles(pool.root, pool.scans, sample.t, history.returned)
        unsteady = (f"{fault.name}: {returned(fault.flaps)}" for fault in troubles if fault.flaps)
        states = self._states.of((history.still,), partial(device_states, pool.root))
        left = self._redundancy_of(pool)
        unchecked = history.damage.unchecked(pool, sample.t)
        word = health(
            pool, sample.t, history.regrouped, unsteady, damaged, spares, states, unchecked
        )
        word = without_redundancy(word, left, pool.scans)
        return Frame(
            pool=pool.name,
            sample=sample,
            failure=None,
            health=word,
            scans=history.scan_views,
            activities=history.activity_views,
            redundancy=tuple(entry for _, entry in left),
            rows=_rows(history),
            balance=self._balance.of(
                (history.still, sample.version), partial(balance, pool.root, sample.version)
            ),
            still=history.still,
            series=history.series,
            over_since=history.scans.over_since,
            events=history.events,
            flags=self._flags,
            limit=bottleneck.verdict,
            ceiling=bottleneck.ceiling,
            troubles=troubles,
            spares=spares,
            scrub=self.scrubs.push(sample),
            past=history.scans.past,
        )

    def _redundancy_of(self, pool: Pool) -> tuple[tuple[Vdev, Redundancy], ...]:
        # Bytes of a repair, which move with every sample, make no difference.
        repairs = tuple(
            (scan.function, scan.vdev, scan.state, scan.end, scan.errors)
            for scan in pool.scans
            if scan.function in REPAIRS
        )
        returned, checkpoint = self.history.returned, pool.checkpoint is not None
        work = partial(of_pool, pool, returned)
        return self._redundancy.of((self.history.still, repairs, returned, checkpoint), work)

    def push_failure(self, failure: SampleFailure, last: Frame | None) -> Frame:
        """The frame of a pool without a sample, from ``last``, the frame of its newest sample.

        Its tree and ETA stay, aged, with the reason why there is no newer one; rates are those
        that diskstats still has. While it is suspended nothing moves, so there is no ETA. A pool
        that never gave a sample has only its name and the reason.
        """
        history = self.history
        history.push_failure(failure)
        if last is None:
            why = unreachable(failure, 0.0)._replace(reasons=(failure.text,))
            return Frame(failure.pool, None, failure, why, history.series)
        still = failure.kstat == "SUSPENDED"
        return replace(
            last,
            failure=failure,
            health=unreachable(failure, max(0.0, failure.t - last.t)),
            scans=tuple(map(_halted, last.scans)) if still else last.scans,
            activities=tuple(map(_halted, last.activities)) if still else last.activities,
            rows=tuple(_aged(row, history) for row in last.rows),
            events=history.events,
        )


_View = TypeVar("_View", ScanView, ActivityView)


def _halted(view: _View) -> _View:
    """The view of a scan or activity while its pool is suspended; of one that is over, as it is."""
    work = view.scan if isinstance(view, ScanView) else view.activity
    if work.state != "running":
        return view
    if isinstance(view, ScanView):
        view = view._replace(scan_rate=None, issue_rate=None, full=None, lag=None)
    return view._replace(estimate=nothing(SUSPENDED))


def _aged(row: VdevRow, history: PoolHistory) -> VdevRow:
    rates, missing = history.rates.get(row.key, NONE), history.missing.get(row.key)
    return row._replace(rates=rates, missing_since=missing)


def _rows(history: PoolHistory) -> tuple[VdevRow, ...]:
    places = tuple(history.tree.values())
    keys, depths, vdevs, _, _ = zip(*places, strict=True)
    rates = map(history.rates.__getitem__, keys)
    slow = map(slow_siblings(places, history.rates).get, keys)
    missing = map(history.missing.get, keys)
    return tuple(map(_ROW, zip(keys, depths, vdevs, rates, slow, missing, strict=True)))
