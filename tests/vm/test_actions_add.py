"""Plans of zpool add, compared and run on live pools; spares that would not help."""

from __future__ import annotations

import json

import pytest

from tests.vm.machine import TREE_IN_GUEST, Machine


def states(vm: Machine) -> dict[str, str]:
    """Return the state of each row of zpool status, by the disk's short name or as printed."""
    rows = (line.split() for line in vm.run("zpool status tank").stdout.splitlines())
    return {row[0].removeprefix("virtio-LABDISK"): row[1] for row in rows if len(row) > 1}


@pytest.mark.slow
def test_what_is_added_to_a_mirror_pool(act, pool, vm):
    pool.create("mirror d0 d1")
    pool.fill(40)
    run = act("add", "normal:mirror", "d2", "d3", follow=True)
    assert run.end.get("ok"), run.events
    assert "new writes: " in run.said
    assert "zpool remove can take it out again" in run.said
    assert "mirror-1" in states(vm)
    for layout in ("log:disk", "cache:disk", "spare:disk"):
        disk = {"log:disk": "d4", "cache:disk": "d5", "spare:disk": "d6"}[layout]
        run = act("add", layout, disk, follow=True)
        assert run.end.get("ok"), run.events
        assert run.plan["typed"] is None
    assert states(vm)["6"] == "AVAIL"
    for disk in ("d4", "d5", "d6"):
        pool.zpool("remove", "tank", disk)
        # The label of a cache device says that it is in use, which has to be wiped.
        vm.run(f"wipefs -aq {pool.device(disk)}-part1 {pool.device(disk)}")
    pool.zpool("remove", "-w", "tank", "mirror-1")
    assert (
        "a vdev was removed" in act("add", "normal:raidz1", "d2", "d3", plan=True).plan["refused"]
    )


@pytest.mark.slow
def test_what_is_added_to_raidz_is_typed_as_it_stays(act, pool, vm):
    pool.create("raidz1 d0 d1 d2")
    run = act("add", "normal:raidz1", "d3", "d4", "d5")
    assert run.kinds()[-1] == "refused"
    assert "raidz1-1" not in states(vm)
    run = act("add", "normal:raidz1", "d3", "d4", "d5", typed="tank", follow=True)
    assert run.end.get("ok"), run.events
    assert "raidz1-1" in states(vm)
    assert vm.run("zpool remove tank raidz1-1", check=False).returncode != 0
    run = act("add", "special:mirror", "d6", "d7", typed="tank", follow=True)
    assert run.end.get("ok"), run.events
    assert "special" in vm.run("zpool status tank").stdout


LAYOUTS = (
    "normal:disk d6",
    "normal:mirror d6 d7",
    "normal:mirror d6 d7 d8",
    "normal:raidz1 d6 d7 d8",
    "normal:raidz2 d6 d7 d8 d5",
    "special:mirror d6 d7",
    "special:mirror d6 d7 d8",
    "log:disk d6",
    "log:mirror d6 d7",
    "cache:disk d6",
    "spare:disk d6",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "there", ["mirror d0 d1", "raidz1 d0 d1 d2", "raidz2 d0 d1 d2 d3", "mirror d0 d1 d2", "d0"]
)
def test_the_plan_refuses_all_that_zpool_would(act, pool, vm, there):
    """``zpool add -n`` is the reference; the plan may refuse more, never less."""
    pool.create(there)
    for line in LAYOUTS:
        layout, *disks = line.split()
        plan = act("add", layout, *disks, plan=True).plan
        words = [w for w in layout.split(":") if w not in ("normal", "disk")]
        tried = ["zpool", "add", "-n", "tank", *words, *map(pool.device, disks)]
        accepted = vm.run(tried, check=False).returncode == 0
        assert accepted or plan["refused"], (there, line, plan)
        assert not accepted or plan["refused"] is None or "no redundancy" in plan["refused"], line


@pytest.mark.slow
def test_a_lone_disk_is_refused_where_zpool_would_take_it(act, pool, vm):
    """In a pool with unlike vdevs, zpool no longer compares: that is how a second one gets in."""
    pool.create("mirror d0 d1")
    pool.zpool("add", "-f", "tank", "d2")
    assert vm.run(["zpool", "add", "-n", "tank", pool.device("d3")], check=False).returncode == 0
    plan = act("add", "normal:disk", "d3", plan=True).plan
    assert "has no redundancy" in plan["refused"]
    assert "attach it to" in "\n".join(plan["said"])


@pytest.mark.slow
def test_the_ashift_of_the_pool_is_kept(act, pool, vm):
    pool.create("mirror d0 d1", options="-o ashift=13")
    pool.zpool("set", "ashift=12", "tank")
    run = act("add", "normal:mirror", "d2", "d3", follow=True)
    assert run.end.get("ok"), run.events
    assert "-o ashift=13" in run.plan["commands"][0]
    shifts = vm.run("zdb -C tank | grep ashift").stdout.split()
    assert [word for word in shifts if word.isdigit()] == ["13", "13"]


@pytest.mark.slow
def test_disks_that_are_not_free_are_refused(act, pool, vm):
    pool.create("mirror d0 d1")
    pool.create("d2", name="other")
    vm.run(f"wipefs -aq {pool.device('d3')}; mkfs.ext4 -Fq {pool.device('d3')}")
    assert "has a label of pool other" in act("add", "spare:disk", "d2", plan=True).plan["refused"]
    assert "holds ext2, 3 or 4" in act("add", "spare:disk", "d3", plan=True).plan["refused"]
    assert "in this pool already" in act("add", "spare:disk", "d1", plan=True).plan["refused"]
    vm.run(f"wipefs -aq {pool.device('d3')}")
    twice = act("add", "normal:mirror", "d4", "d4", plan=True).plan
    assert twice["refused"] == "a device is named twice"


@pytest.mark.slow
def test_a_checkpoint_is_a_caution_where_something_is_added(act, pool):
    pool.create("mirror d0 d1")
    pool.zpool("checkpoint", "tank")
    plan = act("add", "normal:mirror", "d2", "d3", plan=True).plan
    assert plan["refused"] is None
    assert any("the pool has a checkpoint" in text for text in plan["said"])


def spares_of(vm: Machine) -> list[dict]:
    argv = f"cd {TREE_IN_GUEST} && /opt/zc/bin/python -m zconsole status tank --json"
    return json.loads(vm.run(argv).stdout)["spares"]


@pytest.mark.slow
def test_spares_that_would_not_help_are_told(pool, vm):
    vm.run("rm -f /root/s; truncate -s 100M /root/s")
    pool.create("raidz1 d0 d1 d2 spare d8 /root/s")
    assert [found["kind"] for found in spares_of(vm)] == ["small"]
    pool.zpool("remove", "tank", "/root/s")
    assert spares_of(vm) == []
    pool.zpool("export", "tank")
    vm.pull(8)
    pool.zpool("import", "tank")
    pool.wait_until("zpool status tank | grep -Eq 'LABDISK8 .*UNAVAIL'")
    assert [found["kind"] for found in spares_of(vm)] == ["failed"]
