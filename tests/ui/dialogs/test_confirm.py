"""The screen between a plan and its run: focus, buttons, and the word to type."""

from __future__ import annotations

import re

from textual.events import Key
from textual.widgets import Input

from tests.table import rows
from tests.ui.actions.acting import Acting, acting, pick
from zconsole.ui.dialogs.confirm import Confirmation, ConfirmScreen
from zconsole.ui.widgets.draw import Span


def asking(a: Acting, *ways: str, typed: str | None = None) -> list[str]:
    """Open a question with these ways to do it; returns the list to which runs are added."""
    ran: list[str] = []

    def _way(title: str) -> Confirmation:
        async def _run(word: str | None):
            ran.append(f"{title} {word}")
            yield Span("done")

        return Confirmation(title, lambda *_: [(Span("body"),)], _run, typed)

    a.app.push_screen(ConfirmScreen([_way(title) for title in ways]))
    return ran


async def test_what_is_asked_is_as_wide_as_the_screen():
    async with acting("mirror-scrub", size=(100, 30)) as a:
        way = Confirmation("one", lambda _, width: [(Span(f"in {width} cells"),)], None)
        a.app.push_screen(ConfirmScreen([way]))
        await a.rest()
        assert "in 100 cells" in a.screen


async def test_left_and_right_move_a_pointer_among_the_buttons_which_moves_none():
    async with acting("mirror-scrub") as a:
        ran = asking(a, "one", "two")
        await a.rest()
        seen = [a.app.screen.focused.id]
        for key in ("right", "right", "right", "left", "left", "left"):
            await a.press(key)
            seen.append(a.app.screen.focused.id)
        assert seen == ["cancel", "run", "other", "other", "run", "cancel", "cancel"]
        assert ran == []
        seen = [await a.read(a.press(*keys)) for keys in ((), ("right",), ("right",))]
        rows = [next(line for line in text.splitlines() if "Cancel" in line) for text in seen]
        assert [row.split("›")[1].split()[0] for row in rows] == ["Cancel", "Run", "Another"]
        assert [row.count("›") for row in rows] == [1, 1, 1]
        assert len({row.replace("›", " ") for row in rows}) == 1


async def test_a_button_is_pressed_by_enter_in_the_same_packet_as_the_way_to_it():
    async with acting("mirror-scrub") as a:
        for move in ("right", "tab"):
            ran = asking(a, "one", "two")
            await a.rest()
            for key in (move, "enter"):  # no key waits for the effect of the one before
                a.app.post_message(Key(key, None))
            await a.rest()
            assert ran == ["one None"], move
            await a.home()


async def test_a_word_is_typed_into_its_field_wherever_the_focus_is():
    async with acting("mirror-scrub") as a:
        for moves in ((), ("tab",), ("right",), ("right", "right"), ("shift+tab",)):
            ran = asking(a, "one", "two", typed="vjq ?y1")
            await a.rest()
            await a.press(*moves)
            await a.press("v", "j", "q", "space", "question_mark", "y", "1")
            assert a.app.screen.query_one("#typed", Input).value == "vjq ?y1"
            assert a.app.screen.confirmation.title == "one"
            await a.press("enter")
            assert ran == ["one vjq ?y1"], moves
            await a.home()
        asking(a, "one", "two", typed="tank")
        await a.rest()
        await a.press("right", "right", "enter")
        assert a.app.screen.confirmation.title == "two", "another way has a button"


async def test_another_word_runs_nothing_and_says_what_to_type():
    async with acting("mirror-scrub") as a:
        ran = asking(a, "one", typed="tank")
        assert 'Type "tank" to confirm' in await a.read(a.rest())
        assert 'Type "tank" first' in await a.read(a.press("right", "enter"))
        assert 'Type "tank" first' not in await a.read(a.press("t"))
        said = await a.read(a.press("enter"))
        assert 'That is not "tank"' in said
        assert 'Type "tank" to confirm' in said
        assert "Esc cancel" in said
        assert ran == []


@rows("word", ["tank", "ata-WDC_WD40EFRX-68N32N0_TLUULE50", f"nvme-Samsung_SSD_970_EVO_{'x' * 30}"])
@rows("width", [60, 80, 120])
async def test_the_word_to_type_is_in_sight_whole_and_the_field_is_not_cut(word, width):
    """The field showed ``type`` and blanks, and the last line the begin of the word."""
    async with acting("mirror-scrub", (width, 24)) as a:
        asking(a, "one", "two", typed=word)
        screen = await a.read(a.rest())
        field = next(line for line in screen.splitlines() if "Cancel" in line)
        whole = f'type "{word}" to confirm'
        assert whole in field or "type it here" in field
        unbroken = "".join(screen.split())
        assert f'Type"{word}"toconfirm' in unbroken
        assert "Esc cancel" in screen
        await a.press("escape")


async def test_left_and_right_leave_the_field_at_its_ends_and_nothing_typed_is_said_so():
    async with acting("resilver") as a:
        ran = asking(a, "one", typed="tank")
        await a.rest()
        assert 'Type "tank" first' in await a.read(a.press("right", "enter"))
        assert a.app.focused.id == "typed"
        await a.press("right")
        assert a.app.focused.id == "run"
        await a.press("shift+tab", *"tank", "left")
        assert a.app.focused.id == "typed", "it moves through what is typed"
        await a.press("home", "left")
        assert a.app.focused.id == "cancel"
        await a.press("shift+tab", "shift+tab")
        assert ran == []


async def test_the_preconditions_are_one_line_until_enter_on_the_text_shows_them():
    async with acting("failed-disk", (80, 24)) as a:
        await a.to("bay05")
        said = await a.read(a.press("R", "enter", *["pagedown"] * 3))
        assert "preconditions, rechecked at run (Shift-Tab, Enter: show)" in said
        assert "no checkpoint exists" not in said
        said = await a.read(a.press("shift+tab"))
        assert re.search(r"› \d+ preconditions, rechecked at run", said)
        assert "Enter show preconditions  Tab buttons" in said
        head = "› Preconditions (rechecked at run)"
        assert head in await a.read(a.press("enter")), "the focus is still on the text"
        assert head not in await a.read(a.press("tab"))
        said = await a.read(a.press("shift+tab", "pageup", "pagedown", "pagedown"))
        assert "no checkpoint exists" in said
        assert "Tab goes to the buttons" in await a.read(a.press("enter"))


async def test_shift_tab_and_enter_show_the_preconditions_from_wherever_the_focus_is():
    """Earlier, they canceled from the button to run."""
    async with acting("healthy") as a:
        await a.to("bay04")
        for there in (("tab",), ("right", "right")):
            await a.press("A")
            await pick(a, "Take it offline")
            await a.press(*there, "shift+tab", "enter")
            assert "Preconditions (rechecked at run)" in a.screen, there
            assert "does nothing here" not in a.screen, there
            await a.home()


async def test_enter_closes_a_result_but_nothing_that_runs():
    async with acting("mirror-scrub") as a:
        asking(a, "one", "two")
        await a.rest()
        await a.press("right", "enter")
        assert "done" in a.screen
        assert "Enter close" in a.screen
        await a.press("enter")
        assert not isinstance(a.app.screen, ConfirmScreen)


async def test_keys_that_do_nothing_say_so_and_the_help_tells_of_those_that_there_are():
    async with acting("mirror-scrub", (80, 40)) as a:
        asking(a, "one", typed="tank")
        assert "F1 help  Esc cancel" in await a.read(a.rest())
        assert " HELP" in await a.read(a.press("f1"))
        await a.home()
        asking(a, "one")
        assert "? help  Esc cancel" in await a.read(a.rest())
        said = await a.read(a.press("v"))
        assert "There is nothing else to choose from here" in said
        assert "Esc cancel" in said
        assert "Tab goes to the buttons" in await a.read(a.press("tab", "tab", "enter"))
        await a.press("tab")
        assert a.app.focused.id == "cancel"
        asked = await a.read(a.press("question_mark"))
        assert "another way" not in asked
        assert "press the button in focus" in asked
        await a.press("escape", "right", "enter")
        over = await a.read(a.press("question_mark"))
        assert "press the button in focus" not in over
        assert "close the result" in over


async def test_the_button_in_focus_stands_out():
    async with acting("mirror-scrub") as a:
        asking(a, "one")
        for theme in ("dark", "ansi16", "high-contrast"):
            await a.rest()
            a.app.theme = theme
            await a.rest()
            screen = a.app.screen
            looks = [screen.query_one(f"#{name}").rich_style for name in ("cancel", "run")]
            assert looks[0].reverse != looks[1].reverse, theme
