"""The unit that `--help` shows must run as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.test_rebalance import Shell
from zconsole.cli.rebalance_options import systemd_unit


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("/opt/zconsole/bin/zconsole", "/opt/zconsole/bin/zconsole"),
        ("/srv/my tools/zconsole", '"/srv/my tools/zconsole"'),
        ("/srv/50%/zconsole", '"/srv/50%%/zconsole"'),
        ("/lib/zconsole/__main__.py", "/usr/bin/python3 -m zconsole"),
    ],
)
def test_systemd_finds_the_program(program: str, command: str) -> None:
    unit = systemd_unit(program, "/usr/bin/python3")
    assert f"ExecStart={command} rebalance resume --all\n" in unit


@pytest.mark.parametrize("words", [("--help",), ("resume", "--help")])
def test_the_unit_is_where_one_looks_for_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    said = Shell(tmp_path)(*words).stdout
    assert "ExecStart=/" in said
    assert "-m zconsole rebalance resume --all" in said
