"""Units of systemd run as they stand, and every file an operator installs can be printed."""

from __future__ import annotations

import configparser
import json
import shutil
import subprocess

import pytest

from tests.table import rows
from tests.unit.output.prometheus.shipped import SHARE
from zconsole.cli.main import main
from zconsole.cli.options import COMMANDS, parser_of
from zconsole.cli.shipped_files import FILES, INSTALLED, for_program, shipped

UNITS = sorted(name for name in FILES.values() if name.endswith(".service"))
TOOL = shutil.which("systemd-analyze")


def unit_of(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters="=")
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((SHARE / name).read_text())
    return parser


def test_every_unit_of_the_package_is_here():
    assert sorted(path.name for path in SHARE.glob("*.service")) == UNITS


@rows("name", UNITS)
def test_a_unit_starts_a_command_with_options_it_has(name):
    program, command, *words = unit_of(name)["Service"]["ExecStart"].split()
    assert program == INSTALLED
    assert command in COMMANDS
    parser_of(command).parse_args([word for word in words if word != "$OPTIONS"])


@rows("name", ["zconsole-export.service", "zconsole-watch@.service"])
def test_a_pool_that_is_not_there_is_looked_for_again_without_a_storm(name):
    unit = unit_of(name)
    assert unit["Service"]["Restart"] == "on-failure"
    assert int(unit["Service"]["RestartSec"]) >= 60
    assert unit["Unit"]["StartLimitIntervalSec"] == "0"
    assert unit["Service"]["RestartPreventExitStatus"] == "2"


@pytest.mark.slow
@pytest.mark.skipif(TOOL is None, reason="systemd-analyze is missing")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_understands_every_line(name, tmp_path):
    path = tmp_path / name.replace("@", "@tank-1")
    text = (SHARE / name).read_text().replace(INSTALLED, shutil.which("true") or "true")
    path.write_text(text.replace("Documentation=man:zconsole(1)\n", ""))
    done = subprocess.run(
        [str(TOOL), "verify", str(path)], capture_output=True, text=True, check=False
    )
    said = [line for line in done.stderr.splitlines() if path.name in line]
    assert [line for line in said if "KillMode=none" not in line] == []
    assert done.returncode == 0


@rows(
    ("program", "command"),
    [
        ("/opt/zconsole/bin/zconsole", "/opt/zconsole/bin/zconsole"),
        ("/srv/my tools/zconsole", '"/srv/my tools/zconsole"'),
        ("/srv/50%/zconsole", '"/srv/50%%/zconsole"'),
        ("/lib/zconsole/__main__.py", "/usr/bin/python3 -m zconsole"),
        ("/srv/my tools/zconsole.pyz", '/usr/bin/python3 "/srv/my tools/zconsole.pyz"'),
    ],
)
def test_systemd_finds_the_program(program: str, command: str) -> None:
    text = (SHARE / "zconsole-rebalance.service").read_text()
    unit = for_program(text, program, "/usr/bin/python3")
    assert f"ExecStart={command} rebalance resume --all\n" in unit
    assert f"ExecStart=-{command} light resume\n" in unit


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("export", "--print", "dashboard"), "dashboard"),
        (("export", "--print", "rules"), "rules"),
        (("export", "--print", "export-unit"), "export-unit"),
        (("export", "--print", "watch-unit"), "watch-unit"),
    ],
)
def test_a_file_is_printed_without_zfs(words, name, capsys):
    assert main([*words]) == 0
    assert capsys.readouterr().out == shipped(name)


def test_what_is_no_unit_is_printed_as_it_is():
    assert shipped("rules") == (SHARE / "prometheus-rules.yml").read_text()
    assert json.loads(shipped("dashboard"))["uid"] == "zconsole"
