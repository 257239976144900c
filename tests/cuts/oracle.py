"""Conditions that must hold after a crash, after recovery, and at the end of the resumed job."""

from __future__ import annotations

import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from tests.cuts.disk import ROOT, Disk
from tests.cuts.others import MODE
from tests.cuts.timeline import Noted
from zconsole.rebalance.engine.item import TEMP_PREFIX
from zconsole.rebalance.engine.journal import State

OF_NAMES = ("named", "replacing", "replaced", "rewritten")
"""Actions of others on a single name; all other actions are on an inode."""
DONE = ("written", "replaced")
FOREIGN_PREFIX = b".zc-0123456789abcdef"
"""Prefix of names like the engine's own that a workload has from the start."""


class FileFacts(NamedTuple):
    """All facts of a file that must survive a move to a new inode; times are nanoseconds."""

    content: bytes
    mode: int
    uid: int
    gid: int
    mtime: int
    atime: int
    flags: int
    project: int
    xattrs: tuple[tuple[str, bytes], ...]


class FolderFacts(NamedTuple):
    """All facts of a directory that must survive; times are nanoseconds."""

    mode: int
    uid: int
    gid: int
    mtime: int
    xattrs: tuple[tuple[str, bytes], ...]


@dataclass
class Seen:
    """The contents of a disk, by path."""

    files: dict[bytes, FileFacts]
    folders: dict[bytes, FolderFacts]
    numbers: dict[bytes, int]
    """Inode numbers of files."""
    links: dict[bytes, int]
    """Number of names of each file's inode."""

    @cached_property
    def groups(self) -> set[frozenset[bytes]]:
        """Return the sets of names that share one file, without temporary names."""
        found = defaultdict(set)
        for path, number in self.numbers.items():
            if not is_temporary(path):
                found[number].add(path)
        return set(map(frozenset, found.values()))

    def group(self, path: bytes) -> frozenset[bytes]:
        """Return all names of the file at a path."""
        return next((group for group in self.groups if path in group), frozenset())


def seen(disk: Disk) -> Seen:
    """Return the contents of a disk."""
    found = Seen({}, {b"": _folder(disk, ROOT)}, {}, {})
    for path, identity in disk.walk():
        inode = disk.inodes[identity]
        if inode.is_directory:
            found.folders[path] = _folder(disk, identity)
            continue
        found.numbers[path] = inode.number
        found.links[path] = disk.links[identity]
        found.files[path] = FileFacts(
            inode.content, inode.mode, inode.uid, inode.gid, inode.mtime, inode.atime, inode.flags,
            inode.project, tuple(sorted(inode.xattrs.items())),
        )  # fmt: skip
    return found


def _folder(disk: Disk, identity: int) -> FolderFacts:
    inode = disk.inodes[identity]
    xattrs = tuple(sorted(inode.xattrs.items()))
    return FolderFacts(inode.mode, inode.uid, inode.gid, inode.mtime, xattrs)


def is_temporary(path: bytes) -> bool:
    """Return whether the engine created this name."""
    name = path.rpartition(b"/")[2]
    return name.startswith(TEMP_PREFIX) and not name.startswith(FOREIGN_PREFIX)


@dataclass
class Wanted:
    """The contents before a workload, and the changes that others made since."""

    before: Seen
    notes: Sequence[Noted] = ()
    steps: Sequence[Mapping[bytes, bytes]] = ()
    """Content by path after each step of others; the first entry is before any step."""
    power: bool = True
    """Whether unsynced data may be lost."""
    errors: bool = False
    """Whether a call has failed: then files may be in state failed until the job is resumed."""
    unwatched: bool = False
    """Whether changes of directories went unnoticed: then they may keep their new times."""

    def _about(self, path: bytes) -> Iterator[Noted]:
        """Yield what others did to a file by any of its names, or to this name alone."""
        group = self.before.group(path)
        for note in self.notes:
            if note.path == path or (note.path in group and note.what not in OF_NAMES):
                yield note

    def contents(self, path: bytes) -> set[bytes]:
        """Return the contents that a file may have; one of them exists unless it was removed."""
        found = {self.before.files[path].content}
        for note in self._about(path):
            if note.what == "writing":
                found |= _written({*found, b""}, note.content)
            elif note.what == "replacing":
                found.add(note.content)
            elif note.what in ("synced", "rewritten") or (note.what in DONE and not self.power):
                found = {note.content}
        return found

    def modes(self, path: bytes) -> set[int]:
        """Return the permissions that a file may have; a new file has its own."""
        found, new = {self.before.files[path].mode}, stat.S_IFREG | MODE
        for note in self._about(path):
            if note.what == "changing mode":
                found.add(new)
            elif note.what == "mode" and not self.power:
                found = {new}
        return found

    @cached_property
    def touched(self) -> set[bytes]:
        """Return all names of files that others changed."""
        named = {note.path for note in self.notes}
        return named.union(*(group for group in self.before.groups if group & named))

    @cached_property
    def folders_touched(self) -> set[bytes]:
        """Return directories in which others changed names."""
        return {note.path.rpartition(b"/")[0] for note in self.notes if note.what == "named"}


def _written(before: set[bytes], after: bytes) -> set[bytes]:
    """Return what an unsynced write may leave: new data with the old size, or the reverse."""
    sizes = {old.ljust(len(after), b"\0") for old in before}
    return {after} | sizes | {after[: len(old)] for old in before}


Problems = Iterator[str]


Rows = Sequence[Mapping[str, Any]]
"""The files of a journal (``kept_journal.rows_of``)."""


def at_crash(found: Seen, rows: Rows, wanted: Wanted) -> Problems:
    """Yield what is wrong right after a crash, before recovery."""
    unsettled = (State.CREATING, State.SWAPPING, State.FAILED)
    yield from _whole(found, wanted, rows, unsettled)
    yield from _known(found, rows, unsettled)
    yield from _moved(found, rows, wanted)
    # A file that others put at a name just before an exchange waits under the temporary name.
    waiting = {row["path"]: _beside(row) for row in rows if row["state"] == State.SWAPPING}
    yield from _followed(found, wanted, waiting)


def recovered(found: Seen, rows: Rows, wanted: Wanted) -> Problems:
    """Yield what is wrong after recovery."""
    yield from _whole(found, wanted, rows, (State.FAILED,))
    yield from _known(found, rows, (State.FAILED,))
    yield from _moved(found, rows, wanted)
    yield from _followed(found, wanted, {})
    yield from _linked(found, wanted)
    yield from _folders(found, wanted)
    for row in rows:
        if row["state"] in (State.CREATING, State.SWAPPING):
            yield f"{row['path']!r} is unfinished"
        failed = row["state"] == State.FAILED and not wanted.errors
        if failed and row["path"] not in wanted.touched:
            yield f"{row['path']!r} failed: {row['reason']}"


def finished(found: Seen, rows: Rows, wanted: Wanted) -> Problems:
    """Yield what is wrong at the end of a job that nobody disturbed."""
    yield from recovered(found, rows, wanted)
    for row in rows:
        if row["state"] != State.MOVED and row["path"] not in wanted.touched:
            yield f"{row['path']!r} did not move: {State(row['state']).name} {row['reason']}"


def _whole(found: Seen, wanted: Wanted, rows: Rows, states: Iterable[State]) -> Problems:
    """Check content and metadata of every name; files in these states have two versions."""
    kept = {row["path"]: _beside(row) for row in rows if row["state"] in states}
    for path, facts in wanted.before.files.items():
        if path in wanted.touched and wanted.steps:
            continue
        if path in wanted.touched:
            group = wanted.before.group(path)
            beside = [kept[each] for each in group if each in kept]
            if State.SWAPPING in states:  # a power cut may take back one of two exchanges
                beside += group
            yield from _kept_by(found, wanted, path, beside)
        elif path not in found.files:
            yield f"{path!r} is gone"
        elif found.files[path] != facts:
            yield f"{path!r} differs: {_difference(found.files[path], facts)}"


def _kept_by(found: Seen, wanted: Wanted, path: bytes, beside: Sequence[bytes]) -> Problems:
    """Check that changes by others survive, at the file's name or at its other versions'."""
    versions = [found.files[each] for each in (path, *beside) if each in found.files]
    if not any(version.content in wanted.contents(path) for version in versions):
        yield f"{path!r} has lost what was written to it"
    changed = not beside and any(note.what == "mode" for note in wanted.notes)
    if changed and versions and versions[0].mode not in wanted.modes(path):
        yield f"{path!r} has lost its new permissions: {versions[0].mode:o}"


def _beside(row: Mapping[str, Any]) -> bytes:
    """Return the path of the other version of a file."""
    above, slash, _ = row["path"].rpartition(b"/")
    return bytes(above + slash + (row["temp"] or b""))


def _difference(one: FileFacts | FolderFacts, other: FileFacts | FolderFacts) -> str:
    fields = one._fields
    differ = [name for name in fields if getattr(one, name) != getattr(other, name)]
    return ", ".join(
        f"{name} {str(getattr(one, name))[:60]} instead of {str(getattr(other, name))[:60]}"
        for name in differ
    )


def _known(found: Seen, rows: Rows, states: Iterable[State]) -> Problems:
    """Check that the journal knows every temporary name, and that nothing else is new."""
    known = {_beside(row) for row in rows if row["state"] in states and row["temp"]}
    known |= {name + b"o" for name in known}
    for path in found.files:
        if is_temporary(path) and path not in known:
            yield f"{path!r} is left, and the journal does not know it"


def _moved(found: Seen, rows: Rows, wanted: Wanted) -> Problems:
    """Check that files in state moved have their copy for good."""
    for row in rows:
        if row["state"] == State.MOVED and row["path"] not in wanted.touched:
            number = found.numbers.get(row["path"])
            if number != row["new"]:
                yield f"{row['path']!r} is called moved, and is inode {number}, not {row['new']}"


def _followed(found: Seen, wanted: Wanted, waiting: Mapping[bytes, bytes]) -> Problems:
    """Check that names are as others left them; after a power cut, as they were at some step.

    Where a file of theirs is ``waiting`` for its name, recovery gives the name back.
    """
    steps = wanted.steps if wanted.power else wanted.steps[-1:]
    for path in sorted(set().union(*wanted.steps)):
        possible = {step.get(path) for step in steps}
        have = found.files[path].content if path in found.files else None
        begun = wanted.power and have is not None and not have.strip(b"\0")
        beside = found.files.get(waiting.get(path, b""))
        handed_back = beside is not None and beside.content in possible
        if have not in possible and not handed_back and not (begun and possible - {None}):
            yield f"{path!r} has {have!r}, and others left it with {possible}"
    lasting = [set(step.values()) for step in steps]
    there = {facts.content for facts in found.files.values()}
    for content in set.intersection(*lasting) - there if lasting else ():
        yield f"{content!r} has no name"


def _linked(found: Seen, wanted: Wanted) -> Problems:
    """Check that links are intact: one file stays one, with no name lost or added."""
    groups = {group for group in wanted.before.groups if not group & wanted.touched}
    if lost := groups - found.groups:
        yield f"no longer one file: {[sorted(group) for group in lost]}"
    names = defaultdict[int, int](int)
    for number in found.numbers.values():
        names[number] += 1
    for path, number in found.numbers.items():
        if found.links[path] != names[number]:
            yield f"{path!r} has {found.links[path]} links and {names[number]} names"
    known = {*wanted.before.files, *wanted.touched}
    for path in found.files:
        if path not in known and not is_temporary(path):
            yield f"{path!r} is new"


def _folders(found: Seen, wanted: Wanted) -> Problems:
    """Check that directories are as they were."""
    for path, facts in wanted.before.folders.items():
        if path in wanted.folders_touched:
            continue
        have = found.folders[path]
        if wanted.unwatched and have.mtime > facts.mtime:
            have = have._replace(mtime=facts.mtime)
        if have != facts:
            yield f"directory {path!r} differs: {_difference(have, facts)}"
