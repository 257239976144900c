"""Features of newer OpenZFS releases, as the console plans and runs them."""

from __future__ import annotations

import json

import pytest

from tests.vm.machine import TREE_IN_GUEST, Machine


def since(vm: Machine, *release: int) -> None:
    if vm.image.zfs_version < release:
        pytest.skip(f"needs OpenZFS {'.'.join(map(str, release))}")


def newest_scan(vm: Machine) -> dict:
    command = f"cd {TREE_IN_GUEST} && python3 -m zconsole watch tank --count 1 --json"
    return json.loads(vm.run(command).stdout)["scan"]


def test_a_scrub_of_what_is_new_needs_one_that_completed_and_is_partial(act, pool, vm):
    since(vm, 2, 3)
    pool.create("mirror d0 d1")
    pool.fill(20)
    assert "no scrub has completed" in act("scrub-C", plan=True).plan["refused"]
    assert act("scrub", follow=True).end["ok"]
    assert newest_scan(vm)["full"] is True
    pool.fill(4)
    assert act("scrub-C", follow=True).end["ok"]
    assert newest_scan(vm)["full"] is False


def test_a_scrub_of_what_is_new_is_refused_before_2_3(act, pool, vm):
    if vm.image.zfs_version >= (2, 3):
        pytest.skip("has it")
    pool.create("mirror d0 d1")
    assert "needs OpenZFS 2.3" in act("scrub-C", plan=True).plan["refused"]
    assert "needs OpenZFS 2.4" in act("scrub-S", "2026-11-01", plan=True).plan["refused"]


def test_a_scrub_by_dates_runs(act, pool, vm):
    since(vm, 2, 4)
    pool.create("mirror d0 d1")
    pool.fill(20)
    day = vm.run("date +%Y-%m-%d").stdout.strip()
    assert act("scrub-S", "2001-01-01", day, follow=True).end["ok"]
    assert f"zpool scrub -S 2001-01-01 -E {day}" in vm.run("zpool history tank").stdout


def test_a_device_sits_out_and_is_used_again(act, pool, vm):
    since(vm, 2, 4)
    pool.create("raidz1 d0 d1 d2 d3")
    assert act("sit-out", "d1", "on", follow=True).end["ok"]
    get = "zpool get -H -o value sit_out tank all-vdevs"
    assert vm.run(get).stdout.split().count("on") == 1
    assert "sits out or is incomplete" in act("sit-out", "d2", "on", plan=True).plan["refused"]
    assert act("sit-out", "d1", "off", follow=True).end["ok"]
    assert "on" not in vm.run(get).stdout.split()
    assert act("autosit", "raidz1-0", "on").status == 0
    assert vm.run("zpool get -H -o value autosit tank raidz1-0").stdout.strip() == "on"


def test_nothing_sits_out_before_2_4(act, pool, vm):
    if vm.image.zfs_version >= (2, 4):
        pytest.skip("has it")
    pool.create("raidz1 d0 d1 d2 d3")
    assert "needs OpenZFS 2.4" in act("sit-out", "d1", "on", plan=True).plan["refused"]


def test_a_scrub_is_paused_outside_its_hours_and_resumed_in_them(pool, vm):
    zconsole = f"cd {TREE_IN_GUEST} && ZCONSOLE_STATE=/root/state python3 -m zconsole"
    pool.create("mirror d0 d1")
    pool.fill(40)
    vm.run("echo 1 > /sys/module/zfs/parameters/zfs_scan_suspend_progress")
    try:
        hour = int(vm.run("date +%H").stdout)
        closed = f"{(hour + 2) % 24:02}:00-{(hour + 3) % 24:02}:00"
        open_now = f"{hour:02}:00-{(hour + 2) % 24:02}:00"
        pool.zpool("scrub", "tank")
        vm.run(f"{zconsole} scrub window tank {closed}")
        pool.wait_status("scrub paused")
        assert "paused until" in vm.run(f"{zconsole} scrub").stdout
        vm.run("pkill -KILL zconsole-keeper")
        pool.zpool("export", "tank")
        pool.zpool("import", "tank")
        pool.wait_status("scrub paused")
        vm.run(f"{zconsole} scrub window tank {open_now}")
        pool.wait_status("scrub in progress")
    finally:
        vm.run("echo 0 > /sys/module/zfs/parameters/zfs_scan_suspend_progress")
        vm.run(f"{zconsole} scrub off tank", check=False)
