"""The rewrite engine on plain files, over a kernel that notes what it was told."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from zconsole.rebalance.engine.directories import Directories, DirectoryRow
from zconsole.rebalance.engine.journal import FileRow, Journal
from zconsole.rebalance.engine.rewrite_engine import SMALLEST, Rewriter
from zconsole.rebalance.engine.syscalls import Sys

FILES = 5


class Noted(Sys):
    """Notes advice and rewrites by file name; what is open for writing can be told too."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, int, int]] = []

    def _note(self, call: str, fd: int, offset: int, length: int) -> None:
        name = Path(f"/proc/self/fd/{fd}").readlink().name
        self.calls.append((call, name, offset, length))

    def fadvise(self, fd: int, offset: int, length: int, advice: int) -> None:
        assert advice == os.POSIX_FADV_WILLNEED
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.pwrite(fd, b"x", 0)
        self._note("ask", fd, offset, length)

    def rewrite(self, fd: int, offset: int, length: int) -> None:
        self._note("rewrite", fd, offset, length)


@pytest.fixture
def rows(tmp_path: Path) -> list[FileRow]:
    found = []
    for number in range(FILES):
        path = tmp_path / f"f{number}"
        path.write_bytes(b"x" * 100)
        found.append(FileRow(number, 1, path.name.encode(), path.stat().st_ino, 100, 1))
    return found


@pytest.fixture
def rewriter(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rewriter]:
    status, sys = tmp_path.stat(), Noted()
    row = DirectoryRow(1, None, os.fsencode(tmp_path), status.st_dev, status.st_ino)
    journal = Journal.create(tmp_path_factory.mktemp("state") / "job.db")
    directories = Directories(sys, lambda number: row)
    yield Rewriter(sys, journal, directories, lambda count: None, time.monotonic, [])
    directories.close()
    journal.close()


def test_content_is_asked_for_before_its_turn(rewriter: Rewriter, rows: list[FileRow]) -> None:
    rewriter.begin(rows)
    outcomes = [rewriter.run(row)[0].outcome for row in rows]
    asked = [("ask", f"f{number}", 0, 100) for number in range(FILES)]
    rewritten = [("rewrite", f"f{number}", 0, 100) for number in range(FILES)]
    assert rewriter.sys.calls == asked + rewritten  # type: ignore[attr-defined]
    assert outcomes == ["moved"] * FILES


def test_a_file_that_went_before_its_turn_is_skipped_then(
    rewriter: Rewriter, rows: list[FileRow], tmp_path: Path
) -> None:
    (tmp_path / "f1").unlink()
    (tmp_path / "f3").unlink()
    (tmp_path / "f3").symlink_to("f2")
    rewriter.begin(rows)
    done = [rewriter.run(row)[0] for row in rows]
    assert [each.outcome for each in done] == ["moved", "skipped", "moved", "skipped", "moved"]
    assert {each.reason for each in done} == {None, "changed"}


def test_a_file_goes_on_where_it_stopped(
    rewriter: Rewriter, rows: list[FileRow], tmp_path: Path
) -> None:
    os.truncate(tmp_path / "f0", 3 * SMALLEST)
    row = rows[0]._replace(size=3 * SMALLEST, offset=SMALLEST)
    rewriter.chunk = SMALLEST
    rewriter.begin([row])
    rewriter.run(row)
    assert rewriter.sys.calls == [  # type: ignore[attr-defined]
        ("ask", "f0", SMALLEST, SMALLEST),
        ("rewrite", "f0", SMALLEST, SMALLEST),
        ("rewrite", "f0", 2 * SMALLEST, SMALLEST),
    ]
