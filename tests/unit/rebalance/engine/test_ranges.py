from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from zconsole.rebalance.engine.ranges import ranges


def test_stretches_without_a_gap() -> None:
    assert list(ranges([7, 3, 4, 5, 9, 8])) == [(3, 5), (7, 9)]
    assert list(ranges([])) == []


@given(st.sets(st.integers(0, 60)))
def test_they_cover_the_numbers_and_nothing_else(numbers: set[int]) -> None:
    found = list(ranges(list(numbers)))
    covered = [n for first, last in found for n in range(first, last + 1)]
    assert covered == sorted(numbers)
    assert all(a[1] + 1 < b[0] for a, b in pairwise(found))
