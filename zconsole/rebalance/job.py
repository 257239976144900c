"""What a running job is told: its part of the journal, and where time comes from."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from zconsole.rebalance.plan import FLOOR
from zconsole.rebalance.predict import Space
from zconsole.rebalance.settings import Settings


@dataclass(frozen=True, slots=True)
class Clocks:
    """Where time comes from."""

    monotonic: Callable[[], float] = time.monotonic
    epoch: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    local: Callable[[], datetime] = datetime.now


@dataclass(frozen=True, slots=True)
class Job:
    """What a journal says about the job it belongs to."""

    name: str
    settings: Settings
    engines: Mapping[str, str]
    """Engine by root path."""
    spaces: tuple[Space, ...]
    """The vdevs when the job began."""
    raw_factor: float
    reserve: int
    bytes_to_target: int | None

    def reserve_at(self, min_free: float | None) -> int:
        """Bytes of the filesystem's free space that are not for this job, at another floor."""
        planned = self.settings.limits.min_free
        if min_free == planned or not self.spaces:
            return self.reserve
        floors = [FLOOR if share is None else share for share in (planned, min_free)]
        size = sum(space.size for space in self.spaces) / self.raw_factor
        return max(0, round(self.reserve + (floors[1] - floors[0]) * size))
