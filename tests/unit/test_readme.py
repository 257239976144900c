"""What README promises: the two commands, every key, every command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from zconsole.cli.options import COMMANDS
from zconsole.errors import ExitCode
from zconsole.ui.keys import ACTIONS, TABLE, shown

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_first_two_indented_lines_run_the_demo_and_the_tests():
    first, second = re.findall(r"^    (.*)$", README, re.MULTILINE)[:2]
    assert first.endswith("zconsole demo")
    assert "-m pytest" in second


@pytest.mark.parametrize("key", [*TABLE, *ACTIONS], ids=lambda key: key.keys[0])
def test_every_key_is_in_the_table_with_what_it_does(key):
    words = " ".join(f"`{shown(name)}`" for name in key.keys)
    assert f"| {key.group} | {words} | {key.text} |" in README


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"console"}))
def test_every_command_is_named(name):
    assert f"`zconsole {name}" in README


def test_every_exit_code_is_told():
    table = README[README.index("### Exit codes") : README.index("## Keys")]
    told = {
        int(code) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.M) for code in row.split(",")
    }
    assert {int(code) for code in ExitCode} == told


def test_pictures_are_there():
    for path in re.findall(r"!\[[^]]*\]\(([^)]+)\)", README):
        assert (Path(__file__).parents[2] / path).is_file()
