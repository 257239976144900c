"""The job under test, run as an operator would, and its journal's contents after a power cut."""

from __future__ import annotations

import importlib
import os
import pkgutil
import resource
import shutil
import signal
import sqlite3
import time
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from tests.cuts import kept_journal
from tests.vm.inside.power.filesystems import JOURNAL, Filesystem
from zconsole import rebalance
from zconsole.cli.main import main
from zconsole.rebalance.engine import descriptors
from zconsole.rebalance.engine.journal import Journal, State

SECONDS = 300.0
"""Limit in seconds for one job: emulation is slow."""
DATABASE = JOURNAL / "job.db"
FILES = descriptors.OTHERS + 12 * descriptors.A_FILE
"""Limit of open files, so low that even a small tree is moved in several batches."""
_MOST_FILES = Path("/proc/sys/fs/nr_open")
"""The highest limit that even root may set for itself (proc_sys_fs(5))."""
_OUTPUT = Path("/run/power-output")
_COPY = Path("/run/power-journal")
_NEW_TIME = 0x80
"""CLONE_NEWTIME (linux/sched.h)."""


def load() -> None:
    """Import all that a job needs, so that no fork of this process has to."""
    for module in pkgutil.walk_packages(rebalance.__path__, f"{rebalance.__name__}."):
        importlib.import_module(module.name)
    importlib.import_module("zconsole.cli.rebalance")


def words(filesystem: Filesystem, engine: str) -> list[str]:
    """Return the command, which is the same for a first run and after a power cut."""
    return [
        *("rebalance", "run", str(filesystem.root), "--engine", engine, "--allow-non-zfs"),
        *("--journal", str(DATABASE), "--yes", "--json"),
    ]


def execute(command: list[str]) -> str | None:
    """Run a zconsole command as if the machine had just booted; returns what went wrong, or None.

    It runs in a fork of this process, which has loaded all modules: starting Python would take most
    of the time of a small job.
    """
    most = _MOST_FILES.read_text()
    _MOST_FILES.write_text(str(FILES))
    try:
        child = os.fork()
        if child == 0:
            os._exit(_booted(command))
        code = _waited(child)
    finally:
        _MOST_FILES.write_text(most)
    return None if code == 0 else f"the job ended with {code}: {_last_words()}"


def _booted(command: list[str]) -> int:
    """Run a command, in a child, with a clock that says the machine has just booted."""
    os.setsid()
    os.unshare(_NEW_TIME)
    seconds = int(time.clock_gettime(time.CLOCK_BOOTTIME)) - 1
    Path("/proc/self/timens_offsets").write_text(f"boottime -{seconds} 0\n")
    grandchild = os.fork()  # only a child gets the new clock
    if grandchild:
        return os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1])
    os.environ["ZCONSOLE_STATE"] = str(JOURNAL / "state")
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    code = 1
    try:
        with _OUTPUT.open("w") as output, redirect_stdout(output), redirect_stderr(output):
            code = main(command)
    finally:
        os._exit(code)


def _waited(child: int) -> int:
    """Return the exit status of a child; on timeout it and its children are killed."""
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


def _last_words() -> str:
    """Return the command's messages: everything but the JSON lines about files."""
    lines = _OUTPUT.read_text(errors="replace").splitlines() if _OUTPUT.exists() else []
    return "; ".join(line for line in lines if not line.startswith('{"path"'))[-600:]


def rows() -> list[dict[str, Any]]:
    """Return the journal's rows of all files; empty if there is no journal yet.

    Reads a copy: opening a database recovers it, which is the job's task.
    """
    shutil.rmtree(_COPY, ignore_errors=True)
    _COPY.mkdir()
    for file in JOURNAL.glob(f"{DATABASE.name}*"):
        if file.suffix in (".db", ".db-wal"):
            shutil.copyfile(file, _COPY / file.name)
    copy = _COPY / DATABASE.name
    if not copy.exists():
        return []
    with closing(sqlite3.connect(copy, isolation_level=None)) as database:
        return kept_journal.rows(Journal(database, copy))


def is_under_way(found: list[dict[str, Any]]) -> bool:
    """Return whether a job was started and has something left to do."""
    return any(row["state"] in (State.PENDING, State.CREATING, State.SWAPPING) for row in found)


def show(text: str) -> None:
    """Print one line and flush it: the host waits for it."""
    print(text, flush=True)
