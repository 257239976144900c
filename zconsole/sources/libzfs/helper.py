"""The helper process: answers a line for every pool it is asked for (see ``wire``).

The answer is ``{"pool": NAME, …}`` with one of ``config`` (the pool's config), ``gone`` (it is
not imported) or ``error`` (this way of reading it does not work). The first line written is
``{"ready": SONAME}`` or ``{"unusable": WHY}``. A call that blocks in the kernel holds up its own
pool's thread, never the others and never the end of the process.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TextIO

from zconsole.sources.libzfs.library import (
    LibraryUnusableError,
    LibzfsPool,
    PoolReader,
    load_library,
)
from zconsole.sources.libzfs.nvlist import NvlistError
from zconsole.sources.libzfs.wire import packed


class Helper:
    """Hands each request to its pool's thread, which writes the answer."""

    def __init__(self, output: TextIO, open_pool: Callable[[str], PoolReader]) -> None:
        self._output = output
        self._open_pool = open_pool
        self._writing = threading.Lock()
        self._requests: dict[str, SimpleQueue[str]] = {}

    def serve(self, requests: TextIO) -> None:
        """Answer until ``requests`` ends; never waits for an answer."""
        for line in requests:
            pool = line.rstrip("\n")
            if pool not in self._requests:
                self._requests[pool] = SimpleQueue()
                arguments = (pool, self._requests[pool])
                threading.Thread(target=self._work, args=arguments, daemon=True).start()
            self._requests[pool].put(pool)

    def say(self, answer: dict[str, Any]) -> None:
        """Write one line."""
        line = packed(answer)
        with self._writing:
            self._output.write(line + "\n")
            self._output.flush()

    def _work(self, pool: str, requests: SimpleQueue[str]) -> None:
        reader = self._open_pool(pool)
        while True:
            requests.get()
            self.say({"pool": pool, **_answer(reader)})


def _answer(reader: PoolReader) -> dict[str, Any]:
    try:
        config = reader.read()
    except (NvlistError, LibraryUnusableError) as error:
        return {"error": str(error)}
    return {"gone": True} if config is None else {"config": config}


def _private_stdout() -> TextIO:
    """The real stdout; what a library prints goes nowhere instead of between the answers."""
    output = os.fdopen(os.dup(1), "w", encoding="ascii")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    return output


def main() -> None:
    """Serve stdin until it closes, then leave at once, whatever a thread is waiting for."""
    output = _private_stdout()
    try:
        library = load_library()
    except LibraryUnusableError as error:
        Helper(output, _no_pool).say({"unusable": str(error)})
        os._exit(1)
    helper = Helper(output, lambda name: LibzfsPool(library, name))
    gc.freeze()
    helper.say({"ready": library.soname})
    helper.serve(sys.stdin)
    os._exit(0)


def _no_pool(name: str) -> PoolReader:
    raise LibraryUnusableError(name)


if __name__ == "__main__":
    main()
