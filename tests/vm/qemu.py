"""The QEMU process of a machine: its command line, disks and lifetime."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.vm import qmp
from tests.vm.errors import VmError
from tests.vm.image import ROOT_LABEL, Image

BOOT_SECONDS = 240.0
BOOT_ATTEMPTS = 3
READY = b"ZCVM-READY"

# Use one processor until the guest is up: QEMU 7.2 has a race when a kernel patches its own code,
# which it does while it boots.
_KERNEL_LINE = (
    f"console=ttyS0 root=LABEL={ROOT_LABEL} rootfstype=ext4 rw init=/sbin/zcvm-init "
    "panic=-1 net.ifnames=0 mitigations=off quiet maxcpus=1"
)

# QEMU's cache modes as blockdev options: what the host may keep back, whether the guest sees a
# volatile write cache, whether its flushes are honored.
_CACHE_MODES = {
    "unsafe": ("cache.direct=off,cache.no-flush=on", "write-cache=on"),
    "writeback": ("cache.direct=off,cache.no-flush=off", "write-cache=on"),
    "writethrough": ("cache.direct=off,cache.no-flush=off", "write-cache=off"),
    "directsync": ("cache.direct=on,cache.no-flush=off", "write-cache=off"),
}


@dataclass(frozen=True)
class Disk:
    """A data disk: a sparse raw file the guest sees as a virtio disk."""

    index: int
    file: Path
    cache: str = "unsafe"

    @property
    def name(self) -> str:
        """Return its name in QMP: "d0", "d1", …."""
        return f"d{self.index}"

    @property
    def path(self) -> str:
        """Return its stable path in the guest."""
        return f"/dev/disk/by-id/virtio-LABDISK{self.index}"

    @property
    def backend(self) -> str:
        """Return the QOM path of the device on which I/O limits are set."""
        return f"/machine/peripheral/dev{self.index}/virtio-backend"

    def blockdev(self) -> str:
        """Return the value of QEMU's -blockdev."""
        host = f"file.driver=file,file.filename={self.file},file.locking=off"
        modes = _CACHE_MODES[self.cache][0]
        return f"driver=raw,node-name={self.name},discard=unmap,{modes},{host}"

    def device(self, bay: str = "") -> dict[str, str]:
        """Return the arguments of QMP's device_add; without a bay, the first free one is used."""
        option, value = _CACHE_MODES[self.cache][1].split("=")
        where = {"addr": bay} if bay else {}
        return {
            "driver": "virtio-blk-pci",
            "drive": self.name,
            "serial": f"LABDISK{self.index}",
            "id": f"dev{self.index}",
            option: value,
            **where,
        }


@dataclass(frozen=True)
class Hardware:
    """Configuration with which QEMU is started."""

    image: Image
    directory: Path
    disks: Sequence[Disk]
    memory_mb: int
    cpus: int
    bays: Mapping[int, str] | None = None
    """The bay of each disk that is plugged in; None: all are, in consecutive bays."""

    def command(self) -> list[str]:
        """Return QEMU's command line. Emulation only: nested KVM may be present and still fail."""
        return [
            *("qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none"),
            *("-machine", "pc,usb=off,vmport=off"),
            # QEMU 7.2 corrupts the flags after an emulated cmpxchg16b, and "max" is worse.
            *("-accel", "tcg,thread=multi", "-cpu", "Nehalem,-cx16", "-no-reboot"),
            *("-smp", str(self.cpus), "-m", str(self.memory_mb)),
            *("-kernel", str(self.image.directory / "kernel")),
            *("-initrd", str(self.image.directory / "initrd"), "-append", _KERNEL_LINE),
            *("-serial", f"file:{self.directory / 'console.log'}"),
            *("-qmp", f"unix:{self.directory / 'qmp'},server=on,wait=off"),
            # Port 0: the kernel picks a free one, so that two machines never collide.
            *("-netdev", "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:0-:22"),
            *("-device", "virtio-net-pci,netdev=net,romfile=", "-device", "virtio-rng-pci"),
            *("-drive", f"file={self.overlay},if=virtio,format=qcow2,cache=writeback"),
            *self._disk_options(),
        ]

    @property
    def overlay(self) -> Path:
        """Return the file with the machine's changes to the image's root filesystem."""
        return self.directory / "root.qcow2"

    def make_overlay(self) -> None:
        """Start from the image as it was built."""
        backing = ["-F", "raw", "-b", str(self.image.root)]
        subprocess.run(
            ["qemu-img", "create", "-q", "-f", "qcow2", *backing, str(self.overlay)], check=True
        )

    def _disk_options(self) -> list[str]:
        """Return the options for data disks; a disk that is out can be plugged in later."""
        words: list[str] = []
        for disk in self.disks:
            words += ["-blockdev", disk.blockdev()]
            if self.bays is None:
                words += ["-device", _joined(disk.device())]
            elif disk.index in self.bays:
                words += ["-device", _joined(disk.device(self.bays[disk.index]))]
        return words


def _joined(device: Mapping[str, str]) -> str:
    """Return the arguments of device_add as a value of QEMU's -device."""
    return ",".join(f"{key}={value}" for key, value in device.items()).replace("driver=", "", 1)


def start(hardware: Hardware, detached: bool = False) -> int:
    """Start QEMU and wait for the guest; returns its process id.

    Unless detached, it dies with this process. Raises VmError if the guest does not boot in
    BOOT_ATTEMPTS attempts: emulated kernels panic once in a while.
    """
    for _ in range(BOOT_ATTEMPTS - 1):
        try:
            return _start(hardware, detached)
        except VmError as error:
            print(f"booting again: {error}", file=sys.stderr)
    return _start(hardware, detached)


def _start(hardware: Hardware, detached: bool) -> int:
    """Make one attempt to boot."""
    tether = [] if detached else ["setpriv", "--pdeathsig", "KILL"]
    console = hardware.directory / "console.log"
    log = hardware.directory / "qemu.log"
    (hardware.directory / "qmp").unlink(missing_ok=True)
    console.write_bytes(b"")
    pid = _spawn([*tether, *hardware.command()], log)
    try:
        _wait_ready(pid, console, log)
    except BaseException:
        kill(pid, hardware.directory)
        raise
    return pid


def _spawn(argv: list[str], log: Path) -> int:
    """Start a process in a session of its own, so that a ^C of the tests does not reach it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    return os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions, setsid=True)


def is_running(pid: int, directory: Path) -> bool:
    """Return whether a process is the QEMU of a machine's directory, not one with a reused id."""
    return str(directory).encode() in _command_line(pid)


def running_in(directory: Path) -> list[int]:
    """Return every QEMU of a machine's directory: a killed start may have left one behind."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if f"unix:{directory}/qmp,".encode() in _command_line(pid)]


def forwarded_port(control: Path) -> int:
    """Return the host's TCP port that is forwarded to the guest's ssh."""
    with qmp.connect(control) as monitor:
        table = monitor.monitor("info usernet")
    found = re.search(r"HOST_FORWARD\]\s+\S+\s+\S+\s+(\d+)", table)
    if found is None:
        raise VmError(f"no forwarded port in:\n{table}")
    return int(found[1])


def kill(pid: int, directory: Path) -> None:
    """End a machine's QEMU at once, as a power cut would, and wait until it is gone."""
    if is_running(pid, directory):
        os.kill(pid, signal.SIGKILL)
        while _alive(pid):
            time.sleep(0.02)


def _alive(pid: int) -> bool:
    """Return whether a process is running; reaps our own child if it has ended."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != pid
    except ChildProcessError:
        return bool(_command_line(pid))


def _command_line(pid: int) -> bytes:
    """Return a process's command line; empty once it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _wait_ready(pid: int, console: Path, log: Path) -> None:
    """Wait for init's last line; raises VmError if QEMU ends or on timeout."""
    deadline = time.monotonic() + BOOT_SECONDS
    while READY not in console.read_bytes():
        if not _alive(pid):
            raise VmError(f"QEMU ended before the guest was up: {_last_words(log, console)}")
        if time.monotonic() > deadline:
            raise VmError(f"no boot within {BOOT_SECONDS:.0f} s: {_last_words(log, console)}")
        time.sleep(0.1)


def _last_words(*logs: Path) -> str:
    """Return the ends of the logs."""
    return "\n".join(log.read_text(errors="replace")[-600:].strip() for log in logs)
