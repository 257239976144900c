"""Leases on copies that only this process can have open, and filesystems without leases."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from tests.faults.harness import ALONE, create, run, tree_of
from zconsole.errors import ZconsoleError
from zconsole.rebalance.engine.admission import Policy
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job import runner


class Starting(Sys):
    """When a copy is to be leased, a child is always starting that still has our descriptors."""

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


class Unleased(Sys):
    """System calls of a filesystem without leases."""

    def lease(self, fd: int, kind: int) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


@pytest.mark.parametrize(
    ("version", "mended"), [((2, 4, 1), r".*\(fixed in 2\.4\.2\).*"), ((2, 4, 2), ""), (None, "")]
)
def test_a_job_without_leases_ends_with_the_release_that_grants_them(
    area: Path, monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...] | None, mended: str
) -> None:
    create(tree_of(area, 1, 10), area / "job.db")
    monkeypatch.setattr(runner, "Policy", lambda **given: Policy(**{**given, "zfs": version}))
    why = rf"^refused: no leases on this filesystem{mended} \(--accept-races\)$"
    with pytest.raises(ZconsoleError, match=why):
        run(area / "job.db", Unleased(), ALONE)


def test_files_are_moved_without_leases_where_that_is_accepted(area: Path) -> None:
    create(tree_of(area, 2, 10), area / "job.db", accept_races=True)
    _, summary = run(area / "job.db", Unleased(), ALONE)
    assert (summary["files_moved"], summary["skipped"]) == (2, {})
