"""Rebalance on live pools: what moves, what is refused, and power cuts in the middle."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.vm.machine import Machine

FILES = int(os.environ.get("ZCONSOLE_REBALANCE_FILES", "1500"))
CUTS = int(os.environ.get("ZCONSOLE_REBALANCE_CUTS", "2"))

FILL = """
import os, sys
root, files, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for number in range(files):
    directory = f"{root}/d{number % 20}"
    os.makedirs(directory, exist_ok=True)
    path = f"{directory}/f{number}"
    with open(path, "wb") as file:
        file.write(os.urandom(size))
    os.chown(path, number % 7 + 1000, number % 5 + 2000)
    os.chmod(path, 0o640 if number % 3 else 0o4755)
    os.setxattr(path, "user.number", str(number).encode())
    os.utime(path, ns=(10**18 + number, 10**18 + 3 * number))
for number in range(0, files, 50):
    os.link(f"{root}/d{number % 20}/f{number}", f"{root}/d{number % 20}/hard{number}")
os.sync()
"""
MANIFEST = """
import hashlib, os, sys
for base, dirs, names in os.walk(sys.argv[1]):
    status = os.stat(base)
    print(base, status.st_mode, status.st_mtime_ns)
    for name in names:
        path = f"{base}/{name}"
        s = os.lstat(path)
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        print(path, s.st_mode, s.st_uid, s.st_gid, s.st_size, s.st_mtime_ns, s.st_nlink,
              {n: os.getxattr(path, n) for n in sorted(os.listxattr(path))}, digest)
"""


def python(vm: Machine, program: str, *words: object) -> str:
    """Run a program in the guest; returns its output."""
    arguments = " ".join(shlex.quote(str(word)) for word in words)
    return vm.run(f"python3 -c {shlex.quote(program)} {arguments}", timeout=600).stdout


def manifest(vm: Machine, root: str) -> list[str]:
    """Return everything that must be preserved, as sorted lines."""
    return sorted(python(vm, MANIFEST, root).splitlines())


def changes(vm: Machine, root: str, before: list[str]) -> list[str]:
    """Return some of the lines that differ from before; a correct job has none."""
    return sorted(set(before).symmetric_difference(manifest(vm, root)))[:6]


def rebalance(vm: Machine, words: str, check: bool = True) -> tuple[int, list[dict[str, Any]]]:
    """Run `zconsole rebalance`; returns the exit status and the JSON objects printed."""
    done = vm.run(f"zconsole rebalance {words} --json", check=check, timeout=900)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def plan(vm: Machine, words: str) -> dict[str, Any]:
    """Return a plan, refused or not."""
    return rebalance(vm, f"plan {words}", check=False)[1][0]


def lopsided(vm: Machine, fraction_files: int, size: int, options: str = "") -> None:
    """Create a pool whose second disk is empty."""
    first, second = vm.disks[0].path, vm.disks[1].path
    vm.run(f"rm -rf /var/lib/zconsole; zpool create -f {options} tank {first}")
    python(vm, FILL, "/tank/data", fraction_files, size)
    vm.run(f"zpool sync; zpool add -f tank {second}; zpool sync")


def need(vm: Machine, engine: str) -> None:
    """Skip the test on a release that lacks the engine."""
    if engine == "rewrite" and vm.image.zfs_version < (2, 3):
        pytest.skip("no rewrite before 2.3.4")


def races(vm: Machine) -> str:
    """Return the option that the copy engine needs if names cannot be exchanged."""
    return "--accept-races" if vm.image.zfs_version < (2, 2) else ""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["copy", "rewrite"])
def test_power_cuts_lose_nothing(vm: Machine, engine: str) -> None:
    need(vm, engine)
    lopsided(vm, FILES, 20_000)
    before = manifest(vm, "/tank/data")
    chance = random.Random(engine)
    vm.run(f"zconsole rebalance run /tank/data --engine {engine} {races(vm)} --yes --detach")
    for _ in range(CUTS):
        time.sleep(chance.uniform(0.5, 8))
        vm.reboot()
        vm.run("zpool import -a; zfs mount -a", check=False)
        assert manifest_names(before) <= manifest_names(manifest(vm, "/tank/data"))
        rebalance(vm, "resume --all")
    finished = wait_for_end(vm)
    assert finished["state"] == "finished", finished
    assert changes(vm, "/tank/data", before) == []
    assert vm.run("find /tank -name '.zc-*'").stdout == ""


def manifest_names(lines: list[str]) -> set[str]:
    """Return the paths of a manifest."""
    return {line.split(" ")[0] for line in lines}


def wait_for_end(vm: Machine) -> dict[str, Any]:
    """Return the status of the only job once it has ended."""
    for _ in range(300):
        status = rebalance(vm, "status")[1][-1]
        if status["state"] not in ("running", "waiting", "paused", "planned"):
            return status
        time.sleep(2)
    raise AssertionError(status)


FILL_UP = """
set -e
head -c 4M /dev/urandom >/run/block
mkdir /tank/data
left=$(($(zfs get -Hp -o value available tank) / 4194304 - 3))
for n in $(seq $left); do cat /run/block >/tank/data/$n; done
zpool sync
"""
"""Fills a pool except for ZFS's reserve; with two disks of 1 GiB that is 93 %."""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["rewrite", "copy"])
def test_a_full_pool_reaches_its_target_as_predicted(vm: Machine, engine: str) -> None:
    need(vm, engine)
    first, second, third = (disk.path for disk in vm.disks[:3])
    vm.run("udevadm settle; rm -rf /var/lib/zconsole/rebalance")
    vm.run(f"zpool create -f -O compression=off tank {first} {second}")
    vm.run(FILL_UP, timeout=900)
    vm.run(f"zpool add -f tank {third}; zpool sync")
    words = f"/tank/data --engine {engine} --until-spread 0.1 {races(vm)}"
    made = plan(vm, words)
    assert made["refused"] is None
    assert made["spread_before"] > 0.92
    _, records = rebalance(vm, f"run {words} --yes")
    assert records[-1]["summary"]["stopped_by"] == "target spread reached"
    vm.run("zpool sync; zpool sync; zpool sync")
    after = plan(vm, f"/tank/data {races(vm)}")["spread_before"]
    print(
        f"spread {made['spread_before']:.3f}, predicted {made['spread_after']:.3f}, is {after:.3f}"
    )
    assert after <= 0.12
    assert abs(after - made["spread_after"]) <= 0.05
    vm.run("for f in /tank/data/*; do cmp /run/block $f || exit 1; done", timeout=600)


@pytest.mark.slow
def test_small_files_fill_the_special_vdev_as_foretold(vm: Machine) -> None:
    normal, special = (disk.path for disk in vm.disks[:2])
    vm.run("udevadm settle; rm -rf /var/lib/zconsole")
    vm.run(f"zpool create -f -O compression=off tank {normal} special {special}")
    python(vm, FILL, "/tank/data", 3000, 50_000)
    vm.run("zpool sync; zfs set special_small_blocks=64K tank")
    before = manifest(vm, "/tank/data")
    words = f"/tank/data --aim properties {races(vm)}"
    (foretold,) = plan(vm, words)["special"]
    assert foretold["fill_after"] > foretold["fill_before"] + 0.1
    _, records = rebalance(vm, f"run {words} --yes")
    assert records[-1]["summary"]["stopped_by"] == "done"
    vm.run("zpool sync; zpool sync; zpool sync")
    (now,) = plan(vm, words)["special"]
    print(f"special vdev {foretold}, is {now['fill_before']:.3f}")
    assert abs(now["fill_before"] - foretold["fill_after"]) <= 0.05
    assert changes(vm, "/tank/data", before) == []


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["copy", "rewrite"])
def test_blocks_move(vm: Machine, engine: str) -> None:
    need(vm, engine)
    lopsided(vm, 200, 300_000, "-O compression=off")
    before = manifest(vm, "/tank/data")
    assert shares_of_blocks(vm) == {"0"}
    _, records = rebalance(vm, f"run /tank/data --engine {engine} {races(vm)} --yes")
    assert {record["engine"] for record in records[:-1]} == {engine}
    assert shares_of_blocks(vm) == {"0", "1"}
    assert changes(vm, "/tank/data", before) == []


def shares_of_blocks(vm: Machine) -> set[str]:
    """Return the numbers of the vdevs on which zdb finds data blocks of some files."""
    inodes = vm.run("zpool sync; stat -c %i /tank/data/d1/f*").stdout.split()
    text = vm.run(["zdb", "-ddddd", "tank/", *inodes]).stdout
    return set(re.findall(r"^ +[0-9a-f]+ +L0 (\d+):", text, re.MULTILINE))


@pytest.mark.slow
def test_plans_say_what_is_in_the_way(vm: Machine) -> None:
    first = vm.disks[0].path
    vm.run(
        f"zpool create -f tank {first} && zfs create -o checksum=sha256 -o compression=lz4 tank/a"
    )
    python(vm, FILL, "/tank/a", 40, 100_000)
    made = plan(vm, f"/tank/a --engine rewrite {races(vm)}")
    assert "rewrite" in made["refused"] or "nop-write" in made["refused"]
    vm.run("zpool sync; sleep 1.1; zfs snapshot tank/a@before; zfs hold keep tank/a@before")
    pinned = plan(vm, f"/tank/a {races(vm)}")
    assert pinned["pinned_bytes"]["snapshots"] > 3_500_000
    assert pinned["next_incremental_bytes"] == 4_000_000
    assert "1 snapshot is held" in pinned["notes"]
    vm.run("zfs clone tank/a@before tank/c")
    assert plan(vm, f"/tank/a {races(vm)}")["pinned_bytes"]["clones"] > 3_500_000
    assert plan(vm, f"/tank/c {races(vm)}")["pinned_bytes"]["clones"] > 3_500_000
    vm.run("zfs create -o dedup=on tank/b")
    python(vm, FILL, "/tank/b", 5, 1000)
    assert "dedup" in plan(vm, f"/tank/b {races(vm)}")["refused"]
    vm.run("zpool checkpoint tank")
    assert plan(vm, f"/tank/a {races(vm)}")["pinned_bytes"]["checkpoint"] > 3_500_000


@pytest.mark.slow
def test_options_of_rewrite_spare_sends_and_snapshots(vm: Machine) -> None:
    if vm.image.zfs_version < (2, 4):
        pytest.skip("needs OpenZFS 2.4")
    vm.run(f"zpool create -f tank {vm.disks[0].path} && zfs create tank/a")
    python(vm, FILL, "/tank/a", 40, 100_000)
    vm.run("zpool sync; sleep 1.1; zfs snapshot tank/a@before")
    spared = plan(vm, "/tank/a --rewrite-options P")
    assert spared["next_incremental_bytes"] == 0
    assert spared["pinned_bytes"]["snapshots"] > 3_500_000
    if vm.image.zfs_version < (2, 4, 99):
        assert "needs OpenZFS 2.5" in plan(vm, "/tank/a --rewrite-options S")["refused"]
    else:
        assert "newest snapshots have every" in plan(vm, "/tank/a --rewrite-options S")["refused"]
    vm.run(f"zpool add -f tank {vm.disks[1].path}")
    rebalance(vm, "run /tank/a --engine rewrite --rewrite-options P --yes")
    sent = "zfs snapshot tank/a@after; zfs send -nPi @before tank/a@after | tail -1 | cut -f2"
    assert int(vm.run(sent).stdout) < 500_000


@pytest.mark.slow
def test_pinned_blocks_cost_what_was_planned(vm: Machine) -> None:
    """With a held snapshot and a checkpoint, everything moves, and exists twice afterwards."""
    lopsided(vm, 80, 500_000, "-O compression=off")
    before = manifest(vm, "/tank/data")
    vm.run("zpool sync; zfs snapshot tank@s; zfs hold keep tank@s; zpool checkpoint tank")
    told = plan(vm, f"/tank/data {races(vm)}")["pinned_bytes"]
    assert told["snapshots"] == told["checkpoint"]
    used = allocated(vm)
    code, records = rebalance(vm, f"run /tank/data {races(vm)} --yes")
    assert code == 0, records[-1]
    vm.run("zpool sync")
    assert abs(allocated(vm) - used - told["snapshots"]) < 0.1 * told["snapshots"]
    assert changes(vm, "/tank/data", before) == []


def allocated(vm: Machine) -> int:
    """Return the bytes that the pool has allocated."""
    return int(vm.run("zpool get -Hp -o value allocated tank").stdout)


@pytest.mark.slow
def test_snapshots_taken_meanwhile_are_noticed_and_stay_whole(vm: Machine) -> None:
    lopsided(vm, 60, 1_000_000, "-O compression=off")
    before = manifest(vm, "/tank/data")
    vm.run(f"zconsole rebalance run /tank/data {races(vm)} --limit-rate 1M --yes --detach")
    time.sleep(5)
    vm.run("zfs snapshot tank@meanwhile")
    until(vm, lambda status: any("new snapshot" in note for note in status["notes"]))
    vm.run("zconsole rebalance resume --limit-rate 1G $(ls -t /var/lib/zconsole/rebalance"
           " | sed -n 's/.json//p' | head -1)")  # fmt: skip
    assert wait_for_end(vm)["state"] == "finished"
    assert changes(vm, "/tank/data", before) == []
    kept = [line.replace("/tank/.zfs/snapshot/meanwhile", "/tank") for line in
            manifest(vm, "/tank/.zfs/snapshot/meanwhile/data")]  # fmt: skip
    digests = {line.split(" ")[0]: line.split(" ")[-1] for line in before}
    assert {line.split(" ")[0]: line.split(" ")[-1] for line in kept}.keys() >= digests.keys()
    for line in kept:
        path, digest = line.split(" ")[0], line.split(" ")[-1]
        assert "/f" not in path or digests.get(path) == digest


@pytest.mark.slow
def test_a_scrub_makes_it_wait(vm: Machine) -> None:
    lopsided(vm, 20, 500_000, "-O compression=off")
    hold = "/sys/module/zfs/parameters/zfs_scan_suspend_progress"
    vm.run(f"echo 1 >{hold}; zpool scrub tank")
    vm.run(f"zconsole rebalance run /tank/data {races(vm)} --yes --detach")
    waiting = until(vm, lambda status: status["state"] == "waiting")
    assert waiting["why"] == "a scrub is running"
    vm.run(f"echo 0 >{hold}")
    assert wait_for_end(vm)["state"] == "finished"


@pytest.mark.slow
def test_a_nearly_full_pool_is_brought_through(vm: Machine) -> None:
    lopsided(vm, 760, 1_000_000, "-O compression=off")
    vm.run("zfs set quota=880M tank")
    before = manifest(vm, "/tank/data")
    code, records = rebalance(vm, f"run /tank/data {races(vm)} --yes")
    assert (code, records[-1]["summary"]["files_failed"]) == (0, 0)
    assert records[-1]["summary"]["stopped_by"] == "done"
    assert changes(vm, "/tank/data", before) == []


@pytest.mark.slow
def test_block_clones_are_told_and_none_is_made(vm: Machine) -> None:
    if vm.image.zfs_version < (2, 2):
        pytest.skip("no block cloning before 2.2")
    lopsided(vm, 20, 1_000_000, "-O compression=off")
    vm.run("echo 1 >/sys/module/zfs/parameters/zfs_bclone_enabled; zpool sync;"
           " cp --reflink=always /tank/data/d1/f1 /tank/data/d1/clone; zpool sync")  # fmt: skip
    assert plan(vm, "/tank/data")["pinned_bytes"]["block_clones"] > 900_000
    used = "zpool get -Hp -o value bcloneused tank"
    cloned = int(vm.run(used).stdout)
    rebalance(vm, "run /tank/data --engine copy --yes")
    vm.run("zpool sync")
    assert int(vm.run(used).stdout) <= cloned


def until(vm: Machine, met: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the status of the newest job once ``met`` accepts it."""
    for _ in range(120):
        status = rebalance(vm, "status")[1][-1]
        if met(status):
            return status
        time.sleep(1)
    raise AssertionError(status)


@pytest.mark.slow
def test_a_quota_is_not_overrun(vm: Machine) -> None:
    lopsided(vm, 60, 1_000_000, "-O compression=off")
    vm.run("zfs snapshot tank@before; zfs set quota=80M tank")
    made = plan(vm, f"/tank/data {races(vm)}")
    assert "usable beyond what is kept free" in made["refused"]


@pytest.mark.slow
def test_sha256_with_compression_is_copied_and_moves(vm: Machine) -> None:
    lopsided(vm, 100, 1_000_000, "-O checksum=sha256 -O compression=lz4")
    before = manifest(vm, "/tank/data")
    _, records = rebalance(vm, f"run /tank/data {races(vm)} --yes")
    assert {r["engine"] for r in records[:-1]} == {"copy"}
    vdevs = records[-1]["summary"]["vdevs"]
    assert vdevs[1]["alloc_after"] > vdevs[1]["alloc_before"] + 40_000_000
    assert changes(vm, "/tank/data", before) == []
    assert (
        "bcloneused\t0"
        in vm.run("zpool get -Hp -o property,value bcloneused tank || echo 'bcloneused\t0'").stdout
    )


@pytest.mark.slow
def test_volumes_stay_where_they_are_and_are_told(vm: Machine) -> None:
    """Nearly all data is in a volume: moving the files takes away little of the spread."""
    first, second = vm.disks[0].path, vm.disks[1].path
    vm.run(f"rm -rf /var/lib/zconsole; zpool create -f -O compression=off tank {first}")
    vm.run("zfs create -s -V 256M tank/vm; udevadm settle")
    vm.run("dd if=/dev/urandom of=/dev/zvol/tank/vm bs=1M count=200 status=none")
    python(vm, FILL, "/tank/data", 20, 1_000_000)
    vm.run(f"zpool sync; zpool add -f tank {second}; zpool sync")
    used = int(vm.run("zfs get -Hp -o value usedbydataset tank/vm").stdout)
    found = json.loads(vm.run("zconsole balance tank --json").stdout)
    least = found["volumes"]["least_spread"]
    assert found["volumes"] == {
        "count": 1, "bytes": used, "least_spread": least, "vdevs": [found["vdevs"][0]["name"]]
    }  # fmt: skip
    assert 0.05 < least < found["spread"]
    made = plan(vm, "/tank/data")
    assert any("1 volume holds" in note for note in made["notes"])
    assert made["spread_after"] >= least
    assert "volumes keep it at" in plan(vm, "/tank/data --until-spread 0.05")["refused"]
    rebalance(vm, f"run /tank/data --yes {races(vm)}")
    after = json.loads(vm.run("zconsole balance tank --json").stdout)
    assert least - 0.01 < after["spread"] < found["spread"]
    assert any("1 volume holds" in note for note in rebalance(vm, "status")[1][-1]["notes"])
