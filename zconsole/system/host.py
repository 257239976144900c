"""The machine beside the pool: clocks, boot, CPU, memory, and a thread for reading small files."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from zconsole.system.daemon_thread import outcome, post
from zconsole.system.process import DeadlineError

ROOT = Path("/")

_T = TypeVar("_T")


def steady_clock() -> float:
    """Seconds that never jump and run on through suspend, where the system has such a clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True)
class Clocks:
    """Where the time comes from."""

    wall: Callable[[], float] = time.time
    """Epoch seconds."""
    steady: Callable[[], float] = steady_clock


def boot_id(root: Path = ROOT) -> str | None:
    """What tells this boot from others; None where the system does not say."""
    try:
        return (root / "proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def utc_offset(t: float) -> float:
    """Seconds the local zone is ahead of UTC at ``t``."""
    return float(time.localtime(t).tm_gmtoff)


def is_root() -> bool:
    """Whether pools may be changed, events followed and damaged files named."""
    return os.geteuid() == 0


class FileThread:
    """Runs cheap reads of /proc and /sys beside the event loop, one at a time.

    The thread is a daemon: nobody waits for one that is stuck.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._busy = 0

    async def run(self, job: Callable[[], _T], deadline: float) -> _T:
        """What ``job`` returns or raises. Raises DeadlineError after ``deadline`` seconds."""
        if self._busy:
            raise DeadlineError("reading /proc and /sys does not end", lambda: self._busy > 0)
        loop = asyncio.get_running_loop()
        result: asyncio.Future[_T] = loop.create_future()
        self._busy += 1
        self._start()
        self._jobs.put(lambda: self._work(job, loop, result))
        try:
            async with asyncio.timeout(deadline):
                return await result
        except TimeoutError:
            text = f"reading /proc and /sys took over {deadline:g} s"
            raise DeadlineError(text, lambda: self._busy > 0) from None

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, daemon=True, name="files")
            self._thread.start()

    def _serve(self) -> None:
        while True:
            self._jobs.get()()

    def _work(
        self,
        job: Callable[[], _T],
        loop: asyncio.AbstractEventLoop,
        result: asyncio.Future[_T],
    ) -> None:
        settle = outcome(job, result)
        self._busy -= 1
        post(loop, settle)
