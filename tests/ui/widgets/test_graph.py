"""Graphs of several rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from zconsole.ui.widgets.graph import ASCII, UNICODE, graph_lines, graph_values, heat_strip

VALUES = st.lists(st.none() | st.floats(min_value=0, max_value=1e12), max_size=200)


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
@given(VALUES, st.integers(1, 80), st.integers(1, 8))
def test_every_line_is_as_wide_as_asked_for(glyphs, values, width, rows):
    lines = graph_lines(values, width, rows, 1e9, glyphs)
    assert [cell_len(line) for line in lines] == [width] * rows


def test_nothing_is_drawn_without_room():
    assert graph_lines([1.0], 0, 4, 1.0, UNICODE) == []
    assert graph_lines([1.0], 4, 0, 1.0, UNICODE) == []


def test_two_values_share_a_cell_in_braille():
    assert graph_values(10, 4, UNICODE) == 20
    assert graph_lines([4.0, 8.0], 1, 2, 8.0, UNICODE) == ["⢸", "⣿"]


def test_one_row_is_a_sparkline_with_a_value_a_cell():
    assert graph_values(3, 1, UNICODE) == 3
    assert graph_lines([0.0, 4.0, 8.0], 3, 1, 8.0, UNICODE) == [" ▄█"]


def test_the_newest_value_is_at_the_right():
    assert graph_lines([8.0, 0.0, 0.0, 0.0, 8.0, 8.0], 2, 2, 8.0, UNICODE) == [" ⣿", " ⣿"]


def test_the_smallest_value_shows():
    assert graph_lines([1e-9, 1e-9], 1, 4, 1.0, UNICODE)[-1] == "⣀"


def test_a_missing_value_is_a_gap_but_not_before_the_first():
    lines = graph_lines([None, None, 1.0, 1.0, None, None, 1.0, 1.0], 4, 2, 1.0, UNICODE)
    assert lines == [" ⣿ ⣿", " ⣿·⣿"]


def test_ascii_stacks_plain_characters():
    assert graph_lines([4.0, 8.0, None, 8.0], 4, 2, 8.0, ASCII) == [" @ @", "@@?@"]


def test_values_above_the_scale_fill_it():
    assert graph_lines([99.0, 99.0], 1, 2, 1.0, UNICODE) == ["⣿", "⣿"]


STEPS = (0.25, 0.5, 0.75)


def test_a_cell_is_the_darker_the_more_steps_it_reaches():
    assert heat_strip([0, 0.1, 0.25, 0.6, 0.75, 9], 6, STEPS, UNICODE) == " ░▒▓██"
    assert heat_strip([0, 0.1, 0.25, 0.6, 0.75, 9], 6, STEPS, ASCII) == " .:*##"


def test_the_newest_is_at_the_right_and_gaps_show_only_between_samples():
    assert heat_strip([None, 0.1, None, 0.9], 6, STEPS, UNICODE) == "   ░·█"
    assert heat_strip([0.9, 0.1], 1, STEPS, UNICODE) == "░"
    assert heat_strip([0.9], 0, STEPS, UNICODE) == ""
    assert heat_strip([], 3, STEPS, UNICODE) == "   "
