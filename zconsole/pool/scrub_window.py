"""Scrub windows: the only hours of the day in which a pool is scrubbed."""

from __future__ import annotations

from dataclasses import dataclass

NAME = "scrub-windows.json"
"""The file of all windows in the state directory."""


@dataclass(frozen=True, slots=True)
class ScrubWindow:
    """Scrub window of one pool: in orders, in the state on disk, and in simulations."""

    pool: str
    guid: str
    hours: str
    """``22:00-06:00``, in the machine's time zone; empty only in an order to drop the window."""
    begun: bool = False
    """Whether its scrub was seen or started; the window ends with that scrub."""
    paused: bool = False
    """Whether the window paused it; a scrub paused by somebody else stays paused. In an order,
    whether it is paused now, by whomever."""

    @property
    def ordered(self) -> str:
        """Message after an order."""
        if self.hours:
            return f"{self.pool} is scrubbed only in the hours {self.hours}"
        dropped = f"the hours of the scrub of {self.pool} are dropped"
        return f"{dropped}; it stays paused until you resume it" if self.paused else dropped

    @property
    def begins(self) -> str:
        """Begin of the hours, such as ``22:00``."""
        return self.hours.partition("-")[0]

    @property
    def ends(self) -> str:
        """End of the hours, such as ``06:00``."""
        return self.hours.partition("-")[2]
