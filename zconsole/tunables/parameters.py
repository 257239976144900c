"""Reading and writing module parameters."""

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
        """Id of the boot and of the module's load; empty when it is not loaded.

        The inode of the module's directory: kernfs numbers every node anew (fs/kernfs/dir.c), so
        it differs after a reload, whereas the times of such a directory move under memory
        pressure.
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
        """File of the parameter."""
        return str(self._module / "parameters" / name)

    def read(self, name: str) -> int | None:
        """Live value; None if this kernel has no such number."""
        return number_in(Path(self.path(name)))

    def write(self, name: str, value: int) -> None:
        """Set it. Raises UnavailableError as `open`, ZconsoleError when refused."""
        handle = self.open(name)
        try:
            os.write(handle, b"%d\n" % value)
        except OSError as error:
            raise ZconsoleError(f"{name}={value}: refused: {error.strerror}") from error
        finally:
            os.close(handle)

    def open(self, name: str) -> int:
        """A descriptor to write it by. Raises UnavailableError where it may not be written."""
        try:
            return os.open(self.path(name), os.O_WRONLY | os.O_CLOEXEC)
        except OSError as error:
            hint = "" if is_root() else ". Run it as root"
            raise UnavailableError(f"{name}: {error.strerror}{hint}") from error

    def claim(self) -> int | None:
        """A descriptor that is the only claim to steer this kernel; None while there is another.

        It is a lock on a file of the module's that only root can open, and which is the same for
        all, wherever each keeps its state: a lock needs no right but to open. The end of the
        process releases it. Raises OSError where there is no module.
        """
        handle = os.open(self._module / "uevent", os.O_WRONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        return handle
