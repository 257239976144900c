"""The journal is never ahead of the disks: a power cut undoes what was not synced."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import (
    ALONE,
    Killed,
    create,
    descriptors_closed,
    kill_after,
    run,
    tree_of,
)
from zconsole.rebalance.engine.item import Item
from zconsole.rebalance.engine.journal import Journal, Result, State
from zconsole.rebalance.engine.swap import Swapper
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job.runner import JobRunner


class Disks:
    """Records which files were replaced, and which of them are on the disks."""

    def __init__(self) -> None:
        self.replaced: dict[int, int] = {}
        """Inode number and device of each replaced file."""
        self.synced: set[int] = set()
        self.told: set[int] = set()

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        finish, sync, record = Swapper.finish, JobRunner._sync, Journal.record
        closing = Journal.close_directories

        def finished(swapper: Swapper, item: Item) -> None:
            finish(swapper, item)
            self.replaced |= {place.row.number: item.status.st_dev for place in item.places}

        def synced(syncs: JobRunner, fd: int) -> None:
            before, device = dict(self.replaced), os.fstat(fd).st_dev
            sync(syncs, fd)
            self.synced |= {number for number, on in before.items() if on == device}

        def recorded(journal: Journal, results: Sequence[Result], *words: Any, **more: Any) -> None:
            moved = {result.number for result in results if result.state is State.MOVED}
            assert moved <= self.synced
            self.told |= moved
            record(journal, results, *words, **more)

        def closed(journal: Journal) -> None:
            unfinished = {row.number for row in journal.unfinished()}
            assert self.replaced.keys() - self.synced <= unfinished
            closing(journal)

        monkeypatch.setattr(Swapper, "finish", finished)
        monkeypatch.setattr(JobRunner, "_sync", synced)
        monkeypatch.setattr(Journal, "record", recorded)
        monkeypatch.setattr(Journal, "close_directories", closed)


def test_what_moved_is_told_once_it_is_on_the_disks(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(tree_of(area, 6, 9 << 20), area / "job.db")
    disks = Disks()
    disks.watch(monkeypatch)
    run(area / "job.db")
    assert len(disks.told) == 6


def test_a_sync_of_one_filesystem_tells_nothing_of_another(
    area: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of a job on two filesystems may be on one each."""
    if area.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("one filesystem only")
    monkeypatch.setattr("zconsole.rebalance.engine.descriptors.BATCH_FILES", 1)
    create(tree_of(area, 2, 7), area / "job.db", more=[tree_of(tmp_path, 2, 7)])
    disks = Disks()
    disks.watch(monkeypatch)
    run(area / "job.db", clocks=ALONE)
    assert len(set(disks.replaced.values())) == 2
    assert len(disks.told) == 4


def test_what_a_recovery_removed_is_told_once_that_is_on_the_disks(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a second power cut brings back a temporary file that the journal has forgotten."""
    root = tree_of(area, 3, 7)
    create(root, area / "job.db")
    for number in count(40):
        with descriptors_closed(), suppress(Killed):
            run(area / "job.db", kill_after(number))
        if list(root.glob(".zc-*")):
            break
    removed: list[str] = []
    unlink, sync, record = Sys.unlink, JobRunner._sync, Journal.record

    def unlinked(system: Sys, directory: int, name: bytes) -> None:
        unlink(system, directory, name)
        removed.append("since the last sync")

    def synced(syncs: JobRunner, fd: int) -> None:
        sync(syncs, fd)
        removed.clear()

    def recorded(journal: Journal, results: Sequence[Result], *words: Any, **more: Any) -> None:
        assert not (results and removed)
        record(journal, results, *words, **more)

    monkeypatch.setattr(Sys, "unlink", unlinked)
    monkeypatch.setattr(JobRunner, "_sync", synced)
    monkeypatch.setattr(Journal, "record", recorded)
    run(area / "job.db")
    assert not list(root.glob(".zc-*"))
