"""Pools that do not answer: the console reports it, keeps its data, obeys and quits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vm.machine import Machine
from tests.vm.pools import PoolFactory
from tests.vm.stuck import hold_lock, suspend, suspended
from tests.vm.terminal import ZCONSOLE, Terminal, samples

pytestmark = pytest.mark.slow

LOCK = "pool lock is held"
QUIT_SECONDS = 4.0
"""Limit for quitting with emulation; waiting for the kernel would take a source's deadline, 5 s."""


def watched(vm: Machine, *words: str) -> dict[str, dict[str, Any]]:
    """Return the last of two samples of every pool, by name."""
    line = f"{ZCONSOLE} watch --json --count 2 {' '.join(words)}"
    return {s["pool"]: s for s in samples(vm.run(line, timeout=60).stdout)}


def assert_obeys(terminal: Terminal) -> None:
    """Check that keys still work, and that the console quits when told."""
    terminal.press("?")
    terminal.wait("HELP", 20)
    terminal.press("Escape")
    assert terminal.seconds_to_quit() < QUIT_SECONDS


def test_a_suspended_pool_keeps_its_tree_and_the_others_go_on(pool: PoolFactory) -> None:
    vm = pool.machine
    pool.create("mirror d4 d5", name="well")
    pool.create("d0", options="-o failmode=wait")
    terminal = Terminal(vm)
    terminal.open("tank", "well")
    terminal.wait("virtio-LABDISK0")
    suspend(pool)
    assert "virtio-LABDISK0" in terminal.wait(r"SUSPENDED .* age +[0-9]+s")
    seen = watched(vm)
    assert "SUSPENDED" in seen["tank"]["problem"]
    assert seen["well"]["problem"] is None
    assert_obeys(terminal)


def test_a_pool_suspended_before_the_console_came(pool: PoolFactory) -> None:
    suspended(pool)
    terminal = Terminal(pool.machine)
    terminal.open("tank")
    terminal.wait("SUSPENDED")
    # The code for actions is loaded only now, which takes a while with emulation.
    pool.machine.run("sleep 10")
    assert_obeys(terminal)


def test_the_lock_of_all_pools_held_by_one(pool: PoolFactory) -> None:
    vm = pool.machine
    pool.create("mirror d4 d5", name="well")
    terminal = Terminal(vm)
    terminal.open("well")
    terminal.wait("virtio-LABDISK4")
    hold_lock(pool)
    assert "virtio-LABDISK4" in terminal.wait(LOCK)
    assert LOCK in watched(vm)["well"]["problem"]
    assert_obeys(terminal)
    vm.throttle(0)
    pool.wait_until("zpool list well")
    assert watched(vm, "well")["well"]["problem"] is None
