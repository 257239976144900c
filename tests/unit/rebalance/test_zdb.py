from __future__ import annotations

from collections.abc import Sequence

import pytest

from zconsole.rebalance import zdb
from zconsole.sources.blocking import Completed

FILE = """\
    Object  lvl   iblk   dblk  dsize  dnsize  lsize   %full  type
       117    2   128K   128K   256K     512   256K  100.00  ZFS plain file
Indirect blocks:
               0 L1  0:cbe2200:400 20000L/400P F=2 B=23/23 cksum=1
               0  L0 0:cbe2200:20000 20000L/20000P F=1 B=23/23 cksum=1
           20000  L0 1:17400:20000 20000L/20000P F=1 B=23/23 cksum=1
"""


@pytest.mark.parametrize(("dataset", "target"), [("tank", "tank/"), ("tank/a", "tank/a")])
def test_a_root_dataset_is_not_the_pool_itself(dataset: str, target: str) -> None:
    asked: list[Sequence[str]] = []

    def run(argv: Sequence[str], deadline: float) -> Completed:
        asked.append(argv)
        return Completed(tuple(argv), 0, FILE, "")

    blocks = zdb.block_addresses(run, dataset, [117])
    assert asked == [["zdb", "-ddddd", target, "117"]]
    assert blocks == [(0, "cbe2200", 0x20000), (1, "17400", 0x20000)]


def test_shares_leave_special_vdevs_out() -> None:
    blocks = [(0, "a", 100), (1, "b", 300), (2, "c", 50)]
    names = ["mirror-0", "mirror-1"]
    assert zdb.vdev_shares(blocks, names) is None
    assert zdb.vdev_shares(blocks, names, others=True) == [0.25, 0.75]
