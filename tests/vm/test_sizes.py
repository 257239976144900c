"""What a plan says files will take, against what they take once they are written again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vm.machine import Machine
from tests.vm.test_rebalance import plan, python, races, rebalance

FILL = """
import os
os.makedirs("/tank/data")
for number in range(60):
    lines = b"".join(b"%d: no known data errors\\n" % (line * 7) for line in range(20_000))
    noise = os.urandom(400_000)
    content = (noise, lines[:500_000] + noise[:number * 5_000])[number % 3 > 0]
    with open(f"/tank/data/f{number}", "wb") as file:
        file.write(content)
os.sync()
"""
RAW = "zpool sync; zpool sync; zpool sync; zpool list -Hp -o allocated tank"


def filled(vm: Machine, vdevs: str, options: str) -> None:
    """A new pool with some files, a third of them noise."""
    vm.run("udevadm settle; rm -rf /var/lib/zconsole")
    vm.run(f"zpool create -f {options} tank {vdevs}")
    python(vm, FILL)
    vm.run("zpool sync")


def moved(vm: Machine, words: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The plan of a job, and the plan of the same once it has run."""
    made = plan(vm, words)
    assert made["refused"] is None, made
    _, records = rebalance(vm, f"run {words} --yes")
    assert records[-1]["summary"]["stopped_by"] == "done"
    vm.run("zpool sync")
    return made, plan(vm, words)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "change", "words"),
    [
        ("-O compression=off", "compression=lz4", "--aim properties"),
        ("-O compression=lz4", "compression=zstd", "--aim properties"),
        ("-O compression=lz4", "compression=off", "--aim properties"),
        ("-O compression=off", "copies=2", "--aim properties"),
        ("-O compression=zstd", "recordsize=16K", "--aim recordsize --engine copy"),
        ("-O compression=lz4", "atime=off", "--aim properties"),
    ],
)
@pytest.mark.parametrize("root", [True, False], ids=["zdb", "du"])
def test_sizes_are_as_foretold(
    vm: Machine, options: str, change: str, words: str, root: bool
) -> None:
    filled(vm, vm.disks[0].path, options)
    vm.run(f"zfs set {change} tank")
    words = f"/tank/data {words} {races(vm)}"
    alone = None if root else plan_of_anybody(vm, words)
    made, after = moved(vm, words)
    foretold = (alone or made)["allocated_after_bytes"]
    print(f"{made['allocated_bytes']}, foretold {foretold}, is {after['allocated_bytes']}")
    assert abs(foretold - after["allocated_bytes"]) <= 0.08 * after["allocated_bytes"]


def plan_of_anybody(vm: Machine, words: str) -> dict[str, Any]:
    """The plan of somebody for whom zdb does not work."""
    hidden = "mv /usr/sbin/zdb /usr/sbin/zdb.hidden"
    vm.run(hidden)
    try:
        return plan(vm, words)
    finally:
        vm.run("mv /usr/sbin/zdb.hidden /usr/sbin/zdb")


@pytest.mark.slow
def test_parity_width_is_as_foretold(vm: Machine) -> None:
    if vm.image.zfs_version < (2, 3):
        pytest.skip("no raidz expansion before 2.3")
    disks = [disk.path for disk in vm.disks[:4]]
    filled(vm, f"raidz1 {' '.join(disks[:3])}", "-O compression=off")
    words = "/tank/data --aim width"
    assert "as wide as" in plan(vm, words)["refused"]
    vm.run(f"zpool attach -w tank raidz1-0 {disks[3]}", timeout=600)
    before = int(vm.run(RAW).stdout)
    made, _ = moved(vm, words)
    raw, growth = int(vm.run(RAW).stdout), made["allocated_after_bytes"] / made["allocated_bytes"]
    print(f"raw {before}, foretold {growth:.3f} of it, is {raw / before:.3f}")
    assert growth < 0.93
    assert abs(growth - raw / before) <= 0.03
    assert "as wide as" in plan(vm, words)["refused"]
