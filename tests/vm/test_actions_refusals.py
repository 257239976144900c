"""zpool's own refusals, provoked past our preconditions, and explained to the operator."""

from __future__ import annotations

import pytest

from tests.vm.holding import PARAMETERS
from tests.vm.machine import Machine
from zconsole.actions.executor import explain

FREEZE = f"{PARAMETERS}/zfs_scan_suspend_progress"

REFUSED = (
    ("zpool replace ff /root/f1 /root/small", "smaller"),
    ("zpool replace -s ff /root/f1 /root/f4", "no sequential"),
    ("zpool replace tank {0} {1}", "in use"),
    ("zpool replace tank 1234567 {4}", "no longer in the pool"),
    ("zpool replace tank {0} {5}", "never overwritten by force"),
    ("zpool replace tank {0} {6}", "never overwritten by force"),
    ("zpool replace tank {0} /dev/nope", "no such device"),
    ("zpool replace nopool {0} {4}", "no longer imported"),
    ("zpool detach ff /root/f1", "sides of mirrors"),
    ("zpool offline tank {8}", "hot spares"),
    ("zpool offline tank {1}", "Nothing else holds"),
    ("zpool detach tank {1}", "Nothing else holds"),
    ("zpool scrub -s tank", "no scrub"),
    ("zpool trim -c tank {1}", "not running"),
    ("zpool initialize -c tank {1}", "not running"),
)


@pytest.mark.slow
def test_zpools_own_refusals_are_put_in_words(pool, vm):
    """They are provoked, bypassing our own preconditions."""
    vm.run(
        "rm -f /root/f? /root/small; truncate -s 256M /root/f1 /root/f2 /root/f3 /root/f4;"
        " truncate -s 70M /root/small"
    )
    pool.create("mirror d0 d1 spare d8")
    pool.create("raidz1 /root/f1 /root/f2 /root/f3", name="ff")
    pool.zpool("offline", "tank", "d0")
    vm.run(f"mkfs.ext4 -q -F {pool.device('d5')}")
    pool.create("d6", name="other")
    pool.zpool("export", "other")
    disks = [pool.device(f"d{n}") for n in range(9)]
    try:
        for command, words in REFUSED:
            result = vm.run(command.format(*disks), check=False)
            assert result.returncode != 0, command
            assert words in (explain(result.stderr) or result.stderr), command
    finally:  # later tests use these places for their disks
        vm.run(f"wipefs --all {disks[5]}; zpool import other && zpool destroy other")


@pytest.mark.slow
def test_refusals_beside_a_running_scan(pool, vm):
    pool.create("mirror d0 d1")
    pool.fill(40)
    vm.run(f"echo 1 >{FREEZE}")
    try:
        disks = [pool.device(f"d{n}") for n in range(9)]
        pool.zpool("scrub", "tank")
        assert "runs already" in met(vm, "zpool scrub tank")
        pool.zpool("scrub", "-p", "tank")
        assert "paused already" in met(vm, "zpool scrub -p tank")
        pool.zpool("replace", "tank", "d0", "d4")
        for command in (
            "zpool scrub tank",
            "zpool scrub -s tank",
            "zpool scrub -p tank",
            f"zpool replace -s tank {disks[1]} {disks[7]}",
        ):
            assert "A resilver runs" in met(vm, command)
        pool.zpool("detach", "tank", "d4")
    finally:
        vm.run(f"echo 0 >{FREEZE}")
    pool.zpool("wait", "-t", "resilver", "tank")
    pool.zpool("checkpoint", "tank")
    for command in (
        f"zpool replace tank {disks[0]} {disks[4]}",
        f"zpool detach tank {disks[0]}",
        f"zpool attach tank {disks[0]} {disks[4]}",
    ):
        assert "checkpoint" in met(vm, command)


@pytest.mark.slow
def test_refusals_about_sectors_and_logs(pool, vm):
    vm.run("rm -f /root/s?; truncate -s 256M /root/s1 /root/s2 /root/s3")
    pool.create("mirror d0 d1 log d2 spare d8")
    disks = [pool.device(f"d{n}") for n in range(9)]
    assert "stand in for log" in met(vm, f"zpool replace tank {disks[2]} {disks[8]}")
    if vm.image.zfs_version < (2, 3):
        return  # 2.1 accepts larger sectors in a vdev of small ones
    pool.create("mirror /root/s1 /root/s2", name="ff", options="-o ashift=9")
    large = vm.run(
        "modprobe loop; losetup --find --show --sector-size 4096 /root/s3"
    ).stdout.strip()
    try:
        assert "sectors are larger" in met(vm, f"zpool replace ff /root/s1 {large}")
    finally:
        vm.run(f"losetup --detach {large}")


@pytest.mark.slow
def test_refusals_beside_a_replace_a_rebuild_and_other_work(pool, vm):
    pool.create("mirror d0 d1", options="-o feature@resilver_defer=disabled")
    pool.fill(40)
    disks = [pool.device(f"d{n}") for n in range(9)]
    assert "lacks" in met(vm, "zpool resilver tank")
    vm.run(f"echo 1 >{FREEZE}")
    pool.zpool("replace", "-s", "tank", "d0", "d4")
    assert "sequential rebuild runs" in met(vm, f"zpool replace tank {disks[1]} {disks[5]}")
    pool.zpool("detach", "tank", "d4")
    vm.run(f"echo 0 >{FREEZE}")
    # The rate limit works between two extents of a metaslab, which by default is a single one.
    vm.run(f"echo {4 << 20} >{PARAMETERS}/zfs_trim_extent_bytes_max")
    pool.zpool("trim", "-r", "1M", "tank", "d1")
    assert "trimmed already" in met(vm, f"zpool trim tank {disks[1]}")
    pool.zpool("trim", "-c", "tank", "d1")
    pool.slow(1, bps=1 << 19)
    pool.zpool("initialize", "tank", "d1")
    assert "initialized already" in met(vm, f"zpool initialize tank {disks[1]}")


def met(vm: Machine, command: str) -> str:
    result = vm.run(command, check=False)
    assert result.returncode != 0, command
    return explain(result.stderr) or result.stderr
