"""Whether an aim has anything to gain."""

from __future__ import annotations

import pytest

from tests.unit.rebalance.planning.listing import listed
from zconsole.pool.allocator import Space
from zconsole.rebalance.planning import plan_notes
from zconsole.rebalance.planning.engine_choice import Choice
from zconsole.rebalance.planning.facts import Dataset, Mount, PoolFacts
from zconsole.rebalance.planning.plan_model import DirectoryPlan, JobDirectory
from zconsole.rebalance.planning.reservoir import Taken
from zconsole.rebalance.planning.survey import Ages, Survey

KIB = 1 << 10
MIRROR = PoolFacts("tank", {}, (Space("mirror-0", 100, 50, disks=2),), (2, 3, 9))
RAIDZ = PoolFacts("tank", {}, (Space("raidz1-0", 100, 50, disks=5),), (2, 3, 9))
WIDE = "  0  L0 0:1000:28000 20000L/20000P F=1 B=9/9 cksum=1\n"
NARROW = "  0  L0 0:1000:2c000 20000L/20000P F=1 B=9/9 cksum=1\n"


def plan(*files: tuple[int, int], known: int | None = None) -> DirectoryPlan:
    """A directory of files by size and block, and as many more as are ``known``."""
    found = Survey(b"/tank", Ages(), files=len(files) if known is None else known)
    found.sample.files = [
        Taken(inode, size, size, block, b"/tank", b"f") for inode, (size, block) in enumerate(files)
    ]
    place = JobDirectory(
        b"/tank", Mount("zfs", "tank", "/tank"), Dataset("tank", {"recordsize": "65536"})
    )
    return DirectoryPlan(place, found, Choice("copy", ""), len(files), 0)


def test_without_raidz_there_is_no_width() -> None:
    found = plan_notes.in_vain("width", [plan((1, 1))], MIRROR, [{}])
    assert found == ("no raidz vdev: there is no width to gain", [])


@pytest.mark.parametrize(
    ("text", "known", "said"),
    [
        (NARROW, 1, (None, [])),
        (WIDE, 1, ("every file is as wide as it would be written now", [])),
        (WIDE, 9, (None, ["each of 1 files looked at is as wide as it would be written now"])),
    ],
)
def test_width_is_told_by_the_blocks(
    text: str, known: int, said: tuple[str | None, list[str]]
) -> None:
    assert (
        plan_notes.in_vain("width", [plan((1, 1), known=known)], RAIDZ, [listed({0: text})]) == said
    )


def test_without_zdb_nobody_knows_the_width() -> None:
    assert plan_notes.in_vain("width", [plan((1, 1))], RAIDZ, [{}]) == (None, [])


@pytest.mark.parametrize(
    ("files", "vain"),
    [
        ([(200 * KIB, 64 * KIB), (3 * KIB, 3 * KIB), (0, 512)], True),
        ([(200 * KIB, 128 * KIB)], False),
        ([(60 * KIB, 16 * KIB)], False),
        ([(0, 512)], False),
    ],
)
def test_recordsize_is_told_by_the_files(files: list[tuple[int, int]], vain: bool) -> None:
    found = plan_notes.in_vain("recordsize", [plan(*files)], MIRROR, [{}])
    assert (found != (None, [])) == vain


@pytest.mark.parametrize("aim", ["balance", "properties"])
def test_other_aims_are_not_judged_by_it(aim: str) -> None:
    assert plan_notes.in_vain(aim, [plan((1, 1))], MIRROR, [{}]) == (None, [])
