"""The program itself on a live pool: followed to the end, recorded, in tmux over ssh."""

from __future__ import annotations

import re

import pytest

from tests.vm.machine import Machine
from tests.vm.pools import PoolFactory
from tests.vm.terminal import ZCONSOLE, Terminal, samples

MIB = 1 << 20
MOVING = ("scanning", "issuing")
WINDOW = r"rate [^(]*\(([0-9]+) (s|min)\)"
"""The rate of a scan with what it covers; the console has an average of the pass before that."""


def start_resilver(pool: PoolFactory, megabytes: int, bps: int) -> None:
    """Replace a disk of a raidz1 by one held to ``bps``."""
    pool.create("raidz1 d0 d1 d2")
    pool.fill(megabytes)
    pool.slow(3, bps=bps)
    pool.zpool("replace", "-f", "tank", "d2", "d3")
    pool.wait_status("resilver in progress")


@pytest.mark.slow
def test_a_whole_resilver_is_followed_recorded_and_replayed(pool: PoolFactory) -> None:
    start_resilver(pool, 100, MIB)
    vm = pool.machine
    vm.run(f"rm -f /root/rec; ({ZCONSOLE} record /root/rec tank >/dev/null 2>&1 &)")
    done = vm.run(f"{ZCONSOLE} watch tank --json --until-done", timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    seen = samples(done.stdout)
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
    vm.run("timeout 60 sh -c \"while pgrep -f '[z]console record' >/dev/null; do sleep 0.5; done\"")
    recorded = samples(vm.run("cat /root/rec").stdout)
    replayed = samples(vm.run(f"{ZCONSOLE} replay /root/rec --json").stdout)
    assert [r["t"] for r in recorded] == [s["t"] for s in replayed]
    assert {s["source"] for s in replayed} == {"replay"}
    issued = [r["libzfs"]["vdev_tree"]["scan_stats"][14] for r in recorded]
    assert [s["scan"]["issued_bytes"] for s in replayed] == issued
    assert replayed[-1]["scan"]["state"] == "finished"


@pytest.mark.slow
def test_history_outlives_the_connection(pool: PoolFactory) -> None:
    start_resilver(pool, 400, MIB)
    terminal = Terminal(pool.machine)
    terminal.open("tank")
    terminal.wait("resilver +issuing")
    pool.machine.run("sleep 30")
    before = terminal.wait(WINDOW)
    terminal.end()
    terminal.open("tank")
    after = terminal.wait(WINDOW)
    assert window(after) >= 0.5 * window(before) > 5


def window(text: str) -> int:
    """Seconds or minutes that the screen says its rate covers, in seconds."""
    found = re.search(WINDOW, text)
    assert found is not None, text
    return int(found[1]) * (1 if found[2] == "s" else 60)
