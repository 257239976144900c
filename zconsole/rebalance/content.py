"""The content of files: copied by an explicit loop with its holes, and digested.

A digest does not depend on where the holes are: it covers, in order, every aligned window that
has a byte other than zero, each with its offset, and the length of the file.
"""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from zconsole.rebalance.syscalls import Sys

if TYPE_CHECKING:
    from hashlib import _Hash

WINDOW = 1 << 20
"""Bytes read, digested and written at a time; a multiple of every recordsize up to 1 MiB."""
SMALL = 128 << 10
"""Up to here a file with all its blocks allocated is taken to have no holes."""
BESIDE = 8 << 20
"""From here on a thread is worth its start."""
_ZEROS = bytes(WINDOW)
_FIRST = bytes(8)
_PROBE = 64 << 10

Maker = Callable[[bytes], "_Hash"]
"""What begins a hash; told again from the length of its digest."""
MAKERS: dict[int, Maker] = {
    32: hashlib.sha256,
    64: hashlib.sha512,
    16: partial(hashlib.md5, usedforsecurity=False),
}
"""They tell what disks, memory or we ourselves spoiled. Nobody gains by forging one: who can write
to a file needs no second file of the same digest to do so."""
Tick = Callable[[int], None]
"""Called with the bytes just handled; may wait, or raise to give the file up."""


class ChangedError(Exception):
    """A file is not what it was a moment ago."""


def fastest(clock: Callable[[], float] = time.perf_counter) -> Maker:
    """What this processor computes fastest: SHA-256 where it has instructions for that."""

    def seconds(make: Maker) -> float:
        began = clock()
        make(_ZEROS[:_PROBE]).digest()
        return clock() - began

    return min(MAKERS.values(), key=lambda make: min(seconds(make) for _ in range(3)))


class Digest:
    """A hash over the windows of a file that are not all zero.

    For large files, from the second window on, it is computed in a thread, beside the reading
    and writing.
    """

    def __init__(self, size: int, make: Maker) -> None:
        self._hash = make(size.to_bytes(8, "big"))
        self._beside = size >= BESIDE
        self._thread: ThreadPoolExecutor | None = None
        self._pending: Future[None] | None = None

    def update(self, offset: int, window: bytes) -> None:
        """Take in one aligned window."""
        if offset == 0 or not self._beside:
            self._take(offset, window)
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1)
        self._wait()
        self._pending = self._thread.submit(self._take, offset, window)

    def value(self) -> bytes:
        """The digest; nothing can be taken in afterwards."""
        self._wait()
        if self._thread is not None:
            self._thread.shutdown()
        return self._hash.digest()

    def _take(self, offset: int, window: bytes) -> None:
        if window != (_ZEROS if len(window) == WINDOW else bytes(len(window))):
            self._hash.update(offset.to_bytes(8, "big"))
            self._hash.update(window)

    def _wait(self) -> None:
        if self._pending is not None:
            self._pending.result()
            self._pending = None


def whole(content: bytes, make: Maker) -> bytes:
    """The digest of a file of at most one window, given all of it."""
    size = len(content)
    head = size.to_bytes(8, "big")
    if content == (_ZEROS if size == WINDOW else bytes(size)):
        return make(head).digest()
    return make(b"".join((head, _FIRST, content))).digest()


def copy(
    sys: Sys, source: int, target: int, status: os.stat_result, tick: Tick, make: Maker
) -> bytes:
    """Write the content of ``source`` into the empty ``target``; returns the digest.

    Holes stay holes. Raises OSError, ChangedError when the file is shorter than its status said.
    """
    size = status.st_size
    if status.st_blocks * 512 >= size and size <= SMALL:
        window = _read(sys, source, 0, size)
        _write(sys, target, window, 0)
        tick(size)
        return whole(window, make)
    digest = Digest(size, make)
    if size:
        sys.ftruncate(target, size)
    for offset, length in windows(sys, source, size):
        parts = list(segments(sys, source, offset, offset + length))
        _copy_window(sys, source, target, digest, offset, length, parts)
        tick(length)
    return digest.value()


def digest(
    sys: Sys, fd: int, size: int, tick: Tick, make: Maker, buffer: mmap.mmap | None = None
) -> bytes:
    """The digest of an open file; through ``buffer``, page-aligned, when it was opened O_DIRECT."""
    if size <= SMALL and buffer is None:
        window = _read(sys, fd, 0, size)
        tick(size)
        return whole(window, make)
    result = Digest(size, make)
    for offset, length in windows(sys, fd, size):
        if buffer is None:
            window = _read(sys, fd, offset, length)
        else:
            window = _read_direct(sys, fd, offset, length, buffer)
        result.update(offset, window)
        tick(length)
    return result.value()


def windows(sys: Sys, fd: int, size: int) -> Iterator[tuple[int, int]]:
    """Offset and length of the aligned windows that have data; holes are passed over."""
    offset = 0
    while offset < size:
        if size > SMALL:
            data = _seek(sys, fd, offset, os.SEEK_DATA, size)
            offset = max(offset, data - data % WINDOW)
            if data >= size:
                return
        yield offset, min(WINDOW, size - offset)
        offset += WINDOW


def segments(sys: Sys, fd: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The runs of data (offset, length) between two offsets."""
    while start < end:
        data = _seek(sys, fd, start, os.SEEK_DATA, end)
        if data >= end:
            return
        start = min(_seek(sys, fd, data, os.SEEK_HOLE, end), end)
        if start <= data:
            raise ChangedError("truncated while it was read")
        yield data, start - data


def _seek(sys: Sys, fd: int, offset: int, whence: int, end: int) -> int:
    try:
        return sys.lseek(fd, offset, whence)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return end
        if error.errno in (errno.EINVAL, errno.EOPNOTSUPP):
            return offset if whence == os.SEEK_DATA else end
        raise


def _copy_window(
    sys: Sys,
    source: int,
    target: int,
    digest: Digest,
    offset: int,
    length: int,
    parts: list[tuple[int, int]],
) -> None:
    window = _read(sys, source, offset, length)
    digest.update(offset, window)
    if parts == [(offset, length)]:
        _write(sys, target, window, offset)
        return
    view = memoryview(window)
    for start, count in parts:
        _write(sys, target, view[start - offset : start - offset + count], start)


def _read(sys: Sys, fd: int, offset: int, length: int) -> bytes:
    data = sys.pread(fd, length, offset)
    while len(data) < length:
        more = sys.pread(fd, length - len(data), offset + len(data))
        if not more:
            raise ChangedError("truncated while it was read")
        data += more
    return data


def _read_direct(sys: Sys, fd: int, offset: int, length: int, buffer: mmap.mmap) -> bytes:
    count = sys.read_direct(fd, buffer, offset)
    if count < length:
        return _read(sys, fd, offset, length)
    return buffer[:length]


def _write(sys: Sys, fd: int, data: bytes | memoryview, offset: int) -> None:
    written = sys.pwrite(fd, data, offset)
    while written < len(data):
        written += sys.pwrite(fd, memoryview(data)[written:], offset + written)
