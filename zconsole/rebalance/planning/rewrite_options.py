"""The options of ``zfs rewrite`` (zfs-rewrite(8)): where they exist, and what they do to a plan.

``-P`` since 2.4.0, with the pool feature physical_rewrite; ``-S`` and ``-C`` after 2.4 (master of
August 2026). See zfs_rewrite in module/zfs/zfs_vnops.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zconsole.pool.version import Version
from zconsole.rebalance.planning.engine_choice import Choice
from zconsole.rebalance.planning.facts import PoolFacts
from zconsole.rebalance.planning.plan_model import DirectoryPlan

FLAGS = {"P": 0x1, "S": 0x2, "C": 0x4}
"""``ZFS_REWRITE_PHYSICAL``, ``_SKIP_SNAPSHOT``, ``_SKIP_BRT`` (include/sys/fs/zfs.h)."""
_SINCE: dict[str, tuple[Version, str]] = {
    "P": ((2, 4), "2.4"),
    "S": ((2, 4, 99), "2.5"),
    "C": ((2, 4, 99), "2.5"),
}
"""The version that a kernel module says it is, and the release that has it."""
_FEATURE = "feature@physical_rewrite"


def flags_of(letters: str) -> int:
    """The flags of ZFS_IOC_REWRITE for these options."""
    return sum(FLAGS[letter] for letter in letters)


def checked(chosen: Choice, letters: str, version: Version, pool: PoolFacts | None) -> Choice:
    """The engine chosen for a directory, or none where these options cannot be obeyed."""
    if not letters or chosen.engine is None:
        return chosen
    if chosen.engine != "rewrite":
        return Choice(None, f"-{letters} is for rewriting in place, but: {chosen.why}")
    for letter in letters:
        since, release = _SINCE[letter]
        if version < since:
            return Choice(None, f"zfs rewrite -{letter} needs OpenZFS {release}")
    state = pool.properties.get(_FEATURE) if pool else None
    if "P" in letters and state not in ("enabled", "active", None):
        return Choice(None, "zfs rewrite -P needs the pool feature physical_rewrite to be enabled")
    return Choice("rewrite", f"{chosen.why} (zfs rewrite -{letters})")


def apply(plan: DirectoryPlan, letters: str) -> None:
    """Take from what a directory's plan moves, pins and sends what these options leave alone."""
    if plan.choice.engine != "rewrite":
        return
    found = plan.found
    if "S" in letters:
        # Blocks in a clone's origin are those of a snapshot (dmu_objset_block_is_shared).
        plan.bytes = max(0, plan.bytes - found.snapshot_bytes)
        found.old_allocated = max(0, found.old_allocated - found.snapshot_allocated)
        found.allocated = max(0, found.allocated - found.snapshot_allocated)
        plan.pinned |= {"snapshots": 0, "clones": 0}
    if "C" in letters:
        plan.pinned |= {"block_clones": 0}
    if "S" in letters or "P" in letters:
        found.snapshot_bytes = 0


def notes(letters: str, plans: Sequence[DirectoryPlan], pool: PoolFacts | None) -> Iterator[str]:
    """What the options do to snapshots and clones; without any, what they could spare."""
    rewritten = [plan for plan in plans if plan.choice.engine == "rewrite"]
    if not rewritten or pool is None:
        return
    if "P" in letters:
        yield "-P: incremental sends do not grow; snapshots keep the old blocks all the same"
        if pool.properties.get(_FEATURE) == "enabled":
            yield (
                "-P makes the pool feature physical_rewrite active: OpenZFS before 2.4 can then"
                " only import the pool read-only, until these datasets are destroyed"
            )
    if "S" in letters:
        yield "-S: blocks that the newest snapshot has stay where they are, and balance nothing"
    if "C" in letters:
        yield "-C: blocks shared by cloning stay where they are, and balance nothing"
    sent = any(plan.found.snapshot_bytes for plan in rewritten)
    if sent and "P" not in letters and pool.version >= _SINCE["P"][0]:
        yield "--rewrite-options P (zfs rewrite -P) keeps incremental sends from growing"
    pinned = any(plan.pinned_most for plan in rewritten)
    if pinned and not {"S", "C"} & set(letters) and pool.version >= _SINCE["S"][0]:
        yield "--rewrite-options SC (zfs rewrite -S -C) leaves alone what snapshots or clones hold"


def refusal(letters: str, plans: Sequence[DirectoryPlan]) -> str | None:
    """Why there is nothing to do: all is in snapshots, which are to be left alone."""
    if "S" in letters and any(plan.files for plan in plans) and not any(p.bytes for p in plans):
        return "the newest snapshots have every block, and -S leaves those alone"
    return None
