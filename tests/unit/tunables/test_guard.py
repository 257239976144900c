from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from zconsole.errors import ZconsoleError
from zconsole.sources.runner import ProcessRunner
from zconsole.tunables import guard
from zconsole.tunables.memory import alive, process_mark

NAME = "zfs_scan_suspend_progress"


def wait_for(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture
def victim():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


async def freeze(kernel, seconds=30.0, watch=None, name=NAME):
    await guard.start(ProcessRunner(), kernel.state, name, 1, seconds, watch, kernel.module)


async def test_restores_after_kill_9_of_the_console(kernel, victim):
    mark = process_mark(victim.pid)
    await freeze(kernel, watch=mark)
    assert kernel.read(NAME) == 1
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    assert not alive(mark)
    wait_for(lambda: kernel.read(NAME) == 0)


async def test_restores_when_its_time_is_over(kernel):
    await freeze(kernel, seconds=0.2)
    wait_for(lambda: kernel.read(NAME) == 0)


async def test_restores_without_its_memory(kernel):
    await freeze(kernel, seconds=0.3)
    for file in kernel.state.iterdir():
        file.unlink()
    wait_for(lambda: kernel.read(NAME) == 0)


async def test_restores_when_told_to_stop(kernel):
    await freeze(kernel)
    owner = guard_pid(kernel)
    os.kill(owner, signal.SIGTERM)
    wait_for(lambda: kernel.read(NAME) == 0)


async def test_goes_when_somebody_else_put_it_back(kernel):
    await freeze(kernel)
    owner = guard_pid(kernel)
    mark = process_mark(owner)
    kernel.write(NAME, 0)
    wait_for(lambda: not alive(mark))
    assert kernel.read(NAME) == 0


async def test_says_when_it_could_not_write(kernel):
    (kernel.module / "parameters" / NAME).unlink()
    with pytest.raises(ZconsoleError, match="does not exist"):
        await freeze(kernel)


def guard_pid(kernel) -> int:
    # The guard's book has this machine's own boot id, so it is read past its era.
    data = json.loads((kernel.state / "tunables.json").read_text())
    return int(data["values"][NAME]["owner"].partition(":")[0])
