"""Devices that may replace another, and why others may not."""

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
    new_disk,
    pool,
    raidz2,
    said,
    top,
)
from zconsole.actions.candidates import judge_device, ranked
from zconsole.actions.growth import plan_attach
from zconsole.actions.plan import Situation
from zconsole.actions.replace import plan_replace
from zconsole.actions.target import Swap, Target, find, partition_in, partition_of
from zconsole.hardware.device import Contents, Device
from zconsole.hardware.shingled import HOST_MANAGED

OLD = "/dev/disk/by-id/old"


OURS = Contents(zfs_pool="tank")


def _old(contents: Contents = OURS) -> Device:
    return new_disk(path=OLD, node="/dev/sdy", size=TIB, contents=contents)


def _failed(state: str, *devices: Device) -> tuple[Situation, Target]:
    s = raidz2(changes=(disk("old", 1000, state),), facts=replace(FACTS, devices=devices))
    target = find(s.pool, "1000")
    assert target is not None
    return s, target


@rows(
    ("state", "why"),
    [
        ("FAULTED", "this is the failed disk"),
        ("REMOVED", "this is the failed disk"),
        ("OFFLINE", "this is the disk to replace"),
        ("ONLINE", "in this pool already, as old"),
    ],
)
def test_a_disk_cannot_take_its_own_place(state, why):
    s, target = _failed(state, _old())
    assert judge_device(s.pool, target, _old(), s.facts).problems == (why,)
    assert plan_replace(s, Swap("1000", OLD)).refused == f"{OLD}: {why}"


def test_a_disk_that_failed_is_listed_after_every_other_that_can_be_used():
    failed = new_disk(path="/dev/disk/by-id/failed", failure="failed in x")
    small = new_disk(path="/dev/disk/by-id/small", size=1)
    rough = new_disk(path="/dev/disk/by-id/rough", contents=Contents(unread=True), physical=2**16)
    s, target = _failed("FAULTED", failed, small, rough, new_disk())
    listed = ranked(s.pool, target, s.facts)
    assert [each.device.path for each in listed] == [
        device.path for device in (new_disk(), rough, failed, small)
    ]
    assert listed[2].cautions[0] == "failed in x"


def test_a_shingled_disk_is_warned_of_and_any_other_that_can_be_used_comes_before_it():
    smr = new_disk(path="/dev/disk/by-id/smr", shingled="shingled (SMR) by WD's list")
    rough = new_disk(path="/dev/disk/by-id/rough", contents=Contents(unread=True), physical=2**16)
    s, target = _failed("FAULTED", smr, rough)
    listed = ranked(s.pool, target, s.facts)
    assert [each.device.path for each in listed] == [rough.path, smr.path]
    (warned,) = plan_replace(s, Swap("1000", smr.path)).warnings[:1]
    assert warned.startswith(
        "the new disk is shingled (SMR) by WD's list: a resilver onto it may take many times"
    )
    assert not any("SMR" in text for text in plan_replace(s, Swap("1000", rough.path)).warnings)


def test_a_disk_of_host_managed_zones_is_refused():
    s, target = _failed("FAULTED", new_disk(shingled=HOST_MANAGED))
    (problem,) = judge_device(s.pool, target, new_disk(shingled=HOST_MANAGED), s.facts).problems
    assert problem == f"{HOST_MANAGED}: ZFS can't use it"
    assert plan_replace(s, Swap("1000", NEW)).refused == f"{NEW}: {problem}"


UNNAMED = new_disk(path="/dev/sdz", node="/dev/sdz", unnamed=True)


@rows(
    ("device", "whys"),
    [
        (_old(Contents()), []),
        (_old(Contents(("ext4",))), ["holds ext4"]),
        (_old(Contents(zfs_pool="other")), ["has a label of pool other"]),
        (UNNAMED, ["not named by udev yet: look again"]),
        (replace(UNNAMED, path="/dev/disk/by-id/new", unnamed=False), []),
        (new_disk(size=1, contents=Contents(("ext4",))), ["holds ext4", "too small"]),
    ],
)
def test_a_new_disk_can_be_used_where_nothing_is_against_it(device, whys):
    """Also where the old one was; a refusal names every reason."""
    s, target = _failed("UNAVAIL", device)
    problems = judge_device(s.pool, target, device, s.facts).problems
    for why, problem in zip(whys, problems, strict=True):
        assert problem.startswith(why)
    refused = f"{device.path}: {'; '.join(problems)}" if problems else None
    assert plan_replace(s, Swap("1000", device.path)).refused == refused


@rows(
    ("kind", "plan"),
    [
        ("mirror", lambda s: plan_replace(s, Swap("1000", NEW))),
        ("raidz1", lambda s: plan_replace(s, Swap("1000", NEW))),
        ("mirror", lambda s: plan_attach(s, "1000", NEW)),
        ("raidz1", lambda s: plan_attach(s, "100", NEW)),
    ],
)
def test_a_whole_disk_for_a_partition_gets_none_of_the_other_partitions(kind, plan):
    """A boot disk also has an ESP: with a whole disk in its place, the machine does not boot."""
    part = disk("ata-OLD-part3", 1000)._replace(path="/dev/disk/by-id/ata-OLD-part3")
    found = plan(at(pool(top(kind, 0, 3, part)), FACTS))
    assert f"ata-OLD-part3 is partition 3 of its disk, and {NEW} is used whole" in said(found)
    assert f"sgdisk --replicate={NEW}" in said(found)
    assert "is used whole" not in said(plan(at(pool(top(kind, 0, 3)), FACTS)))


@rows(
    ("path", "part"),
    [
        ("/dev/sda3", "3"),
        ("/dev/nvme0n1p2", "2"),
        ("/dev/disk/by-id/ata-A-part12", "12"),
        ("/dev/sda", None),
        ("/dev/nvme0n1", None),
        ("/dev/disk/by-id/wwn-0x5000c5001234", None),
        ("/dev/dm-3", None),
        ("/dev/md0", None),
        ("/tank/file1", None),
    ],
)
def test_only_a_partition_has_a_number(path, part):
    assert partition_in(path) == part


SPARE = disk("sp1", 1901, "AVAIL", vclass="spare")
OLD_LEAF, STANDING, NEWER = disk("d00", 1000, "FAULTED"), disk("sp0", 1900), disk("nd", 1002)
INNER = group("replacing", OLD_LEAF, NEWER)
SPARED, RESPARED = group("spare", OLD_LEAF, STANDING), group("spare", INNER, STANDING)


@rows(
    ("member", "old", "new", "why"),
    [
        (SPARED, "1000", "sp1", "sp0 stands in already"),
        (RESPARED, "1000", "sp1", "sp0 stands in already"),
        (RESPARED, "1002", "sp1", "sp0 stands in already"),
        (SPARED, "1900", "ata-NEW", "sp0 is a spare that stands in: replace d00 instead"),
        (SPARED, "1900", "sp1", None),
        (SPARED, "1000", "ata-NEW", None),
        (INNER, "1000", "sp1", None),
        (OLD_LEAF, "1000", "sp1", None),
    ],
)
def test_a_spare_stands_in_once_and_is_replaced_by_a_spare_alone(member, old, new, why):
    """These are the rules of spa_vdev_attach (spa.c) and zpool_vdev_attach (libzfs_pool.c)."""
    s = at(pool(top("raidz2", 0, 6, member), spares=(SPARE,)), FACTS)
    plan = plan_replace(s, Swap(old, f"/dev/disk/by-id/{new}"))
    assert (plan.refused is None) == (why is None)
    assert (why or "") in (plan.refused or "")


@rows(
    ("name", "part"),
    [("sda3", "3"), ("/dev/sda3", "3"), ("sda1", "1"), ("/dev/sda1", None), ("sda", None)],
)
def test_a_full_path_of_partition_1_may_be_a_whole_disk(name, part):
    """`zpool status -P` also prints the partition that zpool itself made."""
    path = f"/dev/{name.removeprefix('/dev/')}" if name != "sda" else "/dev/sda1"
    assert partition_of(disk(name, 1)._replace(path=path)) == part
