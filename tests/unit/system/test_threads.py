"""Calls in threads leave no stacks behind, whatever Python and its collector do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import zconsole

pytestmark = pytest.mark.slow

ASKS = """
import asyncio, contextlib, gc, sys, threading
sys.path.insert(0, sys.argv[1])
from zconsole.system.daemon_thread import FileThread, in_daemon_thread
from zconsole.system.patient import Patient
gc.disable()  # a busy console collects seldom

def stacks():
    with open("/proc/self/maps") as maps:
        return sum(1 for _ in maps)

def refused():
    raise OSError("refused")

def ask(patient):
    patient.call(int)
    with contextlib.suppress(OSError):
        patient.call(refused)

def late():
    go, patient = threading.Event(), Patient()
    with contextlib.suppress(Exception):
        patient.call(go.wait, 0.0)
    go.set()

async def awaited(files):
    await in_daemon_thread(int)
    with contextlib.suppress(OSError):
        await in_daemon_thread(refused)
    with contextlib.suppress(OSError):
        await files.run(refused, 30.0)
    hangs = threading.Event()
    task = asyncio.create_task(in_daemon_thread(hangs.wait))
    await asyncio.sleep(0)
    task.cancel()
    hangs.set()

async def asks(count):
    files, patient = FileThread(), Patient()
    for _ in range(count):
        ask(patient)
        late()
        await awaited(files)
    for _ in range(3000):  # the last ones are on their way out
        if stacks() < before + 20:
            break
        await asyncio.sleep(0.01)

before = 10**9
asyncio.run(asks(3))
before = stacks()
asyncio.run(asks(200))
print(stacks() - before)
"""


def test_a_thousand_asks_leave_no_stacks() -> None:
    argv = [sys.executable, "-c", ASKS, str(Path(zconsole.__file__).parents[1])]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 20
