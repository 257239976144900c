"""Packed configs of pools in every state, as the kernel returns them (`tests.lock.kernel`)."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.lock.kernel import ARCHIVES, Packed, states, write
from tests.vm import zinject
from tests.vm.errors import VmError
from tests.vm.holding import PARAMETERS, SLOW_BPS
from tests.vm.machine import TREE_IN_GUEST, Machine
from tests.vm.pools import PoolFactory, clear
from tests.vm.states import STATES, State, scrub_repaired
from tests.vm.stuck import suspended

DISKS = 10
APART = 3.0
"""Seconds between the two samples of a state, so that a slow disk advances and has rates."""


def hole(pool: PoolFactory) -> None:
    """Create a pool in which a removed log device leaves a hole before later vdevs."""
    pool.create("raidz3 d0 d1 d2 d3 d4 log d5")
    pool.zpool("add", "-f", "tank", "special", "mirror", "d6", "d7")
    pool.fill(20)
    pool.zpool("remove", "tank", "d5")


def offline_disks(pool: PoolFactory) -> None:
    pool.create("raidz1 d0 d1 d2 raidz2 d3 d4 d5 d6")
    pool.fill(20)
    for disk in ("d2", "d3"):
        pool.zpool("offline", "tank", disk)


def errors_of_each_kind(pool: PoolFactory) -> None:
    """Create a pool with a damaged disk, failing reads and writes on two, and only slow I/O."""
    zinject.install(pool.machine)
    # Before any write fails: later, a scrub would only read what was written meanwhile.
    scrub_repaired(pool)
    pool.machine.run(f"echo 1 >{PARAMETERS}/zio_slow_io_ms")
    pool.slow(0, 1, bps=16 * SLOW_BPS)
    for disk, kind, percent in ((0, "read", 30), (1, "read", 20), (1, "write", 10)):
        name = Path(pool.device(f"d{disk}")).name
        inject = ["zinject", "-d", name, "-e", "io", "-T", kind, "-f", str(percent), "tank"]
        pool.machine.run(inject)
    pool.fill(5, "/tank/more")
    pool.zpool("scrub", "-w", "tank")
    pool.machine.run("zinject -c all")


SAVED = (
    *STATES,
    State("hole", hole),
    State("offline disks", offline_disks),
    State("errors of each kind", errors_of_each_kind),
    State("suspended", suspended),
)


def save_all(machine: Machine, names: Sequence[str]) -> None:
    """Save the named states, or all that the machine's release has, into its archive.

    Other states stay in the archive, as do those that could not be saved. Raises VmError for these,
    after saving all others.
    """
    known = {state.name: state for state in SAVED if state.since <= machine.image.zfs_version}
    if unknown := sorted(set(names) - set(known)):
        raise VmError(f"no such state: {', '.join(unknown)} (there are {', '.join(known)})")
    archive = ARCHIVES / f"{machine.image.zfs}.tar.xz"
    old = states(archive) if archive.exists() else {}
    found = {name: moments for name, moments in old.items() if name in known}
    failed = []
    for name in names or known:
        start = time.monotonic()
        try:
            found[name] = _moments(machine, known[name])
        except VmError as error:
            failed.append(name)
            print(f"{name}: {error}", file=sys.stderr)
        clear(machine)
        write(archive, found)
        seconds = time.monotonic() - start
        print(f"{name}: {seconds:.0f} s, {archive.stat().st_size:,} bytes", flush=True)
    if failed:
        raise VmError(f"not saved: {', '.join(failed)}")


def _moments(machine: Machine, state: State) -> Sequence[Packed]:
    """Put a pool into a state and return its samples there."""
    state.enter(PoolFactory(machine))
    program = ["env", f"PYTHONPATH={TREE_IN_GUEST}", "/opt/zc/bin/python"]
    words = [*program, "-m", "tests.vm.inside.packed", state.pool, str(APART)]
    lines = machine.run(words, timeout=180).stdout.splitlines()
    if not lines:
        raise VmError("no sample")
    return [Packed(bytes.fromhex(config), rest) for rest, config in map(json.loads, lines)]
