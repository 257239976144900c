"""A copy that is read back from the disks differently than written replaces nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.harness import create, run, tree_of
from zconsole.rebalance.engine.admission import Policy
from zconsole.rebalance.engine.content import KEPT, SMALL
from zconsole.rebalance.engine.syscalls import Sys


def spoiled(fd: int, data: bytes | memoryview, offset: int) -> int:
    """Write all data, with the last byte wrong."""
    return os.pwrite(fd, bytes(data[:-1]) + bytes([data[-1] ^ 1]), offset)


@pytest.fixture(params=["alone", "threads"])
def threads(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Executor | None]:
    """A run's executor; with one, copies are read past the cache, as on a pool."""
    if request.param == "alone":
        yield None
        return
    monkeypatch.setattr(Policy, "direct", True)
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.mark.parametrize("size", [1, KEPT, KEPT + 1, SMALL, SMALL + 1])
def test_a_damaged_copy_is_thrown_away(
    area: Path, monkeypatch: pytest.MonkeyPatch, threads: Executor | None, size: int
) -> None:
    root = tree_of(area, 2, size)
    before = {path: path.read_bytes() for path in root.iterdir()}
    create(root, area / "job.db")
    monkeypatch.setattr(Sys, "pwrite", staticmethod(spoiled))
    shown, summary = run(area / "job.db", threads=threads)
    assert {path: path.read_bytes() for path in root.iterdir()} == before
    assert [record["reason"] for record in shown] == ["the copy read back differs"] * 2
    assert (summary["files_moved"], summary["files_failed"]) == (0, 2)
