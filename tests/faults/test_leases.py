"""Leases on copies that nobody but this process can have open."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path

import pytest

from tests.faults.harness import ALONE, create, run, tree_of
from zconsole.rebalance.engine.syscalls import Sys


class Starting(Sys):
    """A child is being started each time a copy is to be leased: it still has our descriptors."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.copies: dict[int, int] = {}

    def reopen(self, fd: int, flags: int) -> int:
        copy = super().reopen(fd, flags)
        self.copies[copy] = self.refusals
        return copy

    def lease(self, fd: int, kind: int) -> None:
        if kind == fcntl.F_RDLCK and self.copies.get(fd):
            self.copies[fd] -= 1
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        super().lease(fd, kind)


@pytest.mark.parametrize(("refusals", "moved"), [(3, 5), (1_000_000, 0)], ids=["soon", "never"])
def test_a_copy_is_leased_once_the_child_has_started(area: Path, refusals: int, moved: int) -> None:
    root = tree_of(area, 5, 10)
    create(root, area / "job.db")
    _, summary = run(area / "job.db", Starting(refusals), ALONE)
    assert summary["files_moved"] == moved
    assert summary["files_failed"] == 0
    assert len(list(root.iterdir())) == 5
