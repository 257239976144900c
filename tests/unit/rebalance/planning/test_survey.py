"""A sample of files, each with the same chance whatever the length of the walk."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.table import rows
from tests.unit.rebalance.planning.listing import status_of
from zconsole.rebalance.planning.plan_document import PlannedPart, best_words
from zconsole.rebalance.planning.survey import MOST, Ages, Ranking, Reservoir, Survey, survey
from zconsole.units import size


def files(begin: int, end: int, size: int = 1) -> list[os.stat_result]:
    return [status_of(number, size) for number in range(begin, end)]


@rows("count", [0, 1, 5, 10])
def test_a_few_files_are_all_taken(count: int) -> None:
    reservoir = Reservoir(10)
    reservoir.offer(files(0, count))
    assert sorted(reservoir.inodes(1 << 20)) == list(range(count))


@pytest.mark.slow
def test_every_file_has_the_same_chance_wherever_it_is() -> None:
    offered = files(0, 100)
    taken: Counter[int] = Counter()
    for seed in range(2000):
        reservoir = Reservoir(10, Random(seed))
        for begin in range(0, 100, 7):
            reservoir.offer(offered[begin : begin + 7])
        found = reservoir.inodes(1 << 20)
        assert len(set(found)) == 10
        taken.update(found)
    assert min(taken[inode] for inode in range(100)) > 130
    assert max(taken.values()) < 270


def test_no_more_blocks_are_taken_than_wanted() -> None:
    reservoir = Reservoir(10)
    reservoir.offer(files(0, 10, size=100 * 4096))
    assert len(reservoir.inodes(300)) == 3
    assert len(reservoir.inodes(50)) == 1
    assert reservoir.inodes(0) == []


ADDED = 2e9
"""Later than the time of any file in a test."""


def tree(root: Path, sizes: dict[str, int]) -> Path:
    for name, length in sizes.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(bytes(length))
    return root


def ranked(root: Path, added: float | None = ADDED) -> Ranking:
    found = Survey(os.fsencode(root), Ages(addition=added), 1 << 40)
    survey([found])
    return found.below


def test_what_lies_deeper_counts_for_the_directory_above(tmp_path: Path) -> None:
    sizes = {"top": 9, "a/f": 10, "a/b/f": 20, "a/b/c/f": 30, "d/f": 5}
    best = ranked(tree(tmp_path, sizes)).best(known=True)
    assert list(best) == [PlannedPart("a", 3, 60, 60), PlannedPart("d", 1, 5, 5)]


def test_links_within_a_directory_count_once(tmp_path: Path) -> None:
    tree(tmp_path, {"a/f": 100, "d/f": 60})
    (tmp_path / "a/again").hardlink_to(tmp_path / "a/f")
    assert [part.bytes for part in ranked(tmp_path).best(known=True)] == [100, 60]


def test_links_across_directories_count_once_in_all(tmp_path: Path) -> None:
    tree(tmp_path, {"a/f": 8192, "d/other": 0})
    for name in ("b/f", "b/again", "c/f"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).hardlink_to(tmp_path / "a/f")
    roots = [os.fsencode(tmp_path / name) for name in ("a", "b", "c", "d")]
    found = [Survey(root, Ages(), 1 << 40) for root in roots]
    survey(found)
    assert [(each.files, each.bytes) for each in found] == [(1, 0), (2, 0), (1, 8192), (1, 0)]
    assert [each.allocated >= 0 for each in found] == [True] * 4


def test_the_old_go_before_the_large_and_few_are_kept(tmp_path: Path) -> None:
    tree(tmp_path, {f"d{number:02}/f": number for number in range(1, 3 * MOST)})
    assert [part.bytes for part in ranked(tmp_path).best(known=True)] == [*range(23, 15, -1)]
    ranking = ranked(tmp_path, added=None)
    assert {each.old_bytes for each in ranking.best(known=False)} == {None}


def test_one_directory_is_no_choice(tmp_path: Path) -> None:
    assert list(ranked(tree(tmp_path, {"a/f": 1})).best(known=True)) == []


@rows(
    ("old", "told"),
    [
        (4096, "worth most (logical), older than the newest vdev: a\x1b 4K of 8K"),
        (0, "all files here are newer than the newest vdev: they are spread already"),
    ],
)
def test_what_is_old_is_told(old: int, told: str) -> None:
    below = [PlannedPart("a\x1b", 2, 8192, old), PlannedPart("b", 1, 9000, 0)]
    assert best_words(below, old, size) == told
