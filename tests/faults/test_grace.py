"""An original is removed no sooner than GRACE after its copy took its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import FaultySys, create, run, tree_of
from zconsole.rebalance.engine.swap import GRACE
from zconsole.rebalance.engine.workplace import JobClocks

A_CALL = 0.001
"""Seconds that every system call takes here."""


class Time:
    """A clock that only system calls and sleeps advance."""

    def __init__(self) -> None:
        self.now = 0.0
        self.replaced: list[float] = []
        self.removed: list[float] = []

    def called(self, number: int, name: str, result: Any) -> None:
        self.now += A_CALL
        if name == "exchange":
            self.replaced.append(self.now)
        elif name == "unlink":
            self.removed.append(self.now)

    def sleep(self, seconds: float) -> None:
        assert 0 < seconds <= GRACE
        self.now += seconds


@pytest.mark.parametrize("files", [1, 60], ids=["one", "many"])
def test_every_original_outlives_its_replacement_by_the_grace(area: Path, files: int) -> None:
    tree_of(area, files, 10)
    create(area / "tree", area / "job.db")
    time = Time()
    clocks = JobClocks(monotonic=lambda: time.now, sleep=time.sleep)
    run(area / "job.db", FaultySys(after=time.called), clocks)
    waits = [b - a for a, b in zip(time.replaced, time.removed, strict=True)]
    assert len(waits) == files
    assert min(waits) >= GRACE
