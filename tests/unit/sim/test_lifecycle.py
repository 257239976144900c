"""What happens when work ends, devices fail and come back."""

from __future__ import annotations

import pytest

from zconsole.sim import commands, lifecycle, rebuild
from zconsole.sim.build import Build
from zconsole.sim.disk import FAULTED, ONLINE
from zconsole.sim.models import RED_4T
from zconsole.sim.simulation import PoolSimulation
from zconsole.sim.state import FINISHED, SCRUB, Checkpoint, Group

HOUR = 3600.0


def pool_of(kind="raidz2", fill=0.01):
    """A pool of five disks (or a mirror of two), and an engine for it."""
    make = Build(2, "tank")
    disks = make.leaves(2 if kind == "mirror" else 5, RED_4T)
    top = make.mirror(disks, fill) if kind == "mirror" else make.raidz(2, disks, fill)
    pool = make.pool([top])
    pool.host.shelf = make.leaves(3, RED_4T)
    return PoolSimulation(pool, []), disks


def finish(engine, hours=3.0):
    engine.advance(engine.pool.t + hours * HOUR, 2000)


def names(pool):
    return [event.name for event in pool.events]


def test_a_finished_resilver_detaches_the_old_device():
    engine, disks = pool_of()
    new = engine.pool.host.shelf[0]
    assert commands.replace(engine.pool, disks[1].path, new.path).status == 0
    assert isinstance(engine.pool.tops[0].members[1], Group)
    finish(engine)
    assert engine.pool.scan.state == FINISHED
    assert engine.pool.tops[0].members[1] is new
    assert new.complete
    assert names(engine.pool)[-2:] == ["resilver_finish", "vdev_remove"]


def test_a_checkpoint_holds_a_finished_resilver_back():
    engine, disks = pool_of()
    commands.replace(engine.pool, disks[1].path, engine.pool.host.shelf[0].path)
    engine.pool.checkpoint = Checkpoint(0.0, 1e9)
    finish(engine)
    assert engine.pool.scan.state == FINISHED
    assert isinstance(engine.pool.tops[0].members[1], Group)
    assert "resilver_finish" not in names(engine.pool)


def test_errors_hold_a_finished_resilver_back():
    engine, disks = pool_of()
    commands.replace(engine.pool, disks[1].path, engine.pool.host.shelf[0].path)
    engine.pool.scan.errors = 2
    finish(engine)
    assert engine.pool.scan.state == FINISHED
    assert isinstance(engine.pool.tops[0].members[1], Group)


@pytest.mark.parametrize(("without", "hours"), [("feature", 1.5), ("tunable", 0.35)])
def test_without_deferral_a_second_replacement_restarts_at_any_time(without, hours):
    engine, disks = pool_of(fill=0.05)
    if without == "feature":
        engine.pool.one_stage = True
    else:
        engine.pool.tunables.values["zfs_resilver_disable_defer"] = 1
    commands.replace(engine.pool, disks[0].path, engine.pool.host.shelf[0].path)
    engine.advance(hours * HOUR, 400)
    assert engine.pool.scan.issued > 0.1 * engine.pool.scan.total
    commands.replace(engine.pool, disks[1].path, engine.pool.host.shelf[0].path)
    assert engine.pool.scan.start == engine.pool.now
    assert engine.pool.scan.restarts == 1


def test_a_second_replacement_waits_for_a_pass_of_its_own():
    engine, disks = pool_of(fill=0.05)
    first, second = engine.pool.host.shelf[:2]
    commands.replace(engine.pool, disks[0].path, first.path)
    engine.advance(0.35 * HOUR, 400)
    assert engine.pool.scan.issued > 0.1 * engine.pool.scan.total
    started = engine.pool.scan.start
    commands.replace(engine.pool, disks[1].path, second.path)
    assert second.deferred
    assert engine.pool.scan.start == started
    finish(engine)
    assert engine.pool.tops[0].members[:2] == [first, second]
    assert names(engine.pool).count("resilver_start") == 2
    assert "history_event" not in names(engine.pool)


def test_an_early_second_replacement_restarts_the_resilver():
    engine, disks = pool_of(fill=0.05)
    commands.replace(engine.pool, disks[0].path, engine.pool.host.shelf[0].path)
    engine.advance(60.0)
    commands.replace(engine.pool, disks[1].path, engine.pool.host.shelf[0].path)
    assert engine.pool.scan.start == pytest.approx(60.0)
    assert len(engine.pool.scan.targets) == 2
    assert engine.pool.scan.restarts == 1


def test_a_disk_that_comes_back_restarts_the_resilver():
    engine, disks = pool_of(fill=0.05)
    commands.replace(engine.pool, disks[0].path, engine.pool.host.shelf[0].path)
    engine.advance(0.4 * HOUR, 400)
    lifecycle.lose(engine.pool, disks[3])
    engine.advance(engine.pool.t + 60.0)
    assert not engine.pool.suspended
    lifecycle.come_back(engine.pool, disks[3], 0.01)
    assert engine.pool.scan.start == engine.pool.now
    assert engine.pool.scan.issued == 0
    assert disks[3] in engine.pool.scan.targets
    finish(engine)
    assert disks[3].complete


def test_losing_more_than_parity_suspends_and_clear_resumes():
    engine, disks = pool_of()
    for disk in disks[:3]:
        lifecycle.lose(engine.pool, disk)
    assert engine.pool.suspended
    at = engine.pool.txg
    engine.advance(engine.pool.t + 60.0)
    assert engine.pool.txg == at
    assert commands.clear(engine.pool).status == 1
    assert engine.pool.suspended
    for disk in disks[:3]:
        disk.present = True
    assert commands.clear(engine.pool).status == 0
    assert not engine.pool.suspended
    assert all(disk.state == ONLINE for disk in disks)


def test_a_rebuild_is_followed_by_a_scrub():
    engine, disks = pool_of("mirror", fill=0.02)
    new = engine.pool.host.shelf[0]
    assert commands.replace(engine.pool, disks[0].path, new.path, sequential=True).status == 0
    assert engine.pool.scan is None
    engine.advance(0.1 * HOUR, 200)
    current = engine.pool.tops[0].rebuild
    assert 0 < current.rebuilt < current.estimate
    assert new.rebuild_processed == pytest.approx(current.rebuilt)
    finish(engine)
    assert current.state == rebuild.COMPLETE
    assert engine.pool.tops[0].members[0] is new
    assert engine.pool.scan.function == SCRUB


def test_a_second_sequential_replacement_starts_that_rebuild_over():
    engine, disks = pool_of("mirror", fill=0.1)
    commands.replace(engine.pool, disks[0].path, engine.pool.host.shelf[0].path, sequential=True)
    engine.advance(0.2 * HOUR, 200)
    assert engine.pool.tops[0].rebuild.scanned > 0
    commands.attach(engine.pool, disks[1].path, engine.pool.host.shelf[0].path, sequential=True)
    assert engine.pool.tops[0].rebuild.scanned == 0
    assert len(engine.pool.tops[0].rebuild.targets) == 2


def with_spare():
    engine, disks = pool_of()
    spare = engine.pool.host.shelf.pop()
    engine.pool.spares = [spare]
    lifecycle.lose(engine.pool, disks[2], FAULTED, 11)
    assert commands.replace(engine.pool, disks[2].path, spare.path).status == 0
    finish(engine)
    assert engine.pool.tops[0].members[2].kind == "spare"
    return engine, disks, spare


def test_a_spare_stays_for_good_when_the_failed_disk_is_detached():
    engine, disks, spare = with_spare()
    assert commands.detach(engine.pool, disks[2].path).status == 0
    assert engine.pool.tops[0].members[2] is spare
    assert engine.pool.spares == []


def test_a_spare_goes_back_when_the_failed_disk_has_been_replaced():
    engine, disks, spare = with_spare()
    new = engine.pool.host.shelf[0]
    assert commands.replace(engine.pool, disks[2].path, new.path).status == 0
    finish(engine)
    assert engine.pool.tops[0].members[2] is new
    assert engine.pool.spares == [spare]
    assert commands.locate(engine.pool, spare.path) is None


def test_a_vdev_expands_once_all_its_disks_are_larger():
    from zconsole.sim.models import RED_8T

    make = Build(4, "tank")
    disks = [*make.leaves(2, RED_8T), make.leaf(RED_4T)]
    pool = make.pool([make.raidz(1, disks, 0.01)])
    pool.host.shelf = [make.leaf(RED_8T)]
    before = pool.tops[0].space
    commands.online(pool, disks[0].path, expand=True)
    assert pool.tops[0].space == before
    commands.replace(pool, disks[2].path, pool.host.shelf[0].path)
    PoolSimulation(pool, []).advance(3 * HOUR, 2000)
    commands.online(pool, disks[0].path, expand=True)
    assert pool.tops[0].space == pytest.approx(2 * before, rel=0.01)
