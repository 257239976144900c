"""The vigil together with those it wakes, for the console and for ``watch``."""

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
    """How to tell: a hook's argument vector, the bell, a desktop notification."""

    hook: tuple[str, ...] = ()
    bell: bool = False
    notify: bool = False

    def terminal(self, alert: Alert) -> str:
        """What to write to a terminal for an alert; empty when nothing was asked for."""
        return (BELL if self.bell else "") + (notification(alert) if self.notify else "")


class AlertDispatcher:
    """Looks at every round and runs the hook for what is new, without holding up the sampling."""

    def __init__(
        self,
        rules: AlertThresholds,
        ways: AlertChannels,
        teller: HookRunner,
        complain: Callable[[str], None],
    ) -> None:
        """``complain`` is told in one line of a hook that failed."""
        self.ways = ways
        self._vigil = AlertRules(rules)
        self._teller = teller
        self._complain = complain
        self._hooks: set[asyncio.Task[None]] = set()

    def look(self, frames: Sequence[Frame]) -> tuple[Alert, ...]:
        """The alerts of this round; their hooks are under way. Needs a running event loop."""
        alerts = self._vigil.look(frames)
        for alert in alerts if self.ways.hook else ():
            task = asyncio.create_task(self._run(alert))
            self._hooks.add(task)
            task.add_done_callback(self._hooks.discard)
        return alerts

    async def aclose(self) -> None:
        """Wait for the hooks under way; each has its own deadline."""
        if self._hooks:
            await asyncio.wait(tuple(self._hooks))

    async def _run(self, alert: Alert) -> None:
        trouble = await run_hook(self._teller, self.ways.hook, alert)
        if trouble is not None:
            self._complain(trouble)
