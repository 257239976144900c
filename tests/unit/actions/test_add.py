"""Adding to a pool: as redundant as the pool, never forced, confirmed by typing if irreversible."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import (
    MODERN,
    TIB,
    at,
    disk,
    mirror,
    new_disk,
    pool,
    raidz2,
    said,
    top,
)
from zconsole.actions.add import Layout, layouts, plan_add
from zconsole.actions.plan import ActionPlan, Situation, failing
from zconsole.hardware.device import Contents

PATHS = tuple(f"/dev/disk/by-id/new{n}" for n in range(6))
DATA = Layout("normal", "raidz2")
LONE = Layout("normal")
SPECIAL = Layout("special", "mirror")


def shelf(s: Situation, *changes: dict, **fields) -> Situation:
    """Return the situation with six new disks, the first ones with ``changes``."""
    each = (*changes, *({},) * (len(PATHS) - len(changes)))
    disks = tuple(
        new_disk(**{"path": path, "aliases": (f"{path}-part1",), "size": TIB} | fields | change)
        for path, change in zip(PATHS, each, strict=True)
    )
    return replace(s, facts=replace(s.facts, devices=disks))


WIDE = shelf(raidz2())
PAIRS = shelf(mirror())


def argv(plan: ActionPlan) -> tuple[str, ...]:
    assert plan.refused is None, plan.refused
    (step,) = plan.steps
    return step.argv


@rows("vclass", ["cache", "spare"])
def test_caches_and_spares_are_single_devices(vclass):
    assert argv(plan_add(WIDE, Layout(vclass), PATHS[:2]))[3:] == (vclass, *PATHS[:2])
    assert "single device" in str(plan_add(WIDE, Layout(vclass, "mirror"), PATHS[:2]).refused)


@rows("made", [WIDE, PAIRS, shelf(at(pool(disk("d0", 1000))))])
def test_a_lone_disk_is_never_added_to_hold_data(made):
    for layout in (LONE, Layout("special"), Layout("dedup")):
        plan = plan_add(made, layout, PATHS[:1])
        assert "has no redundancy" in plan.refused
        assert "all of tank is lost" in plan.refused
        assert "add it as a spare, to stand in for a device that fails" in plan.alternatives


def test_a_lone_disk_is_refused_also_where_zpool_no_longer_compares():
    mixed = shelf(at(pool(top("raidz2", 0, 6), disk("d9", 1900))))
    assert "has no redundancy" in plan_add(mixed, LONE, PATHS[:1]).refused


@rows(
    ("layout", "count", "why"),
    [
        (Layout("normal", "raidz1"), 6, "a raidz1 of 6 disks survives 1 lost, the pool's vdevs 2"),
        (Layout("normal", "mirror"), 2, "a mirror of 2 disks survives 1 lost"),
        (SPECIAL, 2, "less redundancy than the pool"),
        (DATA, 4, "the pool has a raidz2 of 6 disks, this is a raidz2 of 4 disks"),
        (Layout("normal", "raidz3"), 6, "only with -f, never used here"),
        (Layout("special", "raidz2"), 4, "ZFS has no special of raidz"),
        (DATA, 2, "needs at least 3 devices"),
        (Layout("spare"), 0, "needs at least 1 device"),
    ],
)
def test_what_is_not_like_the_pool_is_refused(layout, count, why):
    assert why in plan_add(WIDE, layout, PATHS[:count]).refused


def test_a_device_named_twice_is_noticed_by_any_of_its_names():
    twice = (PATHS[0], f"{PATHS[0]}-part1")
    assert plan_add(PAIRS, Layout("normal", "mirror"), twice).refused == "a device is named twice"


def test_a_word_that_zpool_would_take_for_its_own_is_no_device():
    assert "not an absolute path" in plan_add(WIDE, Layout("spare"), ("mirror",)).refused


@rows(
    ("change", "why"),
    [
        ({"mounted": ("/srv",)}, "mounted on /srv"),
        ({"holders": ("md0",)}, "in use by md0"),
        ({"swap": True}, "used as swap"),
        ({"read_only": True}, "read-only"),
        ({"contents": Contents(("ext4",))}, "holds ext4"),
        ({"contents": Contents(zfs_pool="other")}, "has a label of pool other"),
        ({"size": 32 << 20}, "too small: 32M, a vdev needs 64M"),
        ({"logical": 8192}, "its sectors are 8192 bytes"),
    ],
)
def test_a_device_that_is_not_free_is_refused(change, why):
    plan = plan_add(shelf(raidz2(), change), Layout("spare"), PATHS[:1])
    assert why in plan.refused


def test_a_device_of_the_pool_itself_is_refused():
    own = shelf(raidz2(), {"path": "/dev/disk/by-id/d03"})
    plan = plan_add(own, Layout("log"), ("/dev/disk/by-id/d03",))
    assert "in this pool already, as d03" in plan.refused


def test_a_vdev_added_meanwhile_stops_it():
    plan = plan_add(PAIRS, Layout("normal", "mirror"), PATHS[:2])
    later = replace(PAIRS, pool=pool(top("mirror", 0, 2), top("mirror", 1, 2)))
    assert plan.refused is None
    assert "have changed since planning" in (failing(plan.preconditions, later) or "")


def test_raidz_is_not_added_after_a_removal():
    s = replace(WIDE, facts=replace(WIDE.facts, features={"device_removal": "active"}))
    assert "a vdev was removed from this pool" in plan_add(s, DATA, PATHS).refused


def test_a_special_vdev_needs_its_feature():
    s = replace(WIDE, facts=replace(WIDE.facts, features={"allocation_classes": "disabled"}))
    assert "allocation_classes" in plan_add(s, SPECIAL, PATHS[:3]).refused


@rows(
    ("facts", "ashifts", "why"),
    [
        ({"device_removal": "disabled"}, (12, 12), "lacks the feature device_removal"),
        ({}, (12, 9), "ashift differs"),
    ],
)
def test_mirrors_that_cannot_be_removed_either(facts, ashifts, why):
    tops = (replace(top("mirror", n, 2), ashift=shift) for n, shift in enumerate(ashifts))
    s = shelf(at(pool(*tops), replace(MODERN, features=facts)))
    plan = plan_add(s, Layout("normal", "mirror"), PATHS[:2])
    assert why in said(plan)
    assert plan.needs_typed == "tank"


@rows(
    ("physical", "prop", "option"),
    [
        (4096, None, ()),
        (512, None, ("-o", "ashift=12")),
        (None, None, ("-o", "ashift=12")),
        (8192, None, ("-o", "ashift=12")),
        (512, "12", ()),
        (4096, "13", ("-o", "ashift=12")),
    ],
)
def test_the_alignment_is_that_of_the_pool(physical, prop, option):
    s = shelf(raidz2(), physical=physical)
    properties = {} if prop is None else {"ashift": prop}
    s = replace(s, facts=replace(s.facts, properties=properties))
    plan = plan_add(s, DATA, PATHS)
    assert argv(plan)[2 : 2 + len(option)] == (option or ("tank",)[: len(option)])
    assert "tank" in argv(plan)[2 + len(option)]
    assert "ashift 12" in said(plan)
    assert "-o" not in argv(plan_add(s, Layout("spare"), PATHS[:1]))


@rows("made", [WIDE, PAIRS])
def test_everything_that_is_offered_can_be_added(made):
    for layout, count in layouts(made):
        plan = plan_add(made, layout, PATHS[: count or 1])
        assert plan.refused is None, (layout, plan.refused)


def test_to_a_pool_of_single_disks_no_data_vdev_is_offered():
    offered = layouts(at(pool(disk("d0", 1000))))
    assert {layout.vclass for layout, _ in offered} >= {"log", "cache", "spare"}
    assert all(layout.vclass != "normal" for layout, _ in offered)


def test_of_vdevs_of_one_kind_the_newest_gives_the_width_that_is_offered():
    widened = pool(top("raidz2", 0, 6), top("raidz2", 1, 10))
    assert layouts(at(widened))[0] == (DATA, 10)
