"""The helper process: answers every request for a pool (see ``wire``).

The answer is ``{"pool": NAME, …}`` with one of ``values`` (the pool's config, see
``nvlist.assembled``; with its ``form`` where that is another than in the answer before), ``gone``
(it is not imported) or ``error`` (this way of reading it does not work). The first thing written is
``{"ready": SONAME}`` or ``{"unusable": WHY}``. A call that blocks in the kernel holds up its own
pool, never the others and never the end of the process.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from zconsole.zfs.sources.libzfs.library import (
    LibraryUnusableError,
    LibzfsPool,
    kernel_stats,
    load_library,
)
from zconsole.zfs.sources.libzfs.nvlist import Form, NvlistError, Values
from zconsole.zfs.sources.libzfs.wire import RECORD, packed, requested

Read = Callable[[], tuple[Form | None, list[Values]] | None]
"""See LibzfsPool.read; called by one thread at a time."""


class Helper:
    """Threads that wait for the next request side by side; whichever gets it answers it.

    Handing requests to other threads would cost two thread switches more. One thread is always
    left to wait, so that neither the next request nor the end is missed while others are stuck.
    """

    def __init__(self, requests: int, output: int, open_pool: Callable[[str], Read]) -> None:
        """``requests`` and ``output`` are file descriptors."""
        self._requests = requests
        self._output = output
        self._open_pool = open_pool
        self._pools: dict[str, tuple[threading.Lock, Read]] = {}
        self._waiting = 1
        self._counting, self._writing = threading.Lock(), threading.Lock()

    def serve(self, leave: Callable[[], None]) -> None:
        """Answer until the requests end, then call ``leave``, whatever other threads do."""
        while record := os.read(self._requests, RECORD):
            with self._counting:
                self._waiting -= 1
                if not self._waiting:
                    self._waiting = 1
                    threading.Thread(target=self.serve, args=(leave,), daemon=True).start()
            self._work(requested(record))
            with self._counting:
                self._waiting += 1
        leave()

    def say(self, answer: dict[str, Any]) -> None:
        """Write one answer."""
        left = memoryview(packed(answer))
        with self._writing:
            while left:
                left = left[os.write(self._output, left) :]

    def _work(self, pool: str) -> None:
        with self._counting:
            if pool not in self._pools:
                self._pools[pool] = threading.Lock(), self._open_pool(pool)
            turn, read = self._pools[pool]
        with turn:  # answered in turn too, as a form holds for the answers after it
            self.say({"pool": pool, **_answer(read)})


def _answer(read: Read) -> dict[str, Any]:
    try:
        found = read()
    except (NvlistError, LibraryUnusableError) as error:
        return {"error": str(error)}
    if found is None:
        return {"gone": True}
    form, values = found
    return {"values": values} if form is None else {"form": form, "values": values}


def _private_stdout() -> int:
    """The real stdout; what a library prints goes nowhere instead of between the answers."""
    output = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    return output


def main() -> None:
    """Serve stdin until it closes, then leave at once, whatever a thread is waiting for."""
    output = _private_stdout()
    try:
        library = load_library()
    except LibraryUnusableError as error:
        os.write(output, packed({"unusable": str(error)}))
        os._exit(1)
    helper = Helper(0, output, lambda name: LibzfsPool(library, name, kernel_stats(name)).read)
    helper.say({"ready": library.soname})
    helper.serve(lambda: os._exit(0))


if __name__ == "__main__":
    main()
