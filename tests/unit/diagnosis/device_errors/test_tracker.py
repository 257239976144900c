from __future__ import annotations

import pytest

from tests.table import rows
from zconsole.diagnosis.device_errors.faults import HOUR, DeviceErrorTracker
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import ErrorCounters, Event, Scan, Vdev, placed
from zconsole.sim.source import World
from zconsole.timeline.session import Session


def tree(state="ONLINE", **counters):
    leaf = Vdev("sdc", "disk", guid="3", state=state, errors=ErrorCounters(**counters))
    return {p.key: p for p in placed(Vdev("tank", "root", guid="1", children=(leaf,)))}


def test_errors_from_before_the_watch_and_cleared_counters_are_no_news():
    tracker = DeviceErrorTracker()
    for t, read in ((1000.0, 40), (1060.0, 0)):
        tracker.push(t, tree(read=read, write=0, cksum=0))
        assert tracker.faults(t, tree(), ()) == ()


def test_new_errors_are_counted_for_an_hour():
    tracker = DeviceErrorTracker()
    tracker.push(1000.0, tree(read=40, cksum=0))
    now = tree(read=41, cksum=30)
    tracker.push(1060.0, now)
    (found,) = tracker.faults(1100.0, now, ())
    assert (found.deltas.read, found.deltas.cksum, found.deltas.seconds) == (1, 30, 60.0)
    assert found.cause == "cable"
    assert "30 checksum" in found.text
    assert tracker.faults(1061.0 + HOUR, now, ()) == ()


def test_errors_have_the_window_in_which_they_fell():
    """``38 write errors in 4m51s`` became ``in 6m26s`` though there were no further errors."""
    tracker = DeviceErrorTracker()
    for t, write in ((0.0, 0), (290.0, 0), (291.0, 30), (300.0, 38), (301.0, 38), (386.0, 38)):
        tracker.push(1000.0 + t, tree(write=write))
    for later in (1301.0, 1386.0):
        (found,) = tracker.faults(later, tree(write=38), ())
        assert "38 write errors in 10s" in found.text


def side_by_side(kind="raidz1", filling=(), **counts):
    """Return a vdev of leaves with these checksum errors; those in ``filling`` are resilvering."""
    leaves = tuple(
        Vdev(name, "disk", guid=name, errors=ErrorCounters(0, 0, n), resilvering=name in filling)
        for name, n in counts.items()
    )
    top = Vdev(f"{kind}-0", kind, guid="2", children=leaves)
    return {p.key: p for p in placed(Vdev("tank", "root", guid="1", children=(top,)))}


@rows(
    ("counts", "filling", "blamed"),
    [
        ({"a": 9, "b": 9, "c": 9, "d": 9}, (), set()),  # one damaged file
        ({"a": 9, "b": 8, "c": 9, "d": 10}, (), set()),
        ({"a": 40, "b": 0, "c": 0, "d": 0}, (), {"a"}),
        ({"a": 40, "b": 9, "c": 9, "d": 9}, (), {"a"}),
        ({"a": 812, "b": 0}, ("a",), set()),  # its sources were pulled
    ],
)
def test_checksum_errors_name_a_cause_only_where_one_disk_stands_out(counts, filling, blamed):
    tracker = DeviceErrorTracker()
    tracker.push(1000.0, side_by_side(filling=filling, **dict.fromkeys(counts, 0)))
    now = side_by_side(filling=filling, **counts)
    tracker.push(1010.0, now)
    found = tracker.faults(1020.0, now, ())
    assert {fault.name for fault in found if fault.cause == "cable"} == blamed
    assert {fault.name for fault in found if "likely" in fault.text} == blamed


def test_errors_of_a_newcomer_name_no_cause():
    def replacing(errors: int):
        pair = tuple(
            Vdev(name, "disk", guid=name, errors=ErrorCounters(0, 0, n))
            for name, n in (("old", 0), ("new", errors))
        )
        group = Vdev("replacing-0", "replacing", guid="5", children=pair)
        return {p.key: p for p in placed(Vdev("tank", "root", guid="1", children=(group,)))}

    tracker = DeviceErrorTracker()
    tracker.push(1000.0, replacing(0))
    tracker.push(1010.0, replacing(812))
    (found,) = tracker.faults(1020.0, replacing(812), ())
    assert found.cause == "unclear"
    assert "likely" not in found.text


def test_a_device_that_leaves_and_comes_back_flaps_and_the_restart_is_put_down_to_it():
    tracker = DeviceErrorTracker()
    for t, state in ((0.0, "ONLINE"), (10.0, "REMOVED"), (40.0, "ONLINE")):
        tracker.push(1000.0 + t, tree(state))
    restart = Event(1045.0, "resilver_restart", "restarted")
    (found,) = tracker.faults(1050.0, tree(), (restart,))
    assert (found.flaps, found.restarts, found.cause) == (1, 1, "cable")
    assert "returned" in found.text


@rows(
    ("every", "cause", "said"),
    [
        (20, "cable", "4 write errors in 1h00m; disconnected, returned 2h00m ago"),
        (70, "unclear", "1 write error in 10s"),
    ],
)
def test_a_disconnect_is_the_cause_as_long_as_the_errors_after_it_continue(every, cause, said):
    """A disk with a bad cable had 44 errors in an hour, and no cause: it had returned before."""
    tracker, errors = DeviceErrorTracker(), 0
    for t, state in ((0.0, "ONLINE"), (10.0, "REMOVED"), (60.0, "ONLINE")):
        tracker.push(1000.0 + t, tree(state, write=0))
    for minutes in range(every, 122, every):
        tracker.push(1050.0 + 60 * minutes, tree(write=errors))
        errors += 1
        tracker.push(1060.0 + 60 * minutes, tree(write=errors))
    (found,) = tracker.faults(1000.0 + 2 * HOUR + 60.0, tree(write=errors), ())
    assert (found.flaps, found.cause) == (0, cause)
    assert found.text.endswith(said)


def spared(state: str, *inside: Vdev):
    spare = Vdev("s", "disk", "spare", guid="3", state=state)
    return {p.key: p for p in placed(Vdev("tank", "root", guid="1", children=(*inside, spare)))}


def test_a_spare_that_is_given_back_is_not_gone():
    tracker, free = DeviceErrorTracker(), spared("AVAIL")
    for t, tree_then in enumerate((free, spared("INUSE", Vdev("s", "disk", guid="3")), free)):
        tracker.push(1000.0 + t, tree_then)
    assert tracker.faults(1003.0, free, ()) == ()


@rows(("guid", "next_guid", "flaps"), [("3", None, 1), (None, "3", 1), ("3", "4", None)])
def test_a_device_stays_the_same_in_a_source_without_guids(guid, next_guid, flaps):
    """Rounded differently, its counters are no new errors. By GUID, another device has its name."""

    def seen(guid, state, write):
        errors = ErrorCounters(0, write, 0)
        leaf = Vdev("sdc", "disk", guid=guid, state=state, errors=errors)
        return {p.key: p for p in placed(Vdev("tank", "root", children=(leaf,)))}

    tracker = DeviceErrorTracker()
    for t, state in ((0.0, "ONLINE"), (10.0, "REMOVED"), (40.0, "ONLINE")):
        tracker.push(1000.0 + t, seen(guid, state, 1195))
    now = seen(next_guid, "ONLINE", 1228)
    tracker.push(1050.0, now)
    found = tracker.faults(1050.0, now, ())
    assert [(fault.flaps, fault.deltas.write) for fault in found] == [(flaps, 0)] * bool(flaps)


@rows(
    ("states", "text"),
    [
        ("ONLINE FAULTED", "sdc: 12 write errors in 1m00s"),
        ("ONLINE FAULTED OFFLINE", "sdc: 12 write errors in 1m00s"),
        ("ONLINE FAULTED OFFLINE ONLINE", "sdc: 12 write errors in 1m00s"),
        ("ONLINE FAULTED REMOVED", "sdc: 12 write errors in 1m00s; disconnected"),
    ],
)
def test_a_device_that_is_faulted_for_its_errors_is_not_disconnected(states, text):
    tracker = DeviceErrorTracker()
    for minute, state in enumerate(states.split()):
        now = tree(state, write=12 if minute else 0)
        tracker.push(1000.0 + 60 * minute, now)
    (found,) = tracker.faults(1300.0, now, ())
    assert found.text == text


@rows(
    ("states", "flaps", "gone"),
    [
        ("ONLINE REMOVED", 0, True),
        ("ONLINE REMOVED ONLINE", 1, False),
        ("ONLINE OFFLINE ONLINE", None, False),  # by hand
        ("ONLINE REMOVED OFFLINE", None, False),
        ("ONLINE FAULTED ONLINE", None, False),  # zpool-clear(8): it need not have been away
        ("ONLINE REMOVED FAULTED ONLINE REMOVED", 0, True),
        ("ONLINE REMOVED ONLINE OFFLINE ONLINE", 1, False),
        ("ONLINE REMOVED ONLINE OFFLINE ONLINE REMOVED", 1, True),
        ("ONLINE REMOVED ONLINE FAULTED ONLINE", 1, False),
    ],
)
def test_only_a_device_that_left_by_itself_is_gone_and_only_its_return_is_a_flap(
    states, flaps, gone
):
    tracker = DeviceErrorTracker()
    for minute, state in enumerate(states.split()):
        tracker.push(1000.0 + 60 * minute, tree(state))
    found = tracker.faults(1400.0, tree(state), ())
    assert [(fault.flaps, fault.gone) for fault in found] == [(flaps, gone)] * (flaps is not None)
    assert flaps != 0 or (found[0].text, found[0].cause) == ("sdc: disconnected", "unclear")


@pytest.mark.slow
def test_the_flaky_disk_of_the_simulated_pool_is_told_by_name_with_its_restart():
    world, session = World("flaky", 2), Session()
    for elapsed in range(0, 140, 5):
        world.advance(float(elapsed))
        (frame,) = session.advance(world.raws())
    (trouble,) = [t for t in frame.troubles if t.flaps]
    assert trouble.restarts >= 1
    assert trouble.cause == "cable"


def accused(scans, **cksums):
    tracker = DeviceErrorTracker()
    tracker.push(1000.0, side_by_side("mirror", **dict.fromkeys(cksums, 0)))
    now = side_by_side("mirror", **cksums)
    tracker.push(1060.0, now)
    return tracker.faults(1060.0, now, (), scans)


REBUILT = Scan("rebuild", "finished", vdev="mirror-0", start=1001.0, end=1030.0)


def test_damage_that_a_rebuild_may_have_copied_is_put_down_to_where_it_came_from():
    (found,) = accused((REBUILT,), sda=96, sdb=0, sdc=14)
    assert (found.name, found.copied_to) == ("sda", ("sdc",))
    assert "the rebuild may have copied damaged data to sdc" in found.text


def test_as_many_errors_as_another_are_no_copies():
    assert [x.name for x in accused((REBUILT,), sda=20, sdc=14)] == ["sda", "sdc"]


def test_a_rebuild_elsewhere_or_long_ago_copied_nothing():
    for scan in (REBUILT._replace(vdev="mirror-1"), REBUILT._replace(end=1060.0 - HOUR - 1)):
        assert len(accused((scan,), sda=96, sdc=14)) == 2


RESILVERED = Scan("resilver", "finished", start=1000.0, end=1100.0)


@rows(
    ("readings", "scans", "damage"),
    [
        ([(990.0, "ONLINE", 1), (1050.0, "ONLINE", 8)], (RESILVERED,), [("sdc", 7)]),
        # Damage from before and after it is not its own.
        ([(900.0, "ONLINE", 0), (990.0, "ONLINE", 9), (1200.0, "ONLINE", 12)], (RESILVERED,), []),
        # A device that returned is stale rather than damaged.
        ([(990.0, "ONLINE", 0), (1010.0, "REMOVED", 0), (1050.0, "ONLINE", 4)], (RESILVERED,), []),
        # A scrub repairs what it reads, and settles what a resilver before it read.
        (
            [(990.0, "ONLINE", 0), (1050.0, "ONLINE", 5)],
            (RESILVERED._replace(function="scrub"),),
            [],
        ),
        (
            [(990.0, "ONLINE", 0), (1050.0, "ONLINE", 5)],
            (Scan("scrub", "running", start=1300.0), RESILVERED),
            [],
        ),
    ],
)
def test_what_a_resilver_read_damaged_is_kept_with_its_device(readings, scans, damage):
    tracker = DeviceErrorTracker()
    for t, state, cksum in readings:
        tracker.push(t, tree(state, cksum=cksum))
    assert list(tracker.damaged(scans)) == damage


def test_a_new_disk_called_like_the_one_it_replaces_has_not_come_back():
    """In text, the replaced one is then called ``sdc/old``."""

    def shown(*leaves):
        top = Vdev("raidz1-0", "raidz1", children=(Vdev("sda", "disk"), *leaves))
        return {p.key: p for p in placed(Vdev("tank", "root", children=(top,)))}

    old = Vdev("sdc", "disk", state="UNAVAIL")
    pair = (old._replace(name="sdc/old"), Vdev("sdc", "disk"))
    group = Vdev("replacing-1", "replacing", children=pair)
    tracker = DeviceErrorTracker()
    for t, tree in enumerate((shown(Vdev("sdc", "disk")), shown(old), shown(group))):
        tracker.push(1000.0 + t, tree)
    (found,) = tracker.faults(1002.0, tree, ())
    assert found.text == "sdc/old: disconnected"


def test_what_it_has_watched_of_the_last_hour_begins_with_its_first_sample():
    tracker = DeviceErrorTracker()
    assert tracker.minutes_watched(1000.0) == 0
    for t in (1000.0, 1060.0):
        tracker.push(t, tree())
    watched = [tracker.minutes_watched(1000.0 + t) for t in (0, 59, 60, 1799, HOUR, 2 * HOUR)]
    assert watched == [0, 0, 1, 29, 60, 60]
    tracker.shift(600.0)
    assert tracker.minutes_watched(1000.0 + HOUR) == 50


def test_a_device_that_only_disconnected_has_trouble_and_no_new_errors():
    tracker = DeviceErrorTracker()
    labels = []
    for t, state, read in ((0, "ONLINE", 0), (1, "REMOVED", 0), (2, "ONLINE", 0), (3, "ONLINE", 1)):
        tracker.push(1000.0 + t, now := tree(state, read=read))
        labels.append([fault.label for fault in tracker.faults(1000.0 + t, now, ())])
    assert labels == [[], ["trouble"], ["trouble"], ["new errors"]]


def test_it_is_quiet_since_the_first_sample_or_the_newest_errors_or_disconnect():
    tracker = DeviceErrorTracker()
    since = []
    states = ((0, "ONLINE", 3), (10, "ONLINE", 3), (20, "ONLINE", 4), (30, "REMOVED", 4))
    for t, state, read in (*states, (40, "ONLINE", 0), (20 + 2 * HOUR, "ONLINE", 0)):
        tracker.push(1000.0 + t, tree(state, read=read))
        since.append(tracker.quiet_since)
    assert since == [1000.0, 1000.0, 1020.0, 1030.0, 1030.0, 1030.0]
    tracker.shift(60.0)
    assert tracker.quiet_since == 1090.0


@rows(
    ("state", "errors", "cleared", "failed"),
    [
        ("FAULTED", 40, False, {"S1": "FAULTED, 40 errors"}),
        ("FAULTED", 0, False, {"S1": "FAULTED"}),
        ("ONLINE", 40, True, {"S1": "40 errors"}),
        ("ONLINE", 1, True, {}),  # one is no failure
        ("ONLINE", 0, False, {}),
        ("REMOVED", 0, False, {}),  # it may only have been pulled
    ],
)
def test_a_disk_that_failed_is_remembered_after_it_left_the_pool(state, errors, cleared, failed):
    tracker = DeviceErrorTracker()
    counted = [errors, 0] if cleared else [errors]
    for t, read in enumerate(counted):
        leaf = tree(state, read=read)["3"].vdev._replace(disk=LeafDisk(serial="S1"))
        root = Vdev("tank", "root", guid="1", children=(leaf,))
        tracker.push(1000.0 + t, {p.key: p for p in placed(root)})
    assert tracker.failed == {}
    tracker.push(1060.0, {})
    assert tracker.failed == failed


def disk(state, serial, guid="1001"):
    """Return a tree of one disk."""
    leaf = tree(state)["3"].vdev._replace(disk=LeafDisk(serial=serial), guid=guid)
    return {p.key: p for p in placed(Vdev("tank", "root", guid="1", children=(leaf,)))}


def test_the_new_disk_in_the_bay_of_a_failed_one_is_not_blamed():
    """The path of the old one, a bay, is that of the new one by then."""
    tracker = DeviceErrorTracker()
    for t, serial in enumerate(("OLD", "NEW")):
        tracker.push(1000.0 + t, disk("UNAVAIL", serial))
    tracker.push(1010.0, disk("ONLINE", "NEW", guid="1002"))
    assert tracker.failed == {"OLD": "UNAVAIL"}


def test_a_disk_that_came_back_has_not_left():
    tracker = DeviceErrorTracker()
    tracker.push(1000.0, disk("FAULTED", "S1"))
    tracker.push(1010.0, {})
    assert tracker.failed == {"S1": "FAULTED"}
    tracker.push(1020.0, disk("ONLINE", "S1", guid="1002"))
    assert tracker.failed == {}
