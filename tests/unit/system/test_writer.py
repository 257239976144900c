from __future__ import annotations

import threading
import time

import pytest

from zconsole.system.record_file import AsyncWriter
from zconsole.system.state_dir import StateError


def test_what_is_written_is_there_once_it_has_settled(tmp_path):
    writer = AsyncWriter()
    for name in ("a", "b", "a"):
        writer.write(tmp_path / name, name.encode())
    assert writer.settle(5)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"a", "b": b"b"}
    writer.write(tmp_path / "c", b"later")
    assert writer.settle(5)
    assert (tmp_path / "c").read_bytes() == b"later"


def test_a_disk_that_hangs_keeps_nobody_waiting_and_only_the_newest_is_written_then(tmp_path):
    hangs, written = threading.Event(), []

    def write(_path, data):
        hangs.wait(30)
        written.append(data)

    writer = AsyncWriter(write)
    began = time.monotonic()
    writer.write(tmp_path / "a", b"first")
    while writer._waiting:
        time.sleep(0.001)  # until the thread is at the first one
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
