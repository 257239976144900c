"""The process that holds a latency: a guard that steers the scan's tunables, and restores them.

One a machine. Two processes: one samples and steers (``hold_latency.py`` decides), its parent does
nothing but wait for its end, so that the originals are restored even if either is killed. Run as
``python -m zconsole.tunables.autopilot``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from zconsole.errors import ZconsoleError
from zconsole.pool.model import Pool, Sample
from zconsole.pool.redundancy import redundancy
from zconsole.system.async_process import ProcessRunner
from zconsole.system.audit import Audit, audit_log
from zconsole.system.host import alive, process_mark
from zconsole.system.process import PACKAGE_ROOT, DeadlineError
from zconsole.system.state_dir import read_private, state_dir, try_lock
from zconsole.tunables.control import Control, TunableRecord, recorded
from zconsole.tunables.guard import START, WRITTEN, delivered, forked, put_back, quiet
from zconsole.tunables.hold_latency import (
    GENTLEST,
    INTERVAL,
    LEVERS,
    WINDOW,
    Histograms,
    Steering,
    added,
    latency,
    since,
    steered,
    values,
)
from zconsole.tunables.parameters import BOOT_ID, MODULE, Parameters, SysfsParameters
from zconsole.tunables.store import FileTunableStore
from zconsole.zfs.decode import decode
from zconsole.zfs.sources.base import Source
from zconsole.zfs.sources.live import LiveSource

LOCK = "autopilot.lock"
LOOK = 0.5
"""Seconds between two looks at whether to stop."""
BLIND = 60.0
"""Seconds without a sample after which it ends: nobody knows what applications wait."""
PATIENCE = 15.0
"""Seconds the steering process has to restore once it was told to stop."""
ACTION = "hold-latency"
"""What the audit log calls each step."""
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def scanning(pools: Iterable[Pool]) -> tuple[Pool, ...]:
    """The pools with a resilver, scrub or rebuild that runs or is paused."""
    return tuple(pool for pool in pools if any(scan.active for scan in pool.scans))


def histograms(pool: Pool) -> dict[str, list[int]]:
    """The latency histograms of all its devices as one; empty where the source has none."""
    return added([leaf.histograms for leaf in pool.root.leaves() if leaf.histograms])


def at_risk(pool: Pool) -> bool:
    """Whether the next failure of a device may lose data of this pool."""
    return any(entry.left == 0 for entry in redundancy(pool.root, pool.scans))


class Pilot:
    """Decides from samples and sets the tunables; asks for neither time nor signals."""

    def __init__(self, control: Control, parameters: Parameters, target: float) -> None:
        self._control = control
        self._parameters = parameters
        found = {name: parameters.read(name) for name in LEVERS}
        self.originals = {name: value for name, value in found.items() if value is not None}
        self.ours = dict(self.originals)
        """What each was set to, or found at."""
        self.steering = Steering(target)
        self._last: dict[str, dict[str, list[int]]] = {}
        self._recent: dict[str, deque[Histograms]] = {}

    @property
    def untouched(self) -> bool:
        """Whether every tunable is as it was left: nobody else set one."""
        return all(self._parameters.read(name) == value for name, value in self.ours.items())

    def take(self, pools: Sequence[Pool], clock: float, t: float) -> None:
        """Decide on a round of the pools that scan, at ``clock`` (steady) and ``t`` (epoch).

        The pool whose applications wait longest counts. Raises ZconsoleError where a tunable
        cannot be set.
        """
        measured = [found for found in map(self._measure, pools) if found is not None]
        floor = 0.0 if any(map(at_risk, pools)) else GENTLEST
        before = self.steering
        now = steered(before.above(floor), clock, max(measured, default=None))
        if now.level == before.level:
            self.steering = now
            return
        wanted = values(now.level, self.originals)
        changed = {n: v for n, v in wanted.items() if v != self.ours[n]}
        self._control.set(changed, t, action=f"{ACTION} {now.target:g}")
        self.steering, self.ours = now, wanted
        self._recent.clear()

    def _measure(self, pool: Pool) -> float | None:
        key, new = pool.guid or pool.name, histograms(pool)
        old, self._last[key] = self._last.get(key), new
        recent = self._recent.setdefault(key, deque(maxlen=WINDOW))
        if old is not None and (found := since(new, old)) is not None:
            recent.append(found)
        return latency(added(recent))

    def restore(
        self, t: float, record: Callable[[], AbstractContextManager[TunableRecord]]
    ) -> None:
        """Put the originals back, but for what somebody else set meanwhile."""
        with contextlib.suppress(OSError, ZconsoleError):
            self._control.restore(t, self._control.held())
        # The file of originals may be gone, or the disk not answer.
        left = {n: v for n, v in self.ours.items() if v != self.originals[n]}
        put_back(self._parameters, left, self.originals, record)


async def steer(pilot: Pilot, source: Source, over: Callable[[], bool]) -> str:
    """Steer until it is over, the scans end or somebody sets a tunable; returns why it ended."""
    seen = time.monotonic()
    quiet_rounds = 0
    while True:
        if why := await _pause(pilot, over):
            return why
        pools = await _sampled(source)
        clock = time.monotonic()
        if not pilot.untouched:
            return "somebody else set a tunable"
        if not pools:
            if clock - seen > BLIND:
                return "no sample with latency histograms"
            continue
        seen, running = clock, scanning(pools)
        quiet_rounds = 0 if running else quiet_rounds + 1
        if quiet_rounds > 1:
            return "no scan runs any more"
        if running:
            pilot.take(running, clock, time.time())


async def _pause(pilot: Pilot, over: Callable[[], bool]) -> str:
    """Wait for the next round; why to end instead, or nothing."""
    for _ in range(round(INTERVAL / LOOK)):
        if over():
            return "told to stop"
        if not pilot.untouched:
            return "somebody else set a tunable"
        await asyncio.sleep(LOOK)
    return ""


async def _sampled(source: Source) -> tuple[Pool, ...]:
    """The pools that answered; () unless every one that scans has latency histograms."""
    try:
        raws = await source.sample() or ()
        found = [each for raw in raws for each in decode(raw) if isinstance(each, Sample)]
    except ZconsoleError:
        return ()
    pools = tuple(sample.pool for sample in found)
    return pools if all("sync_r" in histograms(pool) for pool in scanning(pools)) else ()


async def start(runner: ProcessRunner, state: Path, target: float, module: Path = MODULE) -> None:
    """Start the autopilot for a latency in seconds, in a session of its own.

    Raises ZconsoleError when it could not be started, above all because one runs already.
    """
    words = ["--state", str(state), "--module", str(module), "--target", str(target)]
    argv = [sys.executable, "-m", "zconsole.tunables.autopilot", *words]
    # Never in the console's own directory: modules there would run as root.
    try:
        done = await runner.run(argv, START, PACKAGE_ROOT)
    except DeadlineError as error:
        raise ZconsoleError(f"the autopilot: {error}") from None
    if done.returncode != 0:
        raise ZconsoleError(done.stderr.strip() or "the autopilot could not be started")


def stop(state: Path) -> bool:
    """Tell the machine's autopilot to restore and end; whether one ran."""
    try:
        mark = read_private(state / LOCK, 100).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return False
    if not alive(mark):
        return False
    os.kill(int(mark.partition(":")[0]), signal.SIGTERM)
    end = time.monotonic() + 2 * PATIENCE
    while alive(mark) and time.monotonic() < end:
        time.sleep(LOOK / 5)
    if alive(mark):
        raise ZconsoleError(f"the autopilot (process {mark.partition(':')[0]}) didn't end")
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
        lock = try_lock(args.state / LOCK)
        problem = "" if lock is not None else "an autopilot runs already: stop it with off"
        if lock is not None:
            os.ftruncate(lock, 0)
            os.pwrite(lock, mark.encode(), 0)
    except (ZconsoleError, OSError) as error:
        problem = str(error)
    if problem:
        delivered(problem, verdict)
        return 1
    child = os.fork()
    if child == 0:
        os.close(verdict)
        os._exit(_steering(args, mark))
    if not delivered(WRITTEN, verdict):
        os.kill(child, signal.SIGTERM)
    _wait_for(child)
    control, log = _control(args, mark)
    with contextlib.suppress(OSError, ZconsoleError):
        control.restore(time.time(), control.held())
    log.settle()
    return 0


def _wait_for(child: int) -> None:
    """Return when the child has ended; a signal ends it, by force if it doesn't listen."""
    end: float | None = None
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if signal.sigtimedwait(STOPS, LOOK) is not None:
            os.kill(child, signal.SIGTERM)
            end = end or time.monotonic() + PATIENCE
        if end is not None and time.monotonic() > end:
            os.kill(child, signal.SIGKILL)


def _steering(args: argparse.Namespace, mark: str) -> int:
    """The steering process's whole life."""
    told: list[int] = []
    for number in STOPS:
        signal.signal(number, lambda caught, _: told.append(caught))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    control, log = _control(args, mark)
    pilot = Pilot(control, SysfsParameters(args.module, args.boot_id), args.target)

    def _over() -> bool:
        return bool(told) or not alive(mark)

    with contextlib.suppress(ZconsoleError, OSError):
        why = asyncio.run(_flown(pilot, _over))
        log.note(time.time(), "ended", kind="autopilot", action=ACTION, result=why)
    pilot.restore(time.time(), lambda: recorded(log, time.time(), "restore"))
    log.settle()
    return 0


async def _flown(pilot: Pilot, over: Callable[[], bool]) -> str:
    source = LiveSource()
    try:
        return await steer(pilot, source, over)
    finally:
        await source.aclose()


def _control(args: argparse.Namespace, mark: str) -> tuple[Control, Audit]:
    log = audit_log(lambda: state_dir(True, {"ZCONSOLE_STATE": str(args.state)}))
    parameters = SysfsParameters(args.module, args.boot_id)
    return Control(parameters, FileTunableStore(args.state), log, mark), log


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="zconsole.tunables.autopilot", allow_abbrev=False)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--module", type=Path, default=MODULE)
    parser.add_argument("--boot-id", type=Path, default=BOOT_ID)
    parser.add_argument("--target", type=float, required=True)
    return parser


if __name__ == "__main__":
    sys.exit(main())
