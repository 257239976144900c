"""What blocks shrink to, by the compressions ZFS has."""

from __future__ import annotations

import os
import zlib

import pytest

from zconsole.rebalance.planning import compressing
from zconsole.rebalance.planning.compressing import compressor, stored

NOISE = os.urandom(128 << 10)
HALF = os.urandom(64 << 10) + bytes(64 << 10)
TEXT = b"the pool is degraded; " * 6000


def test_without_compression_all_is_stored_zeros_too() -> None:
    compress = compressor("off")
    assert compress is not None
    assert stored(NOISE, compress, 4096) == len(NOISE)
    assert stored(bytes(8192), compress, 4096) == 8192


@pytest.mark.parametrize("name", ["on", "lz4", "gzip", "gzip-1", "zstd", "zstd-fast-5"])
def test_what_can_be_compressed_is_stored_in_sectors(name: str) -> None:
    compress = compressor(name)
    if compress is None:
        pytest.skip(f"no library for {name}")
    assert stored(NOISE, compress, 4096) == len(NOISE)
    half = stored(HALF, compress, 4096)
    assert 64 << 10 <= half <= 72 << 10
    assert half % 4096 == 0
    assert stored(bytes(128 << 10), compress, 4096) == 0


def test_less_than_an_eighth_is_not_saved() -> None:
    block = os.urandom(115 << 10) + bytes(13 << 10)
    compress = compressor("gzip")
    assert compress is not None
    assert stored(block, compress, 512) == len(block)


def test_a_higher_level_saves_more() -> None:
    sizes = []
    for name in ("gzip-1", "gzip-9"):
        compress = compressor(name)
        assert compress is not None
        sizes.append(compress(TEXT[:100_000] + NOISE[:1000] * 20))
    assert sizes[0] > sizes[1] == len(zlib.compress(TEXT[:100_000] + NOISE[:1000] * 20, 9))


def test_what_fits_into_the_block_pointer_takes_no_block() -> None:
    compress = compressor("gzip")
    assert compress is not None
    assert len(zlib.compress(b"a" * 4096)) <= compressing.EMBEDDED
    assert stored(b"a" * 4096, compress, 4096) == 0


@pytest.mark.parametrize("name", ["lzjb", "zle", "inherit", "", "zstd-", "gzip-x"])
def test_what_cannot_be_tried_is_said_so(name: str) -> None:
    assert compressor(name) is None


def test_without_its_library_a_compression_cannot_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressing, "_library", lambda name: None)
    assert compressor("lz4") is None
    assert compressor("zstd-3") is None
