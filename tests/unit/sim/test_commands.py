"""Answers of zpool on the simulated pool: exit status and messages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.table import rows
from tests.worlds import world_of
from zconsole.pool.model import Pool, Sample
from zconsole.sim import commands, simulation
from zconsole.sim.backends.actions import SimulatedRunner
from zconsole.sim.build import Build
from zconsole.sim.commands import execute
from zconsole.sim.source import World
from zconsole.sim.state import CANCELED, FINISHED
from zconsole.zfs.decode.decoder import decode


def zpool(world, *words):
    return execute(world.pools, ("zpool", *words))


def leaf_of(world, number):
    return list(world.pools[0].tops[0].leaves())[number]


@pytest.fixture
def night():
    return world_of("failed-disk")


def test_the_night_can_be_played_to_its_end(night):
    pool = night.pools[0]
    failed = next(leaf for leaf in pool.tops[0].leaves() if not leaf.online)
    new = pool.host.shelf[0]
    path = new.path.removesuffix("-part1")
    assert zpool(night, "replace", "tank", str(failed.guid), path).returncode == 0
    night.advance(60.0)
    assert pool.scan.function == 2
    night.advance(24 * 3600.0)
    assert pool.tops[0].lost() == 0
    assert new in list(pool.tops[0].leaves())


@rows("kept", ["spares", "shelf"])
def test_a_device_in_use_is_not_free(kept):
    world = world_of("failed-disk")
    pool = world.pools[0]
    new = (pool.spares if kept == "spares" else pool.host.shelf)[0].path
    assert zpool(world, "replace", "tank", leaf_of(world, 4).path, new).returncode == 0
    refused = zpool(world, "replace", "tank", leaf_of(world, 0).path, new)
    assert refused.returncode == 1
    assert "is part of active pool 'tank'" in refused.stderr


@pytest.mark.slow
@rows(
    ("scenario", "words", "status", "text"),
    [
        ("failed-disk", ("replace", "tank", "77", "{shelf}"), 255, "no such device in pool"),
        ("failed-disk", ("replace", "tank", "{4}", "{ssd}"), 255, "device is too small"),
        ("failed-disk", ("replace", "-s", "tank", "{4}", "{shelf}"), 255, "only mirror and dRAID"),
        ("failed-disk", ("replace", "tank", "{4}", "/dev/none"), 1, "cannot resolve path"),
        ("failed-disk", ("detach", "tank", "{0}"), 255, "only applicable to mirror"),
        ("failed-disk", ("scrub", "-s", "tank"), 1, "there is no active scrub"),
        ("failed-disk", ("offline", "none", "{0}"), 1, "no such pool"),
        ("failed-disk", ("explode", "tank"), 2, "unrecognized command"),
        ("resilver", ("attach", "tank", "{2}", "{shelf}"), 255, "can only attach to mirrors"),
        ("resilver", ("scrub", "tank"), 1, "currently resilvering"),
        ("resilver", ("scrub", "-s", "tank"), 1, "currently resilvering"),
        ("not-restored", ("replace", "tank", "{0}", "{shelf}"), 255, "checkpoint exists"),
        ("mirror-scrub", ("scrub", "mirrors"), 1, "currently scrubbing; use 'zpool scrub -s'"),
        ("paused", ("scrub", "-p", "tank"), 1, "scrub is paused; use 'zpool scrub'"),
        ("not-restored", ("remove", "tank", "{0}"), 1, "checkpoint exists"),
        ("not-restored", ("checkpoint", "tank"), 1, "checkpoint exists"),
        ("removal", ("checkpoint", "pond"), 1, "device removal in progress"),
        ("removal", ("remove", "pond", "mirror-0"), 1, "removal may already be in progress"),
        ("removal", ("remove", "pond", "mirror-2"), 1, "already in progress."),
        ("expansion", ("checkpoint", "nas"), 1, "raidz expansion in progress"),
        ("mirror-scrub", ("remove", "-s", "mirrors"), 1, "operation is not in progress"),
        ("mirror-scrub", ("remove", "mirrors", "{0}"), 1, "no such device in pool"),
        ("healthy", ("remove", "vault", "mirror-3"), 1, "same sector size and not be raidz"),
        ("draid", ("remove", "lustre", "draid2-0-1"), 1, "dRAID spares cannot be removed"),
        ("draid", ("remove", "lustre", "draid2:8d:24c:2s-0"), 1, "out of space"),
        ("sequential", ("remove", "vm", "mirror-0"), 1, "same sector size and not be raidz"),
        ("sequential", ("scrub", "vm"), 1, "currently resilvering"),
        ("sequential", ("replace", "vm", "{0}", "{shelf}"), 255, "currently sequentially"),
    ],
)
def test_refusals_are_zpool_s(scenario, words, status, text):
    world = world_of(scenario)
    shelf = world.pools[0].host.shelf
    leaves = {str(i): leaf.path for i, leaf in enumerate(world.pools[0].tops[0].leaves())}
    known = {"shelf": shelf[0].path, "ssd": shelf[-1].path, **leaves}
    filled = [known[w[1:-1]] if w.startswith("{") else w for w in words]
    outcome = zpool(world, *filled)
    assert outcome.returncode == status
    assert text in outcome.stderr


def test_work_on_devices_is_told_with_the_time_it_began():
    world = world_of("healthy")
    world.advance(60.0)
    pool = world.pools[0]
    assert zpool(world, "initialize", pool.name).returncode == 0
    assert {job.time for leaf in pool.leaves() for job in leaf.jobs.values()} == {pool.now}
    assert "currently initializing" in zpool(world, "initialize", pool.name).stderr


def test_offline_is_refused_where_data_would_be_lost():
    world = world_of("failed-disk")
    assert zpool(world, "offline", "tank", leaf_of(world, 0).path).returncode == 0
    refused = zpool(world, "offline", "tank", leaf_of(world, 1).path)
    assert refused.returncode == 1
    assert refused.stderr.endswith("no valid replicas\n")


def test_online_brings_it_back_and_resilvers_what_it_missed():
    world = world_of("failed-disk")
    leaf = leaf_of(world, 0)
    zpool(world, "offline", "tank", leaf.path)
    assert zpool(world, "online", "tank", leaf.path).returncode == 0
    assert world.pools[0].scan.targets == [leaf]
    world.advance(4 * 3600.0)
    assert leaf.complete
    assert world.pools[0].scan.skipped > 0.9 * world.pools[0].scan.total


def test_a_scrub_can_be_paused_resumed_and_stopped():
    world = world_of("mirror-scrub")
    current = world.pools[0].scan
    assert zpool(world, "scrub", "-p", "mirrors").returncode == 0
    world.advance(100.0)
    assert zpool(world, "scrub", "mirrors").returncode == 0
    assert current.spent_paused == pytest.approx(100.0)
    assert zpool(world, "scrub", "-s", "mirrors").returncode == 0
    assert current.state == 3


def test_replacing_throws_a_scrub_away():
    world = world_of("mirror-scrub")
    pool = world.pools[0]
    zpool(world, "replace", "mirrors", leaf_of(world, 0).path, pool.host.shelf[0].path)
    assert pool.scan.function == 2
    assert "scrub_abort" in [event.name for event in pool.events]


def test_backing_a_replacement_out_keeps_the_old_disk():
    world = world_of("second-replace")
    old, new = list(world.pools[0].tops[0].leaves())[:2]
    assert zpool(world, "detach", "tank", str(new.guid)).returncode == 0
    assert world.pools[0].tops[0].members[0] is old
    assert new in world.pools[0].host.shelf
    world.advance(10.0)


@rows("offline", [False, True])
def test_a_third_disk_joins_a_replacement_that_runs_and_alone_stays(offline):
    """Live 2.3.9 does so, too; the kernel keeps the last new disk."""
    world = world_of("second-replace")
    pool = world.pools[0]
    old, second = list(pool.tops[0].leaves())[:2]
    third = pool.host.shelf[0]
    if offline:
        assert zpool(world, "offline", "tank", old.path).returncode == 0
    assert zpool(world, "replace", "tank", old.path, third.path).returncode == 0
    assert pool.tops[0].members[0].children == [old, second, third]
    for hours in range(1, 400):
        world.advance(hours * 3600.0)
        if third.complete:
            break
        inside = pool.tops[0].members[0].children
        assert inside == [old, second, third], "until the newest is filled all stay"
    assert second.complete
    assert pool.tops[0].members[0] is third
    assert {old, second} <= set(pool.host.shelf)


@rows(("number", "stay"), [(0, (1, 2)), (1, (0, 2)), (2, (0, 1))])
def test_one_of_three_detached_leaves_the_other_two_and_then_one(number, stay):
    world = world_of("second-replace")
    pool = world.pools[0]
    old = leaf_of(world, 0)
    zpool(world, "replace", "tank", old.path, pool.host.shelf[0].path)
    three = tuple(pool.tops[0].members[0].children)
    gone = zpool(world, "detach", "tank", three[number].path)
    if not number:  # the only complete one
        assert gone.stderr.endswith("no valid replicas\n")
        return
    assert pool.tops[0].members[0].children == [three[n] for n in stay]
    assert zpool(world, "detach", "tank", three[stay[1]].path).returncode == 0
    assert pool.tops[0].members[0] is old


def test_a_spare_in_use_gives_way_to_another_spare_only(night):
    pool = night.pools[0]
    failed, (spare,), new = leaf_of(night, 4), pool.spares, pool.host.shelf[0]
    zpool(night, "replace", "tank", failed.path, spare.path)
    refused = zpool(night, "replace", "tank", spare.path, new.path)
    assert (refused.returncode, "already in replacing/spare" in refused.stderr) == (255, True)
    assert zpool(night, "replace", "tank", failed.path, new.path).returncode == 0


def test_attaching_to_a_raidz_widens_it():
    world = world_of("two-pools")
    pool = world.pools[0]
    before = pool.tops[0].space
    assert zpool(world, "attach", "tank", "raidz2-0", pool.host.shelf[0].path).returncode == 0
    world.advance(3600.0)
    assert pool.expansion.moved == 0  # waits for the resilver
    world.advance(100 * 3600.0)
    assert pool.expansion.state == 2
    assert pool.tops[0].space == pytest.approx(before * 7 / 6)


async def test_the_runner_speaks_for_zpool_only():
    world = world_of("failed-disk")
    runner = SimulatedRunner(world)
    done = await runner.run(["/usr/sbin/zpool", "scrub", "tank"], 5.0)
    assert (done.returncode, done.stderr) == (0, "")
    assert world.pools[0].scan.state == 1
    with pytest.raises(FileNotFoundError):
        await runner.run(["rm", "-r", "/"], 5.0)


def test_a_suspended_pool_refuses_everything_but_clear():
    world = world_of("suspended")
    world.advance(30.0)
    assert "currently suspended" in zpool(world, "scrub", "backup").stderr
    assert zpool(world, "clear", "backup").returncode == 1
    world.advance(150.0)
    assert zpool(world, "clear", "backup").returncode == 0
    before = world.pools[0].scan.issued
    world.advance(200.0)
    assert world.pools[0].scan.issued > before


def test_an_incident_that_whoever_plays_forestalled_does_not_end_the_demo():
    world = world_of("second-replace")
    pool = world.pools[0]
    new = pool.host.shelf[0].path
    assert zpool(world, "replace", "tank", leaf_of(world, 3).path, new).returncode == 0
    world.advance(60.0)
    assert [x.name for x in pool.tops[0].leaves()].count(
        new.split("/")[-1].removesuffix("-part1")
    ) == 1


def test_a_scrub_of_what_is_new_reads_only_that(night):
    pool = night.pools[0]
    assert pool.scrubbed_txg < pool.txg
    assert zpool(night, "scrub", "-C", "tank").returncode == 0
    assert pool.scan.txgs == (pool.scrubbed_txg, pool.scan.txg)
    night.advance(4 * 3600.0)
    assert pool.scan.end
    assert pool.scan.issued < 0.1 * pool.scan.total
    assert pool.scrubbed_txg == pool.scan.txg


def test_a_scrub_by_dates_ends_where_it_was_told_to(night):
    pool = night.pools[0]
    day = datetime.fromtimestamp(pool.now - 3 * 86400.0, UTC).strftime("%Y-%m-%d")
    assert zpool(night, "scrub", "-E", day, "tank").returncode == 0
    assert pool.scan.txgs[0] == 0
    assert pool.scan.txgs[1] < pool.scan.txg


def test_history_tells_of_the_last_full_scrub_though_another_was_canceled():
    world = world_of("healthy")
    (before,) = [scrub for scrub in scrubs(world) if scrub["end"] == int(world.pools[0].scan.end)]
    zpool(world, "scrub", "vault")
    zpool(world, "scrub", "-s", "vault")
    newest, last = scrubs(world)
    assert (newest["end"], last["end"]) == (None, before["end"])


def scrubs(world):
    (raw,) = world.raws()
    return raw["history"]["scrubs"]


def test_a_scrub_of_known_errors_is_no_full_scrub_and_can_be_paused_and_stopped():
    (pool,) = world_of("damaged").pools
    full = pool.scan
    commands.scrub(pool, errors=True)
    assert pool.scan is full
    with pytest.raises(commands.CommandError, match="currently error scrubbing"):
        commands.scrub(pool, errors=True)
    commands.scrub(pool, "pause")
    simulation.advance(pool, pool.t + 600.0)
    assert pool.error_scrub.done == 0
    commands.scrub(pool, errors=True)
    simulation.advance(pool, pool.t + 600.0)
    assert pool.error_scrub.state == FINISHED
    commands.scrub(pool, errors=True)
    commands.scrub(pool, "stop")
    assert pool.error_scrub.state == CANCELED


def test_a_log_device_that_is_replaced_is_resilvered_and_detached(night):
    pool = night.pools[0]
    log = next(top for top in pool.tops if top.vclass == "log")
    old = next(log.leaves())
    new = next(leaf for leaf in pool.host.shelf if leaf.model.size >= old.model.size)
    assert zpool(night, "replace", "tank", str(old.guid), new.path).returncode == 0
    assert pool.scan.function == 2
    assert pool.scan.running
    night.advance(24 * 3600.0)
    assert new in log.members
    assert not pool.scan.running
    assert pool.scan.issued == 0


def test_a_checkpoint_is_discarded_and_the_resilver_then_restores_redundancy():
    world = world_of("not-restored")
    pool = world.pools[0]
    new = pool.scan.targets[0]
    world.advance(4 * 3600.0)
    assert pool.scan.state == FINISHED
    assert zpool(world, "resilver", "tank").returncode == 0
    world.advance(8 * 3600.0)
    assert new.dtl > 0.0, "a checkpoint keeps what is filled from counting"
    assert zpool(world, "checkpoint", "-d", "tank").returncode == 0
    world.advance(8 * 3600.0 + 60.0)
    assert pool.checkpoint is None
    assert "no checkpoint exists" in zpool(world, "checkpoint", "-d", "tank").stderr
    assert zpool(world, "resilver", "tank").returncode == 0
    world.advance(12 * 3600.0)
    assert new.dtl == 0.0
    assert new in pool.tops[0].members


# zpool add


@pytest.fixture
def world() -> World:
    """Mirrors, with two more disks of their model on the shelf, followed by a small one."""
    made = world_of("mirror-scrub")
    pool = made.pools[0]
    model = next(pool.tops[0].leaves()).model
    pool.host.shelf[:0] = Build(7, "more").leaves(2, model)
    return made


def free(world: World) -> list[str]:
    return [leaf.path.removesuffix("-part1") for leaf in world.pools[0].host.shelf]


def add(world: World, *words: str):
    return execute(world.pools, ("zpool", "add", *words))


def seen(world: World) -> Pool:
    (sample,) = decode(world.raws()[0])
    assert isinstance(sample, Sample)
    return sample.pool


def test_a_mirror_is_added_and_takes_new_writes(world):
    disks = free(world)[:2]
    assert add(world, "-o", "ashift=12", "mirrors", "mirror", *disks).returncode == 0
    pool = world.pools[0]
    assert [top.kind for top in pool.tops] == ["mirror"] * 4
    assert not set(disks) & set(free(world))
    assert pool.write_shares(pool.tops)[-1] > 0.3
    world.advance(60.0)
    top = seen(world).root.children[-1]
    assert (top.name, top.state, len(top.children)) == ("mirror-3", "ONLINE", 2)


@pytest.mark.parametrize(
    ("words", "vclass", "inside"),
    [
        (("log",), "log", [0, 0]),
        (("cache",), "cache", [0, 0]),
        (("spare",), "spare", [0, 0]),
        (("special", "mirror"), "special", [2]),
        (("raidz1",), "normal", [2, 2, 2, 2]),  # its redundancy is that of the mirrors
    ],
)
def test_devices_are_added(world, words, vclass, inside):
    assert add(world, "mirrors", *words, *free(world)[:2]).returncode == 0
    found = [vdev for vdev in seen(world).root.children if vdev.vclass == vclass]
    assert [len(vdev.children) for vdev in found] == inside


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("{0}",), 1, "mismatched replication level"),
        (("raidz2", "{0}", "{1}", "{2}"), 1, "mismatched replication level"),
        (("mirror", "{0}", "{1}", "{2}"), 1, "mismatched replication level"),
        (("spare", "/dev/none"), 1, "cannot resolve path"),
        (("spare", "{own}"), 1, "is part of active pool"),
    ],
)
def test_it_refuses_as_zpool_does_and_takes_nothing(world, words, status, text):
    disks, own = free(world), next(world.pools[0].tops[0].leaves()).path
    said = add(world, "mirrors", *(word.format(*disks, own=own) for word in words))
    assert said.returncode == status
    assert text in said.stderr
    assert free(world) == disks
    assert len(world.pools[0].tops) == 3


def test_an_expansion_that_a_failed_disk_holds_goes_on_once_it_is_back():
    world = world_of("stuck")
    (pool,) = world.pools
    commands.clear(pool)
    before = pool.expansion.moved
    world.advance(4 * 3600.0)
    assert pool.expansion.moved > before


def test_a_vdev_that_does_not_allocate_gets_nothing_and_the_last_one_always_does():
    world = world_of("new-mirror")
    pool = world.pools[0]
    full, new = pool.tops
    assert zpool(world, "set", "allocating=off", "depot", "mirror-0").returncode == 0
    held = full.alloc
    world.advance(3600.0)
    assert full.alloc <= held
    refused = zpool(world, "set", "allocating=off", "depot", str(new.guid))
    assert refused.returncode == 1
    assert "cannot set property" in refused.stderr
    assert new.allocating
    assert zpool(world, "set", "allocating=on", "depot", str(full.guid)).returncode == 0
    assert full.allocating


def test_a_spare_a_cache_and_a_log_leave_at_once():
    world = world_of("healthy")
    pool = world.pools[0]
    (cache,), (spare, _), shelf = pool.cache, pool.spares, len(pool.host.shelf)
    for device in (str(spare.guid), cache.path, "mirror-4"):
        assert zpool(world, "remove", "vault", device).returncode == 0
    assert (len(pool.spares), pool.cache) == (1, [])
    assert len(pool.host.shelf) == shelf + 4
    world.advance(10.0)
    (sample,) = decode(world.raws()[0])
    assert isinstance(sample, Sample)
    kept = [vdev.vclass for vdev in sample.pool.root.children]
    assert kept == ["normal", "normal", "dedup", "special", "spare"]


def test_a_lone_log_is_removed_by_the_guid_that_is_shown():
    world = world_of("healthy")
    device = world.pools[0].host.shelf[0].path
    assert add(world, "vault", "log", device).returncode == 0
    (*_, log) = (vdev for vdev in seen(world).root.children if vdev.vclass == "log")
    assert zpool(world, "remove", "vault", log.guid).returncode == 0
    assert log.guid not in [vdev.guid for vdev in seen(world).root.walk()]


def test_a_spare_in_use_stays():
    world = world_of("failed-disk")
    pool = world.pools[0]
    spare = pool.spares[0].path
    assert zpool(world, "replace", "tank", leaf_of(world, 4).path, spare).returncode == 0
    assert "removal may already be in progress" in zpool(world, "remove", "tank", spare).stderr


def test_a_vdev_is_evacuated_or_stays_where_that_is_canceled():
    world = world_of("mirror-scrub")
    pool = world.pools[0]
    before = pool.alloc
    assert zpool(world, "remove", "-np", "mirrors", "mirror-1").stdout.startswith("mirror-1 ")
    assert zpool(world, "remove", "mirrors", "mirror-1").returncode == 0
    world.advance(600.0)
    assert pool.removal.moved > 0
    assert zpool(world, "remove", "-s", "mirrors").returncode == 0
    assert pool.removal.state == CANCELED
    assert (pool.tops[1].removing, pool.tops[1].allocating) == (False, True)
    assert abs(pool.alloc - before) < 0.01 * before
    assert zpool(world, "remove", "mirrors", "mirror-1").returncode == 0
    world.advance(5 * 24 * 3600.0)
    assert pool.removal.state == FINISHED
    assert pool.tops[1].kind == "indirect"
    said = zpool(world, "get", "-Hp", "-o", "property,value", "all", "mirrors").stdout
    assert "feature@device_removal\tactive\n" in said


def test_a_checkpoint_is_made_and_discarded():
    world = world_of("healthy")
    pool = world.pools[0]
    assert zpool(world, "checkpoint", "vault").returncode == 0
    world.advance(60.0)
    assert pool.checkpoint.space > 0
    assert "checkpoint exists" in zpool(world, "remove", "vault", "mirror-4").stderr
    assert zpool(world, "checkpoint", "-d", "vault").returncode == 0
    assert "currently discarding checkpoint" in zpool(world, "checkpoint", "vault").stderr
    world.advance(600.0)
    assert pool.checkpoint is None
