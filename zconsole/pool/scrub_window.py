"""The hours of the day in which alone a pool is scrubbed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScrubWindow:
    """One pool's scrub and its hours: as ordered, as kept on disk, and as simulated."""

    pool: str
    guid: str
    hours: str
    """``22:00-06:00``, in the machine's own time zone; empty only in an order: at any hour."""
    begun: bool = False
    """Whether its scrub was seen, or started: when that has ended, so has the window."""
    paused: bool = False
    """Whether it was paused for the hours; what somebody else paused stays paused."""

    @property
    def ordered(self) -> str:
        """What an order did, in words."""
        if self.hours:
            return f"{self.pool} is scrubbed only in the hours {self.hours}"
        return (
            f"the hours of {self.pool}'s scrub are dropped; one that is paused waits to be resumed"
        )

    @property
    def begins(self) -> str:
        """When the hours begin: ``22:00``."""
        return self.hours.partition("-")[0]
