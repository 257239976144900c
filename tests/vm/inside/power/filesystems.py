"""The filesystem of the moved files, and one for the journal, both on one device.

One device has one log of writes, which keeps the order of data and journal.
"""

from __future__ import annotations

import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.vm.inside.power.device_mapper import linear, size_of

DATA_BYTES = 320 << 20
"""Bytes of the device's first part; the rest is the journal's. XFS needs at least 300 MiB."""
DATA, JOURNAL = Path("/mnt/data"), Path("/mnt/journal")
_LINKS = Path("/run/power")
"""Directory where the pool's device always has the same name, whatever number it has."""


def run(*words: str) -> None:
    """Run a command. Raises CalledProcessError."""
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


class Filesystem(ABC):
    """A kind of filesystem to move files on."""

    root = DATA / "tree"
    """The directory of the job."""
    keeps_holes = True
    """Whether the space of a file is known right after it was written."""

    @abstractmethod
    def make(self, device: str) -> None:
        """Create it on a device, empty and not mounted."""

    @abstractmethod
    def mount(self, device: str) -> None:
        """Mount it, also after a power cut."""

    @abstractmethod
    def unmount(self) -> None:
        """Unmount it."""


class Mounted(Filesystem):
    """A filesystem that mount(8) handles."""

    def __init__(self, options: str, *maker: str) -> None:
        self.options = options
        self.maker = maker

    def make(self, device: str) -> None:
        """Create it; without a maker, somebody has created it before."""
        if self.maker:
            run(*self.maker, device)

    def mount(self, device: str) -> None:
        """Mount it, which replays its own journal."""
        DATA.mkdir(parents=True, exist_ok=True)
        run("mount", "-o", self.options, device, str(DATA))

    def unmount(self) -> None:
        """Unmount it."""
        run("umount", str(DATA))


class Pool(Filesystem):
    """A pool on one vdev."""

    keeps_holes = False
    _options = ("atime=off", "acltype=posix", "xattr=sa", f"mountpoint={DATA}", "canmount=noauto")

    def make(self, device: str) -> None:
        """Create the pool and export it."""
        options = [word for option in self._options for word in ("-O", option)]
        run("zpool", "create", "-f", *options, "tank", str(self._link(device)))
        run("zpool", "export", "tank")

    def mount(self, device: str) -> None:
        """Import the pool, whichever host had it last, and mount it."""
        run("zpool", "import", "-f", "-N", "-d", str(self._link(device)), "tank")
        run("zfs", "mount", "tank")

    def unmount(self) -> None:
        """Export the pool."""
        run("zpool", "export", "tank")

    def _link(self, device: str) -> Path:
        _LINKS.mkdir(exist_ok=True)
        link = _LINKS / "vdev"
        link.unlink(missing_ok=True)
        link.symlink_to(device)
        return link


FILESYSTEMS: dict[str, Filesystem] = {
    # Commit every second: with fewer writes between two commits, more states are tested.
    "ext4": Mounted("noatime,commit=1", "mkfs.ext4", "-q", "-F"),
    "xfs": Mounted("noatime"),
    "zfs": Pool(),
}
_FOR_JOURNAL = ("mkfs.ext4", "-q", "-F")


def make(filesystem: Filesystem, device: str) -> None:
    """Create both filesystems on a device."""
    with parts(device) as (data, journal):
        filesystem.make(data)
        run(*_FOR_JOURNAL, journal)


@contextmanager
def mounted(filesystem: Filesystem, device: str) -> Iterator[None]:
    """Mount both filesystems of a device for the duration of the block."""
    JOURNAL.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        data, journal = held.enter_context(parts(device))
        run("mount", "-o", "noatime", journal, str(JOURNAL))
        held.callback(run, "umount", str(JOURNAL))
        filesystem.mount(data)
        held.callback(filesystem.unmount)
        yield


@contextmanager
def parts(device: str) -> Iterator[tuple[str, str]]:
    """Map the two parts of a device as devices for the duration of the block."""
    rest = size_of(device) - DATA_BYTES
    with (
        linear("power-data", device, 0, DATA_BYTES) as data,
        linear("power-journal", device, DATA_BYTES, rest) as journal,
    ):
        yield data, journal


def load_modules() -> None:
    """Load the kernel modules needed, unless they are built in."""
    modprobe = shutil.which("modprobe") or "/sbin/modprobe"
    run(modprobe, "-a", "dm-log-writes", "dm-snapshot", "xfs", "ext4")
