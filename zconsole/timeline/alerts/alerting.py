"""The alerts of a feed: found in its rounds, and sent to hooks and the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import shlex
import shutil
from collections import deque
from collections.abc import Iterable, Sequence, Set
from dataclasses import asdict, dataclass, field

from zconsole.errors import NotFoundError, UsageError
from zconsole.pool.model import Event
from zconsole.system.async_process import ProcessRunner
from zconsole.system.host import is_due
from zconsole.system.printable import clean
from zconsole.system.process import DeadlineError
from zconsole.system.record_file import LockedStore, encoded, record
from zconsole.system.state_dir import StateError
from zconsole.timeline.alerts.rules import (
    NOT_RESTORED,
    QUIET,
    UNREACHABLE_AFTER,
    Alert,
    AlertRules,
    Condition,
)
from zconsole.timeline.events import is_ahead
from zconsole.timeline.frame import Frame
from zconsole.units import counted

HOOK_DEADLINE = 60.0
"""Seconds a hook may run before it is killed; children that outlive it must close its output."""
RETRY_AFTER = (10.0, 60.0, 300.0)
"""Seconds after which an alert is sent again if its hook failed: a mail server may be down."""
MOST_HOOKS = 4
"""Hooks that run at the same time; a shelf that disconnects has an alert for each disk."""
KEPT = 50
"""Alerts of a pool that stay among its events after their message has disappeared."""
BELL = "\a"
LONGEST = 400
"""Characters of a notification; terminals show no more."""


RESTART = 900.0
"""Seconds between two watches after which the second sends lasting conditions again: they may have
passed and returned in between."""
REFRESH = 300.0
"""Seconds after which lasting conditions are saved again, in case the watch is killed."""
SETTLE = 0.5
"""Seconds to wait at the end for pending writes."""
AFTER_A_WHILE = ("scrub-overdue", "spare", "stalled", "unreachable")
"""Kinds of conditions that the first sample may not show yet.

They are detected once they have lasted for a while, or by what ``zpool history`` says later.
"""


@dataclass(frozen=True, slots=True)
class _SentFile:
    """Conditions that were sent to a hook and still held at ``t`` (epoch seconds)."""

    t: float
    sent: tuple[Condition, ...]
    version: int = 1


class SentAlerts:
    """Conditions sent to a hook that still last, so that they are not sent again after a restart.

    Saved in a file in the state directory, one for each combination of hook and watched pools.
    """

    def __init__(self, store: LockedStore, whose: str) -> None:
        """``whose`` identifies the hook and what is watched for it."""
        name = hashlib.sha256(whose.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        self._name = f"alerts-{name}.json"
        self._store = store
        self._sent: set[Condition] = set()
        self._kept: _SentFile | None = None
        """The file's contents as last read or written."""
        self._recalled: set[Condition] = set()
        """Conditions that an earlier watch sent, and that this one has not yet found again or given
        up."""
        self._began = 0.0

    def recall(self, at: float) -> None:
        """Load what an earlier watch sent, as of ``at`` (epoch seconds). Raises StateError."""
        self._kept, self._began = _SentFile(at, ()), at
        with contextlib.suppress(FileNotFoundError):
            self._kept = self._store.read_file(self._name, record(_SentFile))
            if abs(at - self._kept.t) <= RESTART:
                self._recalled = set(self._kept.sent)

    @property
    def has_begun(self) -> bool:
        """True once the file was asked for."""
        return self._kept is not None

    def unsent(
        self, alerts: Sequence[Alert], seen: Set[str], at: float, wait: float
    ) -> Sequence[Alert]:
        """Return the alerts of a round that an earlier watch has not sent.

        ``seen`` are pools with a sample. ``wait`` is the number of seconds after which even a
        condition of ``AFTER_A_WHILE`` would have been found.
        """
        known = {alert.condition for alert in alerts} & self._recalled
        self._sent |= known
        self._recalled = {
            (pool, kind, subject)
            for pool, kind, subject in self._recalled - known
            if at - self._began < wait and (pool not in seen or kind in AFTER_A_WHILE)
        }
        return [alert for alert in alerts if alert.condition not in known]

    def add(self, alert: Alert) -> None:
        """Record that the alert was sent to the hook."""
        self._sent.add(alert.condition)
        if alert.kind == NOT_RESTORED:
            self._sent.add((alert.pool, NOT_RESTORED, ""))

    def keep(self, standing: Iterable[Condition], at: float, at_once: bool = False) -> None:
        """Save in the background what still lasts at ``at``, if that is due or ``at_once``.

        Raises StateError if the previous write failed.
        """
        self._sent &= set(standing)
        sent = tuple(sorted(self._sent | self._recalled))
        kept = self._kept or _SentFile(at, ())
        due = at_once or is_due(at, kept.t, REFRESH)
        if set(sent) != set(kept.sent) or (sent and due):
            # Before writing: a disk that fails is not tried again every second.
            self._kept = _SentFile(at, sent)
            lock = f"{self._name}.lock"
            # Only the first console writes.
            if self._store.mine(lock):
                self._store.put(self._name, encoded(self._kept), lock)

    def close(self) -> None:
        """Wait up to SETTLE seconds for pending writes."""
        self._store.close()
        if self._store.writer is not None:
            self._store.writer.settle(SETTLE)


@dataclass(slots=True)
class Alerting:
    """Finds alerts in each round of a feed; hooks run in the background and delay no sample."""

    rules: AlertRules
    runner: ProcessRunner
    hook: tuple[str, ...] = ()
    """Argument vector of a command to run for each alert; empty for none."""
    bell: bool = False
    notify: bool = False
    """True to show a desktop notification through the terminal."""
    sent: SentAlerts | None = None
    """Conditions that are not sent to the hook again."""
    _hooks: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _free: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(MOST_HOOKS), init=False
    )
    _ending: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _notes: list[str] = field(default_factory=list, init=False)
    """A line about each hook that failed."""
    _events: dict[str, deque[Event]] = field(default_factory=dict, init=False)
    """The newest alerts, by pool."""
    _t: float = field(default=0.0, init=False)
    """Epoch seconds of the newest round."""

    def look(self, frames: Sequence[Frame]) -> tuple[tuple[Alert, ...], str]:
        """Find the alerts of a round and start their hooks.

        Returns the alerts, and what to write to the terminal.
        """
        alerts = self.rules.look(frames)
        for frame in frames:
            for event in self._events.pop(frame.pool, ()):
                now = frame.failure.t if frame.failure else frame.t
                ahead = is_ahead(event.t, now)  # the clock was set back
                self._keep(frame.pool, event._replace(t=now) if ahead else event)
        for alert in alerts:
            event = Event(alert.t, alert.kind, alert.text, alert.severity, origin="console")
            self._keep(alert.pool, event)
        for alert in self._for_hook(alerts, frames) if self.hook else ():
            task = asyncio.create_task(self._run(alert))
            self._hooks.add(task)
            task.add_done_callback(self._hooks.discard)
        bell = BELL if self.bell else ""
        return alerts, "".join(
            bell + (notification(alert) if self.notify else "") for alert in alerts
        )

    def _for_hook(self, alerts: Sequence[Alert], frames: Sequence[Frame]) -> Sequence[Alert]:
        """Return the alerts of a round to send, and save those that were sent and still last."""
        if self.sent is None or not frames:
            return alerts
        self._t = t = max((frame.failure or frame).t for frame in frames)
        try:
            if not self.sent.has_begun:
                self.sent.recall(t)
            seen = {frame.pool for frame in frames if not frame.problem}
            wait = max(self.rules.stalled_after, UNREACHABLE_AFTER) + QUIET
            alerts = self.sent.unsent(alerts, seen, t, wait)
            self.sent.keep(self.rules.standing(), t)
        except StateError as error:
            self._note(f"sent alerts not kept: {error}")
        return alerts

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)

    def events(self, pool: str) -> tuple[Event, ...]:
        """Return the newest alerts of a pool, for its frames."""
        return tuple(self._events.get(pool, ()))

    def _keep(self, pool: str, event: Event) -> None:
        self._events.setdefault(pool, deque(maxlen=KEPT)).append(event)

    @property
    def is_sending(self) -> bool:
        """Whether the hook runs, or waits to run again, for some alert."""
        return bool(self._hooks)

    def take_notes(self) -> tuple[str, ...]:
        """Return problems with hooks since the last call."""
        notes, self._notes = tuple(self._notes), []
        return notes

    async def aclose(self) -> None:
        """Wait for running hooks, which have a deadline each; failed ones are not retried."""
        self._ending.set()
        await self._finish()
        if self.sent is not None:
            with contextlib.suppress(StateError):
                self.sent.keep(self.rules.standing(), self._t, at_once=True)
            self.sent.close()

    async def _finish(self) -> None:
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
                if self.sent is not None:
                    self.sent.add(alert)
                return
            self._note(failure)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), pause)
                return


def notification(alert: Alert) -> str:
    """Return a desktop notification in two dialects, OSC 9 and OSC 777, with cleaned text.

    Terminals ignore the sequences they do not know (iTerm2 and ConEmu read 9, rxvt reads 777).
    """
    body = clean(f"{alert.pool}: {alert.words}")[:LONGEST].replace(";", ",")
    return f"\x1b]9;zconsole {body}\x1b\\\x1b]777;notify;zconsole;{body}\x1b\\"


def hook_found(command: str) -> tuple[str, ...]:
    """Split a hook command into words like a shell does; it is never passed to one.

    Raises UsageError for an empty command or an unclosed quote, and NotFoundError for a command
    that is not on this machine: otherwise a sleeping operator would never be told.
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
    """Run the hook with an alert as one JSON line on stdin; return the problem, or None."""
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
