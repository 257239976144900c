"""The autopilot on a live kernel: it steers a scrub, and restores the original values."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.vm.machine import Machine
from tests.vm.pools import PoolFactory
from tests.vm.terminal import Terminal
from zconsole.tunables.hold_latency import LEVERS

PARAMETERS = "/sys/module/zfs/parameters"
STATE = "/var/lib/zconsole"
NAME = "zfs_vdev_scrub_max_active"
HOLD = f"echo 1 > {PARAMETERS}/zfs_scan_suspend_progress"


def found(vm: Machine) -> dict[str, str]:
    """Return the tunables of the autopilot that this kernel has, with their values."""
    paths = " ".join(f"{PARAMETERS}/{name}" for name in LEVERS)
    lines = vm.run(f"grep -H . {paths} 2>/dev/null || true").stdout.splitlines()
    return dict(line.split(":", 1) for line in lines)


def steering(vm: Machine, before: dict[str, str], seconds: float = 90.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found(vm) != before:
            return True
        time.sleep(2.0)
    return False


def autopilot(vm: Machine, before: dict[str, str]) -> str:
    """Start an autopilot, wait until it steers; returns the id of its waiting process."""
    vm.run("zconsole tunables hold-latency 50ms")
    assert steering(vm, before)
    return vm.run(f"cat {STATE}/autopilot.lock").stdout.partition(":")[0]


def restored(vm: Machine, before: dict[str, str], seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while found(vm) != before and time.monotonic() < end:
        time.sleep(1.0)
    return found(vm) == before


@pytest.fixture
def scrubbed(pool: PoolFactory) -> Iterator[dict[str, str]]:
    """Create a pool whose scrub is paused, or it would end too soon; yields the original values."""
    vm = pool.machine
    vm.run(f"rm -rf {STATE}")
    pool.create("mirror d0 d1", name="hold")
    pool.fill(20, "/hold/data")
    vm.run(f"{HOLD}; zpool scrub hold")
    yield found(vm)
    vm.run("zconsole tunables hold-latency off || true")


@pytest.mark.slow
def test_off_restores_what_it_found(vm: Machine, scrubbed):
    said = vm.run("zconsole tunables hold-latency 50ms").stderr
    assert "hold: scrub" in said
    assert steering(vm, scrubbed)
    vm.run("zconsole tunables hold-latency off")
    assert found(vm) == scrubbed


@pytest.mark.slow
def test_killed_it_leaves_the_originals_behind(vm: Machine, scrubbed):
    pid = autopilot(vm, scrubbed)
    vm.run(f"kill -9 {pid}")
    assert restored(vm, scrubbed)


@pytest.mark.slow
def test_guard_and_steering_killed_at_once_leave_what_the_next_off_restores(vm: Machine, scrubbed):
    pid = autopilot(vm, scrubbed)
    vm.run(f"kill -9 -- -{pid}; sleep 1")
    assert found(vm) != scrubbed
    vm.run("zconsole tunables hold-latency off")
    assert found(vm) == scrubbed


@pytest.mark.slow
def test_after_a_boot_nothing_is_left_to_restore(vm: Machine, scrubbed):
    autopilot(vm, scrubbed)
    vm.run("sync")
    vm.reboot()
    vm.run(f"{HOLD}; zpool import hold")
    assert found(vm) == scrubbed
    listed = vm.run("zconsole tunables list --json").stdout.splitlines()
    assert {json.loads(line)["set_by_us"] for line in listed} == {None}
    autopilot(vm, scrubbed)
    vm.run("zconsole tunables hold-latency off")
    assert found(vm) == scrubbed


@pytest.mark.slow
def test_a_console_killed_while_it_steers_leaves_the_originals_behind(vm: Machine, scrubbed):
    console = Terminal(vm)
    console.open()
    console.wait("hold")
    console.press("T")
    console.wait("V starts the autopilot")
    console.press("V")
    console.wait("LIMIT APPLICATION LATENCY")
    console.press("5", "0", "m", "s", "Enter")
    console.wait("Pools that scan now")
    console.press("Tab", "Enter")
    console.wait("Autopilot started")
    assert steering(vm, scrubbed)
    vm.run("p=$(tmux list-panes -t con -F '#{pane_pid}'); pkill -9 -P $p; kill -9 $p")
    assert restored(vm, scrubbed)
    console.end()


@pytest.mark.slow
def test_a_value_that_a_person_sets_stays(vm: Machine, scrubbed):
    autopilot(vm, scrubbed)
    vm.run(f"echo 7 > {PARAMETERS}/{NAME}")
    assert restored(vm, {**scrubbed, f"{PARAMETERS}/{NAME}": "7"})
    vm.run(f"echo {scrubbed[f'{PARAMETERS}/{NAME}']} > {PARAMETERS}/{NAME}")


@pytest.mark.slow
def test_an_exported_pool_ends_it(vm: Machine, scrubbed):
    autopilot(vm, scrubbed)
    vm.run("zpool export hold")
    assert restored(vm, scrubbed, 60.0)
    vm.run("zpool import hold")


@pytest.mark.slow
def test_the_end_of_the_scan_ends_it(vm: Machine, scrubbed):
    autopilot(vm, scrubbed)
    vm.run("zpool scrub -s hold")
    assert restored(vm, scrubbed, 60.0)


@pytest.mark.slow
def test_each_step_is_in_the_audit_log(vm: Machine, scrubbed):
    autopilot(vm, scrubbed)
    lines = vm.run(f"cat {STATE}/audit.jsonl").stdout.splitlines()
    assert any(json.loads(line).get("action") == "hold-latency 0.05" for line in lines)
