"""The single table of keys: what a key means, where it acts, and where it is shown."""

from __future__ import annotations

from collections import defaultdict

from textual.command import CommandPalette
from textual.dom import DOMNode

from tests.table import rows
from tests.ui import frames
from tests.ui.actions.acting import Acting, acting
from tests.ui.drawn import flat
from tests.ui.fakes import until, view_state
from tests.ui.rebalance.steps import settled, to_options
from zconsole.ui.actions.add_flow import DevicesScreen
from zconsole.ui.app import Console
from zconsole.ui.dialogs.screens import Dialog, HelpScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.keys import GROUPS, MAIN_ONLY, SHIPPED, Key, keys_of, shown
from zconsole.ui.panes.chassis import ChassisScreen
from zconsole.ui.panes.help import legend_lines
from zconsole.ui.rebalance.folder_screen import FoldersScreen
from zconsole.ui.rebalance.job_screen import JobScreen
from zconsole.ui.swap.swap_screen import DemoSwapScreen, SwapScreen
from zconsole.ui.widgets.draw import ROLES, width_of
from zconsole.ui.widgets.graph import ASCII

BY_PLACE = {"enter", "space", "up", "down", "left", "right", "h", "j", "k", "l", "question_mark"}
"""Keys that act on what the cursor or focus is on; ``?`` in the help switches to its other part."""
LATE = (ChassisScreen, DevicesScreen, FoldersScreen, JobScreen, SwapScreen, DemoSwapScreen)
"""Screens whose modules are loaded when they are opened."""
NOTHING = "does nothing here"
SCREENS = (
    *("Menu", "Devices", "Answer", "Job", "Tunables", "Plan", "Result", "Buttons", "Directories"),
    *("Overview", "Chassis", "Help", "Swap", "Demo's hands"),
)


def dialogs(of: type = Dialog) -> list[type[Dialog]]:
    """Return every screen that opens over the main one."""
    return [of, *(found for each in of.__subclasses__() for found in dialogs(each))]


def meanings() -> dict[str, set[str]]:
    """Return what each key does, over all screens."""
    found = defaultdict(set)
    every = [
        *SHIPPED.looks,
        *SHIPPED.actions,
        *(key for group in SCREENS for key in keys_of(group)),
    ]
    for key in every:
        for name in key.keys:
            found[name].add(key.action.removeprefix("screen."))
    return found


def test_no_key_has_two_meanings():
    assert {key: does for key, does in meanings().items() if len(does) > 1}.keys() <= BY_PLACE


@rows("screen", dialogs())
def test_every_key_of_a_screen_is_in_the_table(screen):
    bound = screen.__dict__.get("BINDINGS", ())
    rows = {key for group in screen.groups for key in keys_of(group)}
    assert {b.action for b in bound} <= {key.action for key in rows}
    assert all(key.text for key in rows)


def test_every_group_of_the_table_is_of_some_screen():
    named = {group for screen in (*dialogs(), *LATE) for group in screen.groups}
    assert named >= set(SCREENS)
    assert not named & {*GROUPS, "Actions"}


def test_uppercase_changes_something_and_lowercase_does_not():
    moves = {"G", "L"}
    for key in (*SHIPPED.looks, *SHIPPED.actions):
        for name in key.keys:
            if len(name) == 1 and name.isalpha() and name not in moves:
                assert name.isupper() == (key in SHIPPED.actions), name


OPENED = {
    "help": ("question_mark",),
    "overview": ("o",),
    "themes": ("t",),
    "what if": ("w",),
    "chassis": ("c",),
    "menu": ("A",),
    "scans": ("S",),
    "plan": ("S", "j", "enter"),
    "tunables": ("T",),
    "value": ("T", "enter"),
    "preset": ("T", "F"),
    "jobs": ("B",),
    "directories": ("B", "enter"),
    "palette": ("ctrl+p",),
}
"""Screens over the main one, and the keys that open them."""
LOCAL = [key for key in (*SHIPPED.looks, *SHIPPED.actions) if not key.everywhere]


def state_of(app: Console) -> object:
    """Return the state that keys of the main screen change."""
    screen = app.main_screen
    return (
        app.view_state.pool,
        app.view_state.frozen is None,
        app.view_state.look,
        app.feed.interval,
        dict(screen.chosen),
        screen.zoomed,
        screen.devices.arrangement,
        set(screen.devices.expanded),
        screen.devices.cursor,
        app.theme,
    )


async def test_no_key_reaches_the_main_screen_through_another():
    async with acting("mirror-scrub") as a:
        await a.press("j")
        for opened, keys in OPENED.items():
            a.app.messages.said.clear()
            await a.press(*keys)
            assert await leaks(a, opened) == {}, opened
            await a.home()


async def test_no_key_reaches_it_through_the_screens_of_a_rebalance():
    async with acting("added-vdev") as a:
        await to_options(a)
        for opened, on in (("options", ("enter",)), ("plan", ("tab", "enter")), ("job", ())):
            a.app.messages.said.clear()
            assert await leaks(a, opened) == {}, opened
            await a.press(*on)
            await settled(a)


async def leaks(a: Acting, opened: str) -> dict[str, list[object]]:
    """Return the changes made by keys of the main screen that the top screen does not use.

    They are pressed without a rest between them, so that a change may be told of the next key.
    """
    found = {}
    over, depth = a.app.screen, len(a.app.screen_stack)
    before = state_of(a.app)
    names = [name for key in (*LOCAL, *keys_of("Move")) for name in key.keys]
    for name in (*(each for each in names if not own(over, each)), ""):
        if a.app.screen is over:
            await (a.app._press_keys([name]) if name else a.pilot.pause())
            said = [text for text in told(a) if NOTHING not in text]
            screens = [] if len(a.app.screen_stack) == depth else [a.app.screen]
            if other := [*screens, *said, *changed(before, state_of(a.app), opened)]:
                found[name] = other
    return found


def told(a: Acting) -> list[str]:
    return [message.message for message in a.app.messages]


async def test_keys_that_do_nothing_say_so_once_on_every_screen():
    async with acting("mirror-scrub") as a:
        for keys in ("", "o", "c", "S", "T", "A", "question_mark", "t"):
            await a.press(*keys.split(), *(("j", "enter") if keys == "S" else ()))
            await a.press("d", "d", "d")
            assert told(a) == [f"Key d {NOTHING}; ? lists the keys"], keys
            assert f"Key d {NOTHING}" in a.screen
            await a.press("f9")  # replaced in place: random keys don't pile up messages
            assert told(a) == [f"Key F9 {NOTHING}; ? lists the keys"], keys
            a.app.messages.said.clear()
            await a.home()
        for opened, key in (
            ((), "right_square_bracket"),
            ((), "full_stop"),
            (("c",), "A"),
            (("c",), "T"),
            (("S", "j", "enter"), "O"),
            (("S", "j", "enter"), "Z"),
            (("tab",), "space"),
            (("tab", "tab"), "enter"),
        ):
            await a.press(*opened, key)
            assert told(a) == [f"Key {shown(key)} {NOTHING}; ? lists the keys"], (opened, key)
            a.app.messages.said.clear()
            await a.home()
            a.app.devices.focus()


def own(screen: DOMNode, name: str) -> bool:
    """Return whether the top screen has its own use for a key."""
    bound = screen._bindings.key_to_bindings
    return name in bound or (name == "enter") or isinstance(screen, CommandPalette)


def changed(before: object, after: object, opened: str) -> list[object]:
    """Return what has changed, except the theme while themes are previewed."""
    pairs = list(zip(before, after, strict=True))  # type: ignore[call-overload]
    return [now for was, now in (pairs[:-1] if opened == "themes" else pairs) if was != now]


async def test_each_screen_names_esc_in_its_last_line_and_has_help_of_its_own_keys():
    async with acting("mirror-scrub", (80, 40)) as a:
        for opened in sorted(OPENED.keys() - {"palette"}):
            await a.home()
            for key in OPENED[opened]:
                await a.press(key)
                await until(a.pilot, lambda: isinstance(a.app.screen, Dialog))
            over = a.app.screen
            for size in ((60, 15), (80, 24), (80, 40)):
                said = await a.read(a.resize(size))
                assert "Esc" in said.rstrip().splitlines()[-1], (opened, size)
            if opened in ("help", "value", "what if"):
                continue
            said = await a.read(a.press("question_mark"))
            assert isinstance(a.app.screen, HelpScreen), opened
            assert [text for text in texts(over) if text not in flat(said)] == [], opened
            assert "On every screen" in said, opened
            await a.press("escape")
            assert a.app.screen is over, opened


def texts(screen: Dialog) -> list[str]:
    return [key.text for group in screen.help_groups for key in keys_of(group)]


async def test_where_text_is_typed_f1_is_the_help_and_no_key_is_told_of():
    async with acting("mirror-scrub") as a:
        for opened in (OPENED["value"], OPENED["what if"], ("T", "V"), ("slash",), ("o", "slash")):
            said = await a.read(a.press(*opened))
            assert "F1 help" in said.splitlines()[-1], opened
            await a.press(*"dZ", "f9")
            assert not any(NOTHING in text for text in told(a)), opened
            await a.press("question_mark")
            assert not isinstance(a.app.screen, HelpScreen), opened
            await a.press("f1")
            assert isinstance(a.app.screen, HelpScreen), opened
            await a.home()
            await a.press("escape")


async def test_the_legend_is_behind_the_help_and_scrolls():
    async with view_state(frames.resilver(), size=(60, 15)) as (_, pilot, read):
        await pilot.press("question_mark", "question_mark")
        assert read().startswith(" LEGEND")
        seen = read()
        for _ in range(8):
            await pilot.press("pagedown")
            seen += read()
        for word in ("attention", "danger", "scale 64M", "LAT", "faulted, unavailable", "sample"):
            assert word in seen, word
        assert "▁▂▃▄▅▆▇█" in seen
        await pilot.press("question_mark")
        assert read().startswith(" HELP")


def test_the_legend_has_every_color_with_a_meaning_in_that_color():
    said = {span.role: span.text for line in legend_lines(DisplayFormat(), 80) for span in line}
    elsewhere = {"", "track", "title", "focus", "tab"}
    assert said.keys() >= {r for r in ROLES if not r.startswith("badge-")} - elsewhere


@rows("width", [54, 60, 80, 200])
def test_the_legend_fits_and_is_ascii_where_all_else_is(width):
    lines = legend_lines(DisplayFormat(ASCII), width, 1.0)
    assert all(width_of(line) <= width for line in lines)
    text = "".join(span.text for line in lines for span in line)
    assert text.isascii()
    assert "the last 20s" in flat(text)


def test_actions_of_the_main_screen_are_known_by_name():
    assert {"pause", "overview", "act", "screen.pane"} <= MAIN_ONLY
    assert not {"help", "back", "leave", "move"} & MAIN_ONLY
    assert shown(Key(("ctrl+p",), "", "", "").keys[0]) == "^P"


async def test_the_help_of_a_plan_tells_what_its_keys_do_there_and_of_enter():
    async with acting("mirror-scrub", size=(80, 60)) as a:
        await a.press("S", "g", "j", "enter")
        said = await a.read(a.press("question_mark"))
        assert "press the button in focus" in said
        assert "to the next part of the screen, or the next button" in said
        for of_main in ("next pane", "clear the filter", "GUID at the cursor", "quit; on other"):
            assert of_main not in said


def test_the_meanings_of_the_legend_stand_in_one_column():
    lines = ["".join(span.text for span in each) for each in legend_lines(DisplayFormat(), 100)]
    meant = (
        "restored, or",
        "faulted, unavailable",
        "errors since",
        "share of time",
        "history, the",
    )
    columns = [line.index(said) for line in lines for said in meant if said in line]
    assert len(columns) == len(meant)
    assert len(set(columns)) == 1


async def test_the_key_that_began_a_flow_does_nothing_on_its_screens_without_a_word():
    """After Esc in a plan, the message about R stood in the list that R had opened."""
    async with acting("mirror-scrub") as a:
        for key in ("R", "S", "T"):
            await a.press("j", "j", "j", key, key)
            depth = len(a.app.screen_stack)
            assert (told(a), depth) == ([], 2), key
            await a.press("d")
            assert told(a) == [f"Key d {NOTHING}; ? lists the keys"]
            await a.home()
