"""The unit file shown by `--help` must work as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.test_rebalance import Shell
from zconsole.cli.export import FILES
from zconsole.cli.main import main


@pytest.mark.parametrize("words", [("--help",), ("resume", "--help")])
def test_the_unit_is_where_one_looks_for_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    said = " ".join(Shell(tmp_path)(*words).stdout.split())
    assert f"rebalance-unit` prints to /etc/systemd/system/{FILES['rebalance-unit']}, and" in said


def test_the_unit_starts_this_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--print", "rebalance-unit"]) == 0
    said = capsys.readouterr().out
    assert "ExecStart=/" in said
    assert "rebalance resume --all" in said
