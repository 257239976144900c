"""Moving toward a target spread: each look must include everything that earlier files left."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import create, run, tree_of
from tests.unit.rebalance.job.counted import terms_with, watch_of
from zconsole.pool.allocator import Space
from zconsole.rebalance.engine.item import StopJobError
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.workplace import JobClocks
from zconsole.rebalance.job import accounts
from zconsole.rebalance.job.effect import STAYED, BenefitCheck
from zconsole.rebalance.job.holds import Holds, WorkPhase
from zconsole.rebalance.planning import engine_choice
from zconsole.rebalance.planning.engine_choice import Choice
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.settings import Limits


def originals_held(tree: Path) -> int:
    """Return how many files of the tree are open without a name: their blocks are not free."""
    held = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            name = str(descriptor.readlink())
        except FileNotFoundError:
            continue
        held += name.startswith(str(tree)) and name.endswith("(deleted)")
    return held


def test_the_spread_is_looked_at_once_the_originals_are_gone(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree_of(area, 6, 9 << 20)
    held: list[int] = []

    def looked(_: Holds, phase: WorkPhase) -> None:
        if phase is not WorkPhase.COPYING:
            held.append(originals_held(root))

    monkeypatch.setattr(Holds, "_target", looked)
    create(root, area / "job.db", limits=Limits(until_spread=0.05))
    run(area / "job.db")
    assert len(held) > 1
    assert not any(held)


def test_a_job_is_stopped_whose_files_stay_where_they_were(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(tree_of(area, 2, 100), area / "job.db")

    def judged(_: BenefitCheck) -> None:
        raise StopJobError(STAYED)

    monkeypatch.setattr(BenefitCheck, "portion", judged)
    run(area / "job.db")
    with closing(Journal.open(area / "job.db")) as journal:
        status = journal.get("status")
    assert (status["state"], status["why"]) == ("stopped", STAYED)


class Rewriting(Sys):
    """A filesystem that supports rewriting."""

    def rewrite(self, fd: int, offset: int, length: int, flags: int) -> None:
        """Rewrite in no time."""


def test_a_large_file_in_place_is_judged_on_the_way(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree_of(area, 1, 40 << 20)
    monkeypatch.setattr(engine_choice, "choose", lambda *_: Choice("rewrite", "as told"))
    told: list[int] = []
    monkeypatch.setattr(BenefitCheck, "chunk", lambda judge: told.append(judge.accounts.unfinished))
    create(root, area / "job.db")
    _, summary = run(area / "job.db", Rewriting())
    assert summary["files_moved"] == 1
    assert any(0 < size < 40 << 20 for size in told)
    assert [day["files_done"] for day in days(area / "job.db")] == [1]


def days(path: Path) -> list[dict[str, Any]]:
    with closing(Journal.open(path)) as journal:
        return journal.days()


class Pool(FactsReader):
    """A disk on which every look shows one more byte, with counted syncs."""

    looks = syncs = 0

    def listing(self, name: str) -> tuple[tuple[Space, ...], None]:
        Pool.looks += 1
        return (Space("d0", 100, Pool.looks),), None

    def sync(self, pool: str) -> None:
        Pool.syncs += 1


def test_vdevs_of_the_plan_say_nothing_of_a_tree_that_is_on_no_pool_now(area: Path) -> None:
    tree_of(area, 3, 10)
    create(area / "tree", area / "job.db", limits=Limits(until_spread=0.0))
    with closing(Journal.open(area / "job.db")) as journal:
        spaces = [["d0", 100, 90, 1.0], ["d1", 100, 0, 1.0]]
        journal.set("job", journal.get("job") | {"spaces": spaces})
    run(area / "job.db")
    (day,) = days(area / "job.db")
    assert (day["spread"], day["free_bytes"]) == (None, None)


def test_the_last_look_is_told_of_a_job_that_ended(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Space("d0", 100, 0)
    tree_of(area, 3, 10)
    create(area / "tree", area / "job.db")
    with closing(Journal.open(area / "job.db")) as journal:
        journal.set("job", journal.get("job") | {"spaces": [["d0", 100, 0, 1.0]]})
    effect = watch_of(Pool(), terms_with(spaces=(before,)))
    monkeypatch.setattr(accounts, "SpreadWatch", lambda _: effect)
    slow = JobClocks(monotonic=lambda: time.monotonic() + 1000 * Pool.syncs)
    _, summary = run(area / "job.db", clocks=slow)
    assert Pool.syncs == 3
    assert summary["seconds"] < 1000  # nothing moves while it waits for that look
    journal = Journal.open(area / "job.db", write=False)
    assert journal.get("status")["vdevs"] == summary["vdevs"]
    assert [day["free_bytes"] for day in journal.days()] == [100 - Pool.looks]
    journal.close()
    assert summary["vdevs"] == [{"name": "d0", "alloc_before": 0, "alloc_after": Pool.looks}]
