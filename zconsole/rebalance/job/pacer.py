"""How fast a job may go and when it has to wait: checked at every chunk, several times a second."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

DISKSTATS = Path("/proc/diskstats")
SLICE = 0.05
"""Seconds of a single sleep: leases have to be let go, and orders noticed, between two."""
LOOK = 0.2
"""Seconds between looks at orders and gates."""
BURST = 0.5
"""Seconds of work that may run ahead of the rate limit."""

Gate = Callable[[], str | None]
"""Why the job has to wait now, None when it need not. May raise StopJobError."""


@dataclass(slots=True)
class Pacer:
    """Waits for the rate limit and for gates. Times are of a clock that never jumps."""

    clock: Callable[[], float]
    sleep: Callable[[float], None]
    gates: Sequence[Gate]
    waiting: Callable[[str | None], None]
    """Told why the job waits, and None when it goes on."""
    service: Callable[[], None] = field(default=lambda: None)
    rate: float | None = None
    """Bytes a second."""
    _also: Gate | None = None
    _debt: float = 0.0
    _paid: float | None = None
    _looked: float | None = None

    def tick(self, count: int) -> None:
        """Account for bytes just handled; waits as long as it must. Raises StopJobError."""
        now = self.clock()
        if self._looked is None or now - self._looked >= LOOK:
            self._looked = now
            self._pass_gates()
        if self.rate:
            self._pay(count)

    def wait_for(self, gate: Gate) -> None:
        """Wait until all gates and this one are open. Raises StopJobError."""
        self._also = gate
        try:
            self._pass_gates()
        finally:
            self._also = None

    def _pass_gates(self) -> None:
        reason = self._closed()
        if reason is None:
            return
        self.waiting(reason)
        while (now_reason := self._closed()) is not None:
            if now_reason != reason:
                reason = now_reason
                self.waiting(reason)
            self.sleep(SLICE)
            self.service()
        self.waiting(None)
        self._paid, self._debt = None, 0.0

    def _closed(self) -> str | None:
        gates = self.gates if self._also is None else (*self.gates, self._also)
        return next((reason for gate in gates if (reason := gate()) is not None), None)

    def _pay(self, count: int) -> None:
        """Sleep off what was handled faster than the limit."""
        now = self.clock()
        rate = self.rate or 1.0
        if self._paid is not None:
            self._debt = max(-BURST * rate, self._debt - (now - self._paid) * rate)
        self._paid = now
        self._debt += count
        while self.rate and self._debt >= 1:
            before = self.clock()
            self.sleep(min(SLICE, self._debt / self.rate))
            self.service()
            self._debt -= (self.clock() - before) * self.rate
            self._paid = self.clock()
            if self._paid - (self._looked or 0.0) >= LOOK:
                self._looked = self._paid
                self._pass_gates()


def window_gate(text: str, local_minutes: Callable[[], int]) -> Gate:
    """Open between two times of the day, ``22:00-06:00``. Raises ValueError for anything else."""
    start, end = (_minutes(word) for word in text.split("-"))

    def gate() -> str | None:
        now = local_minutes()
        inside = start <= now < end if start <= end else now >= start or now < end
        return None if inside or start == end else f"outside {text}"

    return gate


def _minutes(word: str) -> int:
    hours, minutes = word.strip().split(":")
    value = int(hours) * 60 + int(minutes)
    if not (0 <= int(hours) <= 24 and 0 <= int(minutes) < 60 and value <= 1440):
        raise ValueError(word)
    return value


@dataclass(slots=True)
class Backoff:
    """Holds the job back while disks answer slowly: a gate that closes for growing spells."""

    limit: float
    """Seconds of mean disk wait that the rest of the machine may see."""
    latency: Callable[[], float | None]
    """Mean wait over the last second, None when nothing was asked of the disks."""
    clock: Callable[[], float]
    spell: float = 0.0
    until: float = 0.0
    _looked: float = 0.0

    def __call__(self) -> str | None:
        """The gate."""
        now = self.clock()
        if now - self._looked >= 1.0:
            self._looked = now
            wait = self.latency()
            slow = wait is not None and wait > self.limit
            self.spell = min(8.0, max(0.5, self.spell * 2)) if slow else self.spell / 2
            if slow:
                self.until = now + self.spell
        return "disks answer slowly" if now < self.until else None


@dataclass(slots=True)
class DiskWait:
    """Mean wait of the requests some block devices completed since the last call, seconds.

    From /proc/diskstats (Documentation/admin-guide/iostats.rst).
    """

    names: frozenset[str]
    read: Callable[[], str] = DISKSTATS.read_text
    _last: tuple[int, int] | None = None

    def __call__(self) -> float | None:
        """None on the first call and when nothing was completed."""
        requests = milliseconds = 0
        for line in self.read().splitlines():
            words = line.split()
            if words[2] in self.names:
                requests += int(words[3]) + int(words[7])
                milliseconds += int(words[6]) + int(words[10])
        last, self._last = self._last, (requests, milliseconds)
        if last is None or requests <= last[0]:
            return None
        return (milliseconds - last[1]) / (requests - last[0]) / 1000


def device_names(paths: Iterable[str]) -> frozenset[str]:
    """The kernel's names of block device paths, links followed."""
    return frozenset(Path(path).resolve().name for path in paths)


def device_of(major: int, minor: int) -> frozenset[str]:
    """The name of a block device by its number; empty when there is none in /sys."""
    link = Path(f"/sys/dev/block/{major}:{minor}")
    return frozenset({link.resolve().name}) if link.exists() else frozenset()
