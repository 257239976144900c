"""``zpool trim`` and ``zpool initialize`` on the simulated pool."""

from __future__ import annotations

from zconsole.sim.commands import NO_DEVICE, CommandError, locate
from zconsole.sim.disk import CANCELED, RUNNING, SUSPENDED, JobProgress, Leaf
from zconsole.sim.state import PoolState

DOING = {"trim": "trimming", "initialize": "initializing"}


def change(pool: PoolState, kind: str, action: str = "start", device: str | None = None) -> None:
    """``zpool trim|initialize [-c|-s] POOL [DEVICE]``; ``action`` is start, cancel or suspend."""
    found = locate(pool, device) if device is not None else None
    aims = [found[1]] if found else []
    if device is None:
        aims = [leaf for top in pool.tops for leaf in top.leaves() if leaf.online]
    if not aims:
        raise CommandError(f"cannot {kind} '{device}': {NO_DEVICE}")
    if action == "start":
        _start(pool, kind, aims)
    else:
        _stop(pool, kind, action, aims)


def _start(pool: PoolState, kind: str, aims: list[Leaf]) -> None:
    for leaf in aims:
        if kind == "trim" and not leaf.model.flash:
            text = "trim operations are not supported by this device"
            raise CommandError(f"cannot trim '{leaf.name}': {text}")
        if kind in leaf.jobs and leaf.jobs[kind].state == RUNNING:
            raise CommandError(f"cannot {kind} '{leaf.name}': currently {DOING[kind]}")
    for leaf in aims:
        past = leaf.jobs.get(kind)
        done = past.done if past is not None and past.state == SUSPENDED else 0.0
        share = 0.6 if kind == "trim" else 0.5
        rate = 2.5e9 if kind == "trim" else leaf.model.outer * leaf.model.write * 0.7
        leaf.jobs[kind] = JobProgress(done, leaf.model.size * share, RUNNING, pool.now, rate)
    pool.note(f"{kind}_start", f"{kind} started")


def _stop(pool: PoolState, kind: str, action: str, aims: list[Leaf]) -> None:
    running = [leaf.jobs[kind] for leaf in aims if kind in leaf.jobs]
    running = [job for job in running if job.state == RUNNING]
    if not running:
        noun = "trim" if kind == "trim" else "initialization"
        failed = f"cannot {action} {DOING[kind]} '{aims[0].name}'"
        raise CommandError(f"{failed}: there is no active {noun}")
    for job in running:
        job.state, job.time = (CANCELED if action == "cancel" else SUSPENDED), pool.now
    pool.note(f"{kind}_{action}", f"{kind} {action}ed", "notice")
