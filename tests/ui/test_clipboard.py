"""Copying by the terminal: the row at the cursor, or the command of a plan."""

from __future__ import annotations

from tests.records import replace
from tests.ui import frames
from tests.ui.actions.acting import acting
from tests.ui.fakes import view_state
from zconsole.ui.dialogs.confirm import ConfirmScreen
from zconsole.ui.dialogs.screens import PickScreen


async def test_of_a_what_if_the_command_is_copied_once_it_is_understood():
    async with acting("mirror-scrub", (120, 30)) as a:
        for typed in ("", "x", "nothing=4T", "mirror:2x"):
            await a.press("w", *typed, "ctrl+y")
            assert "nothing to copy here" in a.screen, typed
            await a.home()
        await a.press("w", *"mirror:2x4T", "ctrl+y")
        assert a.app.clipboard == "zconsole balance mirrors --add-vdev mirror:2x4T"


async def test_of_a_plan_the_command_is_copied():
    async with acting("mirror-scrub", (120, 30)) as a:
        await a.press("S", "g", "j", "enter")
        assert isinstance(a.app.screen, ConfirmScreen)
        said = await a.read(a.press("ctrl+y"))
        assert a.app.clipboard.startswith("zpool scrub")
        assert f"command sent to the terminal's clipboard: {a.app.clipboard}" in said


async def test_of_a_folded_menu_the_command_of_the_line_at_the_cursor_is_copied():
    async with acting("failed-disk", (200, 60)) as a:
        await a.to("bay05")
        await a.press("A", "g")
        screen = a.app.screen
        assert isinstance(screen, PickScreen)
        seen = set()
        for _ in range(screen.view.line_count()):
            a.app.copy_to_clipboard("")
            said = " ".join((await a.read(a.press("y"))).split())
            copied = a.app.clipboard
            assert bool(copied) == ("Runs:" in said), said
            assert not copied or f"Runs: {copied}" in said, said
            seen.add(bool(copied))
            await a.press("j")
        assert seen == {True, False}


async def test_in_tmux_the_setting_that_lets_it_through_is_named():
    async with view_state(frames.healthy(), in_tmux=True) as (app, pilot, _):
        await pilot.press("y")
        (said,) = app.messages
        assert "tmux set -s set-clipboard on" in said.message


async def test_of_tunables_the_command_is_copied():
    async with acting("mirror-scrub", (120, 30)) as a:
        await a.press("T", "F", "tab", "enter", "escape", "N", "y")
        assert a.app.clipboard.startswith("zconsole tunables set zfs_")
        await a.press("escape", "U", "y")
        assert a.app.clipboard.startswith("zconsole tunables restore")


async def test_where_there_is_nothing_to_copy_it_says_so():
    async with view_state(frames.healthy()) as (_, pilot, read):
        await pilot.press("question_mark", "y")
        assert "nothing to copy here" in read()


async def test_what_is_copied_holds_nothing_a_terminal_acts_on():
    async with view_state(frames.healthy()) as (app, pilot, _):
        item = app.devices.current
        vdev = replace(item.row.vdev, name="a\x1b]0;b\x07\nrm -rf", path=None, guid=None)
        app.devices._items = (item._replace(row=item.row._replace(vdev=vdev)),)
        await pilot.press("y")
        assert app.clipboard == r"a\x1b]0;b\x07\x0arm -rf"
