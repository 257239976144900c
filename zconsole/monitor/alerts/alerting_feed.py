"""A feed with alerts: the same rounds, with what is worth waking somebody for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from zconsole.monitor.alerts.channels import BELL, notification, run_hook
from zconsole.monitor.alerts.rules import Alert, AlertRules, AlertThresholds
from zconsole.monitor.feed import Feed, Update
from zconsole.system.async_process import ProcessRunner


@dataclass(frozen=True, slots=True)
class AlertChannels:
    """How an alert is sent: a hook's argument vector, the bell, a desktop notification."""

    hook: tuple[str, ...] = ()
    bell: bool = False
    notify: bool = False

    def terminal(self, alert: Alert) -> str:
        """What to write to a terminal for an alert; empty when nothing was asked for."""
        return (BELL if self.bell else "") + (notification(alert) if self.notify else "")


class AlertingFeed:
    """Wraps any feed; hooks run beside it, without holding up the sampling."""

    def __init__(
        self,
        feed: Feed,
        thresholds: AlertThresholds,
        channels: AlertChannels,
        runner: ProcessRunner,
        complain: Callable[[str], None],
    ) -> None:
        """``complain`` is given one line about each hook that failed."""
        self._feed = feed
        self._rules = AlertRules(thresholds)
        self._channels = channels
        self._runner = runner
        self._complain = complain
        self._hooks: set[asyncio.Task[None]] = set()

    @property
    def interval(self) -> float:
        """See Feed.interval."""
        return self._feed.interval

    def set_interval(self, seconds: float) -> None:
        """See Feed.set_interval."""
        self._feed.set_interval(seconds)

    async def next(self) -> Update | None:
        """See Feed.next; alerts of the round are in it, and their hooks under way."""
        update = await self._feed.next()
        if update is None:
            return None
        alerts = self._rules.look(update.frames)
        for alert in alerts if self._channels.hook else ():
            task = asyncio.create_task(self._run(alert))
            self._hooks.add(task)
            task.add_done_callback(self._hooks.discard)
        return replace(update, alerts=alerts, ring="".join(map(self._channels.terminal, alerts)))

    async def details(self, pool: str, key: str) -> tuple[tuple[str, str], ...]:
        """See Feed.details."""
        return await self._feed.details(pool, key)

    async def aclose(self) -> None:
        """See Feed.aclose; hooks under way are waited for, each has its own deadline."""
        await self._feed.aclose()
        if self._hooks:
            await asyncio.wait(tuple(self._hooks))

    async def _run(self, alert: Alert) -> None:
        failure = await run_hook(self._runner, self._channels.hook, alert)
        if failure is not None:
            self._complain(failure)
