"""Letting reads go around a slow disk."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import FACTS, disk, mirror, raidz2
from zconsole.actions.sit_out import plan_autosit, plan_sit_out
from zconsole.pool.model import SITTING_OUT

V24 = replace(FACTS, version=(2, 4, 4))
SITS = disk("d00", 1000, note=SITTING_OUT)


@rows(
    ("plan", "why"),
    [
        (plan_sit_out(raidz2(), "1000", on=True), "needs OpenZFS 2.4"),
        (plan_sit_out(mirror(facts=V24), "1000", on=True), "only devices of a raidz or dRAID"),
        (plan_sit_out(raidz2(facts=V24), "100", on=True), "raidz2-0 is no single device"),
        (plan_sit_out(raidz2(facts=V24), "1000", on=False), "does not sit out"),
        (plan_sit_out(raidz2(facts=V24, changes=(SITS,)), "1000", on=True), "sits out already"),
        (
            plan_sit_out(
                raidz2(facts=V24, changes=(SITS, disk("d01", 1001, "OFFLINE"))), "1002", on=True
            ),
            "2 other devices of raidz2-0 sit out or are incomplete",
        ),
        (plan_sit_out(raidz2(facts=V24), "77", on=True), "not in the pool"),
        (plan_autosit(mirror(facts=V24), "100", on=True), "only devices of a raidz or dRAID"),
    ],
)
def test_what_cannot_be_is_refused(plan, why):
    assert why in plan.refused


def test_it_has_ended_once_a_sample_shows_it():
    s = raidz2(facts=V24)
    plan = plan_sit_out(s, "1000", on=True)
    assert plan.follow(s) is None
    outcome = plan.follow(raidz2(facts=V24, changes=(SITS,)))
    assert outcome.ok
