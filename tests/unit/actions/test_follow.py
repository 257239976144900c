"""Detecting how an action has ended."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import MODERN, NEW, at, disk, group, pool, raidz2, running, top
from zconsole.actions.clear import plan_clear
from zconsole.actions.follow import onlined, scan_ended
from zconsole.actions.growth import plan_attach
from zconsole.actions.offline import plan_online
from zconsole.actions.plan import ActionOutcome, Situation
from zconsole.actions.replace import plan_replace
from zconsole.actions.target import Swap
from zconsole.pool.model import Activity, ErrorCounters, Scan

AWAY = raidz2(changes=(disk("d00", 1000, "OFFLINE"),))


def ends(s: Situation) -> ActionOutcome | None:
    return onlined(AWAY, "1000", "d00")(s)


def test_a_device_that_is_still_out_is_not_online_yet():
    assert ends(AWAY) is None


@rows(
    ("s", "said"),
    [
        (raidz2(), "what it missed, if anything, begins now"),
        (raidz2(running("resilver", start=1001.0, percent=0.0)), "its resilver has begun"),
        (raidz2(running("resilver", state="finished", start=10.0, end=20.0)), "begins now"),
        (raidz2(running("rebuild", vdev="mirror-1")), "its resilver follows the rebuild"),
    ],
)
def test_a_device_put_online_is_not_called_complete_before_its_resilver_ended(s, said):
    end = ends(s)
    assert end.ok
    assert said in end.text
    assert "pull no disk before it ends" in end.text
    assert "complete" not in end.text


def test_a_device_put_online_is_complete_once_its_resilver_has_ended():
    end = ends(raidz2(running("resilver", state="finished", start=1001.0, end=1002.0)))
    assert end == ActionOutcome(True, "d00 is online and complete")


@rows("state", ["FAULTED", "DEGRADED"])
@rows("plan", [plan_online, lambda s, key: plan_online(s, key, reopen=True)])
def test_a_device_that_zfs_gave_up_is_told_to_be_cleared(state, plan):
    """ZFS accepts it but "remains in faulted state … use zpool clear": only that helps."""
    given_up = raidz2(changes=(disk("d00", 1000, state),))
    assert "clear its errors" in plan_online(given_up, "1000").refused
    ends = plan(AWAY, "1000").follow
    end = ends(given_up)
    assert not end.ok
    assert "clear its errors" in end.text


def test_a_device_that_left_the_pool_is_not_online():
    end = onlined(AWAY, "7", "d00")(AWAY)
    assert not end.ok


# Success is reported only if the device's state, errors and resilver were checked.

ENDED = {"state": "finished", "start": 1001.0, "end": 1100.0}
NEWCOMER = replace(disk("new", 77), path=f"{NEW}-part1")
MIRROR = at(pool(top("mirror", 0, 2, disk("d00", 1000, "FAULTED"))))


def later(*tops, scan=None, t=2000.0, **fields):
    found = pool(*tops, scans=(scan,) if scan else (), **fields)
    return Situation(found, MODERN, t=t)


def of_replace(new, scan):
    """Return how a replace of d00 is reported to have ended, once d00 has left the pool."""
    plan = plan_replace(MIRROR, Swap("1000", NEW))
    return plan.follow(later(top("mirror", 0, 2, new), scan=scan))


def of_attach(new, scan):
    before = at(pool(top("mirror", 0, 2)))
    plan = plan_attach(before, "1000", NEW)
    return plan.follow(later(top("mirror", 0, 3, disk("d00", 1000), new), scan=scan))


def of_online(new, scan):
    before = at(pool(top("mirror", 0, 2, replace(NEWCOMER, state="OFFLINE"))))
    return onlined(before, "77", "new")(later(top("mirror", 0, 2, new), scan=scan))


BAD_ENDS = [
    (NEWCOMER, running("resilver", **ENDED, errors=406), "406 errors"),
    (NEWCOMER, running("rebuild", **ENDED, errors=1), "1 error"),
    (NEWCOMER, running("resilver", **ENDED | {"state": "canceled"}), "canceled"),
    (
        replace(NEWCOMER, errors=ErrorCounters(0, 0, 812)),
        running("resilver", **ENDED),
        "812 errors",
    ),
    (
        replace(NEWCOMER, errors=ErrorCounters(0, 3, 0)),
        running("resilver", **ENDED, errors=0),
        "3 errors",
    ),
]


@rows("told", [of_replace, of_attach, of_online])
@rows(("new", "scan", "said"), BAD_ENDS)
def test_no_success_is_told_of_a_resilver_or_device_with_errors(told, new, scan, said):
    end = told(new, scan)
    assert not end.ok
    assert said in end.text
    assert "complete" not in end.text


@rows("told", [of_replace, of_attach, of_online])
def test_success_is_told_of_a_resilver_without_errors(told):
    end = told(NEWCOMER, running("resilver", **ENDED, errors=0))
    assert end.ok
    assert end.text.endswith("and complete")


@rows("told", [of_replace, of_attach])
def test_a_resilver_that_a_scrub_hides_is_not_called_a_success(told):
    assert told(NEWCOMER, None) is None
    end = told(NEWCOMER, running("scrub", start=1200.0))
    assert not end.ok
    assert "not seen" in end.text


def test_a_spare_filled_with_errors_is_told():
    plan = plan_replace(MIRROR, Swap("1000", NEW))
    pair = group("spare", disk("d00", 1000, "FAULTED"), NEWCOMER)
    end = plan.follow(later(top("mirror", 0, 2, pair), scan=running("resilver", **ENDED, errors=2)))
    assert not end.ok
    assert "2 errors" in end.text


@rows(
    ("new", "ok"),
    [(NEWCOMER, True), (replace(NEWCOMER, errors=ErrorCounters(0, 0, 7)), False)],
)
def test_an_expansion_is_judged_by_the_errors_of_the_new_device(new, ok):
    before = at(pool(top("raidz1", 0, 3)), MODERN)
    follow = plan_attach(before, "100", NEW).follow
    wide = top("raidz1", 0, 4, new)
    assert follow(later(wide, activities=(Activity("expansion", "running"),))) is None
    end = follow(later(wide, activities=(Activity("expansion", "finished"),)))
    assert end.ok == ok


@rows("known", [(), (running("scrub", state="finished", start=900.0, end=990.0),)])
def test_an_older_scan_that_a_rewound_pool_has_is_not_the_one_that_was_begun(known):
    ends = scan_ended(at(pool(top("mirror", 0, 2), scans=known)), "scrub")
    older = running("scrub", state="finished", start=100.0, end=200.0, errors=0)
    assert ends(later(top("mirror", 0, 2), scan=older)) is None
    own = running("scrub", **ENDED, errors=0)
    assert ends(later(top("mirror", 0, 2), scan=own)) == ActionOutcome(
        True, "the scrub of tank finished with 0 errors"
    )


def told(function: str, end: float, seconds: float) -> Scan:
    """Return a finished scan as text shows it: with its duration, but not its start."""
    return Scan(function, "finished", end=end, duration=seconds, errors=0)


@rows("before", [(), (told("scrub", 990.0, 60.0),), (running("scrub", start=900.0),)])
def test_a_scrub_that_text_tells_has_ended_if_it_is_another_than_before(before):
    ends = scan_ended(at(pool(top("mirror", 0, 2), scans=before)), "scrub")
    assert all(ends(later(top("mirror", 0, 2), scan=one)) is None for one in before)
    end = ends(later(top("mirror", 0, 2), scan=told("scrub", 1100.0, 60.0)))
    assert end == ActionOutcome(True, "the scrub of tank finished with 0 errors")


@rows("of_action", [of_replace, of_attach, of_online])
def test_a_resilver_that_text_tells_is_the_one_of_the_action(of_action):
    end = of_action(NEWCOMER, told("resilver", 1300.0, 200.0))
    assert end.text.endswith("and complete")


def test_a_resilver_that_ran_before_the_action_is_not_that_of_the_action():
    ran = running("resilver", start=900.0)
    ends = onlined(raidz2(ran, changes=(disk("d00", 1000, "OFFLINE"),)), "1000", "d00")
    end = ends(raidz2(told("resilver", 1020.0, 120.0)))
    assert "begins now" in end.text


@rows("function", ["scrub", "errorscrub"])
@rows(
    ("resilver", "discarded"),
    [
        (running("resilver", start=1001.0), True),
        (running("resilver", start=None), True),
        (running("resilver", **ENDED), True),
        (running("resilver", state="finished", start=100.0, end=200.0), False),
        (told("resilver", 1300.0, 200.0), True),
    ],
)
def test_a_scrub_is_over_once_a_resilver_has_discarded_it(function, resilver, discarded):
    """Otherwise it would be followed forever, or a later scrub would be reported as this one."""
    ends = scan_ended(at(pool(top("mirror", 0, 2))), function)
    end = ends(later(top("mirror", 0, 2), scan=resilver))
    assert (end is not None) == discarded
    assert end is None or (not end.ok and "a resilver has discarded" in end.text)


def test_a_resilver_that_ended_before_the_scrub_began_discards_nothing():
    known = running("resilver", state="finished", start=900.0, end=1000.0)
    ends = scan_ended(at(pool(top("mirror", 0, 2), scans=(known,))), "scrub")
    assert ends(later(top("mirror", 0, 2), scan=known)) is None


def test_the_resilver_that_was_begun_discards_not_itself():
    ends = scan_ended(at(pool(top("mirror", 0, 2))), "resilver")
    assert ends(later(top("mirror", 0, 2), scan=running("resilver", start=1001.0))) is None


@rows(
    ("suspended", "said"),
    [
        (True, "tank answers again, and the counters of tank are cleared"),
        (False, "the counters of tank are cleared"),
    ],
)
def test_the_end_of_a_resume_says_that_the_pool_answers_again(suspended, said):
    plan = plan_clear(replace(raidz2(), suspended=suspended))
    assert plan.follow is not None
    assert plan.follow(replace(raidz2(), suspended=True)) is None
    assert plan.follow(raidz2()) == ActionOutcome(True, said, passes=True)
