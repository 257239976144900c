"""The first phase of a batch: every file copied, by this process and perhaps by one beside it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zconsole.rebalance.engine.aside import Aside, fits
from zconsole.rebalance.engine.item import Item
from zconsole.rebalance.engine.lookahead import LOOK
from zconsole.rebalance.engine.making import Copied
from zconsole.rebalance.engine.readahead import ReadAhead
from zconsole.rebalance.engine.syscalls import Sys

PATIENCE = 0.05
"""Seconds to wait for it between two looks at everything else."""


@dataclass(frozen=True, slots=True)
class CopyPhase:
    """Copies items; ``copy`` handles what goes wrong with one of them."""

    sys: Sys
    ahead: bool
    """Whether content is asked for before its turn."""
    copy: Callable[[Item], None]
    look: Callable[[int], None]
    """Lets others have their turn, with the bytes that were copied elsewhere since the last look;
    may wait, or raise to end all of it."""

    def run(self, items: Sequence[Item], aside: Aside | None, digest_size: int) -> None:
        """Copy all of them, but for those that are done or were copied ahead."""
        self._look_at([item for item in items if item.made])
        front = ReadAhead(iter(items if self.ahead else ()), _unread, self._ask)
        if aside is not None:
            self._share(items, front, aside, digest_size)
        for item in items:
            if not item.made and not item.done:
                front.step()
                self.copy(item)

    def _share(
        self, items: Sequence[Item], front: ReadAhead[Item], aside: Aside, digest_size: int
    ) -> None:
        """Copy small files from the front, while the process beside takes them from the end."""
        small = deque(item for item in items if fits(item) and not (item.made or item.handed))
        while small or aside.busy:
            aside.hand_out(small, digest_size)
            self._take_back(aside.take(0 if small else PATIENCE))
            self.look(0)
            for _ in range(min(LOOK, len(small))):
                front.step()
                self.copy(small.popleft())

    def _take_back(self, back: Sequence[tuple[Item, Copied | None]]) -> None:
        for item, copied in back:  # all of them first: no descriptor may be lost
            item.take_back(self.sys, copied)
        self._look_at([item for item, copied in back if copied and not item.done])
        for item, copied in back:
            if not copied:
                self.copy(item)

    def _look_at(self, made: Sequence[Item]) -> None:
        """Tell of copies that were made elsewhere, some at a time."""
        for at in range(0, len(made), LOOK):
            self.look(sum(item.size for item in made[at : at + LOOK]))

    def _ask(self, item: Item, count: int) -> None:
        self.sys.fadvise(item.source, 0, count, os.POSIX_FADV_WILLNEED)


def _unread(item: Item) -> int:
    """Bytes of content that this process is going to read, as far as it looks now."""
    return 0 if item.done or item.handed or item.made else item.size
