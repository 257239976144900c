"""When the next sample is due: an interval that can change while it is being waited for."""

from __future__ import annotations

import asyncio


class SampleTimer:
    """Seconds from the start of one sample to the start of the next; 0 waits for nothing."""

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self._changed = asyncio.Event()
        self._begun: float | None = None

    def change(self, seconds: float) -> None:
        """Sample every ``seconds`` from now on; cuts the present wait short."""
        self.interval = seconds
        self._changed.set()

    async def wait(self) -> None:
        """Return when a sample is due, at once the first time, and take it as begun."""
        loop = asyncio.get_running_loop()
        while self._begun is not None and (left := self._begun + self.interval - loop.time()) > 0:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                break
        self._begun = loop.time()
