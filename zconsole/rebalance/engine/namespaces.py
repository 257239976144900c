"""Metadata that a user namespace hides: unmapped owners, ``trusted.`` attributes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from zconsole.system import mounts

PROC = Path("/proc")
INITIAL_USER = 0xEFFFFFFD
"""Inode of the host's own user namespace (PROC_USER_INIT_INO, linux/proc_ns.h)."""
USUAL_OVERFLOW = 65534
"""Id shown for an unmapped owner, if /proc does not tell (DEFAULT_OVERFLOWUID)."""
_ALL_IDS = 2**32 - 1
"""Number of ids that the host maps: all of 32 bits but -1."""
_SYS_ADMIN = 1 << 21
"""CAP_SYS_ADMIN (linux/capability.h)."""


def is_nested(proc: Path = PROC) -> bool:
    """Whether this process is in a user namespace other than the host's."""
    try:
        return (proc / "self/ns/user").stat().st_ino != INITIAL_USER
    except FileNotFoundError:
        return False  # a kernel without user namespaces


def sees_trusted(proc: Path = PROC) -> bool:
    """Whether the kernel shows this process attributes named ``trusted.`` (xattr_permission)."""
    lines = (proc / "self/status").read_text().splitlines()
    held = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    return bool(held & _SYS_ADMIN) and not is_nested(proc)


@dataclass(slots=True)
class Owners:
    """Detects files whose true owner or group this process can't see.

    The kernel shows an owner that the namespace or an idmapped mount does not map as the overflow
    id. A copy would belong to that id, if it is mapped to anything, or could not be given to it.
    """

    proc: Path = PROC
    mount_of: Callable[[int], int] = mounts.mount_number
    _shown: tuple[int, int] | None = None
    """Overflow ids of users and groups; None before the first question."""
    _whole: tuple[bool, bool] = (True, True)
    """Whether all users, and all groups, are mapped."""
    _idmapped: dict[int, bool] = field(default_factory=dict)
    """By number of a mount."""

    def hidden(self, fd: int, status: os.stat_result) -> bool:
        """Whether the owner or group of an open file may be another than the status shows."""
        if self._shown is None:
            self._shown = self._overflow("uid"), self._overflow("gid")
            self._whole = self._is_whole("uid"), self._is_whole("gid")
        pairs = zip((status.st_uid, status.st_gid), self._shown, self._whole, strict=True)
        # Where all ids are mapped, the overflow id is a real owner (nobody), unless the mount is
        # idmapped.
        odd = [whole for shown, overflow, whole in pairs if shown == overflow]
        return bool(odd) and (not all(odd) or self._is_idmapped(fd))

    def _overflow(self, kind: str) -> int:
        try:
            return int((self.proc / f"sys/kernel/overflow{kind}").read_text())
        except OSError:
            return USUAL_OVERFLOW

    def _is_whole(self, kind: str) -> bool:
        """Whether all ids are mapped, as on the host."""
        try:
            rows = (self.proc / f"self/{kind}_map").read_text().splitlines()
        except FileNotFoundError:
            return True
        return sum(int(row.split()[2]) for row in rows) >= _ALL_IDS

    def _is_idmapped(self, fd: int) -> bool:
        number = self.mount_of(fd)
        if number not in self._idmapped:
            mount = mounts.parse(mounts.table_of(self.proc / "self")).get(number)
            self._idmapped[number] = mount is not None and mount.idmapped
        return self._idmapped[number]
