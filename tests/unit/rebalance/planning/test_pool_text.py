"""What the text of a plan says of the pool and of the files that were opened for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.planning import plan
from zconsole.rebalance.planning.engine_choice import EngineRequest
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.plan_model import Goal
from zconsole.rebalance.planning.plan_text import plan_lines
from zconsole.rebalance.planning.pool_text import looked_words, pool_lines

PLAN: dict[str, Any] = {
    "vdevs": [
        {"name": "raidz1-0", "fill_before": 0.932, "fill_after": 0.71},
        {"name": "raidz1-1", "fill_before": 0.0, "fill_after": 0.604},
    ],
    "special": [{"name": "mirror-2\x1b", "fill_before": 0.1, "fill_after": 0.2}],
    "available_bytes": 3 << 40,
    "fragmentation": 0.12,
    "order": "large before small",
}


def test_every_vdev_is_told_before_and_after() -> None:
    assert list(pool_lines(PLAN)) == [
        "  raidz1-0: 93.2% full now, 71.0% then",
        "  raidz1-1: 0.0% full now, 60.4% then",
        r"  mirror-2\x1b: 10.0% full now, 20.0% then at most (special)",
        "3T may be used before the free-space floor; free space is 12% fragmented",
        "order of files: large before small",
    ]


def test_without_a_pool_there_is_room_and_order() -> None:
    bare = PLAN | {"vdevs": None, "special": None, "fragmentation": None}
    assert list(pool_lines(bare)) == [
        "3T may be used before the free-space floor",
        "order of files: large before small",
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
    assert looked_words(sampled, engine) == words
    assert looked_words({"opened": 40}, engine) is None


def test_a_plan_tells_of_files_that_are_open_for_writing(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(os.urandom(4096))
    found = plan.places([str(tmp_path)], FactsReader())
    with (tmp_path / "log").open("ab"):
        made = plan.make(
            Sys(), FactsReader(), found, EngineRequest("copy", allow_non_zfs=True), Goal()
        )
    assert "1 open for writing" in "\n".join(plan_lines(made.as_json()))
