"""What volumes leave of a pool's spread, however its files are moved."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import rows
from zconsole.pool.allocator import Space, spread
from zconsole.pool.model import Volumes
from zconsole.pool.volumes import (
    VolumeLimit,
    file_bytes,
    volume_limit,
    volume_sentences,
)


def spaces(*allocs: float, size: int = 100, data: float = 1.0) -> list[Space]:
    return [Space(f"mirror-{i}", size, alloc, data=data) for i, alloc in enumerate(allocs)]


@rows(
    ("allocs", "held", "least", "vdevs"),
    [
        ((80, 0), 70, 0.6, ("mirror-0",)),  # 10 of 80 move: 70 and 10
        ((80, 0), 40, 0.0, ()),  # files alone suffice
        ((80, 80, 0), 120, 0.2, ("mirror-1", "mirror-0")),  # 40 move: 60, 60 and 40
        ((90, 50, 0), 120, 0.5, ("mirror-0",)),  # 20 move: 70, 50 and 20
        ((50, 50), 100, 0.0, ()),
        ((80, 0), 0, 0.0, ()),
        ((80, 0), 500, 0.8, ("mirror-0",)),  # more than there is: no file at all
    ],
)
def test_what_no_move_of_files_evens_out(allocs, held, least, vdevs):
    found = volume_limit(Volumes(3, held), spaces(*allocs))
    assert found == VolumeLimit(3, held, pytest.approx(least), vdevs)


def test_a_volume_takes_at_least_the_parity_of_the_widest_vdev():
    pool = [*spaces(90, data=0.5), Space("raidz1-1", 100, 0.0, data=0.8)]
    assert file_bytes(Volumes(1, 40), pool) == 40
    assert file_bytes(None, pool) == 90
    assert file_bytes(Volumes(1, 9), []) == 0


def test_a_pool_without_vdevs_has_no_spread():
    assert volume_limit(Volumes(1, 5), []) == VolumeLimit(1, 5, 0.0, ())
    assert volume_limit(Volumes(1, 5), spaces(0, size=0)).least_spread == 0.0


@given(
    st.lists(st.integers(0, 20), min_size=2, max_size=3),
    st.lists(st.integers(0, 20), min_size=3, max_size=3),
)
def test_no_move_of_files_gets_below_it(fixed, files):
    """Try the greedy move of every unit of files, from wherever they are."""
    held = [Space(f"v{i}", 40, float(alloc)) for i, alloc in enumerate(fixed)]
    now = [s._replace(alloc=s.alloc + f) for s, f in zip(held, files, strict=False)]
    least = volume_limit(Volumes(1, sum(fixed)), now).least_spread
    for order in permutations(range(len(held))):
        best = list(held)
        for _ in range(sum(files[: len(held)])):
            low = min(order, key=lambda i: best[i].alloc)
            best[low] = best[low]._replace(alloc=best[low].alloc + 1)
        assert spread(best) >= least - 1e-9


def test_the_words_name_the_vdevs_and_the_ways_out():
    found = VolumeLimit(12, 18 << 40, 0.36, ("raidz1-0",))
    assert list(volume_sentences(found, lambda size: f"{size / (1 << 40):.1f}T")) == [
        "12 volumes hold 18.0T, which no rebalance moves",
        "moving files leaves a spread of at least 36.0 %: the volumes on raidz1-0",
        "to move a volume: zfs send and receive, or the hypervisor's disk move",
    ]


def test_many_vdevs_are_counted_and_what_files_even_out_is_not_told():
    many = VolumeLimit(1, 5, 0.2, ("a", "b", "c", "d"))
    assert "the volumes on 4 vdevs" in "".join(volume_sentences(many, str))
    even = VolumeLimit(1, 5, 0.05, ("a",))
    assert list(volume_sentences(even, str)) == ["1 volume holds 5, which no rebalance moves"]
    assert list(volume_sentences(VolumeLimit(0, 0, 0.0, ()), str)) == []
    assert list(volume_sentences(None, str)) == []
