"""Running a confirmed plan: checked again on a fresh look, without a shell, audited, followed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from zconsole.actions.audit import evidence
from zconsole.actions.plan import Outcome, Plan, Situation, Step, failing
from zconsole.actions.refusals import explain
from zconsole.errors import ZconsoleError
from zconsole.sources.blocking import Completed, DeadlineError
from zconsole.sources.runner import Runner

DEADLINE = 600.0
"""Seconds a command may take: a replace waits for the pool to write its configuration."""

Look = Callable[[str], Awaitable[Situation]]
"""A fresh look at the pool of this name. Raises ZconsoleError when there is none to be had."""


class Log(Protocol):
    """Where what was done is written down."""

    def write(self, t: float, event: str, **fields: Any) -> None:
        """Append one record. Raises OSError or ZconsoleError when it cannot."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened while a plan ran; ``text`` is as printed, uncleaned."""

    kind: str
    """refused, begun, output, skipped, failed, warning or done."""
    text: str
    step: Step | None = None
    meaning: str | None = None
    """What zpool's refusal means, in the operator's words."""


class Executor:
    """Runs plans against one machine, or one simulated pool."""

    def __init__(
        self,
        runner: Runner,
        look: Look,
        log: Log,
        denied: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._runner = runner
        self._look = look
        self._log = log
        self.denied = denied
        """Why nothing may be run here (read-only, not root); empty when it may."""
        self._clock = clock

    async def run(self, plan: Plan, typed: str | None = None) -> AsyncIterator[Event]:
        """Run the plan's commands one after another; ends at the first that fails.

        ``typed`` is what the operator typed to confirm. The last event is ``done``, ``failed`` or
        ``refused``; canceled, it leaves the command under way to itself and runs no further one.
        What ZED or another operator did meanwhile is found by the fresh look, and a
        command that failed is never tried again.
        """
        if why := self._barred(plan, typed):
            yield Event("refused", why)
            return
        results: list[dict[str, Any]] = []
        for number, step in enumerate(plan.steps):
            if event := await self._gate(plan, step, first=number == 0):
                yield event
                if event.kind == "skipped":
                    continue
                self._record(plan, results, event.text)
                return
            yield Event("begun", step.command, step)
            async for event in self._step(plan, step, results):
                yield event
                if event.kind == "failed":
                    self._record(plan, results, "failed")
                    return
        if warning := self._record(plan, results, "done"):
            yield warning
        yield Event("done", plan.title)

    async def follow(self, plan: Plan, every: float = 2.0) -> Outcome | None:
        """Look every ``every`` seconds until the plan's end shows; None when it has no end."""
        if plan.follow is None:
            return None
        while (outcome := plan.follow(await self._look(plan.pool))) is None:
            await asyncio.sleep(every)
        self.ended(plan, outcome)
        return outcome

    def ended(self, plan: Plan, outcome: Outcome) -> None:
        """Write down how a followed action ended. Raises as ``Log.write`` does."""
        self._log.write(
            self._clock(),
            "ended",
            action=plan.action,
            title=plan.title,
            pool=plan.pool,
            ok=outcome.ok,
            text=outcome.text,
        )

    def _barred(self, plan: Plan, typed: str | None) -> str | None:
        if self.denied:
            return self.denied
        if plan.refused is not None:
            return plan.refused
        if not plan.steps:
            return "there is nothing to run"
        if plan.needs_typed is not None and typed != plan.needs_typed:
            return f"to confirm, type {plan.needs_typed}"
        return None

    async def _gate(self, plan: Plan, step: Step, first: bool) -> Event | None:
        """Why a step does not run: not needed any more, or something no longer holds."""
        try:
            situation = await self._look(plan.pool)
        except ZconsoleError as error:
            return Event("failed", str(error), step)
        if step.skip is not None and (why := step.skip(situation)):
            return Event("skipped", why, step)
        needed = (*plan.preconditions, *step.requires) if first else step.requires
        if why := failing(needed, situation):
            return Event("refused", why, step)
        if first and plan.saves_evidence:
            return self._save(plan, situation, step)
        return None

    def _save(self, plan: Plan, situation: Situation, step: Step) -> Event | None:
        try:
            self._log.write(
                self._clock(), "evidence", action=plan.action, **evidence(situation.pool)
            )
        except (OSError, ZconsoleError) as error:
            return Event("refused", f"the counters could not be saved first: {error}", step)
        return None

    async def _step(
        self, plan: Plan, step: Step, results: list[dict[str, Any]]
    ) -> AsyncIterator[Event]:
        try:
            completed = await self._command(step)
        except asyncio.CancelledError:
            results.append({"argv": list(step.argv)})
            self._record(plan, results, "left running: the console was quit")
            raise
        except (OSError, DeadlineError) as error:
            results.append({"argv": list(step.argv), "error": str(error)})
            yield Event("failed", str(error), step, _unanswered(error))
            return
        results.append(
            {
                "argv": list(step.argv),
                "status": completed.returncode,
                "stdout": completed.stdout,
                "stderr": completed.stderr,
            }
        )
        text = (completed.stderr + completed.stdout).strip()
        for line in text.splitlines():
            yield Event("output", line, step)
        if completed.returncode != 0:
            yield Event(
                "failed", text or f"exit status {completed.returncode}", step, explain(text)
            )
        elif meaning := explain(completed.stdout):
            yield Event("warning", completed.stdout.strip(), step, meaning)

    async def _command(self, step: Step) -> Completed:
        if step.write is None:
            return await self._runner.run(step.argv, DEADLINE)
        path, text = step.write
        await asyncio.to_thread(Path(path).write_text, text)
        return Completed(step.argv, 0, "", "")

    def _record(self, plan: Plan, results: list[dict[str, Any]], result: str) -> Event | None:
        try:
            self._log.write(
                self._clock(),
                "action",
                action=plan.action,
                title=plan.title,
                pool=plan.pool,
                steps=results,
                result=result,
            )
        except (OSError, ZconsoleError) as error:
            return Event("warning", f"the audit log could not be written: {error}")
        return None


def _unanswered(error: Exception) -> str | None:
    if isinstance(error, DeadlineError):
        return "It may still take effect: look at the pool before doing anything else."
    return None
