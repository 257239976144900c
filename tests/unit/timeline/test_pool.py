"""One pool over time: the history of its samples, and the frames made from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factory import mirror_pool
from tests.records import replace
from tests.table import rows
from tests.unit.actions import pools
from zconsole.actions.facts import situation_of
from zconsole.actions.plan import Facts
from zconsole.pool.balance import balance
from zconsole.pool.health import health
from zconsole.pool.model import (
    Activity,
    BlockCounters,
    ErrorCounters,
    Event,
    HostLoad,
    IoCounters,
    Pool,
    Progress,
    Sample,
    SampleFailure,
    Scan,
    Vdev,
    placed,
)
from zconsole.pool.redundancy import redundancy
from zconsole.sim.source import World
from zconsole.timeline import pool as pool_module
from zconsole.timeline.pool import PoolTimeline
from zconsole.timeline.scans import ScanTrack
from zconsole.timeline.session import Session

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


@rows(("own", "read"), [(None, 2 * MIB), (7, 7)])
def test_an_interior_vdev_is_the_sum_of_its_leaves_unless_the_kernel_counts_it(own, read):
    timeline = PoolTimeline()
    for n in range(2):
        top = None if own is None else IoCounters(float(n), n, 0, n * own, 0)
        timeline.push(sample(n, disk("a", n), disk("b", n), top=top))
    assert timeline.rates.now["a"].read == MIB
    assert timeline.rates.now["top"].read == timeline.rates.now["root"].read == read


def test_when_a_replacement_or_a_waiting_device_came_is_known_once_it_was_seen_to():
    pair = Vdev("replacing-0", "replacing", guid="pair", children=(disk("a"), disk("n")))
    timeline = PoolTimeline()
    timeline.push(sample(0, pair, disk("b")))
    assert timeline.absences.regrouped is None
    timeline.push(sample(1, disk("n"), disk("b")))
    timeline.push(sample(2, pair, disk("b")))
    timeline.push(sample(3, pair, disk("b")))
    assert timeline.absences.regrouped == T + 2
    timeline.push(sample(4, pair, disk("b", awaiting_resilver=True)))
    assert timeline.absences.regrouped == T + 4


def test_a_group_whose_counters_fell_agrees_with_its_leaves():
    """A device that leaves takes its counters out of the kernel's sum for the group."""
    timeline = PoolTimeline()
    for n in range(12):
        replaced = 3 * MIB if n < 4 else 0
        own = IoCounters(float(n), n, 0, min(n, 5) * 2 * MIB + replaced, 0)
        leaves = [disk(name, n)._replace(io=_until(n, 5)) for name in "ab"]
        timeline.push(sample(n, *leaves, top=own))
        if n > 0:
            sums = sum(timeline.rates.now[name].read for name in "ab")
            assert timeline.rates.now["top"].read == pytest.approx(sums)
            assert timeline.rates.now["root"].read == pytest.approx(sums)


def _until(second: int, end: int) -> IoCounters:
    moved = min(second, end)
    return IoCounters(float(second), moved, 0, moved * MIB, 0)


def test_the_start_of_a_scan_is_told_once_also_where_the_kernels_event_comes_late():
    scrub = Scan("scrub", "running", start=T + 60)
    start = Event(T + 60.2, "scrub_start", "scrub start")
    at_once, late = PoolTimeline(), PoolTimeline()
    at_once.push(sample(0))
    at_once.push(replace(sample(60), events=(start,)))
    at_once.push(sample(120, scans=(scrub,)))
    late.push(sample(0))
    late.push(sample(60.5, scans=(scrub,)))
    late.push(replace(sample(61, scans=(scrub,)), events=(start,)))
    assert at_once.events.all == late.events.all == (start,)


def test_above_the_leaves_latency_is_the_mean_request_and_busy_the_busiest_disk():
    timeline = PoolTimeline()
    for n in range(2):
        fast, slow = block(30 * n, 0.2 * n, 0.010), block(10 * n, 0.9 * n, 0.050)
        timeline.push(sample(n, disk("a", block=fast), disk("b", block=slow)))
    found = timeline.rates.now["top"]
    assert found.latency == pytest.approx(0.020)
    assert found.busy == pytest.approx(0.9)


def test_spares_and_cache_are_not_in_the_pools_sum():
    cache = Vdev("cache-1", "disk", "cache", guid="cache")
    timeline = PoolTimeline()
    for n in range(2):
        tops = (
            Vdev("d", "disk", guid="d", io=IoCounters(n, n, 0, n * 100, 0)),
            Vdev("c", "disk", "cache", guid="c", io=IoCounters(n, n, 0, n * 900, 0)),
            cache,
        )
        root = Vdev("tank", "root", guid="root", children=tops)
        timeline.push(Sample(T + n, n, "libzfs", True, Pool("tank", "ONLINE", root)))
    assert timeline.rates.now["root"].read == 100
    assert timeline.rates.now["c"].read == 900


def test_sparklines_hold_every_vdev_and_scan():
    timeline = PoolTimeline()
    scan = Scan("scrub", "running", start=T, total_bytes=10**9, scanned_bytes=0, issued_bytes=0)
    for n in range(10):
        moved = scan._replace(issued_bytes=n * MIB)
        timeline.push(sample(n, disk("a", n), scans=(moved,)))
    assert timeline.rates.series.tail("a", "read", 3) == [MIB, MIB, MIB]
    assert timeline.rates.series.tail("top", "read", 1) == [MIB]
    assert timeline.rates.series.tail("scan:scrub:", "issue_rate", 1) == [pytest.approx(MIB)]


def test_a_leaf_that_came_back_is_remembered_until_a_repair_has_finished():
    timeline = PoolTimeline()
    resilver = Scan("resilver", "running", start=T + 2)
    timeline.push(sample(0, disk("a"), disk("b", state="OFFLINE")))
    assert set(timeline.absences.returned) == frozenset()
    timeline.push(sample(2, disk("a"), disk("b"), scans=(resilver,)))
    timeline.push(sample(9, disk("a"), disk("b", resilvering=True), scans=(resilver,)))
    assert set(timeline.absences.returned) == {"b"}
    earlier = Scan("resilver", "finished", start=T - 9, end=T - 5)
    timeline.push(sample(10, disk("a"), disk("b"), scans=(resilver, earlier)))
    assert set(timeline.absences.returned) == {"b"}
    timeline.push(sample(11, disk("a"), disk("b", state="REMOVED"), scans=(resilver,)))
    assert set(timeline.absences.returned) == frozenset(), "it left again"
    timeline.push(sample(12, disk("a"), disk("b"), scans=(resilver,)))
    done = Scan("resilver", "finished", start=T + 2, end=T + 13)
    timeline.push(sample(14, disk("a"), disk("b"), scans=(done,)))
    assert set(timeline.absences.returned) == frozenset()


def test_a_leaf_that_was_filled_within_a_second_or_between_two_samples_counts_in_the_next_repair():
    away = (disk("a"), disk("b", state="OFFLINE"), disk("c"))
    back = (disk("a"), disk("b"), disk("c"))
    running = Scan("resilver", "running", start=T + 1)
    done = Scan("resilver", "finished", start=T + 1, end=T + 1)
    in_text = Scan("resilver", "finished", end=T + 1, duration=0.0)
    for ended in (done, in_text):
        for seen in ((running,), ()):
            timeline = PoolTimeline()
            timeline.push(sample(0.1, *away))
            for scan in seen:
                timeline.push(sample(1.1, *back, scans=(scan,)))
            timeline.push(sample(2.1, *back, scans=(ended,)))
            assert set(timeline.absences.returned) == frozenset()


def test_a_repair_that_ended_before_a_leaf_was_back_has_not_filled_it():
    timeline = PoolTimeline()
    timeline.push(sample(60, disk("a"), disk("b", state="OFFLINE")))
    done = Scan("resilver", "finished", start=T + 2, end=T + 61)
    timeline.push(sample(65, disk("a"), disk("b"), scans=(done,)))
    assert set(timeline.absences.returned) == {"b"}


@rows(
    "repair",
    [
        None,
        Scan("resilver", "running", start=T + 2, percent=0.3),
        Scan("rebuild", "running", start=T - 99, percent=40.0, vdev="mirror-7"),
    ],
)
def test_a_leaf_that_came_back_is_not_counted_before_its_resilver_has_ended(repair):
    """The kernel begins it with the next txg, and during a rebuild only after that."""
    timeline, scans = PoolTimeline(), (repair,) if repair else ()
    away = (disk("a"), disk("b", state="REMOVED"))
    assert timeline.push(sample(0, *away)).redundancy[0].left == 0
    for after in (1, 4, 9):
        back = timeline.push(sample(after, disk("a"), disk("b"), scans=scans))
        assert (after, back.redundancy[0].left) == (after, 0)
    done = Scan("resilver", "finished", start=T + 2, end=T + 11)
    assert timeline.push(sample(12, disk("a"), disk("b"), scans=(done,))).redundancy[0].left == 1


def test_a_leaf_that_came_back_is_counted_where_no_resilver_begins():
    """It missed nothing: ZFS begins none (vdev_resilver_needed)."""
    timeline = PoolTimeline()
    timeline.push(sample(0, disk("a"), disk("b", state="OFFLINE")))
    timeline.push(sample(1, disk("a"), disk("b")))
    assert timeline.push(sample(60, disk("a"), disk("b"))).redundancy[0].left == 1


def test_a_spare_that_was_filled_between_two_samples_has_not_come_back():
    timeline, resilver = PoolTimeline(), Scan("resilver", "finished", start=T + 2, end=T + 5)
    timeline.push(sample(0, disk("a"), disk("s", vclass="spare", state="AVAIL")))
    spare = disk("s", vclass="spare", state="INUSE")
    timeline.push(sample(60, disk("a"), disk("s"), spare, scans=(resilver,)))
    assert set(timeline.absences.returned) == frozenset()


def without_table(whole: Sample) -> Sample:
    return replace(whole, pool=replace(whole.pool, root=whole.pool.root._replace(children=())))


def cut_off(whole: Sample) -> Sample:
    (top,) = whole.pool.root.children
    root = whole.pool.root._replace(children=(top._replace(partial=True),))
    return replace(whole, pool=replace(whole.pool, root=root))


def test_devices_that_a_sample_does_not_show_have_not_left():
    """They are missing in a text that was cut off, or in JSON that has no tree."""
    a, b = disk("a"), disk("b")
    for samples in (
        (sample(0, a, b), without_table(sample(1)), sample(2, a, b)),
        (sample(0, a, b), cut_off(sample(1, a)), sample(2, a, b)),
        (without_table(sample(1)), sample(2, a, b)),
    ):
        timeline = PoolTimeline()
        for each in samples:
            timeline.push(each)
        assert timeline.events.all == ()


def test_a_device_that_fails_in_a_text_that_is_cut_off_is_told():
    timeline = PoolTimeline()
    timeline.push(sample(0, disk("a"), disk("b")))
    timeline.push(cut_off(sample(1, disk("a", state="FAULTED"))))
    assert [e.text for e in timeline.events.all] == ["a went from ONLINE to FAULTED"]


def test_a_pool_that_hangs_after_a_sample_without_devices_has_its_frame():
    timeline = PoolTimeline()
    timeline.push(without_table(sample(0)))
    frame = timeline.push_failure(SampleFailure("tank", T + 1, 1.0, "no answer"))
    assert frame.problem == "no answer"


def test_when_a_leaf_went_missing():
    timeline = PoolTimeline()
    timeline.push(sample(0, disk("a"), disk("b", state="FAULTED")))
    assert timeline.absences.missing.get("b") is None
    timeline.push(sample(5, disk("a", state="REMOVED"), disk("b", state="FAULTED")))
    timeline.push(sample(9, disk("a", state="REMOVED"), disk("b", state="FAULTED")))
    assert timeline.absences.missing.get("a") == T + 5
    assert [e.text for e in timeline.events.all] == ["a went from ONLINE to REMOVED"]
    timeline.push(sample(12, disk("a"), disk("b")))
    assert timeline.absences.missing.get("a") is None


def test_a_hung_pool_keeps_what_diskstats_gives_and_notices_a_device_that_left():
    timeline = PoolTimeline()
    for n in range(2):
        a, b = disk("a", block=block(n * 100, 0.0)), disk("b", block=block(0, 0.0))
        timeline.push(sample(n, a, b))
    left = {"/dev/a": block(300, 1.0)}
    trouble = SampleFailure("tank", T + 2, 2.0, "no answer", block=left, gone=("/dev/b",))
    timeline.push_failure(trouble)
    assert timeline.rates.now["a"].busy == 0.5
    assert timeline.absences.missing.get("b") == T + 2
    assert timeline.absences.missing.get("a") is None
    assert timeline.events.all[-1].text == "the device of b is missing"
    timeline.push_failure(SampleFailure("tank", T + 3, 3.0, "no answer"))
    assert timeline.rates.now["a"].busy is None
    assert timeline.absences.missing.get("b") == T + 2
    both = {"/dev/a": block(300, 1.0), "/dev/b": block(0, 0.0)}
    timeline.push_failure(SampleFailure("tank", T + 4, 4.0, "no answer", block=both))
    assert timeline.absences.missing.get("b") is None  # the disk was put back


@rows("at", [0, 1, 2])
@rows("name", ["a", "/var/tmp/a"])
def test_a_change_of_a_device_is_told_once_whichever_sample_brings_the_kernels_event(at, name):
    timeline = PoolTimeline()
    told = Event(T + 0.9, "statechange", "a went from ONLINE to FAULTED", "error", vdev="a")
    for second, state in enumerate(("ONLINE", "FAULTED", "FAULTED", "ONLINE")):
        each = sample(second, disk(name, state=state))
        timeline.push(replace(each, events=(told,) if second == at else ()))
    texts = [event.text for event in timeline.events.all]
    assert texts == ["a went from ONLINE to FAULTED", f"{name} went from FAULTED to ONLINE"]


def test_removal_trim_and_initialize_have_rates_and_estimates():
    timeline = PoolTimeline()
    for n in range(60):
        removal = Activity("removal", "running", "mirror-1", T, None, n * 10 * MIB, 1000 * MIB)
        trim = Progress("active", n * MIB, 100 * MIB, n / 100, T)
        done = Progress("complete", 5, 5, 1.0, T)
        leaf = disk("a", trim=trim, initialize=done)
        last = sample(n, leaf, activities=(removal,))
        timeline.push(last)
    first, second, third = timeline.frame.activities
    assert first.rate == pytest.approx(10 * MIB)
    assert first.estimate.eta == pytest.approx(41, rel=0.1)
    assert (second.activity.kind, second.activity.vdev) == ("trim", "a")
    assert second.estimate.eta == pytest.approx(41, rel=0.1)
    assert (third.activity.state, third.estimate.eta) == ("finished", None)


def test_a_suspended_trim_is_no_running_one():
    last = sample(0, disk("a", trim=Progress("suspended", 5, 10)))
    timeline = PoolTimeline()
    timeline.push(last)
    (view,) = timeline.frame.activities
    assert (view.activity.state, view.estimate.reason) == ("paused", "paused")


def test_vdevs_that_left_are_forgotten():
    timeline = PoolTimeline()
    for n in range(50):
        timeline.push(sample(n, disk(f"disk-{n // 5}", n)))
    assert set(timeline.rates.series.keys()) == {"root", "top", "disk-9"}


words = st.sampled_from(["ONLINE", "FAULTED", "REMOVED", "odd"])


@st.composite
def odd_samples(draw):
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
@given(st.lists(odd_samples(), max_size=8))
def test_no_sequence_of_samples_breaks_the_timeline(samples):
    timeline = PoolTimeline()
    for one in samples:
        timeline.push(one)
        for view in timeline.frame.scans:
            assert view.estimate.reason
            assert view.issue_rate is None or view.issue_rate >= 0
            assert view.scan_rate is None or view.scan_rate >= 0


RUNNING = Scan("scrub", "running", start=900.0, total_bytes=1000, issued_bytes=10)


def of_mirror(t: float, **fields) -> Sample:
    pool = mirror_pool(RUNNING, action="do this", see="there", damaged=True)
    return Sample(t, t, "libzfs", True, pool, kstat="ONLINE", **fields)


def counted(monkeypatch, owner, name) -> list[None]:
    """Return a list that gets an entry for every further call of ``owner.name``."""
    calls, work = [], getattr(owner, name)

    def call(*args):
        calls.append(None)
        return work(*args)

    monkeypatch.setattr(owner, name, call)
    return calls


def test_a_sample_costs_one_walk_of_the_tree_and_one_look_at_its_scans(monkeypatch):
    walks = counted(monkeypatch, pool_module, "placed")
    views = counted(monkeypatch, ScanTrack, "view")
    frame = PoolTimeline().push(of_mirror(1000.0))
    assert len(frame.rows) == 4
    assert len(walks) == len(views) == 1


def test_the_pool_of_a_frame_reaches_plans_whole():
    now = of_mirror(1000.0)
    frame = PoolTimeline().push(now)
    assert situation_of(frame, Facts()).pool == now.pool


def test_a_disk_that_disconnected_and_returned_within_the_hour_wants_attention():
    def at(t: float, state: str) -> Sample:
        pool = mirror_pool(RUNNING)
        top = pool.root.children[0]
        sda = top.children[0]._replace(state=state)
        top = top._replace(children=(sda, *top.children[1:]))
        return Sample(t, t, "libzfs", True, replace(pool, root=pool.root._replace(children=(top,))))

    timeline = PoolTimeline()
    words = [
        timeline.push(at(t, state)).health.word
        for t, state in ((1000.0, "ONLINE"), (1005.0, "REMOVED"))
    ]
    timeline.push(at(1010.0, "ONLINE"))
    found = timeline.push(at(1030.0, "ONLINE")).health
    assert (*words, found.word) == ("OK", "DEGRADED", "ATTENTION")
    assert found.reasons == ("sda: disconnected, returned in the last hour",)
    assert timeline.push(at(1010.0 + 3601.0, "ONLINE")).health.word == "OK"


def test_a_failure_ages_the_frame_and_leaves_what_the_sample_told():
    timeline = PoolTimeline()
    last = timeline.push(of_mirror(1000.0, host=HostLoad(0.5), began=7.0))
    stale = timeline.push_failure(SampleFailure("tank", 1030.0, 1030.0, "it hangs", began=9.0))
    assert (stale.t, stale.stale_seconds, stale.problem) == (1000.0, 30.0, "it hangs")
    assert (stale.seen, stale.root) == (last.seen, last.root)
    assert (stale.host, stale.kstat, stale.looked) == (HostLoad(0.5), None, 9.0)
    assert (last.stale_seconds, last.problem, last.looked) == (0.0, None, 7.0)


def test_a_pool_never_sampled_has_the_kernels_word_for_its_state():
    failure = SampleFailure("tank", 1030.0, 1030.0, "it hangs", kstat="SUSPENDED", absent=True)
    blank = PoolTimeline().push_failure(failure)
    assert blank.events == ()
    assert (blank.t, blank.state, blank.stale_seconds) == (1030.0, "SUSPENDED", None)
    assert (blank.root, blank.sample, blank.absent) == (None, None, True)


def test_a_spare_is_not_called_idle_before_the_device_that_came_back_is_repaired():
    def at(t: float, state: str, *scans: Scan) -> Sample:
        pair = pools.group("spare", pools.disk("d00", 1000, state), pools.disk("sp", 1900))
        own = pools.disk("sp", 1900, "INUSE", vclass="spare")
        found = pools.pool(pools.top("raidz2", 0, 6, pair), spares=(own,), scans=scans)
        return Sample(t, t, "libzfs", True, found)

    timeline = PoolTimeline()
    filled = Scan("resilver", "finished", start=100.0, end=200.0, errors=0)
    repaired = Scan("resilver", "finished", start=1015.0, end=1020.0, errors=0)
    spares = [
        [found.kind for found in timeline.push(sample).spares]
        for sample in (
            at(1000.0, "FAULTED", filled),
            at(1010.0, "ONLINE", filled),
            at(1100.0, "ONLINE", repaired),
        )
    ]
    assert spares == [[], [], ["idle"]]


@rows(
    "change",
    [
        {},
        {"io": IoCounters(9.0, 1, 1, 1, 1)},
        {"state": "REMOVED"},
        {"errors": ErrorCounters(0, 0, 3)},
        {"awaiting_resilver": True},
        {"note": "was /dev/sdx"},
    ],
)
def test_what_is_said_of_a_pool_is_that_of_its_newest_sample(change):
    first = of_mirror(1000.0)
    top = first.pool.root.children[0]
    disks = (top.children[0]._replace(**change), *top.children[1:])
    root = first.pool.root._replace(children=(top._replace(children=disks),))
    timeline, pool = PoolTimeline(), replace(first.pool, root=root)
    for t, seen in enumerate((first.pool, pool, pool, first.pool)):
        frame = timeline.push(replace(first, t=1000.0 + t, clock=1000.0 + t, pool=seen))
        left = redundancy(timeline.absences.unfilled(frame.sample))
        assert frame.redundancy == tuple(entry for _, entry in left)
        assert frame.balance == balance(seen.root)
        assert {row.key: row.vdev for row in frame.rows} == {
            place.key: place.vdev for place in placed(seen.root)
        }
        own = health(seen, frame.t, timeline.absences.regrouped).reasons
        remembered = ("returned", "cleared", "no redundancy left")
        told = frame.health.reasons
        assert own == tuple(why for why in told if not any(word in why for word in remembered))


@rows(
    ("busy", "wait", "marked"),
    [
        ((0.99, 0.3, 0.3, 0.3), (0.061, 0.008, 0.008, 0.008), "61ms, siblings 8ms"),
        ((0.95, 0.75, 0.75, 0.75), (0.03, 0.016, 0.016, 0.016), "95 % busy, siblings 75 %"),
        ((0.99, 0.99, 0.99, 0.99), (0.8, 0.7, 0.7, 0.7), "99 % busy, 99ms per request"),
    ],
)
def test_the_disk_that_is_blamed_for_a_slow_scan_is_marked_from_the_first_moment_on(
    busy, wait, marked
):
    """For half a minute no disk was marked, although one was blamed."""
    timeline, blamed = PoolTimeline(), 0
    for n in range(40):
        leaves = (
            disk(name, block=block(10 * n, busy[at] * n, wait[at]))
            for at, name in enumerate("abcd")
        )
        scan = Scan("scrub", "running", "issuing", T, issued_bytes=n * MIB, total_bytes=10**12)
        frame = timeline.push(sample(n, *leaves, scans=(scan,)))
        if frame.limit.cause == "slow-disk":
            blamed += 1
            marks = {row.vdev.name: row.slow_sibling for row in frame.rows}
            assert marks["a"] == marked
    assert blamed > 30


@pytest.mark.slow
def test_what_limits_the_scan_is_known_again_after_the_machine_started_anew():
    """Nothing was judged until its monotonic clock had passed its former value."""
    world, session, new = World("resilver", 7), Session(goes_on=True), Session(goes_on=True)
    for second in range(80):
        world.advance(float(second))
        up = 1e6 if second < 40 else 0.0
        told = [{**raw, "clock": second + up} for raw in world.raws()]
        (frame,) = session.advance(told)  # type: ignore[arg-type]
        if not up:
            (fresh,) = new.advance(told)  # type: ignore[arg-type]
    assert frame.limit is not None
    assert frame.limit.sure > 0
    assert fresh.limit is not None
    assert frame.limit.text == fresh.limit.text


def test_a_leaf_that_came_back_is_known_by_another_name_after_an_import():
    """Its ``sdb`` is ``sdc`` then, and another disk is ``sdb``."""

    def named(letter: str, guid: str, **fields) -> Vdev:
        return replace(disk(letter, **fields), guid=guid)

    timeline, resilver = PoolTimeline(), Scan("resilver", "running", start=T + 1)
    timeline.push(sample(0, named("sda", "1"), named("sdb", "2", state="REMOVED")))
    timeline.push(sample(1, named("sda", "1"), named("sdb", "2"), scans=(resilver,)))
    timeline.push_failure(SampleFailure("tank", T + 5, 5.0, "no longer imported", absent=True))
    timeline.push(sample(20, named("sdb", "1"), named("sdc", "2"), scans=(resilver,)))
    assert set(timeline.absences.returned) == {"sdc"}
    timeline.push(sample(21, named("sdc", "1"), named("sdb", "2"), scans=(resilver,)))
    assert set(timeline.absences.returned) == {"sdb"}


def test_the_busiest_datasets_are_of_a_running_scan_of_a_pool_that_answers():
    timeline, key = PoolTimeline(), ("tank/vm", "5")
    scrub = Scan("scrub", "running", start=T)

    def push(second: float, *scans: Scan):
        counted = {key: IoCounters(second, 0, 0, int(second) * MIB, 0)}
        return timeline.push(replace(sample(second, disk("a"), scans=scans), datasets=counted))

    push(0, scrub)
    (found,) = push(5, scrub).busiest_datasets
    assert (found.name, found.read_rate) == ("tank/vm", MIB)
    slow = SampleFailure("tank", T + 6, 6.0, "no answer", "ONLINE")
    assert timeline.push_failure(slow).busiest_datasets == (found,)
    assert timeline.push_failure(slow._replace(kstat="SUSPENDED")).busiest_datasets is None
    assert push(7, scrub._replace(state="paused")).busiest_datasets is None


NAMES = "abcd"
BAD = ErrorCounters(7, 0, 0)


def mended(
    second: float, start: float | None, kind: str = "replacing", guids: bool = True, **changed: Vdev
) -> Sample:
    """Return a sample of a raidz2 whose disk ``d``, with read errors, gives way to ``e``.

    ``start`` is the second at which its resilver began; None before the replacement.
    ``changed``: disks by name that are not as the others.
    """

    def leaf(name: str, **fields) -> Vdev:
        known = {"guid": name if guids else None, "path": f"/dev/{name}", **fields}
        return changed.get(name, Vdev(name, "disk", **known))

    leaves = [*map(leaf, NAMES[:-1]), leaf("d", errors=BAD)]
    scans: tuple[Scan, ...] = ()
    if start is not None:
        scans = (Scan("resilver", "running", start=T + start, percent=40.0, processed_bytes=9),)
        marked = {"resilvering": True, "note": "(resilvering)"}
        pair = leaf("d", errors=BAD, **marked), leaf("e", **marked)
        leaves[-1] = Vdev(f"{kind}-3", kind, guid="pair" if guids else None, children=pair)
    raidz = Vdev("raidz2-0", "raidz2", guid="top" if guids else None, children=tuple(leaves))
    pool = Pool("tank", "ONLINE", Vdev("tank", "root", children=(raidz,)), scans=scans)
    return Sample(T + second, second, "libzfs", True, pool)


def left_in(timeline: PoolTimeline, *samples: Sample) -> tuple[int, str]:
    """Return how many devices may fail after these samples, and for what that doesn't hold."""
    for each in samples:
        timeline.push(each)
    (entry,) = timeline.frame.redundancy
    return entry.left, entry.reservation


@rows("kind", ["replacing", "spare"])
@rows("guids", [True, False])
def test_an_old_disk_that_never_left_counts_but_for_blocks_it_cannot_read(kind, guids):
    """The resilver writes blocks again that it could not read, and zpool marks it therefore."""
    timeline = PoolTimeline()
    found = left_in(timeline, mended(0, None, guids=guids), mended(1, 0, kind, guids))
    assert found == (2, "1 for blocks d can't read")
    old, new = (row.vdev for row in timeline.frame.rows if row.vdev.name in ("d", "e"))
    assert not old.resilvering
    assert old.note == "(repairing)"
    assert new.resilvering
    assert redundancy(situation_of(timeline.frame, Facts()).pool)[0][1].left == 2, "as in plans"
    away = disk("a", state="REMOVED")
    assert left_in(timeline, mended(2, 0, kind, guids, a=away)) == (
        1,
        "none for blocks d can't read",
    )
    gone = {name: disk(name, state="REMOVED") for name in "ab"}
    assert left_in(timeline, mended(3, 0, kind, guids, **gone)) == (0, "")


def test_other_disks_that_a_resilver_repairs_count_as_well():
    marked = disk("c", resilvering=True, note="(resilvering)")
    found = left_in(PoolTimeline(), mended(0, None), mended(1, 0, c=marked))
    assert found == (2, "none for blocks c and d can't read")


AWAY = disk("d", state="REMOVED")
WAITS = disk("d", awaiting_resilver=True)
OTHER = disk("a", state="REMOVED")


def failed(second: float, **fields) -> Sample:
    """Return a sample before the replacement whose last resilver did not fill every device."""
    was = Scan("resilver", fields.pop("state", "finished"), start=T - 9, end=T - 5, **fields)
    now = mended(second, None)
    return replace(now, pool=replace(now.pool, scans=(was,)))


def told(now: Sample, name: str) -> Sample:
    """Return the sample with what the kernel tells of disk ``d``."""
    return replace(now, events=(Event(now.t, name, "", vdev="d"),))


@rows(
    ("why", "samples"),
    [
        ("seen from the middle on", [mended(0, 0)]),
        (
            "away before, and not repaired",
            [mended(0, None, d=AWAY), mended(1, None), mended(2, 1)],
        ),
        ("away meanwhile", [mended(0, None), mended(1, 0, d=AWAY), mended(2, 2)]),
        (
            "away so shortly that it only waits",
            [mended(0, None), mended(1, 0, d=WAITS), mended(2, 0)],
        ),
        ("the resilver only began again", [mended(0, None), mended(1, 0), mended(2, 2)]),
        ("only the kernel tells", [mended(0, None), told(mended(1, 0), "statechange")]),
        ("nobody watched as it began", [mended(0, None), mended(3600, 3599)]),
        ("the last resilver had errors", [failed(0, errors=3), mended(1, 0)]),
        ("the last resilver was canceled", [failed(0, state="canceled"), mended(1, 0)]),
        ("another resilver ran as it began", [failed(0, state="running"), mended(1, 0)]),
    ],
)
def test_an_old_disk_that_may_lack_data_does_not_count(why, samples):
    timeline = PoolTimeline()
    assert left_in(timeline, *samples) == (1, ""), why
    (old,) = (row.vdev for row in timeline.frame.rows if row.vdev.name == "d")
    assert old.resilvering, "in plans, too"


def test_an_old_disk_whose_device_left_while_the_pool_did_not_answer_does_not_count():
    timeline = PoolTimeline()
    assert left_in(timeline, mended(0, None), mended(1, 0))[0] == 2
    timeline.push_failure(SampleFailure("tank", T + 2, 2.0, "hangs", gone=("/dev/d",)))
    assert left_in(timeline, mended(3, 0)) == (1, "")


def test_a_new_disk_with_the_name_of_the_old_one_does_not_count():
    def named(second: float, start: float | None) -> Sample:
        """Return the sample as zpool's text has it after a replacement on the same path."""
        now = mended(second, start, guids=False)
        (top,) = now.pool.root.children
        *others, group = top.children
        if start is not None:
            old, new = group.children
            pair = old._replace(name="d/old"), new._replace(name="d")
            group = group._replace(children=pair)
        root = now.pool.root._replace(children=(top._replace(children=(*others, group)),))
        return replace(now, pool=replace(now.pool, root=root))

    timeline = PoolTimeline()
    assert left_in(timeline, named(0, None), named(1, 0)) == (2, "1 for blocks d/old can't read")
    marked = {row.vdev.name for row in timeline.frame.rows if row.vdev.resilvering}
    assert marked == {"d"}


def test_after_a_replacement_a_disk_that_the_next_resilver_writes_to_may_lack_data():
    timeline = PoolTimeline()
    left_in(timeline, mended(0, None), mended(1, 0), mended(2, None), mended(3, None, a=OTHER))
    again = Scan("resilver", "running", start=T + 4, percent=40.0, processed_bytes=9)
    marked = disk("c", resilvering=True, note="(resilvering)")
    for second in (4, 5):
        now = mended(second, None, c=marked)
        found = left_in(timeline, replace(now, pool=replace(now.pool, scans=(again,))))
    assert found == (0, ""), "a and c"


def test_a_resilver_that_begins_again_for_another_disk_tells_nothing_of_the_old_one():
    timeline = PoolTimeline()
    begun = mended(0, None), mended(1, 0), mended(2, 0, a=OTHER)
    assert left_in(timeline, *begun) == (1, "none for blocks d can't read")
    assert left_in(timeline, mended(3, 3)) == (1, "none for blocks d can't read")
