"""Strips of cells, the darker the more."""

from __future__ import annotations

from zconsole.ui.widgets.glyphs import ASCII, UNICODE
from zconsole.ui.widgets.heat import heat_strip

STEPS = (0.25, 0.5, 0.75)


def test_a_cell_is_the_darker_the_more_steps_it_reaches():
    assert heat_strip([0, 0.1, 0.25, 0.6, 0.75, 9], 6, STEPS, UNICODE) == " ░▒▓██"
    assert heat_strip([0, 0.1, 0.25, 0.6, 0.75, 9], 6, STEPS, ASCII) == " .:*##"


def test_the_newest_is_at_the_right_and_gaps_show_only_between_samples():
    assert heat_strip([None, 0.1, None, 0.9], 6, STEPS, UNICODE) == "   ░·█"
    assert heat_strip([0.9, 0.1], 1, STEPS, UNICODE) == "░"
    assert heat_strip([0.9], 0, STEPS, UNICODE) == ""
    assert heat_strip([], 3, STEPS, UNICODE) == "   "
