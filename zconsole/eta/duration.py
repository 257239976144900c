"""How long a repair that has not begun would take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Duration:
    """How long a resilver would take, in seconds, and what that rests on."""

    expected: float
    low: float
    high: float
    reason: str
