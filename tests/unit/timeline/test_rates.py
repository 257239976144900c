"""Windowed rates of vdevs, and the tables of past rates for sparklines."""

from __future__ import annotations

import tracemalloc
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import rows
from zconsole.pool.model import BlockCounters, IoCounters, IoRates, Placed, Vdev
from zconsole.timeline.rates import (
    BUSY_GAP,
    BUSY_SHARE,
    DEVICE_METRICS,
    LATENCY_FACTOR,
    LATENCY_FLOOR,
    SCAN_METRICS,
    PoolRates,
    RateSeries,
    slow_siblings,
)
from zconsole.zfs.decode.builders import Devices

MIB = 2**20


def io(timestamp: float, count: int) -> IoCounters:
    return IoCounters(timestamp, count, 2 * count, count * MIB, 2 * count * MIB)


def block(count: int, busy: float = 0.0, names: tuple[str, ...] = ("sda",)) -> BlockCounters:
    return BlockCounters(
        names, count, count * 4096, count * 0.010, count, count * 8192, count * 0.030, busy
    )


def leaf(**fields) -> Vdev:
    return Vdev("sda", "disk", **{"path": "/dev/sda1", **fields})


def push(rates: PoolRates, clock: float, vdevs: dict[str, Vdev]) -> None:
    tree = {key: Placed(key, 1, vdev, None, key) for key, vdev in vdevs.items()}
    rates.push(clock, clock, tree)


def latest(rates: PoolRates, key: str) -> IoRates:
    """Return the rates over the last interval, as far as a sparkline shows them."""
    tails = {metric: rates.series.tail(key, metric, 1) for metric in DEVICE_METRICS}
    return IoRates(**{metric: values[0] for metric, values in tails.items() if values})


class Window:
    """The window of one vdev."""

    def __init__(self) -> None:
        self._rates = PoolRates()

    def add(self, clock: float, vdev: Vdev) -> None:
        push(self._rates, clock, {"sda": vdev})

    @property
    def windowed(self) -> IoRates:
        return self._rates.now["sda"]

    @property
    def latest(self) -> IoRates:
        return latest(self._rates, "sda")


def window(*samples: tuple[float, Vdev]) -> Window:
    made = Window()
    for clock, vdev in samples:
        made.add(clock, vdev)
    return made


def test_kernel_counters_are_divided_by_the_kernels_own_clock():
    found = window((0.0, leaf(io=io(100.0, 0))), (5.0, leaf(io=io(102.0, 10)))).windowed
    assert (found.read, found.write) == (5 * MIB, 10 * MIB)
    assert (found.read_ops, found.write_ops) == (5, 10)
    assert found.busy is None


def test_the_window_covers_a_transaction_group_and_the_sparkline_one_interval():
    made = window(*((float(n), leaf(io=io(float(n), 30 if n >= 8 else 0))) for n in range(9)))
    assert made.latest.read == 30 * MIB
    assert made.windowed.read == 6 * MIB


def test_ready_made_rates_come_before_diskstats_but_not_before_counters():
    ready = IoRates(read=7.0, write=8.0)
    assert window((0.0, leaf(rates=ready))).windowed.read == 7.0
    both = [(float(n), leaf(rates=ready, block=block(n, n * 0.5))) for n in range(3)]
    found = window(*both).windowed
    assert (found.read, found.write, found.busy) == (7.0, 8.0, 0.5)


def test_diskstats_alone_give_bytes_wait_and_busy_share():
    found = window((0.0, leaf(block=block(0, 0.0))), (2.0, leaf(block=block(100, 1.5)))).windowed
    assert (found.read, found.write) == (204_800, 409_600)
    assert found.latency == pytest.approx(0.020)
    assert found.busy == 0.75


@rows("counted", [False, True])
def test_block_counters_are_divided_by_the_time_between_their_own_readings(counted):
    """They are read once all pools were waited for, and also for a reading that was late."""
    made = Window()
    for clock, at in enumerate((0.0, 1.0, 3.0, 4.5, 4.75, 61.0)):
        counters = block(round(100 * at), at / 2)._replace(clock=at)
        made.add(clock, leaf(io=io(clock, clock) if counted else None, block=counters))
        if clock:
            assert (made.latest.busy, made.windowed.busy) == (0.5, 0.5)
            assert made.windowed.read == (MIB if counted else 409_600)


PATHS = ("sda", "sdb")


@rows(
    ("now", "busy"),
    [((90.0, 1.0), 1.0), ((90.4, 0.4), 0.8), ((90.5, 0.5), 1.0), ((91.0, 1.0), 1.0)],
)
def test_a_disk_on_several_paths_is_as_busy_as_they_are_in_turns(
    now: tuple[float, ...], busy: float
) -> None:
    """Each path may have been the busier one so far, as before a failover."""

    def counted(seconds: tuple[float, ...]) -> Vdev:
        rows = [
            f"8 0 {name} 9 0 9 9 9 0 9 9 0 {each * 1000:.0f} 9"
            for name, each in zip(PATHS, seconds, strict=True)
        ]
        return leaf(block=Devices({"diskstats": rows, "devices": {"x": PATHS}}).counters("x"))

    made = window((0.0, counted((90.0, 0.0))), (1.0, counted(now)))
    assert made.windowed.busy == pytest.approx(busy)


def test_latency_histograms_stand_in_where_there_are_no_diskstats():
    def counted(n: int) -> Vdev:
        counts = [0] * 37
        counts[20], counts[22] = n, n
        return leaf(io=io(float(n), n), histograms={"disk_r": tuple(counts)})

    found = window((0.0, counted(0)), (1.0, counted(10))).windowed
    assert found.latency == pytest.approx(1.5 * (2**20 + 2**22) / 2 / 1e9)


def test_histograms_are_not_added_up_where_nothing_was_asked_of_a_device():
    """Summing histograms is all that makes idle vdevs on files slow to read."""

    class Unread(dict[str, tuple[int, ...]]):
        def get(self, *_: object) -> None:
            raise AssertionError("looked at")

    counts = {"disk_r": (0,) * 20 + (10,)}
    rates = PoolRates()
    push(rates, 0.0, {"a": leaf(io=io(1.0, 10), histograms=counts)})
    push(rates, 1.0, {"a": leaf(io=io(2.0, 10), histograms=Unread(counts))})
    push(rates, 2.0, {"a": leaf(io=io(3.0, 20), histograms={"disk_r": (0,) * 20 + (20,)})})
    assert rates.now["a"].latency == pytest.approx(1.5 * 2**20 / 1e9)
    with pytest.raises(AssertionError, match="looked at"):  # another device in its place
        push(rates, 3.0, {"a": leaf(path="b", io=io(4.0, 20), histograms=Unread(counts))})


def test_no_request_has_no_latency():
    assert window((0.0, leaf(block=block(5))), (1.0, leaf(block=block(5)))).windowed.latency is None


@rows(
    "swapped",
    [
        leaf(io=io(3.0, 1)),
        leaf(io=io(0.5, 900)),
        leaf(io=io(3.0, 10**9)),
        leaf(io=io(3.0, 900), path="/dev/sdb1"),
        leaf(io=None),
    ],
)
def test_what_does_not_continue_has_no_rate_for_one_sample(swapped):
    made = window((0.0, leaf(io=io(0.0, 100))), (1.0, leaf(io=io(1.0, 200))))
    made.add(2.0, swapped)
    assert made.windowed == IoRates()
    assert made.latest == IoRates()


def test_rates_come_back_after_a_reset():
    made = window((0.0, leaf(io=io(50.0, 100))), (1.0, leaf(io=io(1.0, 0))))
    made.add(2.0, leaf(io=io(2.0, 3)))
    assert made.windowed.read == 3 * MIB


def test_a_suspended_machine_or_an_export_is_no_interval():
    seconds = [(float(n), leaf(block=block(n))) for n in range(4)]
    made = window(*seconds, (4000.0, leaf(block=block(8000))))
    assert made.windowed == IoRates()


def test_a_slow_pace_of_sampling_is_no_gap():
    made = window(*((60.0 * n, leaf(block=block(60 * n))) for n in range(4)))
    assert made.windowed.read == 4096


@given(
    st.lists(
        st.tuples(
            st.floats(-10, 1000),
            st.integers(0, 2**40),
            st.one_of(st.none(), st.integers(0, 2**40)),
        ),
        max_size=30,
    )
)
def test_no_sequence_of_counters_gives_a_negative_rate(samples):
    made = Window()
    clock = 0.0
    for step, count, blocks in samples:
        clock += step
        disk = None if blocks is None else block(blocks, blocks / 7)
        made.add(clock, leaf(io=io(clock, count), block=disk))
        for rates in (made.windowed, made.latest):
            values = (rates.read, rates.write, rates.read_ops, rates.write_ops, rates.latency)
            assert all(v is None or v >= 0 for v in values)
            assert rates.busy is None or 0 <= rates.busy <= 1


STEPS = st.sampled_from([-3.0, 0.0, 0.5, 1.0, 1.0, 1.0, 4.0, 31.0, 400.0])
CHANGES = st.sampled_from(["", "", "", "", "fell", "swapped", "gone", "blocks", "still"])


@pytest.mark.slow
@given(st.lists(st.tuples(STEPS, CHANGES, CHANGES, CHANGES), max_size=25))
def test_a_vdev_has_the_rates_that_it_has_alone_whatever_happens_to_others(samples):
    together, alone = PoolRates(), {name: PoolRates() for name in "abc"}
    counts = dict.fromkeys("abc", 0)
    clock = 100.0
    for step, *changes in samples:
        clock += step
        vdevs: dict[str, Vdev] = {}
        for name, change in zip("abc", changes, strict=True):
            counts[name] = 0 if change == "fell" else counts[name] + (change != "still")
            count = counts[name]
            disk = block(count) if change == "blocks" else None
            path = "/dev/other" if change == "swapped" else f"/dev/{name}"
            if change != "gone":
                vdevs[name] = leaf(path=path, io=io(float(count), count), block=disk)
        push(together, clock, vdevs)
        for name, rates in alone.items():
            if name in vdevs:
                push(rates, clock, {name: vdevs[name]})
                assert together.now[name] == rates.now[name]
                assert latest(together, name) == latest(rates, name)
            else:
                alone[name] = PoolRates()


def filled(count: int, capacity: int = 8) -> RateSeries:
    series = RateSeries(capacity)
    for n in range(count):
        series.advance()
        series.put(IoRates._fields, {"a": IoRates(read=float(n), busy=0.5)})
    return series


def test_how_old_the_last_samples_are():
    series = RateSeries(capacity=4)
    assert series.ages(3) == []
    for t in (10.0, 20.0, 30.5):
        series.advance(t)
    assert series.ages(2) == [10.5, 0.0]
    assert series.ages(9) == [20.5, 10.5, 0.0]
    assert series.ages(0) == []


def test_the_newest_values_come_last_and_no_more_than_are_kept():
    assert filled(3).tail("a", "read", 2) == [1.0, 2.0]
    assert filled(20).tail("a", "read", 50) == [float(n) for n in range(12, 20)]


def test_what_is_not_known_is_none_not_zero():
    series = filled(2)
    assert series.tail("a", "latency", 2) == []
    assert series.tail("b", "read", 2) == []
    assert series.tail("a", "read", 0) == []


def test_a_missed_sample_is_a_hole_even_after_the_ring_went_round():
    series = filled(10)
    series.advance()
    assert series.tail("a", "read", 2) == [9.0, None]
    for _ in range(3):
        series.advance()
    series.put(IoRates._fields, {"a": IoRates(read=50.0)})
    assert series.tail("a", "read", 8) == [6.0, 7.0, 8.0, 9.0, None, None, None, 50.0]


def test_a_long_absence_leaves_nothing_of_the_old_values():
    series = filled(10)
    for _ in range(100):
        series.advance()
    assert series.tail("a", "read", 8) == [None] * 8
    series.put(IoRates._fields, {"a": IoRates(read=1.0)})
    assert series.tail("a", "read", 8) == [None] * 7 + [1.0]


def test_the_peak_is_of_the_devices_metrics_and_samples_asked_for():
    series = RateSeries()
    for read, write in ((9.0, 1.0), (2.0, None), (None, 3.0)):
        series.advance()
        series.put(IoRates._fields, {"a": IoRates(read, write, busy=7.0), "b": IoRates(8.0, 8.0)})
    assert series.peak(["a"], ("read", "write"), 2) == 3.0
    assert series.peak(["a"], ("read",), 2) == 2.0
    assert series.peak(["a"], ("read",), 3) == 9.0
    assert series.peak(["a", "b"], ("read", "write"), 2) == 8.0


def test_devices_without_values_have_no_peak():
    series = RateSeries()
    series.advance()
    assert series.peak(["a"], ("read",), 2) is None
    series.put(IoRates._fields, {"a": IoRates(), "b": IoRates(8.0)})
    assert series.peak(["a", "c"], ("read",), 2) is None
    assert series.peak(["b"], ("read",), 0) is None


def test_what_was_dumped_comes_back_with_a_hole_before_what_follows():
    series = filled(3)
    again = RateSeries(8)
    again.restore({"a": series.dump("a")})
    again.advance()
    again.put(IoRates._fields, {"a": IoRates(read=9.0)})
    assert again.tail("a", "read", 5) == [0.0, 1.0, 2.0, None, 9.0]


@rows("rows", [[], [[], [], [], []], [[1.0], [], [], []]])
def test_a_dump_with_nothing_in_it_restores_to_nothing(rows):
    again = RateSeries(8)
    again.restore({"a": rows})
    again.advance()
    assert again.tail("a", "read", 1) in ([None], [])


def test_each_device_keeps_its_own_values_as_others_come_and_go():
    series = RateSeries(8)
    for keys in ("ab", "ab", "cab", "cb"):
        series.advance()
        series.put(IoRates._fields, {key: IoRates(read=float(ord(key))) for key in keys})
    assert series.tail("a", "read", 9) == [97.0, 97.0, 97.0, None]
    assert series.tail("b", "read", 9) == [98.0] * 4
    assert series.tail("c", "read", 9) == [None, None, 99.0, 99.0]
    assert set(series.keys()) == set("abc")


def test_what_is_forgotten_leaves_the_others_as_they_were():
    series = RateSeries(8)
    for t in range(2):
        series.advance(float(t))
        series.put(IoRates._fields, {"a": IoRates(read=1.0), "b": IoRates(read=2.0)})
        series.put(SCAN_METRICS, {"scan:scrub:": (3.0, 4.0)})
    series.advance(2.0, {"a"})
    series.put(IoRates._fields, {"b": IoRates(read=5.0)})
    assert series.tail("a", "read", 3) == []
    assert series.tail("b", "read", 3) == [2.0, 2.0, 5.0]
    assert series.tail("scan:scrub:", "issue_rate", 3) == [4.0, 4.0, None]


@pytest.mark.slow
def test_many_devices_keep_their_past_in_little_memory():
    tracemalloc.start()
    series, rates = RateSeries(), {f"disk-{n}": IoRates(1.0, 1.0, 1.0, 1.0) for n in range(200)}
    before, _ = tracemalloc.get_traced_memory()
    for t in range(300):
        series.advance(float(t))
        series.put(IoRates._fields, rates)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 1.25 * 240 * 4 * 4 * len(rates)


WAITS = st.none() | st.sampled_from([0.0, 0.003, 0.008, 0.01, 0.024, 0.03, 0.031, 0.09, 0.5])
BUSY = st.none() | st.sampled_from([0.0, 0.3, 0.55, 0.6, 0.7, 0.9, 0.95, 1.0])


def sibling(number: int) -> Placed:
    vdev = Vdev(name=f"disk{number}", kind="disk", vclass="normal", state="ONLINE")
    return Placed(f"{number}", 2, vdev, None, "top")


def waiting(latency: float | None, busy: float | None) -> IoRates:
    return IoRates(None, None, None, None, latency, busy)


@rows(
    ("figures", "found"),
    [
        ([(0.061, 0.5), (0.008, 0.5), (0.008, 0.5)], {"0": "61ms, siblings 8ms"}),
        ([(0.008, 0.97), (0.008, 0.5), (0.008, 0.4)], {"0": "97 % busy, siblings 45 %"}),
        ([(0.5, 1.0), (0.008, 0.1)], {}),  # of two neither is the odd one
    ],
)
def test_one_that_waits_over_three_times_as_long_or_is_much_busier_stands_out(figures, found):
    rates = {f"{n}": waiting(*each) for n, each in enumerate(figures)}
    assert slow_siblings([*map(sibling, range(len(figures)))], rates) == found


def stands_out(own: IoRates, others: list[IoRates]) -> bool:
    """Return whether a vdev stands out, by the definition and without shortcuts."""
    waits = [o.latency for o in others if o.latency is not None]
    works = [o.busy for o in others if o.busy is not None]
    waited, worked = own.latency or 0.0, own.busy or 0.0
    slow = bool(waits) and waited >= LATENCY_FLOOR and waited > LATENCY_FACTOR * median(waits)
    return slow or (bool(works) and worked >= BUSY_SHARE and worked - median(works) >= BUSY_GAP)


@given(st.lists(st.builds(waiting, WAITS, BUSY), min_size=3, max_size=8))
def test_none_is_passed_over_that_differs_from_the_median_of_the_others(every: list[IoRates]):
    found = slow_siblings(
        [*map(sibling, range(len(every)))], {f"{n}": r for n, r in enumerate(every)}
    )
    others = [every[:n] + every[n + 1 :] for n in range(len(every))]
    assert set(found) == {f"{n}" for n, own in enumerate(every) if stands_out(own, others[n])}
