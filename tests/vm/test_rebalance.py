"""Rebalance on live pools: what moves, what is refused, and power cuts in the middle."""

from __future__ import annotations

import json
import os
import random
import shlex
import time
from typing import Any

import pytest

from tests.vm.machine import Machine
from tests.vm.pools import PoolFactory

FILES = int(os.environ.get("ZCONSOLE_REBALANCE_FILES", "1500"))
CUTS = int(os.environ.get("ZCONSOLE_REBALANCE_CUTS", "2"))
SAFE = {"trixie": ("copy", "rewrite"), "bookworm": ("copy",)}
"""The engines each release has; the copy engine of 2.1 has to be told to accept races."""

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
    """Run a program in the guest; returns what it printed."""
    arguments = " ".join(shlex.quote(str(word)) for word in words)
    return vm.run(f"python3 -c {shlex.quote(program)} {arguments}", timeout=600).stdout


def manifest(vm: Machine, root: str) -> list[str]:
    """Everything that has to survive, sorted."""
    return sorted(python(vm, MANIFEST, root).splitlines())


def rebalance(vm: Machine, words: str, check: bool = True) -> tuple[int, list[dict[str, Any]]]:
    """Run `zconsole rebalance`; the exit status and the JSON objects printed."""
    done = vm.run(f"zconsole rebalance {words} --json", check=check, timeout=900)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def plan(vm: Machine, words: str) -> dict[str, Any]:
    """A plan, refused or not."""
    return rebalance(vm, f"plan {words}", check=False)[1][0]


def lopsided(vm: Machine, fraction_files: int, size: int, options: str = "") -> None:
    """A pool whose second disk is empty."""
    first, second = vm.disks[0].path, vm.disks[1].path
    vm.run(f"zpool create -f {options} tank {first}")
    python(vm, FILL, "/tank/data", fraction_files, size)
    vm.run(f"zpool sync; zpool add -f tank {second}; zpool sync")


def races(vm: Machine) -> str:
    """What the copy engine needs to be told on this release."""
    return "--accept-races" if vm.image.release == "bookworm" else ""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["copy", "rewrite"])
def test_power_cuts_lose_nothing(vm: Machine, engine: str) -> None:
    if engine not in SAFE.get(vm.image.release, ("copy", "rewrite")):
        pytest.skip("no rewrite before 2.3.4")
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
    assert manifest(vm, "/tank/data") == before
    assert vm.run("find /tank -name '.zc-*'").stdout == ""


def manifest_names(lines: list[str]) -> set[str]:
    """The paths of a manifest."""
    return {line.split(" ")[0] for line in lines}


def wait_for_end(vm: Machine) -> dict[str, Any]:
    """The status of the only job once it does not run any more."""
    for _ in range(300):
        status = rebalance(vm, "status")[1][-1]
        if status["state"] not in ("running", "waiting", "paused", "planned"):
            return status
        time.sleep(2)
    raise AssertionError(status)


@pytest.mark.slow
def test_a_lopsided_pool_reaches_its_target_as_predicted(vm: Machine) -> None:
    lopsided(vm, 900, 500_000, "-O compression=off")
    made = plan(vm, f"/tank/data --until-spread 0.1 {races(vm)}")
    assert made["refused"] is None
    words = f"run /tank/data --until-spread 0.1 {races(vm)} --yes"
    _, records = rebalance(vm, words)
    assert records[-1]["summary"]["stopped_by"] == "target spread reached"
    vm.run("zpool sync; zpool sync; zpool sync")
    after = plan(vm, f"/tank/data {races(vm)}")["spread_before"]
    assert after <= 0.12
    assert abs(after - made["spread_after"]) <= 0.05


@pytest.mark.slow
def test_plans_say_what_is_in_the_way(vm: Machine) -> None:
    first = vm.disks[0].path
    vm.run(
        f"zpool create -f tank {first} && zfs create -o checksum=sha256 -o compression=lz4 tank/a"
    )
    python(vm, FILL, "/tank/a", 40, 100_000)
    made = plan(vm, f"/tank/a --engine rewrite {races(vm)}")
    assert "rewrite" in made["refused"] or "nop-write" in made["refused"]
    vm.run("zpool sync; zfs snapshot tank/a@before")
    pinned = plan(vm, f"/tank/a {races(vm)}")
    assert pinned["pinned_bytes"]["snapshots"] > 3_500_000
    assert pinned["next_incremental_bytes"] == 4_000_000
    vm.run("zfs create -o dedup=on tank/b")
    python(vm, FILL, "/tank/b", 5, 1000)
    assert "dedup" in plan(vm, f"/tank/b {races(vm)}")["refused"]
    vm.run("zpool checkpoint tank")
    assert plan(vm, f"/tank/a {races(vm)}")["pinned_bytes"]["checkpoint"] > 3_500_000
    vm.run("zpool checkpoint -d tank")


@pytest.mark.slow
def test_a_quota_is_not_overrun(vm: Machine, pool: PoolFactory) -> None:
    lopsided(vm, 60, 1_000_000, "-O compression=off")
    vm.run("zfs snapshot tank@before; zfs set quota=80M tank")
    made = plan(vm, f"/tank/data {races(vm)}")
    assert "are free above the floor" in made["refused"]


@pytest.mark.slow
def test_sha256_with_compression_is_copied_and_moves(vm: Machine) -> None:
    lopsided(vm, 100, 1_000_000, "-O checksum=sha256 -O compression=lz4")
    before = manifest(vm, "/tank/data")
    _, records = rebalance(vm, f"run /tank/data {races(vm)} --yes")
    assert {r["engine"] for r in records[:-1]} == {"copy"}
    vdevs = records[-1]["summary"]["vdevs"]
    assert vdevs[1]["alloc_after"] > vdevs[1]["alloc_before"] + 40_000_000
    assert manifest(vm, "/tank/data") == before
    assert (
        "bcloneused\t0"
        in vm.run("zpool get -Hp -o property,value bcloneused tank || echo 'bcloneused\t0'").stdout
    )
