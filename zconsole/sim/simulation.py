"""Advance a pool step by step, and end work that is finished.

Also covers the load of applications, and work other than scans: removal, raidz expansion,
checkpoint, trim and initialize.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from zconsole.sim import lifecycle, rewrite, scan
from zconsole.sim.disk import COMPLETE, MIB, RUNNING, Flow, JobProgress, Leaf
from zconsole.sim.flow import DiskJob, DiskShare, emit, solve
from zconsole.sim.state import (
    ERRORSCRUBBING,
    EXISTS,
    FINISHED,
    SCRUB,
    TXG_SECONDS,
    Checkpoint,
    ErrorScrub,
    PoolState,
    Relocation,
)
from zconsole.sim.topology import Top

FINE = 1.0
"""Length of a step in seconds, unless that takes too many steps."""
SECONDS_A_BLOCK = 20.0
"""Seconds that an error scrub spends on the copies of a damaged block."""


def advance(pool: PoolState, to: float, most_steps: int = 40) -> None:
    """Simulate up to ``to`` seconds in steps of one second, or in at most ``most_steps``.

    Steps lie on whole multiples of their length, so that sampling more often changes little.
    """
    span = to - pool.t
    length = FINE if span <= most_steps * FINE else span / most_steps
    while pool.t < to - 1e-9:
        end = min(to, (math.floor(pool.t / length + 1e-9) + 1) * length)
        # A step ends at the next incident, which then happens at its exact time.
        if pool.incidents and pool.incidents[0].t < end:
            end = max(pool.t, pool.incidents[0].t)
        if end > pool.t:
            step(pool, end - pool.t)
        while pool.incidents and pool.incidents[0].t <= pool.t:
            pool.incidents.pop(0).happen(pool)


def step(pool: PoolState, dt: float) -> None:
    """Advance ``pool`` by ``dt`` seconds."""
    if not pool.suspended:
        pool.limits = {}
        pool.host.cpu = 0.02
        leaves = list(pool.leaves())
        for index, leaf in enumerate(leaves):
            leaf.used = 0.0
            leaf.swing = pool.breath.at(pool.t + 41.7 * index)
        # Foreground load goes first: background work gets the device time that it leaves.
        _apply_foreground(pool, dt)
        scan.advance_rebuilds(pool, dt)
        scan.advance(pool, dt)
        rewrite.advance(pool, dt)
        _do_other_work(pool, leaves, dt)
        for leaf in leaves:
            leaf.account(dt)
        lifecycle.errors(pool, leaves, dt)
    pool.t += dt
    if not pool.suspended:
        _txgs(pool)
        lifecycle.conclude(pool)


def _txgs(pool: PoolState) -> None:
    while pool.next_txg <= pool.t:
        pool.txg += 1
        pool.next_txg += TXG_SECONDS * max(1.0, (pool.t - pool.next_txg) // TXG_SECONDS)
        for top in pool.tops:
            top.synced = top.alloc


WRITE_SIZE = 131072.0
BUSIEST = 0.85
"""Largest share of device time for foreground I/O; beyond it applications wait."""


def _apply_foreground(pool: PoolState, dt: float) -> None:
    """Add ``dt`` seconds of applications' I/O to the leaves and to the allocation."""
    read, write = pool.load.at(pool.t)
    tops = pool.normal_tops()
    held = sum(top.alloc for top in tops)
    shares = pool.write_shares(tops)
    for top, share in zip(tops, shares, strict=True):
        _read(pool, top, read * top.alloc / held if held else 0.0)
        _write(top, write * share)
        top.alloc = min(top.space, top.alloc + write * share * top.inflation * dt * pool.load.kept)
    for dataset in pool.datasets:
        dataset.read += read * dataset.reads * dt
        dataset.written += write * dataset.writes * dt
    _log(pool, write * pool.load.sync)
    _cache(pool, read, write)
    for top in pool.tops:
        _squeeze(top)


def _read(pool: PoolState, top: Top, rate: float) -> None:
    sources = top.sources()
    if rate <= 0.0 or not sources:
        return
    size = pool.load.size if top.kind in ("mirror", "disk") else pool.load.size / top.groups
    size = max(4096.0, size)
    each = rate / len(sources)
    # Reading a missing disk's data means reading more from the others.
    if top.lost() and top.kind in ("raidz", "draid"):
        each *= 1.0 + 0.5 * top.lost()
    for leaf in sources:
        _add(leaf, "sync_r", False, each / size, size, size * pool.load.sequential, 2.0)


def _write(top: Top, rate: float) -> None:
    if rate <= 0.0:
        return
    each = rate * top.inflation * top.share
    for leaf in top.answering():
        _add(leaf, "async_w", True, each / WRITE_SIZE, WRITE_SIZE, WRITE_SIZE * 6, 4.0)


def _log(pool: PoolState, rate: float) -> None:
    logs = [top for top in pool.tops if top.vclass == "log"]
    for top in logs:
        for leaf in top.answering():
            _add(leaf, "sync_w", True, rate / len(logs) / 32768.0, 32768.0, 1e9, 2.0)


def _cache(pool: PoolState, read: float, write: float) -> None:
    for leaf in pool.cache:
        feed = min(8e6, 0.05 * (read + write)) / len(pool.cache)
        hit = 0.12 * read / len(pool.cache)
        _add(leaf, "async_w", True, feed / 131072.0, 131072.0, 1e9, 1.0)
        _add(leaf, "sync_r", False, hit / 65536.0, 65536.0, 65536.0, 1.0)


def _add(
    leaf: Leaf, kind: str, write: bool, ops: float, size: float, run: float, queue: float
) -> None:
    if ops <= 0.0:
        return
    time = leaf.media_time(size, run, queue, write)
    leaf.used += ops * time
    leaf.flows.append(Flow(kind, write, ops, size, time, queue))


def _squeeze(top: Top) -> None:
    """Slow down all leaves of a top-level vdev to its busiest, for which applications wait."""
    busiest = max((leaf.used for leaf in top.leaves()), default=0.0)
    if busiest <= BUSIEST:
        return
    for leaf in top.leaves():
        leaf.used *= BUSIEST / busiest
        for flow in leaf.flows:
            flow.ops *= BUSIEST / busiest


def _do_other_work(pool: PoolState, leaves: Sequence[Leaf], dt: float) -> None:
    """Advance removal, expansion, checkpoint, error scrub and leaf jobs by ``dt`` seconds."""
    if pool.removal is not None and pool.removal.running:
        _evacuate(pool, pool.removal, dt)
    if pool.expansion is not None and pool.expansion.running:
        _reflow(pool, pool.expansion, dt)
    if pool.checkpoint is not None:
        _hold(pool, pool.checkpoint, dt)
    if pool.error_scrub is not None and pool.error_scrub.state == ERRORSCRUBBING:
        _scrub_errors(pool, pool.error_scrub, dt)
    for leaf in leaves:
        for kind, job in leaf.jobs.items():
            if job.state == RUNNING:
                _leaf_job(leaf, job, dt, trim=kind == "trim")


def _scrub_errors(pool: PoolState, scrub: ErrorScrub, dt: float) -> None:
    """Reread the next damaged blocks."""
    if scrub.paused_since:
        return
    scrub.done = min(scrub.total, scrub.done + dt / SECONDS_A_BLOCK)
    if scrub.done >= scrub.total:
        scrub.state, scrub.end = FINISHED, pool.now
        pool.note("errorscrub_finish", "error scrub finished")


def _evacuate(pool: PoolState, removal: Relocation, dt: float) -> None:
    top = pool.tops[removal.vdev]
    others = [t for t in pool.normal_tops() if t is not top]
    shares = pool.write_shares(others)
    sources = top.sources()
    parts = [DiskShare(x, 1.0 / len(sources), "async_r", False, MIB, 4 * MIB, 2.0) for x in sources]
    for other, share in zip(others, shares, strict=True):
        part = share * other.share
        parts += [DiskShare(x, part, "async_w", True, MIB, 4 * MIB, 2.0) for x in other.answering()]
    done = _move(pool, removal, DiskJob(removal.vdev, parts, duty=0.8), dt)
    for other, share in zip(others, shares, strict=True):
        other.alloc += done * share
    if not removal.running:
        for leaf in top.leaves():
            lifecycle.release(pool, leaf)
        top.kind, top.members, top.alloc, top.space = "indirect", [], 0.0, 0.0
        top.removing = False
        pool.note("vdev_remove_dev", "evacuation finished")


def _move(pool: PoolState, relocation: Relocation, job: DiskJob, dt: float) -> float:
    """Move blocks for ``dt`` seconds, and finish when none is left; return the bytes moved."""
    solve([job], pool.host)
    done = min(job.rate * dt, relocation.total - relocation.moved)
    emit(job, done / dt, 0.0)
    relocation.moved += done
    if relocation.moved >= relocation.total - 1.0:
        relocation.state, relocation.end = FINISHED, pool.now
    return done


def _reflow(pool: PoolState, expansion: Relocation, dt: float) -> None:
    top = pool.tops[expansion.vdev]
    # An expansion stays blocked until every disk of the vdev is online again.
    expansion.held = expansion.held and not all(leaf.online for leaf in top.leaves())
    if expansion.held or pool.resilvering:  # it waits for both (raidz_reflow_scratch_sync)
        return
    parts = [
        DiskShare(x, top.share, kind, write, MIB, 8 * MIB, 2.0)
        for kind, write in (("async_r", False), ("async_w", True))
        for x in top.sources()
    ]
    _move(pool, expansion, DiskJob(expansion.vdev, parts), dt)
    if not expansion.running:
        top.space *= top.width / (top.width - 1)  # counts once everything has been reflowed
        pool.note("vdev_attach", "raidz expansion finished")
        if pool.tunables["zfs_scrub_after_expand"]:  # raidz_reflow_complete_sync, vdev_raidz.c
            scan.begin(pool, SCRUB)


def _hold(pool: PoolState, checkpoint: Checkpoint, dt: float) -> None:
    _, write = pool.load.at(pool.t)
    if checkpoint.state == EXISTS:
        checkpoint.space = min(pool.alloc, checkpoint.space + write * dt)
        return
    # Discarding a checkpoint frees about 2 GB/s here.
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
