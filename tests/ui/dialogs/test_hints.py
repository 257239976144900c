"""A click on a key in the last lines of a dialog does the same as the key."""

from __future__ import annotations

import pytest

from tests.ui.actions.acting import acting
from tests.ui.rebalance.steps import running, to_options, to_plan, to_tree
from zconsole.ui.dialogs.confirm import ConfirmScreen
from zconsole.ui.dialogs.screens import Dialog
from zconsole.ui.keys import key_name
from zconsole.ui.widgets.draw import Span
from zconsole.ui.widgets.lines_view import FooterView

KEYED = ("key", "track")
"""Roles of keys, including those that do nothing now."""


def by(*keys):
    async def _open(a):
        await a.press(*keys)

    return _open


OPENED = {
    "menu": by("A"),
    "scans": by("S"),
    "hours": by("S", *"jjjjjj", "enter"),
    "plan": by("S", "j", "enter"),
    "done": by("S", "j", "enter", "tab", "enter"),
    "tunables": by("T"),
    "overview": by("o"),
    "what if": by("w"),
    "chassis": by("c"),
    "help": by("question_mark"),
    "themes": by("t"),
    "options of a rebalance": to_options,
    "directories": to_tree,
    "plan of a rebalance": to_plan,
    "job": running,
}
"""Dialogs, and how to open each."""
REBALANCED = ("options of a rebalance", "directories", "plan of a rebalance", "job")
"""Dialogs that need an unbalanced pool."""


def spans(screen: Dialog) -> list[tuple[Span, int, int]]:
    """Return the spans in its last lines, and the screen position where each begins."""
    found = []
    for view in screen.query(FooterView):
        left, top = view.region.offset
        for y in range(view.line_count()):
            x = left
            for span in view.line_at(y):
                found.append((span, x, top + y))
                x += len(span.text)
    return found


@pytest.mark.parametrize(
    ("scenario", "dialogs"),
    [("mirror-scrub", OPENED.keys() - REBALANCED), ("added-vdev", REBALANCED)],
    ids=["scans", "rebalance"],
)
async def test_a_click_on_a_key_presses_that_key(scenario, dialogs):
    async with acting(scenario) as a:
        pressed: list[str] = []
        a.app.action_press = lambda key: pressed.append(key)  # noqa: PLW0108
        for opened in (name for name in OPENED if name in dialogs):
            await a.home()
            await OPENED[opened](a)
            screen = a.app.screen
            assert isinstance(screen, Dialog), a.screen
            named = [s for s in spans(screen) if s[0].role in KEYED and s[0].action]
            assert named, a.screen
            for span, x, y in named:
                await a.pilot.click(offset=(x, y))
                assert pressed[-1:] == [key_name(span.text.strip())], (opened, span, a.screen)
                pressed.clear()


async def test_a_word_beside_its_keys_is_clicked_as_well():
    async with acting("mirror-scrub") as a:
        await a.press("S", "g", "j", "enter")
        plan = a.app.screen
        assert isinstance(plan, ConfirmScreen)

        async def click(word):
            found = next((x, y) for span, x, y in spans(plan) if span.text == word)
            await a.pilot.click(offset=found)
            await a.rest()

        await click("buttons")
        assert plan.focused.id == "run"
        await click("Left ")
        assert plan.focused.id == "cancel"
        await click("select")
        assert a.app.screen is not plan
