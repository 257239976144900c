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
from zconsole.rebalance.engine.workplace import JobClocks
from zconsole.rebalance.job.creation import WalkSink
from zconsole.rebalance.planning import forecast
from zconsole.rebalance.planning.engine_choice import Choice
from zconsole.rebalance.planning.facts import Dataset, Extent, FactsReader, JobDirectory, PoolFacts
from zconsole.rebalance.planning.forecast import (
    BlockLayout,
    DirectoryPlan,
    layouts_of,
    width_ratio,
)
from zconsole.rebalance.planning.plan_document import PlanDocument
from zconsole.rebalance.planning.settings import Limits
from zconsole.rebalance.planning.survey import Ages, Survey, TreeTotals
from zconsole.rebalance.planning.walk import Portion
from zconsole.system.process import Completed

SPACES = (Space("mirror-0", 1000, 900), Space("mirror-1", 1000, 100))


def measured(**figures: Any) -> DirectoryPlan:
    found = Survey(b"/tank", Ages(), 1 << 40, allocated=100, **figures)
    place = JobDirectory(b"/tank", "zfs", "tank", None)
    return DirectoryPlan(place, found, Choice("copy", ""), 1, 100)


def status_of(size: int, ctime: int) -> os.stat_result:
    return os.stat_result((0o100644, 7, 1, 1, 0, 0, size, ctime, ctime, ctime))


@rows(
    ("added", "shares", "estimate"),
    [
        (50, [1, 0], "age: 100% older than the newest vdev"),
        (None, None, "assumes uniform data"),  # without a history all data is alike
    ],
)
def test_without_zdb_the_age_of_files_tells_where_they_lie(
    added: int | None, shares: list[float] | None, estimate: str
) -> None:
    pool = PoolFacts("tank", {}, SPACES, (2, 3, 9), added=added)
    found = forecast.source([measured(old_allocated=100)], pool)
    assert found == (shares and pytest.approx(shares), estimate)


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
    sink = WalkSink(journal, JobClocks())
    sink(portion, Ages(addition=50))
    sink.flush()
    journal.finish_walk(split_links=False)
    names = [row.name for _, row in journal.todo((-1, -1, -1), 10)]
    journal.close()
    assert names == [b"old-large", b"old-small", b"new-large", b"new-small"]


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
    assert width_ratio(told[7], pool) == pytest.approx(160 / 176)
    assert width_ratio([], pool) is None


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
    ("sizes", "names", "others", "shares"),
    [
        ([100, 300], ["sda", "sdb"], False, [0.25, 0.75]),
        # The third vdev is a special one, and a plain disk beside such has no known id.
        ([100, 300, 50], ["mirror-0", "mirror-1"], False, None),
        ([100, 300, 50], ["mirror-0", "mirror-1"], True, [0.25, 0.75]),
        ([100, 300], ["sda", "sdc"], True, None),
        ([100, 300], ["mirror-0", "sdc"], True, None),
    ],
)
def test_blocks_lie_on_vdevs_by_the_ids_in_their_names(
    sizes: list[int], names: list[str], others: bool, shares: list[float] | None
) -> None:
    blocks = [Extent(vdev, "0", size, 0, 0, 1, 0) for vdev, size in enumerate(sizes)]
    assert forecast.vdev_shares(blocks, names, others) == shares


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
    ("births", "ctime", "old", "told", "parts"),
    [
        ([9, 9], 40, 100, 100, (60, 0)),
        ([50, 60], 40, 0, 0, (None, None)),  # a second plan after a rewrite in place
        ([9, 50], 40, 50, None, (None, None)),
        ([9, 50, 50], 40, 33, None, (None, None)),
        ([50, 60], 60, 100, 100, (60, 0)),  # one that changed since is new, whatever its blocks
        ([], 40, 100, 100, (60, 0)),
    ],
)
def test_what_was_rewritten_is_not_old_though_its_ctime_is(
    births: list[int], ctime: int, old: int, told: int | None, parts: tuple[int | None, int | None]
) -> None:
    """Otherwise everything looked old, and most worth moving, right after a rewrite."""
    plan = measured(old_allocated=100)
    plan.found.ages = Ages(addition=50)
    plan.found.below.note(b"a", TreeTotals(2, 90, 60))
    plan.found.below.note(b"b", TreeTotals(1, 10, 0))
    files = [status_of(100, ctime) for _ in births]
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
