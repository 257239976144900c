"""``zconsole config`` shows where the file is, which values apply, and what is wrong."""

from __future__ import annotations

import json

import pytest

from tests.table import rows
from zconsole.cli.main import main
from zconsole.cli.man import page
from zconsole.config import file
from zconsole.config.settings import COLUMNS, ENTRIES, PANES, SORTS, UNITS


@pytest.fixture
def path(tmp_path, monkeypatch):
    found = tmp_path / "zconsole" / "config.toml"
    found.parent.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(file, "SYSTEM", found)
    return found


def test_no_file_is_right(path, capsys):
    assert main(["config", "check"]) == 0
    assert capsys.readouterr().out.startswith(f"OK: {path} (there is no such file")


@rows(
    ("entry", "key"),
    [
        ('sort = "speed"', "sort"),
        ('theme = "nope"', "theme"),
        ('theme-16 = "/no/such/theme.toml"', "theme-16"),
        ('hosts = ["-oProxyCommand=x"]', "hosts"),
        ('hook = "/no/such/program"', "hook"),
        ('hook = "\'"', "hook"),
        ('[keys]\nreplace = "T"', "keys.replace"),
    ],
)
def test_check_tells_what_is_wrong_and_ends_with_5(entry, key, path, capsys):
    path.write_text(f"interval = 2\n{entry}\n")
    assert main(["config", "check"]) == 5
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{path}: {key}: ")
    assert main(["config", "check", "--json"]) == 5
    assert json.loads(capsys.readouterr().out)["key"] == key


def test_control_characters_of_the_file_do_not_reach_the_terminal(path, capsys):
    path.write_text('"a\\u001b[2J" = 1\n')
    assert main(["config", "check"]) == 5
    assert "\x1b" not in capsys.readouterr().out


def test_the_manual_names_every_setting_and_every_choice():
    told = page("config")
    for word in (*ENTRIES, *UNITS, *PANES, *SORTS, *COLUMNS):
        assert f"\\fB{word}\\fR".replace("-", "\\-") in told, word
