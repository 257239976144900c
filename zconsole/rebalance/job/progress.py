"""How far a job is and how fast, published for whoever asks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zconsole.rebalance.engine.journal import Journal

WINDOW = 20.0
"""Seconds that the published rate covers."""
PUBLISH = 1.0
"""Seconds between two updates in the journal."""


@dataclass(slots=True)
class RunProgress:
    """Counts of this run and of the whole job. ``clock`` never jumps; ``now`` is epoch seconds."""

    journal: Journal
    clock: Callable[[], float]
    now: Callable[[], float]
    pid: int
    files_total: int = 0
    bytes_total: int = 0
    files_done: int = 0
    files_skipped: int = 0
    files_failed: int = 0
    bytes_done: int = 0
    """Of finished files, by their size when they were walked."""
    handled: int = 0
    """Bytes this run has worked through, unfinished files included."""
    unfinished: int = 0
    """Those of them that are of files not reported yet."""
    state: str = "running"
    why: str | None = None
    current: Callable[[], str | None] = field(default=lambda: None)
    """The path of the file being worked on."""
    vdevs: Callable[[], Sequence[Mapping[str, Any]] | None] = field(default=lambda: None)
    """Allocation of every vdev, before and as of the last look; None where there are none."""
    notes: list[str] = field(default_factory=list)
    outlook: Callable[[], str | None] = field(default=lambda: None)
    """What is to be expected of the free space."""
    _window: deque[tuple[float, int]] = field(default_factory=deque)
    _published: float | None = None

    def work(self, count: int) -> None:
        """Account for bytes handled; publishes now and then."""
        self.handled += count
        self.unfinished += count
        now = self.clock()
        if self._published is None or now - self._published >= PUBLISH:
            self._note(now)
            self.journal.jot("status", self.as_json())

    def wait(self, why: str | None) -> None:
        """The job waits (paused, when an operator said so), or goes on."""
        self.state = "running" if why is None else "paused" if why == "paused" else "waiting"
        self.why = why
        self._window.clear()
        self.publish()

    def rate(self) -> float | None:
        """Bytes a second over the last WINDOW seconds; None before two samples."""
        if len(self._window) < 2:
            return None
        (begin, first), (end, last) = self._window[0], self._window[-1]
        return (last - first) / (end - begin) if end > begin else None

    def publish(self) -> None:
        """Write the present state to the journal, durably."""
        self._note(self.clock())
        self.journal.set("status", self.as_json())

    def _note(self, now: float) -> None:
        self._published = now
        self._window.append((now, self.handled))
        while len(self._window) > 2 and now - self._window[0][0] > WINDOW:
            self._window.popleft()

    def as_json(self) -> dict[str, Any]:
        """What ``status`` shows of it."""
        rate = self.rate() if self.state == "running" else None
        handled = min(self.bytes_total, self.bytes_done + self.unfinished)
        left = max(0, self.bytes_total - handled)
        outlook = self.outlook() if self.state in ("running", "waiting") else None
        return {
            "state": self.state,
            "why": self.why,
            "files_done": self.files_done,
            "files_total": self.files_total,
            "files_skipped": self.files_skipped,
            "files_failed": self.files_failed,
            "bytes_done": self.bytes_done,
            "bytes_handled": handled,
            "bytes_total": self.bytes_total,
            "rate": rate,
            "eta_seconds": left / rate if rate else None,
            "current": self.current(),
            "vdevs": self.vdevs(),
            "pid": self.pid,
            "t": self.now(),
            "notes": [*self.notes, *([outlook] if outlook else [])],
        }
