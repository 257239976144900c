"""Pools on a machine's disks, for tests."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tests.vm.errors import VmError
from tests.vm.machine import Machine
from tests.vm.ssh import Result

DESTROY_SECONDS = 30
FILL_SECONDS = 600.0
SECTOR = 512
LABELS = 4 << 20
"""Bytes at a vdev's start that DVAs do not count: two labels and the boot block
(VDEV_LABEL_START_SIZE, include/sys/vdev_impl.h)."""


@dataclass(frozen=True)
class PoolFactory:
    """Creates and modifies pools; `clear` removes them afterwards.

    Words of commands that look like "d3" stand for the machine's disks.
    """

    machine: Machine

    def create(self, layout: str, name: str = "tank", options: str = "") -> str:
        """Create a pool and return its name; the layout is zpool-create(8)'s: "mirror d0 d1"."""
        words = [*options.split(), name, *layout.split()]
        # After its last pool is destroyed, udev still probes a disk, which keeps zpool from opening
        # it.
        self.machine.run("udevadm settle")
        self.zpool("create", "-f", *words)
        return name

    def zpool(self, *words: str) -> Result:
        """Run a zpool command; raises CommandFailedError if it fails."""
        return self.machine.run(["zpool", *(self.device(word) for word in words)])

    def device(self, word: str) -> str:
        """Return the path of a disk named like "d3", or any other word unchanged."""
        if word[:1] == "d" and word[1:].isdigit():
            return self.machine.disks[int(word[1:])].path
        return word

    def fill(self, megabytes: int, file: str = "/tank/data") -> None:
        """Write a file that does not compress, and wait until it is on disk."""
        # An emulated processor writes the same megabyte repeatedly faster than new ones.
        block = "head -c 1M /dev/urandom >/run/block"
        repeat = f"cat $(yes /run/block | head -n {megabytes}) >{shlex.quote(file)}"
        self.machine.run(f"{block} && {repeat} && zpool sync", timeout=FILL_SECONDS)

    def slow(self, *disks: int, bps: int) -> None:
        """Limit disks to bytes/s."""
        for disk in disks:
            self.machine.throttle(disk, bps=bps)

    def damage(self, dataset: str, files: Sequence[str], disk: int) -> None:
        """Damage for good the first block of files that only this disk holds.

        The dataset must not be the pool's root: for zdb(8), that name means the pool itself.
        """
        pool = dataset.partition("/")[0]
        numbers = self.machine.run(["stat", "-c", "%i", "--", *files]).stdout.split()
        blocks = self.machine.run(["zdb", "-ddddd", dataset, *numbers]).stdout
        places = re.findall(r"^ +0 L0 0:([0-9a-f]+):([0-9a-f]+) ", blocks, re.MULTILINE)
        if len(places) != len(files):
            raise VmError(f"{len(files)} files, but {len(places)} first blocks:\n{blocks}")
        link = f"{self.device(f'd{disk}')}-part1"
        start = self.machine.run(f"cat /sys/class/block/$(basename $(readlink {link}))/start")
        base = int(start.stdout) * SECTOR + LABELS
        self.zpool("export", pool)  # otherwise the block would be read from memory
        for offset, length in places:
            self.machine.corrupt(disk, base + int(offset, 16), int(length, 16))
        self.zpool("import", pool)

    def wait_status(self, pattern: str, seconds: float = 60.0) -> None:
        """Wait until a line of `zpool status` matches an extended regular expression."""
        self.wait_until(f"zpool status -v | grep -Eq {shlex.quote(pattern)}", seconds)

    def wait_until(self, test: str, seconds: float = 60.0) -> None:
        """Wait until a shell line of the guest succeeds; raises VmError on timeout."""
        loop = f"until {test}; do sleep 0.2; done"
        limited = ["timeout", f"{seconds:.0f}", "sh", "-c", loop]
        if self.machine.run(limited, check=False, timeout=seconds + 30).returncode != 0:
            state = self.machine.run("timeout 10 zpool status -v", check=False).stdout
            raise VmError(f"not within {seconds:.0f} s: {test}\n{state}")


def clear(machine: Machine) -> None:
    """Leave a machine without pools, limits or changed parameters; reboots it if necessary."""
    try:
        machine.recover()
        destroy_pools(machine)
    except VmError as error:
        print(f"booting again: {error}", file=sys.stderr)
        machine.reboot()


def destroy_pools(machine: Machine) -> None:
    """Destroy every imported pool.

    Raises VmError if that is not possible: a zpool command on a pool that stays suspended never
    ends and can't be killed.
    """
    resume = (
        "for pool in /proc/spl/kstat/zfs/*/state; do grep -qs SUSPENDED $pool || continue;"
        " zpool clear $(basename $(dirname $pool)); done"
    )
    destroy = 'zpool list -Ho name | while IFS= read -r name; do zpool destroy -f "$name"; done'
    left = 'left=$(zpool list -Ho name) && [ -z "$left" ]'
    machine.run(f"{resume}; {destroy}; {left}", timeout=DESTROY_SECONDS)
