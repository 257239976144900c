"""Predictions of plans, case by case."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import (
    FACTS,
    NEW,
    TIB,
    at,
    disk,
    group,
    mirror,
    new_disk,
    pool,
    raidz2,
    replaced,
    running,
    said,
    top,
)
from zconsole.actions.clear import plan_clear
from zconsole.actions.growth import plan_attach, plan_expand
from zconsole.actions.locate import plan_lights_off, plan_locate
from zconsole.actions.offline import plan_detach, plan_offline, plan_online
from zconsole.actions.plan import LightOrder, Situation
from zconsole.actions.sit_out import plan_sit_out
from zconsole.actions.target import doubts
from zconsole.hardware.device import Contents, Device
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import SITTING_OUT, Activity, ErrorCounters, Vdev

# What the plans of ordinary pools say is pinned by the lock.

WAITING = disk("d00", 1000, awaiting_resilver=True)
REPLACING = group("replacing", disk("d00", 1000, "FAULTED"), disk("new", 1900))


def test_a_group_in_a_spare_is_not_detached_as_a_whole():
    """The failed disk is being replaced while the spare stands in: zpool detaches only devices."""
    inner = replace(group("replacing", disk("d00", 1000, "FAULTED"), disk("n", 1001)), guid="51")
    s = at(pool(top("mirror", 0, 2, group("spare", inner, disk("sp0", 1900)))))
    assert plan_detach(s, "51").refused == "replacing-0 is not a device: detach one of its devices"


def test_a_vdev_that_a_raidz_expansion_is_growing_is_not_offered_to_be_expanded():
    """The attached disk made it look as if it had room to grow, and expanding is irreversible."""
    big = tuple(new_disk(path=f"/dev/disk/by-id/d0{n}", size=4 * TIB) for n in range(6))
    grows = (Activity("expansion", "running", vdev="raidz2-0"),)
    facts = replace(FACTS, devices=big)
    assert plan_expand(raidz2(facts=facts), "1000").refused is None
    assert plan_expand(raidz2(facts=facts, activities=grows), "1000").refused is not None


@rows(
    ("labels", "text"),
    [
        ({"1000": "", "1001": ""}, "d00 is not back"),
        ({"1000": "", "1001": "77"}, "another pool (77)"),
        ({"1000": "1", "1001": ""}, None),
        ({"1000": "1", "1001": "1"}, None),
    ],
)
def test_clear_of_a_suspended_pool_wants_enough_devices_back(labels, text):
    plan = plan_clear(at(pool(top("mirror", 0, 2)), replace(FACTS, labels=labels), suspended=True))
    assert "reboot" in said(plan)
    assert text is None if plan.refused is None else text in plan.refused


def test_clear_names_the_disk_that_blocks_and_not_the_one_that_has_a_newcomer():
    newcomer = disk("d09", 1009, unfilled=True)
    group = Vdev("replacing-0", "replacing", children=(disk("d00", 1000), newcomer))
    blocks = disk("d01", 1001, disk=LeafDisk(bay="Slot 05", serial="Z1"))
    two = pool(top("raidz1", 0, 3, group, blocks))
    facts = replace(FACTS, labels={"1000": "", "1001": ""})
    refused = plan_clear(at(two, facts, suspended=True)).refused or ""
    assert refused.startswith("Slot 05 (serial Z1) is not back")
    assert "d00" not in refused
    # With only its newcomer, it is that disk that is wanted.
    plan = plan_clear(at(pool(group), replace(FACTS, labels={"1000": ""}), suspended=True))
    assert "d00 is not back" in plan.refused


def test_a_replace_can_be_backed_out_before_anything_is_issued():
    """While the resilver walks metadata, the new device looks complete."""
    pair = group("replacing", disk("d00", 1000, "FAULTED"), disk("nd", 1900))
    assert plan_detach(raidz2(running("resilver", 0.0), changes=(pair,)), "1900").refused is None
    assert plan_detach(raidz2(changes=(pair,)), "1900").refused


EXPANDS, STAYS = ({"autoexpand": value} for value in ("on", "off"))


@rows(
    ("name", "path", "said"),
    [
        ("ata-X", "/dev/disk/by-id/ata-X-part1", "/dev/disk/by-id/ata-X"),
        ("ata-X-part3", "/dev/disk/by-id/ata-X-part3", "77"),
        ("sdb", "/dev/sdb1", "/dev/sdb"),
        ("nvme0n1", "/dev/nvme0n1p1", "/dev/nvme0n1"),
        ("/root/file", "/root/file", "77"),
        ("77", "/dev/gone", "/dev/gone"),
        ("da0", None, "77"),
    ],
)
@rows("properties", [EXPANDS, {}])
def test_a_whole_disk_that_expands_is_named_by_its_path(name, path, said, properties):
    leaf = replace(disk(name, 77, "OFFLINE"), path=path)
    s = at(pool(top("mirror", 0, 2, leaf)), replace(FACTS, properties=properties))
    assert plan_online(s, "77").steps[0].argv == ("zpool", "online", "tank", said)
    whole = at(pool(top("mirror", 0, 2, replace(leaf, state="ONLINE"))))
    assert plan_expand(whole, "77").steps[0].argv == ("zpool", "online", "-e", "tank", said)


@rows("properties", [EXPANDS, {}, STAYS])
@rows("state", ["UNAVAIL", "REMOVED"])
def test_a_device_whose_path_another_has_now_is_named_by_guid(state, properties):
    """If two devices have the same path, zpool takes the first: one that is offline on purpose."""
    gone = replace(disk("77", 77, state, note="was /dev/sdb1"), path="/dev/sdb1")
    here = replace(disk("sdb", 78, "OFFLINE"), path="/dev/sdb1")
    s = at(pool(top("raidz2", 0, 6, here, gone)), replace(FACTS, properties=properties))
    assert plan_online(s, "77").steps[0].argv == ("zpool", "online", "tank", "77")
    expanded = at(
        pool(top("mirror", 0, 2, replace(here, state="ONLINE")), top("mirror", 1, 2, gone))
    )
    assert plan_expand(expanded, "78").steps[0].argv[-1] == "78"


@rows(
    ("change", "why"),
    [
        *(
            (disk("d00", 1000, state), f"(d00 is {state}): bring it back or replace it first")
            for state in ("FAULTED", "UNAVAIL", "REMOVED", "OFFLINE", "DEGRADED")
        ),
        (REPLACING, "(d00 is FAULTED)"),
        (group("replacing", disk("d00", 1000), disk("new", 1900)), "wait for the resilver"),
        (WAITING, "wait for the resilver"),
    ],
)
@rows("kind", ["raidz1", "raidz2", "raidz3"])
def test_a_raidz_that_lacks_a_device_is_not_expanded(change, why, kind):
    """It would stall, irreversibly, and use up the disk that could replace the dead one."""
    plan = plan_attach(at(pool(top(kind, 0, 6, change)), FACTS), "100", NEW)
    assert why in plan.refused
    assert plan_attach(at(pool(top(kind, 0, 6)), FACTS), "100", NEW).refused is None


def grown(kind: str, part: str = "-part1", own: int | None = None, **fields) -> Situation:
    """Return a vdev of nine disks, each four times its used part; ``own``: partitions."""
    leaves = tuple(disk(f"d0{n}", 1000 + n) for n in range(9))
    if part != "-part1":
        leaves = tuple(
            replace(v, name=v.name + part, path=f"/dev/disk/by-id/{v.name}{part}") for v in leaves
        )
    ids = tuple(f"/dev/disk/by-id/d0{n}" for n in range(9))
    parts = [
        (Device(i + part, aliases=(i + part,), kind="partition", size=own, number=part[-1]),)
        * bool(own)
        for i in ids
    ]
    devices = tuple(
        new_disk(path=i, size=4 * TIB, aliases=(i + part,), parts=its)
        for i, its in zip(ids, parts, strict=True)
    )
    whole = replace(top(kind, 0, 9, *leaves), **fields)
    return at(pool(whole), replace(FACTS, devices=devices))


@rows(
    ("s", "gained"),
    [
        (grown("raidz2"), "raidz2-0 gains about 27.0T"),
        (grown("draid2", size_bytes=8 * TIB, spares_left=1), "draid2-0 gains about 24.0T"),
        (grown("draid2", size_bytes=9 * TIB, spares_left=0), "draid2-0 gains about 27.0T"),
        (grown("mirror"), "mirror-0 gains about 3.00T"),
        (grown("mirror", "-part3"), "d08-part3 must have been made larger first"),
        (grown("raidz2", "-part3"), "the space gained is unknown: d00-part3"),
        (grown("raidz2", "-part3", 2 * TIB), "raidz2-0 gains about 9.00T"),
        (grown("raidz2", "-part1", TIB), "raidz2-0 gains about 27.0T"),
    ],
)
def test_expanding_promises_no_space_that_the_vdev_cannot_have(s, gained):
    """It counts neither a distributed spare's space nor that of other partitions of the disk."""
    plan = plan_expand(s, "1000")
    assert plan.refused is None
    assert gained in said(plan)
    assert (plan.follow is not None) == ("gains" in gained), "else it is followed without end"


# Doubts that another device is meant.

FAULTED = disk("d01", 1001, "FAULTED")
FAULTY = disk("d02", 1002, errors=ErrorCounters(3, 0, 0))


def test_a_healthy_device_is_doubted_and_those_that_failed_named():
    (said,) = replaced(raidz2(changes=(disk("d00", 1000), FAULTED, FAULTY))).doubts
    assert said == "d00 shows no errors; d01 has failed; d02 has errors"


def test_a_device_that_was_taken_offline_or_pulled_is_not_said_to_have_failed():
    out = [disk(f"d0{n}", 1000 + n, state) for n, state in enumerate(("OFFLINE", "REMOVED"), 1)]
    (said,) = replaced(raidz2(changes=(disk("d00", 1000), *out))).doubts
    assert said == "d00 shows no errors; d01 is OFFLINE; d02 is REMOVED"
    (said,) = replaced(
        raidz2(changes=(disk("d00", 1000), out[0], disk("d02", 1002, "OFFLINE")))
    ).doubts
    assert said == "d00 shows no errors; d01, d02 are OFFLINE"


@rows("own", [{"state": "FAULTED"}, {"errors": ErrorCounters(1, 0, 0)}])
def test_a_device_with_a_fault_of_its_own_is_not_doubted(own):
    assert not replaced(raidz2(changes=(disk("d00", 1000, **own), FAULTED))).doubts


def test_a_device_known_to_be_faulty_counts_like_one_with_errors():
    (said,) = doubts(raidz2().pool, "1000", ["1003"])
    assert said == "d00 shows no errors; d03 has errors"
    assert not doubts(raidz2().pool, "1003", ["1003"])


TAKES = (plan_offline, lambda s, key: plan_offline(s, key, temporary=True), plan_detach)
"""The actions that reduce redundancy."""


@rows("plan", TAKES)
def test_what_takes_the_last_redundancy_names_what_is_left_and_doubts_a_bad_sibling(plan):
    bad = disk("d01", 1001, errors=ErrorCounters(0, 0, 300))
    found = plan(mirror(changes=(disk("d00", 1000), bad)), "1000")
    assert found.refused is None
    assert found.doubts == ("d00 shows no errors; d01 has errors",)
    assert any("no device may fail" in text for text in found.consequences)
    assert "no redundancy: one more failure loses data; d01 has 300 errors" in said(found)


@rows("plan", TAKES[:2])
def test_errors_of_a_device_that_is_lost_already_are_no_danger(plan):
    lost = disk("d01", 1001, "FAULTED", errors=ErrorCounters(0, 0, 300))
    found = plan(raidz2(changes=(disk("d00", 1000), lost)), "1000")
    assert "one more failure loses data" in said(found)
    assert "300 errors" not in said(found)


@rows("plan", TAKES)
def test_a_device_of_a_healthy_pool_is_taken_off_without_a_doubt(plan):
    assert not plan(mirror(), "1000").doubts


# Plans for lighting a bay.

LED = new_disk(
    path="/dev/disk/by-id/d00",
    node="/dev/sda",
    aliases=("/dev/disk/by-id/d00-part1",),
    locate="/sys/x/locate",
    contents=Contents(zfs_pool="tank"),
)


def test_all_lights_go_off_without_a_device():
    assert plan_lights_off(raidz2()).steps[0].light == LightOrder(False)


@rows(
    ("contents", "doubted"),
    [
        (Contents(), True),
        (Contents(zfs_pool="other"), True),
        (Contents(zfs_pool="tank"), False),
        (Contents(zfs_pool=""), False),
        (Contents(unread=True), False),
    ],
)
def test_another_disk_may_sit_where_a_failed_one_was(contents, doubted):
    """The path of a pulled disk may name the one that was inserted later."""
    facts = replace(FACTS, devices=(replace(LED, serial="S9", contents=contents),))
    s = raidz2(changes=(disk("d00", 1000, "UNAVAIL"),), facts=facts)
    text = "the disk there now (serial S9) has no label of tank: it may be another disk"
    warnings = plan_locate(s, "1000", on=True).warnings
    assert any(text in warning for warning in warnings) == doubted
    well = plan_locate(raidz2(facts=facts), "1000", on=True)
    assert well.warnings == ()


# Letting reads go around a slow disk.

V24 = replace(FACTS, version=(2, 4, 4))
SITS = disk("d00", 1000, note=SITTING_OUT)


@rows(
    ("plan", "why"),
    [
        (plan_sit_out(raidz2(facts=V24), "100", on=True), "raidz2-0 is no single device"),
        (
            plan_sit_out(
                raidz2(facts=V24, changes=(SITS, disk("d01", 1001, "OFFLINE"))), "1002", on=True
            ),
            "2 other devices of raidz2-0 sit out or are incomplete: no parity left",
        ),
        (
            plan_sit_out(at(pool(top("raidz1", 0, 3, SITS)), V24), "1002", on=True),
            "1 other device of raidz1-0 sits out or is incomplete: no parity left",
        ),
    ],
)
def test_what_cannot_be_is_refused(plan, why):
    """Other refusals are pinned by the lock."""
    assert why in plan.refused


def test_it_has_ended_once_a_sample_shows_it():
    s = raidz2(facts=V24)
    plan = plan_sit_out(s, "1000", on=True)
    assert plan.follow(s) is None
    outcome = plan.follow(raidz2(facts=V24, changes=(SITS,)))
    assert outcome.ok
