"""Work in threads next to the event loop: its results, and that exit does not wait for it."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from tests.unit.zfs.sources.source_fakes import gone
from zconsole.system import daemon_thread
from zconsole.system.daemon_thread import FileThread, in_daemon_thread
from zconsole.system.process import DeadlineError

STUCK = """
import asyncio, threading
from zconsole.system.daemon_thread import in_daemon_thread

async def main():
    started = threading.Event()
    task = asyncio.ensure_future(in_daemon_thread(lambda: started.set() or
    threading.Event().wait()))
    while not started.is_set():
        await asyncio.sleep(0)
    task.cancel()

asyncio.run(main())
"""


async def test_results_and_errors_come_back():
    assert await in_daemon_thread(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await in_daemon_thread(lambda: 1 // 0)


async def test_it_runs_in_a_thread_of_its_own():
    assert await in_daemon_thread(threading.get_ident) != threading.get_ident()


@pytest.mark.slow
def test_a_stuck_job_does_not_keep_the_program_from_ending():
    done = subprocess.run(
        [sys.executable, "-c", STUCK], check=False, timeout=30, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


async def test_results_and_errors_of_a_read_come_back():
    files = FileThread()
    assert await files.run(lambda: 3, 30) == 3
    with pytest.raises(ZeroDivisionError):
        await files.run(lambda: 1 // 0, 30)
    assert await files.run(lambda: 4, 30) == 4


async def test_a_stuck_read_passes_its_deadline_and_blocks_nobody():
    gate, files = threading.Event(), FileThread()
    with pytest.raises(DeadlineError):
        await files.run(gate.wait, 0.01)
    with pytest.raises(DeadlineError) as caught:
        await files.run(lambda: 1, 30)
    assert caught.value.alive()
    gate.set()
    await gone(caught.value.alive)
    assert await files.run(lambda: 1, 30) == 1


async def test_reads_share_a_thread_that_ends_when_none_comes_any_more(monkeypatch):
    files = FileThread()
    thread = await files.run(threading.current_thread, 30)
    assert await files.run(threading.current_thread, 30) is thread
    monkeypatch.setattr(daemon_thread, "LINGER", 0.05)
    files = FileThread()
    thread = await files.run(threading.current_thread, 30)
    await gone(thread.is_alive)
    assert await files.run(threading.current_thread, 30) is not thread
