from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.table import rows
from zconsole.pool.allocator import Space
from zconsole.rebalance.engine.directories import DirectoryRow
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.job.creation import WalkSink
from zconsole.rebalance.planning import forecast
from zconsole.rebalance.planning.engine_choice import Choice
from zconsole.rebalance.planning.facts import Dataset, JobDirectory, PoolFacts
from zconsole.rebalance.planning.plan_model import DirectoryPlan
from zconsole.rebalance.planning.settings import Limits
from zconsole.rebalance.planning.survey import Ages, Survey
from zconsole.rebalance.planning.walk import Portion

SPACES = (Space("mirror-0", 1000, 900), Space("mirror-1", 1000, 100))


def measured(**figures: Any) -> DirectoryPlan:
    found = Survey(b"/tank", Ages(), 1 << 40, allocated=100, **figures)
    place = JobDirectory(b"/tank", "zfs", "tank", None)
    return DirectoryPlan(place, found, Choice("copy", ""), 1, 100)


def status_of(size: int, ctime: int) -> os.stat_result:
    return os.stat_result((0o100644, 7, 1, 1, 0, 0, size, ctime, ctime, ctime))


def test_without_zdb_the_age_of_files_tells_where_they_lie() -> None:
    pool = PoolFacts("tank", {}, SPACES, (2, 3, 9), added=50)
    shares, estimate = forecast.source([measured(old_allocated=100)], pool, [{}])
    assert shares == pytest.approx([1, 0])
    assert estimate == "age: 100% older than the newest vdev"


def test_without_a_history_all_data_is_alike() -> None:
    pool = PoolFacts("tank", {}, SPACES, (2, 3, 9))
    assert forecast.source([measured()], pool, [{}]) == (None, "assumes uniform data")


@rows(
    ("small", "record", "limit"),
    [("0", "131072", 0), ("4096", "131072", 4096), ("131072", "131072", float("inf"))],
)
def test_what_belongs_on_special_vdevs(small: str, record: str, limit: float) -> None:
    dataset = Dataset("tank", {"special_small_blocks": small, "recordsize": record})
    assert forecast.special_limit(dataset) == limit


def test_small_blocks_fill_the_special_vdevs_at_most_so_far() -> None:
    special = (Space("mirror-2", 200, 20), Space("mirror-3", 200, 180))
    pool = PoolFacts("tank", {}, SPACES, (2, 3, 9), special=special)
    after = forecast.special([measured(special_allocated=100)], pool)
    assert [round(space.alloc) for space in after] == [110, 190]
    notes = forecast.special_notes(forecast.fills(special, after))
    assert notes[0] == "special vdev mirror-2: 10% full, at most 55% afterwards"
    assert "normal vdevs" in notes[-1]


def test_old_files_go_first_then_large_ones(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "journal")
    files = [
        (b"new-large", status_of(1 << 20, 60)),
        (b"old-small", status_of(1 << 10, 40)),
        (b"new-small", status_of(1 << 10, 60)),
        (b"old-large", status_of(1 << 20, 40)),
    ]
    portion = Portion(DirectoryRow(1, None, b"/tank", 1, 1), -1, files)
    sink = WalkSink(journal)
    sink(portion, Ages(addition=50))
    sink.flush()
    journal.finish_walk(split_links=False)
    names = [row.name for _, row in journal.todo((-1, -1, -1), 10)]
    journal.close()
    assert names == [b"old-large", b"old-small", b"new-large", b"new-small"]


def test_a_new_dataset_of_the_same_name_is_another_filesystem() -> None:
    one, two, again = (
        JobDirectory(b"/tank", "zfs", "tank", Dataset("tank", {"guid": guid})).key for guid in "121"
    )
    assert one != two
    assert one == again


def test_what_is_kept_free_is_all_that_may_not_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimpleNamespace(f_bavail=600, f_blocks=1000, f_frsize=10)
    monkeypatch.setattr(os, "statvfs", lambda path: disk)
    assert forecast.room_in(b"/", None, Limits()) == (6000, (0, 10_000))
    assert forecast.room_in(b"/", None, Limits(min_free=0.2)) == (4000, (2000, 10_000))
    assert forecast.room_in(b"/", None, Limits(min_free=0.9)) == (0, (6000, 10_000))
    sizes = {"free": "3000", "size": "5000"}
    pool = PoolFacts("tank", sizes, (Space("d0", 5000, 2000),), (2, 3, 9))
    assert forecast.room_in(b"/", pool, Limits(min_free=0.1)) == (2500, (3500, 5000.0))
