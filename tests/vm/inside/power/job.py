"""The job under test as an operator runs it, and what its journal says after a power cut."""

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
"""For one job at most: an emulated processor is slow."""
DATABASE = JOURNAL / "job.db"
FILES = descriptors.OTHERS + 12 * descriptors.A_FILE
"""Files that a job may have open: a small tree is moved in several batches, as a large one is."""
_MOST_FILES = Path("/proc/sys/fs/nr_open")
"""What not even root may raise its own limit above (proc_sys_fs(5))."""
_OUTPUT = Path("/run/power-output")
_COPY = Path("/run/power-journal")
_NEW_TIME = 0x80
"""CLONE_NEWTIME (linux/sched.h)."""


def load() -> None:
    """Import all that a job needs, so that no copy of this process has to."""
    for module in pkgutil.walk_packages(rebalance.__path__, f"{rebalance.__name__}."):
        importlib.import_module(module.name)
    importlib.import_module("zconsole.cli.rebalance")


def words(filesystem: Filesystem, engine: str) -> list[str]:
    """The command, the same for a first run and to go on after a power cut."""
    return [
        *("rebalance", "run", str(filesystem.root), "--engine", engine, "--allow-non-zfs"),
        *("--journal", str(DATABASE), "--yes", "--json"),
    ]


def execute(command: list[str]) -> str | None:
    """Run a command of zconsole on a machine that has just booted; what went wrong, if anything.

    In a copy of this process, which has loaded all modules: starting Python anew takes most
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
    """In a child: run a command for which the machine booted a moment ago."""
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
    """The exit status of a child; it and its own are ended when its time is up."""
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
    """What the command complained of: all but the JSON lines about files."""
    lines = _OUTPUT.read_text(errors="replace").splitlines() if _OUTPUT.exists() else []
    return "; ".join(line for line in lines if not line.startswith('{"path"'))[-600:]


def rows() -> list[dict[str, Any]]:
    """What the journal has of every file; nothing where there is no journal yet.

    Read from a copy: to open a database is to put it right, which is for the job to do.
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
    """Whether a job was begun and has something left to do."""
    return any(row["state"] in (State.PENDING, State.CREATING, State.SWAPPING) for row in found)


def show(text: str) -> None:
    """Print one line at once: the host counts on it."""
    print(text, flush=True)
