"""One trial in a process of its own, which may hang, exhaust memory or die."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

MEMORY = 4 << 30
"""Bytes of address space; a mutant that needs more has run away."""
POLL = 0.01
TIMED = (signal.SIGVTALRM, signal.SIGALRM)
"""Signals of a trial's own timers, which mean that it hangs."""
KILLED = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
"""Signals sent by others, which say nothing about the trial."""


class HangsError(Exception):
    """The trial took longer than its limit."""


class DiedError(Exception):
    """The trial ended without an answer."""


def forked(trial: Callable[[], Any], seconds: float) -> Any:
    """Return the result of ``trial`` in a fork, passed as JSON; its child processes are killed.

    Raises HangsError if it takes longer than ``seconds``, or a timer of its own ends it; DiedError
    with the exception it raised; KeyboardInterrupt if somebody else has killed it.
    """
    with tempfile.TemporaryFile() as answer:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            _child(trial, answer.fileno())
        try:
            status = _waited(child, seconds)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        answer.seek(0)
        told = answer.read()
    signalled = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if signalled in TIMED:
        raise HangsError
    if signalled in KILLED:
        raise KeyboardInterrupt
    found = json.loads(told) if told else {"raised": f"status {status}"}
    if "raised" in found:
        raise DiedError(found["raised"])
    return found["answer"]


def _child(trial: Callable[[], Any], answer: int) -> None:
    try:
        # A process group of its own, so that everything it starts can be killed with it.
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(quiet, standard)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        told = json.dumps({"answer": trial()})
    except BaseException:
        told = json.dumps({"raised": traceback.format_exc()})
    os.pwrite(answer, told.encode(), 0)
    # Not sys.exit(): exit handlers belong to the parent.
    os._exit(0)


def _waited(child: int, seconds: float) -> int:
    """Return the exit status of a child. Raises HangsError if it does not end in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(POLL)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise HangsError
