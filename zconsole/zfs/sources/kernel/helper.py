"""The helper process: reads pool configs from the kernel, as requested over its standard input.

A request is the name of a pool in a record of fixed length, so that threads reading from the same
pipe never get half of one. An empty name asks for the remaining earlier requests to be answered
although one of them is stuck in the kernel. An answer is a marshalled dictionary, preceded by its
length; marshal takes a fifth of JSON's time and is safe between two processes of the same Python.

The answer is ``{"pool": NAME, …}`` with one of ``config`` (as read by ``nvlist``), ``gone`` (not
imported) or ``error`` (this way of reading does not work). The first message is ``{"ready":
DEVICE}`` or ``{"unusable": WHY}``. A call that blocks in the kernel delays its own pool, other
pools only until the console sends a reminder (``client.REMIND``). The process begins to exit all
the same, but is there until that call returns. While the kernel's pool lock
(``spa_namespace_lock``) is held, every call blocks.
"""

from __future__ import annotations

import errno
import fcntl
import marshal
import os
import threading
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Any

from zconsole.zfs.sources.kernel.nvlist import ConfigReader, NvlistError

DEVICE = "/dev/zfs"
POOL_STATS = 0x5A05
"""ZFS_IOC_POOL_STATS (include/sys/fs/zfs.h)."""
COMMAND_ROOM = 1 << 14
"""Bytes of the command buffer; the kernel uses as much as its own ``zfs_cmd_t`` takes, 13,744."""
DESTINATION, DESTINATION_AT = Struct("=QQ"), 4112
"""``zc_nvlist_dst``, ``zc_nvlist_dst_size``: the address for the config, and the bytes
available."""
ROOM = 4096
"""Bytes to add to the size of a config, as it may have grown by the next call."""
LARGEST = 1 << 28
"""Bytes; anything larger is not a config, as a leaf takes several thousand."""
_TRIES = 3
"""Calls for one config: it may grow between two of them."""

Ioctl = Callable[[int, int, bytearray], int]
Read = Callable[[], dict[str, Any] | None]
"""Type of KernelPool.read; called by one thread at a time."""


RECORD = 256
"""Bytes of a request; pool names are shorter (``ZFS_MAX_DATASET_NAME_LEN``)."""
AT_ONCE = 16
"""Requests per write, small enough that a pipe takes all or nothing (PIPE_BUF)."""

_HEAD = 4
"""Bytes of the length that precedes an answer."""
_PLAIN = 2
"""The marshal version without references: looking for repeated objects takes longer."""
_LONGEST = 1 << 28
"""Longest answer in bytes; a leaf takes two or three thousand."""


def requests(pools: Sequence[str]) -> Iterator[bytes]:
    """Return the request records for pools, in pieces for one write each."""
    names = [pool.encode("utf-8", "surrogateescape")[:RECORD] for pool in pools]
    for start in range(0, len(names), AT_ONCE):
        yield b"".join(name.ljust(RECORD, b"\0") for name in names[start : start + AT_ONCE])


def requested(records: bytes) -> Iterator[str]:
    """Yield the pools that records ask for."""
    for start in range(0, len(records), RECORD):
        name = records[start : start + RECORD].rstrip(b"\0")
        if name:
            yield name.decode("utf-8", "surrogateescape")


def encoded(answer: dict[str, Any]) -> bytes:
    """Encode an answer for the pipe; it may hold text, bytes, numbers, lists and dictionaries."""
    body = marshal.dumps(answer, _PLAIN)
    return len(body).to_bytes(_HEAD, "little") + body


class Answers:
    """Assembles answers from the bytes of the pipe."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes | memoryview) -> Iterator[dict[str, Any]]:
        """Yield the answers that ``data`` completes. Raises ValueError for anything else."""
        self._rest += data
        while len(self._rest) >= _HEAD:
            end = _HEAD + int.from_bytes(self._rest[:_HEAD], "little")
            if end > _LONGEST:
                raise ValueError("no answer: longer than any")
            if end > len(self._rest):
                return
            body = bytes(self._rest[_HEAD:end])
            del self._rest[:end]
            yield _opened(body)


def _opened(body: bytes) -> dict[str, Any]:
    try:
        answer = marshal.loads(body)  # noqa: S302 - written by our own helper, into our pipe
    except (EOFError, TypeError, ValueError) as error:
        raise ValueError(f"no answer: {error}") from error
    if not isinstance(answer, dict):
        raise ValueError(f"no answer: {answer!r}")
    return answer


class KernelPool:
    """Reads one pool's config from the kernel repeatedly, into a buffer that is reused.

    It makes the one call behind ``zpool_refresh_stats``. libzfs itself would unpack the config at
    once, and it would have to be packed again to be read in one piece (see ``nvlist``).

    Sources: ``zfs_cmd_t`` (include/sys/zfs_ioctl.h: Linux, the same up to its destination from 0.6
    to 2.4), ``zfs_ioc_pool_stats`` and ``put_nvlist`` (module/zfs/zfs_ioctl.c); request numbers
    never change (include/sys/fs/zfs.h).
    """

    def __init__(self, name: str, device: int, ioctl: Ioctl = fcntl.ioctl) -> None:
        """``device`` is the descriptor of /dev/zfs."""
        pool = name.encode("utf-8", "surrogateescape")
        self._device, self._ioctl = device, ioctl
        self._command = bytearray(COMMAND_ROOM)
        self._command[: len(pool)] = pool
        self._configs = ConfigReader()
        self._use(1 << 16)

    def read(self) -> dict[str, Any] | None:
        """Return the pool's current config (see ConfigReader.read), None if it is not imported.

        May block in the kernel without limit. Raises OSError, NvlistError.
        """
        try:
            packed_config = self.packed()
        except FileNotFoundError:
            return None
        return self._configs.read(packed_config)

    def packed(self) -> memoryview:
        """Return the config in libnvpair's native encoding; bytes after its end are meaningless.

        Valid until the next call. A pool that cannot be opened also has a config (its error is in
        ``zc_cookie``, which says no more than the config). Raises OSError.
        """
        for tries in range(1, _TRIES + 1):
            DESTINATION.pack_into(self._command, DESTINATION_AT, self._address, len(self._view))
            try:
                self._ioctl(self._device, POOL_STATS, self._command)
                break
            except OSError as error:
                # With ENOMEM the kernel returns the size that it needs (put_nvlist).
                _, wanted = DESTINATION.unpack_from(self._command, DESTINATION_AT)
                if error.errno != errno.ENOMEM or wanted > LARGEST or tries == _TRIES:
                    raise
                self._use(wanted + ROOM)
        return self._view

    def _use(self, size: int) -> None:
        buffer = array("B", bytes(size))
        self._address, _ = buffer.buffer_info()
        self._view = memoryview(buffer)  # keeps the buffer at its address


class Helper:
    """Threads that wait for requests in parallel; the one that gets them answers them all.

    Waking a thread per pool would cost more than asking the kernel. One thread is always left
    waiting: it continues with the requests of a thread stuck in the kernel, and notices the end of
    input.
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
        """Answer until the requests end, then call ``leave``, whatever other threads are doing."""
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
        """Answer the requests and write the answers together, unless a pool gets stuck."""
        self._write()
        while pool := self._next():
            turn, read = self._pools[pool]
            with turn:
                self._unsaid.append(encoded({"pool": pool, **_answer(read)}))
        self._write()

    def _next(self) -> str:
        """Return the next requested pool; empty if there is none."""
        with self._counting:
            pool = self._asked.popleft() if self._asked else ""
            if pool and pool not in self._pools:
                self._pools[pool] = threading.Lock(), self._open_pool(pool)
            return pool

    def _write(self) -> None:
        """Write pending answers, in one thread at a time."""
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
    """Serve stdin until it closes, then exit at once, even if a thread is blocked."""
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
