"""The first phase of a batch: every file copied, by this process and perhaps by one beside it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zconsole.rebalance.engine.aside import Aside, fits
from zconsole.rebalance.engine.copyist import Copied
from zconsole.rebalance.engine.item import Item
from zconsole.rebalance.engine.readahead import ReadAhead
from zconsole.rebalance.engine.syscalls import Sys

LOOK = 16
"""Files copied between two looks at what the process beside has made."""
PATIENCE = 0.05
"""Seconds to wait for it between two looks at everything else."""


@dataclass(frozen=True, slots=True)
class CopyPhase:
    """Copies items; ``copy`` and ``made`` (elsewhere) handle what goes wrong with one of them."""

    sys: Sys
    ahead: bool
    """Whether content is asked for before its turn."""
    copy: Callable[[Item], None]
    made: Callable[[Item], None]
    look: Callable[[], None]
    """Lets others have their turn; may wait, or raise to end all of it."""

    def run(self, items: Sequence[Item], aside: Aside | None, digest_size: int) -> None:
        """Copy all of them, but for those that are done."""
        front = ReadAhead(iter(items if self.ahead else ()), _unread, self._ask)
        if aside is not None:
            self._share(items, front, aside, digest_size)
        for item in items:
            if item.copy < 0 and not item.done:
                front.step()
                self.copy(item)

    def _share(
        self, items: Sequence[Item], front: ReadAhead[Item], aside: Aside, digest_size: int
    ) -> None:
        """Copy small files from the front, while the process beside takes them from the end."""
        small = deque(item for item in items if fits(item))
        while small or aside.busy:
            aside.hand_out(small, digest_size)
            self._take_back(aside.take(0 if small else PATIENCE))
            self.look()
            for _ in range(min(LOOK, len(small))):
                front.step()
                self.copy(small.popleft())

    def _take_back(self, back: Sequence[tuple[Item, Copied | None]]) -> None:
        for item, copied in back:  # all of them first: no descriptor may be lost
            item.handed = False
            if copied and item.done:
                self.sys.close(copied.fd)
            elif copied:
                (item.copy, item.new, item.digest), item.read_only = copied, True
        for item, copied in back:
            (self.made if copied else self.copy)(item)

    def _ask(self, item: Item, count: int) -> None:
        self.sys.fadvise(item.source, 0, count, os.POSIX_FADV_WILLNEED)


def _unread(item: Item) -> int:
    """Bytes of content that this process is going to read, as far as it looks now."""
    return 0 if item.done or item.handed else item.size
