"""The duty that keeps full vdevs from new writes while a job runs, and undoes that afterwards."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from zconsole.actions.allocating import no_space, plan_allocating
from zconsole.actions.executor import Executor
from zconsole.actions.facts import Frames, MachineFacts, situation_of
from zconsole.actions.plan import ActionPlan, Facts, Situation
from zconsole.actions.target import Target, targets
from zconsole.errors import ZconsoleError
from zconsole.pool.model import Pool
from zconsole.rebalance.backend import JobView
from zconsole.rebalance.held_vdevs import PREPARING, HeldVdev, HeldVdevs, MachineHolds
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.keeper import StandingDuty
from zconsole.timeline.frame import Frame

LOOK = 5.0
"""Seconds between two looks at the jobs."""
SAMPLE = 30.0
"""Seconds between two looks at the vdevs, which somebody else may set, while nothing is due."""
IDLE_SECONDS = 3600.0
"""Seconds without moving anything after which the vdevs take new writes again."""
SWITCHED_ON = "it takes new writes: refused by ZFS, or switched on by somebody else"


class HeldVdevsKeeper(StandingDuty):
    """A duty that sets allocating=off for jobs that move files, and back on for all others."""

    name = "full vdevs"
    ends_by = "zconsole rebalance stop JOB"

    def __init__(
        self,
        records: MachineHolds,
        lock: Path | None,
        executor: Executor,
        ask: MachineFacts,
        frames: Frames,
        jobs: Callable[[], Awaitable[Sequence[JobView]]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``jobs`` returns all jobs of this machine that can be read."""
        super().__init__(lock, clock)
        self._records = records
        self._executor = executor
        self._ask = ask
        self._frames = frames
        self._jobs = jobs
        self._sampled = float("-inf")

    def is_empty(self) -> bool:
        """Return whether no vdev is held."""
        return not self._records.held()

    async def look(self) -> float:
        """Set what is due for each job; return the seconds until the next look.

        Raises ZconsoleError or OSError if jobs, pools or the file can't be read now.
        """
        jobs = {job.job: job for job in await self._jobs()}
        due: list[tuple[HeldVdevs, bool, bool]] = []
        for record in await in_daemon_thread(self._records.held):
            job = jobs.get(record.job)
            alive = job is not None and job.live
            held = await self._timed(record, job)
            idle = held.idle_since
            off = alive and (idle is None or self._executor.clock() - idle < IDLE_SECONDS)
            due.append((held, off, alive))
        is_settled = all(
            held.is_decided if off else alive and not held.ours for held, off, alive in due
        )
        if is_settled and self._clock() - self._sampled < SAMPLE:
            return LOOK
        self._sampled = self._clock()
        frames = await self._frames()
        for held, off, alive in due:
            try:
                await self._one(held, off, alive, frames)
            except (OSError, ZconsoleError) as error:  # the other pools may answer
                self._said(f"{held.pool}: {error}")
        return LOOK

    async def _timed(self, held: HeldVdevs, job: JobView | None) -> HeldVdevs:
        """Note since when a job has moved nothing."""
        if job is None:
            return held
        moves = job.state == "running" or (job.why or "").startswith(PREPARING)
        since = None if moves else held.idle_since or self._executor.clock()
        return await self._put(held, replace(held, idle_since=since))

    async def _one(self, held: HeldVdevs, off: bool, alive: bool, frames: Sequence[Frame]) -> None:
        """Set the vdevs of one job; forget the job once it is over and nothing is left to undo."""
        frame = _frame_of(frames, held)
        if frame is None or frame.problem or frame.suspended:
            return  # exported, or not answering: keep the record
        bare = situation_of(frame, Facts())
        situation = situation_of(frame, await self._ask(bare.pool, bare.suspended))
        for vdev in held.vdevs:
            after, plan = decided(vdev, situation, off)
            done = held.with_vdev(vdev, after)
            # Written first: a crash after the command must not leave allocating=off for good.
            if plan is None or after.ours:
                held = await self._put(held, done)
            if plan is not None and await self._ran(plan) and not after.ours:
                held = await self._put(held, done)
            if after.left and after.left != vdev.left:
                self._said(f"{held.pool}: {vdev.name} left alone: {after.left}")
        if not alive and not held.ours:
            await in_daemon_thread(self._records.replaced, held, None)

    async def _put(self, before: HeldVdevs, after: HeldVdevs) -> HeldVdevs:
        """Store a changed record and return it. Raises ZconsoleError if another process did."""
        if after != before and not await in_daemon_thread(self._records.replaced, before, after):
            raise ZconsoleError(f"the record of job {before.job} was changed meanwhile")
        return after

    async def _ran(self, plan: ActionPlan) -> bool:
        """Run a plan; return whether it succeeded."""
        last = ""
        async for event in self._executor.run(plan):
            last = event.kind
            self._said(f"{plan.pool}: {event.kind} {event.text}")
        return last == "done"

    def _said(self, text: str) -> None:
        log, t = self._executor.log, self._executor.clock()
        log.note(t, "noted", kind="keeper", duty=self.name, result=text)


def decided(vdev: HeldVdev, situation: Situation, off: bool) -> tuple[HeldVdev, ActionPlan | None]:
    """Return a vdev's record after the plan that is due, if one is; ``off``: as the job wants it.

    What somebody else has set stays, in both directions.
    """
    target = _target(situation.pool, vdev)
    if target is None:
        return replace(vdev, ours=False, left="it is not in the pool"), None
    vdev = replace(vdev, key=target.key)
    if vdev.ours:
        return _held(vdev, target, situation, off)
    if vdev.left or not off:
        return vdev, None
    plan = plan_allocating(situation, target.key, on=False)
    if plan.refused is not None:
        return replace(vdev, left=plan.refused), None
    return replace(vdev, ours=True), plan


def _held(
    vdev: HeldVdev, target: Target, situation: Situation, off: bool
) -> tuple[HeldVdev, ActionPlan | None]:
    """Return what becomes of a vdev that zconsole has set; ``off``: as the job wants it."""
    if target.vdev.allocating is not False:
        return replace(vdev, ours=False, left=SWITCHED_ON if off else ""), None
    full = no_space(situation, target) if off else ""  # others may have filled the pool
    if full is None:
        return vdev, None
    plan = plan_allocating(situation, target.key, on=True)
    return replace(vdev, ours=False, left=full), plan


def _target(pool: Pool, vdev: HeldVdev) -> Target | None:
    """Return the vdev of a record in a pool; by its name where a GUID is unknown."""
    tops = [target for target in targets(pool) if target.vdev is target.top]
    if vdev.key.isdigit() and any(target.vdev.guid for target in tops):
        return next((target for target in tops if target.key == vdev.key), None)
    return next((target for target in tops if target.vdev.name == vdev.name), None)


def _frame_of(frames: Sequence[Frame], held: HeldVdevs) -> Frame | None:
    """Return the frame of the pool that has the vdevs; None if it is not imported.

    Whatever the pool is called now: another one may have its name.
    """
    for frame in frames:
        guids = {target.vdev.guid for target in targets(frame.seen)} - {None}
        known = {vdev.key for vdev in held.vdevs if vdev.key.isdigit()}
        if known & guids if known and guids else frame.pool == held.pool:
            return frame
    return None
