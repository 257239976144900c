"""A second process next to a job, in the same mount namespace or in one of its own."""

from __future__ import annotations

import ctypes
import errno
import os
import pickle
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

CLONE_NEWNS = 0x0002_0000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x4_0000
MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)

Step = Callable[[], Any]


def mount(source: Path | str, target: Path | str, kind: str = "", options: str = "") -> None:
    """Bind-mount a file or directory, or mount a filesystem (mount(2)). Raises OSError."""
    flags = 0 if kind else MS_BIND
    data = os.fsencode(options) if options else None
    names = (os.fsencode(source), os.fsencode(target), kind.encode() or None)
    _checked(_libc.mount(*names, ctypes.c_ulong(flags), data))


def umount(target: Path | str, flags: int = 0) -> None:
    """Unmount (umount2(2)). Raises OSError."""
    _checked(_libc.umount2(os.fsencode(target), flags))


def leave_namespace() -> None:
    """Give this process its own mounts. Raises PermissionError if that is not permitted."""
    _checked(_libc.unshare(CLONE_NEWNS))
    _checked(_libc.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None))


def apart(act: Step) -> Any:
    """Run ``act`` in a process with its own mounts; skips the test if these are not permitted."""
    with beside(act, own_mounts=True) as other:
        return other.answer


class Other:
    """The second process: ``answer`` is the result of its first step, ``go`` takes the next."""

    def __init__(self, orders: int, answers: BinaryIO, process: int) -> None:
        self.orders, self.answers, self.process = orders, answers, process
        self.answer = self.heard()

    def go(self) -> Any:
        """Take the next step, and return its result."""
        os.write(self.orders, b"!")
        return self.heard()

    def heard(self) -> Any:
        kind, value = pickle.load(self.answers)
        if kind == "skip":
            pytest.skip(value)
        assert kind == "done", value
        return value


@contextmanager
def beside(*steps: Step, own_mounts: bool = False) -> Iterator[Other]:
    """Start a process that takes its first step now, others when told; it ends with the block."""
    theirs, orders = os.pipe()
    answers, ours = os.pipe()
    process = os.fork()
    if not process:
        os.close(orders)
        os.close(answers)
        _serve(theirs, ours, steps, own_mounts)
    os.close(theirs)
    os.close(ours)
    try:
        with os.fdopen(answers, "rb") as heard:
            yield Other(orders, heard, process)
    finally:
        # Its end of the pipe then reads nothing, and the process ends.
        os.close(orders)
        os.waitpid(process, 0)


def _serve(orders: int, answers: int, steps: tuple[Step, ...], own_mounts: bool) -> None:
    try:
        with os.fdopen(answers, "wb", buffering=0) as out:
            _own_mounts(out.write) if own_mounts else None
            for step in steps:
                out.write(pickle.dumps(_answer(step)))
                if not os.read(orders, 1):
                    break
            os.read(orders, 1)
    finally:
        os._exit(0)


def _own_mounts(write: Callable[[bytes], object]) -> None:
    try:
        leave_namespace()
    except PermissionError:
        write(pickle.dumps(("skip", "mount namespaces are not permitted here")))
        os._exit(0)


def _answer(step: Step) -> tuple[str, Any]:
    try:
        return "done", step()
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENODEV):
            return "skip", f"not permitted here: {error.strerror}"
        return "failed", traceback.format_exc()
    except BaseException:
        return "failed", traceback.format_exc()


def _checked(result: int) -> None:
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
