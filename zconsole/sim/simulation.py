"""Time: moves a pool on, step by step, and lets what is finished end."""

from __future__ import annotations

import math

from zconsole.sim import activity, foreground, lifecycle, rebuild, rewrite, scan
from zconsole.sim.state import TXG_SECONDS, PoolState

FINE = 1.0
"""Longest step, in seconds, as long as few are needed."""


def advance(pool: PoolState, to: float, most_steps: int = 40) -> None:
    """Simulates up to ``to`` seconds, in steps of a second, or in at most ``most_steps``.

    Steps lie on whole multiples of their length, so that sampling more often changes little.
    """
    span = to - pool.t
    length = FINE if span <= most_steps * FINE else span / most_steps
    while pool.t < to - 1e-9:
        end = min(to, (math.floor(pool.t / length + 1e-9) + 1) * length)
        if pool.incidents and pool.incidents[0].t < end:
            end = max(pool.t, pool.incidents[0].t)
        if end > pool.t:
            step(pool, end - pool.t)
        while pool.incidents and pool.incidents[0].t <= pool.t:
            pool.incidents.pop(0).happen(pool)


def step(pool: PoolState, dt: float) -> None:
    """Moves ``pool`` on by ``dt`` seconds."""
    if not pool.suspended:
        pool.limits = {}
        pool.host.cpu = 0.02
        leaves = list(pool.leaves())
        for index, leaf in enumerate(leaves):
            leaf.used = 0.0
            leaf.swing = pool.breath.at(pool.t + 41.7 * index)
        foreground.advance(pool, dt)
        rebuild.advance(pool, dt)
        scan.advance(pool, dt)
        rewrite.advance(pool, dt)
        activity.advance(pool, leaves, dt)
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
