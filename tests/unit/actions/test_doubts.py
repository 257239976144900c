from __future__ import annotations

from tests.table import rows
from tests.unit.actions.pools import disk, mirror, raidz2, replaced, said
from zconsole.actions.offline import plan_detach, plan_offline
from zconsole.actions.target import doubts
from zconsole.pool.model import ErrorCounters

FAULTED = disk("d01", 1001, "FAULTED")
FAULTY = disk("d02", 1002, errors=ErrorCounters(3, 0, 0))


@rows(
    ("others", "text"),
    [
        ((), "d00 shows no errors"),
        ((FAULTED,), "d00 shows no errors; d01 has failed"),
        ((FAULTED, FAULTY), "d00 shows no errors; d01 has failed; d02 has errors"),
        ((disk("d01", 1001, "REMOVED"), disk("d02", 1002, "FAULTED")), "d01, d02 have failed"),
    ],
)
def test_a_healthy_device_is_doubted_and_those_that_failed_named(others, text):
    (said,) = replaced(raidz2(changes=(disk("d00", 1000), *others))).doubts
    assert said.endswith(text)


@rows("own", [{"state": "FAULTED"}, {"errors": ErrorCounters(1, 0, 0)}])
def test_a_device_with_a_fault_of_its_own_is_not_doubted(own):
    assert not replaced(raidz2(changes=(disk("d00", 1000, **own), FAULTED))).doubts


def test_a_device_known_to_be_faulty_counts_like_one_with_errors():
    (said,) = doubts(raidz2().pool, "1000", ["1003"])
    assert said == "d00 shows no errors; d03 has errors"
    assert not doubts(raidz2().pool, "1003", ["1003"])


TAKES = (plan_offline, lambda s, key: plan_offline(s, key, temporary=True), plan_detach)
"""The actions that reduce redundancy."""


@rows("plan", TAKES)
def test_what_takes_the_last_redundancy_names_what_is_left_and_doubts_a_bad_sibling(plan):
    bad = disk("d01", 1001, errors=ErrorCounters(0, 0, 300))
    found = plan(mirror(changes=(disk("d00", 1000), bad)), "1000")
    assert found.refused is None
    assert found.doubts == ("d00 shows no errors; d01 has errors",)
    assert any("no device may fail" in text for text in found.consequences)
    assert "no redundancy: one more failure loses data; d01 has 300 errors" in said(found)


@rows("plan", TAKES[:2])
def test_errors_of_a_device_that_is_lost_already_are_no_danger(plan):
    lost = disk("d01", 1001, "FAULTED", errors=ErrorCounters(0, 0, 300))
    found = plan(raidz2(changes=(disk("d00", 1000), lost)), "1000")
    assert "one more failure loses data" in said(found)
    assert "300 errors" not in said(found)


@rows("plan", TAKES)
def test_a_device_of_a_healthy_pool_is_taken_off_without_a_doubt(plan):
    found = plan(mirror(), "1000")
    assert not found.doubts
    assert "no redundancy: one more failure loses data" in said(found)
