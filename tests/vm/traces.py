"""Recordings of real scans, to evaluate estimates: the same few troubles on any release."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.vm.errors import VmError
from tests.vm.holding import MIB, PARAMETERS, SCAN_HOLD
from tests.vm.machine import Machine
from tests.vm.pools import PoolFactory, clear

SCAN_SECONDS = 1800.0
RECORDING = "/root/trace.jsonl"
COMMAND = ("timeout", str(int(SCAN_SECONDS)), "zconsole", "record", RECORDING, "tank")
SORTING = {
    "zfs_scan_strict_mem_lim": 1,
    "zfs_vdev_aggregation_limit": 16384,
    "zfs_scan_vdev_limit": MIB,
}
"""Tunables that leave little memory for the walk, and few requests in flight."""

Act = Callable[[PoolFactory], object]


@dataclass(frozen=True)
class Trace:
    """A scan: how it is set up and started, and what happens at which second."""

    name: str
    start: Act
    events: tuple[tuple[float, Act], ...] = ()
    since: tuple[int, int] = (2, 1)


def record(machine: Machine, trace: Trace, directory: Path) -> Path:
    """Record a scan from start to end into DIRECTORY/NAME.jsonl; returns the path."""
    pool = PoolFactory(machine)
    machine.run(f"rm -f {RECORDING}; echo 1 >{PARAMETERS}/{SCAN_HOLD}")
    trace.start(pool)
    recorder = _Recorder(machine)
    pool.wait_until(f"test -s {RECORDING}")  # otherwise a busy machine misses the beginning
    machine.run(f"echo 0 >{PARAMETERS}/{SCAN_HOLD}")
    began = time.monotonic()
    for moment, act in trace.events:
        if recorder.ends_by(began + moment):
            break  # the scan is over
        act(pool)
        recorder.keep_going()
    recorder.wait(began + SCAN_SECONDS - time.monotonic())
    target = directory / f"{trace.name}.jsonl"
    machine.get(RECORDING, target)
    clear(machine)
    return target


def record_all(machine: Machine, names: list[str], directory: Path) -> None:
    """Record the named traces, or all that the machine's release has; prints how each went."""
    known = {trace.name: trace for trace in TRACES}
    if unknown := sorted(set(names) - set(known)):
        raise VmError(f"no such trace: {', '.join(unknown)} (there are {', '.join(known)})")
    directory.mkdir(parents=True, exist_ok=True)
    for trace in (known[name] for name in names or known):
        if machine.image.zfs_version < trace.since:
            continue
        start = time.monotonic()
        path = record(machine, trace, directory)
        samples = path.read_bytes().count(b"\n")
        seconds = time.monotonic() - start
        print(f"{path}: {samples} samples, {seconds:.0f} s", file=sys.stderr, flush=True)


class _Recorder:
    """A running `zconsole record` in the guest, which ends with the scan."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._process = self._start()

    def keep_going(self) -> None:
        """Restart it with the same file if it has ended because of the pool's export."""
        if self._process.poll() is not None:
            self._process = self._start()

    def ends_by(self, moment: float) -> bool:
        """Return whether it ends before a moment of the monotonic clock; waits until then."""
        try:
            self._process.wait(max(0.0, moment - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def wait(self, seconds: float) -> None:
        """Wait for its end; raises VmError if it fails or takes longer."""
        try:
            _, message = self._process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            self._process.kill()
            raise VmError(f"the scan took more than {SCAN_SECONDS:.0f} s") from error
        if self._process.returncode != 0:
            raise VmError(f"recording failed: {message.decode(errors='replace').strip()}")

    def _start(self) -> subprocess.Popen[bytes]:
        words = [*self._machine.ssh.command(), *COMMAND]
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)


def replace_in_mirror(pool: PoolFactory, *options: str) -> None:
    """Replace a mirror's disk by one of 8 MB/s."""
    pool.create("mirror d0 d1")
    pool.fill(400)
    pool.slow(2, bps=8 * MIB)
    pool.zpool("replace", *options, "tank", "d1", "d2")


def replace_in_raidz(pool: PoolFactory) -> None:
    """Replace a raidz2's disk by one of 3 MB/s."""
    pool.create("raidz2 d0 d1 d2 d3")
    pool.fill(400)
    pool.slow(4, 5, bps=3 * MIB)
    pool.zpool("replace", "tank", "d0", "d4")


def rebuild_in_mirror(pool: PoolFactory) -> None:
    replace_in_mirror(pool, "-s")


def rebuild_onto_draid_spare(pool: PoolFactory) -> None:
    pool.create("draid1:2d:6c:1s d0 d1 d2 d3 d4 d5")
    pool.fill(400)
    pool.zpool("offline", "tank", "d0")
    pool.slow(1, 2, 3, 4, 5, bps=3 * MIB)
    pool.zpool("replace", "-s", "tank", "d0", "draid1-0-0")


def slow_scrub(pool: PoolFactory) -> None:
    pool.create("mirror d0 d1")
    pool.fill(400)
    pool.slow(1, bps=6 * MIB)
    pool.zpool("scrub", "tank")


def little_scan_memory(pool: PoolFactory) -> None:
    """Scrub small blocks that fill the memory for sorting, so that both stages take turns."""
    pool.create("mirror d0 d1", options="-o ashift=9 -O recordsize=512 -O compression=off")
    pool.fill(48)
    for name, value in SORTING.items():
        pool.machine.run(f"echo {value} >{PARAMETERS}/{name}")
    export_and_import(pool)  # otherwise the walk reads from memory
    for disk in (0, 1):
        pool.machine.throttle(disk, iops=40)
    pool.zpool("scrub", "tank")
    pool.wait_status("scrub in progress")


def load(pool: PoolFactory) -> None:
    """Write and read for half a minute, so that the scan has to share the disks."""
    write = "dd if=/dev/urandom of=/tank/load bs=1M count=20 conv=fsync"
    loop = f"while :; do {write}; cat /tank/data >/dev/null; done"
    pool.machine.run(f"timeout 30 sh -c '{loop}' >/dev/null 2>&1 &")


def export_and_import(pool: PoolFactory) -> None:
    pool.zpool("export", "tank")
    pool.zpool("import", "-d", "/dev/disk/by-id", "tank")


def limits(disk: int, speeds: Iterable[tuple[float, float]]) -> tuple[tuple[float, Act], ...]:
    """Return a disk's limits over time, from seconds and MB/s."""

    def act(speed: float) -> Act:
        return lambda pool: pool.slow(disk, bps=int(speed * MIB))

    return tuple((moment, act(speed)) for moment, speed in speeds)


def wandering(seed: int) -> Iterator[tuple[float, float]]:
    """Yield speeds, each a random step from the one before, at irregular times."""
    rng, speed, moment = random.Random(seed), 2.0, 0.0
    while moment < SCAN_SECONDS:
        yield moment, speed
        speed = min(6.0, max(0.6, speed * 2 ** rng.gauss(0, 0.4)))
        moment += rng.uniform(20, 60)


def stalling(seed: int) -> Iterator[tuple[float, float]]:
    """Yield phases of constant speed, with a nearly stalled minute in between."""
    rng, moment = random.Random(seed), 0.0
    while moment < SCAN_SECONDS:
        yield moment, 2.0
        moment += rng.uniform(60, 150)
        yield moment, 0.01
        moment += rng.uniform(30, 60)


def shifts(seed: int) -> Iterator[tuple[float, float]]:
    """Yield busy and quiet phases of a few minutes in turn, as users and backups have them."""
    rng, moment, busy = random.Random(seed), 0.0, False
    while moment < SCAN_SECONDS:
        yield moment, 0.4 if busy else 1.1
        moment, busy = moment + rng.uniform(60, 180), not busy


def worsening(seed: int) -> Iterator[tuple[float, float]]:
    """Yield the speeds of a disk that fails: each step is slower by a fifth to a half."""
    rng, moment, speed = random.Random(seed), 0.0, 1.5
    while moment < SCAN_SECONDS:
        yield moment, speed
        moment, speed = moment + rng.uniform(60, 180), max(0.35, speed * rng.uniform(0.5, 0.8))


def improving(seed: int) -> Iterator[tuple[float, float]]:
    """Yield the speeds left by a load that ends bit by bit."""
    rng, moment, speed = random.Random(seed), 0.0, 0.35
    while moment < SCAN_SECONDS:
        yield moment, speed
        moment, speed = moment + rng.uniform(60, 180), min(1.6, speed * rng.uniform(1.2, 1.8))


def hiccups(seed: int) -> Iterator[tuple[float, float]]:
    """Yield a constant speed with short stalls at random, as a disk that retries has them."""
    rng, moment = random.Random(seed), 0.0
    while moment < SCAN_SECONDS:
        yield moment, 0.9
        moment += 10 + rng.expovariate(1 / 40)
        yield moment, 0.1
        moment += rng.uniform(5, 15)


FADING = [(30.0 * n, max(0.6, 3.0 * 0.94**n)) for n in range(30)]
"""Speeds of ever slower tracks, toward the inside."""
TEETH = [(10.0 * n, 0.5 + 0.3 * (n % 10)) for n in range(90)]
"""Speeds that rise from slow to fast within 100 s, repeatedly."""


TRACES = (
    Trace("speed_changed", replace_in_mirror, ((30, lambda pool: pool.slow(2, bps=16 * MIB)),)),
    Trace("load_midway", replace_in_raidz, ((25, load),)),
    Trace(
        "second_replace",
        replace_in_raidz,
        (
            (25, lambda pool: pool.zpool("replace", "tank", "d1", "d5")),
            (45, lambda pool: pool.zpool("resilver", "tank")),
        ),
    ),
    Trace(
        "scrub_paused",
        slow_scrub,
        (
            (20, lambda pool: pool.zpool("scrub", "-p", "tank")),
            (40, lambda pool: pool.zpool("scrub", "tank")),
        ),
    ),
    Trace("export_import", replace_in_mirror, ((25, export_and_import),)),
    Trace("sequential_rebuild", rebuild_in_mirror),
    Trace("draid_rebuild", rebuild_onto_draid_spare),
    Trace("little_scan_memory", little_scan_memory),
    Trace("speed_wanders", replace_in_mirror, limits(2, wandering(20261129))),
    Trace("speed_fades", replace_in_mirror, limits(2, FADING)),
    Trace("speed_saws", rebuild_in_mirror, limits(2, TEETH)),
    Trace("disk_stalls", replace_in_mirror, limits(2, stalling(20261129))),
    Trace("shifts_replace", replace_in_mirror, limits(2, shifts(20261201))),
    Trace("shifts_scrub", slow_scrub, limits(1, shifts(20261202))),
    Trace("worsening_raidz", replace_in_raidz, limits(4, worsening(20261203))),
    Trace("worsening_rebuild", rebuild_in_mirror, limits(2, worsening(20261204))),
    Trace("improving_scrub", slow_scrub, limits(1, improving(20261205))),
    Trace("improving_replace", replace_in_mirror, limits(2, improving(20261206))),
    Trace("hiccups_rebuild", rebuild_in_mirror, limits(2, hiccups(20261207))),
    Trace("hiccups_raidz", replace_in_raidz, limits(4, hiccups(20261208))),
)
