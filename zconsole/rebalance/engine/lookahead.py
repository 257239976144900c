"""The next batch, begun while this one is settled: the process beside copies its small files, as
this one has its hands full with syncs and names.

Nothing of it is in the journal or has a name, and all of it can be dropped at any moment: a file
that is not there when its turn comes begins anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from zconsole.rebalance.engine.aside import Aside, fits, portion
from zconsole.rebalance.engine.content import SMALL
from zconsole.rebalance.engine.copyist import MOST_FILES
from zconsole.rebalance.engine.directories import MovedError
from zconsole.rebalance.engine.item import Item, SkipError, UnsupportedError
from zconsole.rebalance.engine.journal import FileRow
from zconsole.rebalance.engine.syscalls import Sys

LOOK = 16
"""Files handled here between two looks at the process beside."""


@dataclass(slots=True)
class Lookahead:
    """Open files of the batch to come: copied, away to be copied, or as they are."""

    sys: Sys
    aside: Aside
    admit: Callable[[FileRow], Item]
    """Opens a file. Raises SkipError, MovedError, UnsupportedError, OSError."""
    digest_size: int
    listen: Callable[[], None]
    """Lets go of what others wait for: to open a file may take a busy disk a while."""
    _rows: deque[FileRow] = field(default_factory=deque)
    """Those that nobody has looked at yet."""
    _items: dict[int, Item] = field(default_factory=dict)
    """By the number of the row."""
    _ready: deque[Item] = field(default_factory=deque)
    """Those that can be handed out."""

    def begin(self, rows: Iterable[FileRow]) -> None:
        """From now on look at these, whose turn comes next, and let go of any before them."""
        self.drop()
        self._rows.extend(rows)

    def adopt(self, row: FileRow) -> Item | None:
        """The open file of a row whose turn has come, unless somebody has touched it since."""
        item = self._items.pop(row.number, None)
        if item is None or self._untouched(item):
            return item
        item.close(self.sys)
        return None

    def meanwhile(self, items: Iterable[Item]) -> Iterator[Item]:
        """The same files, for something else to be done with; between some the next go on."""
        for number, item in enumerate(items):
            if number % LOOK == 0:
                self.step()
            yield item

    def step(self) -> None:
        """Take back what was made, and hand out more where that is waited for."""
        self.collect()
        if self.aside.wants:
            for _ in range(min(MOST_FILES - len(self._ready), len(self._rows))):
                self._open_next()
            self.aside.give(portion(self._ready), self.digest_size)

    def collect(self) -> None:
        """Take back what was made; of files let go of that frees the space."""
        for item, copied in self.aside.take(0):
            item.take_back(self.sys, copied)

    def prepare(self) -> None:
        """There is time: a step, and some files opened that are not waited for yet."""
        self.step()
        for _ in range(min(LOOK, len(self._rows))):
            self._open_next()

    def service(self) -> None:
        """Let go of files that another process is waiting to write to."""
        for item in list(self._items.values()):
            if not self.sys.leased(item.source):
                self._let_go(item)

    def drop(self) -> None:
        """Let go of everything."""
        self._rows.clear()
        self._ready.clear()
        for item in list(self._items.values()):
            self._let_go(item)

    @property
    def holds(self) -> bool:
        """Whether any file is kept from writers."""
        return bool(self._items)

    @property
    def directories(self) -> set[int]:
        """The numbers of those that must stay open."""
        return {place.row.directory for item in self._items.values() for place in item.places}

    def _untouched(self, item: Item) -> bool:
        try:
            return self.sys.fstat(item.source).st_ctime_ns == item.status.st_ctime_ns
        except OSError:
            return False

    def _open_next(self) -> None:
        self.listen()
        if not self._rows:
            return
        row = self._rows.popleft()
        if row.size > SMALL:
            return
        try:
            item = self.admit(row)
        except (SkipError, MovedError, UnsupportedError, OSError):
            return  # why is told when it is its turn
        if not item.leased:  # what is written to it later would not be heard of
            item.close(self.sys)
            self._rows.clear()  # no leases here
            return
        self._items[row.number] = item
        if fits(item):
            self._ready.append(item)

    def _let_go(self, item: Item) -> None:
        del self._items[item.places[0].row.number]
        item.close(self.sys)
