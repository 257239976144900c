"""Plans predict that files take less space after a raidz expansion, which a rewrite confirms."""

from __future__ import annotations

import pytest

from tests.vm.machine import Machine
from tests.vm.test_rebalance import plan, python, rebalance

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
    """Create a pool with some files, a third of them random."""
    vm.run("udevadm settle; rm -rf /var/lib/zconsole")
    vm.run(f"zpool create -f {options} tank {vdevs}")
    python(vm, FILL)
    vm.run("zpool sync")


@pytest.mark.slow
def test_a_wider_raidz_is_told_and_saves_parity(vm: Machine) -> None:
    if vm.image.zfs_version < (2, 3):
        pytest.skip("no raidz expansion before 2.3")
    disks = [disk.path for disk in vm.disks[:4]]
    filled(vm, f"raidz1 {' '.join(disks[:3])}", "-O compression=off")
    words = "/tank/data --aim width"
    assert "as wide as" in plan(vm, words)["refused"]
    vm.run(f"zpool attach -w tank raidz1-0 {disks[3]}", timeout=600)
    before, made = int(vm.run(RAW).stdout), plan(vm, words)
    assert "parity takes less of what is written now" in made["differs"]
    rebalance(vm, f"run {words} --yes")
    # A record of 128 KiB takes 11 parts instead of 12; the pool's own metadata does not shrink.
    assert int(vm.run(RAW).stdout) < 0.95 * before
    assert "as wide as" in plan(vm, words)["refused"]
