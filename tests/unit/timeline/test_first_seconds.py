"""The first seconds of a scan or activity: nothing is predicted from too little."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

import pytest

from tests.table import rows
from tests.unit.timeline.following import MIB, TOTAL, T, disk, sample
from zconsole.pool.model import Activity, Pool, Sample, Scan, Vdev
from zconsole.timeline.activities import ActivityTracker
from zconsole.timeline.eta.estimate import MEASURING
from zconsole.timeline.eta.past import PastScan
from zconsole.timeline.frame import ScanView
from zconsole.timeline.pool import PoolTimeline

pytestmark = pytest.mark.slow

RATE = 50.0 * MIB
Course = Callable[[float], float]
"""Bytes issued, by the seconds since the start."""


def steady(x: float) -> float:
    return RATE * x


def burst(x: float) -> float:
    """Return bytes that start eight times as fast, for four seconds, until the queues are full."""
    return RATE * (8 * min(x, 4.0) + max(0.0, x - 4.0))


def late(x: float) -> float:
    """Return bytes that barely start for three seconds."""
    return RATE * max(0.01 * x, x - 3.0)


def groups(x: float) -> float:
    """Return bytes in transaction groups of two seconds."""
    return RATE * 2.0 * (x // 2.0 + 1)


COURSES = [steady, burst, late, groups]


def ends(course: Course) -> float:
    return next(n / 2 for n in range(2000) if course(n / 2) >= TOTAL)


def scrub(course: Course, x: float) -> Scan:
    return Scan(
        "scrub",
        "running",
        stage="issuing",
        start=T,
        total_bytes=TOTAL,
        scanned_bytes=TOTAL,
        issued_bytes=int(course(x)),
        skipped_bytes=0,
        zpool_issue_rate=course(x) / x,
        zpool_eta=(TOTAL - course(x)) / (course(x) / x),
    )


def told(course: Course, interval: float, first: float = 0.6, past: PastScan | None = None):
    """Yield second, view and true remaining seconds of each sample of the first minute."""
    timeline = PoolTimeline()
    timeline.scans.learn(past)
    for n in range(int(60 / interval) + 1):
        x = first + n * interval
        timeline.push(sample(x, scrub(course, x)))
        yield x, timeline.frame.scans[0], ends(course) - x


@rows("course", COURSES)
@rows("interval", [1.0, 3.0, 7.0, 10.0, 20.0])
def test_what_is_shown_is_never_far_off(course, interval):
    for x, view, true in told(course, interval):
        eta = view.estimate.eta
        if eta is not None:
            assert true / 2 < eta < 2 * true, f"{eta:.0f} after {x:.0f} s, truly {true:.0f}"


@rows("course", COURSES)
@rows(
    ("interval", "by"),
    [(1.0, 20.0), (3.0, 22.0), (7.0, 29.0), (10.0, 31.0), (15.0, 46.0), (20.0, 61.0)],
)
def test_it_is_measuring_until_the_rate_has_been_steady(course, interval, by):
    seen = list(told(course, interval))
    assert seen[0][1].estimate.eta is None
    assert all(view.estimate.lacking == MEASURING for x, view, _ in seen[1:] if x < 15.0)
    assert all(view.estimate.eta is not None for x, view, _ in seen if x >= by)


def opened(
    rates: Course, goes_on: bool = True, seconds_sampled: Container[int] = range(76)
) -> Iterator[ScanView]:
    """Open a console an hour into a scan; yields its view at each second that is sampled.

    ``rates``: bytes/s by the seconds watched; zpool's average is two thirds of the first.
    """
    timeline, issued = PoolTimeline(goes_on=goes_on), 3600 * rates(0.0) / 1.5
    for second in range(76):
        issued += rates(float(second))
        if second not in seconds_sampled:
            continue
        seconds, left = 3600.0 + second, TOTAL * 50 - issued
        average = issued / seconds
        scan = scrub(steady, seconds)._replace(
            total_bytes=TOTAL * 50,
            scanned_bytes=TOTAL * 50,
            issued_bytes=int(issued),
            zpool_issue_rate=average,
            zpool_eta=left / average,
        )
        yield timeline.push(sample(seconds, scan)).scans[0]


def test_a_console_opened_amid_a_scan_is_measuring_until_its_rate_was_steady():
    """Its first ETA came with the first sample, to the minute, from zpool's average."""
    seen = list(opened(lambda _: RATE))
    assert [view.estimate.lacking for view in seen[:15]] == [MEASURING] * 15
    assert all(view.left == view.scan.zpool_eta for view in seen[:15])
    for view in seen[15:]:
        assert view.estimate.eta == pytest.approx(view.scan.zpool_eta / 1.5, rel=0.1)


SPARSE = [range(0, 76, interval) for interval in (5, 7, 8, 10, 12, 15, 20, 25)]


@rows(
    "seconds", [range(76), *SPARSE, (0, 14, 15, 30, 31, 45, 46, 61, 75), (0, 1, 15, 16, 30, 46, 62)]
)
def test_a_rate_that_changes_all_the_while_is_measured_for_a_minute(seconds):
    """Samples 15 s apart looked steady: each half was interpolated between the same two."""
    seen = zip(seconds, opened(lambda x: RATE * 1.06**x, seconds_sampled=seconds), strict=True)
    told = [second for second, view in seen if view.estimate.eta is not None]
    assert told == [second for second in seconds if second >= 60]


@rows("seconds", SPARSE)
def test_a_steady_rate_is_told_once_it_lasted_for_two_intervals_and_three_groups(seconds):
    seen = zip(seconds, opened(lambda _: RATE, seconds_sampled=seconds), strict=True)
    told = next(second for second, view in seen if view.estimate.eta is not None)
    assert told <= max(15 + seconds.step, 2 * seconds.step)


def test_a_single_sample_has_zpools_average_and_says_so():
    view = next(opened(lambda _: RATE, goes_on=False))
    assert view.estimate.eta == pytest.approx(view.scan.zpool_eta)
    assert view.estimate.reason.startswith("zpool averages")


def test_an_earlier_scan_tells_at_once():
    course = tuple((n / 100, 2.0 * n) for n in range(101))
    past = PastScan("scrub", None, T - 1e6, 200.0, float(TOTAL), 1.0, course)
    for _, view, true in list(told(steady, 1.0, past=past))[1:]:
        assert view.estimate.eta is not None
        assert true / 1.5 < view.estimate.eta < 1.5 * true


def expansion(done: float, seconds: float) -> Activity:
    """Return an expansion as the kernel reports it: bytes copied, and zpool's average."""
    average = done / seconds if done else None
    total = 10 * RATE
    return Activity(
        "expansion",
        "running",
        "raidz1-0",
        T,
        done_bytes=int(done),
        total_bytes=int(total),
        zpool_rate=average,
    )


def moved(course: Course, seconds: range) -> Iterator[tuple[float, float | None]]:
    tracker, leaves = ActivityTracker(), (disk("a"), disk("b"))
    root = Vdev("tank", "root", guid="r", children=(Vdev("raidz1-0", "raidz1", children=leaves),))
    for second in seconds:
        activity = expansion(course(float(second)), float(second))
        pool = Pool("tank", "ONLINE", root, activities=(activity,))
        (view,) = tracker.push(Sample(T + second, second, "libzfs", True, pool))
        yield second, view.estimate.eta


def test_an_expansion_of_ten_seconds_gets_no_date_years_away():
    """A second after its start almost nothing was written, so zconsole said 2735 days."""
    counted = {1: 2.0, 2: 2.0, 3: 2.0, 4: 2.0}
    etas = [eta for _, eta in moved(lambda x: counted.get(int(x), 5 * RATE), range(1, 10))]
    assert all(eta is None or eta < 60.0 for eta in etas)
