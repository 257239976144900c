"""The unit that `--help` shows must run as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.test_rebalance import Shell


@pytest.mark.parametrize("words", [("--help",), ("resume", "--help")])
def test_the_unit_is_where_one_looks_for_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    said = Shell(tmp_path)(*words).stdout
    assert "ExecStart=/" in said
    assert "-m zconsole rebalance resume --all" in said
