from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.table import rows
from tests.unit.rebalance.planning.listing import HEAD, listed
from zconsole.pool.allocator import Space
from zconsole.rebalance.planning import forecast
from zconsole.rebalance.planning.facts import PoolFacts
from zconsole.rebalance.planning.forecast import BlockLayout, layouts_of, narrowed
from zconsole.system.process import Completed

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

    found = forecast.listed(run, dataset, [117])
    assert asked == [["zdb", "-ddddd", target, "117"]]
    assert [extent[:3] for extent in found[117]] == [(0, "cbe2200", 0x20000), (1, "17400", 0x20000)]


def test_extents_in_their_order() -> None:
    copies = LINES.replace("1:17400:20000 20000L/20000P", "1:17400:8000 0:8000:8000 20000L/7000P")
    file = listed({117: copies})[117]
    assert file == [
        forecast.Extent(0, "cbe2200", 0x20000, 0x20000, 0x20000, 1, 0x20000),
        forecast.Extent(1, "17400", 0x8000, 0x20000, 0x7000, 2, 0x10000),
    ]


def test_shares_leave_special_vdevs_out() -> None:
    sizes = [(0, "a", 100), (1, "b", 300), (2, "c", 50)]
    addresses = [forecast.Extent(*size, 0, 0, 1, 0) for size in sizes]
    names = ["mirror-0", "mirror-1"]
    assert forecast.vdev_shares(addresses, names) is None
    assert forecast.vdev_shares(addresses, names, others=True) == [0.25, 0.75]


@rows(
    ("layout", "size", "raw"),
    [
        (BlockLayout(4096), 128 * KIB, 128 * KIB),
        (BlockLayout(4096), 5000, 8 * KIB),
        (BlockLayout(4096), 0, 0),
        (BlockLayout(4096, 1, 4), 128 * KIB, 176 * KIB),  # 32 + 11 parity + 1 to fill up
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
        Space("raidz1-3", 10, 10),  # of which nobody knows the disks
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
    assert narrowed(told, pool) == pytest.approx(160 / 176)
    assert narrowed({}, pool) is None
