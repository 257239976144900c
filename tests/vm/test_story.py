"""A whole story by keys: a disk fails, is replaced, watched, sped up; the vdev grows."""

from __future__ import annotations

import json

import pytest

from tests.vm.machine import Machine
from tests.vm.operating import Operator
from tests.vm.pools import PoolFactory
from tests.vm.terminal import Terminal

MIB = 1 << 20
SMALL = 400 * MIB
PARAMETERS = "/sys/module/zfs/parameters"
TIME = "zfs_resilver_min_time_ms"
FREEZE = "zfs_scan_suspend_progress"
AUDIT = "/var/lib/zconsole/audit.jsonl"


def parameters(vm: Machine) -> dict[str, str]:
    """Return every parameter of the module with its current value."""
    lines = vm.run(f"cd {PARAMETERS} && grep -sH '' zfs_*").stdout.splitlines()
    return dict(line.split(":", 1) for line in lines)


def small_disk(pool: PoolFactory, number: int) -> str:
    """Create a partition of 400 MiB, to be replaced by a whole disk; returns its path."""
    disk = pool.device(f"d{number}")
    write = (
        "import struct, sys\n"
        "entry = struct.pack('<BxxxBxxxII', 0, 0x83, 2048, int(sys.argv[2]) // 512)\n"
        "table = bytes(446) + entry + bytes(48) + b'\\x55\\xaa'\n"
        "open(sys.argv[1], 'r+b').write(table)\n"
    )
    pool.machine.run(["/opt/zc/bin/python", "-c", write, disk, str(SMALL)])
    part = f"{disk}-part1"
    pool.machine.run(f"blockdev --rereadpt {disk}; until [ -e {part} ]; do sleep 0.1; done")
    return part


@pytest.mark.slow
def test_a_failed_disk_by_keys_alone(pool: PoolFactory) -> None:
    vm = pool.machine
    vm.run("rm -rf /var/lib/zconsole")
    pool.create(f"mirror {small_disk(pool, 0)} {small_disk(pool, 1)}")
    pool.fill(80)
    size = int(vm.run("zpool list -Hp -o size tank").stdout)
    before = parameters(vm)
    operator = Operator(Terminal(vm))
    operator.terminal.open("tank")
    operator.see("LABDISK1", 180)

    vm.pull(0)
    vm.run("head -c 4M /dev/urandom >/tank/more; zpool sync")
    operator.see("DEGRADED")
    pool.slow(4, bps=MIB)
    replace_the_failed(operator)
    watch_and_speed_up(operator, vm, before)
    pool.slow(4, bps=0)
    operator.see("resilver finished", 120)
    ended(pool, 1)
    assert parameters(vm) == before

    replace_the_other(operator)
    operator.see("Expand mirror-0: mirror-0 gains", 120)
    ended(pool, 2)
    grow(operator)
    ended(pool, 3)
    assert int(vm.run("zpool list -Hp -o size tank").stdout) > size + SMALL
    assert vm.run("zpool list -H -o health tank").stdout.strip() == "ONLINE"
    assert operator.terminal.seconds_to_quit() < 5
    log = [json.loads(line) for line in vm.run(f"cat {AUDIT}").stdout.splitlines()]
    plans = [line for line in log if line.get("kind") not in ("command", "tunable")]
    done = [(line["action"], line["event"]) for line in plans]
    assert done == [(verb, what) for verb in ("replace", "replace", "expand") for what in LOGGED]
    tuned = [line["event"] for line in log if line.get("kind") == "tunable"]
    assert tuned == ["begun", "ended"] * 2  # the preset is set, and undone when the scan ends
    assert all(line.get("ok", True) and line.get("result", "done") == "done" for line in log)


LOGGED = ("action", "ended")
"""Log entries about a plan as a whole; each command has its own two lines besides."""


def ended(pool: PoolFactory, count: int) -> None:
    """Wait until ``count`` actions were followed to their ends."""
    pool.wait_until(f'[ $(grep -c \'"kind": "action"\' {AUDIT}) = {count} ]', 120)


def replace_the_failed(operator: Operator) -> None:
    """Replace the failed disk: R on the pool selects the only one; healing is the default."""
    operator.press("g", "R")
    assert "LABDISK0" in operator.see("REPLACE .* WITH").splitlines()[0]
    operator.choose("virtio-LABDISK4")
    plan = operator.see("Will run")
    assert "no device may fail" in plan
    operator.run("healing resilver")
    operator.see("resilver +resilvering")


def watch_and_speed_up(operator: Operator, vm: Machine, before: dict[str, str]) -> None:
    """Set a preset that is undone when the scan ends; check that the estimate is on the screen."""
    operator.see(r"ETA [0-9]+")
    operator.press("T")
    operator.see("TUNABLES")
    operator.press("F")
    operator.see("Acts on every pool")
    operator.press("Tab", "Enter")
    operator.see(" is [0-9]+")
    operator.back("TUNABLES")
    operator.press("E")
    operator.see("Values set here")
    changed = {name for name, value in parameters(vm).items() if value != before[name]}
    assert changed
    operator.back("resilver +(resilvering|finished)")


def replace_the_other(operator: Operator) -> None:
    """Replace the healthy disk by a larger one."""
    operator.go_to("LABDISK1")
    operator.press("R")
    assert "LABDISK1" in operator.see("REPLACE .* WITH").splitlines()[0]
    operator.choose("virtio-LABDISK5")
    operator.run("leave it plugged in")


def grow(operator: Operator) -> None:
    """Let the vdev grow by typing its name, after the console has said that it could."""
    operator.go_to("mirror-0")
    operator.press("A")
    operator.see("ACTIONS")
    operator.choose("Expand mirror-0 to")
    operator.run("never shrinks", typed="mirror-0")


def kill_the_console(operator: Operator) -> None:
    """Kill the console as the kernel does when memory runs out: without cleanup."""
    pids = "tmux list-panes -a -F '#{pane_pid}'"
    operator.terminal.machine.run(f"pid=$({pids}); kill -9 $pid; tail --pid=$pid -f /dev/null")


@pytest.mark.slow
def test_what_a_killed_console_set_is_restored_by_the_next_but_not_over_another_value(
    pool: PoolFactory,
) -> None:
    vm = pool.machine
    vm.run("rm -rf /var/lib/zconsole")
    pool.create("mirror d0 d1")
    before = parameters(vm)
    operator = Operator(Terminal(vm))
    operator.terminal.open("tank")
    operator.see("LABDISK1", 180)
    operator.press("T")
    operator.see("TUNABLES")
    operator.press("F")
    operator.see("Acts on every pool")
    operator.press("Tab", "Enter")
    operator.see(f"{TIME} is 6000")
    kill_the_console(operator)
    vm.run(f"echo 4321 >{PARAMETERS}/{TIME}")

    operator.terminal.open("tank")
    operator.see("Left by a console that is gone", 180)
    assert parameters(vm) == {**before, TIME: "4321"}


@pytest.mark.slow
def test_frozen_scans_go_on_when_the_console_is_killed(pool: PoolFactory) -> None:
    vm = pool.machine
    pool.create("mirror d0 d1")
    listed = vm.run("zconsole tunables list").stdout.splitlines()
    row = next(n for n, line in enumerate(listed) if line.startswith(FREEZE))
    operator = Operator(Terminal(vm))
    operator.terminal.open("tank")
    operator.see("LABDISK1", 180)
    operator.press("T")
    operator.see("TUNABLES")
    operator.press(*["j"] * row, "Enter")
    operator.see(f"SET {FREEZE}")
    operator.press("1", "Enter")
    operator.see("Acts on every pool")
    operator.press("Tab", "Enter")
    operator.see(f"{FREEZE} is 1")
    assert parameters(vm)[FREEZE] == "1"
    kill_the_console(operator)
    pool.wait_until(f"[ $(cat {PARAMETERS}/{FREEZE}) = 0 ]")
