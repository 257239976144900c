"""What a block shrinks to by a dataset's compression, tried on its content.

gzip is exact; lz4 and zstd are those of the system's libraries, which write what ZFS's own write
but for a few bytes. lzjb and zle nobody else has.
"""

from __future__ import annotations

import ctypes
import re
import zlib
from collections.abc import Callable
from functools import partial

Compressor = Callable[[bytes], int]
"""The compressed length of a block, bytes."""
EMBEDDED = 112
"""Bytes that fit into the block pointer itself (BPE_PAYLOAD_SIZE, include/sys/spa.h)."""
_LEVELLED = re.compile(r"(gzip|zstd|zstd-fast)(?:-(\d+))?")
_DEFAULT_LEVEL = {"gzip": 6, "zstd": 3, "zstd-fast": 1}


def compressor(name: str) -> Compressor | None:
    """What the property ``compression`` names (zfsprops(7)); None where it cannot be tried."""
    if name == "off":
        return len
    if name in ("on", "lz4"):
        library = _library("liblz4.so.1")
        return partial(_lz4, library) if library else None
    match = _LEVELLED.fullmatch(name)
    if match is None:
        return None
    level = int(match[2] or _DEFAULT_LEVEL[match[1]])
    if match[1] == "gzip":
        return partial(_gzip, level)
    library = _library("libzstd.so.1")
    return partial(_zstd, library, level if match[1] == "zstd" else -level) if library else None


def stored(block: bytes, compress: Compressor, sector: int) -> int:
    """Bytes that ZFS writes of a block: none for zeros, all where less than an eighth were saved.

    (zio_write_compress and zio_get_compression_max_size, module/zfs/zio.c 2.3.)
    """
    if compress is not len and not block.strip(b"\0"):
        return 0
    size = compress(block)
    if size <= EMBEDDED and compress is not len:
        return 0
    if size > len(block) - len(block) // 8:
        return len(block)
    return min(len(block), -(-size // sector) * sector)


def _gzip(level: int, block: bytes) -> int:
    return len(zlib.compress(block, level))


def _lz4(library: ctypes.CDLL, block: bytes) -> int:
    room = ctypes.create_string_buffer(len(block))
    size: int = library.LZ4_compress_default(block, room, len(block), len(room))
    return size + 4 if size > 0 else len(block)  # before it, its length (lz4_zfs.c)


def _zstd(library: ctypes.CDLL, level: int, block: bytes) -> int:
    room = ctypes.create_string_buffer(len(block))
    size: int = library.ZSTD_compress(
        room, ctypes.c_size_t(len(room)), block, ctypes.c_size_t(len(block)), level
    )
    return min(size, len(block))  # an error is a very large number


def _library(name: str) -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return None
    if "zstd" in name:
        library.ZSTD_compress.restype = ctypes.c_size_t
    return library
