"""A plan is a single object: made by planning, printed as JSON, and read by the console."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.table import rows
from zconsole.rebalance.planning import plan
from zconsole.rebalance.planning.engine_choice import Choice
from zconsole.rebalance.planning.facts import Dataset, FactsReader, JobDirectory
from zconsole.rebalance.planning.forecast import LARGE_FIRST, OLD_FIRST, DirectoryPlan
from zconsole.rebalance.planning.plan_document import (
    PlanDocument,
    PredictedFill,
    plan_lines,
    sample_words,
)
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.rebalance.planning.survey import Ages, Ranking, Survey, TreeTotals
from zconsole.system.records import RecordError

PRINTED = (Path(__file__).parents[3] / "fixtures/plans.jsonl").read_text().splitlines()
"""Plans printed before there was a document: of one directory, of two, off ZFS."""


def directory(name: str, engine: str) -> DirectoryPlan:
    found = Survey(
        b"/tank/" + name.encode(),
        Ages(addition=5.0),
        1 << 40,
        files=7,
        bytes=1000,
        allocated=1500,
        largest=400,
        old_allocated=900,
        snapshot_bytes=300,
        skipped=Counter({"special file": 2}),
        sampled=Counter({"opened": 3}),
    )
    best = [(b"media", TreeTotals(2, 60, 50)), (b"vm", TreeTotals(1, 30, 20))]
    found.below = Ranking(_best=best)
    dataset, chosen = Dataset(f"tank/{name}", {}), Choice(engine, "verified copies")
    place = JobDirectory(found.root, "zfs", dataset.name, dataset)
    pinned = {"snapshots": 200, "clones": 0, "checkpoint": 0, "dedup": 0, "block_clones": 0}
    differs = ("copies=2: what is there has another number",)
    return DirectoryPlan(place, found, chosen, 7, 1000, dict(pinned), differs, in_flight=400)


def pooled(*directories: DirectoryPlan) -> PlanDocument:
    return PlanDocument(
        tuple(each.document(1000) for each in directories),
        pool="tank",
        spread_before=0.8,
        spread_after=0.7 - 0.3,
        target_spread=0.05,
        bytes_to_target=640,
        available_bytes=9999,
        fragmentation=0.25,
        scanning="scrub",
        raw_factor=1.25,
        vdevs=(PredictedFill("raidz1-0", 0.9, 0.7), PredictedFill("raidz1-1", 0.1, 0.3)),
        special=(PredictedFill("mirror-2", 0.1, 0.2),),
        estimate="zdb on 3 sampled files",
        order=OLD_FIRST,
        notes=("a scrub is running: the job waits for its end",),
    )


def bare() -> PlanDocument:
    found = Survey(b"/srv/n\xff", Ages(), 1 << 40, files=1, bytes=10, allocated=512, largest=512)
    place = JobDirectory(found.root, "ext4", "/dev/sda1", None)
    pinned = dict.fromkeys(("snapshots", "clones"))
    choice = Choice(None, "not on ZFS but ext4")
    plan = DirectoryPlan(place, found, choice, 1, 10, pinned, in_flight=512)
    return PlanDocument(
        (plan.document(10),),
        available_bytes=100,
        estimate="size",
        order=LARGE_FIRST,
        refused="/srv: not on ZFS",
    )


PLANS = (
    pooled(directory("a", "copy")),
    pooled(directory("a", "copy"), directory("b", "rewrite")),
    bare(),
)


@rows(("plan", "line"), list(zip(PLANS, PRINTED, strict=True)))
def test_the_json_is_that_of_before_byte_for_byte(plan: PlanDocument, line: str) -> None:
    assert json.dumps(plan.as_json()) == line


@rows("plan", PLANS)
def test_what_was_printed_is_read_back_whole(plan: PlanDocument) -> None:
    printed = json.loads(json.dumps(plan.as_json()))
    assert PlanDocument.from_json(printed) == plan


@rows("data", [{}, {**json.loads(PRINTED[0]), "directories": [{"dir": "/"}]}])
def test_what_is_no_plan_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises((KeyError, RecordError)):
        PlanDocument.from_json(data)


@rows(
    ("limits", "size"),
    [(Limits(), 2000), (Limits(until_spread=0.1), 640), (Limits(max_bytes=10), 10)],
)
def test_a_plan_moves_what_its_limits_allow(limits: Limits, size: int) -> None:
    assert PLANS[1].bytes_within(limits) == size


@rows(
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
    found = plan.locate([str(tmp_path)], FactsReader())
    with (tmp_path / "log").open("ab"):
        made = plan.make(FactsReader(), found, Settings((), "copy", allow_non_zfs=True))
    assert "1 open for writing" in "\n".join(plan_lines(made.document))
