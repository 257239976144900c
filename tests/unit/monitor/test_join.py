from __future__ import annotations

from tests.factory import frame, mirror_pool
from tests.records import replace
from zconsole.diagnosis.device_errors.faults import Deltas, DeviceFault
from zconsole.eta import Estimate
from zconsole.history.views import ActivityView
from zconsole.monitor.join import NO_EXTRAS, Extras, joined
from zconsole.pool.model import Activity, Event

JOB = ActivityView(Activity("rebalance", "running"), None, Estimate(None, None, None, "new"))
FAULT = DeviceFault("11", "sda", Deltas(read=3), 990.0, 0, 0, "unclear", "3 read errors")


def event(t: float) -> Event:
    return Event(t, "console", f"at {t}")


def test_what_comes_from_several_sides_is_put_together_in_order():
    seen = frame(mirror_pool(), events=(event(10), event(30)), flags=("DEMO",), troubles=(FAULT,))
    judged = replace(FAULT, text="3 read errors; its cable, it seems")
    full = joined(
        seen,
        Extras(troubles=(judged,)),
        Extras(events=(event(20),)),
        Extras(activities=(JOB,), flags=("REBALANCE",)),
    )
    assert [e.t for e in full.events] == [10, 20, 30]
    assert full.activities == (JOB,)
    assert (full.flags, full.troubles) == (("DEMO", "REBALANCE"), (judged,))
    assert full.sample is seen.sample


def test_a_frame_with_nothing_to_add_is_the_same():
    seen = frame(mirror_pool(), events=(event(30), event(10)))
    assert joined(seen, NO_EXTRAS, Extras()) is seen
