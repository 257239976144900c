"""``zpool trim``, ``initialize``, ``checkpoint`` and ``remove`` on the simulated pool."""

from __future__ import annotations

from zconsole.sim.commands import DONE, CommandOutcome, locate
from zconsole.sim.disk import JobProgress, Leaf
from zconsole.sim.state import ACTIVE, Checkpoint, PoolState, Removal, top_name

_BUSY = "Pool busy; removal may already be in progress"
RUNNING, CANCELED, SUSPENDED = 1, 2, 3
"""vdev_trim_state_t and vdev_initializing_state_t (include/sys/fs/zfs.h)."""


def trim(pool: PoolState, action: str = "start", device: str | None = None) -> CommandOutcome:
    """``zpool trim [-c|-s] POOL [DEVICE]``; ``action`` is start, cancel or suspend."""
    aims = _aims(pool, device)
    if not aims:
        return CommandOutcome(1, f"cannot trim '{device}': no such device in pool\n")
    if action != "start":
        return _stop(pool, aims, "trim", action)
    for leaf in aims:
        if not leaf.model.flash:
            text = "trim operations are not supported by this device"
            return CommandOutcome(1, f"cannot trim '{leaf.name}': {text}\n")
        if leaf.trim is not None and leaf.trim.state == RUNNING:
            return CommandOutcome(1, f"cannot trim '{leaf.name}': currently trimming\n")
    for leaf in aims:
        done = leaf.trim.done if leaf.trim is not None and leaf.trim.state == SUSPENDED else 0.0
        leaf.trim = JobProgress(done, leaf.model.size * 0.6, RUNNING, pool.now, 2.5e9)
    pool.note("trim_start", "trim started")
    return DONE


def initialize(pool: PoolState, action: str = "start", device: str | None = None) -> CommandOutcome:
    """``zpool initialize [-c|-s] POOL [DEVICE]``."""
    aims = _aims(pool, device)
    if not aims:
        return CommandOutcome(1, f"cannot initialize '{device}': no such device in pool\n")
    if action != "start":
        return _stop(pool, aims, "initialize", action)
    for leaf in aims:
        if leaf.initialize is not None and leaf.initialize.state == RUNNING:
            return CommandOutcome(1, f"cannot initialize '{leaf.name}': currently initializing\n")
    for leaf in aims:
        past = leaf.initialize
        done = past.done if past is not None and past.state == SUSPENDED else 0.0
        rate = leaf.model.outer * leaf.model.write * 0.7
        leaf.initialize = JobProgress(done, leaf.model.size * 0.5, RUNNING, pool.now, rate)
    pool.note("initialize_start", "initialize started")
    return DONE


def _stop(pool: PoolState, aims: list[Leaf], kind: str, action: str) -> CommandOutcome:
    word = "trim" if kind == "trim" else "initialization"
    found = [leaf.trim if kind == "trim" else leaf.initialize for leaf in aims]
    running = [job for job in found if job is not None and job.state == RUNNING]
    if not running:
        verb = "cancel" if action == "cancel" else "suspend"
        ing = "trimming" if kind == "trim" else "initializing"
        return CommandOutcome(
            1, f"cannot {verb} {ing} '{aims[0].name}': there is no active {word}\n"
        )
    for job in running:
        job.state, job.time = (CANCELED if action == "cancel" else SUSPENDED), pool.now
    pool.note(f"{kind}_{action}", f"{kind} {action}ed", "notice")
    return DONE


def checkpoint(pool: PoolState, discard: bool = False) -> CommandOutcome:
    """``zpool checkpoint [-d] POOL``."""
    if discard:
        if pool.checkpoint is None:
            text = "checkpoint does not exist"
            return CommandOutcome(1, f"cannot discard checkpoint in '{pool.name}': {text}\n")
        pool.checkpoint.state = 2
        return DONE
    if pool.checkpoint is not None:
        return CommandOutcome(1, f"cannot checkpoint '{pool.name}': checkpoint exists\n")
    pool.checkpoint = Checkpoint(pool.now, 0.0)
    return DONE


def remove(pool: PoolState, device: str) -> CommandOutcome:
    """``zpool remove POOL DEVICE``: a spare, a cache device, or an evacuation."""
    for group in (pool.spares, pool.cache):
        for leaf in group:
            if device in (leaf.path, leaf.name, str(leaf.guid)):
                return _drop(pool, group, leaf)
    for index, top in enumerate(pool.tops):
        leaf_names = {x.name for x in top.leaves()} if top.kind == "disk" else set()
        if device in {top_name(top, index), str(top.guid), *leaf_names}:
            return _evacuate(pool, index, device)
    return CommandOutcome(1, f"cannot remove {device}: no such device in pool\n")


def _drop(pool: PoolState, group: list[Leaf], leaf: Leaf) -> CommandOutcome:
    if locate(pool, str(leaf.guid)) is not None:
        return CommandOutcome(1, f"cannot remove {leaf.name}: {_BUSY}\n")
    group.remove(leaf)
    pool.host.shelf = [*pool.host.shelf, leaf]
    return DONE


def _evacuate(pool: PoolState, index: int, device: str) -> CommandOutcome:
    top = pool.tops[index]
    if pool.checkpoint is not None:
        return CommandOutcome(1, f"cannot remove {device}: checkpoint exists\n")
    if any(x.kind in ("raidz", "draid") for x in pool.normal_tops()):
        text = "all top-level vdevs must have the same sector size and not be raidz."
        return CommandOutcome(1, f"cannot remove {device}: invalid config; {text}\n")
    if pool.removal is not None and pool.removal.state == ACTIVE:
        return CommandOutcome(1, f"cannot remove {device}: {_BUSY}\n")
    if sum(x.free for x in pool.normal_tops() if x is not top) < top.alloc:
        return CommandOutcome(1, f"cannot remove {device}: out of space\n")
    top.removing, top.allocating = True, False
    pool.removal = Removal(index, pool.now, top.alloc)
    pool.note("vdev_remove_initiated", f"evacuation of {device} started", "notice")
    return DONE


def _aims(pool: PoolState, device: str | None) -> list[Leaf]:
    if device is not None:
        place = locate(pool, device)
        return [place[1]] if place else []
    return [leaf for top in pool.tops for leaf in top.leaves() if leaf.online]
