"""Recovery when calls fail, when the journal is damaged, and right after another engine's end."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from tests.cuts import kept_journal
from tests.cuts.choices import given
from tests.cuts.disk import PAGE, Tree
from tests.cuts.machine import Machine
from tests.cuts.model_sys import ModelSys
from tests.cuts.timeline import KILL, Change
from tests.cuts.workloads import WORKLOADS, Workload
from zconsole.rebalance.engine.journal import UNSETTLED, State
from zconsole.rebalance.engine.swap import GRACE


@pytest.fixture
def machine() -> Machine:
    """Return a machine whose job died right after exchanging the names of its only file."""
    return _died_after("exchange", 1)


def _died_after(call: str, events: int, workload: Workload = WORKLOADS[0]) -> Machine:
    """Return a machine whose job died so many events after the beginning of the first such call."""
    before = workload.machine()
    timeline, _ = before.run()
    calls = enumerate(timeline.events, start=events)
    at = next(at for at, each in calls if isinstance(each, Change) and each.call == call)
    crash = timeline.crash(at, given([KILL]))
    assert crash is not None
    return before.crashed(crash)


def _spoil(machine: Machine, path: bytes) -> None:
    """Change the content of a file without a trace in its metadata."""
    inode = machine.disk.inodes[machine.disk.find(path) or 0]
    inode.pages = {index: bytes(PAGE) for index in inode.pages}


def _files(machine: Machine) -> dict[bytes, bytes]:
    return {path: machine.disk.inodes[each].content for path, each in machine.disk.walk()}


def _failing(machine: Machine, failing: str, code: int) -> None:
    def _before(_system: ModelSys, call: str) -> None:
        if call == failing:
            raise OSError(code, os.strerror(code))

    machine.before = _before


def test_a_filesystem_read_only_by_then_keeps_the_file_unfinished(machine: Machine) -> None:
    _failing(machine, "unlink", errno.EROFS)
    with pytest.raises(OSError, match="Read-only"):
        machine.recover()


def test_a_name_that_cannot_be_removed_is_told_of(machine: Machine) -> None:
    _failing(machine, "unlink", errno.EIO)
    machine.recover()
    assert machine.rows[0]["state"] == State.FAILED
    assert machine.rows[0]["reason"].endswith(UNSETTLED)


def test_a_time_that_a_read_only_filesystem_keeps_ends_no_recovery(machine: Machine) -> None:
    _failing(machine, "set_times", errno.EROFS)
    machine.recover()
    assert machine.rows[0]["state"] == State.MOVED


def _directories(tree: Tree) -> None:
    for name in b"abc":
        tree.directory(bytes([name]))
        tree.file(b"%c/file" % name, b"content in %c" % name)


def _linked(tree: Tree) -> None:
    for name in (b"a", b"b"):
        tree.directory(name)
    tree.file(b"a/file", b"a file with two names")
    tree.link(b"a/file", b"b/file")


def _damaged(call: str, code: int) -> type[ModelSys]:
    """Return a machine on which this call fails for the directory ``b``."""

    def _refuse(failing: str, where: bool) -> None:
        if where and call == failing:
            raise OSError(code, os.strerror(code))

    class Damaged(ModelSys):
        def open(  # type: ignore[override]
            self, path: bytes, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
        ) -> int:
            _refuse("open", path == b"b")
            return super().open(path, flags, mode, dir_fd=dir_fd)

        def set_times(self, fd: int, atime_ns: int, mtime_ns: int) -> None:
            _refuse("set_times", self._at(fd) == self.disk.find(b"b"))
            super().set_times(fd, atime_ns, mtime_ns)

    return Damaged


def _times(machine: Machine) -> list[int]:
    return [machine.disk.inodes[machine.disk.find(name) or 0].mtime for name in (b"a", b"b", b"c")]


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES])
def test_one_unreadable_directory_bars_no_other(code: int) -> None:
    machine = _died_after("unlink", 0, Workload("directories", _directories))
    times = _times(Workload("directories", _directories).machine())
    healthy, machine.system = machine.system, _damaged("open", code)
    machine.recover()
    assert [row["state"] for row in machine.rows] == [State.MOVED, State.FAILED, State.MOVED]
    assert machine.rows[1]["reason"].startswith(os.strerror(code))
    assert machine.rows[1]["reason"].endswith(UNSETTLED)
    assert _times(machine)[::2] == times[::2]
    machine.system = healthy
    assert machine.run()[1] == "done"
    assert {row["state"] for row in machine.rows} == {State.MOVED}
    assert not [path for path in _files(machine) if b".zc-" in path]
    assert _times(machine) == times


def test_names_of_one_file_wait_for_the_one_that_is_unreadable() -> None:
    """At one name the copy is for good; the other's changes a power cut has undone."""
    machine = _died_after("unlink", 0, Workload("links", _linked))
    system = machine.system
    for name in (b"a/file", b"b/file"):
        row = next(row for row in kept_journal.rows_of(machine.journal) if row["path"] == name)
        above = machine.disk.inodes[machine.disk.find(name[:1]) or 0]
        temp = above.names.pop(row["temp"])
        if name == b"a/file":
            above.names[b"file"] = temp
    machine.system = _damaged("open", errno.EIO)
    machine.recover()
    assert {row["state"] for row in machine.rows} == {State.FAILED}
    machine.system = system
    machine.run()
    assert machine.disk.find(b"a/file") == machine.disk.find(b"b/file")


def test_a_recovery_that_is_stopped_leaves_the_rest_to_the_next() -> None:
    machine = _died_after("unlink", 0, Workload("directories", _directories))
    times = _times(Workload("directories", _directories).machine())
    machine.recover(ticks=4)
    states = [row["state"] for row in machine.rows]
    assert set(states) == {State.MOVED, State.SWAPPING}
    assert _times(machine) == times
    machine.recover()
    assert {row["state"] for row in machine.rows} == {State.MOVED}


@pytest.mark.parametrize("ticks", range(8))
def test_a_stopped_recovery_records_names_of_one_file_together(ticks: int) -> None:
    machine = _died_after("unlink", 0, Workload("links", _linked))
    machine.recover(ticks)
    assert len({row["state"] for row in machine.rows}) == 1


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_time_that_cannot_be_put_back_bars_no_result(code: int) -> None:
    machine = _died_after("unlink", 0, Workload("directories", _directories))
    times = _times(Workload("directories", _directories).machine())
    healthy, machine.system = machine.system, _damaged("set_times", code)
    with pytest.raises(OSError, match=os.strerror(code)) as raised:
        machine.recover()
    assert raised.value.filename == "/b"
    machine.system = healthy
    assert _times(machine)[::2] == times[::2]
    machine.recover()
    assert _times(machine) == times
    assert {row["state"] for row in machine.rows} == {State.MOVED}


def test_a_time_that_cannot_be_put_back_is_no_success(machine: Machine) -> None:
    _failing(machine, "set_times", errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        machine.recover()


def _own_all(machine: Machine) -> None:
    for _, number in machine.disk.walk():
        machine.disk.inodes[number].uid = 1000


def _own_the_copy(machine: Machine) -> None:
    machine.disk.inodes[machine.disk.find(b"file") or 0].uid = 1000


@pytest.mark.parametrize("since", [lambda _: None, _own_all, _own_the_copy])
def test_a_copy_that_a_disk_lost_in_part_does_not_cost_the_original(
    machine: Machine, since: Callable[[Machine], None]
) -> None:
    """Nor if both, or what has the name, were given to somebody else since."""
    _spoil(machine, b"file")
    since(machine)
    before = _files(machine)
    machine.recover()
    (row,) = machine.rows
    assert _files(machine) == before
    assert before[row["temp"]] == b"content of the only file"
    assert row["state"] == State.FAILED
    assert row["temp"].decode() in row["reason"]


def test_a_copy_that_was_written_to_is_no_leftover_whatever_its_metadata() -> None:
    """It may have had the file's name before the crash."""
    machine = _died_after("exchange", 0)
    _spoil(machine, kept_journal.rows_of(machine.journal)[0]["temp"])
    before = _files(machine)
    machine.recover()
    assert _files(machine) == before
    assert machine.rows[0]["state"] == State.FAILED


def test_a_copy_that_was_changed_like_its_original_is_a_leftover() -> None:
    """As by chown -R, before the job is resumed."""
    machine = _died_after("exchange", 0)
    for path, number in machine.disk.walk():
        assert path
        machine.disk.inodes[number].uid = 1000
    machine.recover()
    assert list(_files(machine)) == [b"file"]
    assert machine.rows[0]["state"] == State.PENDING


def test_a_read_only_filesystem_that_cannot_be_synced_is_told_of(machine: Machine) -> None:
    def _before(_system: ModelSys, call: str) -> None:
        if call in ("unlink", "sync"):
            raise OSError(errno.EROFS if call == "unlink" else errno.EIO, call)

    machine.before = _before
    with pytest.raises(OSError, match="unlink"):
        machine.recover()


def test_an_odd_digest_is_refused_before_anything_is_touched(machine: Machine) -> None:
    with closing(kept_journal.opened(machine.journal)) as journal:
        journal._db.execute("UPDATE files SET digest = x'00' WHERE state = 2")
        machine.journal = journal._db.serialize()
    calls: list[str] = []
    machine.before = lambda _system, call: calls.append(call)
    with pytest.raises(sqlite3.DatabaseError, match="is not a digest"):
        machine.recover()
    assert calls == []


def test_an_engine_that_has_just_exchanged_names_is_waited_for(machine: Machine) -> None:
    first: list[float] = []
    began = machine.clock.now

    def _before(_system: ModelSys, call: str) -> None:
        if call == "unlink":
            first.append(machine.clock.now)

    machine.before = _before
    machine.recover()
    assert first[0] - began >= GRACE


def test_nothing_stays_open(machine: Machine) -> None:
    systems: list[ModelSys] = []
    machine.before = lambda system, _call: systems.append(system)
    machine.recover()
    assert systems[0].open_files.files == {}
