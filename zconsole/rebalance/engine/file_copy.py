"""Making one copy: the content, then all metadata, which is read back and compared."""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import dataclass, field

from zconsole.rebalance.engine import content, metadata
from zconsole.rebalance.engine.content import Maker, Tick
from zconsole.rebalance.engine.item import Item, SkipError
from zconsole.rebalance.engine.metadata import Abilities, Marks, Metadata
from zconsole.rebalance.engine.syscalls import Sys


@dataclass(frozen=True, slots=True)
class FileCopier:
    """Fills an empty file with the content and metadata of another."""

    sys: Sys
    make: Maker
    """Constructor of the hash for content."""
    copies: Callable[[int], int] = lambda _device: 1
    """How many copies of each block a device keeps (zfsprops(7))."""
    buffers: content.Buffers = field(default_factory=content.Buffers)

    def fill(self, item: Item, abilities: Abilities, tick: Tick) -> None:
        """Make the empty copy of an item like its original.

        The copy must have been created with the permissions of ``metadata.first_mode``. The
        metadata that new files in its directory begin with is remembered in ``directory.born``.
        Raises SkipError if something can't be kept, OSError, ChangedError, and what ``tick``
        raises.
        """
        directory = item.places[0].directory
        marks = metadata.mark(self.sys, item.copy, item.meta, abilities)
        item.digest, item.kept = content.copy(
            self.sys, item.source, item.copy, item.status, tick, self.make, self.buffers,
            self.copies(item.status.st_dev),
        )  # fmt: skip
        # New files of one directory begin alike: assume so, which saves reading every copy's
        # metadata before it is changed, and read it only if the result differs.
        born, different = directory.born, None
        seen = born is not None and not born.xattrs and marks is not None
        if born is not None and seen:
            mode = stat.S_IFREG | metadata.first_mode(item.meta, born)
            begun = born if born.mode == mode else born._replace(mode=mode)
            different = self._dress(item, begun, abilities, marks)
        if not seen or different:
            directory.born, _ = metadata.read(self.sys, item.copy, abilities)
            different = self._dress(item, directory.born, abilities)
        if different:
            raise SkipError(f"{different} cannot be kept")

    def _dress(
        self, item: Item, born: Metadata, abilities: Abilities, marks: Marks | None = None
    ) -> str | None:
        """Give a written copy, created with metadata ``born``, that of the original.

        Returns the name of what still differs, or None. ``marks`` are the copy's, if they have
        been read and need no change.
        """
        copy = item.copy
        metadata.apply(self.sys, copy, item.meta, born, abilities)
        if marks is None:
            copied, status = metadata.read(self.sys, copy, abilities)
        else:
            dos = metadata.dos(self.sys, copy, abilities)
            copied, status = metadata.reread(self.sys, copy, marks, dos)
        item.new = status.st_ino
        return item.meta.difference(copied)
