"""Rebalance of the simulated pools: the same seam, plans and states, over ``sim.rewrite``."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from zconsole.errors import NotFoundError, ZconsoleError
from zconsole.rebalance import predict
from zconsole.rebalance.choice import Choice, choose
from zconsole.rebalance.desk import (
    Counted,
    Explorer,
    Fill,
    JobView,
    Listing,
    Measured,
    Part,
    Proposal,
    Root,
)
from zconsole.rebalance.facts import Dataset, Mount
from zconsole.rebalance.plan import FLOOR, TARGET
from zconsole.rebalance.predict import Space
from zconsole.rebalance.settings import Settings
from zconsole.sim.pool import PoolState, top_name
from zconsole.sim.rewrite import Directory, Rewrite, scanning, spread, spread_over
from zconsole.sim.source import World

STEPS = 6
"""Counts that are told while a plan is made."""
USUAL = {"media": 0.41, "media/new": 0.08, "backup": 0.27, "vm": 0.13, "home": 0.06}
"""Directories of a pool that comes without: shares of its data."""


@dataclass(slots=True)
class _Job:
    """One simulated job."""

    name: str
    pool: PoolState
    settings: Settings
    work: Rewrite
    engine: str
    before: Mapping[str, float]
    factor: float
    """Allocated bytes a byte of a file takes, when it began."""
    dead: bool = False
    days: dict[str, dict[str, Any]] = field(default_factory=dict)


class SimulatedExplorer:
    """Directories of the simulated pools, and what they hold."""

    def __init__(self, pools: tuple[PoolState, ...]) -> None:
        self._pools = pools
        self._answers: asyncio.Queue[Listing | Measured | None] = asyncio.Queue()

    def open(self, path: str) -> None:
        """See Explorer.open."""
        names = children(self._pools, path)
        self._answers.put_nowait(Listing(path, names))
        for name in names:
            self._answers.put_nowait(measured(self._pools, f"{path}/{name}"))

    def used(self, path: str) -> None:
        """See Explorer.used."""
        self._answers.put_nowait(measured(self._pools, path))

    async def next(self) -> Listing | Measured | None:
        """See Explorer.next."""
        return await self._answers.get()

    def close(self) -> None:
        """See Explorer.close."""
        self._answers.put_nowait(None)


class SimulatedDesk:
    """See Desk. Its jobs move what the simulated pools hold, as simulated time passes."""

    def __init__(self, world: World, pause: float = 0.0) -> None:
        """``pause`` is how many seconds each step of making a plan takes."""
        self._world = world
        self._pause = pause
        self._jobs: list[_Job] = []
        for pool in world.pools:
            if not pool.directories and pool.normal_tops():
                held = sum(top.alloc for top in pool.normal_tops())
                sizes = {f"/{pool.name}/{n}": held * share for n, share in USUAL.items()}
                pool.directories = spread_over(pool, sizes)

    @property
    def command(self) -> str:
        """See Desk.command."""
        return "zconsole"

    async def jobs(self, pool: str | None) -> tuple[JobView, ...]:
        """See Desk.jobs."""
        return tuple(_shown(j) for j in reversed(self._jobs) if pool in (None, j.pool.name))

    def roots(self, pool: str) -> tuple[Root, ...]:
        """See Desk.roots."""
        return tuple(Root(f"/{p.name}", p.name) for p in self._world.pools if p.name == pool)

    async def explore(self) -> Explorer:
        """See Desk.explore."""
        return SimulatedExplorer(self._world.pools)

    async def plan(self, settings: Settings) -> AsyncIterator[Counted | Proposal]:
        """See Desk.plan."""
        made = propose(self._pool_of(settings), settings)
        for step in range(1, STEPS + 1):
            share = step / STEPS
            yield Counted(round(made.files * share), round(made.bytes * share), settings.dirs[0])
            await asyncio.sleep(self._pause)
        yield made

    async def start(self, settings: Settings) -> str:
        """See Desk.start."""
        pool = self._pool_of(settings)
        if any(job.work.running and not job.dead for job in self._jobs if job.pool is pool):
            raise ZconsoleError(
                "another job works on this pool: a simulated one does one at a time"
            )
        made = propose(pool, settings)
        if made.refused:
            raise ZconsoleError(f"refused: {made.refused}")
        work = Rewrite(_chosen(pool, settings), during_scan=settings.during_scan)
        name = f"{0xD3A0 + len(self._jobs):06x}"
        engine = made.parts[0].engine or ""
        before = {vdev.name: vdev.before for vdev in made.vdevs}
        job = _Job(name, pool, settings, work, engine, before, made.raw_factor)
        self._jobs.append(job)
        _limit(job)
        pool.rewrite = work
        return name

    async def order(
        self, job: str, order: str | None, limits: Mapping[str, Any] | None = None
    ) -> None:
        """See Desk.order."""
        found = self._find(job)
        if not found.work.running or found.dead:
            raise ZconsoleError(f"job {job} does not run")
        changed = found.settings.limits.changed(limits or {})
        found.settings = replace(found.settings, limits=changed)
        _limit(found)
        if order == "stop":
            found.work.end("stop")
        elif order is not None:
            found.work.paused = order == "pause"

    async def resume(self, job: str) -> None:
        """See Desk.resume."""
        found = self._find(job)
        found.dead = found.work.paused = False
        found.work.running, found.work.why = True, ""
        found.pool.rewrite = found.work

    def kill(self, job: str) -> None:
        """End the process of a job as a power cut would."""
        found = self._find(job)
        found.dead, found.pool.rewrite = True, None

    def last_words(self, job: str) -> str:
        """See Desk.last_words."""
        return ""

    def _find(self, name: str) -> _Job:
        for job in self._jobs:
            if job.name == name:
                return job
        raise NotFoundError(f"no job {name}")

    def _pool_of(self, settings: Settings) -> PoolState:
        for pool in self._world.pools:
            if all(directory.split("/")[1] == pool.name for directory in settings.dirs):
                return pool
        raise NotFoundError("the directories are not all on one pool: run a job for each")


def _limit(job: _Job) -> None:
    """Hand the limits of a job to what does its work, in allocated bytes."""
    limits, factor, work = job.settings.limits, job.factor, job.work
    endless = float("inf")
    work.limit = endless if limits.rate is None else limits.rate * factor
    work.most = endless if limits.max_bytes is None else limits.max_bytes * factor
    work.target = limits.until_spread
    work.floor = FLOOR if limits.min_free is None else limits.min_free


def _factor(pool: PoolState) -> float:
    """Allocated bytes a byte of a file takes."""
    tops = pool.normal_tops()
    return sum(t.alloc for t in tops) / (sum(t.alloc / t.inflation for t in tops) or 1.0)


def _spaces(pool: PoolState) -> tuple[Space, ...]:
    even = pool.version >= "2.4"
    return tuple(
        Space(
            top_name(top, index),
            int(top.space),
            top.alloc,
            float((1 if even else top.groups) * top.allocating),
        )
        for index, top in enumerate(pool.tops)
        if top in pool.normal_tops()
    )


def children(pools: tuple[PoolState, ...], path: str) -> tuple[str, ...]:
    """Names of the directories in one, sorted."""
    inside = [d.path[len(path) + 1 :] for d in _all(pools) if d.path.startswith(f"{path}/")]
    return tuple(sorted({name.split("/")[0] for name in inside}))


def measured(pools: tuple[PoolState, ...], path: str) -> Measured:
    """What a directory holds, with everything below it, in bytes of its files."""
    held = [
        (pool, d) for pool in pools for d in pool.directories if f"{d.path}/".startswith(f"{path}/")
    ]
    size = sum(d.size / _factor(pool) for pool, d in held)
    return Measured(path, round(size), sum(d.files for _, d in held))


def _all(pools: tuple[PoolState, ...]) -> list[Directory]:
    return [directory for pool in pools for directory in pool.directories]


def _chosen(pool: PoolState, settings: Settings) -> list[Directory]:
    return [
        directory
        for directory in pool.directories
        if any(f"{directory.path}/".startswith(f"{root}/") for root in settings.dirs)
    ]


def propose(pool: PoolState, settings: Settings) -> Proposal:
    """The plan of a job on a simulated pool, by the real one's arithmetic."""
    choice = _choice(pool, settings)
    parts = tuple(_part(pool, root, choice) for root in settings.dirs)
    spaces, factor = _spaces(pool), _factor(pool)
    whole = sum(part.bytes for part in parts)
    goal = settings.limits.until_spread
    limit = min(whole, settings.limits.max_bytes or whole) * factor
    raw = predict.raw_to_target(spaces, TARGET if goal is None else goal, limit)
    moved = limit if goal is None or raw is None else raw
    pinned = _pinned(pool, settings)
    after = predict.rewritten(spaces, moved, pinned=pinned)
    free = sum(space.free for space in spaces)
    floor = settings.limits.min_free if settings.limits.min_free is not None else FLOOR
    available = max(0, round((free - floor * sum(s.size for s in spaces)) / factor))
    made = Proposal(
        settings,
        parts,
        tuple(Fill(b.name, b.fill, a.fill) for b, a in zip(spaces, after, strict=True)),
        predict.spread(spaces),
        predict.spread(after),
        TARGET if goal is None else goal,
        None if raw is None else round(raw / factor),
        available,
        max((top.frag for top in pool.normal_tops()), default=None),
        factor,
        "all data alike",
        _notes(pool),
    )
    return replace(made, refused=_refusal(made, choice, round(pinned * whole)))


def _choice(pool: PoolState, settings: Settings) -> Choice:
    version = tuple(int(part) for part in pool.version.split("."))
    mount = Mount("zfs", pool.name, f"/{pool.name}")
    return choose(settings.wish, mount, Dataset(pool.name, {}), version, None, exported=False)


def _part(pool: PoolState, root: str, choice: Choice) -> Part:
    held = [d for d in pool.directories if f"{d.path}/".startswith(f"{root}/")]
    factor = _factor(pool)
    pinned = round(sum(d.size * d.pinned for d in held) / factor)
    return Part(
        root,
        sum(d.files for d in held),
        round(sum(d.size for d in held) / factor),
        choice.engine,
        choice.why,
        pinned={"snapshots": pinned, "clones": 0, "checkpoint": 0, "dedup": 0, "block_clones": 0},
        incremental=pinned,
    )


def _pinned(pool: PoolState, settings: Settings) -> float:
    held = _chosen(pool, settings)
    size = sum(directory.size for directory in held)
    return sum(d.size * d.pinned for d in held) / size if size else 0.0


def _notes(pool: PoolState) -> tuple[str, ...]:
    notes = []
    if len(pool.normal_tops()) == 1:
        notes.append("one vdev: there is nothing to balance")
    if running := scanning(pool):
        notes.append(f"a {running} is running: the job waits for its end")
    return tuple(notes)


def _refusal(made: Proposal, choice: Choice, pinned: int) -> str | None:
    if choice.engine is None:
        return f"{made.settings.dirs[0]}: {choice.why}"
    if not made.files:
        return f"{made.settings.dirs[0]}: no files"
    if made.available is not None and pinned > made.available:
        return f"needs {pinned} bytes and only {made.available} are free above the floor"
    goal, before, after = made.settings.limits.until_spread, made.spread_before, made.spread_after
    if made.settings.aim == "balance" and goal is not None and made.bytes_to_target is None:
        return f"a spread of {goal:g} cannot be reached: {before:.3f} to {after:.3f}"
    return None


def _shown(job: _Job) -> JobView:
    work, factor = job.work, job.factor
    state, why = _state(job)
    done, total = work.done / factor, work.total / factor
    rate = work.rate / factor if state == "running" and work.rate else None
    left = min(total, work.most / factor) - done
    _note_day(job, done, left / rate if rate else None)
    return JobView(
        job=job.name,
        state=state,
        why=why,
        settings=job.settings,
        limits=job.settings.limits,
        engine=job.engine,
        t=job.pool.now,
        files_done=_files_done(job),
        files_total=sum(directory.files for directory in work.directories),
        bytes_done=round(done),
        bytes_total=round(total),
        rate=rate,
        eta_seconds=left / rate if rate else None,
        current=_current(job) if state in ("running", "paused", "waiting") else None,
        before=job.before,
        skipped=Counter({"open for writing": _files_done(job) // 1500}) + Counter(),
        days=tuple(job.days.values()),
    )


def _state(job: _Job) -> tuple[str, str | None]:
    work = job.work
    if job.dead:
        return "dead", "its process is gone; resume it"
    if not work.running:
        return ("stopped" if work.why == "stop" else "finished"), work.why
    if work.paused:
        return "paused", "paused"
    return ("waiting", work.waiting) if work.waiting else ("running", None)


def _current(job: _Job) -> str | None:
    work = job.work
    for directory, left in zip(work.directories, work.left, strict=True):
        if left > 1.0:
            number = round(directory.files * (1.0 - left / directory.size))
            return f"{directory.path}/{number:06d}.bin"
    return None


def _files_done(job: _Job) -> int:
    pairs = zip(job.work.directories, job.work.left, strict=True)
    return int(sum(d.files * (1.0 - left / d.size) for d, left in pairs))


def _note_day(job: _Job, done: float, eta: float | None) -> None:
    """The line of the simulated day, as a real job keeps it."""
    if job.dead or not job.work.running:
        return
    day = time.strftime("%Y-%m-%d", time.gmtime(job.pool.now))
    job.days[day] = {
        "day": day,
        "moved_bytes": round(done),
        "files_done": _files_done(job),
        "spread": spread(job.pool),
        "files_skipped": _files_done(job) // 1500,
        "fragmentation": max((top.frag for top in job.pool.normal_tops()), default=None),
        "free_bytes": round(sum(top.free for top in job.pool.normal_tops())),
        "eta_seconds": eta,
    }
