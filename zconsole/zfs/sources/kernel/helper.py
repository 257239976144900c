"""The helper process: asks the kernel for the pools that are requested (see ``wire``).

The answer is ``{"pool": NAME, …}`` with one of ``config`` (as ``nvlist`` reads it), ``gone`` (it is
not imported) or ``error`` (this way of reading it does not work). The first thing written is
``{"ready": DEVICE}`` or ``{"unusable": WHY}``. A call that blocks in the kernel holds up its own
pool, the others only until the console reminds the helper of them (``client.REMIND``), and never
the end of the process. Where the kernel's pool lock (``spa_namespace_lock``) is held, every call
blocks.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import threading
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import Any

from zconsole.zfs.sources.kernel.nvlist import ConfigReader, NvlistError
from zconsole.zfs.sources.kernel.wire import AT_ONCE, RECORD, encoded, requested

DEVICE = "/dev/zfs"
POOL_STATS = 0x5A05
COMMAND_ROOM = 1 << 14
"""Bytes; the kernel takes as much of it as its own ``zfs_cmd_t`` has, 13,744."""
DESTINATION, DESTINATION_AT = Struct("=QQ"), 4112
"""``zc_nvlist_dst``, ``zc_nvlist_dst_size``: where the config goes, and the bytes it may take."""
ROOM = 4096
"""Bytes beyond a packed config, for what is added to it until it is asked for again."""
LARGEST = 1 << 28
"""Bytes beyond which it is no config: a leaf takes several thousand."""
_TRIES = 3
"""Calls for one config: it may grow between two of them."""

Ioctl = Callable[[int, int, bytearray], int]
Read = Callable[[], dict[str, Any] | None]
"""See KernelPool.read; called by one thread at a time."""


class KernelPool:
    """One pool's config, asked of the kernel again and again, into a buffer that is kept.

    It is the one call behind ``zpool_refresh_stats``. libzfs would unpack the config at once, and
    it would have to be packed again to be read in one piece (see ``nvlist``).

    Sources: ``zfs_cmd_t`` (include/sys/zfs_ioctl.h: Linux, the same up to its destination from 0.6
    to 2.4), ``zfs_ioc_pool_stats`` and ``put_nvlist`` (module/zfs/zfs_ioctl.c), request numbers
    never change (include/sys/fs/zfs.h).
    """

    def __init__(self, name: str, device: int, ioctl: Ioctl = fcntl.ioctl) -> None:
        """``device``: the descriptor of /dev/zfs."""
        pool = name.encode("utf-8", "surrogateescape")
        self._device, self._ioctl = device, ioctl
        self._command = bytearray(COMMAND_ROOM)
        self._command[: len(pool)] = pool
        self._configs = ConfigReader()
        self._use(1 << 16)

    def read(self) -> dict[str, Any] | None:
        """The pool's config now (see ConfigReader.read), None when it is not imported.

        May block for as long as the kernel likes. Raises OSError, NvlistError.
        """
        try:
            packed_config = self.packed()
        except FileNotFoundError:
            return None
        return self._configs.read(packed_config)

    def packed(self) -> memoryview:
        """The config in libnvpair's native encoding; what comes after its end means nothing.

        Good until the next call. A pool that cannot be opened has a config all the same (its error
        is in ``zc_cookie``, which says no more than the config). Raises OSError.
        """
        for tries in range(1, _TRIES + 1):
            DESTINATION.pack_into(self._command, DESTINATION_AT, self._address, len(self._view))
            try:
                self._ioctl(self._device, POOL_STATS, self._command)
                break
            except OSError as error:
                _, wanted = DESTINATION.unpack_from(self._command, DESTINATION_AT)
                if error.errno != errno.ENOMEM or wanted > LARGEST or tries == _TRIES:
                    raise
                self._use(wanted + ROOM)
        return self._view

    def _use(self, size: int) -> None:
        self._buffer = ctypes.create_string_buffer(size)
        self._address = ctypes.addressof(self._buffer)
        self._view = memoryview(self._buffer).cast("B")


class Helper:
    """Threads that wait for requests side by side; whichever gets some answers them all.

    To wake a thread for each pool would cost more than asking the kernel. One thread is always left
    to wait: it goes on with what another, stuck in the kernel, has not come to, and sees the end.
    """

    def __init__(self, requests: int, output: int, open_pool: Callable[[str], Read]) -> None:
        """``requests`` and ``output`` are file descriptors."""
        self._requests = requests
        self._output = output
        self._open_pool = open_pool
        self._pools: dict[str, tuple[threading.Lock, Read]] = {}
        self._asked: deque[str] = deque()
        self._unsaid: deque[bytes] = deque()
        self._waiting = 1
        self._counting, self._writing = threading.Lock(), threading.Lock()

    def serve(self, leave: Callable[[], None]) -> None:
        """Answer until the requests end, then call ``leave``, whatever other threads do."""
        while records := os.read(self._requests, AT_ONCE * RECORD):
            with self._counting:
                self._asked.extend(requested(records))
                self._waiting -= 1
                if not self._waiting:
                    self._waiting = 1
                    threading.Thread(target=self.serve, args=(leave,), daemon=True).start()
            self._work()
            with self._counting:
                self._waiting += 1
        leave()

    def say(self, answer: dict[str, Any]) -> None:
        """Write an answer."""
        self._unsaid.append(encoded(answer))
        self._write()

    def _work(self) -> None:
        """Answer what was asked for, in one go unless a pool gets stuck meanwhile."""
        self._write()
        while pool := self._next():
            turn, read = self._pools[pool]
            with turn:
                self._unsaid.append(encoded({"pool": pool, **_answer(read)}))
        self._write()

    def _next(self) -> str:
        """The next pool that is asked for; empty when there is none."""
        with self._counting:
            pool = self._asked.popleft() if self._asked else ""
            if pool and pool not in self._pools:
                self._pools[pool] = threading.Lock(), self._open_pool(pool)
            return pool

    def _write(self) -> None:
        """Write what was not yet written, by one thread at a time."""
        with self._writing:
            left = memoryview(b"".join(self._unsaid.popleft() for _ in range(len(self._unsaid))))
            while left:
                left = left[os.write(self._output, left) :]


def _answer(read: Read) -> dict[str, Any]:
    try:
        found = read()
    except OSError as error:
        return {"error": f"{DEVICE}: {error.strerror or error}"}
    except NvlistError as error:
        return {"error": str(error)}
    return {"gone": True} if found is None else {"config": found}


def main() -> None:
    """Serve stdin until it closes, then leave at once, whatever a thread is waiting for."""
    try:
        device = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        os.write(1, encoded({"unusable": f"{DEVICE}: {error.strerror}"}))
        os._exit(1)
    helper = Helper(0, 1, lambda name: KernelPool(name, device).read)
    helper.say({"ready": DEVICE})
    helper.serve(lambda: os._exit(0))


if __name__ == "__main__":
    main()
