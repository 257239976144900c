"""Directories of the simulated pool, and the effect of rewriting their files on its balance."""

from __future__ import annotations

from zconsole.sim.disk import MIB, ONLINE
from zconsole.sim.emit import pool_state
from zconsole.sim.flow import DiskJob, DiskShare, emit, solve
from zconsole.sim.state import RESILVER, PoolState, Rewrite, SimulatedDirectory
from zconsole.system.day_hours import local_time

TURNS = 0.5
"""Share of the time that disks are busy: reads wait for writes, and writes for a txg."""


def spread_over(pool: PoolState, sizes: dict[str, float]) -> list[SimulatedDirectory]:
    """Return directories of these allocated sizes, spread over the vdevs as the pool's data is."""
    tops = pool.normal_tops()
    held = sum(top.alloc for top in tops)
    return [
        SimulatedDirectory(path, max(1, int(size / 40e6)), [size * t.alloc / held for t in tops])
        for path, size in sizes.items()
    ]


def move(pool: PoolState, directory: SimulatedDirectory, old: list[float], amount: float) -> float:
    """Rewrite up to ``amount`` allocated bytes of ``directory``; return the bytes rewritten.

    Bytes leave the vdevs in proportion to ``old``, those on them that were not moved yet, and land
    by the allocator's shares: dA_i = X·(F_i/ΣF − A_i/ΣA), weighted by data disks up to 2.3
    (metaslab.c).
    """
    tops = pool.normal_tops()
    shares = pool.write_shares(tops)
    room = min((top.free / share for top, share in zip(tops, shares, strict=True) if share))
    waiting = sum(old)
    step = min(amount, waiting, room)
    if step <= 0.0:
        return 0.0
    part = step / waiting
    for index, (top, share) in enumerate(zip(tops, shares, strict=True)):
        left = old[index] * part
        old[index] -= left
        top.alloc += step * share - left
        directory.held[index] += step * share - left
    return step


def advance(pool: PoolState, dt: float) -> None:
    """Advance a running rebalance by ``dt`` seconds, as fast as disks and its limit allow."""
    current = pool.rewrite
    if current is None or not current.running:
        return
    current.rate = 0.0
    current.waiting = "" if current.paused else _hindrance(pool, current)
    if current.paused or current.waiting:
        return
    if why := _over(pool, current):
        current.end(why)
        return
    # Less than a byte is a float's rounding, not data.
    pairs = zip(current.directories, current.old, strict=True)
    directory, old = next((each, old) for each, old in pairs if sum(old) > 1.0)
    parts = _parts(pool, old)
    job = DiskJob(-1, parts, clamp=current.limit, clamp_cause="limit", duty=TURNS)
    solve([job], pool.host)
    step = move(pool, directory, old, min(current.most - current.done, job.rate * dt))
    current.done += step
    current.rate = step / dt
    current.worked += dt
    emit(job, step / dt, 0.0)


def spread(pool: PoolState) -> float:
    """Return the difference in fill (0…1) between the fullest and emptiest normal-class vdevs."""
    fills = [top.alloc / top.space for top in pool.normal_tops()]
    return max(fills) - min(fills)


def _over(pool: PoolState, current: Rewrite) -> str:
    """Return why the job has ended, in the words of a real job; empty while it runs."""
    if not any(left > 1.0 for left in current.left):
        return "done"
    if current.done >= current.most - 1.0:
        return "byte limit reached"
    reached = current.target is not None and spread(pool) <= current.target
    return "target spread reached" if reached else ""


def _hindrance(pool: PoolState, current: Rewrite) -> str:
    """Return the condition that a job waits for, or ""."""
    if current.hours is not None and not current.hours.includes(local_time(pool.now)):
        return f"outside {current.hours}"
    if pool_state(pool) < ONLINE:
        return f"pool {pool.name} is DEGRADED"
    if not current.during_scan and (running := scanning(pool)):
        return f"a {running} is running"
    tops = pool.normal_tops()
    free = sum(top.free for top in tops) / sum(top.space for top in tops)
    return "no free space beyond what is kept free" if free <= current.floor else ""


def scanning(pool: PoolState) -> str:
    """Return the running scan: resilver, scrub or rebuild; empty if none is running."""
    if pool.rebuilding:
        return "rebuild"
    now = pool.scan
    if now is None or not now.active:
        return ""
    return "resilver" if now.function == RESILVER else "scrub"


def _parts(pool: PoolState, old: list[float]) -> list[DiskShare]:
    """Return the I/O per byte moved: reads of ``old`` bytes by vdev, writes where they land."""
    tops = pool.normal_tops()
    size, run = float(MIB), 4.0 * MIB
    parts: list[DiskShare] = []
    waiting = sum(old)
    for top, held, share in zip(tops, old, pool.write_shares(tops), strict=True):
        sources = top.sources()
        # Parity is not read, so only the data's share counts.
        each = held / waiting / top.inflation / max(1, len(sources))
        if each > 0.0:
            parts += [DiskShare(x, each, "async_r", False, size, run, 3.0) for x in sources]
        if share > 0.0:
            each = share * top.share
            parts += [DiskShare(x, each, "async_w", True, size, run, 4.0) for x in top.answering()]
    return parts
