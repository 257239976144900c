"""A job that is told to stop while it recovers, and one whose directory is another by then."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import (
    ALONE,
    FaultySys,
    Killed,
    ask,
    create,
    descriptors_closed,
    run,
    tree_of,
)
from tests.faults.test_changes import killed_after
from zconsole.rebalance.engine.journal import Journal


@pytest.fixture
def killed(area: Path) -> Path:
    """Return the journal of a job that died when it had exchanged three names."""
    create(tree_of(area, 4, 1000), area / "job.db")
    dying = FaultySys()

    def _after(_number: int, name: str, _result: Any) -> None:
        if name == "exchange" and dying.calls.count("exchange") == 3:
            dying.die()

    dying.after = _after
    with descriptors_closed(), pytest.raises(Killed):
        run(area / "job.db", dying, ALONE)
    return area / "job.db"


def test_a_stop_ends_a_recovery_between_two_files(killed: Path) -> None:
    def _after(_number: int, name: str, _result: Any) -> None:
        if name == "unlink":
            ask(killed, "stop")

    _, summary = run(killed, FaultySys(after=_after), ALONE)
    assert summary["stopped_by"] == "stop"
    assert 0 < summary["files_moved"] < 3
    with closing(Journal.open(killed)) as journal:
        assert journal.is_interrupted()
    ask(killed, "run")
    _, summary = run(killed, clocks=ALONE)
    assert (summary["stopped_by"], summary["files_moved"]) == ("done", 4)
    assert not list(killed.parent.glob("tree/.zc-*"))


def test_a_stop_ends_a_recovery_before_a_file_even_if_none_is_read(area: Path) -> None:
    """A copy that never had a name of the user's is removed unread."""
    root = tree_of(area, 1, 1000)
    create(root, area / "job.db")
    killed_after(area / "job.db", "open_new", FaultySys())
    left = set(root.iterdir())
    assert len(left) == 2
    ask(area / "job.db", "stop")
    _, summary = run(area / "job.db", clocks=ALONE)
    assert summary["stopped_by"] == "stop"
    assert set(root.iterdir()) == left


def test_what_is_synced_is_the_directory_that_the_job_works_in(area: Path) -> None:
    """Another one may have its path by then."""
    root = tree_of(area, 2, 1000)
    create(root, area / "job.db")
    walked, synced = root.stat().st_ino, list[int]()

    class Seen(FaultySys):
        def syncfs(self, fd: int) -> None:  # type: ignore[override]
            synced.append(os.fstat(fd).st_ino)
            super().syncfs(fd)

        def sync(self) -> None:  # type: ignore[override]
            synced.append(walked)  # of everything, where the directory is closed and gone

    def _after(_number: int, name: str, _result: Any) -> None:
        if name == "exchange" and root.stat().st_ino == walked:
            root.rename(area / "elsewhere")
            root.mkdir()

    run(area / "job.db", Seen(after=_after), ALONE)
    assert len(synced) > 1
    assert set(synced) == {walked}
