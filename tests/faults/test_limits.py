"""Limits that change while a portion is under way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import FaultySys, ask, create, run, tree_of
from zconsole.rebalance.engine.journal import Journal, State
from zconsole.rebalance.engine.workplace import JobClocks

MB = 1 << 20


class Operator:
    """Lowers the byte limit once the second copy was begun; every call takes a while."""

    def __init__(self, journal: Path, most: int) -> None:
        self.journal, self.most = journal, most
        self.now = 0.0
        self.begun = 0

    def called(self, number: int, name: str, result: Any) -> None:
        self.now += 0.3
        if name == "open_new" and result is not None:
            self.begun += 1
            if self.begun == 2:
                ask(self.journal, "run", max_bytes=self.most)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(("most", "moved"), [(1, 2), (2 * MB, 2), (2 * MB + 1, 3), (9 * MB, 6)])
def test_a_lowered_byte_limit_does_not_wait_for_the_portion(
    area: Path, most: int, moved: int
) -> None:
    root = tree_of(area, 6, MB)
    create(root, area / "job.db")
    before = {path.name: path.read_bytes() for path in root.iterdir()}
    operator = Operator(area / "job.db", most)
    clocks = JobClocks(monotonic=lambda: operator.now, sleep=operator.sleep)
    shown, summary = run(area / "job.db", FaultySys(after=operator.called), clocks)
    assert [done["outcome"] for done in shown] == ["moved"] * moved
    assert summary["stopped_by"] == ("done" if moved == 6 else "byte limit reached")
    assert {path.name: path.read_bytes() for path in root.iterdir()} == before
    journal = Journal.open(area / "job.db", write=False)
    assert journal.counts().get(State.PENDING, (0, 0)) == (6 - moved, (6 - moved) * MB)
    journal.close()
