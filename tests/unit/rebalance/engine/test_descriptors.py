from __future__ import annotations

import resource

import pytest

from zconsole.rebalance.engine.descriptors import (
    A_FILE,
    BATCH_FILES,
    KEPT,
    MOST_DIRECTORIES,
    OTHERS,
    batch_directories,
    batch_files,
)

WANTED = BATCH_FILES * A_FILE + OTHERS
NEVER = resource.RLIM_INFINITY


class Limits:
    """The limits of a process, with or without the right to raise the hard limit."""

    def __init__(self, soft: int, hard: int, root: bool) -> None:
        self.now = soft, hard
        self._root = root

    def get(self, what: int) -> tuple[int, int]:
        return self.now

    def set(self, what: int, limits: tuple[int, int]) -> None:
        if limits[1] > self.now[1] != NEVER and not self._root:
            raise ValueError("not allowed to raise maximum limit")
        self.now = limits


@pytest.mark.parametrize(
    ("soft", "hard", "root", "left", "files"),
    [
        (1024, 1 << 20, False, (WANTED, 1 << 20), BATCH_FILES),
        (1024, NEVER, False, (WANTED, NEVER), BATCH_FILES),
        (1024, 4096, True, (WANTED, WANTED), BATCH_FILES),
        (1024, 4096, False, (4096, 4096), (4096 - OTHERS) // A_FILE),
        (NEVER, NEVER, False, (NEVER, NEVER), BATCH_FILES),
        (1 << 20, 1 << 20, False, (1 << 20, 1 << 20), BATCH_FILES),
        (256, 256, False, (256, 256), 1),
    ],
)
def test_the_limit_is_raised_as_far_as_permitted(
    monkeypatch: pytest.MonkeyPatch,
    soft: int,
    hard: int,
    root: bool,
    left: tuple[int, int],
    files: int,
) -> None:
    limits = Limits(soft, hard, root)
    monkeypatch.setattr(resource, "getrlimit", limits.get)
    monkeypatch.setattr(resource, "setrlimit", limits.set)
    assert batch_files() == files
    assert limits.now == left


@pytest.mark.parametrize(
    ("hard", "directories"),
    [(1 << 20, MOST_DIRECTORIES), (4096, 4096 - 3 * 1000 - KEPT), (256, 1)],
)
def test_a_batch_has_as_many_directories_as_its_files_leave(
    monkeypatch: pytest.MonkeyPatch, hard: int, directories: int
) -> None:
    limits = Limits(256, hard, root=False)
    monkeypatch.setattr(resource, "getrlimit", limits.get)
    monkeypatch.setattr(resource, "setrlimit", limits.set)
    assert batch_directories(1000) == directories
