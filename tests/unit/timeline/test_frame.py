from __future__ import annotations

from tests.factory import frame, mirror_pool
from tests.records import replace
from zconsole.pool.model import Activity, Event
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.views import ActivityView

JOB = ActivityView(Activity("rebalance", "running"), None, Estimate(None, None, None, "new"))


def event(t: float) -> Event:
    return Event(t, "console", f"at {t}")


def test_what_was_done_from_consoles_joins_in_order_and_a_job_at_work_has_a_flag():
    seen = frame(mirror_pool(), events=(event(10), event(30)), flags=("DEMO",))
    full = seen.joined((event(20),), (JOB,))
    assert [e.t for e in full.events] == [10, 20, 30]
    assert (full.activities, full.flags) == ((JOB,), ("DEMO", "REBALANCE"))
    assert full.sample is seen.sample


def test_an_interrupted_job_has_a_line_and_no_flag():
    job = JOB._replace(activity=replace(JOB.activity, state="interrupted"))
    seen = frame(mirror_pool(), events=(event(30), event(10)))
    full = seen.joined((), (job,))
    assert (full.activities, full.flags, full.events) == ((job,), (), seen.events)


def test_a_frame_with_nothing_to_add_is_the_same():
    seen = frame(mirror_pool(), events=(event(30), event(10)))
    assert seen.joined((), ()) is seen
