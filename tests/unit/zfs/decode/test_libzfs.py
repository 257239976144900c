"""The config nvlist: array layouts of every version, names, hidden vdevs, zpool's formulas."""

from __future__ import annotations

from typing import Any

import pytest

from tests.table import rows
from tests.unit.zfs.decode.configs import MIB, START, config, disk, read, stats, top
from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import Vdev


def first_leaf(values: list[int], **more: Any) -> Vdev:
    node = top(children=[disk(vdev_stats=values, **more)])
    return next(read(config(node)).root.leaves())


CONDENSE = "com.klarasystems:condense_stats"
DRAID = top("draid", 3, nparity=2, draid_ndata=4, draid_nspares=1)


class TestNames:
    @rows(
        ("node", "name", "kind"),
        [
            (top(), "mirror-0", "mirror"),
            (top("raidz", 1, nparity=2), "raidz2-1", "raidz2"),
            (DRAID, "draid2:4d:2c:1s-3", "draid2"),
            ({**DRAID, "draid_nchildren": 2}, "draid2:4d:2c:1s-3", "draid2"),
            ({**DRAID, "draid_nchildren": 1}, "draid2:4d:1c:2w:1s-3", "draid2"),
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

    def test_a_spare_that_cannot_be_opened_has_the_word_of_any_device(self) -> None:
        (spare,) = read(config(spares=[disk("sdz", vdev_stats=stats(_1=4, _2=1))])).root.children
        assert (spare.state, spare.note) == ("UNAVAIL", "cannot open")

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
        assert (block.read_seconds, block.busy_seconds) == (0.033, 0.88)
        assert leaves[1].block is None


class TestVdevStats:
    """Layouts by length: 0.6/0.7 27, 0.8 41, 2.0 45, 2.1 46, 2.2 47, 2.3 48."""

    @rows(
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

    @rows(
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


class TestActivities:
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

    def test_nothing_was_condensed_yet(self) -> None:
        never = dict.fromkeys(("start_time", "end_time", "processed", "total"), 0)
        for found in ({}, {"log_spacemap": never}):
            assert read(config(top(), **{CONDENSE: found})).activities == ()


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


@rows("found", [{}, {"name": "x"}, {"vdev_tree": {}}, {"name": 1, "vdev_tree": 2}])
def test_other_objects_are_refused(found: dict[str, Any]) -> None:
    with pytest.raises(NotUnderstoodError):
        read(found)
