"""zpool add on the simulated pool, and what it refuses."""

from __future__ import annotations

import pytest

from zconsole.pool.model import Pool, Sample
from zconsole.sim import commands
from zconsole.sim.backends.actions import execute
from zconsole.sim.build import Build
from zconsole.sim.source import World
from zconsole.zfs.decode.decoder import decode


@pytest.fixture
def world() -> World:
    """Mirrors, with two more disks of their model on the shelf, before a small one."""
    made = World("mirror-scrub", 1)
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


@pytest.mark.parametrize("vclass", ["log", "cache", "spare"])
def test_single_devices_are_added(world, vclass):
    disks = free(world)[:2]
    assert add(world, "mirrors", vclass, *disks).returncode == 0
    rows = [vdev for vdev in seen(world).root.children if vdev.vclass == vclass]
    assert len(rows) == 2
    assert all(not vdev.children for vdev in rows)


def test_a_raidz_of_equal_redundancy_is_like_a_mirror(world):
    assert add(world, "mirrors", "raidz1", *free(world)[:2]).returncode == 0


def test_a_special_mirror_is_added(world):
    assert add(world, "mirrors", "special", "mirror", *free(world)[:2]).returncode == 0
    assert seen(world).root.children[-1].vclass == "special"


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("{0}",), 1, "mismatched replication level"),
        (("raidz2", "{0}", "{1}", "{2}"), 1, "mismatched replication level"),
        (("mirror", "{0}", "{1}", "{2}"), 1, "mismatched replication level"),
        (("spare", "/dev/none"), 1, "cannot resolve path"),
        (("spare",), 2, "missing vdev specification"),
    ],
)
def test_it_refuses_as_zpool_does_and_takes_nothing(world, words, status, text):
    disks = free(world)
    said = add(world, "mirrors", *(word.format(*disks) for word in words))
    assert said.returncode == status
    assert text in said.stderr
    assert free(world) == disks
    assert len(world.pools[0].tops) == 3


def test_a_device_of_the_pool_is_refused(world):
    own = next(world.pools[0].tops[0].leaves()).path
    assert "is part of active pool" in add(world, "mirrors", "spare", own).stderr


def test_an_expansion_that_a_failed_disk_holds_goes_on_once_it_is_back():
    world = World("stuck", 1)
    (pool,) = world.pools
    commands.clear(pool)
    before = pool.expansion.moved
    world.advance(4 * 3600.0)
    assert pool.expansion.moved > before
