from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import rows
from zconsole.pool.model import (
    Activity,
    BlockCounters,
    Event,
    IoCounters,
    Pool,
    Progress,
    Sample,
    SampleFailure,
    Scan,
    Vdev,
)
from zconsole.timeline.pool import PoolHistory

T = 1_800_000_000.0
MIB = 2**20


def disk(name: str, count: int | None = None, **fields) -> Vdev:
    io = None if count is None else IoCounters(float(count), count, 0, count * MIB, 0)
    return Vdev(name, "disk", guid=name, path=f"/dev/{name}", **{"io": io, **fields})


def block(n: int, busy: float, wait: float = 0.0) -> BlockCounters:
    return BlockCounters(("x",), n, n * 4096, n * wait, 0, 0, 0.0, busy)


def sample(second: float, *leaves: Vdev, top: IoCounters | None = None, **fields) -> Sample:
    raidz = Vdev("raidz1-0", "raidz1", guid="top", io=top, children=leaves)
    root = Vdev("tank", "root", guid="root", children=(raidz,))
    pool = Pool("tank", fields.pop("state", "ONLINE"), root, **fields)
    return Sample(T + second, second, "libzfs", True, pool)


def test_an_interior_vdev_is_the_sum_of_its_leaves():
    history = PoolHistory()
    history.push(sample(0, disk("a", 0), disk("b", 0)))
    history.push(sample(1, disk("a", 1), disk("b", 1)))
    assert history.rates["a"].read == MIB
    assert history.rates["top"].read == 2 * MIB
    assert history.rates["root"].read == 2 * MIB
    assert "nothing" not in history.rates


def test_when_a_replacement_or_a_waiting_device_came_is_known_once_it_was_seen_to():
    pair = Vdev("replacing-0", "replacing", guid="pair", children=(disk("a"), disk("n")))
    history = PoolHistory()
    history.push(sample(0, pair, disk("b")))
    assert history.regrouped is None
    history.push(sample(1, disk("n"), disk("b")))
    history.push(sample(2, pair, disk("b")))
    history.push(sample(3, pair, disk("b")))
    assert history.regrouped == T + 2
    history.push(sample(4, pair, disk("b", awaiting_resilver=True)))
    assert history.regrouped == T + 4


def test_a_group_whose_counters_fell_agrees_with_its_leaves():
    """A device that leaves takes its counters out of the kernel's sum for the group."""
    history = PoolHistory()
    for n in range(12):
        replaced = 3 * MIB if n < 4 else 0
        own = IoCounters(float(n), n, 0, min(n, 5) * 2 * MIB + replaced, 0)
        leaves = [disk(name, n)._replace(io=_until(n, 5)) for name in "ab"]
        history.push(sample(n, *leaves, top=own))
        if n > 0:
            sums = sum(history.rates[name].read for name in "ab")
            assert history.rates["top"].read == pytest.approx(sums)
            assert history.rates["root"].read == pytest.approx(sums)


def _until(second: int, end: int) -> IoCounters:
    moved = min(second, end)
    return IoCounters(float(second), moved, 0, moved * MIB, 0)


def test_the_start_of_a_scan_is_told_once_also_where_the_kernels_event_comes_late():
    scrub = Scan("scrub", "running", start=T + 60)
    start = Event(T + 60.2, "scrub_start", "scrub start")
    at_once, late = PoolHistory(), PoolHistory()
    at_once.push(sample(0))
    at_once.push(replace(sample(60), events=(start,)))
    at_once.push(sample(120, scans=(scrub,)))
    late.push(sample(0))
    late.push(sample(60.5, scans=(scrub,)))
    late.push(replace(sample(61, scans=(scrub,)), events=(start,)))
    assert at_once.events == late.events == (start,)


def test_the_kernels_own_counters_of_an_interior_vdev_come_first():
    history = PoolHistory()
    for n in range(2):
        own = IoCounters(float(n), n, 0, n * 7, 0)
        history.push(sample(n, disk("a", n), disk("b", n), top=own))
    assert history.rates["top"].read == 7
    assert history.rates["root"].read == 7


def test_above_the_leaves_latency_is_the_mean_request_and_busy_the_busiest_disk():
    history = PoolHistory()
    for n in range(2):
        fast, slow = block(30 * n, 0.2 * n, 0.010), block(10 * n, 0.9 * n, 0.050)
        history.push(sample(n, disk("a", block=fast), disk("b", block=slow)))
    found = history.rates["top"]
    assert found.latency == pytest.approx(0.020)
    assert found.busy == pytest.approx(0.9)


def test_spares_and_cache_are_not_in_the_pools_sum():
    cache = Vdev("cache-1", "disk", "cache", guid="cache")
    history = PoolHistory()
    for n in range(2):
        tops = (
            Vdev("d", "disk", guid="d", io=IoCounters(n, n, 0, n * 100, 0)),
            Vdev("c", "disk", "cache", guid="c", io=IoCounters(n, n, 0, n * 900, 0)),
            cache,
        )
        root = Vdev("tank", "root", guid="root", children=tops)
        history.push(Sample(T + n, n, "libzfs", True, Pool("tank", "ONLINE", root)))
    assert history.rates["root"].read == 100
    assert history.rates["c"].read == 900


def test_sparklines_hold_every_vdev_and_scan():
    history = PoolHistory()
    scan = Scan("scrub", "running", start=T, total_bytes=10**9, scanned_bytes=0, issued_bytes=0)
    for n in range(10):
        moved = scan._replace(issued_bytes=n * MIB)
        history.push(sample(n, disk("a", n), scans=(moved,)))
    assert history.series.tail("a", "read", 3) == [MIB, MIB, MIB]
    assert history.series.tail("top", "read", 1) == [MIB]
    assert history.series.tail("scan:scrub:", "issue_rate", 1) == [pytest.approx(MIB)]


def test_a_leaf_that_came_back_is_remembered_until_a_repair_has_finished():
    history = PoolHistory()
    resilver = Scan("resilver", "running", start=T + 2)
    history.push(sample(0, disk("a"), disk("b", state="OFFLINE")))
    assert history.returned == frozenset()
    history.push(sample(2, disk("a"), disk("b"), scans=(resilver,)))
    history.push(sample(9, disk("a"), disk("b", resilvering=True), scans=(resilver,)))
    assert history.returned == {"b"}
    earlier = Scan("resilver", "finished", start=T - 9, end=T - 5)
    history.push(sample(10, disk("a"), disk("b"), scans=(resilver, earlier)))
    assert history.returned == {"b"}
    done = Scan("resilver", "finished", start=T + 2, end=T + 11)
    history.push(sample(12, disk("a"), disk("b"), scans=(done,)))
    assert history.returned == frozenset()


def test_a_spare_that_was_filled_between_two_samples_has_not_come_back():
    history, resilver = PoolHistory(), Scan("resilver", "finished", start=T + 2, end=T + 5)
    history.push(sample(0, disk("a"), disk("s", vclass="spare", state="AVAIL")))
    spare = disk("s", vclass="spare", state="INUSE")
    history.push(sample(60, disk("a"), disk("s"), spare, scans=(resilver,)))
    assert history.returned == frozenset()


def test_a_leaf_that_leaves_again_is_simply_gone():
    history = PoolHistory()
    for second, state in enumerate(("OFFLINE", "ONLINE", "REMOVED")):
        history.push(sample(second, disk("a"), disk("b", state=state)))
    assert history.returned == frozenset()


def test_when_a_leaf_went_missing():
    history = PoolHistory()
    history.push(sample(0, disk("a"), disk("b", state="FAULTED")))
    assert history.missing.get("b") is None
    history.push(sample(5, disk("a", state="REMOVED"), disk("b", state="FAULTED")))
    history.push(sample(9, disk("a", state="REMOVED"), disk("b", state="FAULTED")))
    assert history.missing.get("a") == T + 5
    assert [e.text for e in history.events] == ["a went from ONLINE to REMOVED"]
    history.push(sample(12, disk("a"), disk("b")))
    assert history.missing.get("a") is None


def test_a_hung_pool_keeps_what_diskstats_gives_and_notices_a_device_that_left():
    history = PoolHistory()
    for n in range(2):
        a, b = disk("a", block=block(n * 100, 0.0)), disk("b", block=block(0, 0.0))
        history.push(sample(n, a, b))
    left = {"/dev/a": block(300, 1.0)}
    trouble = SampleFailure("tank", T + 2, 2.0, "no answer", block=left, gone=("/dev/b",))
    history.push_failure(trouble)
    assert history.rates["a"].busy == 0.5
    assert history.missing.get("b") == T + 2
    assert history.missing.get("a") is None
    assert history.events[-1].text == "the device of b is gone"
    history.push_failure(SampleFailure("tank", T + 3, 3.0, "no answer"))
    assert history.rates["a"].busy is None
    assert history.missing.get("b") == T + 2
    both = {"/dev/a": block(300, 1.0), "/dev/b": block(0, 0.0)}
    history.push_failure(SampleFailure("tank", T + 4, 4.0, "no answer", block=both))
    assert history.missing.get("b") is None  # the disk was put back


def test_trouble_before_the_first_sample_is_no_matter():
    history = PoolHistory()
    history.push_failure(SampleFailure("tank", T, 0.0, "no answer"))
    assert history.events == ()


@rows("name", ["a", "/var/tmp/a"])
def test_what_zpool_events_told_is_not_told_twice(name):
    from tests.records import replace
    from zconsole.pool.model import Event

    history = PoolHistory()
    history.push(sample(0, disk(name)))
    told = Event(T + 1, "statechange", "a went from ONLINE to FAULTED", "error", vdev="a")
    history.push(replace(sample(1, disk(name, state="FAULTED")), events=(told,)))
    assert history.events == (told,)


def test_removal_trim_and_initialize_have_rates_and_estimates():
    history = PoolHistory()
    for n in range(60):
        removal = Activity("removal", "running", "mirror-1", T, None, n * 10 * MIB, 1000 * MIB)
        trim = Progress("active", n * MIB, 100 * MIB, n / 100, T)
        done = Progress("complete", 5, 5, 1.0, T)
        leaf = disk("a", trim=trim, initialize=done)
        last = sample(n, leaf, activities=(removal,))
        history.push(last)
    first, second, third = history.activity_views
    assert first.rate == pytest.approx(10 * MIB)
    assert first.estimate.eta == pytest.approx(41, rel=0.1)
    assert (second.activity.kind, second.activity.vdev) == ("trim", "a")
    assert second.estimate.eta == pytest.approx(41, rel=0.1)
    assert (third.activity.state, third.estimate.eta) == ("finished", None)


def test_a_suspended_trim_is_no_running_one():
    last = sample(0, disk("a", trim=Progress("suspended", 5, 10)))
    history = PoolHistory()
    history.push(last)
    (view,) = history.activity_views
    assert (view.activity.state, view.estimate.reason) == ("paused", "paused")


def large(n: int, width: int = 10, tops: int = 100, power: int = 1) -> Sample:
    def leaf(t: int, i: int) -> Vdev:
        io = IoCounters(float(n), n * 10, n * 5, n**power * MIB, n * MIB)
        return Vdev(
            f"d{t}-{i}", "disk", guid=f"{t}-{i}", path="/dev/x", io=io, block=block(n, n * 0.1)
        )

    children = tuple(
        Vdev(f"raidz2-{t}", "raidz2", guid=f"{t}", children=tuple(leaf(t, i) for i in range(width)))
        for t in range(tops)
    )
    root = Vdev("tank", "root", guid="root", children=children)
    return Sample(T + n, float(n), "libzfs", True, Pool("tank", "ONLINE", root))


@pytest.mark.slow
def test_a_thousand_leaves_are_followed_in_little_time():
    history = PoolHistory()
    samples = [large(n) for n in range(8)]
    spent = []
    for one in samples:
        before = time.process_time()
        history.push(one)
        spent.append(time.process_time() - before)
    assert min(spent[2:]) < 0.05


@pytest.mark.slow
@rows(("tops", "read"), [(2, 7 * MIB), (200, 4 * MIB)])
def test_sparklines_of_very_many_vdevs_show_the_rates_of_the_window(tops, read):
    history = PoolHistory()
    for n in range(5):
        history.push(large(n, tops=tops, power=2))
    assert history.rates["1-1"].read == pytest.approx(4 * MIB)
    assert history.series.tail("1-1", "read", 1) == [pytest.approx(read)]


def test_vdevs_that_left_are_forgotten():
    history = PoolHistory()
    for n in range(50):
        history.push(sample(n, disk(f"disk-{n}", n)))
    assert set(history.series.keys()) == {"root", "top", "disk-49"}


words = st.sampled_from(["ONLINE", "FAULTED", "REMOVED", "odd"])


@st.composite
def pools(draw):
    count = draw(st.integers(0, 4))
    numbers = st.one_of(st.none(), st.integers(0, 2**70))
    leaves = [
        disk(
            f"d{draw(st.integers(0, 3))}",
            state=draw(words),
            io=IoCounters(draw(st.floats(0, 1e9)), *(draw(st.integers(0, 2**63)) for _ in "rwrw")),
            resilvering=draw(st.booleans()),
            awaiting_resilver=draw(st.booleans()),
            trim=draw(st.sampled_from([None, Progress("active", 5, 3), Progress("odd")])),
        )
        for _ in range(count)
    ]
    scan = Scan(
        draw(st.sampled_from(["resilver", "scrub", "rebuild", "errorscrub", "none", "odd"])),
        draw(st.sampled_from(["running", "paused", "finished", "canceled", "none"])),
        draw(st.sampled_from(["scanning", "issuing", None])),
        start=draw(st.sampled_from([None, T, T + 5])),
        end=draw(st.sampled_from([None, T + 9])),
        total_bytes=draw(numbers),
        scanned_bytes=draw(numbers),
        issued_bytes=draw(numbers),
        skipped_bytes=draw(numbers),
        processed_bytes=draw(numbers),
        percent=draw(st.one_of(st.none(), st.floats(0, 500))),
        resolution=draw(st.sampled_from([0.0, 1e6, 1e12])),
        pass_start=draw(st.sampled_from([None, T, T + 3])),
        two_stage=draw(st.booleans()),
    )
    return sample(draw(st.floats(-100, 1e6)), *leaves, scans=(scan,))


@pytest.mark.slow
@given(st.lists(pools(), max_size=8))
def test_no_sequence_of_samples_breaks_the_history(samples):
    history = PoolHistory()
    for one in samples:
        history.push(one)
        for view in history.scan_views:
            assert view.estimate.reason
            assert view.issue_rate is None or view.issue_rate >= 0
            assert view.scan_rate is None or view.scan_rate >= 0
