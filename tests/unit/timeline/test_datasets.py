"""Which datasets do most of the logical I/O while a scan runs."""

from __future__ import annotations

import pytest

from tests.table import rows
from zconsole.pool.model import DatasetLoad, IoCounters
from zconsole.timeline.rates import DATASETS_KEPT, MOST_DATASETS, DatasetTracker
from zconsole.zfs.sources.kstat import BUSY_SHARE, DatasetMeter

CREATED = "5"


def io(at: float, count: float) -> IoCounters:
    """Return counters with ``count`` reads of two bytes, and as many writes of four."""
    return IoCounters(at, *(int(count * times) for times in (1, 1, 2, 4)))


def load(name: str, ops: float) -> DatasetLoad:
    return DatasetLoad(name, 2 * ops, 4 * ops, ops, ops)


class Watched:
    """A tracker, and the counters of datasets that it is given."""

    def __init__(self) -> None:
        self.tracker = DatasetTracker()

    def push(self, at: float, created: str = CREATED, scans: bool = True, **counts: float) -> None:
        found = {(f"tank/{name}", created): io(at, count) for name, count in counts.items()}
        self.tracker.push(at, found, scans)

    @property
    def names(self) -> list[str] | None:
        busiest = self.tracker.busiest
        return None if busiest is None else [each.name for each in busiest]


def test_rates_are_known_from_the_second_reading_on_and_last_between_readings():
    watched = Watched()
    watched.push(0.0, vm=100)
    assert watched.tracker.busiest is None
    watched.push(5.0, vm=600)
    assert watched.tracker.busiest == (load("tank/vm", 100.0),)
    watched.push(6.0)
    assert watched.tracker.busiest == (load("tank/vm", 100.0),)


def test_only_the_few_busiest_are_named_with_the_busiest_first():
    watched, rates = Watched(), {"a": 3.0, "b": 900.0, "c": 0.0, "d": 70.0, "e": 800.0}
    for at in (0.0, 5.0):
        watched.push(at, **{name: at * rate for name, rate in rates.items()})
    assert watched.names == ["tank/b", "tank/e", "tank/d"][:MOST_DATASETS]


def test_rates_cover_a_few_seconds_as_those_of_devices_do():
    watched = Watched()
    for at in range(20):
        watched.push(at, vm=1000 * (at > 10))
        wanted = 200.0 if 10 < at < 16 else 0.0
        if at > 5:
            assert watched.tracker.busiest == (load("tank/vm", wanted),), at


def test_datasets_may_be_mounted_and_unmounted_at_any_time():
    watched = Watched()
    watched.push(0.0, a=0)
    watched.push(5.0, a=10, b=0)
    assert watched.names == ["tank/a"]
    watched.push(10.0, a=20, b=500, c=7)
    assert watched.names == ["tank/b", "tank/a"]
    watched.push(15.0, b=600)
    assert watched.tracker.busiest == (load("tank/b", 20.0),)


@rows(("created", "count"), [("9", 10), ("9", 10**6), (CREATED, 10)])
def test_counters_that_began_anew_give_no_rate(created, count):
    watched = Watched()
    watched.push(0.0, vm=1000)
    watched.push(5.0, created=created, vm=count)
    assert watched.names == []


@rows("clock", [5.0 + DATASETS_KEPT + 1, 1.0])
def test_after_a_gap_or_a_reboot_rates_are_not_known(clock):
    watched = Watched()
    for at in (0.0, 5.0):
        watched.push(at, vm=at)
    assert watched.names == ["tank/vm"]
    watched.push(clock)
    assert watched.names is None
    watched.push(clock + 1, vm=50)
    assert watched.names is None


def test_rates_of_so_many_datasets_that_they_are_seldom_read_are_known(tmp_path):
    """Tens of thousands take the kernel seconds."""
    took, now = 2.0, [0.0]
    meter = DatasetMeter(tmp_path, lambda: now.pop(0) if len(now) > 1 else now[0])
    watched = Watched()
    for _ in range(2):
        while not meter.due("tank"):
            now[0] += 60.0
            watched.push(now[0])
        watched.push(now[0], vm=now[0])
        now.append(now[0] + took)
        meter.read("tank")
    assert now[0] > took / BUSY_SHARE
    assert watched.names == ["tank/vm"]


def test_without_a_scan_nobody_competes_with_one():
    watched = Watched()
    for at in (0.0, 5.0):
        watched.push(at, vm=at)
    watched.push(6.0, scans=False, vm=99)
    assert watched.names is None
    watched.push(7.0, vm=100)
    assert watched.names is None


@pytest.mark.slow
def test_a_window_of_many_samples_is_bounded():
    watched = Watched()
    for n in range(1000):
        watched.push(n / 1000, vm=n)
    assert len(watched.tracker._readings) < 10
