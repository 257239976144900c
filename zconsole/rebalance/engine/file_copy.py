"""The making of one copy: its content, then all a file carries besides, looked at once more."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import NamedTuple

from zconsole.rebalance.engine import content, metadata
from zconsole.rebalance.engine.content import Maker, Tick, Written
from zconsole.rebalance.engine.metadata import Abilities, Marks, Metadata
from zconsole.rebalance.engine.syscalls import Sys


class Original(NamedTuple):
    """An open file, and what its copy must be like."""

    fd: int
    status: os.stat_result
    meta: Metadata


class Made(NamedTuple):
    """A copy that is written and dressed."""

    written: Written
    inode: int
    born: Metadata
    """What files created in its directory begin with."""
    different: str | None
    """What cannot be kept of the original, in a word."""


@dataclass(frozen=True, slots=True)
class FileCopier:
    """Fills empty files."""

    sys: Sys
    make: Maker
    buffers: content.Buffers = field(default_factory=content.Buffers)

    def fill(
        self,
        copy: int,
        original: Original,
        born: Metadata | None,
        abilities: Abilities,
        tick: Tick,
    ) -> Made:
        """Make the empty file ``copy`` like the original.

        It was created with the permissions of ``metadata.first_mode``. ``born`` is what files
        created beside it begin with, as far as was seen. Raises OSError, ChangedError, and what
        ``tick`` raises.
        """
        marks = metadata.mark(self.sys, copy, original.meta, abilities)
        written = content.copy(
            self.sys, original.fd, copy, original.status, tick, self.make, self.buffers
        )
        if born is not None and not born.xattrs and marks is not None:
            mode = stat.S_IFREG | metadata.first_mode(original.meta, born)
            begun = born if born.mode == mode else born._replace(mode=mode)
            inode, different = self._dress(copy, original.meta, begun, abilities, marks)
            if not different:
                return Made(written, inode, born, None)
        born, _ = metadata.read(self.sys, copy, abilities)
        inode, different = self._dress(copy, original.meta, born, abilities)
        return Made(written, inode, born, different)

    def _dress(
        self,
        copy: int,
        wanted: Metadata,
        born: Metadata,
        abilities: Abilities,
        marks: Marks | None = None,
    ) -> tuple[int, str | None]:
        """Give a written copy, ``born`` like that, its metadata; its inode, and what differs.

        ``marks`` are those it has where they were read before and are not touched.
        """
        metadata.apply(self.sys, copy, wanted, born, abilities)
        if marks is None:
            copied, status = metadata.read(self.sys, copy, abilities)
        else:
            dos = metadata.dos(self.sys, copy, abilities)
            copied, status = metadata.reread(self.sys, copy, marks, dos)
        return status.st_ino, wanted.difference(copied)
