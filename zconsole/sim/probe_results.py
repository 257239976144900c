"""What simulated devices would say of themselves, as the real ones are asked: /sys and smartctl."""

from __future__ import annotations

from zconsole.diagnosis.device_errors.faults import ProbeResults, SmartCounts
from zconsole.monitor.device_details import described
from zconsole.monitor.feed import Pairs
from zconsole.sim.disk import Leaf
from zconsole.sim.source import World


async def probe_results_of(world: World, path: str, _since: float) -> ProbeResults:
    """The counts of the leaf at ``path``; nothing for one that is not there.

    Damaged transfers count as CRC errors, failed reads as pending sectors.
    """
    leaf = _there(world, path)
    return ProbeResults() if leaf is None else ProbeResults(_counts(leaf))


async def details_of(world: World, path: str) -> Pairs:
    """Model, serial, size and sectors of the leaf at ``path``; nothing for one not there."""
    leaf = _there(world, path)
    return () if leaf is None or leaf.kind != "disk" else described(_facts(leaf))


def _there(world: World, path: str) -> Leaf | None:
    leaves = (leaf for pool in world.pools for leaf in pool.leaves())
    return next((leaf for leaf in leaves if leaf.path == path and leaf.present), None)


def _facts(leaf: Leaf) -> dict[str, str]:
    """See ``zconsole.zfs.sources.blockdev.device_facts``."""
    _, mark, serial = leaf.devid.rpartition("_")
    return {
        "device": leaf.device,
        "model": leaf.model.name.partition("-")[2] or leaf.model.name,
        **({"serial": serial} if mark else {}),
        "size": str(leaf.model.size),
        "rotational": str(int(not leaf.model.flash)),
        "logical_sector": "512",
        "physical_sector": "4096",
    }


def _counts(leaf: Leaf) -> SmartCounts:
    damaged, unread = int(leaf.cksum_errors), int(leaf.reads.errors)
    by_link = damaged > 3 * unread
    return SmartCounts(
        passed=True,
        reallocated=0 if by_link else unread // 4,
        pending=0 if by_link else unread,
        crc=damaged if by_link else 0,
    )
