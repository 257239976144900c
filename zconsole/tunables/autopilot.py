"""The autopilot: a duty of the keeper that steers the scan's tunables to hold a latency.

One a machine. It samples pools, has ``pilot.py`` decide and set, and restores the originals when
the scans end, when the console that it watches is gone, or when it is told to stop. What a keeper
leaves behind whose two processes are killed at once is restored by the next start, by ``off``, by
the next console, or by the next boot, which forgets all values.
"""

from __future__ import annotations

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
from zconsole.tunables.hold_latency import AIM, FASTEST, GENTLEST, INTERVAL, STEP
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.pilot import ACTION, HoldOrder, Pilot, histograms, levers, scanning, targets
from zconsole.tunables.store import PILOT
from zconsole.zfs.decode import decode
from zconsole.zfs.sources.base import Source

ORDER = "autopilot"
"""The order that begins one."""
STATUS = "autopilot.json"
MOST_BYTES = 10_000
"""Of its status."""
LOOK = 0.5
"""Seconds between two looks at whether to stop."""
BLIND = 60.0
"""Seconds without a sample after which it ends: nobody knows what applications wait."""
RUNS = "an autopilot runs already: stop it with zconsole tunables hold-latency off"


@dataclass(frozen=True, slots=True)
class Status:
    """What an autopilot does, as of its newest step."""

    mark: str
    """Of its process; what a dead one left says nothing."""
    t: float
    """Epoch seconds of the step."""
    targets: tuple[str, ...]
    """As ``Targets.words``."""
    level: float
    """0 is as found, below it gentler, above it faster."""
    pools: tuple[str, ...] = ()
    """Those that scan."""
    watch: str | None = None
    """The mark of the console it ends with, if there is one."""
    slowest: bool = False
    """Whether it can't, or may not, make the scans slower."""

    def __str__(self) -> str:
        """For people: ``target 20ms; scans are tuned above default (step 4 of 12)``."""
        end = FASTEST if self.level > 0 else GENTLEST
        step = f" (step {abs(self.level) / STEP:.0f} of {abs(end) / STEP:.0f})"
        scans = f"scans are {self.pace}{step if self.level else ''}"
        return f"target {self.held}; {scans}"

    def misses(self, reached: float | None, t: float) -> bool:
        """Whether latency (seconds) is above the target of ``t``, and slower scans are no way."""
        aim = AIM * targets(self.targets).at(t)
        return self.slowest and reached is not None and reached > aim

    @property
    def held(self) -> str:
        """The latencies it aims at, in words."""
        return str(targets(self.targets))

    @property
    def pace(self) -> str:
        """How it lets scans go; how fast they are is also up to applications and disks."""
        way = "as" if not self.level else "above" if self.level > 0 else "below"
        return f"tuned {way} default"


@dataclass(frozen=True, slots=True)
class Steered:
    """What the autopilot is to hold."""

    words: tuple[str, ...]
    """As ``Targets.words``."""
    below: bool = False
    """Whether it may go below the defaults without redundancy."""
    watch: str | None = None
    """Mark (``host.process_mark``) of the console it ends with; None: it goes on by itself."""
    by: str | None = None
    """Who became root by sudo to order it."""
    order: str = ORDER


def start(
    state: Path,
    wanted: HoldOrder,
    watch: str | None = None,
    options: Sequence[str] = (),
) -> None:
    """Have the keeper steer, as `Steered` says; may take seconds.

    Raises ZconsoleError when that could not begin, above all because an autopilot runs already.
    ``options``: of the keeper, see ``keeper.ask``.
    """
    ask(state, options, **asdict(Steered(wanted.targets.words, wanted.below, watch)))


def status(state: Path, store: LockedStore | None = None) -> Status | None:
    """What the autopilot of this machine does; None while none runs. May take seconds.

    Who asks again and again has a ``store``, which does so once the disk has answered.
    """
    try:
        found = (store or LockedStore(state)).read_file(STATUS, record(Status), MOST_BYTES)
    except (OSError, StateError):
        return None
    return found if alive(found.mark) else None


def stop(state: Path) -> bool:
    """Have the machine's autopilot restore and end; whether one ran.

    Raises ZconsoleError where it doesn't end, or is not the keeper's.
    """
    if asked(state, order=END, duty=Autopilot.name):
        return True
    if (now := status(state)) is not None:
        pid = now.mark.partition(":")[0]
        raise ZconsoleError(f"another version's autopilot runs. To end it: kill {pid}")
    return False


class Autopilot:
    """Samples and steers until the scans end or somebody sets a tunable; then restores."""

    name = ORDER
    ends_by = "zconsole tunables hold-latency off"
    deadline = 10.0

    def __init__(
        self,
        pilot: Pilot,
        source: Source,
        wanted: Steered,
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
        """When it samples (steady seconds)."""
        self._seen = self._clock()
        """When it knew last what applications wait."""
        self._idle = 0
        """Samples without a scan, one after another."""
        self._over = ""
        """Why it has to end."""
        self._ends = False
        """Whether it restores, or has."""
        self._is_restored = False

    def due(self, now: float) -> float:
        """See Duty: it looks whether to end more often than it samples."""
        self._over = self._over or self._why_over()
        return 0.0 if self._over else min(LOOK, self._next - now)

    def _why_over(self) -> str:
        watch = self._wanted.watch
        if watch is not None and not alive(watch):
            return "its console ended"
        name = self._pilot.set_by_others()
        return f"somebody else set {name}" if name else ""

    async def act(self) -> bool:
        """Sample and steer, or end; whether it goes on."""
        try:
            why = self._over or await self._steered()
        except (ZconsoleError, OSError) as error:
            why = f"failed: {error}"
        if self._ends:  # it took too long to be waited for, and may have set something since
            await self._restore()
            return False
        if not why:
            return True
        await self._end(why)
        return False

    async def undo(self) -> None:
        """Restore, as it was told to stop. Raises what the kernel answered to what it refused."""
        if not self._ends:
            await self._end(self._over or "told to stop")
        elif not self._is_restored:
            await self._restore()

    async def _steered(self) -> str:
        """Take a round; why to end, or nothing."""
        pools = await self._sampled()
        now = self._clock()
        self._next = now + INTERVAL
        if why := self._over or self._why_over():
            return why
        if pools is None:
            blind = now - self._seen > BLIND
            return f"no sample with latency histograms for {BLIND:g} s" if blind else ""
        self._seen = now
        active = scanning(pools)
        self._idle = 0 if active else self._idle + 1
        if self._idle > 1:
            return "no scan runs any more"
        # Beside a paused scan nobody waits: its tunables stay as they are until it goes on.
        running = [p for p in active if any(scan.state == "running" for scan in p.scans)]
        if running:
            await in_daemon_thread(self._step, running, active, now)
        return ""

    def _step(self, running: Sequence[Pool], active: Sequence[Pool], now: float) -> None:
        if self._pilot.take(running, now, self._wall()):
            self.tell(active)

    async def _sampled(self) -> tuple[Pool, ...] | None:
        """All imported pools; None unless each answered, those that scan with latency histograms.

        What a pool that doesn't answer would bear, nobody knows.
        """
        pools, whole = await every_pool(self._source)
        told = all("sync_r" in histograms(pool) for pool in scanning(pools))
        return pools if whole and told else None

    def tell(self, pools: Sequence[Pool] = ()) -> None:
        """Write down what it does, while ``pools`` scan; may take seconds."""
        pilot, wanted, names = self._pilot, self._wanted, tuple(pool.name for pool in pools)
        mark, level = self._claim.mark, pilot.steering.level
        t, watch = self._wall(), wanted.watch
        self._claim.tell(Status(mark, t, wanted.words, level, names, watch, pilot.slowest))

    async def _end(self, why: str) -> None:
        """Say why it ends, and restore; what could not be, `act` and `undo` try again."""
        self._over, self._ends = why, True
        try:
            await self._restore()
        finally:
            self._log.note(self._wall(), "ended", kind="autopilot", action=ACTION, result=why)
            try:
                await in_daemon_thread(self._claim.drop)
            finally:
                await self._source.aclose()

    async def _restore(self) -> None:
        await in_daemon_thread(self._pilot.restore, self._wall())
        self._is_restored = True


@dataclass(slots=True)
class PilotClaim:
    """The place of the only autopilot of a machine and its state directory, and what it does."""

    state: Path
    mark: str
    """Of the process that owns what is set."""
    store: LockedStore = field(init=False)
    _claim: int | None = field(default=None, init=False)
    """Holds the module's parameters."""
    _lock: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.store = LockedStore(self.state)

    def take(self, parameters: Parameters) -> None:
        """Become the only one; may hang.

        Raises ZconsoleError or OSError where there is one, or nothing can be set here.
        """
        for name in levers(parameters):
            os.close(parameters.open(name))
        self._claim = parameters.claim()
        if self._claim is None:
            raise ZconsoleError(RUNS)
        self._lock = self.store.lock(PILOT)
        if self._lock is None:
            raise ZconsoleError(RUNS)
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, self.mark.encode(), 0)

    def tell(self, now: Status) -> None:
        """Write down what it does; may take seconds."""
        if self._lock is not None:
            with contextlib.suppress(StateError):
                self.store.put(STATUS, encoded(now), self._lock)

    def drop(self) -> None:
        """Make room for the next one; what another process says of its own stays."""
        with contextlib.suppress(OSError, StateError):
            if self.store.read_file(STATUS, record(Status), MOST_BYTES).mark == self.mark:
                self.store.in_time(partial(remove, self.state / STATUS))
        self.release()

    def release(self) -> None:
        """Let go of the place, of which nothing was said."""
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
    """Begin to steer as ordered. Raises ZconsoleError, OSError."""
    wanted = from_json(Steered, order)
    aims = targets(wanted.words)
    try:
        await in_daemon_thread(claim.take, parameters)
        pilot = Pilot(control, parameters, aims, wanted.below)
        made = Autopilot(pilot, make_source(), wanted, log, claim, clocks)
    except BaseException:
        claim.release()
        raise
    await in_daemon_thread(made.tell)
    log.note(clocks.wall(), "begun", kind="autopilot", action=ACTION, target=str(aims))
    return made


async def every_pool(source: Source) -> tuple[tuple[Pool, ...], bool]:
    """The pools of a source that answer now, and whether those are all it has."""
    try:
        raws = await source.sample() or ()
        found = [each for raw in raws for each in decode(raw)]
    except ZconsoleError:
        return (), False
    whole = not any(isinstance(each, SampleFailure) and not each.absent for each in found)
    return tuple(each.pool for each in found if isinstance(each, Sample)), whole
