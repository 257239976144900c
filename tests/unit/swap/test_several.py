"""Several disks to swap: their order and its cost, and two of one vdev from start to end."""

from __future__ import annotations

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import OLD_FEATURES, disk, group, pool, running, top
from tests.unit.swap.playing import OLD, Play
from tests.unit.swap.test_choice import DISKS, device, view
from zconsole.actions.plan import Situation
from zconsole.actions.replace import plan_batch
from zconsole.actions.target import Swap, find
from zconsole.pool.model import Scan
from zconsole.scan_report.resilver_time import pace_of_past, pace_of_running
from zconsole.sim.build import Build
from zconsole.sim.disk import Leaf
from zconsole.sim.models import RED_4T
from zconsole.swap.checklist import DONE, PULL_FIRST, REPLACE_FIRST
from zconsole.swap.disk import in_replacement
from zconsole.swap.several import assigned, orders, predicted, urgent_first
from zconsole.timeline.eta.past import PastScan

OTHER = "Slot 08"
TWO = {"1000": 3600.0, "1001": 7200.0}
FREE = (device("n1"), device("n2"))


def test_together_needs_a_free_disk_for_each_and_takes_one_resilver():
    best, rest = orders(view(disks=(*DISKS, *FREE)), tuple(TWO), TWO)
    assert (best.together, best.seconds, best.least, best.refused) == (True, 7200.0, 2, "")
    assert (rest.together, rest.seconds, rest.least) == (False, 10800.0, 1)


def test_without_free_disks_it_is_one_after_the_other():
    best, rest = orders(view(disks=(*DISKS, FREE[0])), tuple(TWO), TWO)
    assert not best.together
    assert rest.refused == "1 more free disk needed in the machine"


def test_the_weakest_vdev_counts_without_what_it_lacks_already():
    lacks, degraded = disk("d01", 1001, "FAULTED"), disk("d10", 1010, "FAULTED")
    v = view(disk("d00", 1000), lacks)
    both = pool(top("raidz2", 0, 6), top("mirror", 1, 2, degraded))
    weak = replace(v, situation=replace(v.situation, pool=both))
    found = [orders(v, ("1000",), TWO), orders(weak, ("1000", "1010"), TWO)]
    least = [{order.together: order.least for order in each} for each in found]
    assert least == [{True: 1, False: 0}, {True: 0, False: 0}]


def test_an_unknown_duration_is_said():
    best, _ = orders(view(), tuple(TWO), {"1000": 3600.0})
    assert best.seconds is None
    assert "unknown duration" in best.text[1]


def test_the_failed_device_is_swapped_before_one_with_errors():
    v = view(disk("d00", 1000), disk("d01", 1001, "FAULTED"))
    assert [t.key for t in urgent_first(v, ("1000", "1001"))] == ["1001", "1000"]


def test_a_duration_is_predicted_from_the_scan_that_runs_where_no_other_is_known():
    play = Play()
    v, key = play.view(), str(play.leaf().guid)
    assert predicted(replace(v, situation=without_scans(v.situation)), [key]) == {key: None}
    running = Scan("resilver", "running", start=1000.0, total_bytes=8 << 40)
    pace = pace_of_running(v.situation.pool.root, running, 2000.0, 9000.0)
    assert pace is not None
    assert pace.rate == (8 << 40) / 10000.0 / 10
    bare = replace(v, situation=without_scans(v.situation))
    assert predicted(bare, [key], (), [pace])[key] is not None


def test_a_running_scan_without_an_eta_predicts_nothing():
    root = Play().view().situation.pool.root
    running = Scan("resilver", "running", start=1000.0, total_bytes=8 << 40)
    assert pace_of_running(root, running, 2000.0, None) is None


@rows(
    ("function", "vdev", "rate"),
    [("scrub", None, 1e9), ("rebuild", "mirror-0", None), ("errorscrub", None, None)],
)
def test_a_scan_that_another_took_the_place_of_tells_its_pace(function, vdev, rate):
    root = Play().view().situation.pool.root
    past = PastScan(function, vdev, 1000.0, 1000.0, 1e13, 1.0, ())
    pace = pace_of_past(root, past)
    assert (pace.rate if pace else None) == rate


def without_scans(s: Situation) -> Situation:
    return replace(s, pool=replace(s.pool, scans=()))


def test_a_duration_is_predicted_from_the_last_scan():
    play = Play()
    key = str(play.leaf().guid)
    (last,) = play.view().situation.pool.scans
    assert last.duration is not None
    (seconds,) = predicted(play.view(), [key]).values()
    assert seconds == pytest.approx(last.duration, rel=0.1)


RELEASES = [
    ({"features": OLD_FEATURES.features}, "lets no device wait: the resilver restarts for each"),
    ({"version": (2, 2, 7), "parameters": {}}, "wait: the plan restarts the resilver once for all"),
    ({}, "until 10 % are done, the resilver restarts for each new disk"),
    ({"parameters": {"zfs_resilver_disable_defer": 1}}, "lets no device wait"),
    ({"features": {}}, "if this release makes devices wait, the plan restarts the resilver once"),
]


@rows(("facts", "text"), RELEASES)
def test_one_resilver_for_all_is_told_as_the_release_does_it(facts, text):
    v = view(disks=(*DISKS, *FREE))
    s = v.situation
    v = replace(v, situation=replace(s, facts=replace(s.facts, **facts)))
    best, _ = orders(v, tuple(TWO), TWO)
    assert text in " ".join(best.text)


def test_a_resilver_that_runs_costs_time_too():
    joins = view(disks=(*DISKS, *FREE), scans=(running("resilver", 5.0),))
    waits = view(disks=(*DISKS, *FREE), scans=(running("resilver", 40.0),))
    said = [" ".join(orders(v, tuple(TWO), TWO)[0].text) for v in (joins, waits)]
    assert "the running one restarts from 0 (5.0 % lost)" in said[0]
    assert "the new disks wait for the running resilver (40.0 %), then one fills them" in said[1]
    assert "beyond the rest of the running one" in said[1]


def test_each_place_gets_a_free_disk_though_one_fits_in_both():
    small, large = device("n1", size=2**39), device("n2")
    low = [leaf._replace(size_bytes=2**38) for leaf in top("mirror", 1, 2).children]
    tops = (
        top("mirror", 0, 2),
        top("mirror", 1, 2, *low)._replace(size_bytes=2**38),
    )
    v = view(disks=(*DISKS, large, small))
    v = replace(v, situation=replace(v.situation, pool=pool(*tops)))
    targets = [find(v.situation.pool, key) for key in ("1010", "1000")]
    assert assigned(v, targets) == {"1010": small.path, "1000": large.path}


def test_a_disk_that_is_being_replaced_needs_no_other():
    filling = group("replacing", disk("d00", 1000), disk("n0", 70, resilvering=True))
    v = view(filling, disk("d01", 1001, "FAULTED"), disks=(*DISKS, FREE[0]))
    assert [t.key for t in in_replacement(v.situation.pool)] == ["1000"]
    assert not any(order.refused for order in orders(v, ("1000", "1001"), TWO))


def another(seed: int) -> Leaf:
    return Build(seed, "spare disks").leaf(RED_4T)


@pytest.fixture
def two(play: Play) -> Play:
    """A shelf with two bad disks, and two new ones in the drawer."""
    play.leaf(OTHER).reads.errors = 7.0
    play.pool.host.drawer[:] = [another(11), another(12)]
    return play


def swapped(play: Play, bay: str) -> None:
    """Pull first, from the first step to the report."""
    play.begin(PULL_FIRST, bay)
    play.do()
    play.hands.pull(bay)
    assert play.look().step == "insert"
    play.hands.insert(0, bay)
    assert play.do().step == "resilver"
    play.until("scrub")
    play.do()
    play.answer("no-wait")
    assert play.checklist.state == DONE


@pytest.mark.slow
def test_one_after_the_other(two: Play):
    old = {two.leaf(bay).serial for bay in (OLD, OTHER)}
    swapped(two, OLD)
    second = Play(world=two.world, store=two.store, elapsed=two.elapsed)
    swapped(second, OTHER)
    assert not old & {leaf.serial for leaf in two.pool.leaves()}
    assert two.pool.tops[0].lost() == 0
    assert {c.state for c in two.store.read()} == {DONE}


def test_the_second_waits_until_the_first_is_filled(two: Play):
    two.begin(PULL_FIRST)
    two.do()
    two.hands.pull(OLD)
    two.look()
    two.hands.insert(0, OLD)
    two.do()
    second = Play(world=two.world, store=two.store, elapsed=two.elapsed)
    (way,) = [way for way in second.choice(OTHER).ways if way.mode == PULL_FIRST]
    assert "wait for that resilver" in way.refused


@pytest.mark.slow
def test_one_resilver_for_both_and_each_is_pulled_afterwards(two: Play):
    two.hands.insert(0, "Slot 11")
    two.hands.insert(0, "Slot 12")
    keys = [str(two.leaf(bay).guid) for bay in (OLD, OTHER)]
    v = two.view()
    together = next(o for o in orders(v, keys, predicted(v, keys)) if o.together)
    assert together.refused == ""
    new = [leaf.path for leaf in two.pool.host.shelf]
    plan = plan_batch(v.situation, tuple(map(Swap, keys, new)))
    assert plan.refused is None
    assert two.execute(plan)[-1].kind == "done"
    two.wait(1.0)
    second = Play(world=two.world, store=two.store, elapsed=two.elapsed)
    for play, bay in ((two, OLD), (second, OTHER)):
        assert play.begin(bay=bay).step == "resilver"
        assert play.checklist.mode == REPLACE_FIRST
    two.until("pull")
    second.elapsed = two.elapsed
    second.look()
    two.hands.pull(OLD)
    assert two.look().step == "scrub"
    assert not second.look().alarm
    two.do()
    two.answer("no-wait")
    stage = second.look()
    assert stage.step == "pull"
    assert not stage.alarm
    second.hands.pull(OTHER)
    assert second.look().step == "scrub"
    second.answer("no-wait")
    assert {c.state for c in two.store.read()} == {DONE}
    assert two.pool.tops[0].lost() == 0
