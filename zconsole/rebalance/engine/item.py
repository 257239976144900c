"""One inode in the copy engine, with every name it has in the set."""

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
"""Added to a temporary name: the original's second name where names cannot be exchanged."""
_SKIPPED = {
    errno.ETXTBSY: "running executable",
    errno.ENOKEY: "encrypted, its key is missing",
    # Names only move within a directory: one of project quotas refuses other projects (zfs_rename).
    errno.EXDEV: "its project is not its directory's",
}


def temporary(secret: str, number: int) -> bytes:
    """The temporary name of a file of the journal; ``secret`` (16 hex digits) is one run's own."""
    return b"%b%b-%x" % (TEMP_PREFIX, secret.encode(), number)


def is_temporary(name: bytes) -> bool:
    """Whether some job, of whoever's, has made this name."""
    return name.startswith(TEMP_PREFIX) and bool(_OURS.fullmatch(name.removesuffix(KEEP_SUFFIX)))


def is_ours(temp: bytes | None, number: int) -> bool:
    """Whether ``temporary`` could have made this name for this file."""
    match = _OURS.fullmatch(temp or b"")
    return match is not None and match[1] == b"%x" % number


class SkipError(Exception):
    """The file is left as it was; the reason is one of a few fixed phrases."""


class UnsupportedError(Exception):
    """The filesystem cannot exclude lost writes; the job has to be refused."""


class StopJobError(Exception):
    """The job was told to stop; what is not yet in place is dropped."""


class FileOutcome(NamedTuple):
    """The result of one name, for the report."""

    row: FileRow
    outcome: str
    """moved, skipped or failed."""
    bytes: int = 0
    reason: str | None = None


@dataclass(slots=True)
class FileName:
    """One name of an item, and how far its replacement is."""

    row: FileRow
    directory: OpenDirectory
    temp: bytes
    linked: bool = False
    """The temporary name may exist and hold our copy."""
    swapped: bool = False
    """The name holds our copy, and ``kept`` the original."""
    kept: bytes = b""


@dataclass(slots=True)
class Item:
    """An open original and its open copy. Descriptors are -1 when closed."""

    places: list[FileName]
    source: int
    status: os.stat_result
    meta: Metadata
    leased: bool
    copy: int = -1
    copy_leased: bool = False
    copy_opened: bool = False
    """Whether another process was let in to write to the copy."""
    digest: bytes = b""
    kept: bytes | None = None
    """The content of a very small file, until the copy has been read back."""
    verdict: bool | Exception | None = None
    """Whether the copy read back is the same, or why it could not be read; None: not read yet."""
    new: int = 0
    """Inode number of the copy."""
    handle: bytes = b""
    """Its handle."""
    swapped_ctime: int = 0
    names_changed_at: float = 0.0
    """When every name had been replaced, or given back to the original."""
    seen: bool = False
    """Whether others could find the copy under a name of theirs."""
    done: bool = False
    reason: str | None = None
    """Why it was given up, once it is."""

    @property
    def names(self) -> list[FileRow]:
        """Every name it has in the set."""
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
        """Whether there is a copy, begun at least."""
        return self.copy >= 0

    def let_go(self, sys: Sys) -> None:
        """Close the original, which ends its lease."""
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
    """Close a file that was verified or thrown away: an error says nothing, and it has closed."""
    with contextlib.suppress(OSError):
        sys.close(fd)


def own_prefix(temp: bytes) -> bytes:
    """The common prefix of all temporary names of the run that made this one."""
    return temp.rpartition(b"-")[0] + b"-"


def outcome_of(error: OSError) -> tuple[str, str]:
    """The outcome and the reason of a file that a call failed on."""
    if reason := _SKIPPED.get(error.errno or 0):
        return "skipped", reason
    return "failed", error.strerror or str(error)
