"""Commands of zconsole in processes of their own, with a faked clock and kernel.

`Apart` starts one process that imports zconsole; each command runs in a fork of it, which saves the
time to start. The fakes are put in place below zconsole: in `time`, `datetime`, `os` and `fcntl`,
before it is imported.
"""

from __future__ import annotations

import atexit
import builtins
import datetime
import fcntl
import importlib
import io
import json
import os
import pkgutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from types import SimpleNamespace
from typing import Any

TREE = Path(__file__).parents[2]
REWRITE = 0x40208303
"""ZFS_IOC_REWRITE (sys/fs/zfs.h), which filesystems other than ZFS do not have."""
MADE_UP = (
    *("/sys/", "/proc/sys/kernel/random/boot_id", "/dev/zfs"),
    *("/usr/sbin/zpool", "/sbin/zpool", "/usr/local/sbin/zpool"),
)
"""Beginnings of paths that are looked up below `Machine.root`."""
PATIENCE = 120
"""Seconds that a command may take."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The faked parts of the machine that a command sees."""

    root: str = ""
    """Directory with a /sys and a boot id; empty: those of the real machine."""
    now: float = 0.0
    """The time, epoch seconds; 0: the real clock."""
    local: tuple[int, ...] = ()
    """The time that `datetime.now` returns: year, month, day, hour; empty: the real one."""
    rewrites: bool = False
    """Whether ZFS_IOC_REWRITE succeeds on any filesystem."""
    ordinary: bool = False
    """Whether the user is somebody other than root."""


@dataclass(frozen=True, slots=True)
class Said:
    """Exit code and output of a command."""

    code: int
    """Exit code of the process; negative: the signal that ended it."""
    out: str
    err: str

    def __str__(self) -> str:
        parts = (("stdout", self.out), ("stderr", self.err))
        lines = [f"{name}| {line}" for name, text in parts for line in text.splitlines()]
        return "\n".join([*lines, f"exit {self.code}"])


@dataclass(slots=True)
class Apart:
    """The process from which commands are forked."""

    _process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        command = [sys.executable, "-m", "tests.lock.apart"]
        pipe = subprocess.PIPE
        environ = {**os.environ, "PYTHONUTF8": "1"}
        self._process = subprocess.Popen(command, cwd=TREE, stdin=pipe, stdout=pipe, env=environ)
        atexit.register(self.close)

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    def run(
        self, words: Sequence[str], environ: Mapping[str, str], machine: Machine, act: str
    ) -> Said:
        """Run a function in a fork of this process, given its command line words."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"words": words, "environ": dict(environ), "machine": asdict(machine), "act": act}
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        return Said(**json.loads(self._process.stdout.readline()))


@cache
def _apart(_process: int) -> Apart:
    return Apart()


def run(
    words: Sequence[str],
    environ: Mapping[str, str],
    machine: Machine | None = None,
    act: str = "zconsole.cli.main:main",
) -> Said:
    """Run a function, named `module:name`, with command line words; by default, the program's."""
    return _apart(os.getpid()).run(words, environ, machine or Machine(), act)


# In the process.

SEEN = SimpleNamespace(machine=Machine())
"""Holds the machine that the command of this process sees."""


def made_up() -> None:
    """Replace clock and kernel with fakes that follow `SEEN`; call before zconsole is imported."""
    assert "zconsole" not in sys.modules
    clock = time.time
    time.time = lambda: SEEN.machine.now or clock()
    datetime.datetime = _Local
    ioctl, user = fcntl.ioctl, os.geteuid
    os.geteuid = lambda: user() or (1000 if SEEN.machine.ordinary else 0)

    def rewritten(fd: int, request: int, *rest: Any) -> Any:
        if not SEEN.machine.rewrites or request != REWRITE:
            return ioctl(fd, request, *rest)
        print(
            "rewrite: offset {}, length {}".format(*struct.unpack("=4Q", rest[0])), file=sys.stderr
        )
        return b""

    fcntl.ioctl = rewritten
    for module, names in (
        (os, ("open", "stat", "lstat", "access", "listdir", "scandir", "readlink")),
        (io, ("open",)),
        (builtins, ("open",)),
    ):
        for name in names:
            setattr(module, name, _elsewhere(getattr(module, name)))


class _Local(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
        """Return the faked time of the machine."""
        return cls(*SEEN.machine.local, tzinfo=tz) if SEEN.machine.local else super().now(tz)


def _elsewhere(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a call so that its first argument may be a path of the faked kernel.

    In results of `stat` there, the inode number is derived from the path.
    """

    def redirected(path: Any, *rest: Any, **more: Any) -> Any:
        if not SEEN.machine.root or not isinstance(path, (str, bytes, os.PathLike)):
            return call(path, *rest, **more)
        text = os.fsdecode(path)
        if not f"{text}/".startswith(MADE_UP):
            return call(path, *rest, **more)
        found = call(SEEN.machine.root + text, *rest, **more)
        if isinstance(found, os.stat_result):
            return os.stat_result((found[0], zlib.crc32(text.encode()), *found[2:]))
        return found

    return redirected


def serve() -> None:
    """Run commands one after another, each in a fork."""
    made_up()
    package = importlib.import_module("zconsole.cli")
    for module in pkgutil.iter_modules(package.__path__, "zconsole.cli."):
        importlib.import_module(module.name)
    # Modules that commands import late: import them here once, not in each fork.
    for name in ("rebalance.job.runner", "rebalance.job.creation"):
        importlib.import_module(f"zconsole.{name}")
    importlib.import_module("tests.lock.going_on")
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        with TemporaryFile() as out, TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                _become(asked, out.fileno(), err.fileno())
            _, status = os.waitpid(child, 0)
            texts = {}
            for name, file in (("out", out), ("err", err)):
                file.seek(0)
                texts[name] = file.read().decode("utf-8", "surrogateescape")
        answer = {"code": os.waitstatus_to_exitcode(status), **texts}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _become(asked: Mapping[str, Any], out: int, err: int) -> None:
    """Run a command and exit."""
    # EX_SOFTWARE (sysexits.h), unless the command sets another one.
    code = 70
    try:
        signal.alarm(PATIENCE)
        null = os.open(os.devnull, os.O_RDONLY)
        for number, fd in enumerate((null, out, err)):
            os.dup2(fd, number)
        os.environ.clear()
        os.environ.update(asked["environ"])
        time.tzset()
        SEEN.machine = Machine(**asked["machine"])
        module, _, name = asked["act"].partition(":")
        code = int(getattr(importlib.import_module(module), name)(asked["words"]))
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # the fork must never return to its parent's code
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Not sys.exit(): exit handlers and open files belong to the parent.
        os._exit(code)


if __name__ == "__main__":
    # Import under the name that others use, so that they share SEEN.
    from tests.lock import apart

    apart.serve()
