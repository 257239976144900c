"""Makes one copy: its content, then all its metadata, checked once more."""

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
    """Fills empty files."""

    sys: Sys
    make: Maker
    copies: Callable[[int], int] = lambda _device: 1
    """How many of each block are kept on a device."""
    buffers: content.Buffers = field(default_factory=content.Buffers)

    def fill(self, item: Item, abilities: Abilities, tick: Tick) -> None:
        """Make the empty copy of an item like its original.

        It was created with the permissions of ``metadata.first_mode``. What files created in its
        directory begin with is remembered there. Raises SkipError where something cannot be kept,
        OSError, ChangedError, and what ``tick`` raises.
        """
        directory = item.places[0].directory
        marks = metadata.mark(self.sys, item.copy, item.meta, abilities)
        item.digest, item.kept = content.copy(
            self.sys, item.source, item.copy, item.status, tick, self.make, self.buffers,
            self.copies(item.status.st_dev),
        )  # fmt: skip
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
        """Give a written copy, ``born`` like that, its metadata; returns what differs still.

        ``marks`` are those it has where they were read before and are not touched.
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
