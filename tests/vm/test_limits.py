"""Bottlenecks of scans on live pools that are slowed on purpose; hooks that report a stall."""

from __future__ import annotations

import json
import shlex
from collections import Counter

import pytest

from tests.vm.machine import Machine
from tests.vm.pools import PoolFactory
from tests.vm.traces import little_scan_memory
from zconsole.units import parse_size

PYTHON = "PYTHONPATH=/root/zconsole /opt/zc/bin/python -m zconsole"
PARAMETERS = "/sys/module/zfs/parameters"
MEGABYTE = 1 << 20
NOTHING = 512
"""Bytes/s of a disk that completes no request during a test."""
HOOK = "#!/bin/sh\ncat >>/root/alerts\n"


def causes(vm: Machine, samples: int = 14) -> Counter[str]:
    """Count how often each cause was named while watching, without "too little seen"."""
    command = f"{PYTHON} watch tank --json --interval 1 --count {samples}"
    lines = vm.run(command, timeout=samples * 3 + 60).stdout.splitlines()
    found = [json.loads(line)["scan"]["limit"] for line in lines]
    print(*dict.fromkeys(limit["text"] for limit in found if limit), sep="\n")
    return Counter(limit["cause"] for limit in found if limit and limit["figures"])


def named(vm: Machine) -> str:
    """Return the cause named most often; fails if none was."""
    found = causes(vm)
    assert found, vm.run(f"{PYTHON} status tank").stdout
    return found.most_common(1)[0][0]


@pytest.fixture
def mirror(pool: PoolFactory) -> PoolFactory:
    """A mirror of two disks with 300 MB on it."""
    pool.create("mirror d0 d1")
    pool.fill(300)
    return pool


@pytest.fixture
def raidz(pool: PoolFactory) -> PoolFactory:
    """A raidz1 of four disks with 400 MB on it."""
    pool.create("raidz1 d0 d1 d2 d3", options="-o ashift=12")
    pool.fill(400)
    return pool


def test_a_throttled_new_disk_is_the_limit(vm: Machine, mirror: PoolFactory) -> None:
    mirror.slow(4, bps=3 * MEGABYTE)
    mirror.zpool("replace", "-f", "tank", "d1", "d4")
    mirror.wait_status("resilvered, [0-9]")
    assert named(vm) == "new-disk"


@pytest.mark.slow
def test_a_throttled_source_is_a_slow_disk(vm: Machine, raidz: PoolFactory) -> None:
    raidz.slow(1, bps=2 * MEGABYTE)
    vm.run("zpool export tank && zpool import -d /dev/disk/by-id tank")
    raidz.zpool("replace", "-f", "tank", "d3", "d4")
    raidz.wait_status("resilvered, [0-9]")
    assert named(vm) == "slow-disk"


@pytest.mark.slow
def test_a_disk_of_few_requests_a_second_is_a_slow_disk(vm: Machine, raidz: PoolFactory) -> None:
    vm.throttle(2, iops=4)
    vm.run("zpool export tank && zpool import -d /dev/disk/by-id tank")
    raidz.zpool("scrub", "tank")
    raidz.wait_status("scrub in progress")
    assert named(vm) == "slow-disk"


@pytest.mark.slow
def test_readers_beside_a_scrub_are_foreground(vm: Machine, mirror: PoolFactory) -> None:
    mirror.slow(0, 1, bps=6 * MEGABYTE)
    vm.run("zfs set primarycache=metadata tank")
    vm.run("zpool export tank && zpool import -d /dev/disk/by-id tank")  # or reads come from memory
    readers = "while :; do dd if=/tank/data of=/dev/null bs=128k status=none; done"
    many = f"for i in 1 2 3 4 5 6; do sh -c {shlex.quote(readers)} & done"
    vm.run(f"({many}) </dev/null >/dev/null 2>&1 & echo started")
    try:
        mirror.zpool("scrub", "tank")
        mirror.wait_status("scrub in progress")
        assert named(vm) == "foreground"
    finally:
        vm.run("pkill -x sh; pkill -x dd", check=False)


@pytest.mark.slow
def test_the_volume_that_competes_with_a_scrub_is_named(vm: Machine, mirror: PoolFactory) -> None:
    vm.run("zfs create tank/idle; zfs create -s -V 64M -o primarycache=metadata tank/vm")
    mirror.wait_until("[ -b /dev/zvol/tank/vm ]")
    vm.run("dd if=/dev/urandom of=/dev/zvol/tank/vm bs=1M count=48 status=none; zpool sync")
    mirror.slow(0, 1, bps=6 * MEGABYTE)
    read = "dd if=/dev/zvol/tank/vm of=/dev/null bs=128k iflag=direct status=none"
    readers = shlex.quote(f"while :; do {read}; done")
    many = f"for i in 1 2 3 4 5 6; do sh -c {readers} & done"
    vm.run(f"({many}) </dev/null >/dev/null 2>&1 & echo started")
    try:
        mirror.zpool("scrub", "tank")
        mirror.wait_status("scrub in progress")
        watch = f"{PYTHON} watch tank --json --interval 1 --count 14"
        seen = [json.loads(line) for line in vm.run(watch, timeout=120).stdout.splitlines()]
    finally:
        vm.run("pkill -x sh; pkill -x dd", check=False)
    busiest, *others = seen[-1]["busiest_datasets"]
    limits = [each["scan"]["limit"] for each in seen if each["scan"]["limit"]]
    print(busiest, *others, *dict.fromkeys(limit["text"] for limit in limits), sep="\n")
    assert seen[0]["busiest_datasets"] is None  # rates take two readings
    assert busiest["name"] == "tank/vm"
    assert busiest["read_rate"] > 100e3
    assert busiest["write_rate"] == 0
    assert {each["name"] for each in others} == {"tank", "tank/idle"}
    assert any("other I/O: tank/vm reads" in limit["text"] for limit in limits)


@pytest.mark.slow
def test_a_frozen_scan_is_a_throttle(vm: Machine, mirror: PoolFactory) -> None:
    mirror.slow(0, 1, bps=4 * MEGABYTE)
    mirror.zpool("scrub", "tank")
    mirror.wait_status("scrub in progress")
    vm.run(f"echo 1 >{PARAMETERS}/zfs_scan_suspend_progress")
    try:
        assert named(vm) in ("throttle", "metadata")
        limit = vm.run(f"{PYTHON} watch tank --json --interval 1 --count 12").stdout
        assert "zfs_scan_suspend_progress" in limit.splitlines()[-1] or "metadata" in limit
    finally:
        vm.run(f"echo 0 >{PARAMETERS}/zfs_scan_suspend_progress")


@pytest.mark.slow
def test_a_scrub_that_may_sort_little_at_once_is_short_of_memory(
    vm: Machine, pool: PoolFactory
) -> None:
    little_scan_memory(pool)
    found = causes(vm, 24)
    turns = "grep -E 'scan (clearing|checkpoint)' /proc/spl/kstat/zfs/dbgmsg"
    print(vm.run(turns, check=False).stdout)
    assert found["memory"] > 12
    assert found["memory"] > 0.9 * found.total()


@pytest.mark.slow
def test_a_disk_that_leaves_and_comes_back_is_in_trouble(vm: Machine, mirror: PoolFactory) -> None:
    command = f"{PYTHON} watch tank --json --interval 1 >/root/troubles"
    vm.run(f"({command}) </dev/null 2>/dev/null & echo $! >/root/watcher")
    mirror.wait_until("[ -s /root/troubles ]")
    vm.pull(1)
    vm.run("dd if=/dev/urandom of=/tank/more bs=1M count=8 status=none; zpool sync tank")
    mirror.wait_status("d?LABDISK1.* (REMOVED|UNAVAIL|FAULTED)")
    mirror.wait_until("tail -n 1 /root/troubles | grep -q '\"gone\": true'")
    vm.plug(1)
    vm.run("zpool clear tank; zpool online tank /dev/disk/by-id/virtio-LABDISK1", check=False)
    mirror.wait_status("LABDISK1.* ONLINE")
    mirror.wait_until("tail -n 1 /root/troubles | grep -q '\"flaps\": 1'")
    last = json.loads(vm.run("tail -n 1 /root/troubles").stdout)
    vm.run("pkill -f 'watch tank --json'", check=False)
    (trouble,) = last["troubles"]
    print(trouble["text"])
    assert trouble["device"] == "virtio-LABDISK1"
    assert (trouble["flaps"], trouble["gone"]) == (1, False)
    assert "disconnected, returned" in trouble["text"]


@pytest.mark.slow
def test_a_resilver_left_alone_wakes_its_owner_and_is_reported(
    vm: Machine, mirror: PoolFactory
) -> None:
    vm.run(f"rm -f /root/alerts; printf {shlex.quote(HOOK)} >/root/hook; chmod +x /root/hook")
    mirror.slow(4, bps=8 * MEGABYTE)
    mirror.zpool("replace", "-f", "tank", "d1", "d4")
    left_alone(vm)
    vm.run("sleep 12")
    mirror.slow(4, bps=NOTHING)
    vm.run("sleep 90", timeout=120)
    mirror.slow(4, bps=16 * MEGABYTE)
    mirror.wait_until("[ -s /root/code ]", 300)
    told = [json.loads(line) for line in vm.run("cat /root/alerts").stdout.splitlines()]
    kinds = [alert["kind"] for alert in told if alert["kind"] in ("stalled", "finished")]
    assert kinds == ["stalled", "finished"], told
    assert vm.run("cat /root/code").stdout.strip() == "0"
    report = vm.run(f"{PYTHON} report tank").stdout
    print(report)
    assert report.startswith("# resilver on tank: finished")
    assert "the pool is safe." in report
    assert "the limit was the new disk's writes." in report
    assert "virtio-LABDISK4 (new)" in report
    assert vm.run(f"{PYTHON} report tank --svg").stdout.startswith("<svg")

    # Repeat the same measurement with one thing changed.
    mirror.slow(5, bps=4 * MEGABYTE)
    mirror.zpool("replace", "-f", "tank", "d4", "d5")
    left_alone(vm)
    mirror.wait_until("[ -s /root/code ]", 300)
    compared = vm.run(f"{PYTHON} report tank --compare 2 1").stdout
    print(compared)
    table = [line.split("|") for line in compared.splitlines() if line.startswith("|")]
    rows = {cells[1].strip(): cells for cells in table}
    rates = [cell.strip() for cell in rows["new disk, mean"][2:4]]
    assert all(rate.endswith("M/s") for rate in rates)
    assert parse_size(rates[1].removesuffix("/s")) < 5 * MEGABYTE
    assert "limited by" in compared
    timed = json.loads(vm.run(f"{PYTHON} balance tank --disk 1G --json").stdout)["resilver"]
    assert "watched" in timed["reason"]
    assert timed["low_seconds"] < timed["seconds"] < timed["high_seconds"]


def left_alone(vm: Machine) -> None:
    """Start an unattended watch that writes its exit code to /root/code."""
    watch = f"{PYTHON} watch tank --until-done --hook /root/hook --stalled-after 40"
    begin = f"rm -f /root/code; ({watch}; echo $? >/root/code)"
    vm.run(f"{begin} </dev/null >/root/lines 2>/root/says & echo started")
