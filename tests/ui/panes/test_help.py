"""The action that the line of keys names first."""

from __future__ import annotations

import pytest

from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.actions.acting import acting
from tests.ui.drawn import plain
from zconsole.pool.model import ErrorCounters
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.help import footer_line
from zconsole.ui.panes.reasons import UNEVEN, wanted_action

LOOK = DisplayFormat()


@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
async def test_an_uneven_pool_at_rest_has_the_key_of_the_rebalance_in_its_footer(size):
    async with acting("added-vdev", size=size) as a:
        assert "B Rebalance" in a.screen.splitlines()[-1]


@rows("width", [60, 80])
def test_the_wanted_action_is_the_first_in_the_footer(width):
    first = wanted_action(frames.imbalance())
    said = plain(footer_line(LOOK, width, denied="", first=first, several_pools=True))
    assert said.startswith(f" ? help  {LOOK.keys.shown('rebalance')} Rebalance")


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"state": "UNAVAIL"}, "swap"),
        ({"errors": ErrorCounters(0, 1, 0)}, "swap"),
        ({"state": "OFFLINE"}, "rebalance"),
    ],
)
def test_a_failed_device_goes_before_an_uneven_pool(fields, wanted):
    uneven = frames.imbalance()
    *others, last = uneven.rows
    changed = last._replace(vdev=last.vdev._replace(**fields))
    assert wanted_action(replace(uneven, rows=(*others, changed))) == wanted


def test_no_rebalance_is_wanted_of_a_pool_that_is_nearly_even_or_busy_or_in_trouble():
    uneven = frames.imbalance()
    nearly = replace(uneven, balance=uneven.balance._replace(spread=UNEVEN / 2))
    busy = replace(uneven, scans=frames.resilver().scans)
    ill = replace(uneven, health=uneven.health._replace(word="DEGRADED"))
    assert [wanted_action(frame) for frame in (nearly, busy, ill)] == ["", "", ""]
