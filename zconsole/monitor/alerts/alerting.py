"""The alerts of a feed: what is worth waking somebody for is found in its rounds, and sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zconsole.monitor.alerts.channels import BELL, notification, run_hook
from zconsole.monitor.alerts.rules import Alert, AlertRules, AlertThresholds
from zconsole.monitor.frame import Frame
from zconsole.system.async_process import HookRunner


@dataclass(frozen=True, slots=True)
class AlertChannels:
    """How an alert is sent: a hook's argument vector, the bell, a desktop notification."""

    hook: tuple[str, ...] = ()
    bell: bool = False
    notify: bool = False

    def terminal(self, alert: Alert) -> str:
        """What to write to a terminal for an alert; empty when nothing was asked for."""
        return (BELL if self.bell else "") + (notification(alert) if self.notify else "")


class Alerting:
    """Looks at each round of a feed; hooks run beside it, without holding up the sampling."""

    def __init__(
        self,
        thresholds: AlertThresholds,
        channels: AlertChannels,
        runner: HookRunner,
        complain: Callable[[str], None],
    ) -> None:
        """``complain`` is given one line about each hook that failed."""
        self._rules = AlertRules(thresholds)
        self._channels = channels
        self._runner = runner
        self._complain = complain
        self._hooks: set[asyncio.Task[None]] = set()

    def look(self, frames: Sequence[Frame]) -> tuple[tuple[Alert, ...], str]:
        """The alerts of a round, their hooks under way, and what the terminal is to get."""
        alerts = self._rules.look(frames)
        for alert in alerts if self._channels.hook else ():
            task = asyncio.create_task(self._run(alert))
            self._hooks.add(task)
            task.add_done_callback(self._hooks.discard)
        return alerts, "".join(map(self._channels.terminal, alerts))

    async def aclose(self) -> None:
        """Wait for the hooks under way; each has its own deadline."""
        if self._hooks:
            await asyncio.wait(tuple(self._hooks))

    async def _run(self, alert: Alert) -> None:
        failure = await run_hook(self._runner, self._channels.hook, alert)
        if failure is not None:
            self._complain(failure)
