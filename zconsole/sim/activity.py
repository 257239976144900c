"""Work that is no scan: removal, raidz expansion, checkpoint, trim and initialize."""

from __future__ import annotations

from collections.abc import Sequence

from zconsole.sim import scan
from zconsole.sim.disk import COMPLETE, MIB, RUNNING, Flow, JobProgress, Leaf
from zconsole.sim.flow import DiskJob, DiskShare, emit, solve
from zconsole.sim.state import FINISHED, SCRUB, Checkpoint, PoolState, Relocation


def advance(pool: PoolState, leaves: Sequence[Leaf], dt: float) -> None:
    """Moves everything that is under way on by ``dt`` seconds."""
    if pool.removal is not None and pool.removal.running:
        _evacuate(pool, pool.removal, dt)
    if pool.expansion is not None and pool.expansion.running:
        _reflow(pool, pool.expansion, dt)
    if pool.checkpoint is not None:
        _hold(pool, pool.checkpoint, dt)
    for leaf in leaves:
        for kind, job in leaf.jobs.items():
            if job.state == RUNNING:
                _leaf_job(leaf, job, dt, trim=kind == "trim")


def _evacuate(pool: PoolState, removal: Relocation, dt: float) -> None:
    top = pool.tops[removal.vdev]
    others = [t for t in pool.normal_tops() if t is not top]
    shares = pool.write_shares(others)
    sources = top.sources()
    parts = [DiskShare(x, 1.0 / len(sources), "async_r", False, MIB, 4 * MIB, 2.0) for x in sources]
    for other, share in zip(others, shares, strict=True):
        parts += [
            DiskShare(x, share * other.share, "async_w", True, MIB, 4 * MIB, 2.0)
            for x in other.leaves()
            if x.online
        ]
    done = _move(pool, removal, DiskJob(removal.vdev, parts, duty=0.8), dt)
    for other, share in zip(others, shares, strict=True):
        other.alloc += done * share
    if not removal.running:
        top.kind, top.members, top.alloc, top.space = "indirect", [], 0.0, 0.0
        pool.note("vdev_remove_dev", "evacuation finished")


def _move(pool: PoolState, relocation: Relocation, job: DiskJob, dt: float) -> float:
    """Moves blocks for ``dt`` seconds, and ends when none is left; returns how many bytes."""
    solve([job], pool.host)
    done = min(job.rate * dt, relocation.total - relocation.moved)
    emit(job, done / dt, 0.0)
    relocation.moved += done
    if relocation.moved >= relocation.total - 1.0:
        relocation.state, relocation.end = FINISHED, pool.now
    return done


def _reflow(pool: PoolState, expansion: Relocation, dt: float) -> None:
    top = pool.tops[expansion.vdev]
    if pool.resilvering:
        return  # waits for the resilver (raidz_reflow_scratch_sync, vdev_raidz.c)
    share = top.share
    parts = [DiskShare(x, share, "async_r", False, MIB, 8 * MIB, 2.0) for x in top.sources()]
    parts += [DiskShare(x, share, "async_w", True, MIB, 8 * MIB, 2.0) for x in top.sources()]
    _move(pool, expansion, DiskJob(expansion.vdev, parts), dt)
    if not expansion.running:
        top.space *= top.width / (top.width - 1)  # counts once everything has been reflowed
        pool.note("vdev_attach", "raidz expansion finished")
        if pool.tunables["zfs_scrub_after_expand"]:  # raidz_reflow_complete_sync, vdev_raidz.c
            scan.begin(pool, SCRUB)


def _hold(pool: PoolState, checkpoint: Checkpoint, dt: float) -> None:
    _, write = pool.load.at(pool.t)
    if checkpoint.state == 1:
        checkpoint.space = min(pool.alloc, checkpoint.space + write * dt)
        return
    checkpoint.space -= 2e9 * dt
    if checkpoint.space <= 0.0:
        pool.checkpoint = None


def _leaf_job(leaf: Leaf, job: JobProgress, dt: float, trim: bool) -> None:
    rate = job.rate * (1.0 - leaf.used)
    step = min(rate * dt, job.total - job.done)
    job.done += step
    if not trim:
        time = leaf.media_time(MIB, 64 * MIB, 1.0, True)
        leaf.flows.append(Flow("async_w", True, step / dt / MIB, MIB, time, 1.0))
    if job.done >= job.total - 1.0:
        job.state = COMPLETE
