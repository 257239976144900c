"""The lines that one run of a plan leaves in the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from zconsole.actions.plan import ActionPlan, Situation, Step
from zconsole.errors import ZconsoleError
from zconsole.pool.model import Pool
from zconsole.system.audit import Log
from zconsole.system.daemon_thread import in_daemon_thread

DONE = "done"
"""The result of a command that did what it was to do."""


class RunRecord:
    """Writes each command before and after it runs, and the whole plan once it is over."""

    def __init__(self, log: Log, clock: Callable[[], float], plan: ActionPlan) -> None:
        self._log = log
        self._clock = clock
        self._plan = plan
        self.urgent = False
        """Whether nothing may wait for a line, or be refused for the want of one."""
        self._steps: list[dict[str, Any]] = []

    async def evidence(self, situation: Situation) -> str | None:
        """Save what clearing would erase; why it could not be saved, None once it is."""
        fields = {"action": self._plan.action, **_evidence(situation.pool)}
        return await self._write("evidence", fields)

    async def begun(self, step: Step) -> str | None:
        """Write down a command that is about to run; why it could not be, None once it is."""
        return await self._write("begun", self._of(step))

    async def ended(self, step: Step, result: str, **fields: Any) -> str | None:
        """Write down what became of a command; why it could not be, None once it is."""
        self._steps.append({"argv": list(step.argv), **fields})
        line = {**self._of(step), **fields, "ok": result == DONE, "result": result}
        return await self._write("ended", line)

    async def over(self, result: str) -> str | None:
        """Write down the whole plan; why it could not be, None once it is."""
        return await self._write("action", self._summary(result))

    def left_running(self, step: Step, result: str) -> None:
        """The same two lines for a console that is being quit: nothing is waited for."""
        self._steps.append({"argv": list(step.argv)})
        self._log.note(self._clock(), "ended", **self._of(step), ok=False, result=result)
        self._log.note(self._clock(), "action", **self._summary(result))

    def _of(self, step: Step) -> dict[str, Any]:
        return {"kind": "command", **self._plan.identity, "argv": list(step.argv)}

    def _summary(self, result: str) -> dict[str, Any]:
        return {**self._plan.identity, "steps": self._steps, "result": result}

    async def _write(self, event: str, fields: Mapping[str, Any]) -> str | None:
        if self.urgent:
            self._log.note(self._clock(), event, **fields)
            return None
        try:
            await in_daemon_thread(partial(self._log.write, self._clock(), event, **fields))
        except (OSError, ZconsoleError) as error:
            return str(error)
        return None


def _evidence(pool: Pool) -> dict[str, Any]:
    """What clearing a pool's errors erases: counters of every vdev, error list, status message."""
    return {
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
