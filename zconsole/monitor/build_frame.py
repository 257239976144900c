"""From a sample and the pool's history to the frame that views read."""

from __future__ import annotations

from zconsole.diagnosis.outliers import slow_siblings
from zconsole.history import PoolHistory
from zconsole.history.views import Series
from zconsole.monitor.frame import Frame, VdevRow
from zconsole.pool.balance import Balance, balance
from zconsole.pool.health import Health, health, unreachable
from zconsole.pool.model import IoRates, Sample, SampleFailure
from zconsole.pool.redundancy import redundancy
from zconsole.pool.topology import placed


def frame_of(sample: Sample, history: PoolHistory, flags: tuple[str, ...] = ()) -> Frame:
    """The frame of a fresh sample that ``history`` has already been given."""
    pool = sample.pool
    left = redundancy(pool.root, pool.scans, history.returned)
    return Frame(
        t=sample.t,
        source=sample.source,
        exact=sample.exact,
        pool=pool.name,
        guid=pool.guid,
        state=pool.state,
        message=pool.message,
        action=pool.action,
        see=pool.see,
        error_count=pool.error_count,
        errors=pool.errors,
        stale_seconds=0.0,
        problem=None,
        kstat=sample.kstat,
        health=health(pool, sample.t, history.regrouped),
        scans=history.scan_views(sample),
        activities=history.activity_views(sample),
        redundancy=left,
        rows=_rows(sample, history),
        balance=balance(pool.root, sample.version),
        series=history.series,
        events=history.events,
        host=sample.host,
        version=sample.version,
        comment=pool.comment,
        flags=flags,
        limit=history.limits.verdict,
        ceiling=history.limits.ceiling,
        tunables=sample.tunables,
        troubles=history.troubles(sample.t),
        looked=sample.began,
    )


def stale_frame(last: Frame, trouble: SampleFailure, history: PoolHistory) -> Frame:
    """The last good frame, aged, with why there is no newer one; its tree and ETA stay.

    Rates are what diskstats still gives.
    """
    age = max(0.0, trouble.t - last.t)
    return last._replace(
        stale_seconds=age,
        problem=trouble.text,
        kstat=trouble.kstat,
        health=unreachable(trouble, age),
        absent=trouble.absent,
        rows=tuple(_aged(row, history) for row in last.rows),
        events=history.events,
        host=trouble.host or last.host,
        looked=trouble.began,
    )


def _aged(row: VdevRow, history: PoolHistory) -> VdevRow:
    missing = history.missing_since(row.key)
    return row._replace(rates=history.rates(row.key), missing_since=missing)


def blank_frame(trouble: SampleFailure, series: Series) -> Frame:
    """A frame for a pool that never gave a sample: its name and why."""
    return Frame(
        t=trouble.t,
        source=None,
        exact=False,
        pool=trouble.pool,
        guid=None,
        state=trouble.kstat,
        message=None,
        action=None,
        error_count=None,
        errors=None,
        stale_seconds=None,
        problem=trouble.text,
        kstat=trouble.kstat,
        health=_never_seen(trouble),
        scans=(),
        activities=(),
        redundancy=(),
        rows=(),
        balance=Balance(None, None, None),
        series=series,
        host=trouble.host,
        looked=trouble.began,
    )


def _never_seen(trouble: SampleFailure) -> Health:
    found = unreachable(trouble, 0.0)
    return found._replace(reasons=(trouble.text,))


def _rows(sample: Sample, history: PoolHistory) -> tuple[VdevRow, ...]:
    places = placed(sample.pool.root)
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
