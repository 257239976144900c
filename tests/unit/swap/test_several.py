from __future__ import annotations

from tests.records import replace
from tests.unit.actions.pools import disk
from tests.unit.swap.playing import Play
from tests.unit.swap.test_choice import DISKS, device, view
from zconsole.actions.plan import Situation
from zconsole.pool.model import Scan
from zconsole.scan_report.resilver_time import pace_of_running
from zconsole.swap.several import orders, predicted, urgent_first

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
