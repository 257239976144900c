"""Sequential rebuild of one top-level vdev (vdev_rebuild.c, 2.3.9): no checksums, LBA order."""

from __future__ import annotations

from zconsole.sim.disk import Leaf
from zconsole.sim.flow import DiskJob, DiskShare, emit, solve
from zconsole.sim.state import PoolState
from zconsole.sim.topology import Rebuild, Top


def begin(pool: PoolState, top: Top, targets: list[Leaf]) -> None:
    """Start (or restart) the rebuild of ``targets`` in ``top``."""
    for leaf in targets:
        leaf.rebuilding, leaf.rebuild_processed = True, 0.0
    top.rebuild = Rebuild(pool.now, top.alloc, targets, needed=_needed(top))
    pool.note("resilver_start", "sequential rebuild started")


def _needed(top: Top) -> float:
    """Return the share of a dRAID's groups that contain the missing device (vdev_rebuild_range)."""
    return min(1.0, (top.data_disks + top.nparity) / top.width) if top.kind == "draid" else 1.0


def advance(pool: PoolState, dt: float) -> None:
    """Advance every active rebuild by ``dt`` seconds."""
    pairs = []
    for index, top in enumerate(pool.tops):
        if top.rebuild is not None and top.rebuild.active:
            pairs.append((top, top.rebuild, _job(pool, top, top.rebuild, index)))
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


def _job(pool: PoolState, top: Top, rebuild: Rebuild, index: int) -> DiskJob:
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
