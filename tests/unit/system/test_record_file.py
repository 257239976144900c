"""Records in files of the state directory."""

from __future__ import annotations

import contextlib
import errno
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest

from tests.unit.waiting import soon
from zconsole.system import patient, record_file
from zconsole.system.patient import NoAnswerError, NotAskedError
from zconsole.system.record_file import (
    MOST_BYTES,
    AsyncWriter,
    DamagedError,
    LockedRecord,
    LockedStore,
    encoded,
    record,
)
from zconsole.system.state_dir import StateError, write_private


@dataclass(frozen=True)
class Kept:
    names: tuple[str, ...]
    version: int = 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path / "kept.json"


def put(path: Path, kept: Kept) -> None:
    store = LockedStore(path.parent)
    assert store.mine("kept.lock")
    store.put(path.name, encoded(kept), "kept.lock")
    store.close()


def read(path: Path, most: int = MOST_BYTES) -> Kept:
    return LockedStore(None, (path.parent,)).read_file(path.name, record(Kept), most)


def test_what_was_written_is_read_unless_it_is_too_large(path):
    with pytest.raises(FileNotFoundError):
        read(path)
    put(path, Kept(("grün",)))
    assert read(path) == Kept(("grün",))
    with pytest.raises(StateError, match="over 9 bytes"):
        read(path, 9)


@pytest.mark.parametrize("text", ["", "{}", '{"names": 1}', "[" * 100_000, "\udcff"])
def test_a_damaged_file_is_named_with_what_helps(path, text):
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    path.chmod(0o600)
    with pytest.raises(
        DamagedError, match=r"kept\.json is damaged, or of another version: .*Move it away$"
    ):
        read(path)


def test_a_disk_that_fails_is_no_file_that_is_not_there(path, monkeypatch):
    def fails(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(record_file, "read_private", fails)
    with pytest.raises(StateError, match=r"kept\.json: Input/output error"):
        LockedRecord(Kept(()), path, "kept.lock", 1.0).read()


def test_a_locked_record_is_changed_by_one_at_a_time_and_read_by_all(path):
    ours = LockedRecord(Kept(()), path, "kept.lock", 1.0)
    theirs = LockedRecord(Kept(()), path, "kept.lock", 0.0)
    with ours.open() as write:
        with (
            pytest.raises(StateError, match=r"kept\.lock is locked by another zconsole"),
            theirs.open(),
        ):
            pass
        assert theirs.read() == Kept(())
        write(Kept(("a",)))
        assert theirs.read() == Kept(("a",))
    with theirs.open() as write:
        write(Kept(("b",)))
    assert ours.read() == Kept(("b",))


def test_a_directory_that_does_not_answer_is_given_up_and_what_comes_late_keeps_the_lock(
    path, monkeypatch
):
    answers = Event()

    def late(to, data):
        answers.wait(30.0)
        write_private(to, data)

    monkeypatch.setattr(record_file, "WRITTEN", 0.05)
    monkeypatch.setattr(record_file, "write_private", late)
    ours = LockedRecord(Kept(()), path, "kept.lock", 1.0)
    theirs = LockedRecord(Kept(()), path, "kept.lock", 0.0)
    with pytest.raises(NoAnswerError), ours.open() as write:
        write(Kept(("a",)))
    with pytest.raises(StateError, match="is locked"), theirs.open():
        pass
    answers.set()
    assert soon(path.exists)
    assert theirs.read() == Kept(("a",))


@pytest.mark.parametrize("background", [False, True])
def test_what_a_closed_store_has_yet_to_write_undoes_nothing_of_the_next(
    path, monkeypatch, background
):
    answers = Event()

    def late(to, data):
        answers.wait(30.0)
        write_private(to, data)

    monkeypatch.setattr(record_file, "WRITTEN", 0.05)
    monkeypatch.setattr(record_file, "write_private", late)
    ours = LockedStore(path.parent, writer=AsyncWriter() if background else None)
    theirs = LockedStore(path.parent)
    assert ours.mine("kept.lock")
    with contextlib.suppress(NoAnswerError):
        ours.put(path.name, b"ours", "kept.lock")
    if background:
        ours.put(path.name, b"newer", "kept.lock")
    ours.close()
    assert not theirs.mine("kept.lock")
    answers.set()
    monkeypatch.setattr(record_file, "WRITTEN", 60.0)
    assert soon(lambda: theirs.mine("kept.lock"))
    theirs.put(path.name, b"theirs", "kept.lock")
    assert path.read_bytes() == b"theirs"


def test_a_write_whose_thread_starts_after_the_deadline_still_holds_the_lock(path, monkeypatch):
    runs = Event()
    start = patient._thread.start_new_thread

    def start_late(job, args):
        return start(lambda: (runs.wait(30.0), job(*args)), ())

    monkeypatch.setattr(record_file, "WRITTEN", 0.05)
    ours, theirs = LockedStore(path.parent), LockedStore(path.parent)
    assert ours.mine("kept.lock")
    with monkeypatch.context() as late:
        late.setattr(patient, "_thread", SimpleNamespace(start_new_thread=start_late))
        with pytest.raises(NoAnswerError):
            ours.put(path.name, b"ours", "kept.lock")
    ours.close()
    assert not theirs.mine("kept.lock")
    runs.set()
    assert soon(lambda: theirs.mine("kept.lock"))
    assert path.read_bytes() == b"ours"


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError()])
def test_a_write_that_is_not_made_leaves_no_lock_behind(path, monkeypatch, error):
    def none_left(*_):
        raise error

    ours, theirs = LockedStore(path.parent), LockedStore(path.parent)
    assert ours.mine("kept.lock")
    with monkeypatch.context() as full:
        full.setattr(patient, "_thread", SimpleNamespace(start_new_thread=none_left))
        with pytest.raises(NotAskedError):
            ours.put(path.name, b"ours", "kept.lock")
    ours.close()
    assert theirs.mine("kept.lock")


def test_files_that_cannot_be_read_are_left_out_and_named(tmp_path):
    tmp_path.chmod(0o700)
    others = tmp_path / "others"
    others.mkdir(mode=0o700)
    for place, name, mode in (
        (tmp_path, "good.json", 0o600),
        (tmp_path, "open.json", 0o622),
        (others, "good.json", 0o600),
        (others, "bad.json", 0o600),
    ):
        (place / name).write_bytes(b"{" if name == "bad.json" else encoded(Kept((place.name,))))
        (place / name).chmod(mode)
    store = LockedStore(None, (tmp_path, others))
    kept = store.read_files(re.compile(r".*\.json"), record(Kept), MOST_BYTES, 60.0)
    assert kept == [Kept((tmp_path.name,))]
    assert sorted(path.name for path in store.problems) == ["bad.json", "open.json"]
    assert "bad.json is damaged" in store.problems[others / "bad.json"]
    assert "others may write to it" in store.problems[tmp_path / "open.json"]


def test_without_a_path_it_is_kept_in_memory():
    kept = LockedRecord(Kept(()), None, "kept.lock", 1.0)
    with kept.open() as write:
        write(Kept(("a",)))
    assert kept.read() == Kept(("a",))


def test_what_is_written_is_there_once_it_has_settled(tmp_path):
    writer = AsyncWriter()
    for name in ("a", "b", "a"):
        writer.write(tmp_path / name, name.encode())
    assert writer.settle(5)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"a", "b": b"b"}
    writer.write(tmp_path / "c", b"later")
    assert writer.settle(5)
    assert (tmp_path / "c").read_bytes() == b"later"


def test_a_disk_that_hangs_keeps_nobody_waiting_and_only_the_newest_is_written_then(
    tmp_path, monkeypatch
):
    hangs, written = threading.Event(), []

    def write(_path, data):
        hangs.wait(30)
        written.append(data)

    monkeypatch.setattr(record_file, "write_private", write)
    writer = AsyncWriter()
    began = time.monotonic()
    writer.write(tmp_path / "a", b"first")
    while writer._waiting:
        time.sleep(0.001)  # until the thread has reached the first one
    for data in (b"old", b"newest"):
        writer.write(tmp_path / "a", data)
    assert not writer.settle(0.01)
    assert time.monotonic() - began < 10
    hangs.set()
    assert writer.settle(5)
    assert written == [b"first", b"newest"]


def test_what_could_not_be_written_is_told_the_next_time(tmp_path):
    writer = AsyncWriter()
    missing = tmp_path / "none" / "a"
    writer.write(missing, b"x")
    assert writer.settle(5)
    with pytest.raises(StateError, match="No such file"):
        writer.write(missing, b"y")
    writer.settle(5)
    writer.write(tmp_path / "b", b"z")
    assert writer.settle(5)
