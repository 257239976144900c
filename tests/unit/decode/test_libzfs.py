"""The config nvlist: array layouts of every version, names, hidden vdevs, zpool's formulas."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from zconsole.decode import decode
from zconsole.errors import NotUnderstoodError
from zconsole.model import Pool, Sample, Scan, Vdev

START = 1795168000
MIB = 1024**2


def stats(length: int = 48, **at: int) -> list[int]:
    """A ``vdev_stats`` array: ONLINE, with the elements ``_N=value`` set."""
    values = [0] * length
    values[1] = 7
    for key, value in at.items():
        values[int(key[1:])] = value
    return values


def disk(name: str = "sda", **more: Any) -> dict[str, Any]:
    path = f"/dev/disk/by-id/{name}-part1"
    node = {"type": "disk", "id": 0, "guid": 1, "path": path, "whole_disk": 1}
    return {**node, "vdev_stats": stats(), **more}


def top(kind: str = "mirror", index: int = 0, **more: Any) -> dict[str, Any]:
    node = {"type": kind, "id": index, "guid": 10 + index, "vdev_stats": stats(_3=5, _4=10)}
    return {**node, "children": [disk("sda"), disk("sdb", guid=2)], **more}


def config(*tops: dict[str, Any], **tree: Any) -> dict[str, Any]:
    root = {"type": "root", "id": 0, "guid": 9, "vdev_stats": stats(_3=5, _4=10), **tree}
    return {"name": "tank", "pool_guid": 9, "vdev_tree": {**root, "children": list(tops)}}


def packed(node: Any) -> Any:
    """A config with its arrays as libzfs gave them: where they are sound, as this one's are."""
    if isinstance(node, dict):
        return {key: packed(value) for key, value in node.items()}
    if not isinstance(node, list) or (node and isinstance(node[0], dict)):
        return [packed(each) for each in node] if isinstance(node, list) else node
    sound = all(isinstance(n, int) and 0 <= n < 1 << 64 for n in node)
    return array("Q", node).tobytes() if sound else node


def read(found: dict[str, Any], now: float = START + 100.0, **more: Any) -> Pool:
    (sample,) = decode({"t": now, "libzfs": found, **more})  # type: ignore[typeddict-item]
    assert isinstance(sample, Sample)
    assert sample.exact
    (same,) = decode({"t": now, "libzfs": packed(found), **more})  # type: ignore[typeddict-item]
    assert same == sample
    return sample.pool


def first_leaf(values: list[int], **more: Any) -> Vdev:
    node = top(children=[disk(vdev_stats=values, **more)])
    return next(read(config(node)).root.leaves())


DRAID = top("draid", 3, nparity=2, draid_ndata=4, draid_nspares=1)


class TestNames:
    @pytest.mark.parametrize(
        ("node", "name", "kind"),
        [
            (top(), "mirror-0", "mirror"),
            (top("raidz", 1, nparity=2), "raidz2-1", "raidz2"),
            (DRAID, "draid2:4d:2c:1s-3", "draid2"),
            (disk("wwn-0x1"), "wwn-0x1", "disk"),
            (disk("wwn-0x1", whole_disk=0), "wwn-0x1-part1", "disk"),
            (disk(path="/dev/sda1"), "sda", "disk"),
            (disk(path="/dev/nvme0n1p1"), "nvme0n1", "disk"),
            (disk(type="file", path="/root/a.img"), "/root/a.img", "file"),
            (disk(not_present=1, guid=77), "77", "disk"),
            ({"type": "missing", "id": 4, "guid": 3}, "missing-4", "missing"),
        ],
    )  # fmt: skip
    def test_as_zpool_prints_them(self, node: dict[str, Any], name: str, kind: str) -> None:
        vdev = read(config(node)).root.children[0]
        assert (vdev.name, vdev.kind) == (name, kind)

    def test_names_told_beside_win(self) -> None:
        told = {"/dev/disk/by-id/sda-part1": "bay 1"}
        assert next(read(config(top()), names=told).root.leaves()).name == "bay 1"


class TestTree:
    def test_the_root_has_figures_of_its_own(self) -> None:
        figures = stats(_0=5_000_000_000, _9=1, _10=2, _15=3, _16=4, _20=6, _21=7, _22=8)
        pool = read({**config(top(), vdev_stats=figures), "comment": "rack 4"})
        assert pool.comment == "rack 4"
        assert pool.root.errors[:3] == (6, 7, 8)
        assert pool.root.io == (5.0, 1, 2, 3, 4)

    def test_where_a_disk_hangs(self) -> None:
        found = read(config(disk(phys_path="pci-0:1", devid="ata-X", ashift=12))).root.children[0]
        assert (found.phys_path, found.devid, found.ashift) == ("pci-0:1", "ata-X", 12)

    def test_classes_in_the_order_zpool_prints(self) -> None:
        found = config(
            top(),
            top(index=1, is_log=1),
            top(index=2, alloc_bias="special"),
            top(index=3, alloc_bias="dedup"),
            l2cache=[disk("sdx")],
            spares=[disk("sdy"), disk("sdz", vdev_stats=stats(_1=4, _2=10))],
        )
        children = read(found).root.children
        assert [v.vclass for v in children] == [
            "normal", "dedup", "special", "log", "cache", "spare", "spare",
        ]  # fmt: skip
        assert children[3].children[0].vclass == "log"
        assert [(v.state, v.note) for v in children[5:]] == [
            ("AVAIL", ""),
            ("INUSE", "currently in use"),
        ]

    def test_holes_and_removed_vdevs_are_not_shown(self) -> None:
        hole = {"type": "hole", "id": 1, "guid": 0, "is_hole": 1, "vdev_stats": stats()}
        gone = {"type": "indirect", "id": 2, "guid": 5, "vdev_stats": stats()}
        found = config(top(), hole, gone, top(index=3))
        assert [v.name for v in read(found).root.children] == ["mirror-0", "mirror-3"]

    def test_a_suspended_pool(self) -> None:
        assert read({**config(top()), "suspended": 1}).state == "SUSPENDED"
        assert read(config(top())).state == "ONLINE"

    def test_distributed_spares_left(self) -> None:
        draid = top("draid", nparity=1, draid_ndata=1, draid_nspares=2)
        spare = {"type": "dspare", "guid": 5, "path": "draid1-0-0", "vdev_stats": stats()}
        used = {**spare, "path": "draid1-0-1", "vdev_stats": stats(_1=4, _2=10)}
        assert read(config(draid, spares=[spare, used])).root.children[0].spares_left == 1

    def test_block_counters_of_the_devices(self) -> None:
        first = [10, 0, 20, 30, 40, 0, 50, 60, 7, 80, 90, 0, 0, 0, 0, 0, 0]
        second = [1, 0, 2, 3, 4, 0, 5, 6, 7, 800, 9, 0, 0, 0, 0, 0, 0]
        rows = [["8", "0", "sda", *map(str, first)], ["8", "16", "sdb", *map(str, second)]]
        devices = {"/dev/disk/by-id/sda-part1": ["sda", "sdb"]}
        leaves = list(read(config(top()), diskstats=rows, devices=devices).root.leaves())
        block = leaves[0].block
        assert block is not None
        assert block.names == ("sda", "sdb")
        assert (block.read_ops, block.read_bytes, block.write_bytes) == (11, 22 * 512, 55 * 512)
        assert (block.read_seconds, block.busy_seconds, block.in_flight) == (0.033, 0.8, 14)
        assert leaves[1].block is None


class TestVdevStats:
    """Layouts by length: 0.6/0.7 27, 0.8 41, 2.0 45, 2.1 46, 2.2 47, 2.3 48."""

    @pytest.mark.parametrize(
        ("length", "positions"),
        [
            (27, {"processed": 25}),
            (41, {"processed": 26, "slow": 34}),
            (45, {"processed": 26, "slow": 34}),
            (46, {"processed": 26, "slow": 34, "size": 45}),
            (47, {"processed": 26, "slow": 34, "size": 46}),
            (48, {"processed": 26, "slow": 34, "size": 46}),
        ],
    )
    def test_layout(self, length: int, positions: dict[str, int]) -> None:
        expected = {"processed": 11, "slow": 12, "size": 13}
        values = stats(length, _9=1, _10=2, _15=3, _16=4, _20=5, _21=6, _22=7, _0=2_000_000_000)
        for what, index in positions.items():
            values[index] = expected[what]
        leaf = first_leaf(values)
        assert (leaf.errors.read, leaf.errors.write, leaf.errors.cksum) == (5, 6, 7)
        assert leaf.io is not None
        assert leaf.io.timestamp == 2.0
        assert (leaf.io.read_ops, leaf.io.write_ops) == (1, 2)
        assert (leaf.io.read_bytes, leaf.io.write_bytes) == (3, 4)
        assert leaf.scan_processed == 11
        assert leaf.errors.slow == (12 if "slow" in positions else None)
        assert leaf.size_bytes == (13 if "size" in positions else None)

    def test_not_allocating_is_only_known_from_2_2(self) -> None:
        node = top(vdev_stats=stats(46, _4=10, _45=512))
        assert read(config(node)).root.children[0].allocating is None
        node = top(vdev_stats=stats(47, _4=10, _45=1))
        vdev = read(config(node)).root.children[0]
        assert (vdev.allocating, vdev.note) == (False, "(non-allocating)")

    def test_a_leaving_vdev_is_worded_as_zpool_does_from_2_2(self) -> None:
        before = read(config(top(vdev_stats=stats(46, _4=10, _25=1)))).root.children[0]
        after = read(config(top(vdev_stats=stats(47, _4=10, _25=1)))).root.children[0]
        assert (before.removing, before.note) == (True, "")
        assert (after.removing, after.note) == (True, "(removing)")

    def test_no_histogram_no_fragmentation(self) -> None:
        node = top(vdev_stats=stats(_4=10, _27=2**64 - 1))
        assert read(config(node)).root.children[0].fragmentation is None

    @pytest.mark.parametrize(
        ("state", "aux", "word", "note"),
        [
            (4, 1, "UNAVAIL", "cannot open"),
            (4, 2, "FAULTED", "corrupted data"),
            (4, 15, "SPLIT", "split into new pool"),
            (5, 14, "FAULTED", "external device fault"),
            (5, 11, "FAULTED", "too many errors"),
            (2, 0, "OFFLINE", ""),
            (3, 0, "REMOVED", ""),
            (1, 0, "OFFLINE", ""),
            (7, 99, "ONLINE", "corrupted data"),
        ],
    )
    def test_state_and_note(self, state: int, aux: int, word: str, note: str) -> None:
        leaf = first_leaf(stats(_1=state, _2=aux, _20=1))
        assert (leaf.state, leaf.note) == (word, note)

    def test_a_missing_device(self) -> None:
        leaf = first_leaf(stats(_1=4, _2=1), not_present=1)
        assert leaf.note == "was /dev/disk/by-id/sda-part1"

    def test_trim_and_initialize(self) -> None:
        leaf = first_leaf(stats(_28=25, _29=99, _30=1, _31=5, _37=10, _38=10, _39=4, _40=6))
        assert leaf.note == "(initializing)"
        assert leaf.initialize is not None
        assert (leaf.initialize.state, leaf.initialize.share) == ("active", 0.25)
        assert leaf.trim is not None
        assert (leaf.trim.state, leaf.trim.share, leaf.trim.time) == ("complete", 1.0, 6.0)


def scan_stats(length: int, **at: int) -> list[int]:
    """A running resilver 100 s old: 1000 of 4000 MiB scanned, 100 skipped, 500 issued."""
    values = [2, 1, START, 0, 4000 * MIB, 1000 * MIB, 100 * MIB, 7 * MIB, 0, 1000 * MIB, START]
    values += [0, 0, 2000 * MIB, 500 * MIB, *[0] * 8]
    values[13] = 2000 * MIB
    for key, value in at.items():
        values[int(key[1:])] = value
    return values[:length]


def scan(length: int, version: str | None = None, **at: int) -> Scan:
    more = {"version": version} if version else {}
    return read(config(top(), scan_stats=scan_stats(length, **at)), **more).scan


class TestScan:
    def test_2_2_takes_off_what_is_skipped(self) -> None:
        found = scan(22)
        assert (found.function, found.state, found.stage) == ("resilver", "running", "scanning")
        assert found.percent == pytest.approx(100 * 500 / 3900)
        assert (found.skipped_bytes, found.to_issue_bytes) == (100 * MIB, 3900 * MIB)
        assert found.zpool_scan_rate == 10 * MIB
        assert found.zpool_issue_rate == 20 * MIB
        assert found.zpool_eta == 170.0

    def test_0_8_to_2_1_do_not(self) -> None:
        found = scan(15)
        assert found.percent == 12.5
        assert (found.skipped_bytes, found.zpool_eta) == (None, 175.0)

    def test_before_0_8_the_walk_is_the_work(self) -> None:
        found = scan(13)
        assert (found.two_stage, found.stage, found.issued_bytes) == (False, None, None)
        assert found.percent == 25.0
        assert found.zpool_eta == 300.0

    def test_no_estimate_below_ten_mebibytes_a_second(self) -> None:
        assert scan(22, _13=999 * MIB).zpool_eta is None
        assert scan(22, _13=1000 * MIB).zpool_eta == 340.0

    def test_no_estimate_before_the_first_repair_from_2_1_12(self) -> None:
        assert scan(22, _7=0).zpool_eta is None
        assert scan(15, _7=0).zpool_eta is None
        assert scan(15, "2.1.12", _7=0).zpool_eta is None
        assert scan(15, "2.1.11", _7=0).zpool_eta == 175.0

    def test_the_last_kilobytes_of_a_walk_do_not_keep_it_scanning(self) -> None:
        assert scan(22, _5=4000 * MIB - 4096).stage == "issuing"
        assert scan(22, _9=0).stage == "issuing"
        assert scan(15, _9=0).stage == "scanning"

    def test_paused(self) -> None:
        found = scan(22, _0=1, _11=START + 50, _12=20)
        assert (found.state, found.stage, found.paused_since) == ("paused", None, START + 50.0)
        assert (found.zpool_issue_rate, found.zpool_eta, found.pass_paused) == (None, None, 20.0)
        assert found.percent == pytest.approx(100 * 500 / 3900)

    def test_time_paused_does_not_count(self) -> None:
        assert scan(22, _12=50).zpool_issue_rate == 40 * MIB

    def test_finished(self) -> None:
        found = scan(22, _1=2, _3=START + 90)
        assert (found.state, found.percent, found.duration) == ("finished", None, 90.0)

    def test_an_error_scrub_beside_the_scan(self) -> None:
        more = {"_15": 3, "_16": 4, "_17": START + 95, "_19": 3, "_20": 1}
        scans = read(config(top(), scan_stats=scan_stats(22, _1=2, _3=START + 90, **more))).scans
        assert [s.function for s in scans] == ["errorscrub", "resilver"]
        assert (scans[0].state, scans[0].percent) == ("running", 75.0)
        assert (scans[0].start, scans[0].paused_since) == (START + 95.0, None)
        more |= {"_21": START + 97}
        paused = read(config(top(), scan_stats=scan_stats(22, **more))).scans[0]
        assert (paused.state, paused.paused_since) == ("paused", START + 97.0)

    def test_markers_of_the_leaves(self) -> None:
        leaves = [
            disk("a", vdev_stats=stats(_26=5)),
            disk("b", vdev_stats=stats(_33=1)),
            disk("c", vdev_stats=stats(_1=5, _26=5)),
        ]
        tree = config(top(children=leaves), scan_stats=scan_stats(22))
        found = list(read(tree).root.leaves())
        assert [v.note for v in found] == ["(resilvering)", "(awaiting resilver)", ""]
        assert [v.resilvering for v in found] == [True, False, False]
        assert [v.awaiting_resilver for v in found] == [False, True, False]
        tree["vdev_tree"]["scan_stats"][0] = 1
        assert next(read(tree).root.leaves()).note == "(repairing)"
        tree["vdev_tree"]["scan_stats"][1] = 2
        assert next(read(tree).root.leaves()).note == ""


RUNNING_REBUILD = [1, START, 0, 1000, 300 * MIB, 200 * MIB, 190 * MIB, 1000 * MIB - 1, 0, 9999]
RUNNING_REBUILD += [300 * MIB, 200 * MIB]


class TestRebuild:
    def rebuild(self, values: list[int]) -> Scan:
        return read(config(top(**{"org.openzfs:rebuild_stats": values}))).scan

    def test_running(self) -> None:
        found = self.rebuild(RUNNING_REBUILD)
        assert (found.function, found.vdev, found.state) == ("rebuild", "mirror-0", "running")
        assert found.percent == 30.0
        assert found.zpool_scan_rate == 30 * MIB
        assert found.zpool_eta == 23.0
        assert found.skipped_bytes is None
        assert (found.total_bytes, found.scanned_bytes) == (1000 * MIB - 1, 300 * MIB)
        assert (found.issued_bytes, found.processed_bytes) == (200 * MIB, 190 * MIB)
        assert self.rebuild([*RUNNING_REBUILD, 5]).skipped_bytes == 5

    def test_percent_never_passes_a_hundred(self) -> None:
        assert (
            self.rebuild([*RUNNING_REBUILD[:4], 2000 * MIB, *RUNNING_REBUILD[5:]]).percent == 100.0
        )

    def test_several_run_at_once_and_an_old_one_comes_last(self) -> None:
        done = [3, START - 500, START - 400, 100_000, *RUNNING_REBUILD[4:]]
        nodes = [
            top(index=i, **{"org.openzfs:rebuild_stats": values})
            for i, values in enumerate((done, RUNNING_REBUILD, RUNNING_REBUILD))
        ]
        scans = read(config(*nodes)).scans
        assert [s.vdev for s in scans] == ["mirror-1", "mirror-2", "mirror-0"]
        assert (scans[2].state, scans[2].duration) == ("finished", 100.0)


class TestActivities:
    def test_removal_with_zpools_estimate(self) -> None:
        removal = [1, 0, START, 0, 1000 * MIB, 100 * MIB, 0]
        (found,) = read(config(disk(), removal_stats=removal)).activities
        assert (found.kind, found.state, found.vdev) == ("removal", "running", "sda")
        assert (found.percent, found.zpool_eta) == (10.0, 900.0)
        assert found.zpool_rate == MIB

    def test_a_copy_too_slow_to_estimate(self) -> None:
        removal = [1, 0, START, 0, 1000 * MIB, 100, 0]
        (found,) = read(config(disk(), removal_stats=removal)).activities
        assert found.zpool_eta is None

    def test_expansion_waiting_for_a_resilver(self) -> None:
        expansion = [1, 1, START, 0, 1000, 250, 1]
        nodes = (top("raidz", 0, nparity=1), top("raidz", 1, nparity=1))
        (found,) = read(config(*nodes, raidz_expand_stats=expansion)).activities
        assert (found.state, found.vdev, found.percent) == ("paused", "raidz1-1", 25.0)
        assert found.zpool_eta is None

    def test_a_checkpoint_being_discarded(self) -> None:
        (found,) = read(config(top(), checkpoint_stats=[2, START, 512])).activities
        assert (found.kind, found.state, found.total_bytes) == ("checkpoint", "running", 512)


class TestMessage:
    def test_what_only_zpool_knows(self) -> None:
        told = {"status": "One or\n\tmore", "action": "Wait.", "see": "u", "errors": ["/a b"]}
        pool = read({**config(top()), "error_count": 1}, message=told)
        assert (pool.message, pool.action, pool.see) == ("One or more", "Wait.", "u")
        assert (pool.error_count, pool.errors) == (1, ("/a b",))

    def test_unknown_is_none(self) -> None:
        pool = read(config(top()))
        assert (pool.message, pool.error_count, pool.errors) == (None, None, None)
        assert read({**config(top()), "error_count": 0}).errors == ()


@pytest.mark.parametrize(
    "found", [{}, {"name": "x"}, {"vdev_tree": {}}, {"name": 1, "vdev_tree": 2}]
)
def test_other_objects_are_refused(found: dict[str, Any]) -> None:
    with pytest.raises(NotUnderstoodError):
        read(found)
