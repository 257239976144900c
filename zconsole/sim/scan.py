"""The two-stage scan: metadata is walked into sorted extents, which are then issued.

Follows module/zfs/dsl_scan.c (2.3.9): extents are kept in memory up to a limit; the walk stops
while they are issued, and again when all metadata has been read. Sequential rebuilds, one for each
top-level vdev, follow vdev_rebuild.c (2.3.9): no metadata and no checksums, in LBA order.
"""

from __future__ import annotations

import math

from zconsole.sim.disk import Leaf
from zconsole.sim.flow import DiskJob, DiskShare, emit, request_size, solve
from zconsole.sim.state import (
    FINISHED,
    RESILVER,
    SCRUB,
    PoolState,
    Queue,
    SimulatedScan,
    Tunables,
)
from zconsole.sim.topology import Rebuild, Top

YIELDS_AT = 40.0
"""Foreground requests/s of a vdev at which a scan's depth has fallen two thirds of the way from its
maximum to its minimum."""
SIO_BYTES = 130.0
"""Memory of a queued block: scan_io_t with its range segment and tree nodes (dsl_scan.c)."""


def begin(
    pool: PoolState,
    function: int,
    targets: list[Leaf] | None = None,
    txgs: tuple[int, int] | None = None,
) -> SimulatedScan:
    """Start a scan of ``pool`` now, replacing any other.

    A resilver is for ``targets``, or for every device that lacks data. A scrub reads the blocks
    written in ``txgs``, or everything; with ``targets``, only what these lack.
    """
    aims = targets or (pool.lacking() if function == RESILVER else [])
    first, last = txgs or (0, pool.txg)
    # Assume that data was written at a constant rate over the pool's life.
    part = max(0, last - first) / max(1, pool.txg)
    if (before := pool.scan) is not None and before.full and before.state == FINISHED:
        pool.scrubbed = before.end
    queues = []
    for top in pool.data_tops():
        missing = max((leaf.dtl for leaf in aims if leaf in list(top.leaves())), default=0.0)
        fraction = part if function == SCRUB and not aims else missing
        queues.append(Queue(top, top.alloc, top.alloc, fraction))
        if pool.one_stage and not fraction:
            queues[-1].unscanned = 0.0
    short = min(230_000.0, 0.0001 * pool.alloc)
    for leaf in pool.leaves():
        leaf.scan_processed = 0.0
    scan = SimulatedScan(function, pool.now, queues, targets=aims, short=short, pass_start=pool.now)
    scan.checkpoint = pool.t
    scan.txg, scan.txgs = pool.txg, (first, last)
    pool.scan = scan
    word = "scrub" if function == SCRUB else "resilver"
    pool.note(f"{word}_start", f"{word} started")
    return scan


def walked(scan: SimulatedScan, left: float | None = None) -> None:
    """Set up ``scan`` as if all metadata was walked, with ``left`` bytes to issue (None: all)."""
    need = sum(queue.total * queue.fraction for queue in scan.queues)
    share = 1.0 if left is None or not need else min(1.0, left / need)
    for queue in scan.queues:
        scan.skipped += queue.total * (1.0 - queue.fraction)
        queue.queued = queue.total * queue.fraction * share
        queue.issued = queue.total * queue.fraction - queue.queued
        queue.unscanned = 0.0
    scan.clearing = True
    scan.pass_examined, scan.pass_issued = scan.total, scan.issued


def advance(pool: PoolState, dt: float) -> None:
    """Advance the running scan by ``dt`` seconds."""
    scan = pool.scan
    if scan is None or not scan.running or pool.tunables["zfs_scan_suspend_progress"]:
        return
    if pool.one_stage:
        _issue(pool, scan, dt)
    elif scan.clearing:
        _issue(pool, scan, dt)
        _stop_clearing(pool, scan)
    else:
        _walk(scan, _walk_rate(pool, scan) * dt)
        _start_clearing(pool, scan)


def ended(scan: SimulatedScan) -> bool:
    """Whether everything has been walked and issued."""
    return all(q.unscanned + q.queued < 1.0 for q in scan.queues)


def memory_limit(pool: PoolState) -> float:
    """Return the bytes for queues (dsl_scan_should_clear: RAM / zfs_scan_mem_lim_fact)."""
    return pool.host.memory / max(1, pool.tunables["zfs_scan_mem_lim_fact"])


def _memory(pool: PoolState, scan: SimulatedScan) -> float:
    return scan.queued / pool.layout.block * SIO_BYTES


def _start_clearing(pool: PoolState, scan: SimulatedScan) -> None:
    walked = all(queue.unscanned < 1.0 for queue in scan.queues)
    due = pool.t - scan.checkpoint >= pool.tunables["zfs_scan_checkpoint_intval"]
    if not (walked or due or _memory(pool, scan) >= memory_limit(pool)):
        return
    scan.clearing = True
    for queue in scan.queues:
        left = queue.queued + queue.unscanned * queue.fraction
        queue.density = queue.queued / left if left else 1.0
    # The pass starts over when all metadata has been walked: its rates then describe issuing only
    # (spa_scan_stat_init in dsl_scan_sync).
    if walked:
        scan.pass_start, scan.pass_examined, scan.pass_issued = pool.now, 0.0, 0.0
        scan.spent_paused = 0.0


def _stop_clearing(pool: PoolState, scan: SimulatedScan) -> None:
    if all(queue.unscanned < 1.0 for queue in scan.queues):
        return
    due = pool.t - scan.checkpoint >= pool.tunables["zfs_scan_checkpoint_intval"]
    soft = 1.0 - 1.0 / max(2, pool.tunables["zfs_scan_mem_lim_soft_fact"])
    # At a checkpoint the queues are emptied completely; otherwise they only go down to the soft
    # limit (scn_checkpointing and dsl_scan_should_clear).
    if due and scan.queued >= 1.0:
        return
    if due:
        scan.checkpoint = pool.t
    elif _memory(pool, scan) > soft * memory_limit(pool):
        return
    scan.clearing = False


def _walk_rate(pool: PoolState, scan: SimulatedScan) -> float:
    """Return data bytes/s covered by reading metadata; adds those reads to the leaves."""
    # Special vdevs hold all metadata, if the pool has any.
    special = [top for top in pool.data_tops() if top.vclass == "special"]
    leaves = [leaf for top in special or pool.normal_tops() for leaf in top.sources()]
    active = pool.tunables["zfs_vdev_scrub_max_active"]
    # Without prefetch, each metadata read waits for the one before it.
    prefetch = 0.3 if pool.tunables["zfs_no_scrub_prefetch"] else 1.0
    parts = [DiskShare(leaf, 1.0, "scrub", False, 16384.0, 16384.0, active) for leaf in leaves]
    rate = 0.0
    for part in parts:
        capacity = part.capacity() * 0.7 * prefetch
        emit(DiskJob(0, [part]), capacity, 0.0)
        rate += capacity / part.size * pool.layout.span
    return min(rate * duty(pool, scan.function, pool.tunables), pool.host.throughput * 4)


def _walk(scan: SimulatedScan, step: float) -> None:
    """Walk the metadata of ``step`` bytes of data, spread over the top-level vdevs."""
    unscanned = sum(queue.unscanned for queue in scan.queues)
    share = min(1.0, step / unscanned) if unscanned else 0.0
    for queue in scan.queues:
        walked = queue.unscanned * share
        queue.unscanned -= walked
        scan.skipped += walked * (1.0 - queue.fraction)
        scan.pass_examined += walked
        queue.queued += walked * queue.fraction


def duty(pool: PoolState, function: int, knobs: Tunables) -> float:
    """Return the share of the time in which a scan may run, given how busy txgs are with writes.

    With a txg waiting, a scan yields after ``zfs_…_min_time_ms`` (dsl_scan_check_suspend).
    """
    name = "zfs_scrub_min_time_ms" if function == SCRUB else "zfs_resilver_min_time_ms"
    if pool.one_stage and function == SCRUB:
        name = "zfs_scan_min_time_ms"
    least = knobs[name] / 1000.0
    used = max((leaf.used for top in pool.normal_tops() for leaf in top.leaves()), default=0.0)
    _, write = pool.load.at(pool.t)
    if write <= 0.0:
        return 1.0
    syncing = 5.0 * min(0.9, used)
    period = max(5.0 * (1.0 - min(1.0, pool.load.sync)), least + syncing + 0.5 * pool.load.sync)
    return min(1.0, max(least, period - syncing) / period)


def jobs(pool: PoolState, scan: SimulatedScan) -> list[tuple[Queue, DiskJob]]:
    """Return a job for every top-level vdev with something to issue."""
    found = []
    share, usual = (duty(pool, scan.function, each) for each in (pool.tunables, pool.usual))
    for index, queue in enumerate(scan.queues):
        if queue.queued >= 1.0 or (pool.one_stage and queue.unscanned >= 1.0):
            job = _job(pool, scan, queue, index)
            job.duty, job.busy = share, usual
            found.append((queue, job))
    return found


def _job(pool: PoolState, scan: SimulatedScan, queue: Queue, index: int) -> DiskJob:
    """Return the reads and repair writes of issuing extents of one top-level vdev."""
    top, layout, knobs = queue.top, pool.layout, pool.tunables
    ratio = max(1.0, layout.run / layout.block)
    # The more of the remaining data is in memory, the longer the runs that sorting finds.
    run = layout.old_run if pool.one_stage else layout.block * ratio ** (queue.density**0.5)
    leaf_run = max(4096.0, run * top.share)
    size = request_size(leaf_run, layout.block * top.share)
    limit = max(1.0, knobs["zfs_scan_vdev_limit"] / size) if not pool.one_stage else 32.0
    reads = min(limit, _most_in_flight(pool, knobs))
    usual = _most_in_flight(pool, pool.usual)
    sources = top.sources()
    per_source = top.share
    # A resilver reads one copy of each block in a mirror; a scrub reads all of them.
    if top.kind == "mirror" and scan.function == RESILVER:
        per_source = 1.0 / max(1, len(sources))
    # A slow disk gains nothing from a queue deeper than the default.
    parts = [
        DiskShare(x, per_source, "scrub", False, size, leaf_run, reads, most)
        for x in sources
        for most in (usual if x.slow < 1.0 else math.inf,)
    ]
    writes = min(limit, float(knobs["zfs_vdev_async_write_min_active"]))
    members = list(top.leaves())
    parts += [
        DiskShare(leaf, top.share, "async_w", True, size, leaf_run, writes)
        for leaf in scan.targets
        if leaf in members and leaf.online and not leaf.deferred
    ]
    _place(queue)
    return DiskJob(index, parts)


def _most_in_flight(pool: PoolState, knobs: Tunables) -> float:
    """Return how many requests of the scan a leaf may have in flight.

    The maximum of the tunables on an idle pool; with more foreground I/O it falls to their minimum
    (vdev_queue_class_max_active). As in the kernel, asynchronous writes don't count as such.
    """
    least = knobs["zfs_vdev_scrub_min_active"]
    most = max(least, knobs["zfs_vdev_scrub_max_active"])
    read, write = pool.load.at(pool.t)
    foreground = (read + write * pool.load.sync) / max(pool.load.size, 1.0)  # requests/s
    on_each = foreground / max(1, len(pool.normal_tops()))
    return max(1.0, least + (most - least) * math.exp(-on_each / YIELDS_AT))


def _place(queue: Queue) -> None:
    """Move the heads to the position that sorted issuing has reached."""
    top = queue.top
    fill = top.alloc / top.space if top.space else 0.0
    where = fill * min(1.0, queue.issued / max(1.0, queue.total * queue.fraction))
    for leaf in top.leaves():
        leaf.position = where


def _delayed(pool: PoolState, scan: SimulatedScan) -> float:
    """Return the bytes/s that scrub_delay or resilver_delay allow (dsl_scan.c@0.7.13).

    They apply only next to other I/O; infinite otherwise.
    """
    name = "zfs_scrub_delay" if scan.function == SCRUB else "zfs_resilver_delay"
    ticks = pool.tunables[name]
    read, write = pool.load.at(pool.t)
    idle = (read + write) / max(1.0, pool.load.size) < 100.0 / max(
        1, pool.tunables["zfs_scan_idle"]
    )
    if not ticks or idle:
        return float("inf")
    return 100.0 / ticks * pool.layout.block


def _issue(pool: PoolState, scan: SimulatedScan, dt: float) -> None:
    """Issue for ``dt`` seconds: from the queues, or straight from the walk in one stage."""
    pairs = jobs(pool, scan)
    for _, job in pairs:
        job.clamp, job.clamp_cause = _delayed(pool, scan) / len(pairs), "delay"
    solve([job for _, job in pairs], pool.host)
    for queue, job in pairs:
        step = _take(pool, scan, queue, job.rate * dt)
        # Random I/O with little of the data in memory: more memory would sort it better.
        scarce = job.cause == "random" and queue.density < 0.5
        pool.limits[job.key] = "memory" if scarce else job.cause
        for part in job.parts:
            if part.write:  # a repair
                part.leaf.scan_processed += step * part.share
                scan.processed += step * part.share
        emit(job, step / dt, float(pool.tunables["zfs_scan_vdev_limit"]))


def _take(pool: PoolState, scan: SimulatedScan, queue: Queue, most: float) -> float:
    """Take up to ``most`` bytes from the data to be issued; return the bytes taken."""
    if pool.one_stage:
        step = min(most, queue.unscanned * queue.fraction)
        queue.unscanned -= step / queue.fraction
        scan.skipped += step / queue.fraction - step
        scan.pass_examined += step / queue.fraction
    else:
        step = min(most, queue.queued)
        queue.queued -= step
    queue.issued += step
    scan.pass_issued += step
    return step


# Sequential rebuilds


def begin_rebuild(pool: PoolState, top: Top, targets: list[Leaf]) -> None:
    """Start (or restart) the rebuild of ``targets`` in ``top``."""
    for leaf in targets:
        leaf.rebuilding, leaf.rebuild_processed = True, 0.0
    # Of a dRAID, only groups that contain the missing device (vdev_rebuild_range).
    group = top.data_disks + top.nparity if top.kind == "draid" else top.width
    top.rebuild = Rebuild(pool.now, top.alloc, targets, needed=min(1.0, group / top.width))
    pool.note("resilver_start", "sequential rebuild started")


def advance_rebuilds(pool: PoolState, dt: float) -> None:
    """Advance every active rebuild by ``dt`` seconds."""
    pairs = []
    for index, top in enumerate(pool.tops):
        if top.rebuild is not None and top.rebuild.active:
            pairs.append((top, top.rebuild, _rebuild_job(pool, top, top.rebuild, index)))
    solve([job for _, _, job in pairs], pool.host)
    for top, rebuild, job in pairs:
        step = min(job.rate * dt, max(0.0, rebuild.estimate - rebuild.scanned))
        rebuild.scanned += step
        rebuild.elapsed += dt
        rebuild.rebuilt += step * rebuild.needed
        for part in job.parts:
            if part.write:
                part.leaf.rebuild_processed += step * part.share
        # Writes to a distributed spare land on the disks, and count for the spare as well.
        for leaf in rebuild.targets:
            if leaf.kind == "dspare":
                leaf.rebuild_processed += step * rebuild.needed * top.share
        pool.limits[job.key] = job.cause
        emit(job, step / dt, float(pool.tunables["zfs_rebuild_vdev_limit"]))


def _rebuild_job(pool: PoolState, top: Top, rebuild: Rebuild, index: int) -> DiskJob:
    knobs = pool.tunables
    size = float(knobs["zfs_rebuild_max_segment"])
    run = max(size, pool.layout.run / 2)
    queue = max(
        1.0, min(knobs["zfs_vdev_rebuild_max_active"], knobs["zfs_rebuild_vdev_limit"] / size)
    )
    sources = top.sources()
    share = 1.0 / len(sources) if top.kind == "mirror" and sources else top.share
    share *= rebuild.needed
    parts = [DiskShare(x, share, "rebuild", False, size, run, queue) for x in sources]
    for leaf in rebuild.targets:
        spread = sources if leaf.kind == "dspare" else [leaf]
        for x in spread:
            part = top.share * rebuild.needed / len(spread)
            parts.append(DiskShare(x, part, "rebuild", True, size, run, queue))
    fill = top.alloc / top.space if top.space else 0.0
    for leaf in top.leaves():
        leaf.position = fill * min(1.0, rebuild.scanned / max(1.0, rebuild.estimate))
    return DiskJob(index, parts, weight=0.4 * rebuild.needed)  # no checksums to verify
