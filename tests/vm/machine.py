"""A running virtual machine: commands, files, disks, and every kind of failure."""

from __future__ import annotations

import atexit
import dataclasses
import errno
import io
import os
import shutil
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.vm import qemu, qmp
from tests.vm.cache import subdirectory
from tests.vm.image import Image
from tests.vm.qemu import Disk, Hardware
from tests.vm.qmp import Qmp
from tests.vm.rundir import RunDirectory
from tests.vm.ssh import COMMAND_SECONDS, Command, Result, Ssh
from tests.vm.wheels import TREE

GIB = 1024**3
DEFAULT_DISKS = (GIB,) * 6
DEFAULT_MEMORY_MB = 1536
DEFAULT_CPUS = 2

TREE_IN_GUEST = "/root/zconsole"
_PUSHED = ("zconsole", "themes", "tests", "pyproject.toml", "README.md", "CHANGELOG.md")

# udev rereads the partitions of a disk that something has written to: on a slow machine they vanish
# for a while, just when zpool wants to open them.
_QUIET_UDEV = (
    "mkdir -p /run/udev/rules.d &&"
    """ echo 'SUBSYSTEM=="block", OPTIONS+="nowatch"' >/run/udev/rules.d/61-nowatch.rules &&"""
    " udevadm control --reload && udevadm trigger --subsystem-match=block --settle"
)
_PARAMETERS = "/sys/module/zfs/parameters"
_DEFAULTS = "/run/zfs-parameters"
_RESTORE_PARAMETERS = (
    f"cd {_PARAMETERS} && grep -sH '' * | diff - {_DEFAULTS} | sed -n 's/^> //p' |"
    ' while IFS=: read -r name value; do echo "$value" >"$name"; done'
)


class Machine:
    """A guest and its disks. As a context manager it leaves nothing behind."""

    def __init__(self, hardware: Hardware, pid: int, detached: bool = False) -> None:
        self.hardware = hardware
        self.pid = pid
        self._detached = detached
        self._run_directory: RunDirectory | None = None
        self.ssh = self._find_ssh()

    @classmethod
    def boot(
        cls,
        image: Image,
        disks: Sequence[int] = DEFAULT_DISKS,
        memory_mb: int = DEFAULT_MEMORY_MB,
        cpus: int = DEFAULT_CPUS,
        disk_cache: str = "unsafe",
    ) -> Self:
        """Boot an image with data disks of these sizes (bytes), in a temporary directory.

        disk_cache is a QEMU cache mode: unsafe, writeback, writethrough or directsync. Raises
        VmError if the guest does not boot.
        """
        run_directory = RunDirectory.create()
        try:
            hardware = make_hardware(
                image, run_directory.path, disks, memory_mb=memory_mb, cpus=cpus, cache=disk_cache
            )
            machine = cls(hardware, qemu.start(hardware))
            machine.wake()
        except BaseException:
            keep_console(run_directory.path, image.release)
            run_directory.remove()
            raise
        machine._run_directory = run_directory
        atexit.register(machine.close)
        return machine

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.keep_console_log()
        self.close()

    def close(self) -> None:
        """Switch the machine off and delete its disks."""
        atexit.unregister(self.close)
        self.power_cut()
        if self._run_directory is not None:
            self._run_directory.remove()

    @property
    def image(self) -> Image:
        """Return the image that the machine was booted from."""
        return self.hardware.image

    @property
    def disks(self) -> list[Disk]:
        """Return the data disks, in order."""
        return list(self.hardware.disks)

    @property
    def console_log(self) -> Path:
        """Return the log of the guest's serial console since the last boot."""
        return self.hardware.directory / "console.log"

    def keep_console_log(self) -> Path:
        """Copy the console log into the cache, and print its path; returns the copy."""
        return keep_console(self.hardware.directory, self.image.release)

    def run(
        self,
        command: Command,
        check: bool = True,
        timeout: float = COMMAND_SECONDS,
        stdin: bytes | None = None,
    ) -> Result:
        """Run a command as root in the guest; parameters and errors as in `Ssh.run`."""
        return self.ssh.run(command, check=check, timeout=timeout, stdin=stdin)

    def put(self, local: Path, remote: str) -> None:
        """Copy a file or a directory to the guest."""
        self.ssh.put(local, remote)

    def get(self, remote: str, local: Path) -> None:
        """Copy a file or a directory from the guest."""
        self.ssh.get(remote, local)

    def push_tree(self) -> None:
        """Replace the guest's copy of the source tree with the current one."""
        unpack = f"rm -rf {TREE_IN_GUEST} && mkdir {TREE_IN_GUEST} && tar -xC {TREE_IN_GUEST}"
        unpack += " && sync"  # a power cut would undo it
        self.run(unpack, stdin=_packed_tree())

    def throttle(self, disk: int, bps: int = 0, iops: int = 0) -> None:
        """Limit a disk to bytes/s and operations/s from now on; 0 removes a limit."""
        with self._monitor() as monitor:
            _limit(monitor, self.disks[disk], bps, iops)

    def pull(self, disk: int) -> None:
        """Unplug a disk, as if pulled from its bay; returns when it is gone."""
        device = self.disks[disk].device()["id"]
        with self._monitor() as monitor:
            monitor.execute("device_del", id=device)
            monitor.wait_event("DEVICE_DELETED", device=device)

    def bay(self, disk: int) -> str:
        """Return the PCI slot number of a disk, for `plug`."""
        device = self.disks[disk].device()["id"]
        with self._monitor() as monitor:
            place = f"/machine/peripheral/{device}"
            function = monitor.execute("qom-get", path=place, property="addr")
        return f"{int(function) >> 3:#x}"

    def plug(self, disk: int, bay: str = "") -> None:
        """Plug in a pulled disk with its data, in this bay or the first free one.

        Returns when the guest has its path.
        """
        with self._monitor() as monitor:
            monitor.execute("device_add", **self.disks[disk].device(bay))
        path = self.disks[disk].path
        self.run(f"until [ -e {path} ]; do sleep 0.1; done; udevadm settle", timeout=30)

    def set_link(self, *, up: bool) -> None:
        """Connect or disconnect the guest's network cable; without it, commands hang."""
        with self._monitor() as monitor:
            monitor.execute("set_link", name="net", up=up)

    def corrupt(self, disk: int, offset: int, length: int) -> None:
        """Overwrite a range of a disk (bytes) behind the guest's back.

        Only blocks that were ever written change: holes of the sparse file stay.
        """
        end = offset + length
        with self.disks[disk].file.open("r+b") as file:
            for start, stop in written_stretches(file.fileno(), offset, end):
                file.seek(start)
                file.write(os.urandom(stop - start))

    def power_cut(self) -> None:
        """End the guest at once, whatever it is doing."""
        qemu.kill(self.pid, self.hardware.directory)

    def reboot(self, bays: Mapping[int, str] | None = None) -> None:
        """Boot again from the same disks and root, after a power cut if it still runs.

        ``bays``: where disks were put while the power was off; a disk without a bay is out.
        """
        self.power_cut()
        self.ssh.close()
        self.pid = qemu.start(dataclasses.replace(self.hardware, bays=bays), self._detached)
        self.ssh = self._find_ssh()
        self.wake()

    def wake(self) -> None:
        """Wait for ssh, enable the processors that were off during boot, and prepare for tests."""
        self.ssh.wait()
        self.run("for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do echo 1 >$cpu; done")
        self.run(_QUIET_UDEV)
        # Saved here, and restored after each test.
        self.run(f"cd {_PARAMETERS} && grep -sH '' * >{_DEFAULTS}")

    def recover(self) -> None:
        """Restore every disk to full speed, and ZFS's parameters; boots a dead guest."""
        if not qemu.is_running(self.pid, self.hardware.directory):
            self.reboot()
        plugged = self.plugged()
        for disk in self.disks:
            if disk.index not in plugged:
                self.plug(disk.index)
        with self._monitor() as monitor:
            for disk in self.disks:
                _limit(monitor, disk)
        self.run(_RESTORE_PARAMETERS)

    def plugged(self) -> set[int]:
        """Return the disks that are plugged in."""
        with self._monitor() as monitor:
            listed = monitor.execute("qom-list", path="/machine/peripheral")
        names = {device["name"] for device in listed}
        return {disk.index for disk in self.disks if disk.device()["id"] in names}

    def _find_ssh(self) -> Ssh:
        directory = self.hardware.directory
        port = qemu.forwarded_port(directory / "qmp")
        return Ssh(port=port, key=self.image.ssh_key, socket=directory / "ssh")

    def _monitor(self) -> AbstractContextManager[Qmp]:
        return qmp.connect(self.hardware.directory / "qmp")


def _limit(monitor: Qmp, disk: Disk, bps: int = 0, iops: int = 0) -> None:
    """Set a disk's limits; QEMU requires all of them."""
    rest = dict.fromkeys(("bps_rd", "bps_wr", "iops_rd", "iops_wr"), 0)
    monitor.execute("block_set_io_throttle", id=disk.backend, bps=bps, iops=iops, **rest)


def make_hardware(
    image: Image,
    directory: Path,
    sizes: Sequence[int],
    *,
    memory_mb: int = DEFAULT_MEMORY_MB,
    cpus: int = DEFAULT_CPUS,
    cache: str = "unsafe",
) -> Hardware:
    """Create the files of a machine in a directory: a fresh root and empty sparse disks."""
    disks = [Disk(index, directory / f"disk{index}.raw", cache) for index in range(len(sizes))]
    for disk, size in zip(disks, sizes, strict=True):
        with disk.file.open("wb") as file:
            file.truncate(size)
    hardware = Hardware(image, directory, disks, memory_mb, cpus)
    hardware.make_overlay()
    return hardware


def keep_console(directory: Path, release: str) -> Path:
    """Copy a machine's console log into the cache's logs; prints and returns the path."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    kept = subdirectory("logs") / f"console-{release}-{stamp}-{os.getpid()}.log"
    shutil.copyfile(directory / "console.log", kept)
    print(f"console log kept: {kept}", file=sys.stderr)
    return kept


def written_stretches(descriptor: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of start…end of a sparse file that are not holes, at most 1 MiB each."""
    while start < end:
        try:
            start = os.lseek(descriptor, start, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return
        stop = min(os.lseek(descriptor, start, os.SEEK_HOLE), start + (1 << 20), end)
        if start < stop:
            yield start, stop
        start = stop


def _packed_tree() -> bytes:
    """Return the source tree as a tar archive, without files that interpreters and tools leave."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in _PUSHED:
            if (TREE / name).exists():
                archive.add(TREE / name, arcname=name, filter=_without_leftovers)
    return packed.getvalue()


def _without_leftovers(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Skip bytecode and hidden files."""
    name = Path(entry.name).name
    return None if name == "__pycache__" or name.startswith(".") else entry
