"""Guarantees of the harness, checked on a live pool."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.vm import named
from tests.vm.errors import VmError
from tests.vm.image import Image
from tests.vm.machine import Machine
from tests.vm.pools import PoolFactory
from tests.vm.ssh import CommandFailedError

MIB = 1 << 20


def checksum_errors(vm: Machine, leaf: int) -> int:
    status = vm.run(["zpool", "status", "-p", "tank"]).stdout
    found = re.search(rf"LABDISK{leaf} +\S+ +\d+ +\d+ +(\d+)", status)
    assert found is not None, status
    return int(found[1])


def scrub_seconds(pool: PoolFactory) -> float:
    start = time.monotonic()
    pool.zpool("scrub", "-w", "tank")
    return time.monotonic() - start


def test_version_read_at_build_is_the_one_that_runs(vm: Machine) -> None:
    running = vm.run("cat /sys/module/zfs/version").stdout
    assert running.startswith(f"{vm.image.zfs}-")


def test_guest_has_the_libraries_and_the_tree(vm: Machine) -> None:
    vm.run("/opt/zc/bin/python -c 'import textual, rich, psutil, pytest, libzfs_core'")
    assert vm.run("test -d zconsole/zconsole -a -d zconsole/themes").returncode == 0


def test_a_failing_command_is_an_error_with_its_output(vm: Machine) -> None:
    with pytest.raises(CommandFailedError, match="no such pool"):
        vm.run(["zpool", "status", "none such"])
    assert vm.run("exit 7", check=False).returncode == 7


@pytest.mark.slow
def test_a_command_that_takes_too_long_is_an_error(vm: Machine) -> None:
    with pytest.raises(VmError, match="more than 1 s"):
        vm.run("sleep 30", timeout=1)


def test_files_go_in_and_come_out(vm: Machine, tmp_path: Path) -> None:
    source, back = tmp_path / "in", tmp_path / "out"
    source.write_bytes(bytes(range(256)))
    vm.put(source, "/tmp/a file")
    vm.get("/tmp/a file", back)
    assert back.read_bytes() == source.read_bytes()


@pytest.mark.slow
def test_throttle_slows_a_scrub_and_lets_go_again(vm: Machine, pool: PoolFactory) -> None:
    pool.create("mirror d0 d1")
    pool.fill(60)
    free = scrub_seconds(pool)
    vm.throttle(1, bps=6 * MIB)
    limited = scrub_seconds(pool)
    vm.throttle(1)
    assert limited > 2 * free + 3
    assert scrub_seconds(pool) < limited / 2


def test_a_pulled_disk_is_removed_and_comes_back(vm: Machine, pool: PoolFactory) -> None:
    pool.create("mirror d0 d1")
    vm.pull(1)
    assert 1 not in vm.plugged()
    pool.fill(1)
    pool.wait_status("LABDISK1 +REMOVED")
    vm.plug(1)
    pool.zpool("online", "tank", "d1")
    pool.wait_status("LABDISK1 +ONLINE")


@pytest.mark.slow
def test_corruption_is_found_and_repaired_by_a_scrub(vm: Machine, pool: PoolFactory) -> None:
    pool.create("mirror d0 d1")
    pool.fill(40)
    vm.corrupt(1, 8 * MIB, 900 * MIB)
    pool.zpool("scrub", "-w", "tank")
    assert checksum_errors(vm, 1) > 0
    assert checksum_errors(vm, 0) == 0
    assert "errors: No known data errors" in pool.zpool("status", "tank").stdout


@pytest.mark.slow
def test_power_cut_keeps_disks_and_root(vm: Machine, pool: PoolFactory) -> None:
    pool.create("raidz1 d0 d1 d2")
    pool.fill(20)
    digest = vm.run("sha256sum </tank/data; echo here >/root/mark; sync").stdout
    vm.reboot()
    pool.zpool("import", "tank")
    assert vm.run("sha256sum </tank/data").stdout == digest
    assert vm.run("cat /root/mark").stdout == "here\n"


@pytest.mark.slow
def test_a_dead_guest_is_an_error_and_recovers(vm: Machine) -> None:
    vm.power_cut()
    with pytest.raises(VmError):
        vm.run("true")
    vm.recover()
    assert vm.run("echo up").stdout == "up\n"


@pytest.mark.slow
def test_recovering_gives_parameters_their_values_back(vm: Machine) -> None:
    path = "/sys/module/zfs/parameters/zfs_scan_mem_lim_fact"
    before = vm.run(["cat", path]).stdout
    vm.run(f"echo 77 >{path}")
    vm.recover()
    assert vm.run(["cat", path]).stdout == before != "77\n"


@pytest.mark.slow
def test_two_machines_side_by_side_leave_nothing_behind(built: Image) -> None:
    with Machine.boot(built, [256 * MIB]) as one, Machine.boot(built, [256 * MIB]) as two:
        for machine, name in ((one, "first"), (two, "second")):
            PoolFactory(machine).create("d0", name)
        assert one.run("zpool list -Ho name").stdout == "first\n"
        assert two.run("zpool list -Ho name").stdout == "second\n"
        left = [one.hardware.directory, two.hardware.directory]
        processes = [one.pid, two.pid]
    assert not any(path.exists() for path in left)
    assert not any(Path(f"/proc/{pid}").exists() for pid in processes)


@pytest.mark.slow
def test_a_named_machine_outlives_its_maker(
    built: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZCONSOLE_VM_CACHE", str(tmp_path))
    named.up("lasting", built, [256 * MIB], 1024, "writethrough")
    again = named.attach("lasting")
    PoolFactory(again).create("d0")
    assert named.names() == ["lasting"]
    with pytest.raises(VmError, match="up already"):
        named.up("lasting", built, [], 1024, "unsafe")
    (tmp_path / "machines" / "lasting" / "machine.json").unlink()
    named.up("lasting", built, [256 * MIB], 1024, "writethrough")
    assert not Path(f"/proc/{again.pid}").exists()
    again = named.attach("lasting")
    named.down("lasting")
    assert named.names() == []
    assert not Path(f"/proc/{again.pid}").exists()
