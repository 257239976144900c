"""The keys of a job."""

from __future__ import annotations

from tests.records import replace
from tests.ui.rebalance.samples import JOB
from zconsole.ui.rebalance.job_screen import offered


def test_the_keys_that_do_something_follow_the_state():
    assert offered(JOB) == frozenset("psltf")
    assert offered(replace(JOB, state="paused")) == frozenset("rsltf")
    assert offered(replace(JOB, state="dead")) == frozenset("r")
    assert offered(replace(JOB, state="finished")) == frozenset("r")
    assert offered(replace(JOB, state="finished", failed={})) == frozenset()
    assert offered(replace(JOB, files_total=None, why="counting files")) == frozenset("psltf")
    assert offered(None) == frozenset()
