"""What the files of a directory take afterwards: the settings of today tried on some blocks.

Compression, copies, recordsize and the disks of a raidz vdev count for what is written now; what is
there keeps those it was written with. Blocks are chosen by their bytes, all alike; where zdb lists
what they take now (root), each is compared with itself, else all of them with ``du``.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from zconsole.pool.allocator import Space, new_write_shares
from zconsole.rebalance.engine.directories import open_path
from zconsole.rebalance.engine.syscalls import SOURCE, Sys
from zconsole.rebalance.planning import zdb
from zconsole.rebalance.planning.facts import Dataset, PoolFacts
from zconsole.rebalance.planning.plan_model import DirectoryPlan, Sizes
from zconsole.rebalance.planning.survey import Taken
from zconsole.rebalance.planning.zdb import Listed

Compressor = Callable[[bytes], int]
"""The compressed length of a block, bytes."""
EMBEDDED = 112
"""Bytes that fit into the block pointer itself (BPE_PAYLOAD_SIZE, include/sys/spa.h)."""
_LEVELLED = re.compile(r"(gzip|zstd|zstd-fast)(?:-(\d+))?")
_DEFAULT_LEVEL = {"gzip": 6, "zstd": 3, "zstd-fast": 1}


def compressor(name: str) -> Compressor | None:
    """What the property ``compression`` names (zfsprops(7)); None where it cannot be tried.

    gzip is exact; lz4 and zstd are those of the system's libraries, which write what ZFS's own
    write but for a few bytes. lzjb and zle nobody else has.
    """
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


def stored_size(block: bytes, compress: Compressor, sector: int) -> int:
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


POINTS = 400
"""Blocks that are read and compressed."""
SECONDS = 5.0
"""That a plan takes at most for them."""
USUAL_SECTOR, USUAL_RECORD = 4096, 128 << 10
RECKONED = 128 << 10
"""The block by which ZFS reckons used space from raw space (SPA_OLD_MAXBLOCKSIZE)."""
_RAIDZ = re.compile(r"raidz(\d)")
_DRAID = re.compile(r"draid(\d):(\d+)d")
_DNODE = 512
"""What ``du`` counts of a file beside its blocks (dmu_object_size_from_db, module/zfs/dmu.c)."""


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """Parity and disks of a top-level vdev; without parity a disk or mirror."""

    sector: int
    parity: int = 0
    disks: int = 1
    """Of raidz, those it has now; of dRAID, the data disks of a group."""
    grouped: bool = False

    def raw(self, size: int) -> int:
        """Raw bytes of a block of so many (vdev_raidz_asize, vdev_draid_asize; module/zfs 2.3)."""
        if size == 0:
            return 0
        sectors = -(-size // self.sector)
        if self.grouped:
            return -(-sectors // self.disks) * (self.disks + self.parity) * self.sector
        if self.parity:
            sectors += self.parity * -(-sectors // (self.disks - self.parity))
            sectors = -(-sectors // (self.parity + 1)) * (self.parity + 1)
        return sectors * self.sector

    def used(self, size: int) -> float:
        """What ``du`` and quotas count for it (vdev_set_deflate_ratio, module/zfs/vdev.c)."""
        return self.raw(size) * RECKONED / self.raw(RECKONED)


def layouts_of(pool: PoolFacts) -> list[tuple[float, BlockLayout]]:
    """The layouts of a pool's vdevs, each with the share of new writes it gets."""
    layouts = (_layout(space, pool.sector or USUAL_SECTOR) for space in pool.spaces)
    return list(zip(new_write_shares(pool.spaces), layouts, strict=True))


def _layout(space: Space, sector: int) -> BlockLayout:
    if match := _DRAID.match(space.name):
        return BlockLayout(sector, int(match[1]), int(match[2]), grouped=True)
    match = _RAIDZ.match(space.name)
    if match and space.disks > int(match[1]):
        return BlockLayout(sector, int(match[1]), space.disks)
    return BlockLayout(sector)


@dataclass(frozen=True, slots=True)
class SampledBlock:
    """One block of a sampled file: where it begins, its length, and how much of it is the file."""

    file: Taken
    at: int
    length: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Trial:
    """How a dataset writes now."""

    compress: Compressor
    copies: int
    layouts: Sequence[tuple[float, BlockLayout]]
    sector: int

    def raw(self, stored: int) -> float:
        """Raw bytes of a block, all its copies."""
        return self.copies * sum(share * layout.raw(stored) for share, layout in self.layouts)

    def used(self, stored: int) -> float:
        """The same as ``du`` counts it."""
        return self.copies * sum(share * layout.used(stored) for share, layout in self.layouts)


def predict_all(
    sys: Sys,
    plans: Sequence[DirectoryPlan],
    pool: PoolFacts,
    listed: Sequence[Mapping[int, Listed]],
) -> PoolFacts:
    """Note in each plan what its blocks take afterwards; returns the pool with its sector."""
    if pool.sector is None:
        told = zdb.sector([f for files in listed for f in files.values()])
        pool = replace(pool, sector=told or _sector_by_du(pool, plans))
    for plan, files in zip(plans, listed, strict=True):
        plan.sizes = predict(sys, plan, pool, files)
    return pool


def _sector_by_du(pool: PoolFacts, plans: Sequence[DirectoryPlan]) -> int | None:
    """What all files take is a multiple of it (up to USUAL_SECTOR), but for a share of parity."""
    plain = all(layout.disks == 1 for _, layout in layouts_of(pool))
    files = [file for plan in plans for file in plan.found.sample.files]
    piece = math.gcd(*(file.allocated - _DNODE for file in files if file.allocated > _DNODE))
    return min(piece & -piece, USUAL_SECTOR) if plain and piece else None


def predict(
    sys: Sys,
    plan: DirectoryPlan,
    pool: PoolFacts,
    listed: Mapping[int, Listed],
    clock: Callable[[], float] = time.monotonic,
) -> Sizes | None:
    """What the blocks of a directory become, by a sample of its files and what zdb ``listed``.

    None off ZFS, and where nothing is going to move.
    """
    dataset, allocated = plan.place.dataset, plan.found.allocated
    if dataset is None or plan.choice.engine is None:
        return None
    name = dataset.properties.get("compression", "off")
    compress = compressor(name)
    if compress is None:
        return Sizes(allocated, None, f"compression={name} cannot be tried here")
    if reason := _unknown(dataset, pool, listed):
        return Sizes(allocated, None, reason)
    sector = pool.sector or USUAL_SECTOR
    trial = Trial(compress, dataset.number("copies") or 1, layouts_of(pool), sector)
    files = [f for f in plan.found.sample.files if not listed or f.inode in listed]
    copied = plan.choice.engine == "copy"  # and so gets the recordsize of today
    record = (dataset.number("recordsize") or USUAL_RECORD) if copied else None
    tried = list(_tried(sys, chosen(files, record), trial, clock))
    share = _paired(tried, trial, listed) if listed else _by_du(tried, trial, files, record)
    if share is None:
        return Sizes(allocated, None, "nothing to try it on")
    words = "uncompressed" if compress is len else name
    return Sizes(allocated, round(allocated * share), f"{words}, {len(tried)} blocks tried")


def _unknown(dataset: Dataset, pool: PoolFacts, listed: Mapping[int, Listed]) -> str | None:
    """Why no trial could tell."""
    if dataset.is_on("dedup"):
        return "dedup is on"
    expanded = pool.properties.get("feature@raidz_expansion") == "active"
    return "after a raidz expansion only zdb tells (root)" if expanded and not listed else None


def narrowed(listed: Mapping[int, Listed], pool: PoolFacts) -> float | None:
    """Raw bytes of the listed blocks as written now by those they take; None without any."""
    shares = layouts_of(pool)
    extents = [extent for file in listed.values() for extent in file.extents]
    before = sum(extent.raw for extent in extents)
    after = sum(
        extent.copies * share * layout.raw(extent.stored)
        for extent in extents
        for share, layout in shares
    )
    return after / before if before else None


def chosen(files: Sequence[Taken], record: int | None) -> list[SampledBlock]:
    """Blocks of the sample, each byte of them with the same chance, in no order."""
    total, points, passed = padded(files, record), [], 0
    places = [round((k + 0.5) * total / POINTS) for k in range(POINTS)] if total else []
    wanted = iter(places)
    place = next(wanted, total)
    for file in files:
        length, end = _length(file, record), passed + padded([file], record)
        while place < end:
            at = (place - passed) // length * length
            points.append(SampledBlock(file, at, length, min(length, file.size - at)))
            place = next(wanted, total)
        passed = end
    Random(1).shuffle(points)
    return points


def padded(files: Sequence[Taken], record: int | None) -> int:
    """Bytes of all blocks of files, the last ones filled up."""
    lengths = ((file.size, _length(file, record)) for file in files)
    return sum(-(-size // length) * length for size, length in lengths if length)


def _length(file: Taken, record: int | None) -> int:
    """Bytes of its blocks: a file of one block has one of its own length, in sectors of 512."""
    return min(record or file.block, -(-file.size // 512) * 512)


Tried = list[tuple[SampledBlock, int]]
"""Blocks, and the bytes that would be stored of each."""


def _tried(
    sys: Sys, points: Sequence[SampledBlock], trial: Trial, clock: Callable[[], float]
) -> Iterator[tuple[SampledBlock, int]]:
    """Read blocks and compress them, as far as time and the files themselves allow."""
    until = clock() + SECONDS
    for point in points:
        if clock() > until:
            return
        try:
            block = read(sys, point, trial.compress is len)
        except OSError:
            continue
        if block is not None:
            yield point, stored_size(block, trial.compress, trial.sector)


def read(sys: Sys, point: SampledBlock, holes: bool) -> bytes | None:
    """A block, filled up with zeros; empty for a hole where those matter, None when it is gone.

    Raises OSError.
    """
    directory = open_path(sys, point.file.directory)
    try:
        fd = sys.open(point.file.name, SOURCE | os.O_NOATIME, dir_fd=directory)
    finally:
        sys.close(directory)
    try:
        if sys.fstat(fd).st_ino != point.file.inode:
            return None
        if holes and _is_hole(sys, fd, point):
            return b""
        return sys.pread(fd, point.bytes, point.at).ljust(point.length, b"\0")
    finally:
        sys.close(fd)


def _is_hole(sys: Sys, fd: int, point: SampledBlock) -> bool:
    try:
        return sys.lseek(fd, point.at, os.SEEK_DATA) >= point.at + point.bytes
    except OSError:  # ENXIO: no data behind it
        return True


def _paired(tried: Tried, trial: Trial, listed: Mapping[int, Listed]) -> float | None:
    """New raw bytes by old, of the same blocks."""
    before = after = 0.0
    for point, stored in tried:
        before += listed[point.file.inode].raw(point.at, point.length) / point.length
        after += trial.raw(stored) / point.length
    return after / before if before else None


def _by_du(tried: Tried, trial: Trial, files: Sequence[Taken], record: int | None) -> float | None:
    """New used bytes by old, of all sampled files."""
    before = sum(max(0, file.allocated - _DNODE) for file in files)
    if not tried or not before:
        return None
    after = sum(trial.used(stored) / point.length for point, stored in tried) / len(tried)
    return after * padded(files, record) / before
