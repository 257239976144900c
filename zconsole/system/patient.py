"""Calls that may take too long: in threads, given up after a deadline or not waited for at all.

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
    """What ``job`` returns, which asks the state directory.

    Raises NoAnswerError, which names that, when it takes longer than ``patience`` seconds.
    """
    try:
        return Patient().call(job, patience)
    except NoAnswerError as error:
        place = state_dir(create=False)
        raise NoAnswerError(f"state directory {place}: {error}. Check its disk") from None


def made_state_dir() -> Path:
    """The state directory, made and checked. Raises StateError, NoAnswerError as ``in_time``."""
    return in_time(partial(state_dir, create=True))


class Patient:
    """Makes each call in a daemon thread, and gives up after a deadline.

    A call that didn't end in time is left behind, and no other is made before it has ended: a
    call inside the kernel, to a pool that is suspended, ends only when the pool is back.
    """

    def __init__(self) -> None:
        self._left_behind: Future[Any] | None = None

    def call(
        self,
        job: Callable[[], _T],
        patience: float = PATIENCE,
        late: Callable[[_T], object] = lambda _: None,
    ) -> _T:
        """What ``job`` returns or raises within ``patience`` seconds.

        ``late`` is given what it returns after that. Raises NoAnswerError, and NotAskedError while
        an earlier call has not ended or where no thread can be started.
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
    """What will come of a call, made in a thread that nobody waits for; it can't be canceled.

    Raises NotAskedError where no thread can be started.
    """
    attempt: Future[_T] = Future()
    attempt.set_running_or_notify_cancel()
    # No executor: it would wait for its threads when the program ends. Nor a Thread object: from
    # Python 3.13 on one keeps the stack (8 MB) until it is collected, and the traceback of what
    # is raised ties it into a cycle.
    with _started():
        _thread.start_new_thread(_answer, (job, attempt))
    return attempt


@contextlib.contextmanager
def _started() -> Iterator[None]:
    """Make Python's error of no further thread one that whoever asks expects."""
    try:
        yield
    except RuntimeError as error:
        raise NotAskedError(f"{error}: too many threads or processes run") from None


def _answer(job: Callable[[], _T], attempt: Future[_T]) -> None:
    """Make a call here and now, and have what came of it in ``attempt``."""
    try:
        found = job()
    except Exception as error:  # handed to whoever waits
        attempt.set_exception(error)
    else:
        attempt.set_result(found)


class Worker:
    """Does one job after another in a daemon thread, which nobody waits for."""

    def __init__(self, name: str, linger: float = 0.0) -> None:
        """``name`` is the thread's, which stays so many seconds for the next job."""
        self._name = name
        self._linger = linger
        self._changed = threading.Condition()
        self._waiting: deque[Callable[[], object]] = deque()
        self._thread: threading.Thread | None = None

    def put(self, job: Callable[[], object]) -> None:
        """Have a job done, which raises nothing; returns at once.

        Raises NotAskedError where no thread can be started: then it is not done.
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
        """What will come of a job; it can't be canceled. Raises NotAskedError as ``put``."""
        attempt: Future[_T] = Future()
        attempt.set_running_or_notify_cancel()
        self.put(partial(_answer, job, attempt))
        return attempt

    def settle(self, patience: float) -> bool:
        """Wait at most so many seconds until all is done; returns whether it is."""
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


# Leaving a program that a call inside the kernel keeps from hearing its signals. No handler of the
# thread that makes the call runs meanwhile, and the kernel keeps the signal pending, where
# everybody can see it.

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOK = 0.5
"""Seconds between two looks."""


@contextlib.contextmanager
def left_when_deaf(patience: float) -> Iterator[None]:
    """End the program, from a thread beside, when a signal has been pending for so many seconds."""
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(over, patience), daemon=True, name="deaf")
    watch.start()
    try:
        yield
    finally:
        over.set()


def _watch(over: threading.Event, patience: float) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # not for this thread to take
    looks = 0
    while not over.wait(LOOK):
        looks = looks + 1 if _pending() else 0
        if looks * LOOK >= patience:
            os.write(2, b"zconsole: left: a call to a filesystem does not end\n")
            os._exit(ExitCode.INTERRUPTED)


def _pending() -> bool:
    """Whether one of the signals waits for the main thread."""
    text = Path(f"/proc/self/task/{os.getpid()}/status").read_text()
    masks = (line.split()[1] for line in text.splitlines() if line[:7] in ("SigPnd:", "ShdPnd:"))
    return any(int(mask, 16) & 1 << (number - 1) for mask in masks for number in SIGNALS)


class CpuLimitError(Exception):
    """A computation took more CPU time than it may."""


@contextlib.contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise CpuLimitError in what runs within, once that has taken so much CPU time.

    A thread could not be left behind instead: a pattern at work does not let go of the
    interpreter, but it does let signal handlers run. Those run in the main thread only; elsewhere
    nothing is limited.
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
