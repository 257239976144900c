from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zconsole.timeline.eta.memory import cost, memory
from zconsole.timeline.eta.progress_curve import CurvePoint

TOTAL = 1000.0


def points(*pairs: tuple[float, float]) -> list[CurvePoint]:
    """Bytes walked and issued, a point a second."""
    return [CurvePoint(n, n, issued, scanned, 0.0) for n, (scanned, issued) in enumerate(pairs)]


def test_what_a_turn_issues_was_sorted_when_it_began():
    found = memory(points((0, 0), (100, 0), (100, 50), (100, 90)), TOTAL, TOTAL, walks=True)
    assert found.seen == pytest.approx([0.0, 0.1, 0.1, 0.1])


def test_the_less_is_left_the_larger_is_the_share_of_it_that_fits():
    found = memory(points((0, 0), (400, 0), (400, 400)), TOTAL, TOTAL, walks=True)
    assert found.ahead == [
        (0.0, 0.4),
        (pytest.approx(2 / 3), pytest.approx(2 / 3)),
        (pytest.approx(1 / 3), 1.0),
    ]


def test_after_the_walk_all_is_sorted():
    found = memory(points((0, 0), (600, 0), (600, 300), (1000, 300)), TOTAL, TOTAL, walks=False)
    assert found.ahead == [(1.0, 1.0)]
    assert found.varies


def test_a_resilver_that_needs_half_of_what_it_walks_holds_half():
    found = memory(points((0, 0), (400, 0)), TOTAL, 2 * TOTAL, walks=True)
    assert found.seen[-1] == pytest.approx(0.2)


@given(st.lists(st.tuples(st.floats(0, 2e3), st.floats(0, 2e3)), min_size=2), st.booleans())
def test_the_parts_of_what_is_left_are_all_of_it(pairs, walks):
    found = memory(points(*pairs), TOTAL, TOTAL, walks)
    assert sum(part for part, _ in found.ahead) == pytest.approx(1)
    assert all(0 <= dense <= 1 for dense in (*found.seen, *(d for _, d in found.ahead)))


@given(st.floats(0, 1), st.floats(0, 1))
def test_what_is_sorted_more_at_once_takes_no_longer(a, b):
    low, high = sorted((a, b))
    assert cost(high, 4.0, 0.03) <= cost(low, 4.0, 0.03)
