"""Where frames come from: the only interface that views and alerts use."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zconsole.pool.chassis import Lights
from zconsole.system.host import cpu_seconds
from zconsole.timeline.frame import Frame
from zconsole.zfs.sources.base import Capabilities

if TYPE_CHECKING:
    from zconsole.timeline.alerts.alerting import Alerting
    from zconsole.timeline.alerts.rules import Alert
    from zconsole.zfs.sources.playback import Playback


Pairs = tuple[tuple[str, str], ...]
"""Label and value, in the order they are shown."""


@dataclass(frozen=True, slots=True)
class Update:
    """One round of sampling: a frame for every pool, in a stable order."""

    frames: tuple[Frame, ...]
    capabilities: Capabilities
    """Those of the source now; it may have fallen back since the last round."""
    alerts: tuple[Alert, ...] = ()
    """What is worth waking someone for, each once; only with alerts."""
    ring: str = ""
    """What those alerts write to the terminal: its bell, notifications."""
    notes: tuple[str, ...] = ()
    """Problems with stored history and reports, each once."""


SHARE = 0.4
"""Of one processor, that a console may take: 400 ms of a second."""
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


class Feed:
    """Takes a round at every interval; history is fed even if nothing is painted."""

    playback: Playback | None = None
    """Steers what is played; None of what happens now."""
    faster: Callable[[int], None] | None = None
    """Lets simulated time pass at the next speed (1) or the one before (-1); None of other time."""
    alerts: Alerting | None = None
    """Looks at each round for alerts; None if none were requested."""

    def __init__(self, interval: float, cpu: Callable[[], float] = cpu_seconds) -> None:
        """``interval``: seconds between samples; 0 for a source with its own pace.

        ``cpu``: seconds that this process has used so far.
        """
        self.interval = interval
        self._pace = SamplePace(cpu)
        self._changed = asyncio.Event()
        self._begun: float | None = None
        self._hurries: list[float] = []
        """Seconds between samples for each of those who wait for one."""

    @property
    def pace(self) -> float:
        """Seconds between samples as it goes: more than ``interval`` where rounds cost too much."""
        if self._hurries:
            return min(self.interval, *self._hurries)
        return self._pace.seconds(self.interval)

    @contextmanager
    def hurried(self, seconds: float) -> Iterator[None]:
        """Sample at least every ``seconds`` meanwhile, whatever rounds cost: somebody waits."""
        self._hurries.append(seconds)
        self._changed.set()
        try:
            yield
        finally:
            self._hurries.remove(seconds)

    def set_interval(self, seconds: float) -> None:
        """Sample every ``seconds`` from now on; cuts the present wait short."""
        self.interval = seconds
        self._changed.set()

    async def next(self) -> Update | None:
        """The next round; the interval is from the start of one sample to that of the next."""
        loop = asyncio.get_running_loop()
        while self._begun is not None and (left := self._begun + self.pace - loop.time()) > 0:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                break
        self._begun = loop.time()
        self._pace.begin()
        update = await self.sample()
        if update is None or self.alerts is None:
            return update
        alerts, ring = self.alerts.look(update.frames)
        return replace(update, alerts=alerts, ring=ring)

    async def aclose(self) -> None:
        """Stop sampling within a second; running alert hooks still finish."""
        await self.close_sources()
        if self.alerts is not None:
            await self.alerts.aclose()

    async def sample(self) -> Update | None:
        """A round taken now, or ``None`` once there are no more (the end of a recording).

        A pool that does not answer is a frame with ``problem`` and ``stale_seconds``, within the
        sampling deadline: never an exception, never a call that hangs.
        """
        raise NotImplementedError

    async def details(self, pool: str, key: str) -> Pairs:
        """Facts of one device that samples do not have (serial, model).

        Requested only when a row is expanded; empty if nothing is known.
        """
        raise NotImplementedError

    async def lights(self) -> Lights:
        """The lights of the slots, asked of the enclosures now; empty where nothing tells them."""
        return {}

    async def close_sources(self) -> None:
        """Store the histories, and close the sources."""
        raise NotImplementedError
