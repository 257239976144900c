"""Removing spares, caches, logs and vdevs with data; a checkpoint before a vdev is added."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import (
    CHECKPOINT,
    GIB,
    MODERN,
    TIB,
    at,
    disk,
    group,
    mirror,
    pool,
    raidz2,
    running,
    said,
    top,
)
from tests.unit.actions.test_add import PATHS, shelf
from zconsole.actions.add import Layout
from zconsole.actions.checkpoint import plan_add_with_way_back
from zconsole.actions.plan import Situation, failing
from zconsole.actions.remove import plan_cancel, plan_remove
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import Activity, Vdev
from zconsole.timeline.eta.estimate import Estimate

SPARE = disk("sp", 1900, "AVAIL", vclass="spare")
CACHE = disk("ca", 1901, vclass="cache")
LOG = replace(top("mirror", 3, 2), vclass="log")
MIRROR = Layout("normal", "mirror")
MOVING = Activity("removal", "running", "mirror-1")


def holding(index: int, alloc: int = 100 * GIB, **fields) -> Vdev:
    """Return a mirror with data."""
    return replace(top("mirror", index, 2), alloc_bytes=alloc, **fields)


def mirrors(*more: Vdev, facts=MODERN, scans=(), activities=(), **fields) -> Situation:
    tops = holding(0), holding(1, **fields), *more
    return at(pool(*tops, scans=scans, activities=activities), facts)


@rows(
    ("key", "argument", "effect"),
    [
        ("spare:1900", "1900", "the pool has no hot spare then"),
        ("1901", "1901", "read from the pool's other disks"),
        ("1030", "mirror-3", "synchronous writes go to the pool's disks with data"),
        ("103", "mirror-3", "its disks: d30, d31"),
    ],
)
def test_what_holds_no_data_is_removed_from_any_pool_at_once(key, argument, effect):
    plan = plan_remove(at(pool(top("raidz2", 0, 6), LOG, CACHE, SPARE)), key)
    assert plan.refused is None
    assert plan.steps[0].argv == ("zpool", "remove", "tank", argument)
    assert effect in said(plan)
    assert (plan.needs_typed, plan.not_undone, plan.begins) == (None, (), "")


def test_a_spare_in_use_or_of_a_draid_stays():
    used = replace(SPARE, state="INUSE")
    pair = group("spare", disk("d00", 1000, "FAULTED"), replace(SPARE, vclass="normal"))
    plan = plan_remove(at(pool(top("mirror", 0, 2, pair), used)), "spare:1900")
    assert plan.refused == "sp stands in for a device: return it first"
    elsewhere = plan_remove(at(pool(top("mirror", 0, 2), used)), "spare:1900")
    assert elsewhere.refused is None, "another pool uses it"
    distributed = plan_remove(at(pool(replace(SPARE, kind="dspare"))), "spare:1900")
    assert "a part of its dRAID" in str(distributed.refused)


def test_a_vdev_is_removed_whole_from_the_row_of_any_of_its_disks():
    estimate = Estimate(7200.0, 3600.0, 9000.0, "estimated from the last scrub's speed")
    plan = plan_remove(mirrors(), "1011", 24 << 20, estimate)
    assert plan.refused is None
    assert plan.steps[0].argv == ("zpool", "remove", "tank", "mirror-1")
    assert plan.needs_typed == "mirror-1"
    assert (plan.begins, plan.predicted) == ("removal", 7200.0)
    for text in (
        "copies 100G to the other vdevs, which are 20 % full then (10 % now)",
        "the copy takes about 2h00m, estimated from the last scrub's speed",
        "memory for the table of moved blocks: about 24M",
        "never adds a raidz",
    ):
        assert text in said(plan)
    assert "table of moved blocks: unknown" in said(plan_remove(mirrors(), "1011"))


@rows(
    ("situation", "why"),
    [
        (raidz2(), "from a pool with raidz or dRAID"),
        (mirror(), "no other vdev could take its data"),
        (mirrors(alloc=950 * GIB), "removing mirror-1 takes 1024G, the pool has 934G to spare"),
        (mirrors(ashift=9), "ashift differs between vdevs"),
        (mirrors(holding(2, vclass="special", ashift=13)), None),
        (mirrors(activities=(CHECKPOINT,)), "so ZFS refuses replace, attach, detach and remove"),
        (mirrors(activities=(MOVING,)), "device removal is running: wait for it"),
        (mirrors(facts=replace(MODERN, version=(0, 7, 13))), "needs OpenZFS 0.8"),
        (
            mirrors(facts=replace(MODERN, features={"device_removal": "disabled"})),
            "lacks the feature device_removal",
        ),
        (mirrors(state="UNAVAIL"), "can't be read in full"),
        (
            mirrors(top("mirror", 2, 2, group("replacing", disk("a", 1), disk("b", 2)))),
            "a device is being replaced or spared (replacing-0)",
        ),
    ],
)
def test_why_a_vdev_with_data_stays(situation, why):
    target = "1000" if len(situation.pool.root.children) == 1 else "101"
    refused = plan_remove(situation, target).refused
    assert (refused is None) if why is None else (why in str(refused))


def test_a_special_vdev_needs_the_same_sectors_and_room_for_what_is_on_it():
    def of(**fields) -> str | None:
        special = holding(2, vclass="special", **fields)
        return plan_remove(mirrors(special, alloc=900 * GIB), "102").refused

    assert of() is None
    assert "another ashift" in str(of(ashift=13))
    assert "removing mirror-2 takes 2T, the pool has 1.02T to spare" in str(of(alloc=2 * TIB))


def test_a_vdev_whose_space_does_not_count_any_more_needs_no_room():
    full = mirrors(alloc=950 * GIB, allocating=False)
    assert plan_remove(full, "101").refused is None
    others = replace(full, pool=pool(holding(0, allocating=False), holding(1)))
    assert plan_remove(others, "101").refused == "no other vdev could take its data"


def test_bugs_of_the_release_are_told_only_where_data_is_moved():
    """A removed log leaves a hole, on which 2.2 stumbles (openzfs #16021, #16786)."""
    old = replace(MODERN, version=(2, 2, 11))
    assert any(
        "crash the kernel" in text for text in plan_remove(mirrors(facts=old), "101").hazards
    )
    assert plan_remove(mirrors(), "101").hazards == ()
    assert plan_remove(mirrors(LOG, facts=old), "103").hazards == ()


def test_it_is_followed_until_the_vdev_is_gone_or_stays_for_good():
    there = replace(mirrors(), pool=pool(holding(0), _in_bays(holding(1))))
    follow = plan_remove(there, "101").follow
    assert follow is not None

    def after(*activities: Activity) -> Situation:
        return mirrors(activities=activities)

    assert follow(after(MOVING)) is None
    assert follow(after(Activity("removal", "canceled", end=10.0))) is None, "one of before"
    canceled = follow(after(Activity("removal", "canceled", end=2000.0)))
    assert canceled is not None
    assert not canceled.ok
    gone = follow(at(pool(holding(0))))
    assert gone is not None
    assert gone.ok
    assert gone.unused == ("bay1", "bay2")


def _in_bays(vdev: Vdev) -> Vdev:
    leaves = zip(vdev.children, ("bay1", "bay2"), strict=True)
    return replace(vdev, children=tuple(v._replace(disk=LeafDisk(bay=bay)) for v, bay in leaves))


def test_a_removal_is_canceled_only_while_it_runs():
    plan = plan_cancel(mirrors(activities=(MOVING,)))
    assert plan.steps[0].argv == ("zpool", "remove", "-s", "tank")
    assert plan_cancel(mirrors()).refused == "no removal is running"
    assert failing(plan.preconditions, mirrors()) == "no removal is running"


def test_a_checkpoint_is_made_before_the_vdev_is_added():
    plan = plan_add_with_way_back(shelf(mirror()), MIRROR, PATHS[:2])
    assert plan.refused is None
    assert [step.argv[1] for step in plan.steps] == ["checkpoint", "add"]
    assert "zpool import --rewind-to-checkpoint tank" in said(plan)
    later = replace(shelf(mirror()), pool=pool(top("mirror", 0, 2), top("mirror", 1, 2)))
    assert "have changed since planning" in str(failing(plan.steps[1].requires, later))


@rows(
    ("situation", "why"),
    [
        (mirror(activities=(CHECKPOINT,)), "the pool has a checkpoint already"),
        (mirror(running("resilver")), "resilver running"),
        (mirror(running("rebuild")), "rebuild running"),
        (mirror(activities=(Activity("expansion", "running"),)), "raidz expansion is running"),
        (mirror(changes=(disk("d00", 1000, "FAULTED"),)), "d00 is FAULTED: replace it first"),
        (mirror(changes=(disk("d00", 1000, awaiting_resilver=True),)), "would block"),
        (
            mirror(facts=replace(MODERN, features={"zpool_checkpoint": "disabled"})),
            "needs the pool feature zpool_checkpoint",
        ),
    ],
)
def test_no_checkpoint_is_made_where_it_would_do_harm(situation, why):
    """A resilver restarts without end while one exists (openzfs #17109)."""
    plan = plan_add_with_way_back(shelf(situation), MIRROR, PATHS[:2])
    assert why in str(plan.refused)
