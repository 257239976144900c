from __future__ import annotations

from collections.abc import Sequence

from tests.table import rows
from tests.unit.rebalance.planning.listing import HEAD, listed
from zconsole.rebalance.planning import zdb
from zconsole.system.process import Completed

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

    found = zdb.listed(run, dataset, [117])
    assert asked == [["zdb", "-ddddd", target, "117"]]
    assert found[117].blocks == [(0, "cbe2200", 0x20000), (1, "17400", 0x20000)]


@rows(
    ("texts", "sector"),
    [
        ([], None),
        ([LINES], 0x200),  # by the address 17400, of which all addresses and sizes are multiples
        ([LINES.replace("17400", "20000").replace("cbe2200", "40000")], 4096),
    ],
)
def test_addresses_tell_the_sector(texts: list[str], sector: int | None) -> None:
    files = listed(dict(enumerate(texts)))
    assert len(files) == len(texts)
    assert zdb.sector(files.values()) == sector


def test_extents_in_their_order() -> None:
    copies = LINES.replace("1:17400:20000 20000L/20000P", "1:17400:8000 0:8000:8000 20000L/7000P")
    file = listed({117: copies})[117]
    assert file.extents == [
        zdb.Extent(0, 0x20000, 0x20000, 1, 0x20000),
        zdb.Extent(0x20000, 0x20000, 0x7000, 2, 0x10000),
    ]


@rows(
    ("at", "length", "raw"),
    [
        (0, 0x20000, 0x20000),
        (0x10000, 0x10000, 0x10000),
        (0x10000, 0x20000, 0x20000),
        (0x1F000, 0x2000, 0x2000),
        (0, 0x100000, 0x60000),
        (0x40000, 0x20000, 0),  # a hole
        (0x60000, 0x10000, 0x10000),
        (0x80000, 0x20000, 0),
    ],
)
def test_a_part_of_a_file_takes_its_share_of_the_blocks(at: int, length: int, raw: int) -> None:
    last = "           60000  L0 1:27400:20000 20000L/20000P F=1 B=23/23 cksum=1\n"
    assert listed({117: LINES + last})[117].raw(at, length) == raw


def test_shares_leave_special_vdevs_out() -> None:
    blocks = [(0, "a", 100), (1, "b", 300), (2, "c", 50)]
    names = ["mirror-0", "mirror-1"]
    assert zdb.vdev_shares(blocks, names) is None
    assert zdb.vdev_shares(blocks, names, others=True) == [0.25, 0.75]
