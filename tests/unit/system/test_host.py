"""Marks of processes, and whether they still run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from zconsole.system.host import alive, process_mark


def stat(proc: Path, state: str, pid: int = 12) -> Path:
    """Create a process with a misleading name."""
    place = proc / str(pid)
    place.mkdir()
    rest = " ".join(str(number) for number in range(4, 53))
    (place / "stat").write_text(f"{pid} (z) Z 1) {state} {rest}\n")
    return proc


@pytest.mark.parametrize("state", ["R", "S", "D", "T", "t", "I"])
def test_a_process_runs_also_where_it_is_stopped_or_hangs(tmp_path, state):
    proc = stat(tmp_path, state)
    assert process_mark(12, proc) == "12:22"
    assert alive("12:22", proc)
    assert not alive("12:23", proc)
    assert not alive("13:22", proc)


@pytest.mark.parametrize("state", ["Z", "X", "x"])
def test_one_that_was_killed_is_gone_though_a_thread_of_it_hangs_in_the_kernel(tmp_path, state):
    assert not alive("12:22", stat(tmp_path, state))


def test_one_that_nobody_has_waited_for_is_gone():
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    mark = process_mark(process.pid)
    assert mark is not None
    assert not alive(mark)
    process.wait()


@pytest.mark.parametrize("mark", ["", ":", "x:1", "{pid}", "{pid}:"])
def test_what_is_no_mark_is_gone(mark):
    assert not alive(mark.format(pid=os.getpid()))
