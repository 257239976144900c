"""What applications' reads and writes do to the leaves, and to what is allocated."""

from __future__ import annotations

from zconsole.sim.disk import Flow, Leaf
from zconsole.sim.state import PoolState
from zconsole.sim.topology import Top

WRITE_SIZE = 131072.0
BUSIEST = 0.85
"""Share of device time that foreground I/O may take; beyond it applications wait."""


def advance(pool: PoolState, dt: float) -> None:
    """Adds ``dt`` seconds of foreground I/O to the leaves and to the allocation."""
    read, write = pool.load.at(pool.t)
    tops = pool.normal_tops()
    held = sum(top.alloc for top in tops)
    shares = pool.write_shares(tops)
    for top, share in zip(tops, shares, strict=True):
        _read(pool, top, read * top.alloc / held if held else 0.0)
        _write(top, write * share)
        top.alloc = min(top.space, top.alloc + write * share * top.inflation * dt * pool.load.kept)
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
    if top.lost() and top.kind in ("raidz", "draid"):
        each *= 1.0 + 0.5 * top.lost()
    for leaf in sources:
        _add(leaf, "sync_r", False, each / size, size, size * pool.load.sequential, 2.0)


def _write(top: Top, rate: float) -> None:
    if rate <= 0.0:
        return
    each = rate * top.inflation * top.share
    for leaf in top.leaves():
        if leaf.online:
            _add(leaf, "async_w", True, each / WRITE_SIZE, WRITE_SIZE, WRITE_SIZE * 6, 4.0)


def _log(pool: PoolState, rate: float) -> None:
    logs = [top for top in pool.tops if top.vclass == "log"]
    for top in logs:
        for leaf in top.leaves():
            if leaf.online:
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
    """Applications wait for the busiest leaf, so all of a top-level slow down with it."""
    busiest = max((leaf.used for leaf in top.leaves()), default=0.0)
    if busiest <= BUSIEST:
        return
    for leaf in top.leaves():
        leaf.used *= BUSIEST / busiest
        for flow in leaf.flows:
            flow.ops *= BUSIEST / busiest
