"""Content of files: read whole, written without the blank parts, and hashed.

Nothing here asks a filesystem where its holes are: OpenZFS before 2.1.14, 2.2.4 and 2.3.0 reports
data just written as a hole (openzfs/zfs#15526, #15933). Reading a hole returns zeros at no cost for
the disks. A digest covers the length of the file and, in order, every aligned window that has a
nonzero byte, each with its offset; so it does not depend on where the holes are.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple

from zconsole.rebalance.engine.syscalls import Sys

if TYPE_CHECKING:
    from hashlib import _Hash

WINDOW = 1 << 20
"""Bytes read, hashed and written at a time; a multiple of every recordsize up to 1 MiB."""
SMALL = 128 << 10
"""Bytes up to which a file with all its blocks allocated is copied whole, without holes."""
KEPT = 8 << 10
"""Bytes up to which content is kept in memory until the copy is read back.

Comparing it costs less than a digest.
"""
BESIDE = 8 << 20
"""File size in bytes from which hashing in a thread pays off."""
_ZEROS = bytes(WINDOW)
_FIRST = bytes(8)
"""Offset of the first window, as it enters a digest."""
_GRAIN = 4096
"""Smallest hole that a copy gets, in bytes; filesystems with smaller blocks are rare."""
_PROBE = 64 << 10
"""Bytes hashed to compare the speed of hashes."""
_PAGE = mmap.PAGESIZE

Maker = Callable[[bytes], "_Hash"]
"""Constructor of a hash. The length of a digest tells which one made it."""
MAKERS: dict[int, Maker] = {
    32: hashlib.sha256,
    64: hashlib.sha512,
    16: partial(hashlib.md5, usedforsecurity=False),
}
"""Hashes by the length of their digest in bytes.

They detect damage by disks, memory or a bug of ours. They need not resist forgery: who can write to
a file gains nothing from a second file with the same digest.
"""
Tick = Callable[[int], None]
"""Called with the number of bytes just processed; may wait, or raise to give the file up."""


class Written(NamedTuple):
    """Digest of the content that was copied and, for a very small file, the content itself."""

    digest: bytes
    kept: bytes | None = None


class ChangedError(Exception):
    """A file changed while it was read."""


def fastest(clock: Callable[[], float] = time.perf_counter) -> Maker:
    """Return the hash that a short measurement finds fastest: SHA-256 with processor support."""

    def seconds(make: Maker) -> float:
        began = clock()
        make(_ZEROS[:_PROBE]).digest()
        return clock() - began

    return min(MAKERS.values(), key=lambda make: min(seconds(make) for _ in range(3)))


class Buffers:
    """Two windows of page-aligned memory used in turn: one is filled while the other is hashed."""

    def __init__(self) -> None:
        self._turns = cycle((mmap.mmap(-1, WINDOW), mmap.mmap(-1, WINDOW)))

    def read(self, sys: Sys, fd: int, offset: int, length: int) -> memoryview:
        """Return part of a file, in memory that the next call but one reuses.

        Raises OSError, or ChangedError if the file ends before that part does.
        """
        buffer = memoryview(next(self._turns))
        # Pass no more pages than the part has: for O_DIRECT the kernel pins each page it is given.
        count = min(sys.read_into(fd, buffer[: -(-length // _PAGE) * _PAGE], offset), length)
        window = buffer[:length]
        if count < length:  # a short read
            window[count:] = _read(sys, fd, offset + count, length - count)
        return window


class Digest:
    """A hash over the windows of a file that are not all zero.

    For large files, all windows but the first are hashed in a thread, in parallel with reading and
    writing.
    """

    def __init__(self, size: int, make: Maker) -> None:
        self._hash = make(size.to_bytes(8, "big"))
        self._beside = size >= BESIDE
        self._thread: ThreadPoolExecutor | None = None
        self._pending: Future[None] | None = None

    def update(self, offset: int, window: memoryview) -> None:
        """Add one aligned window, whose memory must not change before the next is added."""
        if offset == 0 or not self._beside:
            self._take(offset, window)
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1)
        self._wait()
        self._pending = self._thread.submit(self._take, offset, window)

    def value(self) -> bytes:
        """Return the digest; nothing can be added afterwards."""
        self._wait()
        if self._thread is not None:
            self._thread.shutdown()
        return self._hash.digest()

    def _take(self, offset: int, window: memoryview) -> None:
        if not _blank(window):
            self._hash.update(offset.to_bytes(8, "big"))
            self._hash.update(window)

    def _wait(self) -> None:
        if self._pending is not None:
            self._pending.result()
            self._pending = None


def _blank(window: memoryview) -> bool:
    """Whether a piece of at most WINDOW bytes is all zero."""
    return _ZEROS.startswith(window)  # compares in C, without a copy


def whole(content: bytes, make: Maker) -> bytes:
    """Return the digest of a file of at most one window from its content, as ``Digest`` would."""
    size = len(content)
    head = size.to_bytes(8, "big")
    if _ZEROS.startswith(content):
        return make(head).digest()
    return make(b"".join((head, _FIRST, content))).digest()


def copy(
    sys: Sys,
    source: int,
    target: int,
    status: os.stat_result,
    tick: Tick,
    make: Maker,
    buffers: Buffers | None = None,
    copies: int = 1,
) -> Written:
    """Write the content of ``source`` into the empty ``target``.

    A file with all its blocks allocated gets all of them again, also those of zeros: somebody may
    have reserved its space. In any other file, blank parts become holes. ``copies``: how many
    copies of each block the filesystem keeps and counts as allocated (zfsprops(7)).

    Raises OSError, what ``tick`` raises, and ChangedError if the file is shorter than its status
    said.
    """
    size, allocated = status.st_size, status.st_blocks * 512
    dense = allocated >= size * copies
    if allocated >= size and size <= SMALL:
        content = _read(sys, source, 0, size)
        _write(sys, target, content, 0)
        tick(size)
        return Written(whole(content, make), content if size <= KEPT else None)
    digest, buffers = Digest(size, make), buffers or Buffers()
    if size:
        sys.ftruncate(target, size)  # makes it one hole, in which only data is written
    grain = _grain(status)
    for offset, length in _windows(size):
        window, written = buffers.read(sys, source, offset, length), 0
        digest.update(offset, window)
        for start, end in [(0, length)] if dense else _parts(window, grain):
            _write(sys, target, window[start:end], offset + start)
            written += end - start
        tick(written)
    return Written(digest.value())


def digest(
    sys: Sys, fd: int, size: int, tick: Tick, make: Maker, buffers: Buffers | None = None
) -> bytes:
    """Return the digest of an open file; one opened with O_DIRECT needs ``buffers``."""
    if size <= SMALL and buffers is None:
        content = _read(sys, fd, 0, size)
        tick(size)
        return whole(content, make)
    result, buffers = Digest(size, make), buffers or Buffers()
    for offset, length in _windows(size):
        result.update(offset, buffers.read(sys, fd, offset, length))
        tick(length)
    return result.value()


def same(sys: Sys, fd: int, kept: bytes, tick: Tick, buffers: Buffers | None = None) -> bool:
    """Whether an open file begins with the content ``kept``; ``buffers`` as for ``digest``."""
    size = len(kept)
    found = _read(sys, fd, 0, size) if buffers is None else bytes(buffers.read(sys, fd, 0, size))
    tick(size)
    return found == kept


def _windows(size: int) -> Iterator[tuple[int, int]]:
    """Offset and length of each aligned window of a file of ``size`` bytes."""
    return ((at, min(WINDOW, size - at)) for at in range(0, size, WINDOW))


def _grain(status: os.stat_result) -> int:
    """Bytes in which a filesystem allocates this file; its holes are multiples of that."""
    unit = status.st_blksize
    return unit if _GRAIN <= unit <= WINDOW and WINDOW % unit == 0 else _GRAIN


def _parts(window: memoryview, grain: int) -> Iterator[tuple[int, int]]:
    """Begin and end of each run of data in a window, in steps of ``grain`` bytes."""
    if _blank(window):
        return
    begin: int | None = None
    for at in range(0, len(window), grain):
        blank = _blank(window[at : at + grain])
        if blank and begin is not None:
            yield begin, at
            begin = None
        elif not blank and begin is None:
            begin = at
    if begin is not None:
        yield begin, len(window)


def _read(sys: Sys, fd: int, offset: int, length: int) -> bytes:
    data = sys.pread(fd, length, offset)
    while len(data) < length:
        more = sys.pread(fd, length - len(data), offset + len(data))
        if not more:
            raise ChangedError("truncated while it was read")
        data += more
    return data


def _write(sys: Sys, fd: int, data: bytes | memoryview, offset: int) -> None:
    written = sys.pwrite(fd, data, offset)
    while written < len(data):
        written += sys.pwrite(fd, memoryview(data)[written:], offset + written)
