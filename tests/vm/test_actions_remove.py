"""Removing from live pools, and a checkpoint before a vdev is added."""

from __future__ import annotations

import re

import pytest

from tests.vm.test_actions_add import states

SUSPEND = "/sys/module/zfs/parameters/zfs_removal_suspend_progress"
SUMS = "cd /tank && find . -type f -exec sha256sum {} + | sort"


@pytest.mark.slow
def test_a_log_a_cache_and_a_spare_leave_a_raidz(act, pool, vm):
    pool.create("raidz1 d0 d1 d2 log mirror d3 d4 cache d5 spare d6")
    for device in ("mirror-1", "d5", "d6"):
        run = act("remove", device, follow=True)
        assert run.end.get("ok"), run.events
        assert run.plan["typed"] is None
    assert not {"logs", "cache", "spares"} & set(vm.run("zpool status tank").stdout.split())
    assert "with raidz or dRAID" in act("remove", "d0", plan=True).plan["refused"]
    assert vm.run("zpool remove tank raidz1-0", check=False).returncode != 0


@pytest.mark.slow
def test_a_spare_in_use_is_refused_as_by_the_kernel(act, pool, vm):
    pool.create("mirror d0 d1 spare d2")
    assert act("replace", "d0=d2", follow=True).status == 0
    spare = act("remove", "d2", plan=True).plan
    assert spare["refused"]
    assert vm.run(f"zpool remove tank {pool.device('d2')}", check=False).returncode != 0


@pytest.mark.slow
def test_a_mirror_is_evacuated_with_all_its_data(act, pool, vm):
    pool.create("mirror d0 d1 mirror d2 d3")
    pool.fill(100)
    before = vm.run(SUMS).stdout
    said = vm.run("zpool remove -np tank mirror-1").stdout
    assert re.fullmatch(r"mirror-1 \d+\n", said)
    assert act("remove", "d2").kinds()[-1] == "refused", "its name is typed"
    run = act("remove", "d2", typed="mirror-1", follow=True)
    assert run.end.get("ok"), run.events
    assert "mirror-1" not in states(vm)
    pool.zpool("scrub", "-w", "tank")
    assert vm.run(SUMS).stdout == before
    assert "no other vdev" in act("remove", "mirror-0", plan=True).plan["refused"]
    assert vm.run("zpool remove tank mirror-0", check=False).returncode != 0


@pytest.mark.slow
def test_a_removal_is_canceled(act, pool, vm):
    pool.create("mirror d0 d1 mirror d2 d3")
    pool.fill(40)
    vm.run(f"echo 1 > {SUSPEND}")
    try:
        assert act("remove", "mirror-1", typed="mirror-1").status == 0
        assert "removal is running" in act("remove", "mirror-0", plan=True).plan["refused"]
        assert (
            "removal is running"
            in (act("add-after-checkpoint", "normal:mirror", "d4", "d5", plan=True).plan["refused"])
        )
        assert vm.run("zpool checkpoint tank", check=False).returncode != 0
        assert act("cancel-removal", follow=True).end.get("ok")
    finally:
        vm.run(f"echo 0 > {SUSPEND}")
    assert states(vm)["mirror-1"] == "ONLINE"


@pytest.mark.slow
def test_an_add_after_a_checkpoint_is_taken_back(act, pool, vm):
    pool.create("mirror d0 d1")
    run = act("add-after-checkpoint", "normal:mirror", "d2", "d3", follow=True)
    assert run.end.get("ok"), run.events
    assert "ZFS refuses" in act("remove", "mirror-1", plan=True).plan["refused"]
    assert vm.run("zpool remove tank mirror-1", check=False).returncode != 0
    pool.zpool("export", "tank")
    pool.zpool("import", "--rewind-to-checkpoint", "tank")
    assert "mirror-1" not in states(vm)
    assert act("add-after-checkpoint", "log:disk", "d4", follow=True).end.get("ok")
    assert act("discard", typed="tank", follow=True).end.get("ok")
    assert act("remove", "d4", follow=True).end.get("ok")


@pytest.mark.slow
def test_no_checkpoint_is_made_while_a_disk_is_out(act, pool):
    pool.create("mirror d0 d1")
    pool.zpool("offline", "tank", "d0")
    plan = act("add-after-checkpoint", "normal:mirror", "d8", "d9", plan=True).plan
    assert "replace it first" in plan["refused"]
