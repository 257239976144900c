"""Names of running scans in plans."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import MODERN, NEW, at, disk, mirror, pool, raidz2, running, said, top
from zconsole.actions.clear import plan_clear
from zconsole.actions.growth import plan_attach
from zconsole.actions.offline import plan_online
from zconsole.actions.replace import plan_batch, plan_replace
from zconsole.actions.running_scans import progress, will_defer
from zconsole.actions.scrub import plan_resilver
from zconsole.actions.target import Swap
from zconsole.pool.model import Scan


@rows(("stage", "said"), [("scanning", "0.0 %, finding blocks 2.2 %"), ("issuing", "0.0 %")])
def test_how_far_a_scan_is_includes_the_metadata_while_that_is_scanned(stage, said):
    scan = Scan("scrub", "running", stage=stage, percent=0.0, total_bytes=1000, scanned_bytes=22)
    assert progress(scan) == said


FAULTED, WAITING = disk("d00", 1000, "FAULTED"), disk("d00", 1000, unfilled=True)


@rows(
    ("changes", "plan"),
    [
        ((), lambda s: plan_replace(s, Swap("1000", NEW))),
        ((), lambda s: plan_replace(s, Swap("1000", NEW), sequential=True)),
        ((), lambda s: plan_batch(s, (Swap("1000", NEW),))),
        ((), lambda s: plan_attach(s, "1000", NEW)),
        ((disk("d00", 1000, "OFFLINE"),), lambda s: plan_online(s, "1000")),
        ((FAULTED,), lambda s: plan_clear(s, "1000")),
        ((FAULTED,), plan_clear),
        ((WAITING,), plan_resilver),
    ],
)
@rows("function", ["scrub", "errorscrub"])
def test_whatever_begins_a_resilver_names_the_scrub_it_discards(changes, plan, function):
    s = mirror(running(function, 90.0), changes=changes)
    found = plan(s)
    assert found.refused is None
    assert "is discarded at 90.0 %" in said(found)
    assert any("no scan changed since planning" in text for text in found.checks)
    assert "discarded" not in said(plan(mirror(changes=changes)))


def test_clear_ends_no_scan_where_no_device_of_the_pool_returns():
    gone = disk("sp", 1700, "UNAVAIL", vclass="spare")
    off = top("mirror", 0, 2, disk("d00", 1000, "OFFLINE"))
    plan = plan_clear(at(pool(off, scans=(running("scrub", 90.0),), spares=(gone,))))
    assert "discarded" not in said(plan)
    assert not any("no scan changed" in text for text in plan.checks)


@rows("plan", [lambda s: plan_online(s, "1000"), lambda s: plan_clear(s, "1000")])
def test_a_disk_that_comes_back_waits_for_the_resilver_and_gets_only_what_it_missed(plan):
    """ZFS defers it as it does a new one (dsl_scan_assess_vdev); its pass is of what it missed."""
    s = mirror(running("resilver", 81.0), changes=(disk("d00", 1000, "UNAVAIL"),))
    told = said(plan(s))
    assert "resilver running (81.0 %): the device waits for it" in told
    assert "then gets a pass of its own, for what it missed" in told
    early = mirror(running("resilver", 9.0), changes=(disk("d00", 1000, "UNAVAIL"),))
    assert "restarts from 0 to include it (9.0 % lost)" in said(plan(early))


def test_no_scrub_after_the_rebuild_fills_a_disk_where_none_is_wanted():
    s = mirror(running("rebuild", vdev="mirror-1"), changes=(disk("d00", 1000, "OFFLINE"),))
    s = replace(s, facts=replace(s.facts, parameters={"zfs_rebuild_scrub_enabled": 0}))
    assert "by the next scrub: none follows this rebuild" in said(plan_online(s, "1000"))


@rows("vdev", ["mirror-0", "mirror-1"])
@rows("state", ["OFFLINE", "UNAVAIL", "REMOVED"])
def test_a_disk_comes_back_beside_a_rebuild_and_is_filled_after_it(vdev, state):
    """A disk was pulled, ZED started a rebuild to a distributed spare, and the disk is back."""
    s = mirror(running("rebuild", vdev=vdev), changes=(disk("d00", 1000, state),))
    plan = plan_online(s, "1000")
    assert plan.refused is None
    assert "what it missed is resilvered onto it, after the rebuild" in said(plan)


def test_an_expansion_begins_no_resilver_and_ends_no_scrub():
    plan = plan_attach(raidz2(running("scrub", 90.0)), "100", NEW)
    assert plan.refused is None
    assert "discarded" not in said(plan)


@rows(
    ("version", "threshold", "waits"),
    [((2, 2, 7), None, True), ((2, 3, 9), None, None), ((2, 3, 9), 10, False), ((), None, None)],
)
def test_whether_a_device_waits_is_unknown_where_the_release_or_its_threshold_is(
    version, threshold, waits
):
    parameters = {} if threshold is None else {"zfs_resilver_defer_percent": threshold}
    facts = replace(MODERN, version=version, parameters=parameters)
    assert will_defer(facts, 5.0) is waits
