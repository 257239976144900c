"""Tunables that the keeper puts back: dangerous ones that it holds, and what consoles left.

A dangerous one is written by the keeper itself, so the value is never there without it. The
original goes back when the time is over, when the console that is watched is gone (killed, dropped
connection), or when the keeper has to end; not when somebody else has changed the value.

What a console set stays when it ends, until it is due (`holds.is_due`).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from zconsole.pool.model import Pool
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.host import Clocks, alive
from zconsole.system.keeper import CLOCKS, Order, StandingDuty, ask
from zconsole.system.records import from_json
from zconsole.tunables.control import Control, Setting
from zconsole.tunables.holds import Scans
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.pilot import scanning
from zconsole.tunables.store import SavedTunable

ORDER = "guard"
"""The order that begins one."""
LOOK = 0.25
"""Seconds between two readings of the value."""
KEPT = "tunables.keeper"
"""The file that is locked while the keeper watches what consoles set."""
CONSOLES = 5.0
"""Seconds between two looks whether the consoles that set something still run."""
SCANS = 20.0
"""Seconds between two looks at the scans whose end is awaited."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """What to hold, and for how long at most."""

    name: str
    value: int
    seconds: float
    watch: str | None = None
    """Mark (``host.process_mark``) of the console it ends with; None: only the time counts."""
    by: str | None = None
    """Who became root by sudo to order it."""
    order: str = ORDER


def start(state: Path, wanted: Guarded, options: Sequence[str] = ()) -> None:
    """Set a guarded tunable, which the keeper holds and restores; returns once it is written.

    May take seconds. Raises ZconsoleError when the value could not be written. ``options``: of
    the keeper, see ``keeper.ask``.
    """
    ask(state, options, **asdict(wanted))


async def begin(
    control: Control, parameters: Parameters, order: Order, clocks: Clocks = CLOCKS
) -> Guard:
    """Write the value of an order. Raises ZconsoleError, OSError."""
    wanted = from_json(Guarded, order)
    write = partial(control.set, {wanted.name: wanted.value}, clocks.wall(), guard=True)
    (held,) = await in_daemon_thread(write)
    return Guard(control, parameters, held, wanted, clocks)


class Guard:
    """Holds a tunable until its time is over, its console ended, or its value is not ours."""

    name = ORDER
    ends_by = "zconsole tunables restore"
    deadline = 10.0

    def __init__(
        self,
        control: Control,
        parameters: Parameters,
        held: Setting,
        wanted: Guarded,
        clocks: Clocks,
    ) -> None:
        self._control = control
        self._parameters = parameters
        self._held = held
        self._watch = wanted.watch
        self._wall = clocks.wall
        self._end = clocks.steady() + wanted.seconds

    def due(self, now: float) -> float:
        """See Duty: it reads the value now and then."""
        gone = self._watch is not None and not alive(self._watch)
        changed = self._parameters.read(self._held.tunable.name) != self._held.set_by_us
        return 0.0 if gone or changed else min(LOOK, self._end - now)

    async def act(self) -> bool:
        """Put the original back if the value is still ours; that is all there is to do."""
        await self.undo()
        return False

    async def undo(self) -> None:
        """As `act`."""
        await in_daemon_thread(self._restore)

    def _restore(self) -> None:
        """Put it back, whatever became of the file: losing that must not leave it set."""
        held, t = self._held, self._wall()
        name, ours, original = held.tunable.name, held.set_by_us, held.original
        if ours is not None and original is not None:
            self._control.restore(t, [name], {name: SavedTunable(original, ours, t)})


class TunableDuty(StandingDuty):
    """Restores what a console set that is gone, once it is due."""

    name = "tunables"
    ends_by = "zconsole tunables restore"

    def __init__(
        self,
        control: Control,
        every_pool: Callable[[], Awaitable[tuple[Sequence[Pool], bool]]],
        lock: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``every_pool`` reads the pools that answer, and tells whether those are all."""
        super().__init__(lock, clock)
        self._control = control
        self._every_pool = every_pool

    def is_empty(self) -> bool:
        """See StandingDuty."""
        return not self._control.watched()

    async def look(self) -> float:
        """See StandingDuty."""
        watched = await in_daemon_thread(self._control.watched)
        if not any(hold.is_left for hold in watched):
            return CONSOLES
        pools, whole = await self._every_pool()
        await in_daemon_thread(self._control.settle, time.time(), scans_of(pools, whole))
        return SCANS


def scans_of(pools: Sequence[Pool], whole: bool) -> Scans:
    """What pools tell of scans; ``whole``: whether they are all of the machine."""
    active = scanning(pools)
    running, idle = (
        {pool.guid or pool.name: pool.name for pool in pools if (pool in active) == scans}
        for scans in (True, False)
    )
    return Scans(running, idle, whole=whole)
