"""How often to sample where a round takes more of the processor than is its share."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

SHARE = 0.4
"""Of one processor, that a console may take: 400 ms of a second, as for ten thousand devices."""
ROUNDS = 3
"""The cheapest of these counts: what comes once, like the first round, slows nothing down."""
STEP = 0.5
"""Share of the interval by which the time between two samples grows, so that it seldom changes."""


class SamplePace:
    """The processor time of each round, and the interval that it leaves."""

    def __init__(self, cpu: Callable[[], float]) -> None:
        """``cpu``: seconds that this process has used so far."""
        self._cpu = cpu
        self._before: float | None = None
        self._costs: deque[float] = deque(maxlen=ROUNDS)

    def begin(self) -> None:
        """A round begins; with what follows it, painting too, it ends as the next one begins."""
        now = self._cpu()
        if self._before is not None:
            self._costs.append(now - self._before)
        self._before = now

    def seconds(self, interval: float) -> float:
        """Seconds between two samples where ``interval`` was asked for; 0 stays 0."""
        if not interval or len(self._costs) < ROUNDS:
            return interval
        least = min(self._costs) / SHARE
        step = STEP * interval
        return interval if least <= interval else math.ceil(least / step) * step
