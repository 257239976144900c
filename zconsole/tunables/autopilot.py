"""The autopilot: steers the tunables of scans so that applications' latency stays at a target.

It is a duty of the keeper (``system/keeper.py``), one per machine. It samples pools, has
``pilot.py`` decide and set, and restores the originals when the scans end, when the console that
it watches is gone, or when it is told to stop. If both processes of the keeper are killed at once,
the originals are restored by the next start of an autopilot, by ``hold-latency off``, by the next
console, or by the next boot, which resets all values.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from zconsole.errors import ZconsoleError
from zconsole.pool.model import Pool, Sample, SampleFailure
from zconsole.system.audit import Log
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.host import Clocks, alive
from zconsole.system.keeper import CLOCKS, END, Order, ask, asked
from zconsole.system.record_file import LockedStore, encoded, record
from zconsole.system.records import from_json
from zconsole.system.state_dir import StateError, remove
from zconsole.tunables.control import Control
from zconsole.tunables.hold_latency import AIM, FASTEST, GENTLEST, INTERVAL, STEP, correction
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.pilot import ACTION, HoldOrder, Pilot, histograms, levers, scanning, targets
from zconsole.tunables.store import PILOT
from zconsole.zfs.decode import decode
from zconsole.zfs.sources.base import Source

ORDER = "autopilot"
"""Name of the order to the keeper that starts an autopilot."""
STATUS = "autopilot.json"
"""File with the autopilot's status, in the state directory."""
MOST_BYTES = 10_000
"""Largest size of the status file."""
CHECK_SECONDS = 0.5
"""Seconds between two checks whether to stop."""
BLIND_SECONDS = 60.0
"""Seconds without a sample after which it ends, as the applications' latency is unknown."""
RUNS = "an autopilot runs already: stop it with zconsole tunables hold-latency off"


@dataclass(frozen=True, slots=True)
class Status:
    """The status of an autopilot, as of its newest step."""

    mark: str
    """Mark (``host.process_mark``) of its process; the status of a dead process is ignored."""
    t: float
    """Epoch seconds of the step."""
    targets: tuple[str, ...]
    """The targets, as ``Targets.words``."""
    level: float
    """Level of the tunables: 0 as found, below 0 gentler, above 0 faster."""
    pools: tuple[str, ...] = ()
    """Names of the pools with a scan."""
    watch: str | None = None
    """Mark of the console it ends with, if there is one."""
    slowest: bool = False
    """Whether it can't, or may not, make the scans slower."""

    def __str__(self) -> str:
        """Describe it: ``target 20ms; scans are tuned above default (step 4 of 12)``."""
        end = FASTEST if self.level > 0 else GENTLEST
        step = f" (step {abs(self.level) / STEP:.0f} of {abs(end) / STEP:.0f})"
        scans = f"scans are {self.pace}{step if self.level else ''}"
        return f"target {self.held}; {scans}"

    def misses(self, reached: float | None, at: float) -> bool:
        """Whether latency (seconds) is above the target at ``at`` and scans can't go slower."""
        aim = AIM * targets(self.targets).at(at)
        return self.slowest and reached is not None and reached > aim

    def rests(self, reached: float | None, at: float) -> bool:
        """Whether latency (seconds) is so near the target at ``at`` that nothing is changed."""
        return reached is not None and not correction(targets(self.targets).at(at), reached)

    @property
    def held(self) -> str:
        """The target latencies, in words."""
        return str(targets(self.targets))

    @property
    def pace(self) -> str:
        """How scans are tuned, in words; their speed also depends on applications and disks."""
        way = "as" if not self.level else "above" if self.level > 0 else "below"
        return f"tuned {way} default"


@dataclass(frozen=True, slots=True)
class AutopilotOrder:
    """The order to the keeper that starts an autopilot."""

    words: tuple[str, ...]
    """The targets, as ``Targets.words``."""
    below: bool = False
    """Whether scans may go below the defaults while a pool has no redundancy left."""
    watch: str | None = None
    """Mark (``host.process_mark``) of the console it ends with; None: it goes on by itself."""
    by: str | None = None
    """User who gave the order by sudo, for the audit log."""
    order: str = ORDER


def start(
    state: Path,
    wanted: HoldOrder,
    watch: str | None = None,
    options: Sequence[str] = (),
) -> None:
    """Have the keeper start an autopilot; may take seconds.

    ``watch`` is the mark of a console to end with. ``options`` are passed to ``keeper.ask``. Raises
    ZconsoleError if it can't start, above all because an autopilot runs already.
    """
    ask(state, options, **asdict(AutopilotOrder(wanted.targets.words, wanted.below, watch)))


def status(state: Path, store: LockedStore | None = None) -> Status | None:
    """Return the status of this machine's autopilot; None if none runs. May take seconds.

    To ask repeatedly, pass one ``store``: it starts no new read while an earlier one hangs.
    """
    try:
        found = (store or LockedStore(state)).read_file(STATUS, record(Status), MOST_BYTES)
    except (OSError, StateError):
        return None
    return found if alive(found.mark) else None


def stop(state: Path) -> bool:
    """Have the machine's autopilot restore and end; return whether one ran.

    Raises ZconsoleError if it doesn't end, or another version's runs, which has no keeper.
    """
    if asked(state, order=END, duty=Autopilot.name):
        return True
    if (now := status(state)) is not None:
        pid = now.mark.partition(":")[0]
        raise ZconsoleError(f"another version's autopilot runs. To end it: kill {pid}")
    return False


class Autopilot:
    """A duty that steers until the scans end or somebody sets a tunable, and then restores."""

    name = ORDER
    ends_by = "zconsole tunables hold-latency off"
    deadline = 10.0

    def __init__(
        self,
        pilot: Pilot,
        source: Source,
        wanted: AutopilotOrder,
        log: Log,
        claim: PilotClaim,
        clocks: Clocks = CLOCKS,
    ) -> None:
        self._pilot = pilot
        self._source = source
        self._wanted = wanted
        self._log = log
        self._claim = claim
        self._clock = clocks.steady
        self._wall = clocks.wall
        self._next = self._clock() + INTERVAL
        """When it samples next (steady seconds)."""
        self._seen = self._clock()
        """When the applications' latency was last known (steady seconds)."""
        self._idle = 0
        """Number of consecutive samples without a scan."""
        self._over = ""
        """Why it has to end; empty while it goes on."""
        self._ends = False
        """Whether it has begun to restore."""
        self._is_claimed = True
        """Whether no other autopilot can begin."""
        self._is_restored = False
        self._restoring = asyncio.Lock()
        """Held while restoring, as `act` and `undo` may both be at it."""

    def due(self, now: float) -> float:
        """Return seconds to the next act, at most CHECK_SECONDS to see soon whether to end."""
        self._over = self._over or self._why_over()
        return 0.0 if self._over else min(CHECK_SECONDS, self._next - now)

    def _why_over(self) -> str:
        watch = self._wanted.watch
        if watch is not None and not alive(watch):
            return "its console ended"
        name = self._pilot.set_by_others()
        return f"somebody else set {name}" if name else ""

    async def act(self) -> bool:
        """Sample and steer, or end; return whether it goes on."""
        try:
            why = self._over or await self._steered()
        except (ZconsoleError, OSError) as error:
            why = f"failed: {error}"
        # The keeper may have called `undo` meanwhile, as this took too long: restore once more, for
        # the step may have set something after that.
        if self._ends:
            await self._restore()
            return False
        if not why:
            return True
        await self._end(why)
        return False

    async def undo(self) -> None:
        """End and restore the originals. Raises the kernel's error for a value that it refused."""
        if not self._ends:
            await self._end(self._over or "told to stop")
        elif not self._is_restored:
            await asyncio.shield(self._restore())

    async def _steered(self) -> str:
        """Make one step; return the reason to end, empty if there is none."""
        pools = await self._sampled()
        now = self._clock()
        self._next = now + INTERVAL
        if why := self._over or self._why_over():
            return why
        if pools is None:
            blind = now - self._seen > BLIND_SECONDS
            return f"no sample with latency histograms for {BLIND_SECONDS:g} s" if blind else ""
        self._seen = now
        active = scanning(pools)
        self._idle = 0 if active else self._idle + 1
        if self._idle > 1:  # a single sample may fall between a rebuild and the scrub after it
            return "no scan runs any more"
        # A paused scan delays no application: the tunables stay as they are until it resumes.
        running = [p for p in active if any(scan.state == "running" for scan in p.scans)]
        if running:
            await in_daemon_thread(self._step, running, active, now)
        return ""

    def _step(self, running: Sequence[Pool], active: Sequence[Pool], now: float) -> None:
        if self._pilot.take(running, now, self._wall()):
            self.tell(active)

    async def _sampled(self) -> tuple[Pool, ...] | None:
        """Sample all imported pools; None unless all answered, those with a scan with histograms.

        A pool that doesn't answer may have applications whose latency is above the target.
        """
        pools, whole = await every_pool(self._source)
        told = all("sync_r" in histograms(pool) for pool in scanning(pools))
        return pools if whole and told else None

    def tell(self, pools: Sequence[Pool] = ()) -> None:
        """Write the status, with ``pools`` as those that have a scan; may take seconds."""
        pilot, wanted, names = self._pilot, self._wanted, tuple(pool.name for pool in pools)
        mark, level = self._claim.mark, pilot.steering.level
        t, watch = self._wall(), wanted.watch
        self._claim.tell(Status(mark, t, wanted.words, level, names, watch, pilot.slowest))

    async def _end(self, why: str) -> None:
        """Restore and log why it ends; if restoring fails, `act` and `undo` try again."""
        self._over, self._ends = why, True
        try:
            # If `undo` is given up, as a disk hangs, its thread still restores: so does this.
            await asyncio.shield(self._restore())
        finally:
            self._log.note(self._wall(), "ended", kind="autopilot", action=ACTION, result=why)
            await self._source.aclose()

    async def _restore(self) -> None:
        """Restore the originals, and then drop the claim, which stays until they are restored.

        Only the holder of the claim restores: once it was dropped, another autopilot may have set
        tunables, and it restores both its own and what this one left.
        """
        async with self._restoring:
            self._is_restored = False
            if not self._is_claimed:
                take, parameters = self._claim.take, self._pilot.parameters
                self._is_claimed = await in_daemon_thread(take, parameters)
            if self._is_claimed:
                await in_daemon_thread(self._pilot.restore, self._wall())
                await in_daemon_thread(self._claim.drop)
                self._is_claimed = False
            self._is_restored = True


@dataclass(slots=True)
class PilotClaim:
    """The locks of the only autopilot of a machine and a state directory, and its status file."""

    state: Path
    mark: str
    """Mark of the process that owns the values set."""
    store: LockedStore = field(init=False)
    _claim: int | None = field(default=None, init=False)
    """Descriptor of the claim on the module's parameters."""
    _lock: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.store = LockedStore(self.state)

    def take(self, parameters: Parameters) -> bool:
        """Become the only autopilot; return False if there is another. May hang.

        What it holds already, it keeps. Raises ZconsoleError or OSError if nothing can be set here.
        """
        for name in levers(parameters):  # fail now if one may not be written, not during a scan
            os.close(parameters.open(name))
        if self._claim is None:
            self._claim = parameters.claim()
        # The claim covers the kernel. This lock's file also has our mark, by which consoles tell
        # the autopilot's values from others.
        if self._claim is not None and self._lock is None:
            self._lock = self.store.lock(PILOT)
        if self._lock is None:
            self.release()
            return False
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, self.mark.encode(), 0)
        return True

    def tell(self, now: Status) -> None:
        """Write the status file; may take seconds."""
        if self._lock is not None:
            with contextlib.suppress(StateError):
                self.store.put(STATUS, encoded(now), self._lock)

    def drop(self) -> None:
        """Remove the status file, unless another process has written it, and release the locks."""
        with contextlib.suppress(OSError, StateError):
            if self.store.read_file(STATUS, record(Status), MOST_BYTES).mark == self.mark:
                self.store.in_time(partial(remove, self.state / STATUS))
        self.release()

    def release(self) -> None:
        """Release the locks; the status file stays as it is."""
        held, self._claim, self._lock = (self._claim, self._lock), None, None
        for handle in held:
            if handle is not None:
                os.close(handle)


async def begin(
    control: Control,
    parameters: Parameters,
    log: Log,
    claim: PilotClaim,
    make_source: Callable[[], Source],
    order: Order,
    clocks: Clocks = CLOCKS,
) -> Autopilot:
    """Start the autopilot of an order. Raises ZconsoleError, OSError, and holds nothing then."""
    wanted = from_json(AutopilotOrder, order)
    aims = targets(wanted.words)
    try:
        if not await in_daemon_thread(claim.take, parameters):
            raise ZconsoleError(RUNS)
        pilot = Pilot(control, parameters, aims, wanted.below)
        made = Autopilot(pilot, make_source(), wanted, log, claim, clocks)
    except BaseException:
        claim.release()
        raise
    await in_daemon_thread(made.tell)
    log.note(clocks.wall(), "begun", kind="autopilot", action=ACTION, target=str(aims))
    return made


async def every_pool(source: Source) -> tuple[tuple[Pool, ...], bool]:
    """Return the pools of a source that answer now, and whether those are all it has."""
    try:
        raws = await source.sample() or ()
        found = [each for raw in raws for each in decode(raw)]
    except ZconsoleError:
        return (), False
    whole = not any(isinstance(each, SampleFailure) and not each.absent for each in found)
    return tuple(each.pool for each in found if isinstance(each, Sample)), whole
