"""Raw and used bytes of blocks, by figures of vdev_raidz_asize and vdev_draid_asize."""

from __future__ import annotations

import pytest

from zconsole.pool.allocator import Space
from zconsole.rebalance.planning.layout import BlockLayout, layouts

KIB = 1 << 10


@pytest.mark.parametrize(
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


def test_used_space_counts_a_block_of_128_kib_as_itself() -> None:
    assert BlockLayout(4096, 1, 4).used(128 * KIB) == 128 * KIB
    assert BlockLayout(4096, 2, 6).used(4 * KIB) == 8 * KIB


def test_the_vdevs_of_a_pool_get_writes_by_their_free_space() -> None:
    spaces = [
        Space("raidz2-0", 400, 100, disks=6),
        Space("draid1:3d:5c:1s-1", 100, 0, disks=5),
        Space("mirror-2", 100, 100, disks=2),
        Space("raidz1-3", 10, 10),  # of which nobody knows the disks
    ]
    assert layouts(spaces, 4096) == [
        (0.75, BlockLayout(4096, 2, 6)),
        (0.25, BlockLayout(4096, 1, 3, grouped=True)),
        (0.0, BlockLayout(4096)),
        (0.0, BlockLayout(4096)),
    ]
