"""What a journal says of its job."""

from __future__ import annotations

from zconsole.rebalance.job.job import Floor, JobTerms
from zconsole.rebalance.planning.settings import Limits, Settings


def test_a_floor_is_moved_on_any_filesystem() -> None:
    settings = Settings(("/a", "/b"), limits=Limits(min_free=0.1))
    floors = {"/a": Floor(100, 1000.0), "/b": Floor(30, 300.0)}
    job = JobTerms("j", settings, {}, (), 1.0, floors, None)
    assert job.reserves_at(0.1) == {b"/a": 100, b"/b": 30}
    assert job.reserves_at(0.5) == {b"/a": 500, b"/b": 150}
    assert job.reserves_at(0.0) == {b"/a": 0, b"/b": 0}
