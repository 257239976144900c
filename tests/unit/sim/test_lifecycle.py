"""Events when work ends, and when devices fail and come back."""

from __future__ import annotations

import pytest

from tests.table import rows
from tests.worlds import world_of
from zconsole.sim import commands, lifecycle
from zconsole.sim.build import Build
from zconsole.sim.disk import FAULTED, ONLINE, RED_4T
from zconsole.sim.simulation import advance
from zconsole.sim.state import FINISHED, SCRUB, VERSION, Checkpoint
from zconsole.sim.topology import REBUILT, Group

HOUR = 3600.0


def pool_of(kind="raidz2", fill=0.01, version=VERSION):
    """Return a pool of five disks (or a mirror of two), and those disks."""
    make = Build(2, "tank")
    disks = make.leaves(2 if kind == "mirror" else 5, RED_4T)
    top = make.mirror(disks, fill) if kind == "mirror" else make.raidz(2, disks, fill)
    pool = make.pool([top], version=version)
    pool.host.shelf = make.leaves(3, RED_4T)
    return pool, disks


def finish(pool, hours=3.0):
    advance(pool, pool.t + hours * HOUR, 2000)


def names(pool):
    return [event.name for event in pool.events]


def test_events_call_a_device_as_they_are_read_of_zpool():
    """Events of a demo had a device's path after its name."""
    pool, disks = pool_of()
    lifecycle.lose(pool, disks[1], FAULTED)
    (lost,) = [event for event in pool.events if event.name == "statechange"]
    assert lost.vdev in lost.text
    assert lost.vdev == disks[1].name


def test_a_disk_that_comes_back_to_a_suspended_pool_is_called_by_its_name():
    world = world_of("suspended")
    world.advance(3 * HOUR)
    (back,) = [event for event in world.pools[0].events if event.name == "vdev_check"]
    assert back.text == f"{back.vdev} is plugged in again"


def test_a_finished_resilver_detaches_the_old_device():
    pool, disks = pool_of()
    new = pool.host.shelf[0]
    commands.replace(pool, disks[1].path, new.path)
    assert isinstance(pool.tops[0].members[1], Group)
    finish(pool)
    assert pool.scan.state == FINISHED
    assert pool.tops[0].members[1] is new
    assert new.complete
    assert names(pool)[-2:] == ["resilver_finish", "vdev_remove"]


def test_a_scrub_finds_the_damaged_files_again():
    """It ended with "errors 0" next to three damaged files, and would have cleared them."""
    pool, _ = pool_of()
    pool.data_errors = 3.0
    commands.scrub(pool)
    finish(pool)
    assert (pool.scan.state, pool.scan.errors) == (FINISHED, 3)
    assert "scrub finished with 3 errors" in [event.text for event in pool.events]


@rows("holds", ["a checkpoint", "errors"])
def test_a_finished_resilver_is_held_back(holds):
    pool, disks = pool_of()
    commands.replace(pool, disks[1].path, pool.host.shelf[0].path)
    if holds == "errors":
        pool.scan.errors = 2
    else:
        pool.checkpoint = Checkpoint(0.0, 1e9)
    finish(pool)
    assert pool.scan.state == FINISHED
    assert isinstance(pool.tops[0].members[1], Group)
    assert "resilver_finish" not in names(pool)


@rows("without", ["feature", "tunable"])
def test_without_deferral_a_second_replacement_restarts_at_any_time(without):
    pool, disks = pool_of(fill=0.05)
    if without == "feature":
        pool.resilver_defer = False
    else:
        pool.tunables["zfs_resilver_disable_defer"] = 1
    commands.replace(pool, disks[0].path, pool.host.shelf[0].path)
    advance(pool, 0.35 * HOUR, 400)
    assert pool.scan.issued > 0.1 * pool.scan.total
    commands.replace(pool, disks[1].path, pool.host.shelf[0].path)
    assert pool.scan.start == pool.now
    assert "history_event" in names(pool)


@pytest.mark.slow
def test_a_second_replacement_waits_for_a_pass_of_its_own():
    pool, disks = pool_of(fill=0.05)
    first, second = pool.host.shelf[:2]
    commands.replace(pool, disks[0].path, first.path)
    advance(pool, 0.35 * HOUR, 400)
    assert pool.scan.issued > 0.1 * pool.scan.total
    started = pool.scan.start
    commands.replace(pool, disks[1].path, second.path)
    assert second.deferred
    assert pool.scan.start == started
    finish(pool)
    assert pool.tops[0].members[:2] == [first, second]
    assert names(pool).count("resilver_start") == 2
    assert "history_event" not in names(pool)


def test_an_early_second_replacement_restarts_the_resilver():
    pool, disks = pool_of(fill=0.05)
    commands.replace(pool, disks[0].path, pool.host.shelf[0].path)
    advance(pool, 60.0)
    commands.replace(pool, disks[1].path, pool.host.shelf[0].path)
    assert pool.scan.start == pytest.approx(60.0)
    assert len(pool.scan.targets) == 2
    assert "history_event" in names(pool)


@rows(
    ("hours", "version", "knobs", "feature", "waits"),
    [
        (0.4, "2.3.9", {}, True, True),
        (0.4, "2.1.15", {}, True, True),
        (0.001, "2.1.15", {}, True, True),
        (0.001, "2.3.9", {}, True, False),
        (0.4, "2.3.9", {"zfs_resilver_defer_percent": 100}, True, False),
        (0.4, "2.2.9", {"zfs_resilver_disable_defer": 1}, True, False),
        (0.4, "2.3.9", {}, False, False),
    ],
)
@pytest.mark.slow
def test_a_disk_that_comes_back_waits_for_the_resilver_as_one_that_is_attached_does(
    hours, version, knobs, feature, waits
):
    """The plan said that it waits, and the demo began again: 81 % were lost."""
    pool, disks = pool_of(fill=0.05, version=version)
    pool.resilver_defer = feature
    commands.replace(pool, disks[0].path, pool.host.shelf[0].path)
    advance(pool, hours * HOUR, 400)
    begun, issued = pool.scan.start, pool.scan.issued
    pool.tunables.update(knobs)
    lifecycle.lose(pool, disks[3])
    advance(pool, pool.t + 1.0)
    assert not pool.suspended
    lifecycle.come_back(pool, disks[3], 0.01)
    assert disks[3].deferred is waits
    assert (disks[3] in pool.scan.targets) is not waits
    assert (pool.scan.start == begun and pool.scan.issued >= issued) is waits
    finish(pool)
    assert disks[3].complete
    assert not disks[3].deferred


@pytest.mark.slow
@rows("scrubs", [0, 1])
def test_a_disk_that_comes_back_during_a_rebuild_is_filled_by_the_scrub_after_it(scrubs):
    pool, disks = pool_of("mirror", fill=0.05)
    commands.attach(pool, disks[0].path, pool.host.shelf[0].path)
    finish(pool)
    pool.tunables["zfs_rebuild_scrub_enabled"] = scrubs
    commands.replace(pool, disks[1].path, pool.host.shelf[0].path, sequential=True)
    lifecycle.lose(pool, disks[0])
    before = pool.scan
    lifecycle.come_back(pool, disks[0], 0.01)
    assert pool.scan is before, "ZFS begins no resilver during a rebuild"
    finish(pool)
    assert disks[0].complete is bool(scrubs)


def test_losing_more_than_parity_suspends_and_clear_resumes():
    pool, disks = pool_of()
    for disk in disks[:3]:
        lifecycle.lose(pool, disk)
    assert pool.suspended
    at = pool.txg
    advance(pool, pool.t + 60.0)
    assert pool.txg == at
    with pytest.raises(commands.CommandError, match="I/O error"):
        commands.clear(pool)
    assert pool.suspended
    for disk in disks[:3]:
        disk.present = True
    commands.clear(pool)
    assert not pool.suspended
    assert all(disk.state == ONLINE for disk in disks)


def test_a_rebuild_is_followed_by_a_scrub():
    pool, disks = pool_of("mirror", fill=0.02)
    new = pool.host.shelf[0]
    commands.replace(pool, disks[0].path, new.path, sequential=True)
    assert pool.scan is None
    advance(pool, 0.1 * HOUR, 200)
    current = pool.tops[0].rebuild
    assert 0 < current.rebuilt < current.estimate
    assert new.rebuild_processed == pytest.approx(current.rebuilt)
    finish(pool)
    assert current.state == REBUILT
    assert pool.tops[0].members[0] is new
    assert pool.scan.function == SCRUB


def test_a_second_sequential_replacement_starts_that_rebuild_over():
    pool, disks = pool_of("mirror", fill=0.1)
    commands.replace(pool, disks[0].path, pool.host.shelf[0].path, sequential=True)
    advance(pool, 0.2 * HOUR, 200)
    assert pool.tops[0].rebuild.scanned > 0
    commands.replace(pool, disks[1].path, pool.host.shelf[0].path, sequential=True)
    assert pool.tops[0].rebuild.scanned == 0
    assert len(pool.tops[0].rebuild.targets) == 2


def with_spare():
    pool, disks = pool_of()
    spare = pool.host.shelf.pop()
    pool.spares = [spare]
    lifecycle.lose(pool, disks[2], FAULTED, 11)
    commands.replace(pool, disks[2].path, spare.path)
    finish(pool)
    assert pool.tops[0].members[2].kind == "spare"
    return pool, disks, spare


def test_a_spare_stays_for_good_when_the_failed_disk_is_detached():
    pool, disks, spare = with_spare()
    commands.detach(pool, disks[2].path)
    assert pool.tops[0].members[2] is spare
    assert pool.spares == []


@pytest.mark.slow
def test_a_spare_goes_back_when_the_failed_disk_has_been_replaced():
    pool, disks, spare = with_spare()
    new = pool.host.shelf[0]
    commands.replace(pool, disks[2].path, new.path)
    finish(pool)
    assert pool.tops[0].members[2] is new
    assert pool.spares == [spare]
    assert commands.locate(pool, spare.path) is None


def test_a_vdev_expands_once_all_its_disks_are_larger():
    from zconsole.sim.disk import RED_8T

    make = Build(4, "tank")
    disks = [*make.leaves(2, RED_8T), make.leaf(RED_4T)]
    pool = make.pool([make.raidz(1, disks, 0.01)])
    pool.host.shelf = [make.leaf(RED_8T)]
    before = pool.tops[0].space
    commands.online(pool, disks[0].path, expand=True)
    assert pool.tops[0].space == before
    commands.replace(pool, disks[2].path, pool.host.shelf[0].path)
    advance(pool, 3 * HOUR, 2000)
    commands.online(pool, disks[0].path, expand=True)
    assert pool.tops[0].space == pytest.approx(2 * before, rel=0.01)
