"""The action that the line of keys names first."""

from __future__ import annotations

import pytest

from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.actions.acting import acting
from tests.ui.drawn import plain
from zconsole.pool.model import ErrorCounters
from zconsole.pool.volumes import VolumeLimit
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.help import footer_line, screen_help_lines
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


def test_the_help_of_an_input_has_no_key_that_types_or_moves_in_the_text():
    said = screen_help_lines(("Answer", "Plan"), LOOK, 80, typing=True)
    keys = {key for line in said for key in line[0].text.split() if line[0].role == "key"}
    assert {"F1", "Up", "PgUp", "Tab", "Enter", "Esc", "^Y", "^C"} <= keys
    assert not {key for key in keys if len(key) == 1 or key in ("Space", "Home", "End")}
    everywhere = " ".join(plain(line) for line in screen_help_lines((), LOOK, 80))
    assert "? h F1" in everywhere


async def test_the_help_over_an_input_is_that_of_what_works_in_it():
    async with acting("resilver") as a:
        await a.press("slash", "f1")
        assert " HELP" in a.screen
        assert "accept what was typed" in a.screen
        assert "? h" not in a.screen


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


def test_no_rebalance_is_wanted_of_a_pool_that_is_nearly_even_busy_in_trouble_or_of_volumes():
    uneven = frames.imbalance()
    nearly = replace(uneven, balance=uneven.balance._replace(spread=UNEVEN / 2))
    busy = replace(uneven, scans=frames.resilver().scans)
    ill = replace(uneven, health=uneven.health._replace(word="DEGRADED"))
    limit = VolumeLimit(9, 1, uneven.balance.spread - UNEVEN / 2, ("raidz1-0",))
    held = replace(uneven, balance=uneven.balance._replace(volumes=limit))
    assert [wanted_action(frame) for frame in (nearly, busy, ill, held)] == [""] * 4
