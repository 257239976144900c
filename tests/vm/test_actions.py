"""Every action on live pools, as the console plans and runs it."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.vm.machine import TREE_IN_GUEST, Machine
from tests.vm.pools import PoolFactory
from tests.vm.stuck import suspend
from tests.vm.terminal import ZCONSOLE, samples
from zconsole.actions.executor import explain


@pytest.fixture
def modern(vm: Machine) -> Machine:
    """The machine, if its OpenZFS is 2.3 or newer."""
    if vm.image.zfs_version < (2, 3):
        pytest.skip("no raidz expansion and no zfs_resilver_defer_percent before 2.3")
    return vm


@pytest.fixture
def frozen(vm: Machine):
    """Pause scans from their start, until ``go`` is called or the test ends."""

    def hold(on: bool) -> None:
        parameter(vm, "zfs_scan_suspend_progress", int(on))

    hold(True)
    yield lambda: hold(False)
    hold(False)


def members(vm: Machine) -> str:
    return vm.run("zpool status -P tank").stdout


def parameter(vm: Machine, name: str, value: int) -> None:
    vm.run(f"echo {value} > /sys/module/zfs/parameters/{name}")


def test_replace_an_online_device(act, pool, vm):
    pool.create("raidz2 d0 d1 d2 d3")
    pool.fill(40)
    run = act("replace", "d0=d4", follow=True)
    assert run.end["ok"], run.events
    assert "leave it plugged in" in run.said
    assert "LABDISK4" in members(vm)
    log = vm.run("cat /root/state/audit.jsonl").stdout.splitlines()
    assert [json.loads(line)["event"] for line in log] == [
        "begun",
        "ended",
        "action",
        "ended",
    ]


@pytest.mark.slow
def test_replace_an_offline_device_and_a_missing_one_by_guid(act, pool, vm):
    pool.create("raidz2 d0 d1 d2 d3")
    pool.fill(40)
    assert act("offline", "d0").status == 0
    assert act("replace", "d0=d4", follow=True).end["ok"]
    vm.pull(1)
    vm.run("zpool status tank; cat /tank/data > /dev/null; zpool sync")
    guid = vm.run("zpool status -g tank | awk '/UNAVAIL|REMOVED|FAULTED/ {print $1}'")
    run = act("replace", f"{guid.stdout.split()[0]}=d5", follow=True)
    assert run.end["ok"], run.events
    assert "ONLINE" in vm.run("zpool list -H -o health tank").stdout


@pytest.mark.slow
def test_a_batch_of_every_disk_of_a_raidz2_is_one_resilver(act, pool, vm, frozen):
    pool.create("raidz2 d0 d1 d2 d3")
    pool.fill(40)
    vm.run("zpool events -c")
    run = act("batch", "d0=d4", "d1=d5", "d2=d6", "d3=d7")
    assert run.status == 0, run.events
    frozen()
    pool.wait_status("resilvered .* with 0 errors")
    vm.run("until ! zpool status tank | grep -q replacing; do sleep 0.2; done", timeout=60)
    status = members(vm)
    assert all(f"LABDISK{n}" in status for n in range(4, 8))
    assert int(vm.run("zpool events -H tank | grep -c resilver_finish").stdout) == 1


@pytest.mark.slow
def test_a_batch_of_two(act, pool):
    pool.create("raidz2 d0 d1 d2 d3")
    pool.fill(40)
    run = act("batch", "d0=d4", "d1=d5", follow=True)
    assert run.end.get("ok"), run.events


@pytest.mark.slow
@pytest.mark.usefixtures("modern")
def test_a_second_replace_waits_and_a_restart_takes_it_along(act, pool, vm, frozen):
    pool.create("raidz2 d0 d1 d2 d3")
    pool.fill(40)
    parameter(vm, "zfs_resilver_defer_percent", 0)
    try:
        assert act("replace", "d0=d4").status == 0
        run = act("replace", "d1=d5")
        assert "waits for it (awaiting resilver)" in run.said
        pool.wait_status("awaiting resilver")
        assert "cannot cancel it" in act("stop", plan=True).plan["refused"]
        restart = act("resilver", typed="tank")
        assert restart.status == 0, restart.events
        frozen()
        pool.wait_status("resilvered .* with 0 errors")
        assert "replacing" not in members(vm)
    finally:
        parameter(vm, "zfs_resilver_defer_percent", 10)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["mirror d0 d1", "draid1:2d:4c:1s d0 d1 d2 d3"])
def test_sequential_replace(act, pool, vm, layout):
    pool.create(layout)
    pool.fill(40)
    run = act("replace-s", "d0=d5", follow=True)
    assert run.end["ok"], run.events
    assert "checks no checksum" in run.said
    assert "LABDISK5" in members(vm)


@pytest.mark.slow
@pytest.mark.usefixtures("frozen")
def test_a_wrong_replace_is_backed_out(act, pool, vm):
    pool.create("raidz2 d0 d1 d2 d3")
    pool.fill(40)
    assert act("replace", "d0=d4").status == 0
    refused = act("detach", "d4")
    assert refused.kinds()[-1] == "refused"
    run = act("detach", "d4", typed="virtio-LABDISK4", follow=True)
    assert run.end.get("ok"), run.events
    assert "LABDISK4" not in members(vm)
    assert "LABDISK0" in members(vm)


def spare_in_use(pool: PoolFactory) -> None:
    pool.create("raidz1 d0 d1 d2 spare d8")
    pool.fill(40)
    pool.zpool("offline", "tank", "d0")
    pool.zpool("replace", "tank", "d0", "d8")
    pool.wait_status("resilvered .* with 0 errors")


def test_a_spare_that_stands_idle_is_told_with_the_command_that_uses_it(pool, vm):
    """ZED does not run in the guest, so that nothing lets a spare stand in."""
    pool.create("raidz1 d0 d1 d2 spare d8")
    pool.fill(40)
    pool.zpool("offline", "-f", "tank", "d0")
    (seen,) = samples(vm.run(f"{ZCONSOLE} status --json tank").stdout)
    (told,) = seen["spares"]
    assert (told["kind"], told["zed"]) == ("unused", False)
    vm.run(told["command"])
    pool.wait_status("LABDISK8 +INUSE")
    (seen,) = samples(vm.run(f"{ZCONSOLE} status --json tank").stdout)
    assert seen["spares"] == []


def test_a_spare_is_made_permanent(act, pool, vm):
    spare_in_use(pool)
    run = act("detach", "d0", typed="virtio-LABDISK0", follow=True)
    assert run.end["ok"], run.events
    assert "becomes a permanent part" in run.said
    assert "spare-0" not in members(vm)
    assert "LABDISK8" in members(vm)


@pytest.mark.slow
def test_a_spare_is_given_back(act, pool, vm):
    spare_in_use(pool)
    answer = vm.run(f"zpool replace tank {pool.device('d8')} {pool.device('d4')}", check=False)
    assert "spare that is in use" in (explain(answer.stderr) or answer.stderr)
    run = act("replace", "d0=d4", follow=True)
    assert run.end["ok"], run.events
    pool.wait_status("LABDISK8 .*AVAIL")


@pytest.mark.slow
def test_larger_disks_expand_the_vdev(act, pool, vm):
    vm.run("rm -f /root/v?; truncate -s 256M /root/v1 /root/v2; truncate -s 1G /root/v3 /root/v4")
    pool.create("mirror /root/v1 /root/v2")
    pool.fill(20)
    early = act("expand", "mirror-0", plan=True)
    assert "cannot grow" in early.plan["refused"]
    run = act("batch", "/root/v1=/root/v3", "/root/v2=/root/v4", follow=True)
    assert run.end["ok"], run.events
    plan = act("expand", "mirror-0", plan=True)
    assert plan.plan["typed"] == "mirror-0"
    run = act("expand", "mirror-0", typed="mirror-0", follow=True)
    assert run.end["ok"], run.events
    assert int(vm.run("zpool list -Hp -o size tank").stdout) > 900 << 20
    assert act("autoexpand", "on", follow=True).end["ok"]


@pytest.mark.usefixtures("frozen")
def test_a_scrub_is_paused_resumed_and_stopped(act, pool, vm):
    pool.create("mirror d0 d1")
    pool.fill(40)
    assert "no scrub to pause" in act("pause", plan=True).plan["refused"]
    assert act("scrub").status == 0
    assert "scrub running" in act("scrub", plan=True).plan["refused"]
    assert act("pause", follow=True).end["ok"]
    assert "Resume" in act("scrub", plan=True).plan["title"]
    assert "paused scrub is discarded" in act("replace", "d0=d4", plan=True).said
    assert act("scrub").status == 0
    assert act("stop", follow=True).end["ok"]
    assert "canceled" in vm.run("zpool status tank").stdout


@pytest.mark.slow
@pytest.mark.usefixtures("act")
def test_a_suspended_pool_is_cleared_once_its_disk_is_back(pool, vm):
    """The console was started before: of a stuck pool, it shows what it last saw."""
    pool.create("d0", options="-o failmode=wait -O sync=disabled")
    pool.fill(10)
    vm.run("rm -f /root/go /root/out")
    vm.run(
        f"(cd {TREE_IN_GUEST}; (until [ -e /root/go ]; do sleep 0.2; done; echo) |"
        " /opt/zc/bin/python -m tests.vm.act --wait tank clear >/root/out 2>&1)"
        " >/dev/null 2>&1 </dev/null &"
    )
    vm.run("until grep -q seen /root/out; do sleep 0.2; done", timeout=120)
    suspend(pool)
    vm.plug(0)
    vm.run(
        "touch /root/go; until grep -Eq 'done|failed|refused.:.true' /root/out; do sleep 0.5; done",
        timeout=120,
    )
    said = vm.run("cat /root/out").stdout
    assert "loses what was not written" in said
    assert '"kind": "done"' in said, said
    vm.run("until grep -q ONLINE /proc/spl/kstat/zfs/tank/state; do sleep 0.2; done", timeout=60)
    first = json.loads(vm.run("head -1 /root/state/audit.jsonl").stdout)
    assert first["event"] == "evidence"
    assert first["vdevs"]


@pytest.mark.slow
def test_clear_keeps_the_counters_in_the_log(act, pool, vm):
    pool.create("mirror d0 d1")
    pool.fill(60)
    vm.corrupt(0, 5 << 20, 60 << 20)
    pool.zpool("scrub", "-w", "tank")
    assert act("clear", follow=True).end["ok"]
    first = json.loads(vm.run("head -1 /root/state/audit.jsonl").stdout)
    assert max(v["cksum"] for v in first["vdevs"]) > 0
    assert "0     0     0" in vm.run("zpool status tank | grep LABDISK0").stdout


@pytest.mark.slow
def test_attach_trim_initialize_offline_online(act, pool):
    pool.create("d0")
    pool.fill(20)
    assert act("attach", "d0", "d1", follow=True).end["ok"]
    assert act("trim", "d0").status == 0
    assert act("initialize", "d1").status == 0
    assert act("offline", "d1", follow=True).end["ok"]
    assert "no valid replicas" in act("offline", "d0", plan=True).plan["refused"]
    assert act("online", "d1", follow=True).end["ok"]
    assert act("detach", "d1", typed="virtio-LABDISK1", follow=True).end["ok"]


@pytest.mark.slow
def test_offline_lasts_over_an_import_unless_it_is_temporary(act, pool, vm):
    pool.create("mirror d0 d1")
    pool.fill(10)
    for verb, after in (("offline", "OFFLINE"), ("offline-t", "ONLINE")):
        run = act(verb, "d1", follow=True)
        assert run.end["ok"], run.events
        pool.zpool("export", "tank")
        pool.zpool("import", "tank")
        assert after in vm.run("zpool status tank | grep LABDISK1").stdout
        if after == "OFFLINE":
            assert act("online", "d1", follow=True).end["ok"]


@pytest.mark.slow
@pytest.mark.usefixtures("modern")
def test_a_raidz_is_widened(act, pool, vm):
    pool.create("raidz1 d0 d1 d2")
    pool.fill(20)
    run = act("attach", "raidz1-0", "d3", typed="raidz1-0", follow=True)
    assert run.end["ok"], run.events
    assert "LABDISK3" in members(vm)


@pytest.mark.slow
@pytest.mark.usefixtures("act")
def test_what_somebody_else_did_meanwhile_stops_it(pool, vm):
    """After the plan is made, another operator takes a checkpoint, then the plan is confirmed."""
    pool.create("mirror d0 d1")
    script = (
        "import sys, time\n"
        "import tests.vm.act as act\n"
        "make = act.ACTIONS['replace']\n"
        "def plan(s, words):\n"
        "    import subprocess\n"
        "    made = make(s, words)\n"
        "    subprocess.run(['zpool', 'checkpoint', 'tank'], check=True)\n"
        "    return made\n"
        "act.ACTIONS['replace'] = plan\n"
        "args = act.argparse.Namespace(plan=False, wait=False, typed=None, follow=False,\n"
        "    pool='tank', action='replace', words=sys.argv[1:])\n"
        "sys.exit(act.asyncio.run(act.main(args)))\n"
    )
    swap = f"{pool.device('d0')}={pool.device('d4')}"
    result = vm.run(
        f"cd {TREE_IN_GUEST} && /opt/zc/bin/python -c {shlex.quote(script)} {swap}", check=False
    )
    last = json.loads(result.stdout.splitlines()[-1])
    assert (last["kind"], "checkpoint" in last["text"]) == ("refused", True)
    assert "LABDISK4" not in members(vm)


@pytest.mark.slow
def test_a_device_that_is_not_back_is_told_in_words(act, pool, vm):
    pool.create("mirror d0 d1")
    pool.fill(10)
    assert act("offline", "d1").status == 0
    vm.pull(1)
    run = act("online", "d1")
    assert "still does not answer" in str([event.get("meaning") for event in run.events])
