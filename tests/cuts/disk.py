"""The disk of the model: inodes and directories, changed by effects.

An effect is the smallest change that survives a power cut either whole or not at all.
"""

from __future__ import annotations

import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

PAGE = 4096
ZERO = bytes(PAGE)
ROOT = 1
"""Identity and number of the root directory."""


@dataclass(slots=True)
class Inode:
    """One file or directory. Times are nanoseconds; a missing page is a hole."""

    number: int
    mode: int
    uid: int = 0
    gid: int = 0
    size: int = 0
    atime: int = 0
    mtime: int = 0
    ctime: int = 0
    flags: int = 0
    """Inode flags (FS_*_FL)."""
    project: int = 0
    xattrs: dict[str, bytes] = field(default_factory=dict)
    pages: dict[int, bytes] = field(default_factory=dict)
    names: dict[bytes, int] = field(default_factory=dict)
    """For a directory: identities by name."""

    def copy(self) -> Inode:
        """Return an independent copy."""
        return Inode(
            self.number, self.mode, self.uid, self.gid, self.size, self.atime, self.mtime,
            self.ctime, self.flags, self.project, self.xattrs.copy(), self.pages.copy(),
            self.names.copy(),
        )  # fmt: skip

    @property
    def is_directory(self) -> bool:
        """Return whether this is a directory."""
        return stat.S_ISDIR(self.mode)

    def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes of the content, fewer at the end of the file."""
        end = min(self.size, offset + length)
        if end <= offset:
            return b""
        first, last = offset // PAGE, -(-end // PAGE)
        found = b"".join([self.pages.get(at, ZERO) for at in range(first, last)])
        return found[offset - first * PAGE : end - first * PAGE]

    @property
    def content(self) -> bytes:
        """Return the whole content."""
        return self.read(0, self.size)


class NewInode(NamedTuple):
    """Effect: an inode is created; it comes with its first name."""

    directory: int
    identity: int
    inode: Inode


class Names(NamedTuple):
    """Effect: names of one directory change at once; each gets an identity or is removed (None)."""

    directory: int
    names: tuple[tuple[bytes, int | None], ...]


class Attributes(NamedTuple):
    """Effect: attributes of an inode change, by the names of its fields."""

    identity: int
    values: tuple[tuple[str, int], ...]


class Xattr(NamedTuple):
    """One extended attribute, removed with None."""

    identity: int
    name: str
    value: bytes | None


class Trim(NamedTuple):
    """A file cut off at this size."""

    identity: int
    size: int


class Page(NamedTuple):
    """One page of data, which is no metadata: it survives on its own."""

    identity: int
    number: int
    data: bytes


Effect = NewInode | Names | Attributes | Xattr | Trim
"""A change of metadata."""


@dataclass(slots=True)
class Disk:
    """Inodes by identity: inode numbers are reused, identities are not."""

    inodes: dict[int, Inode]
    links: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    """Number of names of each identity."""

    @classmethod
    def empty(cls, now: int) -> Disk:
        """Return a disk with only a root directory; ``now`` in nanoseconds."""
        root = Inode(ROOT, stat.S_IFDIR | 0o755, atime=now, mtime=now, ctime=now)
        return cls({ROOT: root}, defaultdict(int, {ROOT: 2}))

    def copy(self) -> Disk:
        """Return an independent copy."""
        inodes = {identity: inode.copy() for identity, inode in self.inodes.items()}
        return Disk(inodes, self.links.copy())

    def apply(self, effect: Effect | Page) -> None:
        """Apply a change; ignored if a crash has removed what it would change."""
        match effect:
            case Names(directory, names):
                if directory in self.inodes:
                    self._name(self.inodes[directory].names, names)
            case NewInode(_, identity, inode):
                self.inodes[identity] = inode.copy()
            case Page(identity, number, data):
                if identity in self.inodes:
                    self.inodes[identity].pages[number] = data
            case _:
                if effect.identity in self.inodes:
                    _change(self.inodes[effect.identity], effect)

    def _name(self, names: dict[bytes, int], changes: tuple[tuple[bytes, int | None], ...]) -> None:
        for name, identity in changes:
            before = names.pop(name, None)
            if before is not None:
                self.links[before] -= 1
            if identity is not None and identity in self.inodes:
                names[name] = identity
                self.links[identity] += 1

    def tidy(self) -> bool:
        """Remove inodes without a name, as after a crash; False if two inodes share one number."""
        for identity in [i for i in self.inodes if i != ROOT and not self.links[i]]:
            del self.inodes[identity]
        numbers = {inode.number for inode in self.inodes.values()}
        return len(numbers) == len(self.inodes)

    def walk(self, directory: int = ROOT, path: bytes = b"") -> Iterator[tuple[bytes, int]]:
        """Yield path and identity of every name, directories before their contents."""
        for name, identity in sorted(self.inodes[directory].names.items()):
            below = path + name
            yield below, identity
            if self.inodes[identity].is_directory:
                yield from self.walk(identity, below + b"/")

    def find(self, path: bytes) -> int | None:
        """Return the identity at a path, or None."""
        found: int | None = ROOT
        for name in path.split(b"/"):
            found = None if found is None else self.inodes[found].names.get(name)
        return found


def _change(inode: Inode, effect: Attributes | Xattr | Trim) -> None:
    match effect:
        case Attributes(_, values):
            for name, value in values:
                setattr(inode, name, value)
        case Xattr(_, name, value) if value is not None:
            inode.xattrs[name] = value
        case Xattr(_, name, _):
            inode.xattrs.pop(name, None)
        case Trim(_, size):
            _cut_off(inode, size)


def _cut_off(inode: Inode, size: int) -> None:
    inode.size = size
    for index in [index for index in inode.pages if index * PAGE >= size]:
        del inode.pages[index]
    rest = size % PAGE
    if rest and size // PAGE in inode.pages:
        inode.pages[size // PAGE] = inode.pages[size // PAGE][:rest].ljust(PAGE, b"\0")


@dataclass(slots=True)
class Tree:
    """Builds the contents of a disk before a job; paths are relative to the root."""

    disk: Disk
    now: int
    """Time of the oldest file, nanoseconds; each later one is younger."""
    _last: int = ROOT

    def directory(self, path: bytes, **attributes: int) -> int:
        """Add a directory; returns its identity."""
        made = Inode(0, stat.S_IFDIR | 0o755)
        identity = self._add(path, made, attributes)
        self.disk.links[identity] += 1
        return identity

    def file(
        self,
        path: bytes,
        content: bytes = b"",
        holes: tuple[int, ...] = (),
        xattrs: Mapping[str, bytes] | None = None,
        **attributes: int,
    ) -> int:
        """Add a file; ``holes`` are pages that are not allocated. Returns its identity."""
        made = Inode(0, stat.S_IFREG | attributes.pop("mode", 0o644), size=len(content))
        for index in range(-(-len(content) // PAGE)):
            if index not in holes:
                page = content[index * PAGE : (index + 1) * PAGE]
                made.pages[index] = page.ljust(PAGE, b"\0")
        made.xattrs = dict(xattrs or {})
        return self._add(path, made, attributes)

    def link(self, path: bytes, other: bytes) -> None:
        """Give a file a second name."""
        identity = self.disk.find(path)
        self._name(other, identity)

    def _add(self, path: bytes, made: Inode, attributes: Mapping[str, int]) -> int:
        self._last += 1
        self.now += 1_000_001_003
        times = {"atime": self.now + 7, "mtime": self.now, "ctime": self.now + 9}
        for name, value in {"number": self._last, **times, **attributes}.items():
            setattr(made, name, value)
        self.disk.inodes[self._last] = made
        self._name(path, self._last)
        return self._last

    def _name(self, path: bytes, identity: int | None) -> None:
        above, _, name = path.rpartition(b"/")
        directory = self.disk.find(above) if above else ROOT
        assert directory is not None
        self.disk.apply(Names(directory, ((name, identity),)))
