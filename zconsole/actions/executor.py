"""Runs a confirmed plan: rechecked on a fresh sample, without a shell, logged for audit."""

from __future__ import annotations

import asyncio
import time
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from zconsole.actions.conditions import outdated
from zconsole.actions.facts import Refresher
from zconsole.actions.locate import MachineLights
from zconsole.actions.plan import (
    ActionOutcome,
    ActionPlan,
    Situation,
    Step,
    another_pool,
    failing,
    same_pool,
)
from zconsole.actions.scrub_window import MachineWindows
from zconsole.errors import ZconsoleError
from zconsole.system.async_process import CommandRunner
from zconsole.system.audit import Log
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.host import steady_clock
from zconsole.system.process import Completed, DeadlineError

TABLE = Path(__file__).parents[1] / "share" / "refusals.toml"
MEANINGS: Mapping[str, str] = tomllib.loads(TABLE.read_text("utf-8"))
"""Explanation and advice for each part of a zpool message; the first match counts.

The raw text is always shown, too.
"""
DEADLINE = 600.0
"""Seconds a command may take: a replace waits until the pool has written its configuration."""
LIGHT = 60.0
"""Seconds for switching a light: an enclosure whose processor died never answers."""

UNANSWERED = "It may still take effect: check the pool before doing anything else."
DONE = "done"
"""The result of a command that succeeded."""


@dataclass(frozen=True, slots=True)
class ExecutionEvent:
    """An event of a run; ``text`` is as printed, uncleaned."""

    kind: str
    """One of "refused", "begun", "output", "skipped", "failed", "warning" or "done"."""
    text: str
    step: Step | None = None
    meaning: str | None = None
    """Explanation of zpool's refusal for the operator."""


@dataclass(slots=True)
class Executor:
    """A runner of plans on one machine, or on one simulated pool."""

    runner: CommandRunner
    refresh: Refresher
    log: Log
    denied: str = ""
    """Why nothing may be run here (read-only, not root); empty if it may."""
    clock: Callable[[], float] = time.time
    steady: Callable[[], float] = steady_clock
    """Clock by which ``refresh`` reports the start of its sample."""
    lights: MachineLights = field(default_factory=MachineLights)
    windows: MachineWindows = field(default_factory=MachineWindows)

    async def run(
        self, plan: ActionPlan, typed: str | None = None
    ) -> AsyncIterator[ExecutionEvent]:
        """Run the plan's commands one after another until one fails.

        ``typed`` is what the operator typed to confirm. The last event is ``done``, ``failed`` or
        ``refused``. When canceled, the running command is left running, and no further one is run.
        Before each command the pool is sampled again: a sample begun before the operator confirmed,
        or before the last command ended, doesn't count. A command that failed is never tried again.
        """
        if why := self._barred(plan, typed):
            yield ExecutionEvent("refused", why)
            return
        record = RunRecord(self.log, self.clock, plan)
        for number, step in enumerate(plan.steps):
            begun = False
            async for event in self._one(plan, step, record, first=number == 0):
                begun = begun or event.kind == "begun"
                yield event
                if event.kind in ("failed", "refused"):
                    await record.over("failed" if begun else event.text)
                    return
        if why := await record.over(DONE):
            yield ExecutionEvent("warning", why)
        yield ExecutionEvent("done", plan.title)

    def ended(self, plan: ActionPlan, outcome: ActionOutcome) -> None:
        """Log how a followed action ended, without waiting for the write."""
        fields = {**plan.identity, "ok": outcome.ok, "text": outcome.text}
        self.log.note(self.clock(), "ended", kind="action", **fields)

    def _barred(self, plan: ActionPlan, typed: str | None) -> str | None:
        """Return why the plan may not run at all; None if it may."""
        if self.denied:
            return self.denied
        if plan.refused is not None:
            return plan.refused
        if not plan.steps:
            return "nothing to run"
        if plan.needs_typed is not None and typed != plan.needs_typed:
            return f'type "{plan.needs_typed}" to confirm'
        return None

    async def _one(
        self, plan: ActionPlan, step: Step, record: RunRecord, first: bool
    ) -> AsyncIterator[ExecutionEvent]:
        """Run one step: fresh sample, checks, audit records before and after, and its output."""
        # Taken before the pool is read: only a sample that begins later counts.
        since = self.steady()
        try:
            now = await self.refresh(plan.pool, since)
        except ZconsoleError as error:
            yield ExecutionEvent("failed", str(error), step)
            return
        record.urgent = plan.urgent(now)
        why = outdated(now, since, record.urgent)
        if why is None and step.skip is not None and (needless := step.skip(now)):
            yield ExecutionEvent("skipped", needless, step)
            return
        needs = (same_pool(plan.pool, plan.guid), *(plan.preconditions if first else ()))
        why = why or failing((*needs, *step.requires), now)
        # Evidence is saved before the first command erases it.
        if why is None and first and plan.saves_evidence:
            why = await record.evidence(now)
        # The record is written first: a command that can't be logged is not run, unless it is
        # urgent.
        if why := why or await record.begun(step):
            yield ExecutionEvent("refused", why, step)
            return
        if why := await self._other_pool(plan, now, record.urgent):
            await record.ended(step, f"not run: {why}")
            yield ExecutionEvent("refused", why, step)
            return
        yield ExecutionEvent("begun", step.command, step)
        async for event in self._step(step, record):
            yield event

    async def _other_pool(self, plan: ActionPlan, now: Situation, urgent: bool) -> str | None:
        """Return why the name is not this plan's pool any more, asked just before the command.

        zpool takes a pool by name only. Between this answer and zpool's own look-up lie a few
        milliseconds in which the pool could be exported and another one imported under its name. A
        command that names a device by GUID fails on another pool (one that expands can't use the
        GUID, see ``disk_path``); a scrub, ``clear`` or ``set`` would run there. A suspended pool is
        not asked, since zpool would hang; nobody can export it either.
        """
        if plan.guid is None or now.suspended:
            return None
        found = await self.refresh.guid(plan.pool)
        if found is None and not urgent:
            return f"GUID of {plan.pool} unknown: it may be another pool"
        if found is None or found == plan.guid:
            return None
        return another_pool(plan.pool, found, plan.guid)

    async def _step(self, step: Step, record: RunRecord) -> AsyncIterator[ExecutionEvent]:
        """Run the command of a step and log its result."""
        try:
            completed = await self._command(step)
        except asyncio.CancelledError:
            record.left_running(step)
            raise
        except (OSError, DeadlineError) as error:
            warning = await record.ended(step, "failed", error=str(error))
            meaning = UNANSWERED if isinstance(error, DeadlineError) else None
            events = [ExecutionEvent("failed", str(error), step, meaning)]
        else:
            result = DONE if completed.returncode == 0 else "failed"
            warning = await record.ended(
                step,
                result,
                status=completed.returncode,
                stdout=completed.stdout,
                stderr=completed.stderr,
            )
            events = list(_said(completed, step))
        if warning:
            yield ExecutionEvent("warning", warning, step)
        for event in events:
            yield event

    async def _command(self, step: Step) -> Completed:
        """Run a step's command, or switch its light or window. Raises DeadlineError, OSError."""
        if step.light is not None:
            switch = partial(self.lights.switch, step.light)
        elif step.window is not None:
            switch = partial(self.windows.switch, step.window)
        else:
            return await self.runner.run(step.argv, DEADLINE)
        try:
            # A thread that hangs on an enclosure can't be stopped; it is left alone.
            async with asyncio.timeout(LIGHT):
                said = await in_daemon_thread(switch)
        except TimeoutError:
            raise DeadlineError(f"no answer in {LIGHT:g} s") from None
        except ZconsoleError as error:
            return Completed(step.argv, 1, "", str(error))
        return Completed(step.argv, 0, said, "")


def _said(completed: Completed, step: Step) -> Iterator[ExecutionEvent]:
    """Yield a command's output and its explanation as events."""
    text = (completed.stderr + completed.stdout).strip()
    yield from (ExecutionEvent("output", line, step) for line in text.splitlines())
    if completed.returncode != 0:
        text = text or f"exit status {completed.returncode}"
        yield ExecutionEvent("failed", text, step, explain(text))
    elif meaning := explain(completed.stdout):
        yield ExecutionEvent("warning", completed.stdout.strip(), step, meaning)


@dataclass(slots=True)
class RunRecord:
    """The audit records of one run: before and after each command, and of the whole plan."""

    log: Log
    clock: Callable[[], float]
    plan: ActionPlan
    urgent: bool = False
    """Whether the run must not wait for a record, nor be refused if one can't be written."""
    steps: list[dict[str, Any]] = field(default_factory=list)
    """The results of the commands so far."""

    async def evidence(self, situation: Situation) -> str | None:
        """Log what clearing would erase; return why that failed, or None.

        That is the counters of every vdev, the error list and the status message.
        """
        pool = situation.pool
        fields = {
            "action": self.plan.action,
            "pool": pool.name,
            "guid": pool.guid,
            "state": pool.state,
            "message": pool.message,
            "error_count": pool.error_count,
            "errors": None if pool.errors is None else list(pool.errors),
            "vdevs": [
                {
                    "name": v.name,
                    "guid": v.guid,
                    "path": v.path,
                    "state": v.state,
                    "note": v.note,
                    **v.errors._asdict(),
                }
                for v in pool.root.walk()
            ],
        }
        return await self._write("evidence", fields)

    async def begun(self, step: Step) -> str | None:
        """Log a command that is about to run; return why that failed, or None."""
        return await self._write("begun", self._of(step))

    async def ended(self, step: Step, result: str, **fields: Any) -> str | None:
        """Log the result of a command; return why that failed, or None."""
        self.steps.append({"argv": list(step.argv), **fields})
        line = {**self._of(step), **fields, "ok": result == DONE, "result": result}
        return await self._write("ended", line)

    async def over(self, result: str) -> str | None:
        """Log the whole plan with its result; return why that failed, or None."""
        return await self._write("action", self._summary(result))

    def left_running(self, step: Step) -> None:
        """Log a command's end and the plan for a console that is quitting, without waiting."""
        result = "left running: the console was quit"
        self.steps.append({"argv": list(step.argv)})
        self.log.note(self.clock(), "ended", **self._of(step), ok=False, result=result)
        self.log.note(self.clock(), "action", **self._summary(result))

    def _of(self, step: Step) -> dict[str, Any]:
        return {"kind": "command", **self.plan.identity, "argv": list(step.argv)}

    def _summary(self, result: str) -> dict[str, Any]:
        return {**self.plan.identity, "steps": self.steps, "result": result}

    async def _write(self, event: str, fields: Mapping[str, Any]) -> str | None:
        if self.urgent:
            self.log.note(self.clock(), event, **fields)
            return None
        try:
            await in_daemon_thread(partial(self.log.write, self.clock(), event, **fields))
        except (OSError, ZconsoleError) as error:
            return str(error)
        return None


def explain(text: str) -> str | None:
    """Return the explanation of a zpool message; None if it is not a known one."""
    return next((meaning for part, meaning in MEANINGS.items() if part in text), None)
