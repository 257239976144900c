from __future__ import annotations

from collections.abc import Iterable

from tests.table import rows
from zconsole.pool import redundancy as module
from zconsole.pool.model import Activity, Pool, Scan, Vdev
from zconsole.zfs.decode.builders import with_spares


def disk(name: str, state: str = "ONLINE", **fields) -> Vdev:
    return Vdev(name, "disk", state=state, **fields)


def pool(*tops: Vdev) -> Vdev:
    return Vdev("tank", "root", children=tops)


def redundancy(
    root: Vdev,
    scans: Iterable[Scan] = (),
    checkpoint: bool = False,
) -> list[module.Redundancy]:
    kept = (Activity("checkpoint", "exists"),) if checkpoint else ()
    seen = Pool("tank", None, root, scans=tuple(scans), activities=kept)
    return [entry for _, entry in module.redundancy(seen)]


def told(*tops: Vdev) -> Vdev:
    """Return the root as it is decoded."""
    return pool(*with_spares(tops))


def left(*tops: Vdev) -> dict[str, int]:
    return {entry.vdev: entry.left for entry in redundancy(pool(*tops))}


def group(kind: str, *children: Vdev, **fields) -> Vdev:
    return Vdev(f"{kind}-0", kind, children=children, **fields)


@rows(
    ("kind", "disks", "expected"),
    [("mirror", 2, 1), ("mirror", 3, 2), ("raidz1", 4, 1), ("raidz2", 6, 2), ("draid3", 9, 3)],
)
def test_a_whole_vdev_can_lose_what_its_layout_says(kind, disks, expected):
    assert left(group(kind, *(disk(str(i)) for i in range(disks)))) == {f"{kind}-0": expected}


def test_a_vdev_whose_state_its_devices_do_not_explain_has_no_entry():
    disks = [disk(str(i)) for i in range(4)]
    assert left(group("raidz1", *disks, state="DEGRADED")) == {}
    assert left(group("raidz1", disks[0])) == {}
    assert left(group("raidz1", *disks[1:], disk("0", "FAULTED"), state="DEGRADED")) != {}


def test_devices_of_one_failure_domain_count_as_one():
    """In two groups of four, devices 1 and 5 are the second of each, in one enclosure."""

    def draid(*gone: int) -> Vdev:
        disks = (disk(str(n), "FAULTED" if n in gone else "ONLINE") for n in range(8))
        return group("draid2", *disks, failure_group=4)

    found = [left(draid(*gone))["draid2-0"] for gone in ((), (1,), (1, 5), (1, 5, 6), (1, 6, 7))]
    assert found == [2, 1, 1, 0, 0]
    (entry,) = redundancy(pool(draid(1, 5, 6)))
    assert entry.untouchable == ("0", "3", "4", "7")


def test_disks_that_only_take_their_part_of_a_distributed_spare_are_whole():
    """All disks of the dRAID are marked by zpool; the kernel tells which are being filled."""
    spare = group("spare", disk("b", "FAULTED"), disk("draid2-0-0", resilvering=True))

    def draid(**known: bool) -> Vdev:
        return group("draid2", disk("a", resilvering=True, **known), spare, disk("c"), disk("d"))

    told = [
        left(draid(**known))["draid2-0"] for known in ({"unfilled": False}, {}, {"unfilled": True})
    ]
    assert told == [1, 0, 0]
    (entry,) = redundancy(pool(draid(unfilled=True)), [Scan("rebuild", "running")])
    assert entry.left == 0, "one that came back misses what was written meanwhile"


def test_a_single_disk_has_none_and_is_named_untouchable():
    (entry,) = redundancy(pool(disk("sda")))
    assert (entry.left, entry.untouchable) == (0, ("sda",))


@rows(
    "broken",
    [
        disk("x", "FAULTED"),
        disk("x", "OFFLINE"),
        disk("x", resilvering=True),
        disk("x", awaiting_resilver=True),
        group("replacing", disk("old", "UNAVAIL"), disk("new", resilvering=True)),
    ],
)
def test_a_missing_or_unfinished_device_counts_as_lost(broken):
    assert left(group("raidz2", disk("a"), disk("b"), disk("c"), broken)) == {"raidz2-0": 1}


@rows("kind", ["replacing", "spare"])
def test_a_group_with_one_whole_child_counts_as_present(kind):
    pair = group(kind, disk("old"), disk("new", resilvering=True))
    assert left(group("raidz1", disk("a"), disk("b"), pair)) == {"raidz1-0": 1}


def test_at_zero_every_disk_that_alone_holds_its_place_is_untouchable():
    pair = group("replacing", disk("old"), disk("new", resilvering=True))
    both = group("spare", disk("p"), disk("q"))
    (entry,) = redundancy(pool(group("raidz1", disk("a"), disk("b", "FAULTED"), pair, both)))
    assert entry.left == 0
    assert entry.untouchable == ("a", "old")


@rows("before", [{}, {"resilvering": True}, {"awaiting_resilver": True}])
def test_of_a_replace_with_two_newcomers_the_old_disk_alone_is_whole_while_both_fill(before):
    three = group(
        "replacing", disk("old"), disk("second", **before), disk("third", resilvering=True)
    )
    raidz = group("raidz1", disk("a"), disk("b", "FAULTED"), three)
    (entry,) = redundancy(pool(raidz), [Scan("resilver", "running")])
    assert (entry.left, entry.untouchable) == (0, ("a", "old"))


def test_a_newcomer_that_the_kernel_calls_filled_is_whole_though_another_is_being_filled():
    second = disk("second", unfilled=False)
    three = group("replacing", disk("old", "OFFLINE"), second, disk("third", resilvering=True))
    raidz = group("raidz1", disk("a"), disk("b"), three)
    (entry,) = redundancy(pool(raidz), [Scan("resilver", "running")])
    assert entry.left == 1


def test_never_below_zero_and_data_classes_only():
    gone = group("mirror", disk("a", "REMOVED"), disk("b", "UNAVAIL"))
    log = Vdev("l", "disk", vclass="log")
    special = Vdev("mirror-1", "mirror", vclass="special", children=(disk("s"), disk("t")))
    assert left(gone, log, special) == {"mirror-0": 0, "mirror-1": 1}


def test_top_levels_of_one_name_are_both_reported():
    one = Vdev("raidz1", "raidz1", children=(disk("a"), disk("b"), disk("c")))
    two = Vdev("raidz1", "raidz1", children=(disk("d"), disk("e", "FAULTED"), disk("f")))
    assert left(one, two) == {"raidz1": 1, "raidz1#1": 0}


@rows(
    ("scan", "beside_checkpoint"),
    [
        (Scan("resilver", "running"), 0),
        (Scan("rebuild", "running", vdev="raidz1-0"), 0),
        (Scan("rebuild", "running", vdev="mirror-7"), 1),
        (Scan("scrub", "running"), 1),
        (Scan("resilver", "finished"), 1),
    ],
)
def test_a_newcomer_is_whole_only_once_its_replacing_vdev_is_gone(scan, beside_checkpoint):
    """Next to a checkpoint, the kernel keeps the vdev however well the resilver went."""
    pair = group("replacing", disk("old", "UNAVAIL"), disk("new"))
    top = group("raidz1", disk("a"), disk("b"), pair)
    assert redundancy(pool(top), (scan,))[0].left == 0
    assert redundancy(pool(top), (scan,), checkpoint=True)[0].left == beside_checkpoint


@rows(
    "scan", [Scan("resilver", "finished", end=1.0, errors=3), Scan("resilver", "canceled", end=1.0)]
)
def test_a_spare_is_not_whole_after_a_repair_that_failed(scan):
    stands_in = group("spare", disk("gone", "FAULTED"), disk("spare"))
    top = group("raidz2", disk("a"), disk("b"), stands_in, disk("c"))
    assert redundancy(pool(top), (scan,))[0].left == 1
    good = Scan("resilver", "finished", end=1.0, errors=0)
    assert redundancy(pool(top), (good,))[0].left == 2


def test_a_device_that_came_back_lacks_what_was_written_meanwhile_until_repaired():
    top = group("raidz2", disk("a"), disk("b"), disk("c"), disk("d"))
    back = group("raidz2", disk("a"), disk("b"), disk("c"), disk("d", unfilled=True))
    running = Scan("resilver", "running", percent=7.0)
    assert redundancy(pool(back), (running,))[0].left == 1
    assert redundancy(pool(top), (running,))[0].left == 2


@rows(
    "other",
    [disk("c", resilvering=True), group("replacing", disk("old", "UNAVAIL"), disk("new"))],
)
def test_a_spare_is_being_filled_where_a_repair_fills_nothing_else(other):
    """It is marked after its first bytes; one that was filled long ago is never marked."""
    stands_in = group("spare", disk("gone", "FAULTED"), disk("spare"))
    running, scrub = (Scan("resilver", "running"),), (Scan("scrub", "running"),)
    top = group("raidz2", disk("a"), disk("b"), stands_in, disk("c"))
    assert redundancy(pool(top), running)[0].left == 1
    assert redundancy(pool(top), scrub)[0].left == 2
    both = group("raidz2", disk("a"), disk("b"), stands_in, other)
    assert redundancy(pool(both), running)[0].left == 1
    back = group("raidz2", disk("a"), disk("b"), stands_in, disk("c", unfilled=True))
    assert redundancy(pool(back), running)[0].left == 1


@rows(
    "top",
    [
        group("mirror", disk("a"), disk("attached", unfilled=True)),
        group("mirror", disk("a"), group("spare", disk("b", "FAULTED"), disk("s", unfilled=True))),
    ],
)
def test_what_the_kernel_has_yet_to_fill_is_missing_whatever_else_is_filled(top):
    other = group("raidz1", group("replacing", disk("x", "FAULTED"), disk("y")), disk("z"))
    assert redundancy(pool(top, other), (Scan("resilver", "running"),))[0].left == 0
    assert redundancy(pool(top, other), (Scan("scrub", "running"),))[0].left == 0


@rows("scans", [(), (Scan("scrub", "running"),), (Scan("resilver", "running"),)])
@rows("guids", [(None, None), ("7", "7")])
def test_a_spare_in_two_places_counts_in_neither(scans, guids):
    one, two = (
        group("spare", disk(f"gone{n}", "FAULTED"), disk("s", guid=guid, unfilled=False))
        for n, guid in enumerate(guids)
    )
    apart = told(group("raidz2", disk("a"), disk("c"), one), group("mirror", two, disk("b")))
    assert [entry.left for entry in redundancy(apart, scans)] == [1, 0]
    together = told(group("raidz2", disk("a"), one, disk("b"), two))
    assert [entry.left for entry in redundancy(together, scans)] == [0]


def test_spares_of_one_name_are_told_apart_by_their_guids():
    one, two = (group("spare", disk("gone", "FAULTED"), disk("s", guid=guid)) for guid in "12")
    (entry,) = redundancy(told(group("raidz2", disk("a"), one, disk("b"), two)))
    assert entry.left == 2


def test_a_spare_that_the_kernel_says_is_filled_is_there():
    filled = group("spare", disk("gone", "FAULTED"), disk("spare", unfilled=False))
    top = group("mirror", filled, disk("a"))
    assert redundancy(pool(top), (Scan("resilver", "running"),))[0].left == 1
