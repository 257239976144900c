"""Promises of the README: the two commands, every command; and the names in the code map."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.table import rows
from zconsole.cli.options import COMMANDS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
MAP = (ROOT / "zconsole/README.md").read_text()


def test_the_first_two_indented_lines_run_the_demo_and_the_tests():
    first, second = re.findall(r"^    (.*)$", README, re.MULTILINE)[:2]
    assert first.endswith("zconsole demo")
    assert "-m pytest" in second


@rows("name", sorted(COMMANDS.keys() - {"console"}))
def test_every_command_is_named(name):
    assert f"`{name}`" in README


def test_pictures_are_there():
    for path in re.findall(r"!\[[^]]*\]\(([^)]+)\)", README):
        assert (ROOT / path).is_file()


NAMED = sorted(set(re.findall(r"`([\w/]+(?:\.py|\.toml|/))`", MAP)))
"""Files and folders named in the prose of the map, by the end of their path."""


@pytest.fixture(scope="module")
def paths():
    return [path for room in ("zconsole", "tests") for path in (ROOT / room).rglob("*")]


@rows("name", NAMED)
def test_what_the_map_names_is_there(name, paths):
    wanted = Path(name).parts
    assert any(path.parts[-len(wanted) :] == wanted for path in paths)


_NAME = re.compile(r"^ *(?:class |(?:async )?def )?(\w+)\b(?:[(:,]| =)", re.MULTILINE)
"""Matches a name that a line defines, sets or lists."""


@pytest.fixture(scope="module")
def names(paths):
    return {
        name for path in paths if path.suffix == ".py" for name in _NAME.findall(path.read_text())
    }


WORDS = sorted(set(re.findall(r"`(?:\w+\.)?(_?[A-Z]\w+|_[a-z]\w+)`", MAP)))
"""Classes, tables and private functions that the map names."""


@pytest.mark.slow
@rows("word", WORDS)
def test_what_the_map_calls_by_name_is_in_the_code(word, names):
    assert word in names


@rows("script", ["run", "long"])
def test_the_tests_that_a_script_names_are_there(script):
    text = (ROOT / ".ci" / script).read_text()
    for path, names, end in re.findall(r"(?<![\w/])(tests/[\w/.]+)(?:\{([\w,]+)\}([\w.]*))?", text):
        for name in names.split(","):
            assert (ROOT / f"{path}{name}{end}".rstrip(".")).exists()
