"""Pictures and reports that are written to the directory where the console was started."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from zconsole.errors import ZconsoleError
from zconsole.ui.new_file import keep_new

NOW = datetime(2026, 11, 25, 15, 0, tzinfo=UTC)


def test_root_writes_nothing_where_others_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others could put a link there, and choose which file root writes to."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    tmp_path.chmod(0o777)
    with pytest.raises(ZconsoleError, match=r"no report in .*: others may write there"):
        keep_new("text", tmp_path, NOW, "report", "md")
    assert not list(tmp_path.iterdir())


def test_nothing_that_is_there_is_touched(tmp_path: Path) -> None:
    (tmp_path / "zconsole-20261125-150000.md").symlink_to("elsewhere")
    names = [keep_new(f"{n}", tmp_path, NOW, "report", "md").name for n in range(8)]
    assert names == [f"zconsole-20261125-150000-{n}.md" for n in range(2, 10)]
    assert [(tmp_path / name).read_text() for name in names] == [*"01234567"]
    assert not (tmp_path / "elsewhere").exists()
    with pytest.raises(ZconsoleError, match="already"):
        keep_new("text", tmp_path, NOW, "report", "md")
