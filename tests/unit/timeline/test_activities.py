"""Work other than scans: slow is distinguished from stuck, and obstacles are named."""

from __future__ import annotations

from tests.factory import mirror_pool
from tests.records import replace
from tests.table import rows
from tests.ui.drawn import LOOK
from zconsole.pool.model import Activity, Pool, Sample, Scan, Vdev
from zconsole.timeline.activities import (
    STILL_SECONDS,
    STUCK_SECONDS,
    UNMOVED_SECONDS,
    ActivityTracker,
    activity_advice,
)
from zconsole.timeline.frame import ActivityView

MOVING = Activity("expansion", "running", "raidz1-0", 0.0, done_bytes=100, total_bytes=1000)
CONDENSE = Activity("condense", "running", "log_spacemap", 0.0, percent=10.0, note="3/30 metaslabs")


def pool(*activities: Activity, state: str = "ONLINE", scans: tuple[Scan, ...] = ()) -> Pool:
    leaves = (Vdev("sda", "disk"), Vdev("sdb", "disk", state=state))
    root = Vdev("tank", "root", children=(Vdev("raidz1-0", "raidz1", children=leaves),))
    return replace(mirror_pool(), root=root, activities=activities, scans=scans)


def seen(tracker: ActivityTracker, t: float, activity: Activity, **fields) -> ActivityView:
    found = pool(activity, **fields)
    return tracker.push(Sample(t, t, "libzfs", exact=True, pool=found))[0]


@rows(
    ("activity", "later"),
    [(MOVING, {"done_bytes": 101}), (CONDENSE, {"note": "4/30 metaslabs"})],
)
def test_what_moves_a_little_is_slow_and_what_does_not_is_stuck(activity, later):
    tracker = ActivityTracker()
    assert seen(tracker, 0.0, activity).stalled is None
    assert seen(tracker, STUCK_SECONDS - 1, activity).stalled is None
    view = seen(tracker, STUCK_SECONDS, activity)
    assert view.stalled == STUCK_SECONDS
    assert view.estimate.eta is None
    assert "no progress for 5m" in view.estimate.reason
    moved = activity._replace(**later)
    assert seen(tracker, STUCK_SECONDS + 1, moved).stalled is None
    assert seen(tracker, 2 * STUCK_SECONDS, moved).stalled is None


def test_what_stands_still_shows_no_speed_of_before():
    tracker = ActivityTracker()
    averaged = MOVING._replace(zpool_rate=50.0)
    for t in (0.0, 1.0, 2.0):
        seen(tracker, t, averaged)
    view = seen(tracker, 2.0 + STILL_SECONDS, averaged)
    assert (view.rate, view.estimate.eta, view.stalled) == (0.0, None, None)
    assert view.estimate.reason == "no progress for 32s"


def test_what_is_stuck_is_told_after_the_machine_started_anew():
    """Its monotonic clock restarts at 0: for its former uptime, a stuck one seemed to move."""
    tracker = ActivityTracker()
    seen(tracker, 1e6, MOVING)
    seen(tracker, 60.0, MOVING)
    assert seen(tracker, 60.0 + STUCK_SECONDS, MOVING).stalled == STUCK_SECONDS


def test_one_that_was_not_seen_to_move_yet_shows_no_speed_of_before_for_long():
    """For half a minute a stuck expansion had a rate and an ETA; now ten seconds are checked."""
    tracker = ActivityTracker()
    averaged = MOVING._replace(zpool_rate=10.0)
    assert seen(tracker, 0.0, averaged).estimate.eta is not None
    assert seen(tracker, 1.0, averaged).estimate.reason == "not seen to move yet"
    view = seen(tracker, UNMOVED_SECONDS, averaged)
    assert (view.rate, view.estimate.reason) == (0.0, "no progress for 8s")
    moved = averaged._replace(done_bytes=(averaged.done_bytes or 0) + 100)
    assert seen(tracker, UNMOVED_SECONDS + 1, moved).estimate.lacking == "measuring"
    assert seen(tracker, UNMOVED_SECONDS + STILL_SECONDS, moved).estimate.lacking == "measuring"


def test_a_longer_transaction_group_is_waited_for():
    tracker, tunables = ActivityTracker(), {"zfs_txg_timeout": 60}
    for t in (0.0, STILL_SECONDS, 62.0, 63.0):
        one = Sample(t, t, "libzfs", exact=True, pool=pool(MOVING), tunables=tunables)
        (view,) = tracker.push(one)
        assert (view.rate == 0.0) == (t >= 63.0)


def test_rounded_bytes_that_hide_slow_progress_are_not_called_stuck():
    tracker = ActivityTracker()
    rounded = MOVING._replace(resolution=5e9, zpool_rate=1e7)  # a digit changes every 500 s
    seen(tracker, 0.0, rounded)
    assert "not seen to move" not in seen(tracker, 1.0, rounded).estimate.reason
    assert seen(tracker, 1999.0, rounded).stalled is None
    assert seen(tracker, 2000.0, rounded).stalled == 2000.0


@rows("state", ["paused", "finished", "canceled"])
def test_only_what_should_run_can_be_stuck(state):
    tracker = ActivityTracker()
    other = MOVING._replace(state=state)
    seen(tracker, 0.0, other)
    assert seen(tracker, 9000.0, other).stalled is None


def test_what_went_on_after_a_pause_is_given_time_again():
    tracker = ActivityTracker()
    seen(tracker, 0.0, MOVING)
    seen(tracker, 200.0, MOVING._replace(state="paused"))
    seen(tracker, 9000.0, MOVING)
    assert seen(tracker, 9100.0, MOVING).stalled is None


@rows("percent", [12.0, None])
def test_a_trim_of_which_only_whole_percents_are_known_is_not_called_stuck(percent):
    """One percent of a disk of 20 TB takes a quarter of an hour."""
    tracker, trim = ActivityTracker(), Activity("trim", "running", vdev="sdb", percent=percent)
    for t in (0.0, UNMOVED_SECONDS, STILL_SECONDS, 2 * STUCK_SECONDS):
        view = seen(tracker, t, trim)
        assert view.stalled is None
        assert "no progress" not in view.estimate.reason


def test_the_device_that_holds_it_up_is_named():
    advice = activity_advice(MOVING, pool(MOVING, state="FAULTED"), STUCK_SECONDS)
    assert advice == "replace or bring back sdb (FAULTED)"
    assert "slow or failing devices" in activity_advice(MOVING, pool(MOVING), STUCK_SECONDS)
    assert activity_advice(MOVING, pool(MOVING, state="FAULTED"), None) == ""


def test_a_device_that_failed_is_named_as_soon_as_it_stands_still():
    """For ten minutes a stuck expansion did not mention the disk that had to be replaced."""
    lost = pool(MOVING, state="FAULTED")
    assert "bring back sdb" in activity_advice(MOVING, lost, UNMOVED_SECONDS)
    assert activity_advice(MOVING, pool(MOVING), UNMOVED_SECONDS) == ""


def test_of_what_stands_still_while_its_disk_is_replaced_nothing_more_is_asked():
    lost = pool(MOVING, state="FAULTED", scans=(Scan("resilver", "running"),))
    assert activity_advice(MOVING, lost, STUCK_SECONDS) == "goes on after the resilver"


def test_an_expansion_that_waits_says_for_what():
    waits = MOVING._replace(state="paused")
    resilver = (Scan("resilver", "running"),)
    waiting = activity_advice(waits, pool(waits, scans=resilver), None)
    assert waiting == "goes on after the resilver"
    assert "no resilver is running: replace or bring back sdb" in activity_advice(
        waits, pool(waits, state="OFFLINE"), None
    )
    advice = activity_advice(waits, pool(waits), None)
    assert advice == "no resilver is running: zpool clear tank"
    assert LOOK.said(advice) == "no resilver is running: clear the pool (A)"


def test_past_the_end_is_explained():
    past = MOVING._replace(percent=104.0)
    assert "data was deleted meanwhile" in activity_advice(past, pool(past), None)
    assert activity_advice(MOVING._replace(percent=99.0), pool(MOVING), None) == ""
