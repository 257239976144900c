"""Verdicts on recorded scans of real OpenZFS."""

from __future__ import annotations

import json
from pathlib import Path

from tests.table import rows
from zconsole.timeline.session import Session

FIXTURES = Path(__file__).parents[3] / "fixtures" / "limits"


def frames(name, source):
    session = Session()
    lines = (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [session.advance([{**json.loads(line), "source": source}])[0] for line in lines]


@rows("source", ["libzfs", "replay"])
def test_a_scrub_at_its_memory_limit(source):
    """It walks for a second or two, then issues for seven; its disks are busy only at times.

    OpenZFS 2.4.4, 80000 blocks of 512 bytes on disks of 40 requests a second, strict memory limit.
    """
    found = [frame.limit for frame in frames("memory-turns", source)]
    judged = [limit for limit in found if limit.figures]
    assert len(judged) > 20
    assert {limit.cause for limit in judged} == {"memory"}
    assert judged[-1].figures["turns"] > 8
    assert "nothing to tune" in judged[-1].suggestion.text


def test_the_stage_shown_is_the_one_at_work():
    stages = [frame.scan.stage for frame in frames("memory-turns", "libzfs")]
    assert {"scanning", "issuing"} == set(stages[1:])
    assert {frame.scan.stage for frame in frames("memory-turns", "replay")} == {"scanning"}
