"""One cause for several devices behind one expander, port or enclosure."""

from __future__ import annotations

import json

from tests.table import rows
from zconsole.diagnosis.device_errors.faults import (
    TOGETHER,
    Deltas,
    DeviceErrorTracker,
    DeviceFault,
    ProbeResults,
    SmartCounts,
    with_cause,
    with_common_causes,
)
from zconsole.output.json import sample_object
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import ErrorCounters, Vdev, placed
from zconsole.sim.scenarios import names
from zconsole.sim.source import World
from zconsole.timeline.alerts.rules import AlertRules
from zconsole.timeline.session import Session

READ, DAMAGED = Deltas(read=9), Deltas(cksum=40)
INNER, OUTER = "expander-0:1", "expander-0:0"


def fault(name: str, began: float = 0.0, *hubs: str, deltas: Deltas = READ, **fields):
    return DeviceFault(name, name, deltas, began, began=began, hubs=hubs or (OUTER,), **fields)


def groups(*faults: DeviceFault) -> set[tuple[str, ...]]:
    found = with_common_causes(faults)
    return {(each.common.hub, *each.common.devices) for each in found if each.common}


def test_disks_behind_one_expander_have_one_cause_that_is_not_the_disks():
    found = with_common_causes([fault("a", 30.0), fault("b", 10.0, deltas=Deltas(), gone=True)])
    assert [each.cause for each in found] == ["cable", "cable"]
    assert found[0].text == (
        "a: likely cable, port or power; 9 read errors in 1h00m (2 disks behind one expander;"
        " reads fail rather than return damaged data)"
    )
    assert found[0].common is not None
    assert found[0].common.text("12:04") == (
        "2 disks behind one expander since 12:04: suspect cable, power or expander, not the disks"
        " (b, a)"
    )


def test_one_disk_is_judged_alone():
    assert with_common_causes([fault("a")]) == (with_cause(fault("a")),)
    assert with_common_causes([fault("a")])[0].cause == "disk"
    crc = ProbeResults(SmartCounts(True, 0, 0, 0, 12))
    (found,) = with_common_causes([fault("a", deltas=DAMAGED, signs=crc)])
    assert (found.cause, found.common) == ("cable", None)
    assert "12 CRC errors on its link" in found.text


@rows(
    ("hubs", "where"),
    [
        (("expander-0:1",), "2 disks behind one expander"),
        (("ata3",), "2 disks behind one port multiplier"),
        (("host7",), "2 disks behind one HBA port"),
        (("usb-2-1.4",), "2 disks behind one USB port"),
        (("enclosure-0x5003-9",), "2 disks in one enclosure"),
    ],
)
def test_each_kind_of_hub_has_its_word(hubs, where):
    for found in with_common_causes([fault("a", 0.0, *hubs), fault("b", 1.0, *hubs)]):
        assert found.common is not None
        assert found.common.where == where


@rows(
    ("began", "common"),
    [((0.0, TOGETHER), True), ((0.0, TOGETHER + 1), False), ((TOGETHER + 1, 0.0), False)],
)
def test_what_began_more_than_two_minutes_apart_has_two_causes(began, common):
    assert bool(groups(fault("a", began[0]), fault("b", began[1]))) == common


def test_of_several_hubs_it_is_the_one_of_most_disks_and_then_the_nearest():
    a, b = fault("a", 0.0, INNER, OUTER), fault("b", 1.0, INNER, OUTER)
    assert groups(a, b) == {(INNER, "a", "b")}
    assert groups(a, b, fault("c", 2.0, OUTER)) == {(OUTER, "a", "b", "c")}
    assert groups(a, b, fault("c", 2.0, "expander-1:0")) == {(INNER, "a", "b")}


def test_nothing_is_claimed_where_a_way_is_unknown():
    bare = fault("a")._replace(hubs=())
    assert groups(bare, bare._replace(key="b", name="b"), fault("c")) == set()


@rows(
    "other",
    [
        {"deltas": Deltas(slow=9)},
        {"deltas": Deltas(cksum=9, is_shared=True)},  # a file of which no copy is good
        {"signs": ProbeResults(SmartCounts(passed=False))},
        {"signs": ProbeResults(SmartCounts(pending=9), before=SmartCounts(pending=1))},
        {"signs": ProbeResults(kernel=("critical medium error, dev sdc, sector 12345",))},
    ],
)
def test_a_disk_with_a_cause_of_its_own_is_none_of_several(other):
    assert groups(fault("a"), fault("b", **other)) == set()
    assert groups(fault("a"), fault("b", **other), fault("c")) == {(OUTER, "a", "c")}


def test_old_counts_of_smart_are_no_cause_of_its_own():
    old = ProbeResults(SmartCounts(True, 5, 8, 8, 0), before=SmartCounts(True, 5, 8, 8, 0))
    found = with_common_causes([fault("a"), fault("b", signs=old)])
    assert [each.cause for each in found] == ["cable", "cable"]


def test_a_verdict_of_smart_that_comes_later_outweighs_the_others():
    beside = with_common_causes([fault("a"), fault("b")])[1]
    assert with_cause(beside, ProbeResults(SmartCounts(passed=False))).cause == "disk"


def shelf(*states: str, hubs: str = OUTER, **reads: int):
    leaves = tuple(
        Vdev(
            name,
            "disk",
            state=state,
            guid=name,
            errors=ErrorCounters(reads.get(name, 0), 0, 0),
            disk=LeafDisk(enclosure="0x5", hubs=hubs),
        )
        for name, state in zip("abc", states, strict=True)
    )
    return {p.key: p for p in placed(Vdev("tank", "root", guid="1", children=leaves))}


OK = ("ONLINE",) * 3


def test_it_began_with_the_first_trouble_after_an_hour_of_quiet():
    """A disk with an error now and then did not begin with the others."""
    tracker = DeviceErrorTracker()
    trees = [
        (0.0, shelf(*OK)),
        (10.0, shelf(*OK, a=1)),
        (3000.0, shelf(*OK, a=2)),
        (6000.0, shelf("ONLINE", "REMOVED", "ONLINE", a=3)),
        (6060.0, now := shelf("ONLINE", "REMOVED", "REMOVED", a=3)),
    ]
    for t, tree in trees:
        tracker.push(1000.0 + t, tree)
    found = {each.name: each for each in tracker.faults(7060.0, now, ())}
    assert found["a"].common is None
    assert found["b"].common == found["c"].common is not None
    assert (found["b"].common.since, found["b"].common.devices) == (7000.0, ("b", "c"))
    tracker.shift(600.0)
    (later,) = {each.common for each in tracker.faults(7660.0, now, ()) if each.common}
    assert later.since == 7600.0


def test_an_unknown_kind_of_hub_of_a_recording_is_left_out():
    tracker = DeviceErrorTracker()
    tracker.push(1000.0, shelf(*OK, hubs="warp-1, expander-0:1"))
    tracker.push(1001.0, now := shelf(*OK, hubs="warp-1, expander-0:1", a=1))
    (found,) = tracker.faults(1001.0, now, ())
    assert found.hubs == ("expander-0:1", "enclosure-0x5")


def watched(scenario: str, seconds: int, step: int = 5):
    world, session = World(scenario, 1), Session()
    for elapsed in range(0, seconds, step):
        world.advance(float(elapsed))
        yield session.advance(world.raws())[0]


def test_the_scenario_shows_it_in_health_json_and_alerts_without_a_replacement():
    rules, alerts = AlertRules(), []
    for frame in watched("loose-cable", 80):
        alerts += rules.look([frame])
    (cause,) = frame.common_causes
    assert (len(cause.devices), cause.kind) == (3, "expander")
    (told,) = {json.dumps(each["common"]) for each in sample_object(frame)["troubles"]}
    assert json.loads(told) == {
        "kind": "expander",
        "hub": "expander-0:0",
        "since": cause.since,
        "devices": list(cause.devices),
    }
    gone = [alert for alert in alerts if alert.kind == "device-error"]
    assert [bool(alert.next_step) for alert in gone] == [True, False, False]
    assert gone[-1].text == (
        f"{cause.devices[-1]} (serial {serial(frame, cause.devices[-1])}) is REMOVED now; 3 disks"
        " behind one expander: suspect cable, power or expander, not the disks"
    )


def serial(frame, name: str) -> str:
    return next(row.vdev.disk.serial for row in frame.rows if row.vdev.name == name)


def test_no_other_scenario_has_one():
    for name in set(names()) - {"loose-cable", "thousand"}:
        assert [f for f in watched(name, 300, 50) if f.common_causes] == [], name
