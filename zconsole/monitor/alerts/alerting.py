"""The alerts of a feed: what is worth waking somebody for is found in its rounds, and sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from zconsole.monitor.alerts.channels import BELL, notification, run_hook
from zconsole.monitor.alerts.rules import Alert, AlertRules
from zconsole.monitor.frame import Frame
from zconsole.system.async_process import ProcessRunner


@dataclass(slots=True)
class Alerting:
    """Looks at each round of a feed; hooks run beside it, without holding up the sampling."""

    rules: AlertRules
    runner: ProcessRunner
    complain: Callable[[str], None]
    """Given one line about each hook that failed."""
    hook: tuple[str, ...] = ()
    """Argument vector of a command to run for each alert; empty for none."""
    bell: bool = False
    notify: bool = False
    """Whether the terminal is to show a desktop notification."""
    _hooks: set[asyncio.Task[None]] = field(default_factory=set, init=False)

    def look(self, frames: Sequence[Frame]) -> tuple[tuple[Alert, ...], str]:
        """The alerts of a round, their hooks under way, and what the terminal is to get."""
        alerts = self.rules.look(frames)
        for alert in alerts if self.hook else ():
            task = asyncio.create_task(self._run(alert))
            self._hooks.add(task)
            task.add_done_callback(self._hooks.discard)
        return alerts, "".join(map(self._ring, alerts))

    async def aclose(self) -> None:
        """Wait for the hooks under way; each has its own deadline."""
        if self._hooks:
            await asyncio.wait(tuple(self._hooks))

    def _ring(self, alert: Alert) -> str:
        return (BELL if self.bell else "") + (notification(alert) if self.notify else "")

    async def _run(self, alert: Alert) -> None:
        failure = await run_hook(self.runner, self.hook, alert)
        if failure is not None:
            self.complain(failure)
