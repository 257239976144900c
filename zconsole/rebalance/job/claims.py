"""Where a directory is, whatever path or mount leads to it: what one job claims of a filesystem."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any

from zconsole.rebalance.engine.directories import open_path
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.planning.facts import Mount, mount_of
from zconsole.system.mounts import mount_number

_UP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Claim:
    """A directory and all below it on its filesystem; jobs go into no other one."""

    path: str
    """As the operator named it; for messages."""
    device: int
    inode: int
    above: tuple[int, ...]
    """Inode numbers of the directories above, up to the root of the mount."""
    inside: str | None
    """The path from the root of the filesystem, which bind mounts share; None where not known."""

    def overlaps(self, other: Claim) -> bool:
        """Whether the two have a directory in common."""
        if self.device != other.device:
            return False
        if self.inode in (other.inode, *other.above) or other.inode in self.above:
            return True
        if self.inside is None or other.inside is None:
            return False
        one, two = PurePosixPath(self.inside), PurePosixPath(other.inside)
        return one.is_relative_to(two) or two.is_relative_to(one)

    def as_json(self) -> dict[str, Any]:
        """A JSON object that ``from_json`` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Claim:
        """The claim of another process. Raises TypeError, KeyError for what is none."""
        return cls(**{**data, "above": tuple(data["above"])})


def claim(sys: Sys, path: bytes, mount: Callable[[int], Mount | None] = mount_of) -> Claim:
    """What a job on a directory claims; ``path`` is real. Raises OSError.

    Its place in the filesystem is that of its mount (the fourth field of proc_pid_mountinfo(5))
    and the rest of the path: the directories above a bind mount are not those above its source.
    """
    fd = open_path(sys, path)
    try:
        status, number = sys.fstat(fd), mount_number(fd)
        above = _above(sys, fd, number)
    finally:
        sys.close(fd)
    name = os.fsdecode(path)
    return Claim(name, status.st_dev, status.st_ino, above, _inside(name, mount(number)))


def _above(sys: Sys, fd: int, mount: int) -> tuple[int, ...]:
    """Inode numbers above a directory, as long as they are reached through the same mount."""
    found: list[int] = []
    here, last = os.dup(fd), sys.fstat(fd)
    try:
        while True:
            up = sys.open(b"..", _UP, dir_fd=here)
            os.close(here)
            here, status = up, sys.fstat(up)
            if mount_number(here) != mount or os.path.samestat(status, last):
                return tuple(found)
            found.append(status.st_ino)
            last = status
    finally:
        os.close(here)


def _inside(path: str, mount: Mount | None) -> str | None:
    if mount is None or not PurePosixPath(path).is_relative_to(mount.point):
        return None
    return str(PurePosixPath(mount.root) / PurePosixPath(path).relative_to(mount.point))
