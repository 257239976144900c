"""What the simulated zpool prints is what the simulated kernel says."""

from __future__ import annotations

from datetime import UTC

import pytest

from zconsole.errors import UnavailableError
from zconsole.pool.model import Pool, SampleFailure, Vdev
from zconsole.sim import commands
from zconsole.sim.scenarios import listed
from zconsole.sim.source import World, snapshot
from zconsole.zfs.decode import decode
from zconsole.zfs.decode.text import pools_of

SCENARIOS = [line.split()[0] for line in listed()]


def vdevs(vdev: Vdev, depth: int = 0):
    """Yield what a table says of each vdev."""
    errors = tuple(vdev.errors)[:3] if vdev.vclass != "spare" else ()
    yield depth, vdev.name, vdev.vclass, vdev.state, all(each == 0 for each in errors)
    for child in vdev.children:
        yield from vdevs(child, depth + 1)


def summary(pool: Pool):
    scans = [(each.function, each.state, int(each.end or each.start)) for each in pool.scans]
    work = [(each.kind, each.state, each.vdev) for each in pool.activities]
    return [*vdevs(pool.root)], pool.state, pool.error_count, scans, work


def outputs(world: World, name: str):
    return {each.command.split()[1]: each for each in world.zpool_outputs(name)}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_of_each_scenario_the_status_reads_back_as_the_pool(scenario):
    world = World(scenario, 1)
    for state in world.pools:
        (seen,) = decode(snapshot(state))
        if isinstance(seen, SampleFailure):
            with pytest.raises(UnavailableError, match="zpool would hang"):
                world.zpool_outputs(state.name)
            continue
        printed = outputs(world, state.name)["status"]
        (read,) = pools_of("\n".join(printed.lines), UTC)
        assert summary(read) == summary(seen.pool)


def test_iostat_has_a_row_for_each_vdev_and_the_averages_of_its_counters():
    world = World("resilver", 1)
    (seen,) = decode(snapshot(world.pools[0]))
    printed = outputs(world, "tank")["iostat"]
    assert printed.heading == "$ zpool iostat -v tank  # averages since boot"
    rows = {line.split()[0]: line.split()[1:] for line in printed.lines}
    tree = [vdev for vdev in seen.pool.root.walk() if vdev.vclass != "spare"]
    assert {vdev.name for vdev in tree} <= rows.keys()
    leaf = next(seen.pool.root.leaves())
    assert rows[leaf.name][:2] == ["-", "-"]
    assert rows[leaf.name][2] == str(int(leaf.io.read_ops / leaf.io.timestamp))
    assert rows["tank"][0] != "-"


def test_events_are_those_that_happened_although_samples_took_them():
    world = World("healthy", 1)
    (pool,) = world.pools
    commands.offline(pool, next(pool.leaves()).path)
    world.raws()
    head, *lines = outputs(world, pool.name)["events"].lines
    assert head.split() == ["TIME", "CLASS"]
    assert [line.split()[-1] for line in lines] == [
        "sysevent.fs.zfs.scrub_start",
        "resource.fs.zfs.statechange",
    ]
