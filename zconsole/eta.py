"""An estimate of when a scan ends, from windowed rates."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds to go with a range, or the reason there is none."""

    eta: float | None
    low: float | None
    high: float | None
    reason: str
    """What it rests on (``issuing at 124M/s over 5 min``), or why there is none."""
