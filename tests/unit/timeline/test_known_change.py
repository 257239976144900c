"""Estimates that follow a change of speed caused by tunables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.timeline.following import MIB, T, resilver, sample, view, watched
from tests.unit.timeline.test_store import again
from zconsole.pool.model import Sample
from zconsole.sim.source import World
from zconsole.timeline import scan_rate
from zconsole.timeline.frame import ScanView
from zconsole.timeline.session import Session
from zconsole.tunables.effect import SETTLE

pytestmark = pytest.mark.slow

AT, STEP = 3600, 30
TOTAL = 400_000 * MIB
FOLLOWED = round(SETTLE) + 300
"""Seconds after a change by which the estimate follows it."""


def course(rates: dict[int, float], values: dict[int, int], last: int) -> Iterator[Sample]:
    """Yield a scan whose rate (MiB/s) and tunable change at these seconds, until ``last``."""
    issued = 0.0
    for t in range(0, last, STEP):
        issued += rates[max(n for n in rates if n <= t)] * MIB * STEP
        value = values[max(n for n in values if n <= t)]
        one = sample(t, resilver(issued, total_bytes=TOTAL, scanned_bytes=TOTAL))
        yield replace(one, tunables={"zfs_vdev_scrub_max_active": value})


def told(rates: dict[int, float], values: dict[int, int], last: int) -> ScanView:
    """Return the view of the scan at ``last``."""
    return _told(tuple(rates.items()), tuple(values.items()), last)


@cache
def _told(
    rates: tuple[tuple[int, float], ...], values: tuple[tuple[int, int], ...], last: int
) -> ScanView:
    samples = list(course(dict(rates), dict(values), last))
    return view(watched(*samples))


def at_rate(found: ScanView, rate: float) -> float:
    return (TOTAL - (found.scan.issued_bytes or 0)) / (rate * MIB)


@rows(("before", "after"), [(10, 20), (20, 10)])
def test_a_rate_that_changed_as_tunables_did_is_followed_within_minutes(before, after):
    found = told({0: before, AT: after}, {0: 3, AT: 6}, AT + FOLLOWED)
    assert found.estimate.eta == pytest.approx(at_rate(found, after), rel=0.05)
    assert found.estimate.reason.startswith("ETA by the rate since tunables changed 6m")
    assert found.lag
    assert found.estimate.reason.startswith(found.lag)


def test_the_range_still_has_what_was_told_before():
    rates = {0: 10.0, AT: 20.0}
    found = told(rates, {0: 3, AT: 6}, AT + FOLLOWED)
    usual = told(rates, {0: 3}, AT + FOLLOWED)
    assert found.estimate.low < found.estimate.eta < usual.estimate.eta <= found.estimate.high


@rows(("before", "after"), [(10, 40), (40, 10), (10, 14)])
def test_the_range_has_the_end_at_a_rate_that_is_not_followed_yet(before, after):
    """Above "ETA 1d09h if it holds" stood a range of 2h31m to 18h41m, for minutes."""
    timeline, waiting = watched(), 0
    for one in course({0: before, AT: after}, {0: 3, AT: 6}, AT + FOLLOWED):
        timeline.push(one)
        found = view(timeline)
        if one.t >= T + AT + 120 and found.lag.startswith("rate "):
            low, end, high = found.estimate.low, at_rate(found, after), found.estimate.high
            assert low / 1.02 <= end <= high * 1.02
            waiting += 1
    assert waiting >= 5


@rows(
    ("rates", "values"),
    [
        ({0: 10.0, AT: 20.0}, {0: 3}),
        ({0: 10.0, AT: 20.0}, {0: 3, AT - 900: 6}),
        ({0: 10.0, AT: 20.0}, {0: 3, AT + 200: 6}),
        ({0: 10.0, AT - 900: 20.0}, {0: 3, AT: 6}),
        ({0: 10.0, AT - 900: 20.0, AT: 24.0}, {0: 3, AT: 6}),
    ],
)
def test_a_rate_that_changed_when_no_tunable_did_is_waited_for(rates, values):
    found = told(rates, values, AT + FOLLOWED)
    assert "tunables changed" not in found.estimate.reason
    assert found.estimate == told(rates, {0: 3}, AT + FOLLOWED).estimate


def test_while_it_is_still_stepped_nothing_jumps():
    steps = [AT + 60 * n for n in range(12)]
    rates = {0: 10.0} | {t: 10.0 * 1.12 ** (n + 1) for n, t in enumerate(steps)}
    values = {0: 3} | {t: 4 + n for n, t in enumerate(steps)}
    found = told(rates, values, steps[-1])
    assert "tunables changed" not in found.estimate.reason
    settled = told(rates, values, steps[-1] + FOLLOWED)
    assert settled.estimate.eta == pytest.approx(at_rate(settled, rates[steps[-1]]), rel=0.1)
    assert settled.estimate.reason.startswith("ETA by the rate since tunables changed")


def test_small_steps_that_go_on_do_not_keep_it_from_following():
    steps = [AT + 90 * n for n in range(1, 12)]
    rates = {0: 10.0, AT: 20.0} | {t: 20.0 + 0.5 * (n % 2) for n, t in enumerate(steps)}
    values = {0: 3, AT: 6} | {t: 7 + n % 2 for n, t in enumerate(steps)}
    found = told(rates, values, AT + FOLLOWED)
    assert found.estimate.eta == pytest.approx(at_rate(found, 20.0), rel=0.1)


def test_what_steers_to_and_fro_is_not_followed_all_along():
    """With the autopilot's steps in the demo, the ETA moved by two hours within minutes."""
    turns = range(AT, AT + 7200, 600)
    rates = {0: 10.0} | {t: (20.0, 12.0)[n % 2] for n, t in enumerate(turns)}
    values = {0: 3} | {t: 6 + n for n, t in enumerate(turns)}
    timeline, freshly = watched(), 0
    for one in course(rates, values, AT + 7200):
        timeline.push(one)
        told = view(timeline).estimate.reason
        freshly += told.startswith("ETA by the rate since tunables changed 5m30s")
    assert freshly == 1


@rows(("last", "is_followed"), [(10.0, True), (14.0, False)])
def test_values_put_back_are_followed_as_soon_as_the_rate_of_before_is_back(last, is_followed):
    """For five minutes, an ETA of 5h35m stood beside "ETA 1d08h if it holds"."""
    rates, values = {0: 10.0, AT: 40.0, AT + 2400: last}, {0: 3, AT: 6, AT + 2400: 3}
    found = told(rates, values, AT + 2400 + round(SETTLE) + 6 * STEP)
    said = found.estimate.reason.startswith("ETA by the rate since tunables changed")
    assert said == is_followed
    if is_followed:
        assert found.estimate.eta == pytest.approx(at_rate(found, last), rel=0.1)


def test_one_put_back_is_followed_back():
    rates, values = {0: 10.0, AT: 20.0, AT + 900: 10.0}, {0: 3, AT: 6, AT + 900: 3}
    found = told(rates, values, AT + 900 + FOLLOWED)
    assert found.estimate.eta == pytest.approx(at_rate(found, 10.0), rel=0.2)


def test_once_followed_it_is_left_without_a_jump():
    timeline, ends = watched(), []
    for one in course({0: 10.0, 1800: 20.0}, {0: 3, 1800: 6}, 9000):
        timeline.push(one)
        if one.t >= T + 1800 + FOLLOWED:
            ends.append(one.t - T + view(timeline).estimate.eta)
    assert not timeline.frame.scans[0].estimate.reason.startswith("ETA by the rate")
    assert all(abs(b - a) < 0.05 * (a - 1800) for a, b in pairwise(ends))


@rows("reopened", [-1, AT - STEP, AT + 1000, AT + 4000 + 2 * STEP])
def test_one_made_while_it_is_paused_is_followed_once_it_runs_again(reopened):
    """By the clock it was more than half an hour before the rate changed."""
    timeline, issued = watched(), 0.0
    for t in range(0, AT + 4000 + FOLLOWED, STEP):
        paused = AT <= t < AT + 4000
        issued += 0 if paused else (10 if t < AT else 20) * MIB * STEP
        scan = resilver(
            issued,
            total_bytes=TOTAL,
            scanned_bytes=TOTAL,
            state="paused" if paused else "running",
            pass_paused=0 if t < AT else min(t, AT + 4000) - AT,
        )
        value = 3 if t < AT + 600 else 6
        one = replace(sample(t, scan), tunables={"zfs_vdev_scrub_max_active": value})
        timeline.push(one)
        timeline = again(timeline) if t == reopened else timeline
    found = view(timeline)
    assert found.estimate.reason.startswith("ETA by the rate since tunables changed")
    assert found.estimate.eta == pytest.approx(at_rate(found, 20), rel=0.05)


@rows("leap", [-7200, 7200])
def test_a_clock_that_is_set_hides_none(leap):
    samples = []
    for one in course({0: 10.0, AT: 20.0}, {0: 3, AT: 6}, AT + FOLLOWED):
        late = one.t - T >= AT + 200
        samples.append(replace(one, t=one.t + leap) if late else one)
    found = view(watched(*samples))
    assert found.estimate.reason.startswith("ETA by the rate since tunables changed")
    assert found.estimate.eta == pytest.approx(at_rate(found, 20), rel=0.05)


def test_dozens_of_changes_cost_no_dozens_of_forecasts(monkeypatch):
    """A sample took a third of a second while somebody tuned by hand."""
    told, most = 0, 0

    def counted(*args):
        nonlocal told
        told += 1
        return forecast(*args)

    forecast = scan_rate.forecast
    monkeypatch.setattr(scan_rate, "forecast", counted)
    steps = {AT + 10 * n: 4 + n for n in range(40)}
    timeline = watched()
    for one in course({0: 10.0, AT + 100: 30.0}, {0: 3} | steps, AT + 1800):
        told = 0
        timeline.push(one)
        most = max(most, told)
    assert 1 <= most <= 3


def test_how_far_ahead_it_is_goes_by_the_estimate_that_is_shown():
    fields = {"total_bytes": TOTAL, "scanned_bytes": TOTAL, "state": "finished", "stage": None}
    took = TOTAL / (10 * MIB)
    timeline = watched(sample(-10, resilver(TOTAL, -10 - took, end=T - 10, **fields)))
    for one in course({0: 10.0, AT: 20.0}, {0: 3, AT: 6}, AT + FOLLOWED):
        timeline.push(one)
    found = view(timeline)
    assert found.estimate.reason.startswith("ETA by the rate since tunables changed")
    whole = one.t - T + found.estimate.eta
    assert found.comparison.ahead == pytest.approx(took - whole, abs=1)


@rows("seconds", [-STEP, STEP, FOLLOWED - STEP, FOLLOWED + 600])
def test_the_next_console_follows_it_as_well(seconds):
    """In a console opened since then, the ETA was hours later."""
    rates, values = {0: 10.0, AT: 20.0}, {0: 3, AT: 6}
    kept = new = watched()
    for one in course(rates, values, AT + max(seconds, FOLLOWED) + 10 * STEP):
        kept.push(one)
        new = again(kept) if one.t == T + AT + seconds else new
        if new is not kept:
            new.push(one)
    found = view(new)
    assert found.estimate.eta == pytest.approx(at_rate(found, 20), rel=0.1)
    assert found.estimate == view(kept).estimate


def test_a_later_change_that_the_estimate_does_not_follow_is_told_too():
    """``tunables changed 40m04s ago`` stood beside the event of a change ten minutes ago."""
    found = told({0: 10, AT: 20}, {0: 3, AT: 6, AT + 300: 5}, AT + FOLLOWED)
    reason = found.estimate.reason
    assert reason.startswith("ETA by the rate since tunables changed 6m00s ago (last 1m00s ago);")


def test_after_a_change_of_sort_memory_there_is_no_estimate_until_it_issues_again():
    """The longer walk that follows was taken for a slow scan: ETA 17d19h, zpool 1d02h."""
    world, session, told = World("memory-limited", 1), Session(flags=("DEMO",)), {}
    for second in range(300, 1320, 20):
        if second == 400:
            world.pools[0].tunables["zfs_scan_mem_lim_fact"] = 10
        world.advance(float(second))
        (frame,) = session.advance(world.raws())
        assert frame.scan is not None
        told[second] = frame.scan.estimate
    assert {at for at, each in told.items() if each.eta is None} >= set(range(460, 900, 20))
    assert all(told[at].lacking == "measuring" for at in range(460, 900, 20))
    assert told[380].eta
    assert told[1300].eta
