"""The program itself on a live pool: followed to the end, recorded, suspended, in tmux over ssh."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.vm.machine import Machine
from tests.vm.pools import PoolFactory
from tests.vm.states import suspended

MIB = 1 << 20
ZCONSOLE = (
    "env PYTHONPATH=/root/zconsole LANG=C.UTF-8 TERM=xterm-256color /opt/zc/bin/python -m zconsole"
)
MOVING = ("scanning", "issuing")


def start_resilver(pool: PoolFactory, megabytes: int, bps: int) -> None:
    """Replace a disk of a raidz1 by one held to ``bps``."""
    pool.create("raidz1 d0 d1 d2")
    pool.fill(megabytes)
    pool.slow(3, bps=bps)
    pool.zpool("replace", "-f", "tank", "d2", "d3")
    pool.wait_status("resilver in progress")


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.slow
def test_a_whole_resilver_is_followed_recorded_and_replayed(pool: PoolFactory) -> None:
    start_resilver(pool, 60, 2 * MIB)
    vm = pool.machine
    vm.run(f"rm -f /root/rec; ({ZCONSOLE} record /root/rec tank >/dev/null 2>&1 &)")
    done = vm.run(f"{ZCONSOLE} watch tank --json --until-done", timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    seen = lines(done.stdout)
    running = [s["scan"] for s in seen if s["scan"]["state"] == "running"]
    assert len(running) >= 5
    assert {scan["function"] for scan in running} == {"resilver"}
    assert all(scan["stage"] in MOVING for scan in running)
    percents = [scan["percent"] for scan in running]
    assert percents == sorted(percents)
    assert all(0 <= percent <= 110 for percent in percents)
    told = [scan for scan in running if scan["eta_seconds"] is not None]
    assert len(told) >= len(running) / 2
    assert all(s["eta_low_seconds"] <= s["eta_seconds"] <= s["eta_high_seconds"] for s in told)
    last = seen[-1]
    assert (last["scan"]["state"], last["health"]["word"]) == ("finished", "OK")
    assert last["redundancy"] == {"raidz1-0": 1}
    assert_replayed(vm)


def assert_replayed(vm: Machine) -> None:
    """What was recorded ends by itself with the scan, and replays to what was recorded."""
    vm.run("for i in $(seq 60); do pgrep -f 'zconsole record' >/dev/null || exit 0; sleep 1; done")
    recorded = lines(vm.run("cat /root/rec").stdout)
    replayed = lines(vm.run(f"{ZCONSOLE} replay /root/rec --json").stdout)
    assert [r["t"] for r in recorded] == [s["t"] for s in replayed]
    assert {s["source"] for s in replayed} == {"replay"}
    issued = [r["libzfs"]["vdev_tree"]["scan_stats"][14] for r in recorded]
    assert [s["scan"]["issued_bytes"] for s in replayed] == issued
    assert replayed[-1]["scan"]["state"] == "finished"


def screen(vm: Machine) -> str:
    return vm.run("tmux capture-pane -p -t con", check=False).stdout


def wait_for(vm: Machine, pattern: str, seconds: int = 60) -> str:
    """The console's screen once it matches."""
    test = f"tmux capture-pane -p -t con | grep -Eq {pattern!r}"
    vm.run(
        f"for i in $(seq {2 * seconds}); do {test} && exit 0; sleep 0.5; done; exit 1", timeout=120
    )
    return screen(vm)


def open_console(vm: Machine, *words: str) -> None:
    vm.run("tmux kill-server 2>/dev/null; true")
    vm.run(f'tmux new-session -d -s con -x 80 -y 24 "{ZCONSOLE} {" ".join(words)}"')


@pytest.mark.slow
def test_a_suspended_pool_does_not_take_the_console_with_it(pool: PoolFactory) -> None:
    vm = pool.machine
    pool.create("mirror d4 d5", name="well")
    pool.create("d0", options="-o failmode=wait")
    open_console(vm, "tank", "well")
    wait_for(vm, "tank")
    pool.zpool("destroy", "tank")
    suspended(pool)
    text = wait_for(vm, "SUSPENDED", 90)
    assert "SUSPENDED" in text
    assert "virtio-LABDISK0" in text
    samples = vm.run(f"timeout 60 {ZCONSOLE} watch --json --count 2", check=False, timeout=90)
    states = {s["pool"]: s for s in lines(samples.stdout)}
    assert "SUSPENDED" in (states["tank"]["problem"] or "")
    assert states["well"]["problem"] is None or "lock" in states["well"]["problem"]
    vm.run("tmux send-keys -t con '?'")
    wait_for(vm, "this help", 10)
    vm.run("tmux send-keys -t con Escape q")
    gone = "tmux has-session -t con 2>/dev/null || exit 0"
    vm.run(f"for i in $(seq 20); do {gone}; sleep 0.1; done; exit 1")


@pytest.mark.slow
def test_history_outlives_the_connection(pool: PoolFactory) -> None:
    start_resilver(pool, 100, MIB)
    vm = pool.machine
    open_console(vm, "tank")
    wait_for(vm, "resilver +issuing")
    vm.run("sleep 45")
    before = screen(vm)
    vm.run("tmux kill-server")
    open_console(vm, "tank")
    after = wait_for(vm, r"rate .*\([0-9]+ s|over [0-9]+")
    assert window(after) >= 0.5 * window(before) > 5


def window(text: str) -> int:
    """Seconds or minutes that the screen says its rate covers, in seconds."""
    found = re.search(r"(?:over|\() ?(\d+) ?(s|min|m)", text)
    assert found, text
    return int(found[1]) * (1 if found[2] == "s" else 60)
