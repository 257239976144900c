"""Messages, the palette and inputs: nothing from outside can inject markup or commands."""

from __future__ import annotations

import asyncio
import re

import pytest
from textual import events

from tests.ui import frames
from tests.ui.fakes import until, view_state
from zconsole.ui.dialogs.screens import AskScreen, TextQuestion
from zconsole.ui.messages import PAGE, SETTLES
from zconsole.ui.themed_app import FLOW

ODD = "x\x1b[31m\x1b]0;P\x07\x9b2J\u202eq"


def next_line(app):
    """Let enough time pass for the next line of a message to be shown."""
    for each in app.messages.said:
        each.begun -= PAGE
    app.update_messages()


def later(app, seconds):
    """Let messages be this much older."""
    for each in app.messages.said:
        each.begun -= seconds
        each.ends -= seconds
    app.update_messages()


async def test_the_palette_opens_and_offers_the_keys():
    async with view_state(frames.healthy()) as (app, pilot, screen):
        offered = {command.title: command for command in app.get_system_commands(app.screen)}
        assert offered["Pause or resume the display, or a replay; sampling goes on"].help == "p"
        assert offered["Choose a theme"].help == "t"
        offered["Pause or resume the display, or a replay; sampling goes on"].callback()
        await pilot.pause()
        assert "PAUSED" in screen()
        assert len(offered) > 15
        await pilot.press("ctrl+p")
        assert app.screen.id == "--command-palette"
        await pilot.press("escape")


async def test_the_palette_says_how_to_write_and_list_reports():
    async with view_state(frames.healthy(), notifications=True) as (app, pilot, screen):
        (found,) = [c for c in app.get_system_commands(app.screen) if "eport of" in c.title]
        found.callback()
        await until(pilot, lambda: "report" in screen())
        assert "zconsole report" in screen()


async def test_a_message_with_escapes_is_shown_safe():
    async with view_state(frames.resilver()) as (app, pilot, read):
        app.notify(f"{ODD}\nsecond line", markup=False)
        await until(pilot, lambda: r"x\x1b[31m\x1b]0;P\x07\x9b2J\u202eq" in read())
        assert not {"\x1b", "\x9b", "\u202e"} & set(read())
        next_line(app)
        await until(pilot, lambda: "second line" in read())
        assert not {"\x1b", "\x9b", "\u202e"} & set(read())


async def test_what_is_pasted_leaves_its_escapes_behind():
    async with view_state(frames.resilver()) as (app, pilot, read):
        await pilot.press("slash")
        app.post_message(events.Paste(f"{ODD}\nsecond"))
        await until(pilot, lambda: read().splitlines()[-2].strip(" ▌") == "x[31m]0;P2Jq")
        await pilot.press("escape", "ctrl+p")
        app.post_message(events.Paste(ODD))
        await until(pilot, lambda: "x[31m]0;P2Jq" in read())
        assert not {"\x1b", "\x9b", "\u202e"} & set(read())
        await pilot.press("escape", "escape")


async def test_the_palette_and_messages_are_ascii_where_all_else_is():
    async with view_state(frames.resilver(), plain=True, notifications=True) as (app, pilot, read):
        app.notify("a word", markup=False)
        await until(pilot, lambda: "a word" in read())
        await pilot.press("ctrl+p")
        await until(pilot, lambda: "Choose a theme" in read())
        assert read().isascii(), {c for c in read() if not c.isascii()}
        await pilot.press(*"unit")
        await until(pilot, lambda: "Units" in read())
        assert read().isascii()
        await pilot.press("escape", "escape")


async def test_the_same_message_is_not_piled_up():
    async with view_state(frames.resilver()) as (app, pilot, read):
        for _ in range(3):
            app.notify("a recording cannot be acted on", markup=False)
        app.notify("another", markup=False)
        await until(pilot, lambda: "another" in read())
        next_line(app)
        await until(pilot, lambda: "a recording cannot be" in read())
        next_line(app)
        await until(pilot, lambda: "another" in read())


async def test_without_color_the_place_one_is_at_is_seen(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with view_state(frames.resilver(), ansi_color=True) as (app, pilot, read):
        await pilot.press("ctrl+p")
        await until(pilot, lambda: "Choose a theme" in read())
        await pilot.press("down", "down")
        await pilot.pause(0.1)
        styles = {
            segment.text.strip(): segment.style
            for strip in app.screen._compositor.render_strips()
            for segment in strip
        }
        assert next(s for text, s in styles.items() if text.startswith("Copy the")).underline
        assert not styles["Choose a theme"].underline
        await pilot.press("escape", "slash")
        await pilot.pause()
        strip = app.screen._compositor.render_strips()[-2]
        assert next(s.style.reverse for s in strip if s.text == "s")


async def test_a_message_stands_where_the_keys_are_and_covers_no_data():
    async with view_state(frames.resilver()) as (app, pilot, read):
        before = read().splitlines()
        app.notify("a word", timeout=60)
        await until(pilot, lambda: read().splitlines()[-1].startswith(" a word  "))
        assert read().splitlines()[:-1] == before[:-1]
        assert read().splitlines()[-1].endswith(" q quit")
        assert "? help" in read().splitlines()[-1]
        later(app, 60)
        await until(pilot, lambda: read().splitlines() == before)


@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
async def test_a_long_message_is_told_whole_a_line_after_the_other_and_moves_nothing(size):
    async with view_state(frames.resilver(), size=size) as (app, pilot, read):
        app.notify(f"{39 * 'x'} {39 * 'y'}", timeout=1)  # a cell too long for a line
        (said,) = app.messages
        lines = app.messages.lines(app.screen, app.view_state.look, *app.size)
        assert said.ends - said.begun >= len(lines) * PAGE > PAGE, "it lasts until all are told"
        app.messages.said.clear()
        before = read().splitlines()
        words = [f"word{n}" for n in range(20)]
        app.notify(" ".join(words), severity="error", timeout=1)
        told = []
        while "word19" not in told:
            at = words[len(told)]
            await until(pilot, lambda at=at: f" {at}" in read().splitlines()[-1])
            assert read().splitlines()[:-1] == before[:-1]
            told += re.findall(r"word\d+", read().splitlines()[-1])
            next_line(app)
        assert told == words
        await until(pilot, lambda: read().splitlines()[-1].startswith(" ! word0 word1 "))
        assert "? help" in read().splitlines()[-1]
        assert read().splitlines()[-1].endswith(" q quit")


async def test_a_message_stays_on_the_screen_it_arose_on():
    async with view_state(frames.resilver()) as (app, pilot, read):
        await pilot.press("o")
        app.notify("of the overview")
        await until(pilot, lambda: "of the overview" in read())
        later(app, SETTLES)
        await pilot.press("escape")
        assert "of the overview" not in read()
        app.notify("of the main screen")
        later(app, SETTLES)
        await pilot.press("o")
        assert "main screen" not in read()
        await pilot.press("escape")
        assert "of the main screen" in read()


async def test_a_complaint_goes_along_to_the_screen_that_asks_again():
    async with view_state(frames.resilver()) as (app, pilot, read):
        app.notify("not a size")
        await pilot.press("o")
        assert "not a size" in read()
        assert "Esc back" in read().splitlines()[-1]


async def test_a_message_is_said_again_on_another_screen():
    async with view_state(frames.resilver()) as (app, pilot, read):
        for _ in range(2):
            app.push_screen(AskScreen(TextQuestion("ASK", lambda *_: ())))
            await pilot.pause()
            app.notify("30 has no unit", timeout=60)
            app.messages.settle(app.screen, float("inf"))
            await pilot.pause()
            assert "30 has no unit" in read()
            await pilot.press("escape")


async def test_a_complaint_waits_for_a_flow_that_is_slow_to_ask_again():
    """On a busy machine, the complaint would otherwise stay on the screen behind the question."""
    asking = asyncio.Event()
    async with view_state(frames.resilver()) as (app, pilot, read):

        async def _flow() -> None:
            app.notify("not a size")
            await asking.wait()
            await app.push_screen_wait(AskScreen(TextQuestion("ASK AGAIN", lambda *_: ())))

        app.begin_flow(_flow)
        await until(pilot, lambda: "not a size" in read())
        later(app, SETTLES)
        asking.set()
        await until(pilot, lambda: "ASK AGAIN" in read())
        assert "not a size" in read()
        await app.push_screen(AskScreen(TextQuestion("ANOTHER", lambda *_: ())))
        await pilot.pause()
        assert "not a size" not in read()
        await pilot.press("escape", "escape")


NOTHING = "Key a does nothing here"


@pytest.mark.parametrize("key", ["j", "p", "o", "question_mark", "u"])
async def test_an_answer_to_a_key_goes_with_the_next_one(key):
    """ "Key R does nothing here" stood over the plan that R then opened."""
    async with view_state(frames.resilver()) as (_app, pilot, read):
        await pilot.press("a")
        assert NOTHING in read()
        await pilot.press(key)
        assert NOTHING not in read()
        await pilot.press("escape")
        assert NOTHING not in read()


async def test_an_answer_goes_with_what_is_typed_or_pasted_too():
    async with view_state(frames.resilver()) as (app, pilot, read):
        for typed in (events.Key("x", "x"), events.Paste("x")):
            await pilot.press("slash")
            app.answer("copied", 60)
            await until(pilot, lambda: "copied" in read())
            app.post_message(typed)
            await until(pilot, lambda: "copied" not in read())
            await pilot.press("escape")


async def test_a_message_that_is_no_answer_outlasts_keys():
    async with view_state(frames.resilver()) as (app, pilot, _read):
        app.notify("it failed", severity="error")
        await pilot.press("j", "d", "k")
        assert "it failed" in {message.message for message in app.messages}


async def test_only_the_newest_message_about_a_subject_is_shown():
    async with view_state(frames.resilver()) as (app, _pilot, _read):
        for text in ("the job stopped", "the job is over"):
            app.notify(text, about="job")
            app.notify(f"of nothing: {text}")
        said = [message.message for message in app.messages]
        assert said == [
            "of nothing: the job is over",
            "the job is over",
            "of nothing: the job stopped",
        ]
        app.withdraw("job")
        assert "the job is over" not in {message.message for message in app.messages}


async def test_the_refusal_of_a_flow_goes_once_a_flow_begins():
    """It stood on the main screen again after the flow that it had refused was left."""

    async def _flow() -> None:
        await app.push_screen_wait(AskScreen(TextQuestion("ASK", lambda *_: ())))

    async with view_state(frames.resilver()) as (app, pilot, read):
        app.notify("select a device", severity="error", about=FLOW)
        later(app, SETTLES)
        app.begin_flow(_flow)
        await until(pilot, lambda: " ASK" in read())
        await pilot.press("escape")
        assert "select a device" not in read()


async def test_a_message_follows_what_it_tells_and_stays_safe():
    now = ["begins"]
    async with view_state(frames.resilver()) as (app, pilot, read):
        app.notify("begins", follows=lambda: now[0])
        await until(pilot, lambda: "begins" in read())
        now[0] = ODD
        app.update_messages()
        await until(pilot, lambda: r"x\x1b[31m" in read())
        now[0] = ""
        app.update_messages()
        assert not list(app.messages)
