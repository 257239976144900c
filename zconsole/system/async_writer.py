"""Work in the background that nobody waits for: a slow sync delays nothing else.

On a resilvering pool one fsync(2) may take seconds, on a hung pool forever.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

from zconsole.system.state_dir import StateError, write_private


class Worker:
    """Does one job after another in a daemon thread that lives while there are any."""

    def __init__(self, name: str) -> None:
        """``name`` is the thread's."""
        self._name = name
        self._changed = threading.Condition()
        self._waiting: deque[Callable[[], object]] = deque()
        self._thread: threading.Thread | None = None

    def put(self, job: Callable[[], object]) -> None:
        """Have a job done, which raises nothing; returns at once."""
        with self._changed:
            self._waiting.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True, name=self._name)
                self._thread.start()

    def settle(self, patience: float) -> bool:
        """Wait at most so many seconds until all is done; returns whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self._thread is None, patience)

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._thread = None
                    self._changed.notify_all()
                    return
                job = self._waiting.popleft()
            job()


class AsyncWriter:
    """Writes files in the background: of each, only the newest content."""

    def __init__(self, write: Callable[[Path, bytes], None] = write_private) -> None:
        """``write`` replaces the content of a file. Raises StateError."""
        self._write = write
        self._worker = Worker("writer")
        self._waiting: dict[Path, bytes] = {}
        self._failed: dict[Path, StateError] = {}

    def write(self, path: Path, data: bytes) -> None:
        """Write it soon. Raises StateError if the last write failed."""
        self._waiting[path] = data
        self._worker.put(partial(self._write_newest, path))
        if (failed := self._failed.pop(path, None)) is not None:
            raise failed

    def settle(self, patience: float) -> bool:
        """Wait at most so many seconds until all is written; returns whether it is."""
        return self._worker.settle(patience)

    def _write_newest(self, path: Path) -> None:
        data = self._waiting.pop(path, None)
        if data is not None:  # else an earlier job wrote it
            try:
                self._write(path, data)
            except StateError as error:
                self._failed[path] = error
