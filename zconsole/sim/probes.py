"""Simulated probes of disks: their SMART counts and their facts."""

from __future__ import annotations

from zconsole.diagnosis.device_errors.faults import ProbeResults, SmartCounts
from zconsole.sim.disk import Leaf
from zconsole.sim.places import machine_leaves
from zconsole.sim.source import World
from zconsole.timeline.devices import described
from zconsole.timeline.frame import Pairs


def _plugged(world: World, name: str) -> Leaf | None:
    """Return the plugged-in disk of this path, or with this node (/dev/sda), if any."""
    leaves = (leaf for leaf in machine_leaves(world.pools[0]) if leaf.present)
    disks = (leaf for leaf in leaves if leaf.kind == "disk")
    return next((leaf for leaf in disks if name in (leaf.path, f"/dev/{leaf.disk}")), None)


async def smart_of(world: World, name: str) -> SmartCounts | None:
    """Return SMART counts of a disk by its path or node; None if it is not there.

    They match its errors: bad sectors, or a bad cable.
    """
    if (disk := _plugged(world, name)) is None:
        return None
    bad, damaged = int(disk.reads.errors + disk.writes.errors), int(disk.cksum_errors)
    # Checksum errors without failed reads or writes are typical of a cable.
    if damaged > 3 * bad:
        return SmartCounts(passed=True, reallocated=0, pending=0, uncorrectable=0, crc=damaged)
    if disk.model.flash:
        return SmartCounts(passed=True, uncorrectable=bad)
    return SmartCounts(passed=True, reallocated=bad, pending=bad // 8, uncorrectable=0, crc=0)


async def probe_results_of(world: World, path: str, _since: float) -> ProbeResults:
    """Return the probe results of the leaf at ``path``; empty if it is not there.

    Damaged transfers count as CRC errors, failed requests as reallocated or pending sectors.
    """
    return ProbeResults(await smart_of(world, path))


async def details_of(world: World, path: str) -> Pairs:
    """Return model, serial, size and sectors of the leaf at ``path``; empty if it is not there."""
    leaf = _plugged(world, path)
    if leaf is None:
        return ()
    facts = {
        "device": leaf.device,
        "model": leaf.model.name.partition("-")[2] or leaf.model.name,
        "serial": leaf.serial,
        "size": str(leaf.model.size),
        "rotational": str(int(not leaf.model.flash)),
        "logical_sector": "512",
        "physical_sector": "4096",
    }
    return described(facts)
