"""From a sample and the pool's history to the frame that views read."""

from __future__ import annotations

from dataclasses import replace

from zconsole.diagnosis.outliers import slow_siblings
from zconsole.history import PoolHistory
from zconsole.history.series import RateSeries
from zconsole.monitor.frame import Frame, VdevRow
from zconsole.pool.balance import balance
from zconsole.pool.health import health, unreachable
from zconsole.pool.model import IoRates, Sample, SampleFailure
from zconsole.pool.redundancy import redundancy


def frame_of(sample: Sample, history: PoolHistory, flags: tuple[str, ...] = ()) -> Frame:
    """The frame of a fresh sample that ``history`` has just been given."""
    pool = sample.pool
    return Frame(
        pool=pool.name,
        sample=sample,
        failure=None,
        health=health(pool, sample.t, history.regrouped),
        scans=history.scan_views,
        activities=history.activity_views,
        redundancy=redundancy(pool.root, pool.scans, history.returned),
        rows=_rows(history),
        balance=balance(pool.root, sample.version),
        series=history.series,
        over_since=history.scans.over_since,
        events=history.events,
        flags=flags,
    )


def stale_frame(last: Frame, failure: SampleFailure, history: PoolHistory) -> Frame:
    """The last good frame, aged, with why there is no newer one; its tree and ETA stay.

    Rates are what diskstats still gives.
    """
    return replace(
        last,
        failure=failure,
        health=unreachable(failure, max(0.0, failure.t - last.t)),
        rows=tuple(_aged(row, history) for row in last.rows),
        events=history.events,
    )


def _aged(row: VdevRow, history: PoolHistory) -> VdevRow:
    missing = history.missing_since(row.key)
    return row._replace(rates=history.rates(row.key), missing_since=missing)


def blank_frame(failure: SampleFailure, series: RateSeries) -> Frame:
    """A frame for a pool that never gave a sample: its name and why."""
    why = unreachable(failure, 0.0)._replace(reasons=(failure.text,))
    return Frame(failure.pool, None, failure, why, series)


def _rows(history: PoolHistory) -> tuple[VdevRow, ...]:
    places = tuple(history.tree.values())
    rates = {place.key: history.rates(place.key) for place in places}
    slow = slow_siblings(places, rates)
    return tuple(
        VdevRow(
            key=place.key,
            depth=place.depth,
            vdev=place.vdev,
            rates=rates.get(place.key) or IoRates(),
            slow_sibling=slow.get(place.key),
            missing_since=history.missing_since(place.key),
        )
        for place in places
    )
