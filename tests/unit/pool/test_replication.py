"""Layouts compared as zpool add does; and the redundancy of a pool."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import TIB, disk, pool, top
from zconsole.pool.redundancy import FUZZ, Replication, least_redundant, mismatch

MIRROR2, MIRROR3 = Replication("mirror", 2), Replication("mirror", 3)
RAIDZ2 = Replication("raidz", 6, 2)
LONE = Replication("disk", 1)


@rows(
    ("present", "new", "refused"),
    [
        ("raidz2", RAIDZ2, None),
        ("raidz2", Replication("raidz", 4, 2), "raidz2 of 6 disks, this is a raidz2 of 4 disks"),
        ("raidz2", Replication("raidz", 6, 1), "this is a raidz1 of 6 disks"),
        ("raidz2", MIRROR3, None),
        ("raidz2", MIRROR2, "this is a mirror of 2 disks"),
        ("raidz2", LONE, "this is a single disk"),
        ("mirror", MIRROR3, "the pool has a mirror of 6 disks"),
        ("mirror", Replication("mirror", 6), None),
        ("draid2", RAIDZ2, "the pool has a draid2"),
    ],
)
def test_what_zpool_refuses_unless_forced(present, new, refused):
    found = mismatch(pool(top(present, 0, 6)).root, new)
    assert (found is None) == (refused is None)
    assert refused is None or refused in (found or "")


def test_zpool_compares_nothing_where_the_vdevs_of_the_pool_differ():
    """That is how a lone disk gets into a pool a second time, and why it is checked separately."""
    mixed = pool(top("raidz2", 0, 6), disk("d9", 1900)).root
    assert mismatch(mixed, LONE) is None
    assert least_redundant(mixed) == 2


def test_logs_holes_and_removed_vdevs_are_not_compared():
    log = replace(disk("log", 1900), vclass="log")
    gone = replace(disk("indirect-1", 1901), kind="indirect")
    assert mismatch(pool(top("raidz2", 0, 6), gone, log).root, RAIDZ2) is None


def test_the_last_vdev_is_what_a_new_one_is_compared_with():
    special = replace(top("mirror", 1, 3), vclass="special")
    assert mismatch(pool(top("raidz2", 0, 6), special).root, Replication("raidz", 4, 2)) is None


def test_devices_of_one_vdev_are_of_about_one_size():
    root = pool(top("raidz2", 0, 6)).root
    assert mismatch(root, RAIDZ2, [TIB, TIB + FUZZ]) is None
    assert "1T to 1.01T" in (mismatch(root, RAIDZ2, [TIB, TIB + TIB // 100]) or "")


def test_a_pool_with_devices_of_several_sizes_is_not_compared():
    odd = replace(disk("d00", 1000), size_bytes=2 * TIB)
    assert mismatch(pool(top("raidz2", 0, 6, odd)).root, LONE) is None


@rows(("kind", "least"), [("raidz3", 3), ("mirror", 5), ("draid1", 1)])
def test_how_redundant_a_pool_is(kind, least):
    assert least_redundant(pool(top(kind, 0, 6)).root) == least


def test_a_pool_of_single_disks_asks_for_one():
    assert least_redundant(pool(disk("d0", 1000)).root) == 1
