"""The choices before a plan."""

from __future__ import annotations

from tests.records import replace
from tests.ui.drawn import plain
from tests.ui.rebalance.samples import SETTINGS
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.rebalance.options import PLAN as LAST
from zconsole.ui.rebalance.options import option_about, option_lines


def test_a_choice_that_is_cut_is_told_whole():
    settings = replace(SETTINGS, accept_races=True)
    for width in (60, 80):
        for index in range(LAST + 1):
            whole = " ".join(
                plain(line).strip()
                for line in option_about(settings, index, DisplayFormat(), width)
            )
            row = plain(option_lines(settings, DisplayFormat(), width)[index])
            assert bool(whole) == ("…" in row)
    lines = map(plain, option_about(settings, LAST - 1, DisplayFormat(), 60))
    assert " ".join(lines).endswith("lost")
