from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.table import rows
from tests.unit.rebalance.planning.listing import HEAD, listed
from zconsole.pool.allocator import Space
from zconsole.rebalance.engine.directories import DirectoryRow
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.job.creation import WalkSink
from zconsole.rebalance.planning import forecast
from zconsole.rebalance.planning.engine_choice import Choice
from zconsole.rebalance.planning.facts import Dataset, Extent, FactsReader, JobDirectory, PoolFacts
from zconsole.rebalance.planning.forecast import (
    BlockLayout,
    DirectoryPlan,
    layouts_of,
    narrowed,
)
from zconsole.rebalance.planning.plan_document import PlanDocument, busy_words, cost_sentences
from zconsole.rebalance.planning.settings import Limits
from zconsole.rebalance.planning.survey import Ages, Held, Survey
from zconsole.rebalance.planning.walk import Portion
from zconsole.system.process import Completed

SPACES = (Space("mirror-0", 1000, 900), Space("mirror-1", 1000, 100))


def measured(**figures: Any) -> DirectoryPlan:
    found = Survey(b"/tank", Ages(), 1 << 40, allocated=100, **figures)
    place = JobDirectory(b"/tank", "zfs", "tank", None)
    return DirectoryPlan(place, found, Choice("copy", ""), 1, 100)


def status_of(size: int, ctime: int) -> os.stat_result:
    return os.stat_result((0o100644, 7, 1, 1, 0, 0, size, ctime, ctime, ctime))


def test_without_zdb_the_age_of_files_tells_where_they_lie() -> None:
    pool = PoolFacts("tank", {}, SPACES, (2, 3, 9), added=50)
    shares, estimate = forecast.source([measured(old_allocated=100)], pool)
    assert shares == pytest.approx([1, 0])
    assert estimate == "age: 100% older than the newest vdev"


def test_without_a_history_all_data_is_alike() -> None:
    pool = PoolFacts("tank", {}, SPACES, (2, 3, 9))
    assert forecast.source([measured()], pool) == (None, "assumes uniform data")


@rows(
    ("small", "record", "limit"),
    [("0", "131072", 0), ("4096", "131072", 4096), ("131072", "131072", float("inf"))],
)
def test_what_belongs_on_special_vdevs(small: str, record: str, limit: float) -> None:
    dataset = Dataset("tank", {"special_small_blocks": small, "recordsize": record})
    assert forecast.special_limit(dataset) == limit


def test_small_blocks_fill_the_special_vdevs_at_most_so_far() -> None:
    special = (Space("mirror-2", 200, 20), Space("mirror-3", 200, 180))
    pool = PoolFacts("tank", {}, SPACES, (2, 3, 9), special=special)
    after = forecast.special([measured(special_allocated=100)], pool)
    assert [round(space.alloc) for space in after] == [110, 190]
    notes = forecast.special_notes(forecast.fills(special, after))
    assert notes[0] == "special vdev mirror-2: 10% full, at most 55% afterwards"
    assert "normal vdevs" in notes[-1]


def test_old_files_go_first_then_large_ones(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "journal")
    files = [
        (b"new-large", status_of(1 << 20, 60)),
        (b"old-small", status_of(1 << 10, 40)),
        (b"new-small", status_of(1 << 10, 60)),
        (b"old-large", status_of(1 << 20, 40)),
    ]
    portion = Portion(DirectoryRow(1, None, b"/tank", 1, 1), -1, files)
    sink = WalkSink(journal)
    sink(portion, Ages(addition=50))
    sink.flush()
    journal.finish_walk(split_links=False)
    names = [row.name for _, row in journal.todo((-1, -1, -1), 10)]
    journal.close()
    assert names == [b"old-large", b"old-small", b"new-large", b"new-small"]


def test_a_new_dataset_of_the_same_name_is_another_filesystem() -> None:
    one, two, again = (
        JobDirectory(b"/tank", "zfs", "tank", Dataset("tank", {"guid": guid})).key for guid in "121"
    )
    assert one != two
    assert one == again


@rows(
    ("fills", "limits", "said"),
    [
        ((0.7, 0.0), Limits(), "5 % needs 651"),
        ((0.7, 0.0), Limits(until_spread=0.1), "10 % needs 602"),
        ((0.99, 0.1), Limits(), "5 % is out of reach"),
        ((0.5, 0.5), Limits(), ""),
    ],
)
def test_a_plan_tells_what_busy_disks_make_of_it(
    fills: tuple[float, float], limits: Limits, said: str
) -> None:
    """The allocator's aim alone was told, though it fills the new vdev by half as much again."""
    spaces = tuple(Space(f"raidz1-{i}", 1000, 1000 * fill, speed=5) for i, fill in enumerate(fills))
    pool = PoolFacts("tank", {}, spaces, (2, 3, 9), used=round(1000 * sum(fills)))
    plan = measured()
    plan.bytes = plan.found.allocated = round(1000 * fills[0])
    made = forecast.predicted([plan], pool, limits).document
    words = busy_words(made, lambda size: f"{size:.0f}")
    assert said in words
    assert bool(said) == bool(words)
    assert (words, "notice") in [*cost_sentences(made, str), (words, "notice")]


def test_what_is_kept_free_is_all_that_may_not_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimpleNamespace(f_bavail=600, f_blocks=1000, f_frsize=10)
    monkeypatch.setattr(os, "statvfs", lambda path: disk)
    assert forecast.room_in(b"/", None, Limits()) == (6000, (0, 10_000))
    assert forecast.room_in(b"/", None, Limits(min_free=0.2)) == (4000, (2000, 10_000))
    assert forecast.room_in(b"/", None, Limits(min_free=0.9)) == (0, (6000, 10_000))
    sizes = {"free": "3000", "size": "5000"}
    pool = PoolFacts("tank", sizes, (Space("d0", 5000, 2000),), (2, 3, 9))
    assert forecast.room_in(b"/", pool, Limits(min_free=0.1)) == (2500, (3500, 5000.0))


@rows(
    ("births", "birth"),
    [(" F=1 B=9/23 cksum=1", 23), (" F=1 B=9/0 cksum=1", 9), ("", 0), (" F=1 B=30/23", 23)],
)
def test_a_block_is_as_old_as_where_it_lies(births: str, birth: int) -> None:
    """A rewrite that spares incremental sends keeps the first txg, and a clone the second."""
    (extent,) = listed({7: f"  0  L0 0:1000:200 200L/200P{births}\n"})[7]
    assert extent.birth == birth


KIB = 1 << 10
LINES = """\
               0 L1  0:cbe2200:400 20000L/400P F=2 B=23/23 cksum=1
               0  L0 0:cbe2200:20000 20000L/20000P F=1 B=23/23 cksum=1
           20000  L0 1:17400:20000 20000L/20000P F=1 B=23/23 cksum=1
"""


@rows(("dataset", "target"), [("tank", "tank/"), ("tank/a", "tank/a")])
def test_a_root_dataset_is_not_the_pool_itself(dataset: str, target: str) -> None:
    asked: list[Sequence[str]] = []

    def run(argv: Sequence[str], _deadline: float) -> Completed:
        asked.append(argv)
        return Completed(tuple(argv), 0, HEAD.format(inode=117) + LINES, "")

    found = FactsReader(run).blocks(dataset, [117])
    assert asked == [["zdb", "-ddddd", target, "117"]]
    assert [extent[:3] for extent in found[117]] == [(0, "cbe2200", 0x20000), (1, "17400", 0x20000)]


def test_extents_in_their_order() -> None:
    copies = LINES.replace("1:17400:20000 20000L/20000P", "1:17400:8000 0:8000:8000 20000L/7000P")
    file = listed({117: copies})[117]
    assert file == [
        Extent(0, "cbe2200", 0x20000, 0x20000, 0x20000, 1, 0x20000, 23),
        Extent(1, "17400", 0x8000, 0x20000, 0x7000, 2, 0x10000, 23),
    ]


def test_shares_leave_special_vdevs_out() -> None:
    sizes = [(0, "a", 100), (1, "b", 300), (2, "c", 50)]
    addresses = [Extent(*size, 0, 0, 1, 0) for size in sizes]
    names = ["mirror-0", "mirror-1"]
    assert forecast.vdev_shares(addresses, names) is None
    assert forecast.vdev_shares(addresses, names, others=True) == [0.25, 0.75]


@rows(
    ("layout", "size", "raw"),
    [
        (BlockLayout(4096), 128 * KIB, 128 * KIB),
        (BlockLayout(4096), 5000, 8 * KIB),
        (BlockLayout(4096), 0, 0),
        (BlockLayout(4096, 1, 4), 128 * KIB, 176 * KIB),  # 32 + 11 parity + 1 padding
        (BlockLayout(4096, 1, 5), 128 * KIB, 160 * KIB),
        (BlockLayout(4096, 2, 6), 128 * KIB, 192 * KIB),
        (BlockLayout(4096, 2, 6), 4 * KIB, 12 * KIB),
        (BlockLayout(4096, 3, 11), 8 * KIB, 32 * KIB),
        (BlockLayout(4096, 2, 4, grouped=True), 4 * KIB, 24 * KIB),
        (BlockLayout(4096, 2, 4, grouped=True), 128 * KIB, 192 * KIB),
    ],
)
def test_parity_and_padding(layout: BlockLayout, size: int, raw: int) -> None:
    assert layout.raw(size) == raw


def test_the_vdevs_of_a_pool_get_writes_by_their_free_space() -> None:
    spaces = (
        Space("raidz2-0", 400, 100, disks=6),
        Space("draid1:3d:5c:1s-1", 100, 0, disks=5),
        Space("mirror-2", 100, 100, disks=2),
        Space("raidz1-3", 10, 10),  # with an unknown number of disks
    )
    pool = PoolFacts("tank", {}, spaces, (2, 3, 9), sector=4096)
    assert layouts_of(pool) == [
        (0.75, BlockLayout(4096, 2, 6)),
        (0.25, BlockLayout(4096, 1, 3, grouped=True)),
        (0.0, BlockLayout(4096)),
        (0.0, BlockLayout(4096)),
    ]


def test_more_disks_in_a_raidz_take_less_parity() -> None:
    pool = PoolFacts("tank", {}, (Space("raidz1-0", 1 << 40, 0, disks=5),), (2, 3, 9))
    told = listed({7: "  0  L0 0:1000:2c000 20000L/20000P F=1 B=9/9 cksum=1\n"})
    assert narrowed(told[7], pool) == pytest.approx(160 / 176)
    assert narrowed([], pool) is None


K = 1024


@rows(
    ("limit", "properties", "blocks", "small"),
    [
        # Length, stored bytes; 10 of the 100 allocated bytes are of small files.
        (64 * K, {"compression": "lz4"}, [(128 * K, 51 * K)], 100),
        (64 * K, {"compression": "lz4"}, [(128 * K, 96 * K)], 0),
        (64 * K, {"compression": "lz4"}, [(128 * K, 96 * K), (128 * K, 32 * K)], 25),
        (64 * K, {"compression": "off"}, [(128 * K, 51 * K)], 0),
        (64 * K, {"compression": "off"}, [(16 * K, 4 * K)], 100),
        (float("inf"), {"compression": "off"}, [(128 * K, 128 * K)], 100),
        (64 * K, {"compression": "lz4", "compressratio": "2.50"}, [], 100),
        (64 * K, {"compression": "lz4", "compressratio": "1.50"}, [], 10),
        (64 * K, {"compression": "off", "compressratio": "2.50"}, [], 10),
        (0, {"compression": "lz4", "compressratio": "2.50"}, [], 0),
    ],
)
def test_blocks_are_small_as_they_are_stored(
    limit: float, properties: dict[str, str], blocks: list[tuple[int, int]], small: float
) -> None:
    plan = measured(special=limit, special_allocated=10 if limit else 0)
    dataset = Dataset("tank", {"recordsize": str(128 * K), **properties})
    plan.place = JobDirectory(b"/tank", "zfs", "tank", dataset)
    extents = [Extent(0, "0", size, length, size, 1, size) for length, size in blocks]
    plan.listed = {7: extents}
    assert forecast.small_blocks(plan) == pytest.approx(small)


@rows(
    ("names", "others", "known"),
    [
        (["sda", "sdb"], False, True),
        (["mirror-0", "mirror-1"], True, True),
        (["sda", "sdc"], True, False),
        (["mirror-0", "sdc"], True, False),
    ],
)
def test_a_plain_disk_beside_special_ones_has_an_id_that_is_not_known(
    names: list[str], others: bool, known: bool
) -> None:
    blocks = [Extent(vdev, "0", 10, 10, 10, 1, 10) for vdev in (0, 1)]
    assert (forecast.vdev_shares(blocks, names, others) is not None) == known


def test_what_files_on_a_raidz_take_beside_a_mirror_counts_their_parity_alone() -> None:
    """Earlier it was that of all data, of which half has no parity."""
    spaces = (Space("raidz1-0", 900, 300, data=0.5), Space("mirror-1", 900, 300))
    pool = PoolFacts("tank", {}, spaces, (2, 4, 0), used=450)
    for lies, factor in (([1.0, 0.0], 2.0), ([0.0, 1.0], 1.0), (None, 600 / 450)):
        plan = forecast.RebalancePlan([], pool, PlanDocument(()), lies)
        assert plan.raw_factor == pytest.approx(factor)


CONFIGURATION = """
MOS Configuration:
        version: 5000
        vdev_tree:
            type: 'root'
            create_txg: 4
            children[0]:
                type: 'mirror'
                is_log: 0
                create_txg: 4
                children[0]:
                    type: 'disk'
                    create_txg: 700
            children[1]:
                type: 'mirror'
                is_log: 0
                create_txg: 50
            children[2]:
                type: 'disk'
                is_log: 1
                create_txg: 80
            children[3]:
                type: 'mirror'
                is_log: 0
                create_txg: 90
                alloc_bias: 'special'
        features_for_read:
"""


@rows(("told", "txg"), [(CONFIGURATION, 50), ("", None), ("zdb: can't open 'tank'\n", None)])
def test_the_newest_data_vdev_came_in_a_txg(told: str, txg: int | None) -> None:
    """A disk replaced later, a log and a special vdev do not count."""
    reader = FactsReader(lambda argv, _: Completed(tuple(argv), 0, told, ""))
    assert reader.added_txg("tank") == txg


@rows(
    ("births", "old", "told", "parts"),
    [
        ([9, 9], 100, 100, (60, 0)),
        ([50, 60], 0, 0, (None, None)),  # a second plan after a rewrite in place
        ([9, 50], 50, None, (None, None)),
        ([9, 50, 50], 33, None, (None, None)),
        ([], 100, 100, (60, 0)),
    ],
)
def test_what_was_rewritten_is_not_old_though_its_ctime_is(
    births: list[int], old: int, told: int | None, parts: tuple[int | None, int | None]
) -> None:
    """Otherwise everything looked old, and most worth moving, right after a rewrite."""
    plan = measured(old_allocated=100)
    plan.found.ages = Ages(addition=50)
    plan.found.below.note(b"a", Held(2, 90, 60))
    plan.found.below.note(b"b", Held(1, 10, 0))
    files = [status_of(100, 40) for _ in births]
    plan.found.sample.offer(
        [os.stat_result((*each[:1], at, *each[2:])) for at, each in enumerate(files)]
    )
    plan.listed = {
        at: [Extent(0, "0", 10, 10, 10, 1, 10, birth)] for at, birth in enumerate(births)
    }
    plan.note_rewritten(50)
    found = plan.document(100)
    assert (plan.found.old_allocated, found.old_bytes) == (old, told)
    assert tuple(part.old_bytes for part in found.below) == parts


def test_a_file_that_changed_since_is_new_whatever_its_blocks() -> None:
    plan = measured(old_allocated=40)
    plan.found.ages = Ages(addition=50)
    plan.found.sample.offer([status_of(100, 60)])
    plan.listed = {7: [Extent(0, "0", 10, 10, 10, 1, 10, 60)]}
    plan.note_rewritten(50)
    assert (plan.rewritten, plan.found.old_allocated) == (0.0, 40)
