"""What simulated devices would count of their own errors (smartctl), as the real ones are asked."""

from __future__ import annotations

from zconsole.errorwatch.trouble import Signs, SmartCounts
from zconsole.sim.disk import Leaf
from zconsole.sim.source import World


async def signs_of(world: World, path: str, since: float) -> Signs:
    """The counts of the leaf at ``path``: damaged transfers as CRC errors, failed reads as
    pending sectors; nothing for one that is not there."""
    leaves = (leaf for pool in world.pools for leaf in pool.leaves())
    leaf = next((leaf for leaf in leaves if leaf.path == path), None)
    return Signs() if leaf is None or not leaf.present else Signs(_counts(leaf))


def _counts(leaf: Leaf) -> SmartCounts:
    damaged, unread = int(leaf.cksum_errors), int(leaf.read_errors)
    by_link = damaged > 3 * unread
    return SmartCounts(
        passed=True,
        reallocated=0 if by_link else unread // 4,
        pending=0 if by_link else unread,
        crc=damaged if by_link else 0,
    )
