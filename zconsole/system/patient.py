"""Calls that may hang, each given a deadline: a disk that doesn't answer keeps nobody waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from zconsole.system.state_dir import StateError, state_dir

_T = TypeVar("_T")

PATIENCE = 2.0
"""Seconds for a call that takes a few milliseconds on a disk that is well."""


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
        attempt = _Attempt(job, late)
        thread = threading.Thread(target=attempt.run, daemon=True, name="patient")
        thread.start()
        if not attempt.ended.wait(patience) and attempt.give_up():
            self._left_behind = thread
            raise NoAnswerError(f"no answer in {patience:g} s")
        return attempt.result()


class _Attempt(Generic[_T]):
    """One call, and whether somebody still waits for it."""

    def __init__(self, job: Callable[[], _T], late: Callable[[_T], object]) -> None:
        self.ended = threading.Event()
        self._job = job
        self._late = late
        self._lock = threading.Lock()
        self._given_up = False
        self._found: list[_T] = []
        self._error: Exception | None = None

    def run(self) -> None:
        """Make the call."""
        try:
            self._found.append(self._job())
        except Exception as error:  # handed to whoever waits
            self._error = error
        with self._lock:
            self.ended.set()
            given_up = self._given_up
        if given_up and self._found:
            self._late(self._found[0])

    def give_up(self) -> bool:
        """Wait no longer; whether it has indeed not ended."""
        with self._lock:
            self._given_up = not self.ended.is_set()
            return self._given_up

    def result(self) -> _T:
        """What the call gave."""
        if self._error is not None:
            raise self._error
        return self._found[0]
