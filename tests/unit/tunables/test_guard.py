from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.waiting import soon
from zconsole.errors import ZconsoleError
from zconsole.system.async_process import ProcessRunner
from zconsole.system.host import alive, process_mark
from zconsole.system.state_dir import lock_within
from zconsole.tunables import guard

pytestmark = pytest.mark.slow

NAME = "zfs_scan_suspend_progress"


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
    assert soon(lambda: kernel.read(NAME) == 0)


async def test_restores_when_its_time_is_over(kernel):
    await freeze(kernel, seconds=0.2)
    assert soon(lambda: kernel.read(NAME) == 0)
    assert soon(lambda: NAME not in remembered(kernel))


async def test_restores_without_its_memory(kernel):
    await freeze(kernel, seconds=0.3)
    for file in kernel.state.iterdir():
        file.unlink()
    assert soon(lambda: kernel.read(NAME) == 0)


async def test_nothing_in_the_directory_of_the_console_is_run(kernel, tmp_path, monkeypatch):
    place = tmp_path / "somebodys"
    place.mkdir()
    for name in ("argparse.py", "zconsole.py"):
        (place / name).write_text("import sys; sys.exit('not what was asked for')")
    monkeypatch.chdir(place)
    await freeze(kernel, seconds=0.2)
    assert soon(lambda: kernel.read(NAME) == 0)


async def test_restores_when_told_to_stop(kernel):
    await freeze(kernel)
    owner = guard_pid(kernel)
    mark = process_mark(owner)
    os.kill(owner, signal.SIGTERM)
    assert soon(lambda: kernel.read(NAME) == 0)
    assert soon(lambda: not alive(mark))


async def test_goes_when_somebody_else_put_it_back(kernel):
    await freeze(kernel)
    owner = guard_pid(kernel)
    mark = process_mark(owner)
    kernel.write(NAME, 0)
    assert soon(lambda: not alive(mark))
    assert kernel.read(NAME) == 0


async def test_says_when_it_could_not_write(kernel):
    (kernel.module / "parameters" / NAME).unlink()
    with pytest.raises(ZconsoleError, match="does not exist"):
        await freeze(kernel)


def test_puts_back_when_whoever_started_it_is_killed_meanwhile(kernel):
    lock = lock_within(kernel.state / "tunables.json.lock", 1.0)
    words = ["--state", str(kernel.state), "--module", str(kernel.module), "--seconds", "60"]
    argv = [sys.executable, "-m", "zconsole.tunables.guard", *words, f"{NAME}=1"]
    starter = subprocess.Popen(argv)
    children = Path(f"/proc/{starter.pid}/task/{starter.pid}/children")
    assert soon(lambda: children.read_text().strip())
    mark = process_mark(int(children.read_text()))
    starter.kill()
    starter.wait()
    os.close(lock)
    assert soon(lambda: not alive(mark))
    assert kernel.read(NAME) == 0


async def test_one_that_takes_too_long_to_start_is_an_error_of_one_line(kernel, monkeypatch):
    monkeypatch.setattr(guard, "START", 0.01)
    with pytest.raises(ZconsoleError, match=r"no answer in 0\.01 s"):
        await freeze(kernel)


def remembered(kernel) -> dict:
    # The guard's book has this machine's own boot id, so it is read past its era.
    return json.loads((kernel.state / "tunables.json").read_text())["values"]


def guard_pid(kernel) -> int:
    return int(remembered(kernel)[NAME]["owner"].partition(":")[0])
