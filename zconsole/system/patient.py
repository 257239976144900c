"""Calls that may hang: made in threads, and given up after a deadline or not waited for at all.

On a resilvering pool one fsync(2) may take seconds, on a hung pool forever.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from zconsole.errors import ExitCode
from zconsole.system.state_dir import StateError, state_dir

_T = TypeVar("_T")

PATIENCE = 2.0
"""Seconds for a call that takes a few milliseconds on a healthy disk."""


class NoAnswerError(StateError):
    """A call did not end within its deadline."""


class NotAskedError(StateError):
    """A call was not made: an earlier one has not ended, or no thread can be started."""


def in_time(job: Callable[[], _T], patience: float = PATIENCE) -> _T:
    """Run ``job``, which accesses the state directory, and return its result.

    Raises NoAnswerError, which names the directory, after ``patience`` seconds.
    """
    try:
        return Patient().call(job, patience)
    except NoAnswerError as error:
        place = state_dir(create=False)
        raise NoAnswerError(f"state directory {place}: {error}. Check its disk") from None


def made_state_dir() -> Path:
    """Make and check the state directory; return its path.

    Raises StateError if that fails, NoAnswerError if its disk doesn't answer.
    """
    return in_time(partial(state_dir, create=True))


class Patient:
    """Makes each call in a daemon thread, and gives up after a deadline.

    A call that doesn't end in time is left behind, and no other is made before it has ended: a
    system call on a suspended pool returns only when the pool is resumed.
    """

    def __init__(self) -> None:
        self._left_behind: Future[Any] | None = None

    def call(
        self,
        job: Callable[[], _T],
        patience: float = PATIENCE,
        late: Callable[[_T], object] = lambda _: None,
    ) -> _T:
        """Return or raise what ``job`` does within ``patience`` seconds.

        ``late`` is called with what it returns later than that. Raises NoAnswerError at the
        deadline, NotAskedError if an earlier call has not ended or no thread can be started.
        """
        if self._left_behind is not None and not self._left_behind.done():
            raise NotAskedError("an earlier call still hangs")
        attempt = begun(job)
        if wait([attempt], patience).done:
            return attempt.result()
        self._left_behind = attempt
        attempt.add_done_callback(lambda done: None if done.exception() else late(done.result()))
        raise NoAnswerError(f"no answer in {patience:g} s")


def begun(job: Callable[[], _T]) -> Future[_T]:
    """Start a call in a daemon thread, and return the future of its result.

    The future can't be canceled. Raises NotAskedError if no thread can be started.
    """
    attempt: Future[_T] = Future()
    attempt.set_running_or_notify_cancel()
    # Not with an executor, which waits for its threads when the program ends. Not with a Thread
    # object either: from Python 3.13 on one keeps its stack (8 MB) until it is collected, and the
    # traceback of an exception makes it part of a reference cycle.
    with _started():
        _thread.start_new_thread(_answer, (job, attempt))
    return attempt


@contextlib.contextmanager
def _started() -> Iterator[None]:
    """Turn Python's errors when no thread can be started into NotAskedError."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        raise NotAskedError(f"{error}: too many threads or processes run") from None


def _answer(job: Callable[[], _T], attempt: Future[_T]) -> None:
    """Call ``job`` and set its result or exception in ``attempt``."""
    try:
        found = job()
    except Exception as error:  # of any kind: it is raised where the result is awaited
        attempt.set_exception(error)
    else:
        attempt.set_result(found)


class Worker:
    """A daemon thread that runs jobs in order, and that the program's end doesn't wait for."""

    def __init__(self, name: str, linger: float = 0.0) -> None:
        """Name the thread ``name``; it waits ``linger`` seconds for a next job before it ends."""
        self._name = name
        self._linger = linger
        self._changed = threading.Condition()
        self._waiting: deque[Callable[[], object]] = deque()
        self._thread: threading.Thread | None = None

    def put(self, job: Callable[[], object]) -> None:
        """Queue a job, which must raise nothing; returns at once.

        Raises NotAskedError if no thread can be started: then the job is not run.
        """
        with self._changed:
            if self._thread is None:
                thread = threading.Thread(target=self._work, daemon=True, name=self._name)
                with _started():
                    thread.start()
                self._thread = thread
            self._waiting.append(job)
            self._changed.notify_all()

    def ask(self, job: Callable[[], _T]) -> Future[_T]:
        """Queue a job and return the future of its result, which can't be canceled.

        Raises NotAskedError if no thread can be started.
        """
        attempt: Future[_T] = Future()
        attempt.set_running_or_notify_cancel()
        self.put(partial(_answer, job, attempt))
        return attempt

    def settle(self, patience: float) -> bool:
        """Wait at most ``patience`` seconds until all jobs are done; return whether they are."""
        with self._changed:
            return self._changed.wait_for(lambda: self._thread is None, patience)

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: self._waiting, self._linger):
                    self._thread = None
                    self._changed.notify_all()
                    return
                job = self._waiting.popleft()
            job()


# Exiting while the main thread hangs in a system call, and so can't handle signals. The kernel
# keeps a signal pending until then, which another thread can see in /proc.

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOK = 0.5
"""Seconds between two checks for pending signals."""


@contextlib.contextmanager
def left_when_deaf(patience: float) -> Iterator[None]:
    """End the program once a signal has been pending for ``patience`` seconds.

    A thread watches for that during the ``with`` block.
    """
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(over, patience), daemon=True, name="deaf")
    watch.start()
    try:
        yield
    finally:
        over.set()


def _watch(over: threading.Event, patience: float) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # else the kernel may deliver them here
    looks = 0
    while not over.wait(LOOK):
        looks = looks + 1 if _pending() else 0
        if looks * LOOK >= patience:
            os.write(2, b"zconsole: left: a call to a filesystem does not end\n")
            os._exit(ExitCode.INTERRUPTED)


def _pending() -> bool:
    """Return whether one of SIGNALS is pending for the main thread (proc_pid_status(5))."""
    text = Path(f"/proc/self/task/{os.getpid()}/status").read_text()
    masks = (line.split()[1] for line in text.splitlines() if line[:7] in ("SigPnd:", "ShdPnd:"))
    return any(int(mask, 16) & 1 << (number - 1) for mask in masks for number in SIGNALS)


class CpuLimitError(Exception):
    """A computation took more CPU time than it is allowed."""


@contextlib.contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise CpuLimitError in the ``with`` block once it has used ``seconds`` of CPU time.

    In the main thread only: signal handlers run there alone, and other threads are not limited. A
    thread that is abandoned at a deadline would not do: matching a regular expression doesn't
    release the interpreter's lock, though it does let signal handlers run.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise CpuLimitError(f"more than {seconds:g} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
