"""Calls that may hang, each with a deadline: a dead disk blocks nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from zconsole.system.state_dir import StateError, state_dir

_T = TypeVar("_T")

PATIENCE = 2.0
"""Seconds for a call that takes a few milliseconds on a healthy disk."""


class NoAnswerError(StateError):
    """A call did not end within its deadline."""


def in_time(job: Callable[[], _T], patience: float = PATIENCE) -> _T:
    """What ``job`` returns, which asks the state directory.

    Raises NoAnswerError, which names that, when it takes longer than ``patience`` seconds.
    """
    try:
        return Patient().call(job, patience)
    except NoAnswerError as error:
        place = state_dir(create=False)
        raise NoAnswerError(f"state directory {place}: {error}. Check its disk") from None


class Patient:
    """Makes each call in a daemon thread, and gives up after a deadline.

    A call that didn't end in time is left behind, and no other is made before it has ended: a
    call inside the kernel, to a pool that is suspended, ends only when the pool is back.
    """

    def __init__(self) -> None:
        self._left_behind: threading.Thread | None = None

    def call(
        self,
        job: Callable[[], _T],
        patience: float = PATIENCE,
        late: Callable[[_T], object] = lambda _: None,
    ) -> _T:
        """What ``job`` returns or raises within ``patience`` seconds.

        ``late`` is given what it returns after that. Raises NoAnswerError, and StateError while an
        earlier call has not ended.
        """
        if self._left_behind is not None and self._left_behind.is_alive():
            raise StateError("an earlier call still hangs")
        thread, attempt = begun(job)
        if wait([attempt], patience).done:
            return attempt.result()
        self._left_behind = thread
        attempt.add_done_callback(lambda done: None if done.exception() else late(done.result()))
        raise NoAnswerError(f"no answer in {patience:g} s")


def begun(job: Callable[[], _T]) -> tuple[threading.Thread, Future[_T]]:
    """A daemon thread that makes a call, and what will come of it; it can't be canceled."""
    attempt: Future[_T] = Future()
    attempt.set_running_or_notify_cancel()
    # No executor: it would wait for its threads when the program ends.
    thread = threading.Thread(target=answer, args=(job, attempt), daemon=True, name="patient")
    thread.start()
    return thread, attempt


def answer(job: Callable[[], _T], attempt: Future[_T]) -> None:
    """Make a call here and now, and have what came of it in ``attempt``."""
    try:
        found = job()
    except Exception as error:  # handed to whoever waits
        attempt.set_exception(error)
    else:
        attempt.set_result(found)
