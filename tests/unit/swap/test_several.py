from __future__ import annotations

import pytest

from tests.records import replace
from tests.unit.actions.pools import OLD_FEATURES, disk, group, pool, running, top
from tests.unit.swap.playing import Play
from tests.unit.swap.test_choice import DISKS, device, view
from zconsole.actions.plan import Situation
from zconsole.actions.target import find
from zconsole.pool.model import Scan
from zconsole.scan_report.resilver_time import pace_of_running
from zconsole.swap.names import in_replacement
from zconsole.swap.several import assigned, orders, predicted, urgent_first

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


def without_scans(s: Situation) -> Situation:
    return replace(s, pool=replace(s.pool, scans=()))


def test_a_duration_is_predicted_from_the_last_scan():
    play = Play()
    key = str(play.leaf().guid)
    (seconds,) = predicted(play.view(), [key]).values()
    assert seconds is not None
    assert 600.0 < seconds < 7200.0


RELEASES = [
    ({"features": OLD_FEATURES.features}, "lets no device wait: the resilver restarts for each"),
    ({"version": (2, 2, 7), "parameters": {}}, "wait: the plan restarts the resilver once for all"),
    ({}, "until 10 % are done, the resilver restarts for each new disk"),
    ({"parameters": {"zfs_resilver_disable_defer": 1}}, "lets no device wait"),
    ({"features": {}}, "if this release makes devices wait, the plan restarts the resilver once"),
]


@pytest.mark.parametrize(("facts", "text"), RELEASES)
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
