"""Totals of a walk: files, bytes, ages, skipped names, and a random sample of files.

Also ranks the directories by their bytes in old files, which are most worth moving: blocks written
before the newest vdev was added lie on the others, while later ones are spread already. All in
bounded memory.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from zconsole.rebalance.engine import metadata
from zconsole.rebalance.engine.descriptors import raise_limit
from zconsole.rebalance.engine.directories import DirectoryRow
from zconsole.rebalance.engine.item import SkipError, UnsupportedError
from zconsole.rebalance.engine.leases import take_lease
from zconsole.rebalance.engine.metadata import Abilities
from zconsole.rebalance.engine.syscalls import SOURCE, Sys
from zconsole.rebalance.planning.plan_document import PlannedPart
from zconsole.rebalance.planning.settings import Floor
from zconsole.rebalance.planning.walk import Inode, Portion, Walk


@dataclass(slots=True)
class Reservoir:
    """Random sample in which every file offered is with the same probability.

    The n-th file replaces a random one with probability size / n (Knuth, The Art of Computer
    Programming, 3.4.2, algorithm R).
    """

    size: int
    _chance: Random = field(default_factory=lambda: Random(1))
    files: list[os.stat_result] = field(default_factory=list)
    _offered: int = 0

    def offer(self, files: Sequence[os.stat_result]) -> None:
        """Offer files to the sample, where they may replace earlier ones."""
        draw = self._chance.random  # once per file: takes a third of the time of ``randrange``
        for offered, file in enumerate(files, self._offered + 1):
            if offered <= self.size:
                self.files.append(file)
            elif (place := int(draw() * offered)) < self.size:
                self.files[place] = file
        self._offered += len(files)

    def inodes(self, most: int) -> list[int]:
        """Return inode numbers of random files until their blocks add up to ``most`` or more."""
        found: list[int] = []
        for file in self._chance.sample(self.files, len(self.files)):
            if most <= 0:
                break
            most -= max(1, file.st_size // (file.st_blksize or 1))
            found.append(file.st_ino)
        return found


MOST = 8
"""Most directories to rank."""


class TreeTotals(NamedTuple):
    """Totals of a directory tree."""

    files: int = 0
    bytes: int = 0
    """Sum of file lengths; a file counts once if all its names are in this tree."""
    old_bytes: int = 0
    """Bytes in files older than the newest vdev."""

    def with_portion(self, portion: Portion, addition: float | None) -> TreeTotals:
        """Return the totals with a portion added.

        ``addition`` is when the newest vdev was added (epoch seconds).
        """
        sizes = [status.st_size // (status.st_nlink or 1) for _, status in portion.files]
        old = 0
        if addition is not None:
            files = zip(sizes, portion.files, strict=True)
            old = sum(size for size, (_, status) in files if status.st_ctime < addition)
        return TreeTotals(self.files + len(sizes), self.bytes + sum(sizes), self.old_bytes + old)


@dataclass(slots=True)
class Ranking:
    """Totals of a walk for each subdirectory of its root; keeps the best."""

    _root: int = 0
    _current: DirectoryRow | None = None
    _held: TreeTotals = field(default_factory=TreeTotals)
    """Totals of the current subdirectory so far."""
    _best: list[tuple[bytes, TreeTotals]] = field(default_factory=list)

    def add(self, portion: Portion, addition: float | None) -> None:
        """Add a portion. The walk is depth first: one subdirectory ends before the next begins.

        ``addition`` is when the newest vdev was added (epoch seconds).
        """
        row = portion.directory
        if row.parent is None:
            self._root = row.number
            return
        if row.parent == self._root and (not self._current or self._current.number != row.number):
            self._close()
            self._current = row
        if self._current is not None:
            self._held = self._held.with_portion(portion, addition)

    def note(self, name: bytes, held: TreeTotals) -> None:
        """Add a complete subdirectory."""
        self._best.append((name, held))
        self._best.sort(key=lambda x: (x[1].old_bytes, x[1].bytes), reverse=True)
        del self._best[MOST:]

    def best(self, known: bool) -> Iterator[PlannedPart]:
        """Yield the subdirectories most worth moving, best first; nothing if there is only one.

        ``known``: whether the age that separates old files from new ones is known.
        """
        self._close()
        for name, (files, size, old) in self._best if len(self._best) > 1 else ():
            yield PlannedPart(os.fsdecode(name), files, size, old if known else None)

    def _close(self) -> None:
        if self._current is not None:
            self.note(self._current.name, self._held)
        self._current, self._held = None, TreeTotals()


SAMPLES = 300
"""Most files that a plan opens, to see what lstat does not show."""


@dataclass(frozen=True, slots=True)
class Ages:
    """Times (epoch seconds) that separate older files from newer ones; None: no such time.

    A file is compared by its ctime, the last time at which any of its blocks may have been written.
    """

    snapshot: float | None = None
    clone: float | None = None
    addition: float | None = None
    bookmark: float | None = None
    """Time of the newest bookmark, unless a snapshot is newer."""


@dataclass(slots=True)
class TooLarge:
    """Totals of files that are too large to copy: names, lengths, and bytes of their blocks."""

    files: int = 0
    bytes: int = 0
    allocated: int = 0
    old_allocated: int = 0
    """Allocated bytes of files older than the newest vdev."""


@dataclass(slots=True)
class Survey:
    """Totals of one tree. ``bytes`` are lengths, ``allocated`` the size of blocks (st_blocks)."""

    root: bytes
    ages: Ages
    room: int
    """Free bytes beyond what is kept free; a copy of a larger file does not fit."""
    special: float = 0.0
    """Size in bytes up to which files belong on special vdevs."""
    floor: Floor = field(default=Floor(0, 0.0))
    files: int = 0
    bytes: int = 0
    allocated: int = 0
    largest: int = 0
    """Allocated bytes of the largest file that can be copied."""
    snapshot_allocated: int = 0
    """Allocated bytes of files that are also in the newest snapshot."""
    clone_allocated: int = 0
    too_large: TooLarge = field(default_factory=TooLarge)
    old_allocated: int = 0
    """Allocated bytes of files older than the newest vdev."""
    snapshot_bytes: int = 0
    bookmark_bytes: int = 0
    """Bytes of files newer than the newest snapshot, but older than the newest bookmark."""
    special_allocated: int = 0
    """Allocated bytes of files that belong on special vdevs."""
    skipped: Counter[str] = field(default_factory=Counter)
    sampled: Counter[str] = field(default_factory=Counter)
    sample: Reservoir = field(default_factory=lambda: Reservoir(SAMPLES))
    """Sample whose blocks are taken to represent all."""
    below: Ranking = field(default_factory=Ranking)
    """Ranking of the root's subdirectories."""

    def add(self, portion: Portion) -> None:
        """Add a portion; hard links count separately until ``Links.settle``."""
        statuses = [status for _, status in portion.files]
        self.files += len(statuses)
        self.bytes += sum([status.st_size for status in statuses])
        self._count(statuses)
        self._measure(statuses)
        self.sample.offer(statuses)
        self.below.add(portion, self.ages.addition)
        for _, reason in portion.skipped:
            self.skipped[reason] += 1

    def _count(self, files: Sequence[os.stat_result | Link], times: int = 1) -> None:
        """Add files to the totals, in few passes: a walk should cost little more than ``find``."""
        ages = self.ages
        held = _older(files, ages.snapshot)
        self.allocated += times * _allocated(files)
        self.special_allocated += times * _allocated(
            [file for file in files if file.st_size <= self.special] if self.special else ()
        )
        self.snapshot_allocated += times * _allocated(held)
        self.snapshot_bytes += times * sum([file.st_size for file in held])
        marked = sum([file.st_size for file in _older(files, ages.bookmark)])
        if ages.bookmark is not None:
            self.bookmark_bytes += times * (marked - sum([file.st_size for file in held]))
        self.clone_allocated += times * _allocated(_older(files, ages.clone))
        self.old_allocated += times * _allocated(_older(files, ages.addition))

    def _measure(self, statuses: Sequence[os.stat_result]) -> None:
        """Note the largest file that can be copied, and those that are too large."""
        largest = 512 * max([s.st_blocks for s in statuses], default=0)
        if largest <= self.room:
            self.largest = max(self.largest, largest)
            return
        for status in statuses:
            if _allocated([status]) <= self.room:
                self.largest = max(self.largest, _allocated([status]))
            elif status.st_nlink == 1:
                self._leave_out(status, 1)

    def _leave_out(self, file: os.stat_result | Link, names: int) -> None:
        """Count an inode with so many names among those that are too large."""
        large = self.too_large
        large.files += names
        large.bytes += file.st_size
        large.allocated += _allocated([file])
        large.old_allocated += _allocated(_older([file], self.ages.addition))

    def count_once(self, link: Link) -> None:
        """Correct the totals for an inode that was counted once per name."""
        if link.whole:
            self.bytes -= link.st_size * link.again
        if link.together and _allocated([link]) > self.room:
            self._leave_out(link, link.again + 1)
        self._count([link], -link.again)


def _allocated(files: Sequence[os.stat_result | Link]) -> int:
    """Return the bytes of the files' blocks (st_blocks counts 512 bytes each)."""
    return 512 * sum([file.st_blocks for file in files])


def _older(
    files: Sequence[os.stat_result | Link], moment: float | None
) -> Sequence[os.stat_result | Link]:
    """Return the files last written before ``moment``; none if it is None."""
    return [] if moment is None else [file for file in files if file.st_ctime < moment]


class Link(NamedTuple):
    """An inode with several names, as seen from one root."""

    root: int
    st_size: int
    st_blocks: int
    st_ctime: float
    again: int
    """Names to discount here: all, but in the last root that has any, all but one."""
    whole: bool
    """Whether all its names are in the walked directories."""
    together: bool
    """Whether all its names are in one root."""


Split = tuple[int, int, int]
"""Index of a root, and the names and bytes in it of inodes with further names outside the set."""


@dataclass(slots=True)
class Links:
    """Names of inodes that have several, kept in a temporary SQLite database."""

    _db: sqlite3.Connection = field(default_factory=lambda: sqlite3.connect(""))

    def __post_init__(self) -> None:
        self._db.execute(
            "CREATE TABLE links"
            " (root INT, dev INT, ino INT, nlink INT, size INT, blocks INT, ctime REAL)"
        )

    def add(self, root: int, portion: Portion) -> None:
        """Record the files of a portion that have more than one name."""
        dev = portion.directory.dev
        rows = [
            (root, dev, s.st_ino, s.st_nlink, s.st_size, s.st_blocks, s.st_ctime)
            for _, s in portion.files
            if s.st_nlink > 1
        ]
        if rows:
            self._db.executemany("INSERT INTO links VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def settle(self, surveys: Sequence[Survey]) -> list[Split]:
        """Correct the surveys, so that each inode counts once however many names it has.

        Returns the inodes with names outside the walked directories, summed by root.
        """
        sql = (
            "WITH whole AS (SELECT dev, ino, max(root) AS last, count(*) = max(nlink) AS whole,"
            " count(*) = max(nlink) AND min(root) = max(root) AS together"
            " FROM links GROUP BY dev, ino)"
            " SELECT root, size, blocks, ctime, count(*) - (root = last), whole, together"
            " FROM links JOIN whole USING (dev, ino) GROUP BY root, dev, ino"
        )
        for link in map(Link._make, self._db.execute(sql)):
            surveys[link.root].count_once(link)
        sql = (
            "WITH split AS (SELECT dev, ino FROM links GROUP BY dev, ino"
            " HAVING count(*) != max(nlink))"
            " SELECT root, count(*), sum(size) FROM links JOIN split USING (dev, ino) GROUP BY root"
        )
        return list(self._db.execute(sql))

    def close(self) -> None:
        """Close the database, which deletes it."""
        self._db.close()


Sink = Callable[[Portion, Ages], None]
"""Called with every portion walked, and the ages that apply to its files."""


def survey(
    surveys: Sequence[Survey], sink: Sink | None = None, own: Set[Inode] = frozenset()
) -> list[Split]:
    """Walk the roots once, filling the surveys; every portion also goes to ``sink``.

    ``own`` are files and directories that are left out (`own_files`). Returns the inodes that have
    names outside the roots. Raises OSError if a root can't be read.
    """
    raise_limit()  # the walk keeps a descriptor open per level
    with closing(Links()) as links:
        numbers = 0
        for index, found in enumerate(surveys):
            walk = Walk(found.root, numbers, own)
            for portion in walk:
                found.add(portion)
                links.add(index, portion)
                _sample(found, portion)
                if sink is not None:
                    sink(portion, found.ages)
            numbers = walk.number
        return links.settle(surveys)


def _sample(found: Survey, portion: Portion) -> None:
    """Open one file of a portion, to check its flags and whether another process writes to it."""
    if not portion.files or found.sampled["opened"] >= SAMPLES:
        return
    # One file per portion spreads the sample over the directories.
    name, _ = portion.files[len(portion.files) // 2]
    try:
        fd = Sys.open(name, SOURCE | os.O_NOATIME, dir_fd=portion.fd)
    except OSError as error:
        leased = "leased by another process" if error.errno == errno.EAGAIN else None
        found.sampled[leased or error.strerror or "unreadable"] += 1
        return
    try:
        found.sampled["opened"] += 1
        meta, _ = metadata.read(Sys(), fd, Abilities())
        if meta.flags & metadata.IMMUTABLE:
            found.sampled["immutable or append-only"] += 1
        take_lease(Sys(), fd, accept_races=False)
    except OSError as error:
        found.sampled[error.strerror or "unreadable"] += 1
    except (SkipError, UnsupportedError) as error:
        found.sampled[str(error)] += 1
    finally:
        Sys.close(fd)
