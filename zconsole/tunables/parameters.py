"""Reading and writing parameters of the ZFS kernel module."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from zconsole.errors import UnavailableError, ZconsoleError
from zconsole.pool.model import Version, parse_version
from zconsole.system.host import is_root, number_in, text_in

MODULE = Path("/sys/module/zfs")
NOT_LOADED = "the ZFS kernel module is not loaded. Load it (modprobe zfs), or try: zconsole demo"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Parameters:
    """/sys/module/zfs/parameters of the running kernel; a simulated one overrides all of it."""

    def __init__(self, module: Path = MODULE, boot_id: Path = BOOT_ID) -> None:
        self._module = module
        self._boot_id = boot_id

    @property
    def era(self) -> str:
        """Id of the boot and of the load of the module; empty if the module is not loaded.

        The load is told by the inode of the module's directory: kernfs gives every node a new
        number (fs/kernfs/dir.c), so it differs after a reload. The times of that directory would
        not do: they change under memory pressure.
        """
        try:
            return f"{self._boot_id.read_text().strip()}:{self._module.stat().st_ino}"
        except OSError:
            return ""

    @property
    def version(self) -> Version:
        """OpenZFS version of the module; empty when unknown."""
        return parse_version(text_in(self._module / "version"))

    def path(self, name: str) -> str:
        """Return the path of a parameter's file."""
        return str(self._module / "parameters" / name)

    def read(self, name: str) -> int | None:
        """Return the live value; None if this kernel has no such parameter, or no number in it."""
        return number_in(Path(self.path(name)))

    def write(self, name: str, value: int) -> None:
        """Set a parameter. Raises UnavailableError as `open` does, ZconsoleError if refused."""
        handle = self.open(name)
        try:
            os.write(handle, b"%d\n" % value)
        except OSError as error:
            raise ZconsoleError(f"{name}={value}: refused: {error.strerror}") from error
        finally:
            os.close(handle)

    def open(self, name: str) -> int:
        """Return a descriptor for writing. Raises UnavailableError if it can't be opened so."""
        try:
            return os.open(self.path(name), os.O_WRONLY | os.O_CLOEXEC)
        except OSError as error:
            hint = "" if is_root() else ". Run it as root"
            raise UnavailableError(f"{name}: {error.strerror}{hint}") from error

    def claim(self) -> int | None:
        """Claim the right to steer this kernel; return a descriptor, or None if it is taken.

        The claim is a lock on a file of the module that only root can open, and that is the same
        for all autopilots, wherever each keeps its state. Locking needs no right but to open the
        file. The end of the process releases the claim. Raises OSError if there is no module.
        """
        handle = os.open(self._module / "uevent", os.O_WRONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        return handle
