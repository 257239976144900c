"""The half of the seam that spawns processes without an event loop, as a rebalance job does.

Also how this program starts further processes of itself: helpers, the keeper, jobs.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from zconsole.system.state_dir import open_private

SCRUBBED_PREFIXES = ("ZFS_COLOR", "ZPOOL_VDEV_NAME_", "ZPOOL_SCRIPTS_", "ZPOOL_STATUS_")
"""Variables that change what zpool prints (zpool(8), Environment Variables)."""

SYSTEM_PATH = "/usr/sbin:/sbin:/usr/local/sbin"

PACKAGE_ROOT = Path(__file__).resolve().parents[2]
"""The directory that holds this very zconsole: a checkout, site-packages, an unpacked archive."""

_START = """\
import sys
sys.path.insert(0, {root!r})
import zconsole
sys.path.append(sys.path.pop(0))
import runpy
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""
"""What is beside the package, as in site-packages, comes after Python's own modules."""

LAST_MOMENT = 0.2
"""Seconds that a killed process has to end, unless it is stuck in the kernel."""


class Completed(NamedTuple):
    """A finished command: its output as text (surrogate-escaped) and its exit status."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str


class DeadlineError(Exception):
    """A command did not end in time; it was killed and is no longer waited for.

    ``alive`` says whether it is still there: a call inside the kernel cannot be killed, and
    whoever asked must not ask again before it is gone.
    """

    def __init__(self, text: str, alive: Callable[[], bool] = lambda: False) -> None:
        super().__init__(text)
        self.alive = alive


def zfs_environment() -> dict[str, str]:
    """An environment in which zpool prints plain, parseable text in UTF-8 and no colour.

    Ordinary users' PATH often lacks the directories zpool is in, though they may run it.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith(SCRUBBED_PREFIXES)}
    path = ":".join(filter(None, (kept.get("PATH", os.defpath), SYSTEM_PATH)))
    kept.update(LC_ALL="C.UTF-8", NO_COLOR="1", PATH=path)
    return kept


def own(module: str, *words: str) -> tuple[str, ...]:
    """The command that runs a module of this very zconsole, as ``python -m`` would.

    Python runs isolated (-I): it minds neither its variables in the environment, which ``sudo -E``
    hands to root, nor modules in the working directory.
    """
    start = _START.format(root=str(PACKAGE_ROOT), module=module)
    return (sys.executable, "-Ic", start, *words)


def find_command(name: str) -> str | None:
    """The file a command's name runs; None when it is not installed."""
    return shutil.which(name, path=zfs_environment()["PATH"])


def spawned(
    argv: Sequence[str],
    stdout: IO[bytes] | int,
    stderr: IO[bytes] | int,
    environment: Mapping[str, str],
    cwd: str | None = None,
) -> subprocess.Popen[bytes]:
    """A process in a session of its own, without standard input. Raises OSError if absent."""
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        env=environment,
        cwd=cwd,
        start_new_session=True,
    )


def run_blocking(argv: Sequence[str], deadline: float) -> Completed:
    """``CommandRunner.run`` for programs without an event loop; safe in a thread.

    Raises DeadlineError after ``deadline`` seconds, with the command killed and abandoned;
    OSError if absent.
    """
    process = spawned(argv, subprocess.PIPE, subprocess.PIPE, zfs_environment())
    try:
        out, err = process.communicate(timeout=deadline)
    except subprocess.TimeoutExpired:
        process.kill()
        _let_go(process)
        raise DeadlineError(f"{argv[0]} gave no answer in {deadline:.3g} s") from None
    decode = (out.decode("utf-8", "surrogateescape"), err.decode("utf-8", "surrogateescape"))
    return Completed(tuple(argv), process.returncode, *decode)


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """Take leave of a process that was killed: one stuck in the kernel is not waited for.

    Its pipes stay open then: a thread that reads one holds its lock, and closing would wait, too.
    """
    try:
        process.wait(LAST_MOMENT)
    except subprocess.TimeoutExpired:
        process.returncode = -signal.SIGKILL
        return
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def start_detached(argv: Sequence[str], log: Path) -> int:
    """Start a program in a session of its own, its output to ``log``; returns its process id.

    It outlives this process and the terminal.
    Raises OSError if absent, StateError for a log that is a link or that others may write to.
    """
    with os.fdopen(open_private(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab") as stream:
        process = spawned(argv, stream, stream, os.environ, str(PACKAGE_ROOT))
    process.returncode = 0  # it is not ours to wait for
    return process.pid
