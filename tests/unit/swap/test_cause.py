"""Whether cable or disk is the likely cause, and what is advised first."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import disk
from tests.unit.swap.test_choice import DISKS, KEY, chosen, device, view
from zconsole.actions.target import find
from zconsole.diagnosis.device_errors.faults import Deltas, DeviceFault, SmartCounts
from zconsole.pool.model import ErrorCounters, Vdev
from zconsole.swap.choice import cause_of, explained
from zconsole.swap.several import SwapOrder, together

FREE = (device("n1"), device("n2"))


def with_errors(read: int = 0, cksum: int = 0, state: str = "ONLINE") -> Vdev:
    return disk("d00", 1000, state)._replace(errors=ErrorCounters(read, 0, cksum))


@rows(
    ("leaf", "smart", "cause"),
    [
        (with_errors(cksum=40), {}, "cable"),
        (with_errors(read=40), {}, "disk"),
        (with_errors(cksum=40), {DISKS[0].path: SmartCounts(pending=3)}, "disk"),
        (with_errors(cksum=40, state="FAULTED"), {}, "unclear"),
        (
            with_errors(cksum=40, state="FAULTED"),
            {DISKS[0].path: SmartCounts(reallocated=635, pending=79, crc=0)},
            "disk",
        ),
        (with_errors(), {}, "unclear"),
    ],
)
def test_errors_that_nobody_watched_are_judged_by_their_kind(leaf, smart, cause):
    v = replace(view(leaf), smart=smart)
    target = find(v.situation.pool, KEY)
    assert target is not None
    assert cause_of(v, target) == cause


def test_what_smart_counts_tells_the_cause_that_watching_left_unclear():
    fault = DeviceFault(KEY, "d00", Deltas(), 1.0, cause="unclear")
    failed = view(with_errors(state="FAULTED"))
    smart = {DISKS[0].path: SmartCounts(passed=True, reallocated=635, pending=79, crc=0)}
    for counts, cause in ((smart, "disk"), ({}, "unclear")):
        v = replace(failed, faults=(fault,), smart=counts)
        target = find(v.situation.pool, KEY)
        assert target is not None
        assert cause_of(v, target) == cause


def test_the_cable_is_to_be_checked_before_all_else_where_it_is_the_likely_cause():
    fault = DeviceFault(KEY, "d00", Deltas(cksum=9), 1.0, cause="cable")
    heading, lines = next(iter(explained(chosen(replace(view(), faults=(fault,)))).items()))
    assert heading == "First"
    assert lines == [
        "Likely cable, port or power: check the cable and port, then clear the errors"
        " (zpool clear tank d00); replace it if they come back",
    ]
    assert next(iter(explained(chosen(view(with_errors(read=40)))))) == "Swap d00 (serial S-d00)"


def test_replacing_all_at_once_is_advised_against_where_a_cable_may_be_bad():
    def order(**errors: int) -> SwapOrder:
        v = view(with_errors(**errors), disks=(*DISKS, *FREE))
        return together(v, [*filter(None, map(v.target, (KEY, "1001")))], {})

    assert order(cksum=40).doubtful
    assert order(cksum=40).text[0].startswith("not advised: d00: likely cable, port or power")
    assert not order(read=40).doubtful
