"""What a walk adds up to: files, bytes, ages, what will be skipped, and a fair sample of files.

And which directories are worth moving: those that hold most of what is old. What was written
before the newest vdev was there lies on the others; what came later is spread already. All in
bounded memory.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
from zconsole.rebalance.planning.walk import Portion, Walk


@dataclass(slots=True)
class Reservoir:
    """Every file offered is in it with the same chance, size / files.

    Each takes the place of another with the chance that it would have among all up to it
    (Knuth, The Art of Computer Programming, 3.4.2, algorithm R).
    """

    size: int
    _chance: Random = field(default_factory=lambda: Random(1))
    files: list[os.stat_result] = field(default_factory=list)
    _offered: int = 0

    def offer(self, files: Sequence[os.stat_result]) -> None:
        """Take some of these files, perhaps in the place of earlier ones."""
        draw = self._chance.random  # for every file: a third of the time of ``randrange``
        for offered, file in enumerate(files, self._offered + 1):
            if offered <= self.size:
                self.files.append(file)
            elif (place := int(draw() * offered)) < self.size:
                self.files[place] = file
        self._offered += len(files)

    def inodes(self, most: int) -> list[int]:
        """Inode numbers of some of the files taken: up to ``most`` blocks, and one file more."""
        found: list[int] = []
        for file in self._chance.sample(self.files, len(self.files)):
            if most <= 0:
                break
            most -= max(1, file.st_size // (file.st_blksize or 1))
            found.append(file.st_ino)
        return found


MOST = 8
"""Directories that are named."""


class Held(NamedTuple):
    """What a directory and all below it hold."""

    files: int = 0
    bytes: int = 0
    """Lengths; a file of several names counts once where all of them are in here."""
    old_bytes: int = 0
    """Of which in files older than the newest vdev."""

    def plus(self, portion: Portion, addition: float | None) -> Held:
        """With some more files; ``addition`` is when the newest vdev was added (epoch seconds)."""
        sizes = [status.st_size // (status.st_nlink or 1) for _, status in portion.files]
        old = 0
        if addition is not None:
            files = zip(sizes, portion.files, strict=True)
            old = sum(size for size, (_, status) in files if status.st_ctime < addition)
        return Held(self.files + len(sizes), self.bytes + sum(sizes), self.old_bytes + old)


@dataclass(slots=True)
class Ranking:
    """Adds up a walk by the directories in its root, one after another, and keeps the best."""

    _root: int = 0
    _current: DirectoryRow | None = None
    _held: Held = field(default_factory=Held)
    """What is in the current one so far."""
    _best: list[tuple[bytes, Held]] = field(default_factory=list)

    def add(self, portion: Portion, addition: float | None) -> None:
        """Take in a portion; they come depth first, so that a directory is whole before the next.

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
            self._held = self._held.plus(portion, addition)

    def note(self, name: bytes, held: Held) -> None:
        """Take in a directory that is whole."""
        self._best.append((name, held))
        self._best.sort(key=lambda x: (x[1].old_bytes, x[1].bytes), reverse=True)
        del self._best[MOST:]

    def best(self, known: bool) -> Iterator[PlannedPart]:
        """Those worth most, first; none where there is nothing to choose from.

        ``known``: whether there is a moment that tells old from new.
        """
        self._close()
        for name, (files, size, old) in self._best if len(self._best) > 1 else ():
            yield PlannedPart(os.fsdecode(name), files, size, old if known else None)

    def _close(self) -> None:
        if self._current is not None:
            self.note(self._current.name, self._held)
        self._current, self._held = None, Held()


SAMPLES = 300
"""Files a plan opens to see what lstat does not show."""


@dataclass(frozen=True, slots=True)
class Ages:
    """Moments (epoch seconds) that split files into older and newer; None: does not matter.

    A file's age is its ctime: the last moment at which any of its blocks may have been written.
    """

    snapshot: float | None = None
    clone: float | None = None
    addition: float | None = None
    bookmark: float | None = None
    """Of the newest bookmark, where no snapshot is newer."""


@dataclass(slots=True)
class TooLarge:
    """Files that a copy has no room for: their names, lengths, and what their blocks take."""

    files: int = 0
    bytes: int = 0
    allocated: int = 0
    old_allocated: int = 0
    """Of which in files older than the newest vdev."""

    def add(self, files: int, size: int, allocated: int, old: bool) -> None:
        """Take in one inode of so many names."""
        self.files += files
        self.bytes += size
        self.allocated += allocated
        self.old_allocated += allocated if old else 0


@dataclass(slots=True)
class Survey:
    """One directory tree. Bytes are lengths; ``allocated`` is what the blocks take (st_blocks)."""

    root: bytes
    ages: Ages
    room: int
    """Free bytes above the floor: a copy of a larger file does not fit."""
    special: float = 0.0
    """Files of up to this many bytes belong on special vdevs."""
    floor: tuple[int, float] = (0, 0.0)
    """Free bytes that are not for the job, and what a share to keep free is a share of."""
    files: int = 0
    bytes: int = 0
    allocated: int = 0
    largest: int = 0
    """Allocated bytes of the largest file that there is room for."""
    snapshot_allocated: int = 0
    """Allocated bytes of files that the newest snapshot has as well."""
    clone_allocated: int = 0
    too_large: TooLarge = field(default_factory=TooLarge)
    old_allocated: int = 0
    """Allocated bytes of files older than the newest vdev."""
    snapshot_bytes: int = 0
    bookmark_bytes: int = 0
    """Of files that are newer than the newest snapshot, but older than the newest bookmark."""
    special_allocated: int = 0
    """Allocated bytes of files that belong on special vdevs."""
    skipped: Counter[str] = field(default_factory=Counter)
    sampled: Counter[str] = field(default_factory=Counter)
    sample: Reservoir = field(default_factory=lambda: Reservoir(SAMPLES))
    """Files whose blocks stand for those of all."""
    below: Ranking = field(default_factory=Ranking)
    """Which directories in the root are worth most."""

    def add(self, portion: Portion) -> None:
        """Take in some files; links of one inode count once each until ``settle_links``."""
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
        """Add up files in few passes: a walk is to cost little more than ``find``."""
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
        """Note the largest file that there is room for, and those that there is none for."""
        largest = 512 * max([s.st_blocks for s in statuses], default=0)
        if largest <= self.room:
            self.largest = max(self.largest, largest)
            return
        for status in statuses:
            allocated = status.st_blocks * 512
            if allocated <= self.room:
                self.largest = max(self.largest, allocated)
            elif status.st_nlink == 1:
                old = self._is_old(status.st_ctime)
                self.too_large.add(1, status.st_size, allocated, old)

    def _is_old(self, age: float) -> bool:
        return self.ages.addition is not None and age < self.ages.addition

    def count_once(self, link: Link) -> None:
        """Take out what an inode of several names was counted for too often."""
        allocated = _allocated([link])
        if link.whole:
            self.bytes -= link.st_size * link.again
        if link.together and allocated > self.room:
            old = self._is_old(link.st_ctime)
            self.too_large.add(link.again + 1, link.st_size, allocated, old)
        self._count([link], -link.again)


def _allocated(files: Sequence[os.stat_result | Link]) -> int:
    """Bytes of the blocks of some files."""
    return 512 * sum([file.st_blocks for file in files])


def _older(
    files: Sequence[os.stat_result | Link], moment: float | None
) -> Sequence[os.stat_result | Link]:
    """Those that were written last before a moment; none where there is no such moment."""
    return [] if moment is None else [file for file in files if file.st_ctime < moment]


class Link(NamedTuple):
    """An inode of several names, as one root has it."""

    root: int
    st_size: int
    st_blocks: int
    st_ctime: float
    again: int
    """How many of its names count for nothing: all but one, in the last root that has one."""
    whole: bool
    """Whether all its names are in the set."""
    together: bool
    """Whether they are, in one root."""


Split = tuple[int, int, int]
"""Inodes that have names outside the set too: a root, their names in it, and the bytes."""


@dataclass(slots=True)
class Links:
    """Names of inodes that have several, kept in a temporary file of SQLite's."""

    _db: sqlite3.Connection = field(default_factory=lambda: sqlite3.connect(""))

    def __post_init__(self) -> None:
        self._db.execute(
            "CREATE TABLE links"
            " (root INT, dev INT, ino INT, nlink INT, size INT, blocks INT, ctime REAL)"
        )

    def add(self, root: int, portion: Portion) -> None:
        """Note the files of a portion that have more than one name."""
        dev = portion.directory.dev
        rows = [
            (root, dev, s.st_ino, s.st_nlink, s.st_size, s.st_blocks, s.st_ctime)
            for _, s in portion.files
            if s.st_nlink > 1
        ]
        if rows:
            self._db.executemany("INSERT INTO links VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def settle(self, surveys: Sequence[Survey]) -> None:
        """Count the bytes of an inode once, however many names it has."""
        sql = (
            "WITH whole AS (SELECT dev, ino, max(root) AS last, count(*) = max(nlink) AS whole,"
            " count(*) = max(nlink) AND min(root) = max(root) AS together"
            " FROM links GROUP BY dev, ino)"
            " SELECT root, size, blocks, ctime, count(*) - (root = last), whole, together"
            " FROM links JOIN whole USING (dev, ino) GROUP BY root, dev, ino"
        )
        for link in map(Link._make, self._db.execute(sql)):
            surveys[link.root].count_once(link)

    def split(self) -> list[Split]:
        """Inodes with names outside the set."""
        sql = (
            "WITH split AS (SELECT dev, ino FROM links GROUP BY dev, ino"
            " HAVING count(*) != max(nlink))"
            " SELECT root, count(*), sum(size) FROM links JOIN split USING (dev, ino) GROUP BY root"
        )
        return list(self._db.execute(sql))

    def close(self) -> None:
        """Delete the temporary file."""
        self._db.close()


Sink = Callable[[Portion, Ages], None]
"""Given every portion walked, and the ages that count for its files."""


def survey(sys: Sys, surveys: Sequence[Survey], sink: Sink | None = None) -> list[Split]:
    """Walk the roots once; every portion also goes to ``sink``.

    Returns the inodes that have names outside the roots. Raises OSError for a root.
    """
    raise_limit()
    with closing(Links()) as links:
        numbers = 0
        for index, found in enumerate(surveys):
            walk = Walk(sys, [found.root], numbers)
            for portion in walk:
                found.add(portion)
                links.add(index, portion)
                _sample(sys, found, portion)
                if sink is not None:
                    sink(portion, found.ages)
            numbers = walk.number
        links.settle(surveys)
        return links.split()


def _sample(sys: Sys, found: Survey, portion: Portion) -> None:
    """Open one file of a portion, to see flags and writers."""
    if not portion.files or found.sampled["opened"] >= SAMPLES:
        return
    name, _ = portion.files[len(portion.files) // 2]
    try:
        fd = sys.open(name, SOURCE | os.O_NOATIME, dir_fd=portion.fd)
    except OSError as error:
        leased = "leased by another process" if error.errno == errno.EAGAIN else None
        found.sampled[leased or error.strerror or "unreadable"] += 1
        return
    try:
        found.sampled["opened"] += 1
        meta, _ = metadata.read(sys, fd, Abilities())
        if meta.flags & metadata.IMMUTABLE:
            found.sampled["immutable or append-only"] += 1
        take_lease(sys, fd, accept_races=False)
    except OSError as error:
        found.sampled[error.strerror or "unreadable"] += 1
    except (SkipError, UnsupportedError) as error:
        found.sampled[str(error)] += 1
    finally:
        sys.close(fd)
