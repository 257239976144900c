"""Dialogs are painted by rounds, timers and workers, at any moment."""

from __future__ import annotations

import pytest

from tests.ui import frames
from tests.ui.actions.acting import acting
from tests.ui.fakes import FakeFeed, view_state
from zconsole.ui.actions import log_flow, tunables_pane
from zconsole.ui.dialogs import confirm, what_if_screen
from zconsole.ui.dialogs.confirm import ConfirmScreen
from zconsole.ui.dialogs.screens import (
    AskScreen,
    Dialog,
    PickList,
    PickScreen,
    Prompt,
    TextQuestion,
)
from zconsole.ui.panes import overview
from zconsole.ui.panes.chassis import ChassisScreen
from zconsole.ui.rebalance import flow
from zconsole.ui.widgets.draw import Span

EVERY_MODULE = (
    confirm,
    flow,
    log_flow,
    overview,
    tunables_pane,
    what_if_screen,
)
"""Importing them makes every dialog known as a subclass."""


def _lines(*_):
    return ((Span(" one"),),)


async def test_a_list_over_a_stale_sample_says_how_old_it_is():
    async with view_state(feed=FakeFeed((frames.swap(),), interval=1.0)) as (app, pilot, read):
        await pilot.press("o")
        await pilot.pause()
        assert " age " not in read().splitlines()[0]
        app._clock.now += 40
        app._tick()
        await pilot.pause()
        first = read().splitlines()[0]
        assert " age 4" in first
        app._clock.now += 20
        app._tick()
        await pilot.pause()
        assert " age 6" in read().splitlines()[0]


async def test_a_pointer_stands_before_the_line_at_the_cursor_and_moves_nothing():
    lines = [(Span("  one"),), (Span("two"),), (Span(" "), Span("three"))]
    for plain, pointer in ((False, "›"), (True, ">")):
        async with view_state(frames.resilver(), plain=plain) as (app, pilot, read):
            app.push_screen(PickScreen(PickList("PICK", lambda *_: lines)))
            await pilot.pause()
            seen = [read().splitlines()[1:4]]
            for _ in lines[1:]:
                await pilot.press("j")
                await pilot.pause()
                seen.append(read().splitlines()[1:4])
            assert seen == [
                [f"{pointer} one", "two", " three"],
                ["  one", "two", " three"],
                ["  one", "two", f"{pointer}three"],
            ]


async def test_a_round_between_push_and_compose_paints_nothing_and_ends_nothing():
    async with view_state(frames.resilver()) as (app, pilot, read):
        app.push_screen(PickScreen(PickList("PICK", _lines, side=True)))
        app.paint()
        app.action_overview()
        app.paint()
        await pilot.pause()
        assert " POOL  " in read()
        await pilot.press("escape")
        assert "›one" in read()


async def test_an_answer_to_correct_is_added_to_and_not_replaced():
    async with view_state(frames.resilver()) as (app, pilot, _):
        app.push_screen(screen := AskScreen(TextQuestion("ASK", _lines, typed="30")))
        await pilot.pause()
        await pilot.press("m", "s")
        assert screen.query_one("#answer", Prompt).value == "30ms"


async def test_enter_on_an_empty_answer_says_that_nothing_changed():
    async with view_state(frames.resilver()) as (app, pilot, _):
        answers: list[str | None] = []
        app.push_screen(AskScreen(TextQuestion("ASK", _lines)), answers.append)
        await pilot.pause()
        await pilot.press("space", "enter")
        await pilot.pause()
        assert answers == [None]
        assert [message.message for message in app.messages] == ["Nothing typed: nothing changed"]


async def test_a_dialog_that_was_left_is_drawn_no_more(monkeypatch):
    async with view_state(frames.resilver()) as (app, pilot, _):
        app.push_screen(screen := AskScreen(TextQuestion("ASK", _lines)))
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        drawn: list[AskScreen] = []
        monkeypatch.setattr(AskScreen, "draw", drawn.append)
        screen.update()
        assert drawn == []


@pytest.mark.parametrize(
    ("scenario", "keys", "kind"),
    [("mirror-scrub", "Sgj", ConfirmScreen), ("failed-disk", "c", ChassisScreen)],
)
async def test_a_screen_is_made_ready_once_as_it_opens(scenario, keys, kind, monkeypatch):
    """Textual itself calls the handlers of base classes: super() would run them twice."""
    async with acting(scenario, (80, 24)) as a:
        ready, found = a.app.screen_ready, []
        monkeypatch.setattr(a.app, "screen_ready", lambda s: (found.append(s), ready(s)))
        await a.press(*keys, "enter")
        assert kind in map(type, found)
        assert len(found) == len(set(found))


def _below(kind):
    return [each for one in kind.__subclasses__() for each in (one, *_below(one))]


def test_no_dialog_draws_around_that():
    assert len(_below(Dialog)) > 10
    assert [kind for kind in _below(Dialog) if "update" in vars(kind)] == []


async def test_a_list_that_opens_at_its_end_is_full():
    async with view_state(frames.healthy(), size=(80, 24)) as (app, pilot, screen):
        lines = tuple((Span(f"line {n}"),) for n in range(40))
        about = ((Span("said"),),)
        app.push_screen(PickScreen(PickList("LIST", lambda *_: lines, 39, lambda *_: about)))
        await pilot.pause()
        await pilot.pause()
        shown = [line for line in screen().splitlines() if line.startswith("line")]
        assert shown == [f"line {n}" for n in range(40 - len(shown), 40)]
        assert len(shown) >= 20


async def test_what_is_said_of_a_line_stands_close_below_a_short_list():
    async with view_state(frames.healthy(), size=(80, 24)) as (app, pilot, screen):
        lines, about = ((Span("one"),), (Span("two"),)), ((Span("said"),),)
        app.push_screen(PickScreen(PickList("LIST", lambda *_: lines, about=lambda *_: about)))
        await pilot.pause()
        await pilot.pause()
        assert [line.strip() for line in screen().splitlines()[:5]] == [
            "LIST", "one", "two", "", "said",
        ]  # fmt: skip
