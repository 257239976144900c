"""zpool's own words: read, filtered, copied and saved; and why there are none."""

from __future__ import annotations

import pytest

from tests.ui import frames
from tests.ui.actions.acting import acting
from tests.ui.fakes import FakeFeed, until, view_state
from zconsole.ui.dialogs.zpool_screen import ZpoolScreen
from zconsole.zfs.zpool_output import zpool_output

ALL = ("status", "iostat", "events")


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)])
async def test_all_that_zpool_says_is_on_one_screen(size):
    async with acting("resilver", size) as a:
        await a.press("d")
        assert isinstance(a.app.screen, ZpoolScreen)
        assert "ZPOOL OUTPUT  tank" in a.screen
        assert "$ zpool status -v tank" in a.screen
        assert "state: DEGRADED" in a.screen
        await a.press("G")
        assert "sysevent.fs.zfs.resilver_start" in a.screen
        await a.press("escape")
        assert a.app.main_on_top


async def test_a_filter_leaves_the_lines_with_its_text_and_the_commands():
    async with acting("resilver", (80, 24)) as a:
        await a.press("d", "slash", *"BAY03", "enter")
        lines = a.screen.splitlines()
        assert lines[0].strip() == "ZPOOL OUTPUT  tank  only BAY03"
        assert [line for line in lines if line.lstrip().startswith("$")] == [
            " $ zpool status -v tank",
            " $ zpool iostat -v tank  # averages since boot",
            " $ zpool events tank",
        ]
        assert sum("bay03" in line for line in lines) == 2
        assert not any("bay04" in line for line in lines)
        await a.press("escape")
        assert isinstance(a.app.screen, ZpoolScreen)
        assert "bay04" in a.screen


async def test_one_output_or_all_are_copied_with_their_lines():
    async with acting("resilver", (80, 24)) as a:
        texts = [output.text for output in a.feed.world.zpool_outputs("tank")]
        await a.press("d", "y")
        for word in ("all", *ALL):
            assert word in a.screen
        said = await a.read(a.press("enter"))
        assert a.app.clipboard == "\n\n".join(texts)
        assert (
            f"sent to the terminal's clipboard: {a.app.clipboard.count(chr(10)) + 1} lines" in said
        )
        await a.press("y", "j", "j", "enter")
        assert a.app.clipboard == texts[1]
        assert a.app.clipboard.startswith("$ zpool iostat -v tank  # averages since boot\n")


async def test_it_is_saved_as_a_new_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with acting("resilver", (120, 40)) as a:
        await a.press("d", "r")
        await until(a.pilot, lambda: list(tmp_path.iterdir()))
        (saved,) = tmp_path.iterdir()
        assert saved.suffix == ".txt"
        outputs = a.feed.world.zpool_outputs("tank")
        assert saved.read_text("utf-8") == "\n\n".join(each.text for each in outputs) + "\n"


async def test_where_zpool_cannot_be_asked_the_key_says_why():
    async with view_state(frames.healthy()) as (app, pilot, read):
        await pilot.press("d")
        await until(pilot, lambda: app.main_on_top)
        assert "backup is suspended" in read()


class Feed(FakeFeed):
    async def zpool_outputs(self, pool):
        return (zpool_output("zpool status -v", "a\x1b[2Jb \x9bc\n\tlong " + "word " * 60),)


async def test_what_a_terminal_would_act_on_is_shown_and_copied_as_its_code():
    feed = Feed((frames.healthy(),))
    async with view_state(feed=feed, size=(60, 15)) as (app, pilot, read):
        await pilot.press("d")
        await until(pilot, lambda: r"a\x1b[2Jb \x9bc" in read())
        assert read().count("word") == 60  # wrapped, not cut
        await pilot.press("y")
        assert app.clipboard.startswith("$ zpool status -v\na\\x1b[2Jb \\x9bc\n        long word ")
