"""Keys typed before a screen appears go to that screen, never to the one behind it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from textual import events

from tests.ui.actions.acting import RUN, acting, commands
from tests.ui.actions.test_hold_flow import SCENARIO
from tests.ui.fakes import until
from zconsole.errors import ZconsoleError
from zconsole.ui.dialogs.confirm import ConfirmScreen
from zconsole.ui.dialogs.screens import AskScreen, PickScreen, TextQuestion
from zconsole.ui.keys import character_of

COMING = "Reading the pool  Esc back"


def type_at_once(a, *keys):
    """Send keys as a slow link delivers them, in one packet."""
    for key in keys:
        a.app.post_message(events.Key(key, character_of(key)))


def hang(a):
    """Make the machine's facts wait until the returned event is set."""
    answered, ask = asyncio.Event(), a.backend.ask

    async def _ask(*asked):
        await answered.wait()
        return await ask(*asked)

    a.use(replace(a.backend, ask=_ask))
    return answered


async def reacts_after_escape(a) -> bool:
    """Leave the wait for a screen; returns whether the console behind it is back and reacts."""
    await until(a.pilot, lambda: COMING in a.screen)
    await a.pilot.press("escape")
    await a.pilot.press("down")
    await until(a.pilot, lambda: a.app.devices.cursor == 1)
    return a.app.main_on_top


async def test_a_paste_in_the_packet_of_the_key_that_opens_its_prompt_is_taken():
    async with acting(SCENARIO) as a:
        for keys in (("w",), ("slash",), ("T", "V")):
            type_at_once(a, *keys)
            a.app.post_message(events.Paste("8T"))
            type_at_once(a, "x")
            await a.rest()
            assert a.app.focused.value == "8Tx", keys
            await a.home()
            await a.press("escape")


async def test_keys_and_a_paste_typed_before_a_plan_is_shown_lead_to_it_and_do_not_run_it():
    async with acting("mirror-scrub") as a:
        type_at_once(a, "S", "g", "down", "enter")
        a.app.post_message(events.Paste("\n\n"))
        await a.rest()
        assert isinstance(a.app.screen, ConfirmScreen)
        assert "zpool scrub -p mirrors" in a.screen
        await a.home()
        type_at_once(a, "S", "g", "down", "enter", "right", "enter")
        await until(a.pilot, lambda: isinstance(a.app.screen, ConfirmScreen))
        await a.rest()
        assert commands(a) == []


async def test_a_menu_is_there_before_the_machine_answers_and_has_the_keys():
    """On a busy machine, the facts of its disks took 25 seconds."""
    async with acting("mirror-scrub") as a:
        await a.to("WD80EFZZ")
        before = a.app.devices.current.key
        # A line that turns out to be possible is inserted among the others: the cursor stays on its
        # line.
        for flow, shown, row in (
            ("R", "REPLACE", 2),
            ("S", "Scrub and resilver", 2),
            ("A", "ACTIONS", 4),
        ):
            answered = hang(a)
            await a.pilot.press(flow)
            await until(a.pilot, lambda: isinstance(a.app.screen, PickScreen))
            await until(a.pilot, lambda: shown in a.screen and "reading the pool" in a.screen)  # noqa: B023
            await a.pilot.press("g", "down", "s", "down")
            answered.set()
            await until(a.pilot, lambda: "reading the pool" not in a.screen)
            await until(a.pilot, lambda: a.app.screen.view.cursor == row)  # noqa: B023
            assert shown in await a.read(a.rest())
            await a.home()
        assert a.app.devices.current.key == before
        assert a.app.devices.arrangement.sort == "tree"


async def test_what_was_picked_is_planned_once_the_machine_has_answered():
    async with acting("mirror-scrub") as a:
        answered = hang(a)
        await a.pilot.press("S", "g", "down", "enter", "tab", "enter")
        await until(a.pilot, lambda: isinstance(a.app.screen, PickScreen) and a.app.screen.holds)
        answered.set()
        await until(a.pilot, lambda: isinstance(a.app.screen, ConfirmScreen))
        assert "zpool scrub -p mirrors" in await a.read(a.rest())
        assert commands(a) == [], "keys typed before a plan was there do not run it"


async def test_a_menu_that_is_not_filled_in_has_its_keys_and_help_and_escape_leaves_it():
    async with acting("mirror-scrub") as a:
        await a.to("WD80EFZZ")
        before = a.app.devices.cursor
        hang(a)
        for keys in (("R",), ("R", "down"), ("S",), ("S", "enter"), ("A", "down")):
            await a.pilot.press(*keys)
            await until(a.pilot, lambda: isinstance(a.app.screen, PickScreen))
            await a.pilot.press("escape", "up")
            await until(a.pilot, lambda: a.app.main_on_top and a.app.devices.cursor == before - 1)
            await a.pilot.press("down")
        for flow in "SA":
            await a.pilot.press(flow)
            await until(a.pilot, lambda: isinstance(a.app.screen, PickScreen))
            await a.pilot.press("g", "down")
            await until(a.pilot, lambda: a.app.screen.view.cursor == 1)
            await a.pilot.press("question_mark")
            await until(a.pilot, lambda: "HELP" in a.screen)
            await a.pilot.press("escape", "escape")
        assert commands(a) == []


async def test_what_is_typed_into_a_prompt_that_is_still_to_come_is_typed_there():
    async with acting("resilver") as a:
        type_at_once(a, "T", "V", *"15ms")
        await until(a.pilot, lambda: isinstance(a.app.screen, AskScreen))
        await a.rest()
        assert a.app.focused.value == "15ms"


async def test_keys_behind_a_menu_that_cannot_be_shown_act_on_nothing():
    async def fail(*_):
        raise ZconsoleError("the machine does not answer")

    async with acting("mirror-scrub") as a:
        a.use(replace(a.backend, ask=fail))
        await a.to("WD80EFZZ")
        before = a.app.devices.cursor
        type_at_once(a, "R", "down", "q")
        said = await a.read(a.rest())
        assert "the machine does not answer" in said
        assert a.app.devices.cursor == before
        await a.press("up")
        assert a.app.devices.cursor == before - 1


async def test_keys_behind_one_that_opens_a_screen_leave_or_scroll_that_screen():
    async with acting("mirror-scrub", (80, 24)) as a:
        type_at_once(a, "S", "escape", "question_mark")
        assert "HELP" in await a.read(a.rest())
        await a.home()
        type_at_once(a, "question_mark", "G")
        assert "stop and return to the shell" in await a.read(a.rest())


async def test_escape_while_the_menu_is_being_drawn_closes_the_menu():
    async with acting("mirror-scrub") as a:
        type_at_once(a, "S")
        while a.app.main_on_top:
            await asyncio.sleep(0)
        assert not a.app.screen.composed
        type_at_once(a, "escape")
        await until(a.pilot, lambda: a.app.main_on_top)
        await a.press("down")  # it waits for the flow to end
        await until(a.pilot, lambda: a.app.devices.cursor == 1)


async def test_a_menu_that_is_being_closed_draws_no_more():
    """A worker that ends meanwhile asks it to, when its widgets are gone already."""
    async with acting("mirror-scrub") as a:
        await a.press("S")
        menu = a.app.screen
        menu.dismiss(None)
        while menu.is_attached:
            menu.update()
            await asyncio.sleep(0)
        assert a.app.main_on_top


async def test_escape_gives_up_waiting_for_the_next_screen_of_a_flow():
    async with acting("mirror-scrub") as a:
        await a.press("S", "g", "down")
        hang(a)
        await a.pilot.press("enter")
        assert await reacts_after_escape(a)


async def test_keys_that_wait_for_a_menu_do_not_answer_whether_to_quit():
    async with acting(SCENARIO, (80, 24)) as a:
        await a.press("T", "V", *"500ms", "enter", *RUN, "escape")
        await a.press("escape")
        hang(a)
        await a.pilot.press("S", "right", "enter", "ctrl+c")
        assert "Quit?" in await a.read(a.rest())
        assert a.app.focused.id == "cancel"
        await a.pilot.press("escape")
        await until(a.pilot, lambda: isinstance(a.app.screen, PickScreen))
        await a.pilot.press("escape", "down")
        await until(a.pilot, lambda: a.app.devices.cursor == 1)


@pytest.mark.parametrize(("key", "shown"), [("T", "TUNABLES"), ("o", "POOL  "), ("A", "ACTIONS")])
async def test_keys_wait_for_the_first_sample(key, shown):
    async with acting("mirror-scrub", sampled=False) as a:
        type_at_once(a, key)
        await a.pilot.pause()
        assert a.app.main_on_top
        a.feed.step()
        await until(a.pilot, lambda: not a.app.main_on_top)
        assert shown in await a.read(a.rest())


async def test_the_wait_for_the_first_sample_is_told_and_given_up():
    async with acting("mirror-scrub", sampled=False) as a:
        type_at_once(a, "T", "down")
        await until(a.pilot, lambda: COMING in a.screen)
        await a.pilot.press("escape")
        assert COMING not in a.screen
        a.feed.step()
        await a.rest()
        assert a.app.main_on_top


async def test_before_the_first_sample_the_console_can_be_left_and_explains_its_keys():
    async with acting("mirror-scrub", sampled=False) as a:
        assert "HELP" in await a.read(a.press("question_mark"))
        await a.press("escape", "q")
        assert not a.app.is_running


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("1", "2", "3", "4", "5", "backspace", "9"), "12349"),
        (("1", "2", "3", "left", "7"), "1273"),
        (("2", "X", "backspace", "T"), "2T"),
        (("1", "home", "2", "end", "3", "delete"), "213"),
    ],
)
async def test_keys_of_one_packet_edit_a_text_in_their_order(keys, value):
    async with acting(SCENARIO) as a:
        await a.press("w")
        type_at_once(a, *keys)
        await a.rest()
        assert a.app.focused.value == value


async def test_a_key_after_enter_in_one_packet_is_not_in_the_answer():
    async with acting(SCENARIO) as a:
        answers = []
        a.app.push_screen(AskScreen(TextQuestion("Which", lambda *_: ())), answers.append)
        await a.rest()
        type_at_once(a, "1", "2", "enter", "3")
        await a.rest()
        assert answers == ["12"]
