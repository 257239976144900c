"""Restoring of tunables by the keeper: dangerous ones, and those that consoles left.

A dangerous tunable is written by the keeper itself, so its value is never there without the keeper.
The original is restored when the time is over, when the console that is watched is gone (killed,
dropped connection), or when the keeper has to end; but not if somebody else changed the value.

A value that a console set stays when the console ends, until it is due (`holds.is_due`).
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
"""Name of the order to the keeper that starts a guard."""
CHECK_SECONDS = 0.25
"""Seconds between two readings of the guarded value."""
KEPT = "tunables.keeper"
"""File that is locked while the keeper watches values set by consoles."""
CONSOLES = 5.0
"""Seconds between two checks whether the consoles that set values still run."""
SCANS = 20.0
"""Seconds between two checks of the scans whose end is awaited."""


@dataclass(frozen=True, slots=True)
class GuardOrder:
    """The order to the keeper that starts a guard: a value, and seconds to hold it at most."""

    name: str
    value: int
    seconds: float
    watch: str | None = None
    """Mark (``host.process_mark``) of the console it ends with; None: only the time counts."""
    by: str | None = None
    """User who gave the order by sudo, for the audit log."""
    order: str = ORDER


def start(state: Path, wanted: GuardOrder, options: Sequence[str] = ()) -> None:
    """Have the keeper set, hold and restore a guarded tunable; return once it is written.

    May take seconds. ``options`` are passed to ``keeper.ask``. Raises ZconsoleError if the value
    could not be written.
    """
    ask(state, options, **asdict(wanted))


async def begin(
    control: Control, parameters: Parameters, order: Order, clocks: Clocks = CLOCKS
) -> Guard:
    """Write the value of an order, and return its guard. Raises ZconsoleError, OSError."""
    wanted = from_json(GuardOrder, order)
    write = partial(control.set, {wanted.name: wanted.value}, clocks.wall(), guard=True)
    (held,) = await in_daemon_thread(write)
    return Guard(control, parameters, held, wanted, clocks)


class Guard:
    """A duty that holds a tunable until its time is over, its console ends or others change it."""

    name = ORDER
    ends_by = "zconsole tunables restore"
    deadline = 10.0

    def __init__(
        self,
        control: Control,
        parameters: Parameters,
        held: Setting,
        wanted: GuardOrder,
        clocks: Clocks,
    ) -> None:
        self._control = control
        self._parameters = parameters
        self._held = held
        self._watch = wanted.watch
        self._wall = clocks.wall
        self._end = clocks.steady() + wanted.seconds

    def due(self, now: float) -> float:
        """Return seconds until it acts, at most CHECK_SECONDS.

        0 if its console is gone, or others have set the tunable.
        """
        gone = self._watch is not None and not alive(self._watch)
        changed = self._parameters.read(self._held.tunable.name) != self._held.set_by_us
        return 0.0 if gone or changed else min(CHECK_SECONDS, self._end - now)

    async def act(self) -> bool:
        """Restore the original if the value is still ours; return False, as the guard ends then."""
        await self.undo()
        return False

    async def undo(self) -> None:
        """Restore the original if the value is still ours."""
        await in_daemon_thread(self._restore)

    def _restore(self) -> None:
        """Restore the original even if the file of saved values is lost."""
        held, t = self._held, self._wall()
        name, ours, original = held.tunable.name, held.set_by_us, held.original
        if ours is not None and original is not None:
            self._control.restore(t, [name], {name: SavedTunable(original, ours, t)})


class TunableDuty(StandingDuty):
    """A duty that restores the values left by consoles that are gone, once they are due."""

    name = "tunables"
    ends_by = "zconsole tunables restore"

    def __init__(
        self,
        control: Control,
        every_pool: Callable[[], Awaitable[tuple[Sequence[Pool], bool]]],
        lock: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``every_pool`` returns the pools that answer, and whether those are all."""
        super().__init__(lock, clock)
        self._control = control
        self._every_pool = every_pool

    def is_empty(self) -> bool:
        """Whether no value has to be restored, now or later."""
        return not self._control.watched()

    async def look(self) -> float:
        """Restore the values that are due; return the seconds until the next look."""
        watched = await in_daemon_thread(self._control.watched)
        if not any(hold.is_left for hold in watched):
            return CONSOLES
        pools, whole = await self._every_pool()
        await in_daemon_thread(self._control.settle, time.time(), scans_of(pools, whole))
        return SCANS


def scans_of(pools: Sequence[Pool], whole: bool) -> Scans:
    """Return the scans of these pools; ``whole``: whether they are all pools of the machine."""
    active = scanning(pools)
    running, idle = (
        {pool.guid or pool.name: pool.name for pool in pools if (pool in active) == scans}
        for scans in (True, False)
    )
    return Scans(running, idle, whole=whole)
