"""Predictions of plans, case by case."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import (
    CHECKPOINT,
    FACTS,
    NEW,
    OLD_FEATURES,
    TIB,
    V21,
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
from zconsole.actions.growth import plan_attach, plan_autoexpand, plan_expand
from zconsole.actions.locate import plan_locate
from zconsole.actions.offline import plan_detach, plan_offline, plan_online
from zconsole.actions.plan import Facts, Situation
from zconsole.actions.scrub import (
    ScrubDates,
    plan_pause,
    plan_resilver,
    plan_scrub,
    plan_scrub_dates,
    plan_scrub_new,
    plan_stop,
    plan_stop_resilver,
)
from zconsole.actions.trim import plan_work
from zconsole.hardware.device import Device
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import Activity, ErrorCounters, Progress, Vdev

WAITING = disk("d00", 1000, awaiting_resilver=True)
REPLACING = group("replacing", disk("d00", 1000, "FAULTED"), disk("new", 1900))


DATES = ScrubDates("2026-11-01 06:00", "2026-11-20")
V24 = replace(FACTS, version=(2, 4, 0), properties={"last_scrubbed_txg": "4711"})


def spared(failed: str = "FAULTED") -> Situation:
    pair = group("spare", disk("d00", 1000, failed), disk("sp0", 1900))
    spare = disk("sp0", 1900, "INUSE", vclass="spare")
    return at(pool(top("raidz2", 0, 6, pair), spares=(spare,)), FACTS)


def test_a_group_in_a_spare_is_not_detached_as_a_whole():
    """The failed disk is being replaced while the spare stands in: zpool detaches only devices."""
    inner = replace(group("replacing", disk("d00", 1000, "FAULTED"), disk("n", 1001)), guid="51")
    s = at(pool(top("mirror", 0, 2, group("spare", inner, disk("sp0", 1900)))))
    assert plan_detach(s, "51").refused == "replacing-0 is not a device: detach one of its devices"


def test_a_scrub_says_how_long_the_last_one_took():
    took = "the last scrub took 14h12m"
    known = running("scrub", state="finished", duration=51120.0)
    assert took in plan_scrub(raidz2(known)).consequences
    assert not any("took" in text for text in plan_scrub(raidz2()).consequences)
    other = running("resilver", state="finished", duration=51120.0)
    assert not any("took" in text for text in plan_scrub(raidz2(other)).consequences)


@rows(
    ("plan", "text"),
    [
        (plan_scrub(raidz2(running("scrub"))), "scrub running (38.2 %)"),
        (plan_scrub(raidz2(running("resilver"))), "resilver running ("),
        (plan_pause(raidz2()), "no scrub to pause"),
        (plan_pause(raidz2(running("scrub", state="paused"))), "paused already"),
        (plan_pause(raidz2(running("resilver"))), "ZFS cannot"),
        (plan_stop(raidz2()), "no scrub to stop"),
        (plan_stop(raidz2(running("resilver"))), "ZFS cannot"),
        (plan_stop_resilver(raidz2(running("resilver"))), "cannot pause or stop it"),
        (plan_resilver(raidz2(facts=OLD_FEATURES)), "resilver_defer"),
        (plan_resilver(raidz2()), "no resilver runs or waits"),
        (plan_resilver(raidz2(running("scrub"))), "no resilver runs or waits"),
        (plan_resilver(raidz2(running("resilver"))), "no device waits for a resilver"),
        (plan_scrub(raidz2(error_count=0), errors_only=True), "the pool has no known errors"),
        (plan_scrub_new(raidz2(facts=V21)), "needs OpenZFS 2.3"),
        (
            plan_scrub_new(raidz2(facts=replace(V24, properties={"last_scrubbed_txg": "0"}))),
            "no scrub has completed",
        ),
        (plan_scrub_new(raidz2(running("scrub", state="paused"))), "scrub paused"),
        (plan_scrub_dates(raidz2(), DATES), "needs OpenZFS 2.4"),
        (plan_scrub_dates(raidz2(running("resilver"), facts=V24), DATES), "resilver running"),
        (plan_stop_resilver(raidz2()), "no resilver is running"),
        (plan_offline(mirror(changes=(disk("d00", 1000, "FAULTED"),)), "1001"), "no valid"),
        (plan_offline(at(pool(disk("d1", 1000))), "1000"), "no valid replicas"),
        (plan_online(raidz2(), "1000"), "is online"),
        (plan_detach(raidz2(), "1000"), "only sides of mirrors"),
        (plan_detach(mirror(changes=(disk("d00", 1000, "FAULTED"),)), "1001"), "no valid"),
        (plan_detach(mirror(activities=(CHECKPOINT,)), "1000"), "checkpoint"),
        (plan_attach(raidz2(), "1000", NEW), "only mirrors"),
        (plan_attach(raidz2(facts=V21), "100", NEW), "2.3"),
        (plan_attach(raidz2(activities=(CHECKPOINT,)), "100", NEW), "checkpoint"),
        (
            plan_expand(raidz2(changes=(disk("d00", 1000, resilvering=True),)), "1000"),
            "complete yet",
        ),
        (
            plan_work(
                "trim", raidz2(changes=(disk("d00", 1000, trim=Progress("active")),)), "1000"
            ),
            "already",
        ),
        (plan_work("trim", raidz2(), "1000", "cancel"), "not trimming"),
        (plan_work("trim", raidz2(), "100"), "raidz2-0 is not a device that holds data"),
        (
            plan_work("trim", raidz2(changes=(disk("d00", 1000, trimmable=False),)), "1000"),
            "takes no trims",
        ),
        (plan_locate(raidz2(), "1000", on=True), "no bay"),
        (
            plan_autoexpand(raidz2(facts=replace(FACTS, properties={"autoexpand": "on"})), True),
            "already",
        ),
    ],
)
def test_refusals(plan, text):
    assert text in (plan.refused or "not refused")


def test_stopping_a_resilver_says_what_else_there_is():
    alternatives = " ".join(plan_stop(raidz2(running("resilver"))).alternatives)
    assert "detach" in alternatives
    assert "zfs_scan_suspend_progress" in alternatives


def test_a_wrong_replace_is_backed_out_by_detaching_the_new_device():
    pair = group("replacing", disk("d00", 1000, "FAULTED"), disk("nd", 1900, resilvering=True))
    s = raidz2(changes=(pair,))
    plan = plan_detach(s, "1900")
    assert plan.refused is None
    assert "this ends the replace" in said(plan)
    healthy = group("replacing", disk("d00", 1000), disk("nd", 1900, resilvering=True))
    assert plan_detach(raidz2(changes=(healthy,)), "1000").refused


@rows(
    ("plan", "typed"),
    [
        (plan_detach(mirror(), "1000"), "d00"),
        (plan_attach(raidz2(), "100", NEW), "raidz2-0"),
        (plan_attach(mirror(), "1000", NEW), None),
        (plan_resilver(raidz2(running("resilver", 50.0), changes=(WAITING,))), "tank"),
        (plan_resilver(raidz2(running("resilver", 1.0), changes=(WAITING,))), None),
        (plan_offline(raidz2(), "1000"), None),
    ],
)
def test_one_way_plans_need_the_name_typed(plan, typed):
    assert plan.needs_typed == typed


FAILED = disk("d00", 1000, "FAULTED")


@rows(
    ("plan", "warned"),
    [
        (plan_offline(raidz2(), "1001"), False),
        (plan_offline(raidz2(changes=(FAILED,)), "1001"), True),
        (plan_offline(mirror(), "1000"), True),
        (plan_offline(raidz2(changes=(FAILED,)), "1000"), False),
        (plan_offline(spared("DEGRADED"), "1000"), False),
    ],
)
def test_taking_the_last_redundancy_is_warned_of(plan, warned):
    assert any("with no redundancy" in text for text in plan.warnings) == warned
    assert " 0 " not in said(plan)


def test_expanding_is_offered_with_the_space_gained_and_is_one_way():
    devices = tuple(
        new_disk(
            path=f"/dev/disk/by-id/d0{n}", size=4 * TIB, aliases=(f"/dev/disk/by-id/d0{n}-part1",)
        )
        for n in range(2)
    )
    plan = plan_expand(mirror(facts=replace(FACTS, devices=devices)), "1000")
    assert plan.needs_typed == "mirror-0"
    assert [s.argv for s in plan.steps] == [
        ("zpool", "online", "-e", "tank", f"/dev/disk/by-id/{name}") for name in ("d00", "d01")
    ]
    assert "gains about 3.00T" in said(plan)
    assert "never shrinks" in said(plan)
    same = tuple(replace(d, size=TIB) for d in devices)
    assert "cannot grow" in (
        plan_expand(mirror(facts=replace(FACTS, devices=same)), "1000").refused or ""
    )


def test_a_vdev_that_a_raidz_expansion_is_growing_is_not_offered_to_be_expanded():
    """The attached disk made it look as if it had room to grow, and expanding is irreversible."""
    big = tuple(new_disk(path=f"/dev/disk/by-id/d0{n}", size=4 * TIB) for n in range(6))
    grows = (Activity("expansion", "running", vdev="raidz2-0"),)
    facts = replace(FACTS, devices=big)
    assert plan_expand(raidz2(facts=facts), "1000").refused is None
    assert plan_expand(raidz2(facts=facts, activities=grows), "1000").refused is not None


def test_clear_saves_the_evidence():
    s = raidz2(changes=(disk("d00", 1000, errors=ErrorCounters(1, 2, 3)),))
    plan = plan_clear(s)
    assert plan.saves_evidence
    assert "audit log first" in said(plan)
    assert "damaged files" not in said(plan)
    stuck = plan_clear(replace(s, suspended=True))
    assert "audit log as well, if that can be written" in said(stuck)


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


def test_unknown_facts_are_said_not_guessed():
    plan = replaced(at(pool(top("raidz2", 0, 6)), Facts()))
    assert plan.refused is None
    assert "not examined" in said(plan)


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


def test_where_nothing_expands_a_device_is_named_by_guid():
    s = raidz2(changes=(disk("d00", 1000, "OFFLINE"),), facts=replace(FACTS, properties=STAYS))
    assert plan_online(s, "1000").steps[0].argv == ("zpool", "online", "tank", "1000")


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


@rows(
    ("s", "on", "grows"),
    [
        (grown("raidz2"), True, "raidz2-0 by about 27.0T"),
        (grown("mirror"), True, "mirror-0 by about 3.00T"),
        (grown("mirror"), False, ""),
        (grown("mirror", "-part3"), True, ""),
        (mirror(), True, ""),
    ],
)
def test_autoexpand_names_and_has_typed_what_grows_at_once(s, on, grows):
    plan = plan_autoexpand(s, on)
    assert plan.refused is None
    assert grows in said(plan)
    assert ("at once" in said(plan)) == bool(grows)
    assert plan.needs_typed == ("tank" if grows else None)
