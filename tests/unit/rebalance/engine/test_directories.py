"""Open directories: whose changes their times reflect, and what is noted in the journal."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from zconsole.rebalance.engine.directories import Directories, DirectoryRow, MovedError, Notes
from zconsole.rebalance.engine.syscalls import DIRECTORY, Sys
from zconsole.rebalance.engine.watching import Watching

OLD = 10**18
THEIRS = OLD + 10**12
NOW = 2e9


class Opened:
    """A tree with one directory, and the notes made in its journal."""

    def __init__(self, root: Path, sys: Sys | None = None) -> None:
        self.root, self.now = root, NOW
        self.told: list[str] = []
        self.until = 0.0
        os.utime(root, ns=(OLD, OLD))
        status = root.stat()
        self.row = DirectoryRow(1, None, os.fsencode(root), status.st_dev, status.st_ino)
        notes = Notes(self._until, lambda _: self.told.append("others"))
        self.all = Directories(sys or Sys(), lambda _: self.row, notes, lambda: self.now)
        self.all.own(b".zc-")

    def _until(self, until: float) -> None:
        self.told.append("ours")
        self.until = until

    @property
    def time(self) -> int:
        return self.root.stat().st_mtime_ns

    def change(self, seconds: float = 0.0) -> None:
        """Make a change of our own, which may take long."""
        with self.all.changing(self.all.get(1)):
            (self.root / f".zc-{len(self.told)}").touch()
            self.now += seconds


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    found = Opened(tmp_path)
    with closing(found.all):
        yield found


def test_a_directory_that_nobody_else_changes_gets_its_time_again(opened: Opened) -> None:
    opened.change()
    assert opened.time != OLD
    opened.all.restore_times()
    assert opened.time == OLD


def test_what_others_changed_before_our_turn_is_none_of_it(opened: Opened) -> None:
    opened.change()
    opened.all.restore_times()
    (opened.root / "theirs").touch()
    os.utime(opened.root, ns=(THEIRS, THEIRS))
    opened.change()
    opened.all.restore_times()
    assert opened.time == THEIRS
    assert "others" not in opened.told


def test_the_journal_hears_of_others_before_more_counts_as_ours(opened: Opened) -> None:
    """If it were killed between the two, their change would be taken for one of ours."""
    opened.all.begin(opened.all.get(1))
    os.utime(opened.root, ns=(THEIRS, THEIRS))
    opened.change()
    assert opened.told == ["others", "ours"]


def test_the_journal_hears_of_a_change_that_took_long(opened: Opened) -> None:
    opened.change(60.0)
    assert opened.until > opened.now == NOW + 60.0


def test_the_journal_hears_of_a_clock_that_was_set_back(opened: Opened) -> None:
    opened.change()
    opened.now -= 3600.0
    opened.change()
    assert opened.now < opened.until < opened.now + 1.0


def test_a_time_that_others_set_last_stays(opened: Opened) -> None:
    opened.change()
    os.utime(opened.root, ns=(THEIRS, THEIRS))
    opened.all.restore_times()
    assert opened.time == THEIRS


def test_a_change_within_one_tick_of_ours_leaves_the_time_alone(opened: Opened) -> None:
    opened.change()
    ticked = opened.time
    (opened.root / "theirs").touch()
    os.utime(opened.root, ns=(ticked, ticked))
    opened.all.restore_times()
    assert opened.time == ticked


def _open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class Meddled(Sys):
    """A kernel in which others change a directory once, right after its time was read."""

    theirs: Path | None = None

    def fstat(self, fd: int) -> os.stat_result:
        status = super().fstat(fd)
        if self.theirs is not None:
            (self.theirs / "theirs").touch()
            os.utime(self.theirs, ns=(OLD, OLD))  # as within one tick of the kernel's clock
            self.theirs = None
        return status


def test_the_journal_hears_of_others_who_come_as_our_work_begins(tmp_path: Path) -> None:
    """If it were noted later, recovery after a death would undo the time of their change."""
    sys = Meddled()
    opened = Opened(tmp_path, sys)
    with closing(opened.all):
        opened.all.get(1)
        sys.theirs = tmp_path
        opened.change()
    assert opened.told == ["others", "ours"]


def test_more_events_than_are_read_at_once_are_all_read(tmp_path: Path) -> None:
    with closing(Watching(Sys())) as watching:
        watching.own(b".zc-")
        directory = os.open(tmp_path, DIRECTORY)
        watching.add(1, directory)
        os.close(directory)
        for number in range(400):  # over 64 KiB
            (tmp_path / f".zc-{number}-{'x' * 200}").touch()
        (tmp_path / "theirs").touch()
        assert watching.changed() == {1}


class TimeSet(Sys):
    """A kernel in which others set a directory's time once, after its events were read."""

    theirs: Path | None = None

    def changes(self, queue: int) -> bytes:
        events = super().changes(queue)
        if self.theirs is not None:
            os.utime(self.theirs, ns=(THEIRS, THEIRS))
            self.theirs = None
        return events


def test_a_time_that_no_event_tells_of_is_looked_at_last(tmp_path: Path) -> None:
    """Our next change of the directory would leave no trace of theirs."""
    sys = TimeSet()
    opened = Opened(tmp_path, sys)
    with closing(opened.all):
        opened.all.begin(opened.all.get(1))
        sys.theirs = tmp_path
        opened.change()
    assert opened.told == ["others", "ours"]


def test_a_time_set_as_ours_is_about_to_be_stays(tmp_path: Path) -> None:
    sys = TimeSet()
    opened = Opened(tmp_path, sys)
    with closing(opened.all):
        opened.change()
        sys.theirs = tmp_path
        opened.all.restore_times()
    assert opened.time == THEIRS


def test_a_directory_in_the_place_of_another_does_not_stay_open(opened: Opened) -> None:
    before = _open()
    opened.row = DirectoryRow(1, None, opened.row.name, opened.row.dev, opened.row.ino + 1)
    with pytest.raises(MovedError):
        opened.all.get(1)
    assert _open() == before


class Broken(Sys):
    """A disk that cannot read a directory's flags."""

    def ioctl(self, fd: int, request: int, data: bytes) -> bytes:  # type: ignore[override]
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_directory_that_cannot_be_read_does_not_stay_open(tmp_path: Path) -> None:
    before = _open()
    with closing(Opened(tmp_path, Broken()).all) as directories:
        with pytest.raises(OSError, match="Input/output"):
            directories.get(1)
        assert _open() == before
