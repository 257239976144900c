"""What a journal says of its job."""

from __future__ import annotations

from zconsole.rebalance.job.job import Floor, Job
from zconsole.rebalance.job.job import floors as read_floors
from zconsole.rebalance.planning.settings import Limits, Settings


def test_a_floor_is_moved_on_any_filesystem() -> None:
    settings = Settings(("/a", "/b"), limits=Limits(min_free=0.1))
    floors = {"/a": Floor(100, 1000.0), "/b": Floor(30, 300.0)}
    job = Job("j", settings, {}, (), 1.0, floors, None)
    assert job.reserves_at(0.1) == {b"/a": 100, b"/b": 30}
    assert job.reserves_at(0.5) == {b"/a": 500, b"/b": 150}
    assert job.reserves_at(0.0) == {b"/a": 0, b"/b": 0}


def test_a_journal_of_before_has_the_floor_of_its_first_directory() -> None:
    data = {"settings": {"dirs": ["/a", "/b"]}, "reserve": 7, "raw_factor": 2.0,
            "spaces": [["v", 100, 5, 1]]}  # fmt: skip
    assert read_floors(data) == {"/a": Floor(7, 50.0)}
