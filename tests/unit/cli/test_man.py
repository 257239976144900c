"""The manual pages: complete, without errors, and reproducible."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.table import rows
from tests.unit.source import PACKAGE, modules
from zconsole.cli.completion import SCRIPTS
from zconsole.cli.main import command_of, main
from zconsole.cli.man import TOPICS, names, page, title
from zconsole.cli.options import COMMANDS, command_tree, parser_of
from zconsole.errors import ExitCode
from zconsole.ui.keys import EVERY_GROUP, keys_of, shown

pytestmark = pytest.mark.slow

TEXTS = tomllib.loads((PACKAGE / "share" / "man.toml").read_text("utf-8"))
WANTED = ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO")


@cache
def pages() -> dict[str | None, str]:
    """The page of every command."""
    return {name: page(name) for name in names()}


@cache
def every() -> dict[str | None, str]:
    """The page of every command, and of topics about several commands."""
    return {**pages(), **{name: page(name) for name in TOPICS}}


def plain(text: str) -> str:
    """Return a page's text, without fonts and escapes."""
    text = re.sub(r"\\f[BIR]|\\&", "", text)
    for escape, character in ((r"\-", "-"), (r"\(ha", "^"), (r"\(ti", "~"), (r"\(aq", "'")):
        text = text.replace(escape, character)
    return " ".join(text.replace(r"\ ", " ").replace(r"\e", "\\").split())


def section(text: str, name: str) -> str:
    return text.partition(f"\n.SH {name}\n")[2].partition("\n.SH ")[0]


def test_there_is_a_page_for_every_command_and_prose_for_every_page():
    assert names() == (None, *COMMANDS)
    assert set(TEXTS["pages"]) == {"zconsole", *COMMANDS, *TOPICS}
    assert all(each["description"] for each in TEXTS["pages"].values())
    assert all(TEXTS["pages"][name or "zconsole"]["examples"] for name in names())


@rows("name", names())
def test_a_page_has_every_section(name):
    assert [each for each in WANTED if not section(pages()[name], each)] == []
    assert f"{title(name)} - " in plain(section(pages()[name], "NAME"))


@rows("name", names())
def test_every_option_command_and_argument_is_on_its_page(name):
    tree = command_tree()
    top = next((each for each in tree.commands if each.words[0] == name), tree)
    text, told = section(pages()[name], "SYNOPSIS"), plain(section(pages()[name], "OPTIONS"))
    for command in [*top.walk()] if name else [top]:
        for option in command.options:
            assert ", ".join(option.names) in told
        for argument in command.arguments:
            assert argument.shown in told
        for inner in command.commands:
            assert inner.words[-1] in section(pages()[name], "COMMANDS")
    assert f"zconsole {name or ''}".strip() in plain(text)


@rows("group", EVERY_GROUP)
def test_every_key_is_in_zconsole_1_with_what_it_does(group):
    text = plain(section(pages()[None], "KEYS").partition(f".SS {group}\n")[2].partition(".SS")[0])
    for key in keys_of(group):
        assert f".TP {', '.join(map(shown, key.keys))} {key.text}" in text


def test_every_exit_code_is_in_zconsole_1():
    told = re.findall(r"^\\fB(\d+)\\fR$", section(pages()[None], "EXIT STATUS"), re.MULTILINE)
    assert [int(code) for code in told] == sorted(ExitCode)


def test_every_variable_of_the_environment_is_told():
    read = re.compile(r"""environ(?:\.get\(|\[)"(\w+)"|"(\w+)" in os\.environ""")
    found = {
        name
        for module in modules()
        for names in read.findall((PACKAGE / module).read_text("utf-8"))
        for name in names
        if name
    }
    assert {"ZCONSOLE_STATE", "NO_COLOR", "TERM"} < found
    assert found <= {name for names in TEXTS["environment"] for name in names.split(", ")}


@rows("name", names())
def test_examples_are_commands_that_parse(name):
    for _, code in TEXTS["pages"][name or "zconsole"]["examples"]:
        pieces = [shlex.split(piece) for piece in re.split(r"[\n|<>&()]+", code)]
        commands = [words[1:] for words in pieces if words and words[0] == "zconsole"]
        assert commands
        for words in commands:
            command, rest = command_of(words)
            parser_of(command).parse_args(rest)


def test_only_ascii_and_no_date_of_today_is_in_a_page():
    assert all(text.isascii() for text in every().values())
    assert {text.splitlines()[0].split('"')[1] for text in every().values()} == {""}


@rows("name", [None, "status", "security"])
def test_the_command_prints_the_page(name, capsys):
    assert main(["man", name] if name else ["man"]) == 0
    assert capsys.readouterr().out == every()[name]


def test_a_page_does_not_depend_on_how_the_program_was_started(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/elsewhere/zconsole"])
    monkeypatch.setenv("COLUMNS", "33")
    assert page("rebalance") == pages()["rebalance"]


def checked(argv: list[str], text: str) -> str:
    """Return the errors that a formatter finds in a page."""
    if not shutil.which(argv[0]):
        pytest.skip(f"{argv[0]} is not installed")
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    return done.stderr if argv[0] != "mandoc" else done.stdout


@rows("name", every)
def test_groff_has_no_warning(name):
    assert checked(["groff", "-man", "-ww", "-Tutf8", "-z"], every()[name]) == ""


@rows("name", every)
def test_mandoc_finds_only_that_there_is_no_date(name):
    found = checked(["mandoc", "-Tlint"], every()[name]).splitlines()
    assert [line for line in found if "missing date" not in line] == []


def test_the_packages_get_every_page_and_script(tmp_path):
    written = PACKAGE.parent / ".ci" / "manuals.py"
    subprocess.run([sys.executable, str(written), str(tmp_path)], check=True)
    for name, text in pages().items():
        assert (tmp_path / "man1" / f"{title(name)}.1").read_text() == text
    for name in TOPICS:
        assert (tmp_path / "man7" / f"{title(name)}.7").read_text() == every()[name]
    scripts = Path(tmp_path, "completions")
    for path in ("bash/zconsole", "zsh/_zconsole", "fish/zconsole.fish"):
        assert (scripts / path).read_text() == SCRIPTS[path.partition("/")[0]]()
    assert len([each for each in tmp_path.rglob("*") if each.is_file()]) == len(every()) + 3
