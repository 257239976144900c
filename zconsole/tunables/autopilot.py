"""The process that holds a latency: a guard that steers the scan's tunables, and restores them.

One a machine. Two processes: one samples and steers (``pilot.py``), its parent only waits
for its end, so that the originals are restored even if either is killed. What both leave behind,
killed at once, is restored by the next start, by ``off``, by the next console, or by the next boot,
which forgets all values. Run as ``python -m zconsole.tunables.autopilot``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from zconsole.errors import UnavailableError, ZconsoleError
from zconsole.pool.model import Pool, Sample, SampleFailure
from zconsole.system.async_process import ProcessRunner
from zconsole.system.host import alive, process_mark
from zconsole.system.launcher import own
from zconsole.system.patient import Patient
from zconsole.system.record_file import read_record, write_record
from zconsole.system.state_dir import StateError, try_lock
from zconsole.tunables.control import recorded
from zconsole.tunables.guard import (
    STOPS,
    WRITTEN,
    control_of,
    delivered,
    forked,
    parser,
    quiet,
    started,
)
from zconsole.tunables.hold_latency import AIM, FASTEST, GENTLEST, INTERVAL, STEP
from zconsole.tunables.parameters import MODULE, SysfsParameters
from zconsole.tunables.pilot import ACTION, Pilot, histograms, levers, scanning
from zconsole.tunables.store import PILOT, newest_pilot
from zconsole.tunables.targets import Targets, targets
from zconsole.zfs.decode import decode
from zconsole.zfs.sources.base import Source
from zconsole.zfs.sources.live import LiveSource

STATUS = "autopilot.json"
LOOK = 0.5
"""Seconds between two looks at whether to stop."""
BLIND = 60.0
"""Seconds without a sample after which it ends: nobody knows what applications wait."""
PATIENCE = 15.0
"""Seconds the steering process has to restore once it was told to stop."""
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
        """What it does, for people."""
        return f"target {self.held}; {self._scans}"

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

    @property
    def _scans(self) -> str:
        """Pace and how far it went: ``scans are tuned above default (step 4 of 12)``."""
        end = FASTEST if self.level > 0 else GENTLEST
        step = f" (step {abs(self.level) / STEP:.0f} of {abs(end) / STEP:.0f})"
        return f"scans are {self.pace}{step if self.level else ''}"


async def steer(
    pilot: Pilot, source: Source, over: Callable[[], str], step: Callable[[tuple[Pool, ...]], None]
) -> str:
    """Steer until it is over, the scans end or somebody sets a tunable; returns why it ended.

    ``step`` is called after each step with the pools that scan.
    """
    seen = time.monotonic()
    idle = 0
    while True:
        if why := await _pause(pilot, over):
            return why
        pools = await _sampled(source)
        clock = time.monotonic()
        if name := pilot.set_by_others():
            return f"somebody else set {name}"
        if pools is None:
            if clock - seen > BLIND:
                return f"no sample with latency histograms for {BLIND:g} s"
            continue
        seen = clock
        active = scanning(pools)
        idle = 0 if active else idle + 1
        if idle > 1:
            return "no scan runs any more"
        # Beside a paused scan nobody waits: its tunables stay as they are until it goes on.
        running = [p for p in active if any(scan.state == "running" for scan in p.scans)]
        if running and pilot.take(running, clock, time.time()):
            step(active)


async def _pause(pilot: Pilot, over: Callable[[], str]) -> str:
    """Wait for the next round; why to end instead, or nothing."""
    for _ in range(round(INTERVAL / LOOK)):
        if why := over():
            return why
        if name := pilot.set_by_others():
            return f"somebody else set {name}"
        await asyncio.sleep(LOOK)
    return ""


async def _sampled(source: Source) -> tuple[Pool, ...] | None:
    """All imported pools; None unless each answered, those that scan with latency histograms.

    What a pool that doesn't answer would bear, nobody knows.
    """
    pools = await every_pool(source)
    active = scanning(pools or ())
    return pools if all("sync_r" in histograms(pool) for pool in active) else None


async def every_pool(source: Source) -> tuple[Pool, ...] | None:
    """The pools that a source has now; None unless each answered."""
    try:
        raws = await source.sample() or ()
        found = [each for raw in raws for each in decode(raw)]
    except ZconsoleError:
        return None
    if any(isinstance(each, SampleFailure) and not each.absent for each in found):
        return None
    return tuple(each.pool for each in found if isinstance(each, Sample))


async def start(
    runner: ProcessRunner,
    state: Path,
    wanted: Targets,
    below: bool = False,
    watch: str | None = None,
    module: Path = MODULE,
) -> None:
    """Start the autopilot in a session of its own.

    ``below``: whether it may go below the defaults without redundancy. It ends with the process of
    ``watch``, a mark of ``host.process_mark``; None: it goes on without anybody. Raises
    ZconsoleError when it could not be started, above all because one runs already.
    """
    words = ["--state", str(state), "--module", str(module)]
    words += ["--below-defaults"] if below else []
    words += ["--watch", watch] if watch else []
    argv = own("zconsole.tunables.autopilot", *words, "--", *wanted.words)
    await started(runner, argv, "the autopilot")


def status(state: Path) -> Status | None:
    """What the autopilot of this machine does; None while none runs. May take seconds."""
    try:
        found = Patient().call(partial(read_record, Status, state / STATUS, 10_000))
    except (OSError, StateError):
        return None
    return found if alive(found.mark) else None


def stop(state: Path) -> bool:
    """Tell the machine's autopilot to restore and end; whether one ran.

    Raises ZconsoleError where it may not be told, or doesn't end.
    """
    mark = newest_pilot(state)
    if not alive(mark):
        return False
    pid = mark.partition(":")[0]
    try:
        os.kill(int(pid), signal.SIGTERM)
    except ProcessLookupError:
        return False
    except PermissionError:
        raise ZconsoleError(f"the autopilot (process {pid}) is another user's") from None
    end = time.monotonic() + 2 * PATIENCE
    while alive(mark) and time.monotonic() < end:
        time.sleep(LOOK / 5)
    if alive(mark):
        raise ZconsoleError(f"the autopilot (process {pid}) didn't end")
    return True


def main(argv: Sequence[str] | None = None) -> int:
    """Fork the autopilot and wait until it holds the machine's lock; return its verdict."""
    return forked(partial(_guard, _parser().parse_args(argv)))


def _guard(args: argparse.Namespace, verdict: int) -> int:
    """The waiting process's whole life: it restores whatever its child left."""
    os.setsid()
    quiet(keep=verdict)
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    mark = process_mark(os.getpid()) or ""
    try:
        _take_over(args, mark)
    except (ZconsoleError, OSError) as error:
        delivered(str(error), verdict)
        return 1
    child = os.fork()
    if child == 0:
        os.close(verdict)
        try:
            _steering(args, mark)
        finally:
            os._exit(0)
    if not delivered(WRITTEN, verdict):
        os.kill(child, signal.SIGTERM)
    _wait_for(child)
    control, log = control_of(args, mark)
    with contextlib.suppress(OSError, ZconsoleError):
        control.restore(time.time(), control.held())
    log.settle()
    return 0


def _take_over(args: argparse.Namespace, mark: str) -> None:
    """Become the only autopilot.

    Raises ZconsoleError or OSError where there is one, or nothing can be set here.
    """
    parameters = SysfsParameters(args.module, args.boot_id)
    targets(args.words)
    for name in levers(parameters):
        if not os.access(parameters.path(name), os.W_OK):
            raise UnavailableError(f"{name} can't be written. Run it as root")
    if parameters.claim() is None:
        raise ZconsoleError(RUNS)
    lock = try_lock(args.state / PILOT)
    if lock is None:
        raise ZconsoleError(RUNS)
    os.ftruncate(lock, 0)
    os.pwrite(lock, mark.encode(), 0)


def _wait_for(child: int) -> None:
    """Return when the child has ended; a signal ends it, by force if it doesn't listen."""
    end = float("inf")
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if signal.sigtimedwait(STOPS, LOOK) is not None:
            os.kill(child, signal.SIGTERM)
            end = min(end, time.monotonic() + PATIENCE)
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        if time.monotonic() > end + PATIENCE:
            return  # a thread of it hangs in the kernel: nothing of it runs any more


def _steering(args: argparse.Namespace, mark: str) -> None:
    """The steering process's whole life."""
    told: list[int] = []
    for number in STOPS:
        signal.signal(number, lambda caught, _: told.append(caught))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    control, log = control_of(args, mark)
    wanted = targets(args.words)
    pilot = Pilot(control, SysfsParameters(args.module, args.boot_id), wanted, args.below_defaults)

    def _over() -> str:
        if args.watch is not None and not alive(args.watch):
            return "its console ended"
        return "told to stop" if told or not alive(mark) else ""

    def _step(pools: tuple[Pool, ...]) -> None:
        names = tuple(pool.name for pool in pools)
        level, t = pilot.steering.level, time.time()
        now = Status(mark, t, wanted.words, level, names, args.watch, pilot.slowest)
        with contextlib.suppress(StateError):
            Patient().call(partial(write_record, args.state / STATUS, now))

    _step(())
    log.note(time.time(), "begun", kind="autopilot", action=ACTION, target=str(wanted))
    try:
        why = asyncio.run(_flown(pilot, _over, _step))
    except (ZconsoleError, OSError) as error:
        why = f"failed: {error}"
    finally:
        # Whatever happened: the log must not keep the originals waiting.
        with contextlib.suppress(ZconsoleError, OSError):
            pilot.restore(time.time(), lambda: recorded(log, time.time(), "restore"))
    log.note(time.time(), "ended", kind="autopilot", action=ACTION, result=why)
    log.settle()


async def _flown(
    pilot: Pilot, over: Callable[[], str], step: Callable[[tuple[Pool, ...]], None]
) -> str:
    source = LiveSource()
    try:
        return await steer(pilot, source, over, step)
    finally:
        await source.aclose()


def _parser() -> argparse.ArgumentParser:
    options = parser("zconsole.tunables.autopilot")
    options.add_argument("--below-defaults", action="store_true")
    options.add_argument("words", nargs="+")
    return options


if __name__ == "__main__":
    sys.exit(main())
