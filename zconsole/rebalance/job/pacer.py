"""How fast a job may go and when it has to wait: checked at every chunk, several times a second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

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
