"""Pools on a machine's disks, for tests."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from tests.vm.errors import VmError
from tests.vm.machine import Machine
from tests.vm.ssh import Result

DESTROY_SECONDS = 30
FILL_SECONDS = 600.0


@dataclass(frozen=True)
class PoolFactory:
    """Creates and works on pools; `destroy_pools` takes them away afterwards.

    Words of commands that look like "d3" stand for the machine's disks.
    """

    machine: Machine

    def create(self, layout: str, name: str = "tank", options: str = "") -> str:
        """Create a pool and return its name; the layout is zpool-create(8)'s: "mirror d0 d1"."""
        words = [*options.split(), name, *layout.split()]
        # udev still looks at disks whose last pool has just gone, which keeps zpool out.
        self.machine.run("udevadm settle")
        self.zpool("create", "-f", *words)
        return name

    def zpool(self, *words: str) -> Result:
        """Run a zpool command; raises CommandFailedError where it fails."""
        return self.machine.run(["zpool", *(self.device(word) for word in words)])

    def device(self, word: str) -> str:
        """The path of a disk named like "d3"; any other word as it is."""
        if word[:1] == "d" and word[1:].isdigit():
            return self.machine.disks[int(word[1:])].path
        return word

    def fill(self, megabytes: int, file: str = "/tank/data") -> None:
        """Write a file that does not compress, and wait until it is on disk."""
        # An emulated processor writes the same megabyte over and over faster than new ones.
        block = "head -c 1M /dev/urandom >/run/block"
        repeat = f"for _ in $(seq {megabytes}); do cat /run/block; done >{shlex.quote(file)}"
        self.machine.run(f"{block} && {repeat} && zpool sync", timeout=FILL_SECONDS)

    def slow(self, *disks: int, bps: int) -> None:
        """Limit disks to bytes/s."""
        for disk in disks:
            self.machine.throttle(disk, bps=bps)

    def wait_status(self, pattern: str, seconds: float = 60.0) -> None:
        """Wait until a line of `zpool status` matches an extended regular expression."""
        self.wait_until(f"zpool status -v | grep -Eq {shlex.quote(pattern)}", seconds)

    def wait_until(self, test: str, seconds: float = 60.0) -> None:
        """Wait until a shell line of the guest succeeds; raises VmError when time is up."""
        loop = f"until {test}; do sleep 0.2; done"
        limited = ["timeout", f"{seconds:.0f}", "sh", "-c", loop]
        if self.machine.run(limited, check=False, timeout=seconds + 30).returncode != 0:
            state = self.machine.run("timeout 10 zpool status -v", check=False).stdout
            raise VmError(f"not within {seconds:.0f} s: {test}\n{state}")


def destroy_pools(machine: Machine) -> None:
    """Destroy every imported pool; a guest that a suspended pool holds is booted again."""
    machine.run("zinject -c all", check=False)
    listing = f"timeout {DESTROY_SECONDS} zpool list -H -o name"
    for name in machine.run(listing, check=False).stdout.splitlines():
        destroy = f"timeout {DESTROY_SECONDS} zpool destroy -f {shlex.quote(name)}"
        if machine.run(destroy, check=False).returncode != 0:
            break
    left = machine.run(listing, check=False)
    if left.returncode != 0 or left.stdout:
        machine.reboot()
