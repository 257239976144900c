"""Data that simulated devices report, and the facts about them."""

from __future__ import annotations

from tests.worlds import world_of
from zconsole.sim.backends.actions import simulated_facts
from zconsole.sim.probes import details_of
from zconsole.sim.source import World
from zconsole.zfs.decode import decode


async def test_a_disk_that_is_there_tells_its_model_serial_and_size():
    world = World("resilver", 1, 0.0)
    leaf = next(leaf for leaf in world.pools[0].leaves() if leaf.present)
    told = dict(await details_of(world, leaf.path))
    assert told["device"] == leaf.device
    assert told["serial"] in leaf.devid
    assert told["model"] in leaf.model.name
    assert told["physical"] == "sectors of 4096 bytes"
    assert told["kind"] == "rotating disk"
    leaf.present = False
    for path in (leaf.path, "/dev/disk/by-id/other"):
        assert await details_of(world, path) == ()


async def test_a_device_is_named_by_its_whole_disk():
    world = world_of("failed-disk")
    (sample,) = decode(world.raws()[0])
    facts = await simulated_facts(world)(sample.pool, False)
    nodes = [device.node for device in facts.devices]
    assert not [node for node in nodes if node[-1].isdigit() and "nvme" not in node]
