"""Plans as text for people."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.planning import plan
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.plan_document import PlanDocument, PredictedFill
from zconsole.rebalance.planning.plan_text import plan_lines, sample_words, size_line
from zconsole.rebalance.planning.settings import Settings

MIB = 1 << 20
PLAN = PlanDocument(
    (),
    pool="tank",
    spread_before=0.932,
    spread_after=0.106,
    target_spread=0.05,
    bytes_to_target=MIB,
    available_bytes=3 << 40,
    fragmentation=0.12,
    vdevs=(PredictedFill("raidz1-0", 0.932, 0.71), PredictedFill("raidz1-1", 0.0, 0.604)),
    special=(PredictedFill("mirror-2\x1b", 0.1, 0.2),),
    estimate="all data alike",
    order="large before small",
)


def test_every_vdev_is_told_before_and_after() -> None:
    assert plan_lines(PLAN)[2:] == [
        "  raidz1-0: 93.2% full now, 71.0% then",
        "  raidz1-1: 0.0% full now, 60.4% then",
        r"  mirror-2\x1b: 10.0% full now, 20.0% then at most (special)",
        "order of files: large before small",
        "3T may be used before the free-space floor",
        "the pool's free space is 12 % fragmented",
    ]


def test_without_a_pool_there_is_room_and_order() -> None:
    assert plan_lines(PlanDocument((), available_bytes=3 << 40, order="large before small")) == [
        "order of files: large before small",
        "3T may be used before the free-space floor",
    ]


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("copy", "in a sample of files, 40 of them opened: 3 open for writing, 1 immutable"),
        ("rewrite", "in a sample of files, 40 of them opened: 1 immutable"),
    ],
)
def test_what_the_opened_files_showed_is_told(engine: str, words: str) -> None:
    sampled = {"opened": 40, "open for writing": 3, "immutable": 1}
    assert sample_words(sampled, engine) == words
    assert sample_words({"opened": 40}, engine) is None


def test_a_plan_tells_of_files_that_are_open_for_writing(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(os.urandom(4096))
    found = plan.places([str(tmp_path)], FactsReader())
    with (tmp_path / "log").open("ab"):
        made = plan.make(Sys(), FactsReader(), found, Settings((), "copy", allow_non_zfs=True))
    assert "1 open for writing" in "\n".join(plan_lines(made.document))


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (104 * MIB, "takes 100M, afterwards about as much (lz4)"),
        (40 * MIB, "takes 100M, afterwards about 40M (lz4)"),
        (0, "takes 100M, afterwards about 0 (lz4)"),
        (None, "takes 100M; afterwards not known: lz4"),
    ],
)
def test_what_files_take_afterwards(after: int | None, said: str) -> None:
    assert size_line(100 * MIB, after, "lz4") == said


def test_off_zfs_there_is_nothing_to_say() -> None:
    assert size_line(100 * MIB, None, None) is None
    assert size_line(0, 0, "lz4") is None
