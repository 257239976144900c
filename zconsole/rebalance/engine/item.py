"""A file that the copy engine moves: one inode with all its names in the set."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from dataclasses import dataclass
from typing import NamedTuple

from zconsole.rebalance.engine.directories import OpenDirectory
from zconsole.rebalance.engine.journal import FileRow
from zconsole.rebalance.engine.metadata import Metadata
from zconsole.rebalance.engine.syscalls import Sys

TEMP_PREFIX = b".zc-"
_OURS = re.compile(re.escape(TEMP_PREFIX) + rb"[0-9a-f]{16}-([0-9a-f]+)")
KEEP_SUFFIX = b"o"
"""Added to a temporary name: the original waits there if names can't be exchanged."""
_SKIPPED = {
    errno.ETXTBSY: "running executable",
    errno.ENOKEY: "encrypted, its key is missing",
    # A rename within a directory fails so only for project quotas: the directory has
    # PROJINHERIT, and the file another project (zfs_rename).
    errno.EXDEV: "its project is not its directory's",
}


def temporary(secret: str, number: int) -> bytes:
    """Return the temporary name of a file of the journal; ``secret``: the run's 16 hex digits."""
    return b"%b%b-%x" % (TEMP_PREFIX, secret.encode(), number)


def is_temporary(name: bytes) -> bool:
    """Whether a job, of any user, made this name."""
    return name.startswith(TEMP_PREFIX) and bool(_OURS.fullmatch(name.removesuffix(KEEP_SUFFIX)))


def is_ours(temp: bytes | None, number: int) -> bool:
    """Whether ``temporary`` can have made this name for the file with this number."""
    match = _OURS.fullmatch(temp or b"")
    return match is not None and match[1] == b"%x" % number


class SkipError(Exception):
    """The file is left as it was; the reason is one of a few fixed phrases."""


class UnsupportedError(Exception):
    """The filesystem can't exclude lost writes, or lacks what the engine needs: refuse the job."""


class StopJobError(Exception):
    """The job was told to stop; copies that are not in place yet are dropped."""


class FileOutcome(NamedTuple):
    """The result of one name, for the report."""

    row: FileRow
    outcome: str
    """moved, skipped or failed."""
    bytes: int = 0
    reason: str | None = None


@dataclass(slots=True)
class FileName:
    """One name of an item, and how far its replacement has come."""

    row: FileRow
    directory: OpenDirectory
    temp: bytes
    linked: bool = False
    """The temporary name may exist: it holds our copy, or the original once ``swapped``."""
    swapped: bool = False
    """The name holds our copy, and the name ``kept`` holds the original."""
    kept: bytes = b""
    """Name that the original waits at: ``temp``, or that with KEEP_SUFFIX; empty before."""


@dataclass(slots=True)
class Item:
    """An original and its copy, both open. Descriptors are -1 when closed."""

    places: list[FileName]
    source: int
    """Descriptor of the original."""
    status: os.stat_result
    meta: Metadata
    leased: bool
    """Whether we have a lease on the original."""
    copy: int = -1
    """Descriptor of the copy."""
    copy_leased: bool = False
    copy_opened: bool = False
    """Whether another process was allowed to open the copy for writing."""
    digest: bytes = b""
    kept: bytes | None = None
    """The content of a very small file, until the copy has been read back."""
    verdict: bool | Exception | None = None
    """Whether the copy read back equals the original, or the error; None: not read back yet."""
    new: int = 0
    """Inode number of the copy; 0 before that is known."""
    handle: bytes = b""
    """File handle of the copy; empty if the filesystem has none."""
    swapped_ctime: int = 0
    """The original's ctime (ns) after all names were replaced."""
    names_changed_at: float = 0.0
    """When every name had been replaced, or given back to the original (steady seconds)."""
    seen: bool = False
    """Whether the copy has been at a name of the user's, where others could open it."""
    done: bool = False
    """Whether the item has ended: moved, given up or left to recovery."""
    reason: str | None = None
    """Why it was given up; None before."""

    @property
    def names(self) -> list[FileRow]:
        """The journal's rows of all its names."""
        return [place.row for place in self.places]

    @property
    def size(self) -> int:
        """Bytes of content."""
        return self.status.st_size

    @property
    def old(self) -> int:
        """Inode number of the original."""
        return self.status.st_ino

    @property
    def in_place(self) -> bool:
        """Whether any of its names holds the copy now."""
        return any(place.swapped for place in self.places)

    @property
    def made(self) -> bool:
        """Whether the copy is open, complete or not."""
        return self.copy >= 0

    def let_go(self, sys: Sys) -> None:
        """Close the original, which ends its lease; the copy stays open to be discarded."""
        self.done, self.leased = True, False
        source, self.source = self.source, -1
        _close(sys, source)

    def close(self, sys: Sys) -> None:
        """Close both files, which ends the leases."""
        self.done = True
        copy, source, self.copy, self.source = self.copy, self.source, -1, -1
        for fd in (copy, source):
            if fd >= 0:
                _close(sys, fd)


def _close(sys: Sys, fd: int) -> None:
    """Close a file that was verified or discarded.

    An error does not matter any more, and Linux has closed the descriptor all the same (close(2)).
    """
    with contextlib.suppress(OSError):
        sys.close(fd)


def own_prefix(temp: bytes) -> bytes:
    """Return the common prefix of all temporary names of the run that made this one."""
    return temp.rpartition(b"-")[0] + b"-"


def outcome_of(error: OSError) -> tuple[str, str]:
    """Return the outcome and reason to report for a file on which a call failed."""
    if reason := _SKIPPED.get(error.errno or 0):
        return "skipped", reason
    return "failed", error.strerror or str(error)
