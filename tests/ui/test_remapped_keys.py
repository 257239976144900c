"""Keys from the configuration: bound, shown in footer and help, and refused on a clash."""

from __future__ import annotations

import ast
import dataclasses
import re
from copy import deepcopy
from pathlib import Path

import pytest

from tests.table import rows
from tests.ui.actions.acting import acting
from tests.ui.drawn import plain
from tests.ui.fakes import screen_text
from tests.ui.rebalance.steps import SCENARIO, to_tree
from tests.ui.test_start import UTF8, made
from tests.unit.actions.pools import at, disk, group, pool, top
from tests.unit.source import modules, tree_of
from zconsole.actions.replace import plan_replace
from zconsole.actions.scrub import NO_WAY_TO_STOP
from zconsole.actions.target import Swap as Pair
from zconsole.cli.config import FAULT
from zconsole.config.file import Config, WrongEntry
from zconsole.keyed_text import KeyedText
from zconsole.ui.actions.plan_lines import plan_lines
from zconsole.ui.dialogs.screens import HelpScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.keys import SHIPPED, key_name, shown

PATH = Path("/nonexistent/config.toml")


def remapped(**keys):
    """Return the resulting keys of actions, and the entries that are refused."""
    table, wrong = SHIPPED.remapped({name.replace("_", "-"): each for name, each in keys.items()})
    return {key.title: key.keys for key in table.rows}, list(wrong)


def test_every_key_has_a_name_of_its_own():
    titles = [key.title for key in SHIPPED.rows]
    assert len(titles) == len(set(titles))


@rows("key", sorted({name for key in SHIPPED.rows for name in key.keys}))
def test_every_key_can_be_written_as_it_is_shown(key):
    if key not in ("tab", "shift+tab", "enter", "ctrl+c"):
        assert key_name(shown(key)) == key


@rows("word", ["", "FF", "^I", "^M", "^Q", "ctrl+alt+x", "F13", "\x1b", "\u200b"])
def test_what_is_no_key_is_refused(word):
    with pytest.raises(ValueError, match="is not a key; write it as in the help"):
        key_name(word)


def test_a_clash_is_told_with_the_other_name_and_the_key_stays():
    keys, wrong = remapped(replace=["T"], units=["e"])
    assert wrong == [("replace", "T is also the key of tunables")]
    assert (keys["replace"], keys["units"]) == (("R",), ("e",))


def test_two_actions_can_swap_keys():
    keys, wrong = remapped(replace=["T"], tunables=["R"])
    assert (keys["replace"], keys["tunables"], wrong) == (("T",), ("R",), [])


def test_two_actions_cannot_get_one_new_key():
    _, wrong = remapped(replace=["F"], units=["F"])
    assert {title for title, _ in wrong} == {"replace", "units"}


@rows("title", ["back", "next_pane", "interrupt", "submit"])
def test_keys_that_lead_out_stay(title):
    _, ((_, problem),) = remapped(**{title: ["e"]})
    assert problem.endswith("cannot be another key")


def test_a_name_that_is_not_there_gets_a_list_of_all():
    _, ((name, problem),) = remapped(replaec=["F"])
    assert name == "replaec"
    assert "replace" in problem


async def test_a_remapped_key_acts_and_is_in_footer_and_help():
    config = Config(PATH, keys={"pause": ("e",), "help": ("F2",)})
    app = made(UTF8, config=config)
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause()
        footer = screen_text(app).splitlines()[-1]
        assert "e pause" in footer
        assert "F2 help" in footer
        await pilot.press("p", "question_mark")
        assert len(app.screen_stack) == 1
        assert app.view_state.frozen is None
        await pilot.press("f2")
        assert isinstance(app.screen, HelpScreen)
        said = screen_text(app)
        for _ in range(4):
            await pilot.press("pagedown")
            said += screen_text(app)
        assert any(line.split()[:2] == ["e", "pause"] for line in said.splitlines())
        await pilot.press("escape", "e")
        assert app.view_state.frozen is not None


async def test_a_wrong_entry_is_a_notice_and_switches_actions_off():
    config = Config(PATH, exists=True, wrong=(WrongEntry("sort", "must be one of tree"),))
    app = made(UTF8, config=config, fault=FAULT)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await pilot.pause()
        assert list(config.lines()) == [notice.message for notice in app.messages]
        assert app.view_state.denied == FAULT
        await pilot.press("S")
        assert len(app.screen_stack) == 1
        assert FAULT in " ".join(notice.message for notice in app.messages)


def test_keys_to_press_one_after_another_are_those_of_this_console():
    table, _ = SHIPPED.remapped({"tunables": ["F"], "restore": ["ctrl+u"]})
    assert SHIPPED.shown("tunables", "restore") == "T, then U"
    assert table.shown("tunables", "restore") == "F, then ^U"


def _texts(tree: ast.Module) -> list[ast.Constant]:
    """Return the constants of a module that are no docstrings."""
    nodes = list(ast.walk(tree))
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in docs]


def test_no_sentence_has_a_key_in_its_words():
    """Keys can be remapped, so sentences name actions, and the screen names keys."""
    key = re.compile(
        r"\([A-Z](, [\w ]+)?[ );]|(^|[.;:,(] ?)[A-Z] (there|[a-z]{2,}s) |[a-z], then [A-Z]\b"
    )
    found = [
        f"{module}: {node.value}"
        for module in modules()
        if module.startswith(("actions/", "swap/", "ui/"))
        for node in _texts(tree_of(module))
        if isinstance(node.value, str) and key.search(node.value)
    ]
    assert found == []


def test_a_plan_is_told_with_the_keys_of_this_console():
    pair = group("replacing", disk("bay03", 1000, "FAULTED"), disk("bay09", 1900))
    plan = plan_replace(at(pool(top("raidz2", 0, 8, pair))), Pair("1000", "/dev/disk/by-id/new"))
    table, _ = SHIPPED.remapped({"swap": ["V"]})
    said = "; a third disk joins. {} follows the one that runs."
    assert plan.doubts[0].endswith(said.format("zconsole swap"))
    for keys, key in ((SHIPPED, "C"), (table, "V")):
        drawn = plan_lines(plan, "", DisplayFormat(keys=keys), 200)
        assert any(said.format(key) in plain(line) for line in drawn)


def test_ways_around_a_resilver_are_told_with_keys_that_exist():
    said = " ".join(map(DisplayFormat().text, NO_WAY_TO_STOP))
    assert "zfs_scan_suspend_progress (T)" in said
    assert "preset gentle (T, then N)" in said


def test_a_text_keeps_its_keys_when_it_is_made_longer():
    text = "first " + KeyedText("zconsole swap", "{keys}", "swap") + ", then that"
    assert str(text) == "first zconsole swap, then that"
    assert DisplayFormat().text(text) == "first C, then that"
    assert DisplayFormat().text(deepcopy(text)) == "first C, then that"


async def test_dialogs_name_the_keys_that_they_have_here():
    """Earlier, their last line always named the default keys."""
    table, _ = SHIPPED.remapped({"mark": ["m"], "next-button": ["."], "press-button": ["e"]})
    async with acting(SCENARIO) as a:
        state = a.app.view_state
        state.look = dataclasses.replace(state.look, keys=table)
        a.app.set_keymap(table.keymap)
        await to_tree(a, mark=False)
        assert "m mark" in a.screen.splitlines()[-1]
        await a.home()
        await a.press("S", "enter")
        line = a.screen.splitlines()[-1]
        assert "e select  Left . buttons" in line
        await a.press("full_stop")
        assert a.app.screen.focused.id == "run"
