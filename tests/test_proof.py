"""Tests of the helpers that the long-running proofs share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proof import cache, digest, table


def test_the_cache_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ZCONSOLE_CUTS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache("cuts") == tmp_path / "zconsole" / "cuts"
    monkeypatch.setenv("ZCONSOLE_CUTS_CACHE", str(tmp_path / "mine"))
    assert cache("cuts") == tmp_path / "mine"


def test_a_digest_follows_the_files_in_any_order(tmp_path: Path) -> None:
    files = [tmp_path / "a", tmp_path / "b"]
    for file in files:
        file.write_text(file.name)
    before = digest(files)
    assert digest(reversed(files)) == before
    files[1].write_text("changed")
    assert digest(files) != before


def test_a_table_sets_words_to_the_left_and_numbers_to_the_right() -> None:
    rows = [("case", "kind", "cuts"), ("zfs-copy", "a", "7"), ("all", "b", "12345")]
    lines = table(rows, left=2).splitlines()
    assert lines == ["case      kind   cuts", "zfs-copy  a         7", "all       b     12345"]
