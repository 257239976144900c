"""The alerts of a feed: found in its rounds, and sent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import shutil
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from zconsole.errors import NotFoundError, UsageError
from zconsole.pool.model import Event
from zconsole.system.async_process import ProcessRunner
from zconsole.system.printable import clean
from zconsole.system.process import DeadlineError
from zconsole.timeline.alerts.rules import Alert, AlertRules
from zconsole.timeline.events import is_ahead
from zconsole.timeline.frame import Frame
from zconsole.units import counted

HOOK_DEADLINE = 60.0
"""Seconds a hook may run before it is killed; children that outlive it must close its output."""
RETRY_AFTER = (10.0, 60.0, 300.0)
"""Seconds after which an alert is sent again whose hook failed: a mail server may be away."""
MOST_HOOKS = 4
"""Hooks that run at once; a shelf of disks that drops has an alert for each."""
KEPT = 50
"""Alerts of a pool that stay among its events, once their message is gone."""
BELL = "\a"
LONGEST = 400
"""Characters of a notification: terminals show no more."""


@dataclass(slots=True)
class Alerting:
    """Looks at each round of a feed; hooks run in the background and delay no sample."""

    rules: AlertRules
    runner: ProcessRunner
    hook: tuple[str, ...] = ()
    """Argument vector of a command to run for each alert; empty for none."""
    bell: bool = False
    notify: bool = False
    """Whether to show a desktop notification through the terminal."""
    _hooks: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _free: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(MOST_HOOKS), init=False
    )
    _ending: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _notes: list[str] = field(default_factory=list, init=False)
    """A line about each hook that failed."""
    _events: dict[str, deque[Event]] = field(default_factory=dict, init=False)
    """The newest alerts, by pool."""

    def look(self, frames: Sequence[Frame]) -> tuple[tuple[Alert, ...], str]:
        """The alerts of a round, whose hooks are now running, and what to write to the terminal."""
        alerts = self.rules.look(frames)
        for frame in frames:
            for event in self._events.pop(frame.pool, ()):
                now = frame.failure.t if frame.failure else frame.t
                ahead = is_ahead(event.t, now)  # the clock was set back
                self._keep(frame.pool, event._replace(t=now) if ahead else event)
        for alert in alerts:
            event = Event(alert.t, alert.kind, alert.text, alert.severity, origin="console")
            self._keep(alert.pool, event)
        for alert in alerts if self.hook else ():
            task = asyncio.create_task(self._run(alert))
            self._hooks.add(task)
            task.add_done_callback(self._hooks.discard)
        bell = BELL if self.bell else ""
        return alerts, "".join(
            bell + (notification(alert) if self.notify else "") for alert in alerts
        )

    def events(self, pool: str) -> tuple[Event, ...]:
        """The newest alerts of a pool, for its frames."""
        return tuple(self._events.get(pool, ()))

    def _keep(self, pool: str, event: Event) -> None:
        self._events.setdefault(pool, deque(maxlen=KEPT)).append(event)

    def take_notes(self) -> tuple[str, ...]:
        """What went wrong with hooks since the last call."""
        notes, self._notes = tuple(self._notes), []
        return notes

    async def aclose(self) -> None:
        """Wait for hooks, which have a deadline each; none that failed is tried again."""
        self._ending.set()
        if not self._hooks:
            return
        _, unsent = await asyncio.wait(self._hooks, timeout=2 * HOOK_DEADLINE)
        for task in unsent:
            task.cancel()
        if unsent:
            self._notes.append(f"{counted(len(unsent), 'alert')} not sent: hooks take too long")

    async def _run(self, alert: Alert) -> None:
        for pause in (*RETRY_AFTER, 0.0):
            async with self._free:
                failure = await run_hook(self.runner, self.hook, alert)
            if failure is None:
                return
            if failure not in self._notes:
                self._notes.append(failure)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), pause)
                return


def notification(alert: Alert) -> str:
    """OSC 9 and OSC 777, two dialects of one desktop notification, with text made harmless.

    Terminals that know neither ignore both (iTerm2 and ConEmu read 9, rxvt reads 777).
    """
    body = clean(f"{alert.pool}: {alert.words}")[:LONGEST].replace(";", ",")
    return f"\x1b]9;zconsole {body}\x1b\\\x1b]777;notify;zconsole;{body}\x1b\\"


def hook_found(command: str) -> tuple[str, ...]:
    """The words of a hook command, split like a shell does, but never passed to one.

    Raises UsageError for an empty command or an unclosed quote, and NotFoundError for one that is
    not on this machine: a sleeping operator would never learn of it.
    """
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"--hook: {error}") from None
    if not words or not words[0]:
        raise UsageError("--hook needs a command")
    if shutil.which(words[0]) is None:
        raise NotFoundError(f"--hook: command {words[0]!r} not found")
    return words


async def run_hook(runner: ProcessRunner, argv: Sequence[str], alert: Alert) -> str | None:
    """Run the hook with an alert as one JSON line on stdin; returns what went wrong, or None."""
    said = json.dumps({"version": 1, **asdict(alert)}) + "\n"
    try:
        done = await runner.tell(argv, said, HOOK_DEADLINE)
    except DeadlineError:
        return f"the hook {argv[0]} did not end in {HOOK_DEADLINE:g} s"
    except OSError as error:
        return f"the hook {argv[0]} cannot be run: {error.strerror or error}"
    if not done.returncode:
        return None
    last = done.stderr.strip().rpartition("\n")[2]
    return f"the hook {argv[0]} exited {done.returncode}{f': {last}' if last else ''}"
