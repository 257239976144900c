"""What files take afterwards, tried on real files under settings of datasets."""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.table import rows
from tests.unit.rebalance.planning.listing import listed
from zconsole.pool.allocator import Space
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.planning import new_sizes
from zconsole.rebalance.planning.engine_choice import Choice
from zconsole.rebalance.planning.facts import Dataset, Mount, PoolFacts
from zconsole.rebalance.planning.new_sizes import BlockLayout, compressor, layouts_of, stored_size
from zconsole.rebalance.planning.plan_model import DirectoryPlan, JobDirectory, Sizes
from zconsole.rebalance.planning.survey import Ages, Reservoir, Survey, Taken
from zconsole.rebalance.planning.zdb import Listed

KIB = 1 << 10
RECORD = 128 << 10
MIRROR = PoolFacts("tank", {}, (Space("mirror-0", 1 << 40, 0, disks=2),), (2, 3, 9))
RAIDZ = PoolFacts(
    "tank",
    {"feature@raidz_expansion": "active"},
    (Space("raidz1-0", 1 << 40, 0, disks=5),),
    (2, 3, 9),
)


def taken(root: Path) -> list[Taken]:
    """All files of a directory, as a walk takes them, on blocks of 128 KiB."""
    reservoir, fd = Reservoir(300), os.open(root, os.O_RDONLY)
    files = sorted(path for path in root.iterdir() if path.is_file())
    reservoir.offer([(os.fsencode(p.name), p.lstat()) for p in files], fd)
    os.close(fd)
    return [file._replace(block=RECORD) for file in reservoir.files]


def planned(root: Path, engine: str | None = "rewrite", **properties: str) -> DirectoryPlan:
    """A directory on a dataset of these properties, all of its files sampled."""
    path, files = os.fsencode(root), taken(root)
    found = Survey(path, Ages(), 1 << 40, allocated=sum(file.allocated for file in files))
    found.sample.files = files
    place = JobDirectory(path, Mount("zfs", "tank", str(root)), Dataset("tank", properties))
    return DirectoryPlan(place, found, Choice(engine, ""), len(files), 0)


def predicted(
    root: Path,
    pool: PoolFacts = MIRROR,
    told: Mapping[int, Listed] | None = None,
    engine: str = "rewrite",
    **properties: str,
) -> Sizes:
    plan = planned(root, engine, **properties)
    sizes = new_sizes.predict(Sys(), plan, pool, told or {}, clock=lambda: 0.0)
    assert sizes is not None
    return sizes


def growth(sizes: Sizes) -> float:
    """Bytes afterwards to those now."""
    assert sizes.after is not None
    return sizes.after / sizes.before


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Files that take all of their length now, and could take a quarter."""
    for number in range(4):
        lines = b"".join(b"%d: no known data errors\n" % (line * 7) for line in range(20_000))
        (tmp_path / f"text{number}").write_bytes(lines[: 4 * RECORD])
    os.sync()
    return tmp_path


def listing(root: Path, raw: int, stored: int, copies: int = 1) -> dict[int, Listed]:
    """What zdb tells of files of four blocks."""
    addresses = "".join(f"{copy}:1000:{raw:x} " for copy in range(copies))
    lines = "".join(
        f"  {at * RECORD:x}  L0 {addresses}{RECORD:x}L/{stored:x}P F=1 B=9/9 cksum=1\n"
        for at in range(4)
    )
    return listed({path.stat().st_ino: lines for path in root.iterdir()})


@pytest.mark.slow
def test_what_compression_would_save(texts: Path) -> None:
    sizes = predicted(texts, compression="gzip-6")
    assert sizes.after is not None
    assert sizes.after < sizes.before / 3
    assert sizes.estimate == f"gzip-6, {new_sizes.POINTS} blocks tried"
    assert sizes.change == sizes.after - sizes.before


def test_the_same_settings_change_nothing(texts: Path) -> None:
    assert growth(predicted(texts, compression="off")) == pytest.approx(1, abs=0.02)


def test_two_copies_take_twice_as_much(texts: Path) -> None:
    sizes = predicted(texts, compression="off", copies="2")
    assert growth(sizes) == pytest.approx(2, abs=0.04)
    assert sizes.change == pytest.approx(sizes.before, rel=0.04)


@pytest.mark.slow
def test_larger_records_compress_better(texts: Path) -> None:
    small, large = (
        growth(predicted(texts, engine="copy", compression="gzip", recordsize=str(size)))
        for size in (4 << 10, 128 << 10)
    )
    assert small == pytest.approx(1, abs=0.02)  # nothing is smaller than a sector
    assert large < 0.35


@pytest.mark.slow
def test_holes_stay_holes(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.write(os.urandom(RECORD))
        file.truncate(100 * RECORD)
    os.sync()
    for compression in ("off", "gzip"):
        sizes = predicted(tmp_path, compression=compression)
        assert growth(sizes) == pytest.approx(1, abs=0.6)


def test_zdb_compares_each_block_with_itself(texts: Path) -> None:
    told = listing(texts, raw=0x8000, stored=0x8000)
    assert growth(predicted(texts, told=told, compression="off")) == pytest.approx(4)
    smaller = predicted(texts, told=told, engine="copy", compression="off", recordsize="16384")
    assert growth(smaller) == pytest.approx(4)  # parts of larger blocks count for their share


def test_zdb_counts_every_copy(texts: Path) -> None:
    told = listing(texts, RECORD, RECORD, copies=2)
    assert growth(predicted(texts, told=told, compression="off")) == pytest.approx(0.5)


def test_more_disks_in_a_raidz_take_less_parity(texts: Path) -> None:
    told = listing(texts, raw=176 << 10, stored=RECORD)
    narrowed = pytest.approx(160 / 176)
    assert new_sizes.narrowed(told, RAIDZ) == narrowed
    assert growth(predicted(texts, RAIDZ, told, compression="off")) == narrowed
    assert new_sizes.narrowed({}, RAIDZ) is None


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"compression": "lzjb"}, "compression=lzjb cannot be tried here"),
        ({"compression": "off", "dedup": "on"}, "dedup is on"),
    ],
)
def test_what_cannot_be_known_is_said(texts: Path, properties: dict[str, str], reason: str) -> None:
    sizes = predicted(texts, **properties)
    assert (sizes.after, sizes.estimate, sizes.change) == (None, reason, 0)


def test_after_an_expansion_du_tells_nothing(texts: Path) -> None:
    sizes = predicted(texts, RAIDZ, compression="off")
    assert (sizes.after, sizes.estimate) == (None, "after a raidz expansion only zdb tells (root)")


def test_what_does_not_move_keeps_its_size(texts: Path) -> None:
    assert new_sizes.predict(Sys(), planned(texts, engine=None), MIRROR, {}) is None


def test_an_empty_directory_has_no_sizes(tmp_path: Path) -> None:
    assert predicted(tmp_path, compression="off").after is None


def test_another_file_of_the_name_is_not_read(texts: Path) -> None:
    plan = planned(texts)
    (texts / "text0").rename(texts / "old")
    (texts / "text0").write_bytes(b"x")
    (texts / "text1").unlink()
    (texts / "text1").symlink_to(texts / "text2")
    tried = new_sizes.predict(Sys(), plan, MIRROR, {})
    assert tried is not None
    assert tried.estimate == f"uncompressed, {new_sizes.POINTS // 2} blocks tried"


def test_time_runs_out(texts: Path) -> None:
    clock = itertools.count(0, new_sizes.SECONDS / 10)
    tried = new_sizes.predict(Sys(), planned(texts), MIRROR, {}, lambda: next(clock))
    assert tried is not None
    assert tried.estimate == "uncompressed, 10 blocks tried"


def test_the_end_of_a_file_takes_a_whole_block_without_compression(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"f{number}").write_bytes(os.urandom(RECORD + 4096))
    os.sync()
    sizes = predicted(tmp_path, compression="off")
    assert growth(sizes) == pytest.approx(2 * RECORD / (RECORD + 4096), rel=0.02)


def test_blocks_are_chosen_by_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(9 * RECORD))
    (tmp_path / "small").write_bytes(bytes(RECORD - 1))
    files = taken(tmp_path)
    points = new_sizes.chosen(files, None)
    assert len(points) == new_sizes.POINTS
    assert sum(point.file.name == b"large" for point in points) == pytest.approx(
        0.9 * new_sizes.POINTS, abs=1
    )
    assert {point.at // RECORD for point in points if point.file.name == b"large"} == set(range(9))
    (small,) = {point for point in points if point.file.name == b"small"}
    assert (small.at, small.length, small.bytes) == (0, RECORD, RECORD - 1)


@rows(
    ("layout", "size", "raw"),
    [
        (BlockLayout(4096), 128 * KIB, 128 * KIB),
        (BlockLayout(4096), 5000, 8 * KIB),
        (BlockLayout(4096), 0, 0),
        (BlockLayout(4096, 1, 4), 128 * KIB, 176 * KIB),  # 32 + 11 parity + 1 to fill up
        (BlockLayout(4096, 1, 5), 128 * KIB, 160 * KIB),
        (BlockLayout(4096, 2, 6), 128 * KIB, 192 * KIB),
        (BlockLayout(4096, 2, 6), 4 * KIB, 12 * KIB),
        (BlockLayout(4096, 3, 11), 8 * KIB, 32 * KIB),
        (BlockLayout(4096, 2, 4, grouped=True), 4 * KIB, 24 * KIB),
        (BlockLayout(4096, 2, 4, grouped=True), 128 * KIB, 192 * KIB),
    ],
)
def test_parity_and_padding(layout: BlockLayout, size: int, raw: int) -> None:
    assert layout.raw(size) == raw


def test_used_space_counts_a_block_of_128_kib_as_itself() -> None:
    assert BlockLayout(4096, 1, 4).used(128 * KIB) == 128 * KIB
    assert BlockLayout(4096, 2, 6).used(4 * KIB) == 8 * KIB


def test_the_vdevs_of_a_pool_get_writes_by_their_free_space() -> None:
    spaces = (
        Space("raidz2-0", 400, 100, disks=6),
        Space("draid1:3d:5c:1s-1", 100, 0, disks=5),
        Space("mirror-2", 100, 100, disks=2),
        Space("raidz1-3", 10, 10),  # of which nobody knows the disks
    )
    pool = PoolFacts("tank", {}, spaces, (2, 3, 9), sector=4096)
    assert layouts_of(pool) == [
        (0.75, BlockLayout(4096, 2, 6)),
        (0.25, BlockLayout(4096, 1, 3, grouped=True)),
        (0.0, BlockLayout(4096)),
        (0.0, BlockLayout(4096)),
    ]


NOISE = os.urandom(128 << 10)
HALF = os.urandom(64 << 10) + bytes(64 << 10)
TEXT = b"the pool is degraded; " * 6000


def test_without_compression_all_is_stored_zeros_too() -> None:
    compress = compressor("off")
    assert compress is not None
    assert stored_size(NOISE, compress, 4096) == len(NOISE)
    assert stored_size(bytes(8192), compress, 4096) == 8192


@pytest.mark.parametrize("name", ["on", "lz4", "gzip", "gzip-1", "zstd", "zstd-fast-5"])
def test_what_can_be_compressed_is_stored_in_sectors(name: str) -> None:
    compress = compressor(name)
    if compress is None:
        pytest.skip(f"no library for {name}")
    assert stored_size(NOISE, compress, 4096) == len(NOISE)
    half = stored_size(HALF, compress, 4096)
    assert 64 << 10 <= half <= 72 << 10
    assert half % 4096 == 0
    assert stored_size(bytes(128 << 10), compress, 4096) == 0


def test_less_than_an_eighth_is_not_saved() -> None:
    block = os.urandom(115 << 10) + bytes(13 << 10)
    compress = compressor("gzip")
    assert compress is not None
    assert stored_size(block, compress, 512) == len(block)


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
    assert len(zlib.compress(b"a" * 4096)) <= new_sizes.EMBEDDED
    assert stored_size(b"a" * 4096, compress, 4096) == 0


@rows("name", ["lzjb", "zle", "inherit", "", "zstd-", "gzip-x"])
def test_what_cannot_be_tried_is_said_so(name: str) -> None:
    assert compressor(name) is None


def test_without_its_library_a_compression_cannot_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_sizes, "_library", lambda name: None)
    assert compressor("lz4") is None
    assert compressor("zstd-3") is None


@pytest.mark.parametrize(
    ("allocated", "vdev", "sector"),
    [
        ((512, 2048), "mirror-0", 512),
        ((4096, 8192), "sda", 4096),
        ((16384,), "sda", 4096),
        ((512, 2048), "raidz1-0", None),
        ((0,), "sda", None),
    ],
)
def test_what_files_take_tells_the_sector(
    tmp_path: Path, allocated: tuple[int, ...], vdev: str, sector: int | None
) -> None:
    plan = planned(tmp_path, compression="off")
    plan.found.sample.files = [
        Taken(number, size, 512 + size, RECORD, b"", b"")
        for number, size in enumerate(allocated)
    ]  # fmt: skip
    pool = PoolFacts("tank", {}, (Space(vdev, 1 << 40, 0, disks=5),), (2, 1, 11))
    assert new_sizes.predict_all(Sys(), [plan], pool, [{}]).sector == sector
