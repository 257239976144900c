"""The content of files: read whole, written but for what is blank, and digested.

Nothing here asks a filesystem where its holes are: OpenZFS before 2.1.14, 2.2.4 and 2.3.0 says
that data just written is a hole (openzfs/zfs#15526, #15933). A hole reads as zeros at no cost for
the disks. A digest covers, in order, every aligned window that has a byte other than zero, each
with its offset, and the length of the file; it does not depend on where the holes are.
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
"""Bytes read, digested and written at a time; a multiple of every recordsize up to 1 MiB."""
SMALL = 128 << 10
"""Up to here a file with all its blocks allocated is taken to have no holes."""
KEPT = 8 << 10
"""Up to here content is kept until it is read back: to compare it takes less than a digest."""
BESIDE = 8 << 20
"""From here on a thread is worth its start."""
_ZEROS = bytes(WINDOW)
_FIRST = bytes(8)
_GRAIN = 4096
"""The smallest hole that a copy has; filesystems of smaller blocks are rare."""
_PROBE = 64 << 10
_PAGE = mmap.PAGESIZE

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


class Written(NamedTuple):
    """What was copied: its digest and, of a very small file, all of it."""

    digest: bytes
    kept: bytes | None = None


class ChangedError(Exception):
    """A file changed while it was read."""


def fastest(clock: Callable[[], float] = time.perf_counter) -> Maker:
    """The fastest hash on this processor: SHA-256 where it has instructions for that."""

    def seconds(make: Maker) -> float:
        began = clock()
        make(_ZEROS[:_PROBE]).digest()
        return clock() - began

    return min(MAKERS.values(), key=lambda make: min(seconds(make) for _ in range(3)))


class Buffers:
    """Two windows of page-aligned memory, by turns: one is filled while the other is digested."""

    def __init__(self) -> None:
        self._turns = cycle((mmap.mmap(-1, WINDOW), mmap.mmap(-1, WINDOW)))

    def read(self, sys: Sys, fd: int, offset: int, length: int) -> memoryview:
        """That part of a file; good until the next but one. Raises OSError, ChangedError."""
        buffer = memoryview(next(self._turns))
        # No more than whole pages of the file: the kernel pins every page it is given.
        count = min(sys.read_into(fd, buffer[: -(-length // _PAGE) * _PAGE], offset), length)
        window = buffer[:length]
        if count < length:
            window[count:] = _read(sys, fd, offset + count, length - count)
        return window


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

    def update(self, offset: int, window: memoryview) -> None:
        """Add one aligned window, which must not change before the next is added."""
        if offset == 0 or not self._beside:
            self._take(offset, window)
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1)
        self._wait()
        self._pending = self._thread.submit(self._take, offset, window)

    def value(self) -> bytes:
        """The digest; nothing can be added afterwards."""
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
    """Whether all of it, one window at most, is zero."""
    return _ZEROS.startswith(window)  # in C, without a copy of it


def whole(content: bytes, make: Maker) -> bytes:
    """The digest of a file of at most one window, given all of it."""
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

    A file with all its blocks allocated gets all of them again, also those of zeros: it may be
    one whose space somebody reserved. Of any other what is blank becomes a hole. ``copies``: how
    many of each block the filesystem keeps and counts (zfsprops(7)).

    Raises OSError, ChangedError when the file is shorter than its status said.
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
        sys.ftruncate(target, size)
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
    """The digest of an open file; ``buffers`` are wanted when it was opened O_DIRECT."""
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
    """Whether an open file begins with this content; ``buffers`` as for ``digest``."""
    size = len(kept)
    found = _read(sys, fd, 0, size) if buffers is None else bytes(buffers.read(sys, fd, 0, size))
    tick(size)
    return found == kept


def _windows(size: int) -> Iterator[tuple[int, int]]:
    """Offset and length of the aligned windows of a file of so many bytes."""
    return ((at, min(WINDOW, size - at)) for at in range(0, size, WINDOW))


def _grain(status: os.stat_result) -> int:
    """The unit in which a filesystem allocates this file: its holes are multiples of that."""
    unit = status.st_blksize
    return unit if _GRAIN <= unit <= WINDOW and WINDOW % unit == 0 else _GRAIN


def _parts(window: memoryview, grain: int) -> Iterator[tuple[int, int]]:
    """Begin and end of the runs of a window that have data, in units of ``grain`` bytes."""
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
