"""How a recording is played: its speed, whether it is paused, where it is and where it is to be."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

SPEEDS = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Times as fast as recorded that ``faster`` goes through."""


def next_speed(now: float, step: int) -> float:
    """The next of SPEEDS up (1) or down (-1); the same at the end of them."""
    further = [s for s in SPEEDS if (s > now if step > 0 else s < now)]
    return now if not further else further[0] if step > 0 else further[-1]


@dataclass(slots=True)
class Playback:
    """Steers a replay; times are the recording's own (epoch seconds)."""

    speed: float | None = 1.0
    """None plays as fast as it goes."""
    paused: bool = False
    t: float | None = None
    """Of the newest sample."""
    span: tuple[float, float] | None = None
    """The first and the last time; None where nobody can know, as of standard input."""
    target: float | None = None
    """Where it is to go on; None while it goes on by itself."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def share(self) -> float | None:
        """How far it is, 0…1."""
        if self.span is None or self.t is None:
            return None
        first, last = self.span
        return min(1.0, max(0.0, (self.t - first) / (last - first))) if last > first else 1.0

    def toggle(self) -> None:
        """Pause, or go on."""
        self.paused = not self.paused
        self._changed.set()

    def faster(self, step: int) -> None:
        """Go on to the next speed, or to the one before."""
        self.speed = next_speed(self.speed or 1.0, step)
        self._changed.set()

    def seek(self, share: float) -> bool:
        """Move by a share of the recording; whether that can be done."""
        if self.span is None or self.t is None:
            return False
        first, last = self.span
        start = self.t if self.target is None else self.target
        self.target = min(last, max(first, start + share * (last - first)))
        self._changed.set()
        return True

    async def passes(self, seconds: float) -> bool:
        """Let so many recorded seconds pass; False as soon as it is to go on elsewhere."""
        loop = asyncio.get_running_loop()
        while self.target is None and (self.paused or seconds > 0):
            self._changed.clear()
            begun, speed = loop.time(), self.speed
            wait = None if self.paused else 0.0 if speed is None else seconds / speed
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                return True
            if wait is not None and speed is not None:
                seconds -= (loop.time() - begun) * speed
        return self.target is None
