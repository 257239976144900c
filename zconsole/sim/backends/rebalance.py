"""Rebalance of the simulated pools: the real planner with simulated facts and rewrites."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from zconsole.errors import NotFoundError, ZconsoleError
from zconsole.pool.allocator import Space, raw_to_target
from zconsole.pool.model import parse_version
from zconsole.rebalance.backend import (
    Counted,
    DirectoryListing,
    Explorer,
    JobView,
    Measured,
    run_words,
)
from zconsole.rebalance.held_vdevs import MachineHolds
from zconsole.rebalance.planning import forecast, plan
from zconsole.rebalance.planning.engine_choice import COPIES, checked, choose
from zconsole.rebalance.planning.facts import Condition, Dataset, JobDirectory, PoolFacts
from zconsole.rebalance.planning.fill_new import full_vdevs
from zconsole.rebalance.planning.forecast import DirectoryPlan
from zconsole.rebalance.planning.plan_document import PlanDocument
from zconsole.rebalance.planning.settings import Settings
from zconsole.rebalance.planning.survey import Ages, Survey, TreeTotals
from zconsole.sim.disk import ONLINE
from zconsole.sim.emit import pool_state
from zconsole.sim.rewrite import scanning, spread, spread_over
from zconsole.sim.source import World
from zconsole.sim.state import PoolState, Rewrite, SimulatedDirectory
from zconsole.sim.topology import top_name
from zconsole.system.audit import Log, MemoryLog
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.day_hours import day_hours, local_time

STEPS = 6
"""Number of intermediate counts shown while a plan is made."""
USUAL = {"media": 0.41, "media/new": 0.08, "backup": 0.27, "vm": 0.13, "home": 0.06}
"""Default directories of a pool, each with its share of the data."""


_SKIPPED = ("open for writing", "changed")
"""Reasons for skipping files: copying skips open ones, rewriting in place skips changed ones."""
_SKIPPED_EACH = 1500
"""One file in so many is skipped."""
_NAMED = 20
"""Skipped files that are named, as for a console of a real job."""
_LAST = 1e-3
"""Tolerance in files for counting the last one as done, against float rounding."""


@dataclass(slots=True)
class _Job:
    """One simulated job."""

    name: str
    pool: PoolState
    settings: Settings
    work: Rewrite
    engine: str
    before: Mapping[str, float]
    began: float
    factor: float
    """Allocated bytes per byte of a file when the job began."""
    days: dict[str, dict[str, Any]] = field(default_factory=dict)
    last: JobView | None = None
    """View at its end, which is in the log then; later jobs do not change it."""


class SimulatedRebalance:
    """A RebalanceBackend whose jobs move the data of the simulated pools."""

    command = "zconsole"

    def __init__(
        self,
        world: World,
        pause: float = 0.0,
        log: Log | None = None,
        holds: MachineHolds | None = None,
    ) -> None:
        """``pause`` is the time in seconds for each step of making a plan; ``log`` is audited.

        ``holds``: the vdevs that are kept from new writes; without it, none are.
        """
        self._world = world
        self._holds = holds
        self._log = MemoryLog() if log is None else log
        self._pause = pause
        self._jobs: list[_Job] = []
        for pool in world.pools:
            if not pool.directories and pool.normal_tops():
                held = sum(top.alloc for top in pool.normal_tops())
                sizes = {f"/{pool.name}/{n}": held * share for n, share in USUAL.items()}
                pool.directories = spread_over(pool, sizes)

    async def jobs(self, pool: str | None) -> tuple[JobView, ...]:
        """Return the jobs of ``pool``, or all jobs for None, the newest first."""
        newest = [(job.pool.name, self._view(job)) for job in reversed(self._jobs)]
        return tuple(view for name, view in newest if pool in (None, name))

    def roots(self, pool: str) -> Mapping[str, str]:
        """Return the directory at which the pool is mounted, with its dataset."""
        names = [each.name for each in self._world.pools if each.name == pool]
        return {f"/{name}": name for name in names}

    async def explore(self) -> Explorer:
        """Return an explorer of the simulated directories."""
        return SimulatedExplorer(self._world.pools)

    async def plan(self, settings: Settings) -> AsyncIterator[Counted | PlanDocument]:
        """Yield counts of files and bytes, then the plan."""
        pool = self._pool_of(settings)
        made = propose(pool, settings)
        if busy := self._busy(pool):
            made = replace(made, notes=(*made.notes, busy))
        for step in range(1, STEPS + 1):
            share = step / STEPS
            yield Counted(round(made.files * share), round(made.bytes * share), settings.dirs[0])
            await asyncio.sleep(self._pause)
        yield made

    async def start(self, settings: Settings) -> str:
        """Start a job and return its name. Raises ZconsoleError if it is refused."""
        pool = self._pool_of(settings)
        if busy := self._busy(pool):
            raise ZconsoleError(busy)
        made = propose(pool, settings)
        if made.refused:
            raise ZconsoleError(f"refused: {made.refused}")
        work = Rewrite(_below(pool, *settings.dirs), during_scan=settings.during_scan)
        name = f"{0xD3A0 + len(self._jobs):06x}"
        engine = made.directories[0].engine or ""
        before = {vdev.name: vdev.fill_before for vdev in made.vdevs or ()}
        job = _Job(name, pool, settings, work, engine, before, pool.now, made.raw_factor or 1.0)
        self._jobs.append(job)
        _limit(job)
        pool.rewrite = work
        self._note("begun", job, "run")
        await self._hold(job)
        return name

    async def order(
        self, job: str, order: str | None, limits: Mapping[str, Any] | None = None
    ) -> None:
        """Change the limits of a running job, then pause or stop it if ``order`` says so.

        Raises ZconsoleError if the job is not running.
        """
        found = self._find(job)
        if not found.work.running:
            raise ZconsoleError(f"job {job} does not run")
        changed = found.settings.limits.changed(limits or {})
        found.settings = replace(found.settings, limits=changed)
        _limit(found)
        if order == "stop":
            found.work.end("stop")
        found.work.paused |= order == "pause"
        self._note("ended", found, order or "limits", ok=True, result="done")
        self._view(found)  # as of the stop

    async def resume(self, job: str) -> None:
        """Resume a paused or ended job."""
        found = self._find(job)
        found.work.paused = False
        if not found.work.running:
            found.work.resume()
            found.last = None
            self._note("begun", found, "run")
        found.pool.rewrite = found.work
        self._note("ended", found, "resume", ok=True, result="done")
        await self._hold(found)

    async def _hold(self, job: _Job) -> None:
        """Have the keeper keep full vdevs from new writes, if the job is to do so."""
        full = full_vdevs(_facts(job.pool), job.settings.limits).names
        if job.settings.fill_new and self._holds is not None:
            await in_daemon_thread(self._holds.want, job.name, job.pool.name, full)

    def last_words(self, job: str) -> str:  # noqa: ARG002  (the protocol's name)
        """Return an empty string: a simulated job prints nothing."""
        return ""

    def _note(self, event: str, job: _Job, action: str, **fields: Any) -> None:
        """Write a log line in the form that a real job and its console use."""
        argv = [self.command, "rebalance", "run", *run_words(job.settings)]
        what = {"kind": "job", "action": action, "job": job.name, "argv": argv}
        self._log.note(job.pool.now, event, **what, **fields)

    def _view(self, job: _Job) -> JobView:
        """Return the view of a job: current while it runs, frozen once it has ended."""
        view = job.last or _seen(job)
        if job.last is None and not job.work.running:
            job.last = view
            self._note("ended", job, "run", ok=True, result="done")
        return view

    def _busy(self, pool: PoolState) -> str | None:
        """Return why no job can start on a pool now, or None."""
        if any(job.work.running for job in self._jobs if job.pool is pool):
            return "another job works on this pool: a simulated one does one at a time"
        return None

    def _find(self, name: str) -> _Job:
        for job in self._jobs:
            if job.name == name:
                return job
        raise NotFoundError(f"no job {name}")

    def _pool_of(self, settings: Settings) -> PoolState:
        for pool in self._world.pools:
            if all(directory.split("/")[1] == pool.name for directory in settings.dirs):
                return pool
        raise NotFoundError(plan.SEVERAL_POOLS)


def _limit(job: _Job) -> None:
    """Apply the limits of a job to its work, converted to allocated bytes."""
    limits, work = job.settings.limits, job.work
    work.limit = inf if limits.rate is None else limits.rate * job.factor
    work.most = inf if limits.max_bytes is None else limits.max_bytes * job.factor
    work.target = limits.until_spread
    work.floor = limits.floor
    work.hours = day_hours(limits.window) if limits.window else None


def _seen(job: _Job) -> JobView:
    work, factor = job.work, job.factor
    state, why = _state(job)
    handled, left, skipped = work.done / factor, _to_do(job) / factor, _skipped(job)
    rate = work.rate / factor if state == "running" and work.rate else None
    mean_rate = work.done / factor / work.worked if work.worked else None
    pace = rate or (mean_rate if why == f"outside {work.hours}" else None)
    eta = left / pace if pace else None
    if eta is not None and work.hours is not None:
        eta = work.hours.until_worked(eta, local_time(job.pool.now))
    _note_day(job, handled, eta)
    return JobView(
        job=job.name,
        state=state,
        why=why,
        settings=job.settings,
        limits=job.settings.limits,
        engine=job.engine,
        files_done=_files_done(job),
        files_total=sum(directory.files for directory in work.directories),
        files_skipped=skipped.total(),
        bytes_handled=round(handled),
        bytes_total=round(work.total / factor),
        bytes_goal=round(handled + left),
        rate=rate,
        mean_rate=mean_rate,
        eta_seconds=eta,
        current=_current(job) if state in ("running", "paused", "waiting") else None,
        before=job.before,
        skipped=skipped,
        left_out=tuple(_left_out(job)),
        days=tuple(job.days.values()),
        began=job.began,
        t=job.pool.now,
    )


def _to_do(job: _Job) -> float:
    """Return the allocated bytes until the job ends: of its files, or less because of a limit.

    Follows JobAccounts of real jobs.
    """
    work = job.work
    left = max(0.0, min(sum(work.left), work.most - work.done))
    if not work.running and work.why != "stop":
        return 0.0
    if work.target is None:
        return left
    # Each vdev's share of the bytes still to be moved.
    held = list(map(sum, zip(*work.old, strict=True)))
    source = [each / (sum(held) or 1.0) for each in held]
    needed = raw_to_target(_spaces(job.pool), work.target, left, source)
    return left if needed is None else needed


def _state(job: _Job) -> tuple[str, str | None]:
    work = job.work
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
    return int(sum(d.files * (1.0 - left / d.size) for d, left in pairs) + _LAST)


def _skipped(job: _Job) -> Counter[str]:
    # The unary plus drops a count of 0.
    return +Counter({_SKIPPED[job.engine == "rewrite"]: _files_done(job) // _SKIPPED_EACH})


def _left_out(job: _Job) -> Iterator[Mapping[str, Any]]:
    """Yield the first skipped files; directories are done one after another."""
    ((reason, skipped),) = _skipped(job).items() or (("", 0),)
    for nth in range(1, min(skipped, _NAMED) + 1):
        number = nth * _SKIPPED_EACH - 1
        for directory in job.work.directories:
            if number < directory.files:
                path = f"{directory.path}/{number:06d}.bin"
                yield {"path": path, "outcome": "skipped", "reason": reason}
                break
            number -= directory.files


def _note_day(job: _Job, done: float, eta: float | None) -> None:
    """Update the entry of the current simulated day, as a real job keeps it, until the job ends."""
    day = time.strftime("%Y-%m-%d", time.gmtime(job.pool.now))
    job.days[day] = {
        "day": day,
        "moved_bytes": round(done),
        "files_done": _files_done(job),
        "spread": spread(job.pool),
        "files_skipped": _skipped(job).total(),
        "files_replaced": 0,
        "fragmentation": max((top.frag for top in job.pool.normal_tops()), default=None),
        "free_bytes": round(sum(top.free for top in job.pool.normal_tops())),
        "eta_seconds": eta,
    }


def _spaces(pool: PoolState) -> tuple[Space, ...]:
    """Return the normal-class vdevs in the form that the forecast takes."""
    return tuple(
        Space(
            top_name(top, index),
            int(top.space),
            top.alloc,
            float(pool.weight(top)),
            1.0 / top.inflation,
        )
        for index, top in enumerate(pool.tops)
        if top in pool.normal_tops()
    )


def propose(pool: PoolState, settings: Settings) -> PlanDocument:
    """Return the plan of a job on a simulated pool, made by the real planner."""
    facts = _facts(pool)
    plans = [_directory(pool, facts, root, settings) for root in settings.dirs]
    made = plan.judged(plans, facts, settings).document
    copies = (COPIES,) if any(each.choice.engine == "copy" for each in plans) else ()
    return replace(made, notes=(*made.notes, *copies))


def _facts(pool: PoolState) -> PoolFacts:
    spaces = _spaces(pool)
    health = "ONLINE" if pool_state(pool) == ONLINE else "DEGRADED"
    free, size = round(sum(s.free for s in spaces)), sum(s.size for s in spaces)
    return PoolFacts(
        name=pool.name,
        properties={
            "free": str(free),
            "size": str(size),
            "feature@physical_rewrite": "enabled",
        },
        spaces=spaces,
        version=parse_version(pool.version),
        fragmentation=max((top.frag for top in pool.normal_tops()), default=None),
        condition=Condition(health, scanning(pool) or None),
        used=round(sum(top.alloc / top.inflation for top in pool.normal_tops())),
        volumes=pool.volumes,
    )


def _directory(pool: PoolState, facts: PoolFacts, root: str, settings: Settings) -> DirectoryPlan:
    place = JobDirectory(os.fsencode(root), "zfs", pool.name, Dataset(pool.name, {}))
    room = forecast.above_floor(facts, settings.limits, settings.fill_new)
    found = _survey(pool, root, round(room))
    chosen = choose(settings, place, facts.version, unseen="")
    made = DirectoryPlan(
        place,
        found,
        checked(chosen, settings.rewrite_options, facts.version, facts),
        found.files,
        found.bytes,
        {"snapshots": found.snapshot_allocated},
    )
    made.spare_blocks(settings.rewrite_options)
    return made


def _survey(pool: PoolState, root: str, room: int) -> Survey:
    """Return the survey that a walk of a simulated directory would give."""
    held, factor = _below(pool, root), _factor_of(pool)
    size = round(sum(d.size for d in held) / factor)
    found = Survey(
        os.fsencode(root), Ages(), max(0, room),
        files=sum(d.files for d in held), bytes=size, allocated=size,
    )  # fmt: skip
    for name in _children((pool,), root):
        inside = _measured((pool,), f"{root}/{name}")
        found.below.note(os.fsencode(name), TreeTotals(inside.files, inside.bytes or 0))
    return found


# Directories


class SimulatedExplorer:
    """An Explorer of the directories in the simulated pools."""

    def __init__(self, pools: tuple[PoolState, ...]) -> None:
        self._pools = pools
        self._answers: asyncio.Queue[DirectoryListing | Measured | None] = asyncio.Queue()

    def open(self, path: str) -> None:
        """Queue the listing of a directory, then the size of each subdirectory."""
        names = _children(self._pools, path)
        self._answers.put_nowait(DirectoryListing(path, names))
        for name in names:
            self._answers.put_nowait(_measured(self._pools, f"{path}/{name}"))

    def used(self, path: str) -> None:
        """Queue the size of a directory."""
        self._answers.put_nowait(_measured(self._pools, path))

    async def next(self) -> DirectoryListing | Measured | None:
        """Wait for the next answer; None after ``close``."""
        return await self._answers.get()

    def close(self) -> None:
        """Queue the end of the answers."""
        self._answers.put_nowait(None)


def _factor_of(pool: PoolState) -> float:
    """Return the allocated bytes per byte of a file."""
    tops = pool.normal_tops()
    return sum(t.alloc for t in tops) / (sum(t.alloc / t.inflation for t in tops) or 1.0)


def _children(pools: tuple[PoolState, ...], path: str) -> tuple[str, ...]:
    """Return the names of the subdirectories of ``path``, sorted."""
    paths = [each.path for pool in pools for each in _below(pool, path) if each.path != path]
    return tuple(sorted({name[len(path) + 1 :].split("/")[0] for name in paths}))


def _measured(pools: tuple[PoolState, ...], path: str) -> Measured:
    """Return files and bytes of a directory with everything below it, as file sizes."""
    found = [(_factor_of(pool), _below(pool, path)) for pool in pools]
    size = sum(d.size / factor for factor, held in found for d in held)
    return Measured(path, round(size), sum(d.files for _, held in found for d in held))


def _below(pool: PoolState, *roots: str) -> list[SimulatedDirectory]:
    """Return the directories that are among ``roots`` or inside one of them."""
    inside = tuple(f"{root}/" for root in roots)
    return [each for each in pool.directories if f"{each.path}/".startswith(inside)]
