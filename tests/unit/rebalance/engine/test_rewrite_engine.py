"""The rewrite engine on plain files, with a kernel that records the calls."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from zconsole.rebalance.engine import metadata
from zconsole.rebalance.engine.directories import Directories, DirectoryRow
from zconsole.rebalance.engine.item import StopJobError, UnsupportedError
from zconsole.rebalance.engine.journal import FileRow, Journal, Result, State
from zconsole.rebalance.engine.results import Results
from zconsole.rebalance.engine.rewrite_engine import SMALLEST, Rewriter
from zconsole.rebalance.engine.syscalls import Sys

FILES = 5


class Noted(Sys):
    """Records advice and rewrites by file name; can also report writers."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, int, int]] = []
        self.flags: set[int] = set()

    def _note(self, call: str, fd: int, offset: int, length: int) -> None:
        name = Path(f"/proc/self/fd/{fd}").readlink().name
        self.calls.append((call, name, offset, length))

    def fadvise(self, fd: int, offset: int, length: int, advice: int) -> None:
        assert advice == os.POSIX_FADV_WILLNEED
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.pwrite(fd, b"x", 0)
        self._note("ask", fd, offset, length)

    def rewrite(self, fd: int, offset: int, length: int, flags: int) -> None:
        self._note("rewrite", fd, offset, length)
        self.flags.add(flags)


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
    journal.add_directory(row)
    directories = Directories(sys, journal.directory)
    yield Rewriter(sys, directories, Results(journal), lambda count: None, time.monotonic)
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


def _failing(rewriter: Rewriter, *codes: int) -> None:
    """Make the next rewrites fail."""
    left, rewrite = list(codes), rewriter.sys.rewrite

    def _rewrite(fd: int, offset: int, length: int, flags: int) -> None:
        if left:
            code = left.pop(0)
            raise OSError(code, os.strerror(code))
        rewrite(fd, offset, length, flags)

    rewriter.sys.rewrite = _rewrite  # type: ignore[method-assign]


def _open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_rewrite_that_is_interrupted_is_made_again(
    rewriter: Rewriter, rows: list[FileRow]
) -> None:
    _failing(rewriter, errno.EINTR)
    assert rewriter.run(rows[0])[0].outcome == "moved"
    assert rewriter.sys.calls == [("rewrite", "f0", 0, 100)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("code", [errno.ENOTTY, errno.EOPNOTSUPP])
def test_a_zfs_without_rewrite_is_said(rewriter: Rewriter, rows: list[FileRow], code: int) -> None:
    _failing(rewriter, code)
    with pytest.raises(UnsupportedError, match="no rewrite"):
        rewriter.run(rows[0])
    assert not rewriter.results.waiting


def test_a_file_that_cannot_be_rewritten_is_failed(rewriter: Rewriter, rows: list[FileRow]) -> None:
    _failing(rewriter, errno.EIO)
    (done,) = rewriter.run(rows[0])
    assert (done.outcome, done.reason, done.bytes) == ("failed", "Input/output error", 0)
    assert list(rewriter.results.waiting.values()) == [
        [Result(0, State.FAILED, "Input/output error")]
    ]


def test_what_is_no_longer_the_walked_file_is_not_rewritten(
    rewriter: Rewriter, rows: list[FileRow], tmp_path: Path
) -> None:
    (tmp_path / "f1").unlink()
    os.mkfifo(tmp_path / "f1")
    before = _open()
    done = [rewriter.run(row)[0] for row in (rows[0]._replace(ino=1), rows[1])]
    assert [each.reason for each in done] == ["replaced since the walk", "changed"]
    assert _open() <= before + 1  # the directory stays open
    assert rewriter.sys.calls == []  # type: ignore[attr-defined]


def test_a_file_that_may_not_change_is_not_rewritten(
    rewriter: Rewriter, rows: list[FileRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = metadata.read

    def _fixed(*words: Any) -> Any:
        meta, status = read(*words)
        marks = meta.marks._replace(flags=metadata.IMMUTABLE)
        return meta._replace(marks=marks), status

    monkeypatch.setattr(metadata, "read", _fixed)
    assert rewriter.run(rows[0])[0].reason == "immutable or append-only"
    assert rewriter.sys.calls == []  # type: ignore[attr-defined]


def _large(rewriter: Rewriter, row: FileRow, path: Path, chunks: int = 4) -> FileRow:
    """Return the row of a file with several chunks, which the journal knows."""
    os.truncate(path, chunks * SMALLEST)
    rewriter.chunk = SMALLEST
    rewriter.results.journal.add_files([(1, row.name, row.ino, chunks * SMALLEST, 1, 0)])
    return row._replace(number=1, size=chunks * SMALLEST)


def _offset(rewriter: Rewriter) -> int:
    return rewriter.results.journal.todo((-1, 0, 0), 1)[0][1].offset


def test_a_job_that_is_stopped_knows_how_far_it_got(
    rewriter: Rewriter, rows: list[FileRow], tmp_path: Path
) -> None:
    row = _large(rewriter, rows[0], tmp_path / "f0")

    def _stop(_count: int) -> None:
        raise StopJobError("stopped")

    rewriter.tick, rewriter.clock = _stop, lambda: 0.0
    with pytest.raises(StopJobError):
        rewriter.run(row)
    assert _offset(rewriter) == SMALLEST
    assert not rewriter.results.waiting


def test_a_death_takes_back_a_second_at_most(
    rewriter: Rewriter, rows: list[FileRow], tmp_path: Path
) -> None:
    row = _large(rewriter, rows[0], tmp_path / "f0")
    seen: list[int] = []
    rewriter.tick = lambda _: seen.append(_offset(rewriter))
    times = count(10.0, 0.25)
    rewriter.clock = lambda: next(times)
    rewriter.run(row)
    assert seen == [SMALLEST, SMALLEST, 3 * SMALLEST, 3 * SMALLEST]


def test_chunks_follow_the_time_they_take(
    rewriter: Rewriter, rows: list[FileRow], tmp_path: Path
) -> None:
    row = _large(rewriter, rows[0], tmp_path / "f0", 12)
    seconds = iter([0.001, 0.001, 1.0, 1.0, 1.0, 1.0, 1.0])
    now, rewrite = [0.0], rewriter.sys.rewrite

    def _rewrite(fd: int, offset: int, length: int, flags: int) -> None:
        now[0] += next(seconds)
        rewrite(fd, offset, length, flags)

    rewriter.sys.rewrite = _rewrite  # type: ignore[method-assign]
    rewriter.clock = lambda: now[0]
    rewriter.run(row)
    lengths = [each[3] // SMALLEST for each in rewriter.sys.calls]  # type: ignore[attr-defined]
    assert lengths == [1, 2, 4, 2, 1, 1, 1]


@pytest.mark.parametrize(("seconds", "less"), [(0.0, 1), (1.0, 2)])
def test_a_short_piece_says_only_that_chunks_take_too_long(
    rewriter: Rewriter, rows: list[FileRow], seconds: float, less: int
) -> None:
    """A short time for a short piece says nothing about whole chunks."""
    before, times = rewriter.chunk, count(10.0, seconds)
    rewriter.clock = lambda: next(times)
    rewriter.run(rows[0])
    assert rewriter.chunk == before // less


def test_nothing_but_the_directory_stays_open(rewriter: Rewriter, rows: list[FileRow]) -> None:
    rewriter.begin(rows)
    rewriter.run(rows[0])
    before = _open()
    for row in rows[1:]:
        rewriter.run(row)
    rewriter.begin(rows)
    rewriter.run(rows[0])
    assert _open() == before


def test_the_bytes_of_several_names_count_once(rewriter: Rewriter, rows: list[FileRow]) -> None:
    rewriter.results.journal.add_files(
        [(1, name, rows[0].ino, 100, 2, 0) for name in (b"f0", b"linked")]
    )
    rewriter.results.journal.finish_walk(split_links=False)
    done = rewriter.run(rows[0]._replace(number=1, nlink=2))
    assert [(each.row.name, each.outcome, each.bytes) for each in done] == [
        (b"f0", "moved", 100),
        (b"linked", "moved", 0),
    ]
    assert list(rewriter.results.waiting.values()) == [
        [Result(1, State.MOVED), Result(2, State.MOVED)]
    ]


def test_the_options_of_zfs_rewrite_reach_the_kernel(
    rewriter: Rewriter, rows: list[FileRow]
) -> None:
    rewriter.flags = 0x3
    rewriter.begin(rows)
    for row in rows:
        rewriter.run(row)
    assert rewriter.sys.flags == {0x3}  # type: ignore[attr-defined]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EOPNOTSUPP])
def test_an_option_that_the_kernel_does_not_know_ends_the_job(
    rewriter: Rewriter, rows: list[FileRow], code: int
) -> None:
    rewriter.flags = 0x2
    _failing(rewriter, code)
    rewriter.begin(rows)
    with pytest.raises(UnsupportedError, match="not all of its options"):
        rewriter.run(rows[0])
