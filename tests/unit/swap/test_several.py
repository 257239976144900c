"""Swapping several disks: the order and its cost, and two of one vdev from start to end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests import factory
from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import disk, group, pool, running, top
from tests.unit.swap.playing import EMPTY, OLD, Play, fresh
from tests.unit.swap.views import DISKS, device, view
from zconsole.actions.replace import plan_batch
from zconsole.actions.target import Swap, find
from zconsole.hardware.device import Device
from zconsole.pool.model import Scan
from zconsole.scan_report.resilver_time import known_paces
from zconsole.swap.disk import (
    PULL_FIRST,
    REPLACE_FIRST,
    MachineView,
    is_being_replaced,
    leaves_of,
)
from zconsole.swap.several import (
    SwapOrder,
    assigned,
    begin_adopted,
    begin_replaced,
    in_turn,
    together,
    urgent_first,
)
from zconsole.swap.store import Guide
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.eta.past import PastScan
from zconsole.timeline.frame import ScanView

TWO = ("1000", "1001")
TAKES = {"1000": Estimate(3600.0, None, None, "x"), "1001": Estimate(7200.0, None, None, "x")}
FREE = (device("n1"), device("n2"))


def both(v: MachineView, keys=TWO, takes=TAKES) -> tuple[SwapOrder, SwapOrder]:
    """Return both ways to swap these: one after another, and together."""
    targets = [target for key in keys if (target := v.target(key))]
    return in_turn(v, targets, takes), together(v, targets, takes)


def test_together_needs_a_free_disk_for_each_and_takes_one_resilver():
    turn, once = both(view(disks=(*DISKS, *FREE)))
    assert once.refused == ""
    assert once.text[1].startswith("one resilver fills them all, 2h00m")
    assert "2 more devices may fail" in once.text[2]
    assert turn.text[1] == "2 resilvers, 3h00m in all"
    assert "1 more device may fail" in turn.text[2]


def test_the_weakest_vdev_counts_without_what_it_lacks_already():
    lacks, degraded = disk("d01", 1001, "FAULTED"), disk("d10", 1010, "FAULTED")
    v = view(disk("d00", 1000), lacks)
    two = pool(top("raidz2", 0, 6), top("mirror", 1, 2, degraded))
    weak = replace(v, situation=replace(v.situation, pool=two))
    found = [both(v, ("1000",)), both(weak, ("1000", "1010"))]
    said = [[order.text[-1].partition(" may fail")[0] for order in each] for each in found]
    assert [["no" in text.split() for text in each] for each in said] == [[True, False], [True] * 2]
    assert "1 more device" in said[0][1]


def test_an_unknown_duration_is_said():
    turn, once = both(view(), takes={"1000": TAKES["1000"]})
    assert "unknown duration" in turn.text[1]
    assert "one resilver fills them all, 1h00m" in once.text[1]


def test_the_failed_device_is_swapped_before_one_with_errors():
    v = view(disk("d00", 1000), disk("d01", 1001, "FAULTED"))
    targets = [target for key in TWO if (target := v.target(key))]
    assert [t.key for t in urgent_first(v, targets)] == ["1001", "1000"]


def running_for(eta: float | None) -> ScanView:
    scan = Scan("resilver", "running", start=1000.0, total_bytes=8 << 40)
    return factory.view(scan, estimate=Estimate(eta, None, None, "x"))


def paces_seen(v: MachineView, *scans: ScanView, past: tuple[PastScan, ...] = ()):
    """Return what is known at 2000 seconds where no scan that ZFS remembers has finished."""
    seen = replace(v.pool, scans=tuple(each.scan for each in scans))
    return known_paces(factory.frame(seen, 2000.0, scans, past=past))


def test_a_duration_is_predicted_from_the_scan_that_runs_where_no_other_is_known():
    (pace,) = paces_seen(Play().view(), running_for(9000.0))
    assert pace.rate == (8 << 40) / 10000.0 / 10


def test_a_running_scan_without_an_eta_predicts_nothing():
    assert paces_seen(Play().view(), running_for(None)) == ()


@rows(
    ("function", "vdev", "rate"),
    [("scrub", None, 1e9), ("rebuild", "mirror-0", None), ("errorscrub", None, None)],
)
def test_a_scan_that_another_took_the_place_of_tells_its_pace(function, vdev, rate):
    past = PastScan(function, vdev, 1000.0, 1000.0, 1e13, 1.0, ())
    found = paces_seen(Play().view(), past=(past,))
    assert [pace.rate for pace in found] == ([] if rate is None else [rate])


@rows(
    ("percent", "changes", "said"),
    [
        (None, {}, "it starts again as each new disk joins in its first seconds; little is lost"),
        (5.0, {}, "2h00m; the running one restarts from 0 (5.0 % lost)"),
        (40.0, {}, "wait for the running resilver (40.0 %), then one fills them all: 2h00m beyond"),
        (40.0, {}, "beyond the rest of the running one (about 1h00m)"),
        (5.0, {"version": (2, 2, 7), "parameters": {}}, "restarts from 0 (5.0 % lost)"),
        (40.0, {"parameters": {"zfs_resilver_disable_defer": 1}}, "from 0 (40.0 % lost)"),
        (40.0, {"features": {}}, "the running one (40.0 %) restarts for all, or ends first"),
    ],
)
def test_how_one_resilver_fills_all_is_said_once_and_what_it_means_for_a_running_one(
    percent, changes, said
):
    scans = () if percent is None else (running("resilver", percent),)
    v = view(disks=(*DISKS, *FREE), scans=scans)
    s = v.situation
    v = replace(v, situation=replace(s, facts=replace(s.facts, **changes), left=3600.0))
    each, every = both(v)
    waits = "after the running resilver (about 1h00m left), 2 resilvers, " in each.text[1]
    assert waits == ((percent == 40.0 and not changes) or "version" in changes)
    text = every.text
    assert [said in line for line in text] == [False, True, False]
    assert "pass of its own" not in " ".join(text)


def test_a_scrub_that_the_new_disks_discard_is_said():
    v = view(disks=(*DISKS, *FREE), scans=(running("scrub", 40.0),))
    assert "the running scrub is discarded at 40.0 %" in " ".join(both(v)[1].text)


def given(keys: Sequence[str], *free: Device, ashift: int = 12) -> dict[str, str]:
    """Return the names of the free disks that places get; the second mirror is of small disks."""
    low = [leaf._replace(size_bytes=2**38) for leaf in top("mirror", 1, 2).children]
    small = top("mirror", 1, 2, *low)._replace(size_bytes=2**38, ashift=ashift)
    v = view(disks=(*DISKS, *free))
    v = replace(v, situation=replace(v.situation, pool=pool(top("mirror", 0, 2), small)))
    found = assigned(v, [find(v.pool, key) for key in keys])
    return {key: path.rpartition("/")[2] for key, path in found.items()}


def test_each_place_gets_a_free_disk_though_one_fits_in_both():
    small = device("small", size=2**39)
    assert given(("1010", "1000"), FREE[0], small) == {"1010": "small", "1000": "n1"}


def test_of_disks_with_several_sector_sizes_as_many_as_possible_are_given():
    small, large = device("small", size=2**39, logical=512), device("large", logical=512)
    found = given(("1000", "1010", "1011"), small, large, device("native", logical=4096), ashift=9)
    assert found["1000"] == "native"
    assert {found["1010"], found["1011"]} == {"small", "large"}


def test_a_disk_that_is_being_replaced_needs_no_other():
    filling = group("replacing", disk("d00", 1000), disk("n0", 70, resilvering=True))
    v = view(filling, disk("d01", 1001, "FAULTED"), disks=(*DISKS, FREE[0]))
    assert [t.key for t in leaves_of(v.pool) if is_being_replaced(t)] == ["1000"]
    assert not any(order.refused for order in both(v))


def test_the_second_waits_until_the_first_is_filled(play: Play):
    play.inserted()
    play.do()
    second = Play(world=play.world, store=play.store, elapsed=play.elapsed)
    (way,) = [way for way in second.choice("Slot 08").ways if way.mode == PULL_FIRST]
    assert "wait for that resilver" in way.refused


BAYS = (OLD, "Slot 08")


def shelf() -> Play:
    """A shelf with a free disk for each of two."""
    play = Play(lights=True)
    play.hands.insert(0, EMPTY)
    play.pool.host.shelf = [*play.pool.host.shelf, fresh()]
    return play


def replaced(play: Play, pulled: str = "") -> tuple[str, ...]:
    """Replace both at once; returns the ids of the checklists.

    ``pulled``: a bay whose disk is pulled between the plan and its commands.
    """
    v = play.view()
    targets = urgent_first(v, filter(None, (v.target(str(play.leaf(b).guid)) for b in BAYS)))
    swaps = tuple(Swap(old, new) for old, new in assigned(v, targets).items())
    plan = plan_batch(v.situation, swaps)
    if pulled:
        play.hands.pull(pulled)
    begun = begin_replaced(v, swaps, play.execute(plan), play.store, play.now)
    return tuple(c.id for c in begun)


def opened(play: Play, name: str) -> None:
    known = {c.id: c for c in play.store.read()}
    play.guide = Guide(known[name], play.store)
    play.steps.clear()


def pulled(play: Play, name: str, bay: str) -> None:
    """Take one checklist from the light to its report."""
    opened(play, name)
    play.until("light")
    assert play.do().title.startswith(f"Pull {bay}")
    play.hands.pull(bay)
    assert play.look().step == "light-off"
    play.do()
    play.answer("no-scrub")
    assert play.checklist.state == "done"


@pytest.mark.slow
def test_each_disk_of_a_batch_is_led_to_its_pull_after_the_resilver():
    play = shelf()
    first, second = replaced(play)
    opened(play, first)
    stage = play.look()
    assert (stage.step, play.checklist.mode) == ("resilver", REPLACE_FIRST)
    assert any(entry.command.startswith("zpool replace tank") for entry in play.checklist.log)
    pulled(play, first, OLD)
    pulled(play, second, "Slot 08")


def test_the_other_old_disk_of_a_batch_may_go_first():
    play = shelf()
    first, second = replaced(play)
    opened(play, first)
    play.until("light")
    opened(play, second)
    play.until("light")
    opened(play, first)
    play.hands.pull("Slot 08")
    assert not play.look().alarm


def test_a_replace_that_failed_gets_no_checklist():
    assert replaced(shelf(), pulled=EMPTY) == ()


@pytest.mark.slow
def test_disks_that_somebody_replaces_already_get_their_checklists_too():
    play = shelf()
    replaced(play)
    play.store.memory.clear()
    play.wait(30.0)
    v = play.view()
    keys = [target.key for target in leaves_of(v.pool) if is_being_replaced(target)]
    assert len(keys) == 2
    first, second = begin_adopted(v, keys, play.store, play.now)
    play.wait(1.0)
    assert begin_adopted(play.view(), keys, play.store, play.now) == (first, second)
    (entry,) = [entry for entry in first.log if entry.step == "replace"]
    assert entry.text.startswith("started elsewhere: ")
    pulled(play, next(c.id for c in (first, second) if c.old.bay == OLD), OLD)
