"""Predictions of a plan for one replace, or for a batch."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import (
    FACTS,
    NEW,
    OLD_FEATURES,
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
from zconsole.actions.growth import plan_attach
from zconsole.actions.plan import ActionPlan, Situation
from zconsole.actions.replace import plan_batch, plan_replace
from zconsole.actions.target import Swap
from zconsole.pool.model import Activity, ErrorCounters
from zconsole.timeline.eta.estimate import Estimate


def test_of_an_old_disk_with_errors_it_is_said_which_blocks_are_not_safe():
    bad = disk("d00", 1000)._replace(errors=ErrorCounters(12, 0, 47))
    safe = "while it runs, 2 more devices may fail in raidz2-0 without losing data"
    doubted = said(replaced(raidz2(changes=(bad,))))
    assert f"{safe}, 1 for blocks d00 can't read" in doubted
    assert "the old device is ONLINE, with errors: leave it plugged in" in doubted
    assert f"{safe}\n" in f"{said(replaced(raidz2()))}\n"
    assert "the old device is ONLINE and complete: leave it plugged in" in said(replaced(raidz2()))


@rows(
    ("facts", "percent", "text"),
    [
        (V21, 2.0, "waits for it (awaiting resilver)"),
        (OLD_FEATURES, 88.0, "restarts from 0 to include it (88.0 % lost)"),
        (
            replace(
                FACTS,
                parameters={"zfs_resilver_defer_percent": 10, "zfs_resilver_disable_defer": 1},
            ),
            38.2,
            "38.2 % lost",
        ),
        (replace(FACTS, features={}), 38.2, "features that decide this are unknown"),
    ],
)
def test_a_second_replace_is_deferred_or_restarts(facts, percent, text):
    assert text in said(replaced(raidz2(running("resilver", percent), facts=facts)))


@rows(
    ("situation", "text"),
    [
        (mirror(activities=(Activity("checkpoint", "running"),)), "being discarded"),
        (mirror(activities=(Activity("removal", "running"),)), "device removal is running"),
        (mirror(facts=replace(FACTS, devices=(new_disk(logical=8192),))), "ashift 12"),
    ],
)
def test_replace_is_refused_in_words(situation, text):
    """Other refusals are pinned by the lock."""
    assert text in replaced(situation).refused


@rows(
    ("bay", "title"), [("d00", "Replace the old d00 with d00 ("), ("d07", "Replace d00 with d07 (")]
)
def test_a_disk_in_the_bay_of_the_old_one_is_told_from_it(bay, title):
    device = replace(FACTS.devices[0], path=NEW, bay=bay, serial="S1")
    s = mirror(facts=replace(FACTS, devices=(device,)))
    assert plan_replace(s, Swap("1000", NEW)).title.startswith(title)


def test_a_new_disk_in_the_old_ones_bay_has_its_path():
    gone = disk("d00", 1000, "UNAVAIL", note="was /dev/disk/by-id/d00-part1")
    s = raidz2(
        facts=replace(FACTS, devices=(new_disk(path="/dev/disk/by-id/d00"),)), changes=(gone,)
    )
    assert plan_replace(s, Swap("1000", "/dev/disk/by-id/d00")).refused is None


@rows(
    ("plan", "kind"),
    [
        (replaced, "mirror"),
        (lambda s: replaced(s, sequential=True), "mirror"),
        (lambda s: plan_batch(s, (Swap("1000", NEW),)), "raidz2"),
        (lambda s: plan_attach(s, "1000", NEW), "mirror"),
        (lambda s: plan_attach(s, "100", NEW), "raidz2"),
    ],
)
@rows(
    ("prop", "vdev", "physical", "option"),
    [
        ("13", 12, 4096, ("-o", "ashift=12")),
        ("12", 9, 512, ("-o", "ashift=9")),
        ("0", 9, 4096, ("-o", "ashift=9")),
        ("12", 12, 4096, ()),
        ("9", 12, 512, ()),
        ("0", 12, None, ()),
        ("13", None, 4096, ()),
    ],
)
def test_what_joins_a_vdev_gets_no_more_than_its_ashift(plan, kind, prop, vdev, physical, option):
    """If ZFS would choose a larger ashift from the pool's property or the sectors, it refuses."""
    found = replace(FACTS, properties={"ashift": prop}, devices=(new_disk(physical=physical),))
    s = at(pool(replace(top(kind, 0, 6), ashift=vdev)), found)
    argv = tuple(word for word in plan(s).steps[0].argv if word != "-s")
    assert argv[2:4] == option if option else "-o" not in argv


def test_what_a_running_repair_has_not_marked_yet_is_no_redundancy():
    pair = group("replacing", disk("gone", 1800, "FAULTED"), disk("new", 1900))
    s = raidz2(running("resilver"), changes=(disk("d00", 1000, "FAULTED"), pair))
    assert "no device may fail in raidz2-0" in said(replaced(s))


@rows(
    ("new", "scans", "said"),
    [
        ((disk("bay09", 1900),), (running("scrub", 45.7),), "by bay09; a third disk"),
        (
            (disk("bay09", 1900),),
            (running("rebuild", 3.0, vdev="raidz2-0"),),
            "by bay09 (3.0 %); a third disk",
        ),
        (
            (disk("bay09", 1900), disk("bay10", 1901)),
            (running("resilver", 3.0),),
            "by bay09, bay10 (3.0 %); another disk",
        ),
    ],
)
def test_that_a_disk_is_being_replaced_already_is_said_before_all_else(new, scans, said):
    pair = group("replacing", disk("bay03", 1000, "FAULTED"), *new)
    situation = at(pool(top("raidz2", 0, 8, pair), scans=scans))
    whole = (
        f"bay03 is already being replaced {said} joins. zconsole swap follows the one that runs."
    )
    for plan in (replaced(situation), batch(situation, "1000")):
        assert plan.doubts[0] == whole
        assert not any("already in" in text for text in plan.warnings)


def test_a_hot_spare_is_refused_where_zpool_refuses_it():
    spare = disk("sp0", 1900, "AVAIL", vclass="spare")
    dspare = replace(disk("draid1-1-0", 1901, "AVAIL", vclass="spare"), kind="dspare", path=None)
    logs = replace(top("mirror", 0, 2), vclass="log")
    draids = (top("draid1", 1, 4), top("draid1", 2, 4))
    s = at(pool(logs, *draids, spares=(spare, dspare)), NO_DISKS)

    def refused(old: str, new: str) -> str:
        return plan_replace(s, Swap(old, new)).refused or ""

    assert "log device" in refused("1000", "/dev/disk/by-id/sp0")
    assert refused("1010", "/dev/disk/by-id/sp0") == ""
    assert refused("1010", "draid1-1-0") == ""
    assert "its own devices" in refused("1020", "draid1-1-0")


def batch(s: Situation, *olds: str, **kw) -> ActionPlan:
    return plan_batch(s, tuple(Swap(o, f"/dev/disk/by-id/n{i}") for i, o in enumerate(olds)), **kw)


NO_DISKS = replace(FACTS, devices=())
TIME = Estimate(7200.0, None, None, "estimated from the last scrub's speed")


@rows("sequential", [False, True])
@rows(
    "plan",
    [
        lambda s, **kw: plan_replace(s, Swap("1000", NEW), **kw),
        lambda s, **kw: batch(s, "1000", "1001", **kw),
    ],
)
def test_a_plan_says_how_long_a_resilver_is_likely_to_take(plan, sequential):
    s = mirror(facts=NO_DISKS)
    work = "a healing resilver" if sequential else "the resilver"
    known = said(plan(s, sequential=sequential, estimate=TIME))
    assert f"{work} takes about 2h00m, estimated from the last scrub's speed" in known
    unknown = said(plan(s, sequential=sequential))
    assert f"how long {work} takes is unknown: no completed scan recorded" in unknown


@rows(("left", "wait"), [(38400.0, "after the running resilver (about 10h40m left), "), (None, "")])
@rows(
    ("percent", "plan", "waits"),
    [
        (5.0, lambda s: plan_replace(s, Swap("1000", NEW), estimate=TIME), True),
        (5.0, lambda s: plan_attach(s, "1000", NEW, TIME), True),
        (40.0, lambda s: batch(s, "1000", estimate=TIME), True),
        # The plan for several restarts a resilver of which little is done.
        (5.0, lambda s: batch(s, "1000", estimate=TIME), False),
    ],
)
def test_how_long_a_new_device_waits_is_told_before_the_time_of_its_resilver(
    left, wait, percent, plan, waits
):
    s = replace(mirror(running("resilver", percent), facts=replace(V21, devices=())), left=left)
    wait = (wait or "after the running resilver, ") * waits
    assert f"\n{wait}the resilver takes about 2h00m" in said(plan(s))


def test_an_attach_says_how_long_the_new_side_takes():
    plan = plan_attach(mirror(facts=NO_DISKS), "1000", NEW, TIME)
    assert "the resilver takes about 2h00m, estimated from" in said(plan)
    assert "the resilver takes" not in said(plan_attach(raidz2(facts=NO_DISKS), "100", NEW, TIME))


def test_a_batch_says_that_old_devices_still_count_only_of_those_that_still_read():
    gone = (disk("d00", 1000, "FAULTED"), disk("d01", 1001, "REMOVED"))
    some = said(batch(raidz2(facts=NO_DISKS, changes=gone[:1]), "1000", "1002"))
    assert "leave d02 plugged in until it finishes: it still counts for redundancy" in some
    none = said(batch(raidz2(facts=NO_DISKS, changes=gone), "1000", "1001"))
    assert "plugged in" not in none


@rows("kind", ["replacing", "spare"])
@rows("old", ["1000", "1900"])
def test_a_lone_disk_in_a_group_has_no_sequential_rebuild(kind, old):
    """The kernel requires a mirror, a dRAID or the root as parent, not a group."""
    pair = group(kind, disk("d00", 1000), disk("sp0", 1900))
    found = at(pool(pair), FACTS)
    plan = plan_replace(found, Swap(old, NEW), sequential=True)
    assert plan.refused is not None
    alone = at(pool(disk("d00", 1000)), FACTS)
    assert plan_replace(alone, Swap("1000", NEW), sequential=True).refused is None
    inner = at(pool(top("mirror", 0, 2, pair)), FACTS)
    sequential = plan_replace(inner, Swap("1000", NEW), sequential=True)
    assert sequential.refused is None
