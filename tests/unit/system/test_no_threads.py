"""If no thread can be started (pids.max, RLIMIT_NPROC): one clear error, and recovery later."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.system.test_keeper import Chore, Clock, settled
from zconsole.system.audit import Audit
from zconsole.system.daemon_thread import FileThread, in_daemon_thread
from zconsole.system.keeper import RETRY_SECONDS, Keeper
from zconsole.system.patient import Patient, Worker
from zconsole.system.process import DeadlineError
from zconsole.system.record_file import AsyncWriter
from zconsole.system.state_dir import StateError


def refuse_threads(patch: pytest.MonkeyPatch) -> None:
    """Refuse every new thread until the patch is undone."""

    def refused(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    patch.setattr(_thread, "start_new_thread", refused)
    patch.setattr(threading.Thread, "start", refused)


@pytest.fixture
def no_threads() -> Iterator[pytest.MonkeyPatch]:
    """Refuse every new thread until the yielded patch is undone."""
    with pytest.MonkeyPatch.context() as patch:
        refuse_threads(patch)
        yield patch


def test_what_is_asked_in_one_is_refused(no_threads):
    patient = Patient()
    with pytest.raises(StateError, match="thread"):
        patient.call(int)
    no_threads.undo()
    assert patient.call(int) == 0


async def test_so_is_what_is_asked_beside_the_loop(no_threads):
    files = FileThread()
    with pytest.raises(StateError, match="thread"):
        await in_daemon_thread(int)
    with pytest.raises(DeadlineError, match="thread"):
        await files.run(int, 10.0)
    no_threads.undo()
    assert await in_daemon_thread(int) == 0
    assert await files.run(int, 10.0) == 0


def test_what_is_put_is_refused_and_not_done_later(no_threads):
    done, worker = [], Worker("test")
    with pytest.raises(StateError, match="thread"):
        worker.put(lambda: done.append("early"))
    no_threads.undo()
    worker.put(lambda: done.append("late"))
    assert worker.settle(10.0)
    assert done == ["late"]


def test_a_file_is_written_the_next_time(no_threads, tmp_path: Path):
    tmp_path.chmod(0o700)
    writer = AsyncWriter()
    with pytest.raises(StateError, match="thread"):
        writer.write(tmp_path / "file", b"1")
    no_threads.undo()
    writer.write(tmp_path / "file", b"2")
    assert writer.settle(10.0)
    assert (tmp_path / "file").read_bytes() == b"2"


def test_a_note_of_the_log_raises_nothing(no_threads):
    lines: list[str] = []
    log = Audit({}, {"here": lines.append})
    log.note(1.0, "noted")
    no_threads.undo()
    log.note(2.0, "noted")
    assert log.settle(10.0)
    assert len(lines) == 1


async def test_a_duty_that_fails_of_it_acts_again(no_threads):
    class Threaded(Chore):
        async def act(self) -> bool:
            await in_daemon_thread(int)
            return await super().act()

    clock, chore = Clock(), Threaded()
    kept = Keeper({}, (), Audit({}, {}), clock)
    kept.duties[chore] = 0.0
    kept.act_on_due()
    await settled()
    assert (chore.acts, kept._acting) == (0, {})
    no_threads.undo()
    clock.now += RETRY_SECONDS
    kept.act_on_due()
    await kept._acting[chore]
    assert chore.acts == 1
