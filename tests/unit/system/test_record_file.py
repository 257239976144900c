"""Records in files of the state directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from zconsole.system.record_file import read_record, write_record
from zconsole.system.state_dir import StateError


@dataclass(frozen=True)
class Kept:
    names: tuple[str, ...]
    version: int = 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path / "kept.json"


def test_what_was_written_is_read(path):
    write_record(path, Kept(("grün",)))
    assert read_record(Kept, path) == Kept(("grün",))


def test_a_file_that_is_not_there_is_told_from_a_damaged_one(path):
    with pytest.raises(FileNotFoundError):
        read_record(Kept, path)


@pytest.mark.parametrize("text", ["", "{}", '{"names": 1}', "[" * 100_000, "\udcff"])
def test_a_damaged_file_is_named_with_what_helps(path, text):
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    path.chmod(0o600)
    with pytest.raises(StateError, match=r"kept\.json is damaged: .*Remove it$"):
        read_record(Kept, path)


def test_a_file_that_is_too_large_is_not_read(path):
    write_record(path, Kept(("x" * 100,)))
    with pytest.raises(StateError, match="over 50 bytes"):
        read_record(Kept, path, 50)
