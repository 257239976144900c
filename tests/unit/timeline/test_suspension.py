"""Which devices a suspended pool waits for."""

from __future__ import annotations

from tests.factory import frame, mirror_pool
from tests.records import replace
from zconsole.pool.model import SampleFailure
from zconsole.timeline.suspension import missing_devices

T = 1000.0
HUNG = SampleFailure("tank", T, T, "no answer", kstat="SUSPENDED")


def hung(sda: float | None, sdb: float | None):
    """A pool that does not answer; when each of its disks was seen to leave."""
    base = frame(mirror_pool(), T)
    since = {"sda": sda, "sdb": sdb}
    rows = tuple(r._replace(missing_since=since.get(r.vdev.name)) for r in base.rows)
    return replace(base, rows=rows, failure=HUNG)


def named(shown):
    return [row.vdev.name for row in missing_devices(shown)]


def test_the_disk_that_left_last_suspended_the_pool_not_one_that_is_away_for_long():
    assert named(hung(T - 7200, T - 5)) == ["sdb"]


def test_disks_that_leave_together_are_all_waited_for():
    assert named(hung(T - 20, T - 5)) == ["sda", "sdb"]


def test_nothing_is_named_where_nothing_was_seen_to_leave():
    assert named(hung(None, None)) == []


def test_a_pool_that_moves_waits_for_nothing():
    assert named(replace(hung(None, T - 5), failure=None)) == []


def test_of_a_pool_that_still_answers_all_that_are_away_are_named():
    pool = mirror_pool(state="SUSPENDED")
    top = pool.root.children[0]
    lost = top.children[1]._replace(state="UNAVAIL")
    root = pool.root._replace(children=(top._replace(children=(top.children[0], lost)),))
    assert named(frame(replace(pool, root=root), T)) == ["sdb"]
