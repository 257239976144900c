from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import rows
from zconsole.rebalance.engine import content
from zconsole.rebalance.engine.content import WINDOW
from zconsole.rebalance.engine.syscalls import Sys


def digest(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        return content.digest(Sys(), fd, path.stat().st_size, lambda count: None, hashlib.sha256)
    finally:
        os.close(fd)


def counted(path: Path, copies: int) -> os.stat_result:
    """Return the status of a file whose blocks are all stored ``copies`` times."""
    found = path.stat()
    names = ("st_atime_ns", "st_mtime_ns", "st_ctime_ns", "st_blksize")
    more = {name: getattr(found, name) for name in names}
    return os.stat_result(tuple(found), more | {"st_blocks": found.st_blocks * copies})


def copied(source: Path, target: Path, copies: int = 1) -> bytes:
    source_fd, target_fd = os.open(source, os.O_RDONLY), os.open(target, os.O_RDWR | os.O_CREAT)
    try:
        return content.copy(
            Sys(), source_fd, target_fd, counted(source, copies),
            lambda count: None, hashlib.sha256, copies=copies,
        ).digest  # fmt: skip
    finally:
        os.close(source_fd)
        os.close(target_fd)


islands = st.lists(st.tuples(st.integers(0, 3 * WINDOW), st.binary(min_size=1, max_size=50)))


@given(size=st.integers(0, 3 * WINDOW), islands=islands)
@pytest.mark.slow
def test_a_copy_has_the_content_and_the_digest(
    tmp_path_factory: object, size: int, islands: list[tuple[int, bytes]]
) -> None:
    area: Path = tmp_path_factory.mktemp("copy")  # type: ignore[attr-defined]
    source = area / "source"
    with source.open("wb") as file:
        file.truncate(size)
        for offset, data in islands:
            file.seek(offset)
            file.write(data)
    taken = copied(source, area / "target")
    assert (area / "target").read_bytes() == source.read_bytes()
    assert taken == digest(area / "target") == digest(source)


def test_holes_do_not_change_the_digest_but_bytes_and_length_do(tmp_path: Path) -> None:
    dense, sparse, longer, other = (tmp_path / n for n in ("dense", "sparse", "longer", "other"))
    dense.write_bytes(bytes(WINDOW) + b"x" + bytes(WINDOW))
    for path, size in ((sparse, 2 * WINDOW + 1), (longer, 2 * WINDOW + 2)):
        with path.open("wb") as file:
            file.truncate(size)
            file.seek(WINDOW)
            file.write(b"x")
    other.write_bytes(bytes(WINDOW) + b"y" + bytes(WINDOW))
    assert digest(dense) == digest(sparse)
    assert len({digest(dense), digest(longer), digest(other)}) == 3


@rows("copies", [1, 2, 3])
def test_holes_stay_holes_and_zeros_zeros_however_often_blocks_are_kept(
    tmp_path: Path, copies: int
) -> None:
    sparse, dense = tmp_path / "sparse", tmp_path / "dense"
    with sparse.open("wb") as file:
        file.write(b"x" * WINDOW)
        file.truncate(2 * WINDOW)
    dense.write_bytes(bytes(2 * WINDOW))
    for path in (sparse, dense):
        before = path.stat().st_blocks
        copied(path, tmp_path / "target", copies)
        assert (tmp_path / "target").read_bytes() == path.read_bytes()
        assert (tmp_path / "target").stat().st_blocks == before
        (tmp_path / "target").unlink()


def test_holes_stay_holes(tmp_path: Path) -> None:
    with (tmp_path / "source").open("wb") as file:
        file.truncate(50 * WINDOW)
        file.seek(20 * WINDOW)
        file.write(b"island")
    copied(tmp_path / "source", tmp_path / "target")
    assert (tmp_path / "target").stat().st_blocks * 512 < WINDOW


def test_the_hash_is_known_again_by_its_length(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    made = set()
    for length, make in content.MAKERS.items():
        fd = os.open(path, os.O_RDONLY)
        found = content.digest(Sys(), fd, 7, lambda count: None, make)
        os.close(fd)
        assert len(found) == length
        made.add(found)
    assert len(made) == len(content.MAKERS) == 3


@rows("length", content.MAKERS)
def test_the_fastest_hash_is_taken(length: int) -> None:
    taken = [1 if each == length else 5 for each in content.MAKERS for _ in range(3)]
    ticks = (at for seconds in taken for at in (0, seconds))
    assert content.fastest(lambda: next(ticks)) is content.MAKERS[length]
