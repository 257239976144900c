"""Directories stay open for one batch of files, and are no more than a process may have open."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import ALONE, FaultySys, Nobody, create, run
from zconsole.rebalance.engine.file_locks import FilesInUse
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job.holds import Holds, WorkPhase
from zconsole.rebalance.job.job import FreeSpace

MOST = 40
"""Directories that a process may have open."""


def test_a_directory_moved_out_of_the_tree_is_not_worked_on_in_the_next_batch(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zconsole.rebalance.engine.descriptors.BATCH_FILES", 1)
    below, elsewhere = area / "tree/below", area / "elsewhere"
    below.mkdir(parents=True)
    for name in ("a", "b"):
        (below / name).write_bytes(b"x")
    create(area / "tree", area / "job.db")

    def moved(_number: int, name: str, _result: object) -> None:
        if name == "unlink" and below.exists():
            below.rename(elsewhere)

    shown, summary = run(area / "job.db", FaultySys(after=moved), ALONE)
    found = [(line["outcome"], line["reason"]) for line in shown]
    assert found == [("moved", None), ("skipped", "directory moved")]
    assert summary["stopped_by"] == "done"


def test_no_directory_is_open_while_a_job_waits_between_two_batches(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait may last for hours, in which the filesystem could not be unmounted."""
    monkeypatch.setattr("zconsole.rebalance.engine.descriptors.BATCH_FILES", 1)
    monkeypatch.setattr(FreeSpace, "room", lambda *_, **__: 1 << 20)  # less than a batch
    (area / "tree").mkdir()
    for name in ("a", "b"):
        (area / "tree" / name).write_bytes(b"x")
    create(area / "tree", area / "job.db")
    sys, waits = Few(), list[int]()

    def wait(_holds: Holds, phase: WorkPhase) -> None:
        if phase is WorkPhase.BETWEEN:
            waits.append(len(sys.held))

    monkeypatch.setattr(Holds, "wait", wait)
    run(area / "job.db", sys, ALONE)
    assert len(waits) > 2
    assert not any(waits)


class Few(Sys):
    """System calls of a process that may have few directories open."""

    def __init__(self) -> None:
        self.held = set[int]()

    def open(self, path: Any, flags: int, *more: Any, **dir_fd: Any) -> int:  # type: ignore[override]
        if flags & os.O_DIRECTORY and len(self.held) >= MOST:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        fd = os.open(path, flags, *more, **dir_fd)
        if flags & os.O_DIRECTORY:
            self.held.add(fd)
        return fd

    def close(self, fd: int) -> None:  # type: ignore[override]
        self.held.discard(fd)
        os.close(fd)


class Looking(Nobody):
    """Looks for other users of files, which takes descriptors, too."""

    def __init__(self, sys: Few) -> None:
        super().__init__()
        self.sys = sys

    def look(self, *_: object, **__: object) -> FilesInUse:
        if len(self.sys.held) >= MOST:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().look()


def test_a_file_with_names_in_more_directories_than_can_be_open_is_skipped(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zconsole.rebalance.job.runner.batch_directories", lambda _files: MOST // 2)
    for number in range(MOST + 1):
        below = area / f"tree/d{number:02}"
        below.mkdir(parents=True)
        (below / "own").write_bytes(b"x")
        (below / "linked").touch() if not number else (below / "linked").hardlink_to(
            area / "tree/d00/linked"
        )
    (area / "tree/d00/linked").write_bytes(b"large" * 1000)
    create(area / "tree", area / "job.db")
    sys = Few()
    shown, summary = run(area / "job.db", sys, ALONE, users=Looking(sys))
    found = {(Path(line["path"]).name, line["outcome"], line["reason"]) for line in shown}
    assert found == {
        ("own", "moved", None),
        ("linked", "skipped", "its names are in more directories than can be open"),
    }
    assert summary["stopped_by"] == "done"
    assert not sys.held
