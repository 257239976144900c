"""One pool over time: from its samples and its history to the frames that views read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, tzinfo
from typing import TypeVar

from zconsole.config.settings import SCRUB_OVERDUE_AFTER
from zconsole.diagnosis.bottleneck.tracker import BottleneckTracker
from zconsole.diagnosis.device_errors.faults import returned
from zconsole.diagnosis.device_errors.tracker import DeviceErrorTracker
from zconsole.diagnosis.outliers import slow_siblings
from zconsole.pool.balance import balance
from zconsole.pool.health import health, unreachable, without_redundancy
from zconsole.pool.model import Sample, SampleFailure
from zconsole.pool.redundancy import of_pool
from zconsole.pool.spares import spare_troubles
from zconsole.timeline.eta.estimate import SUSPENDED, nothing
from zconsole.timeline.frame import Frame, VdevRow
from zconsole.timeline.pool import PoolHistory
from zconsole.timeline.rates import NONE
from zconsole.timeline.scrubs import ScrubTracker
from zconsole.timeline.views import ActivityView, ScanView


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

    def push(self, sample: Sample) -> Frame:
        """The frame of a fresh sample."""
        history, bottleneck, pool = self.history, self._bottleneck, sample.pool
        history.push(sample)
        self._device_errors.push(sample.t, history.tree)
        scans = [view.watched for view in history.scan_views]
        bottleneck.push(sample, history.tree, history.rates, scans)
        troubles = self._device_errors.faults(sample.t, history.tree, history.events, pool.scans)
        damaged = self._device_errors.damaged(pool.scans)
        spares = spare_troubles(pool.root, pool.scans, sample.t, history.returned)
        unsteady = (f"{fault.name}: {returned(fault.flaps)}" for fault in troubles if fault.flaps)
        left = of_pool(pool, history.returned)
        unchecked = history.damage.unchecked(pool, sample.t)
        word = health(pool, sample.t, history.regrouped, unsteady, damaged, spares, unchecked)
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
            balance=balance(pool.root, sample.version),
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
    rates, missing, slow = history.rates, history.missing, slow_siblings(places, history.rates)
    return tuple(
        VdevRow(key, depth, vdev, rates[key], slow.get(key), missing.get(key))
        for key, depth, vdev, _, _ in places
    )
