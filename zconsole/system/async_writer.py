"""Files written in the background: a slow sync delays nothing else.

On a resilvering pool one fsync(2) may take seconds, on a hung pool forever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from zconsole.system import state_dir
from zconsole.system.state_dir import StateError

Write = Callable[[Path, bytes], None]
"""Replaces the content of a file. Raises StateError."""


class AsyncWriter:
    """Writes in a daemon thread that lives while there is something to write.

    Of every file only the newest content is written.
    """

    def __init__(self, write: Write = state_dir.write_private) -> None:
        self._write = write
        self._changed = threading.Condition()
        self._waiting: dict[Path, bytes] = {}
        self._failed: dict[Path, StateError] = {}
        self._thread: threading.Thread | None = None

    def write(self, path: Path, data: bytes) -> None:
        """Write it soon. Raises StateError if the last write failed."""
        with self._changed:
            self._waiting[path] = data
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True, name="writer")
                self._thread.start()
            failed = self._failed.pop(path, None)
        if failed is not None:
            raise failed

    def settle(self, patience: float) -> bool:
        """Wait at most so many seconds until all is written; returns whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self._thread is None, patience)

    def _work(self) -> None:
        while (found := self._next()) is not None:
            path, data = found
            try:
                self._write(path, data)
            except StateError as error:
                with self._changed:
                    self._failed[path] = error

    def _next(self) -> tuple[Path, bytes] | None:
        with self._changed:
            if self._waiting:
                return self._waiting.popitem()
            self._thread = None
            self._changed.notify_all()
            return None
