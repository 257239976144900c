"""The action that the line of keys names first."""

from __future__ import annotations

import pytest

from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.actions.acting import acting
from tests.ui.drawn import plain
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.help import UNEVEN, footer_line, wanted_action

LOOK = DisplayFormat()


@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
async def test_an_uneven_pool_at_rest_has_the_key_of_the_rebalance_in_its_footer(size):
    async with acting("added-vdev", size=size) as a:
        assert "B Rebalance" in a.screen.splitlines()[-1]


@rows("width", [60, 80])
def test_the_wanted_action_is_the_first_in_the_footer(width):
    first = wanted_action(frames.imbalance(), False)
    said = plain(footer_line(LOOK, width, denied="", first=first, several_pools=True))
    assert said.startswith(f" ? help  {LOOK.keys.shown('rebalance')} Rebalance")


def test_a_failed_device_goes_before_an_uneven_pool():
    assert wanted_action(frames.imbalance(), True) == "swap"


def test_no_rebalance_is_wanted_of_a_pool_that_is_nearly_even_or_busy_or_in_trouble():
    uneven = frames.imbalance()
    nearly = replace(uneven, balance=uneven.balance._replace(spread=UNEVEN / 2))
    busy = replace(frames.resilver(), balance=uneven.balance)
    ill = replace(uneven, health=uneven.health._replace(word="DEGRADED"))
    assert [wanted_action(frame, False) for frame in (nearly, busy, ill)] == ["", "", ""]
