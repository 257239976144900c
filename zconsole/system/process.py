"""Processes without an event loop, and in the background: never started by a shell.

Also how this program starts further processes of itself: helpers, the keeper, jobs. For an event
loop there is ``zconsole.system.async_process``.
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
"""Environment variables that change the output of zpool (zpool(8), Environment Variables)."""

SYSTEM_PATH = "/usr/sbin:/sbin:/usr/local/sbin"

PACKAGE_ROOT = Path(__file__).resolve().parents[2]
"""Directory of the running package: a checkout, site-packages, or an unpacked archive."""

_START = """\
import sys
sys.path.insert(0, {root!r})
import zconsole
sys.path.append(sys.path.pop(0))
import runpy
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""
"""Program that runs a module of the package at ``root``.

``root`` moves to the end of sys.path after the import, so that other modules in it, as in
site-packages, can't replace Python's own.
"""

LAST_MOMENT = 0.2
"""Seconds to wait for a killed process to end; one that takes longer is stuck in the kernel."""


class Completed(NamedTuple):
    """A finished command: its output as text, with bytes that aren't UTF-8 surrogate-escaped."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str


class DeadlineError(Exception):
    """A command did not end in time and is no longer waited for, or could not be started just now.

    ``alive`` returns whether it still exists: a process that is stuck in the kernel can't be
    killed, and the caller must not start another one before it is gone.
    """

    def __init__(self, text: str, alive: Callable[[], bool] = lambda: False) -> None:
        super().__init__(text)
        self.alive = alive


def zfs_environment() -> dict[str, str]:
    """Return an environment in which zpool prints parseable text in UTF-8, without color.

    Directories of zpool are added to PATH: ordinary users' often lacks them, though they may run
    it.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith(SCRUBBED_PREFIXES)}
    path = ":".join(filter(None, (kept.get("PATH", os.defpath), SYSTEM_PATH)))
    kept.update(LC_ALL="C.UTF-8", NO_COLOR="1", PATH=path)
    return kept


def own(module: str, *words: str) -> tuple[str, ...]:
    """Return the command that runs a module of the running package, as ``python -m`` would.

    Python runs isolated (-I): it ignores its environment variables, which ``sudo -E`` passes on to
    root, and modules in the working directory.
    """
    start = _START.format(root=str(PACKAGE_ROOT), module=module)
    return (sys.executable, "-Ic", start, *words)


def find_command(name: str) -> str | None:
    """Return the file that a command's name stands for; None if it is not installed."""
    return shutil.which(name, path=zfs_environment()["PATH"])


def spawned(
    argv: Sequence[str],
    stdout: IO[bytes] | int,
    stderr: IO[bytes] | int,
    environment: Mapping[str, str],
    cwd: str | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, without standard input.

    Raises OSError if the command is absent.
    """
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
    """Run a command to its end, blocking; safe in a thread.

    Raises DeadlineError after ``deadline`` seconds, when the command is killed and abandoned;
    OSError if it is absent.
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
    """Wait for a killed process to end, and close its pipes; abandon it if stuck in the kernel.

    The pipes of an abandoned one stay open: the thread of communicate() that reads a pipe holds its
    lock, for which closing it would wait.
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
    """Start a program that outlives this process and the terminal; return its process id.

    Its output is appended to ``log``. Raises OSError if the program is absent, StateError if the
    log is a link or others may write to it.
    """
    with os.fdopen(open_private(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab") as stream:
        process = spawned(argv, stream, stream, os.environ, str(PACKAGE_ROOT))
    process.returncode = 0  # so that Popen doesn't warn that nobody waits for it
    return process.pid
