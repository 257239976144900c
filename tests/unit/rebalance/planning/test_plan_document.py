"""A plan is a single object: made by planning, printed as JSON, and read by the console."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.table import rows
from zconsole.rebalance.planning import plan
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.plan_document import (
    PlanDocument,
    plan_lines,
    sample_words,
)
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.system.records import RecordError

PRINTED = (Path(__file__).parents[3] / "fixtures/plans.jsonl").read_text().splitlines()
"""Plans printed before there was a document: of one directory, of two, off ZFS."""


@rows("line", PRINTED)
def test_what_was_printed_is_read_and_printed_again_byte_for_byte(line: str) -> None:
    assert json.dumps(PlanDocument.from_json(json.loads(line)).as_json()) == line


@rows("data", [{}, {**json.loads(PRINTED[0]), "directories": [{"dir": "/"}]}])
def test_what_is_no_plan_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises((KeyError, RecordError)):
        PlanDocument.from_json(data)


@rows(
    ("limits", "size"),
    [(Limits(), 2000), (Limits(until_spread=0.1), 640), (Limits(max_bytes=10), 10)],
)
def test_a_plan_moves_what_its_limits_allow(limits: Limits, size: int) -> None:
    assert PlanDocument.from_json(json.loads(PRINTED[1])).bytes_within(limits) == size


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
