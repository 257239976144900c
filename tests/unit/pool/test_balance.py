from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import rows
from zconsole.pool.balance import Balance, VdevBalance, balance, move_share
from zconsole.pool.model import Vdev

TIB = 1024**4


def top(name: str, size: float | None, alloc: float | None, disks: int = 1, **fields) -> Vdev:
    children = tuple(Vdev(f"{name}-{i}", "disk") for i in range(disks)) if disks > 1 else ()
    kind = "raidz1" if disks > 1 else "disk"
    whole = {"size_bytes": size and round(size), "alloc_bytes": alloc and round(alloc)}
    return Vdev(name, kind, children=children, **{**whole, **fields})


def of(*tops: Vdev, version: str | None = None):
    return balance(Vdev("tank", "root", children=tops), version)


def test_the_pool_at_93_and_0_percent():
    found = of(top("raidz1-0", 102 * TIB, 95.1 * TIB), top("raidz1-1", 36.4 * TIB, 0.078 * TIB))
    assert found.spread == pytest.approx(0.932 - 0.002, abs=0.002)
    assert found.target_fill == pytest.approx(95.178 / 138.4, abs=1e-6)
    assert found.imbalance_bytes == pytest.approx(24.95 * TIB, rel=0.01)
    assert found.vdevs[1].new_write_share == pytest.approx(36.322 / (36.322 + 6.9), abs=0.001)


@rows(("version", "share"), [("2.3.9", 0.75), ("2.4.4", 0.5), (None, 0.5)])
def test_up_to_2_3_data_disks_weigh_the_share_of_new_writes(version, share):
    found = of(top("wide", 100, 50, disks=4), top("narrow", 100, 50), version=version)
    assert found.vdevs[0].new_write_share == pytest.approx(share)


def test_a_vdev_being_removed_gets_no_new_writes():
    found = of(top("a", 100, 50, allocating=False), top("b", 100, 50))
    assert [v.new_write_share for v in found.vdevs] == [0.0, 1.0]


def test_what_is_not_known_is_none():
    found = of(top("a", None, None))
    assert (found.spread, found.target_fill, found.imbalance_bytes) == (None, None, None)
    assert (found.vdevs[0].fill, found.vdevs[0].free_bytes) == (None, None)


def test_the_share_of_data_counts_each_vdev_by_what_it_holds():
    found = of(top("raid", 200, 100, disks=5), top("disk", 200, 20))
    assert found.data_share == pytest.approx((100 * 4 / 5 + 20) / 120)
    assert of(top("empty", 100, 0)).data_share is None
    assert of(Vdev("draid1-0", "draid1", size_bytes=9, alloc_bytes=3)).data_share is None


def test_other_classes_and_holes_are_left_out():
    found = of(top("a", 100, 1), top("s", 100, 99, vclass="special"), Vdev("h", "hole"))
    assert [v.name for v in found.vdevs] == ["a"]


sizes = st.integers(1, 2**50)


@given(st.lists(sizes.flatmap(lambda s: st.tuples(st.just(s), st.integers(0, s))), min_size=1))
def test_surpluses_cancel_and_shares_sum_to_one(pairs):
    found = of(*(top(str(i), size, alloc) for i, (size, alloc) in enumerate(pairs)))
    total = sum(size for size, _ in pairs)
    assert sum(v.surplus_bytes for v in found.vdevs) == pytest.approx(0, abs=1e-6 * total)
    if any(alloc < size for size, alloc in pairs):
        assert sum(v.new_write_share for v in found.vdevs) == pytest.approx(1)
    assert 0 <= found.spread <= 1


@rows(
    ("held", "writes", "passes", "share"),
    [
        ([], [], 1, 1 / 2),
        ([50, 50], [0.5, 0.5], 1, 1 / 2),
        ([50, 50], [0.5, 0.5], 2, 1 / 3),
        ([90, 90, 90, 90, 90, 0], [0.02] * 5 + [0.9], 1, 0.2 / 0.9),
        ([90, 90, 90, 90, 90, 0], [0.02] * 5 + [0.9], 2, 0.2 / 1.8),
        ([90, 0], [0.1, 0.9], 1, 1 / 2),  # read from one, written to the other, in turn
        ([0, 0], [0.5, 0.5], 1, 1 / 2),
    ],
)
def test_the_one_vdev_that_takes_the_writes_bounds_a_move(held, writes, passes, share):
    """Half the rate of a scan of five vdevs was once promised for writes to a single new one."""
    entries = tuple(
        VdevBalance(f"mirror-{at}", "mirror", 100, old, 100 - old, None, None, None, new)
        for at, (old, new) in enumerate(zip(held, writes, strict=True))
    )
    assert move_share(Balance(vdevs=entries), passes) == pytest.approx(share)
