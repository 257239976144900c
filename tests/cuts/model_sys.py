"""The engines' system calls on the model: state in memory, and all changes on a timeline."""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tests.cuts.descriptors import Descriptors, Status, refuse
from tests.cuts.disk import (
    PAGE,
    ROOT,
    ZERO,
    Attributes,
    Disk,
    Effect,
    Inode,
    Names,
    NewInode,
    Page,
    Trim,
    Xattr,
)
from tests.cuts.timeline import Change, FileSynced, Synced, Timeline
from zconsole.rebalance.engine import syscalls
from zconsole.rebalance.engine.syscalls import Sys

TICK = 4_000_000
"""Nanoseconds between kernel ticks; file times are rounded down to these."""
A_CALL = 0.000_02
"""Seconds that each call takes."""
DEFAULT_ACL, ACL = "system.posix_acl_default", "system.posix_acl_access"
CAPABILITY = "security.capability"
_FSX = struct.Struct("=5I8x")


@dataclass(slots=True)
class Clock:
    """The clock of a machine, epoch seconds; calls and sleeps advance it."""

    now: float
    booted: float = 0.0

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += seconds

    @property
    def tick(self) -> int:
        """Return the time stamp of a change, nanoseconds."""
        return int(self.now * 1e9) // TICK * TICK


@dataclass
class ModelSys(Sys):
    """One process on the model. ``before`` is called ahead of every call, and may raise."""

    disk: Disk
    timeline: Timeline
    clock: Clock
    before: Callable[[ModelSys, str], None] = lambda _sys, _call: None
    reuse: bool = True
    """Whether the number of a removed inode is reused first."""
    alarm: Callable[[], None] = lambda: None
    """Called when another process waits for a lease to end."""
    names: list[str] = field(default_factory=list)
    """Names of the calls so far."""
    spoiled: int = 0
    """Number of the call that writes other data than it was given."""
    open_files: Descriptors = field(default_factory=Descriptors)

    @property
    def calls(self) -> int:
        """Return the number of calls so far."""
        return len(self.names)

    def _enter(self, call: str) -> None:
        self.names.append(call)
        self.clock.now += A_CALL
        self.before(self, call)

    def _do(self, call: str, *effects: Effect, pages: tuple[Page, ...] = ()) -> None:
        for effect in (*effects, *pages):
            self.disk.apply(effect)
        self.timeline.events.append(Change(call, effects, pages))

    def _inode(self, fd: int) -> Inode:
        return self.disk.inodes[self._at(fd)]

    def _lookup(self, directory: int, name: bytes) -> int:
        names = self._inode(directory).names
        if name not in names:
            refuse(errno.ENOENT)
        return names[name]

    def _touched(self, identity: int, **also: int) -> Attributes:
        """Return the change of an inode's attributes, with the current time as ctime."""
        return Attributes(identity, (*also.items(), ("ctime", self.clock.tick)))

    def _at(self, fd: int) -> int:
        return self.open_files.of(fd).identity

    def _names(self, directory: int, *names: tuple[bytes, int | None]) -> tuple[Effect, Effect]:
        tick = self.clock.tick
        return Names(directory, names), Attributes(directory, (("mtime", tick), ("ctime", tick)))

    # Opening and looking.

    def open(self, path: bytes, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:  # type: ignore[override]
        self._enter("open")
        identity = ROOT if dir_fd is None else self._lookup(dir_fd, path)
        if flags & os.O_DIRECTORY and not self.disk.inodes[identity].is_directory:
            refuse(errno.ENOTDIR)
        return self.open_files.add(identity, flags)

    def reopen(self, fd: int, flags: int) -> int:
        self._enter("reopen")
        return self.open_files.add(self._at(fd), flags)

    def close(self, fd: int) -> None:
        self._enter("close")
        self.open_files.close(fd)

    def _status(self, identity: int) -> Any:
        inode = self.disk.inodes[identity]
        return Status(
            inode.mode, inode.number, self.disk.links[identity], inode.uid, inode.gid, inode.size,
            inode.atime, inode.mtime, inode.ctime, len(inode.pages) * PAGE // 512,
        )  # fmt: skip

    def fstat(self, fd: int) -> Any:
        self._enter("fstat")
        return self._status(self._at(fd))

    def handle(self, fd: int) -> bytes:
        self._enter("handle")
        # Unlike an inode number, a handle never names another file later.
        return b"%d" % self._at(fd)

    def lstat(self, directory: int, name: bytes) -> Any:
        self._enter("lstat")
        return self._status(self._lookup(directory, name))

    def name_of(self, directory: int, inode: int, but: Container[bytes] = ()) -> bytes | None:
        self._enter("name_of")
        names = self._inode(directory).names.items()
        found = (name for name, each in names if self.disk.inodes[each].number == inode)
        return next((name for name in found if name not in but), None)

    # Content.

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        self._enter("pread")
        return self._inode(fd).read(offset, length)

    def read_into(self, fd: int, buffer: memoryview, offset: int) -> int:
        self._enter("read_into")
        data = self._inode(fd).read(offset, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:  # type: ignore[override]
        self._enter("pwrite")
        content = bytes(data)
        if self.calls == self.spoiled and content:
            content = content[:-1] + bytes([content[-1] ^ 1])
        self.write(self._at(fd), content, offset)
        return len(data)

    def write(self, identity: int, data: bytes, offset: int) -> None:
        """Write data, as any process may."""
        inode, pages, end = self.disk.inodes[identity], [], offset + len(data)
        for index in range(offset // PAGE, -(-end // PAGE)):
            old, start = inode.pages.get(index, ZERO), index * PAGE
            first, last = max(offset, start), min(end, start + PAGE)
            new = old[: first - start] + data[first - offset : last - offset] + old[last - start :]
            pages.append(Page(identity, index, new))
        times = self._touched(identity, size=max(inode.size, end), mtime=self.clock.tick)
        self._do("pwrite", times, *self._without_capability(identity), pages=tuple(pages))

    def _without_capability(self, identity: int) -> list[Effect]:
        """Return the loss of capabilities, which the kernel removes on a write or chown."""
        has = CAPABILITY in self.disk.inodes[identity].xattrs
        return [Xattr(identity, CAPABILITY, None)] if has else []

    def ftruncate(self, fd: int, size: int) -> None:
        self._enter("ftruncate")
        identity = self._at(fd)
        times = self._touched(identity, mtime=self.clock.tick)
        self._do("ftruncate", Trim(identity, size), times, *self._without_capability(identity))

    def fadvise(self, fd: int, offset: int, length: int, advice: int) -> None:
        self._enter("fadvise")

    # Metadata.

    def fchown(self, fd: int, uid: int, gid: int) -> None:
        self._enter("fchown")
        identity, inode = self._at(fd), self._inode(fd)
        # The kernel clears these bits when the owner changes (chown(2)).
        mode = inode.mode & ~(stat.S_ISUID | stat.S_ISGID)
        changed = self._touched(identity, uid=uid, gid=gid, mode=mode)
        self._do("fchown", changed, *self._without_capability(identity))

    def fchmod(self, fd: int, mode: int) -> None:
        self._enter("fchmod")
        kind = stat.S_IFMT(self._inode(fd).mode)
        self._do("fchmod", self._touched(self._at(fd), mode=kind | mode))

    def set_mode(self, identity: int, mode: int) -> None:
        """Change permissions, as any process may."""
        self._do("fchmod", self._touched(identity, mode=stat.S_IFREG | mode))

    def set_times(self, fd: int, atime_ns: int, mtime_ns: int) -> None:
        self._enter("set_times")
        identity = self._at(fd)
        self._do("set_times", self._touched(identity, atime=atime_ns, mtime=mtime_ns))

    def listxattr(self, fd: int) -> list[str]:  # type: ignore[override]
        self._enter("listxattr")
        return sorted(self._inode(fd).xattrs)

    def getxattr(self, fd: int, name: str) -> bytes:
        self._enter("getxattr")
        if name not in self._inode(fd).xattrs:
            refuse(errno.ENODATA)
        return self._inode(fd).xattrs[name]

    def setxattr(self, fd: int, name: str, value: bytes) -> None:
        self._enter("setxattr")
        identity = self._at(fd)
        self._do("setxattr", Xattr(identity, name, value), self._touched(identity))

    def removexattr(self, fd: int, name: str) -> None:
        self._enter("removexattr")
        if name not in self._inode(fd).xattrs:
            refuse(errno.ENODATA)
        identity = self._at(fd)
        self._do("removexattr", Xattr(identity, name, None), self._touched(identity))

    def ioctl(self, fd: int, request: int, value: bytes) -> bytes:  # type: ignore[misc]
        self._enter("ioctl")
        inode, identity = self._inode(fd), self._at(fd)
        match request:
            case syscalls.FS_IOC_GETFLAGS:
                return struct.pack("l", inode.flags)
            case syscalls.FS_IOC_SETFLAGS:
                self._do("ioctl", self._touched(identity, flags=struct.unpack("l", value)[0]))
            case syscalls.FS_IOC_FSGETXATTR:
                return _FSX.pack(0, 0, 0, inode.project, 0)
            case syscalls.FS_IOC_FSSETXATTR:
                self._do("ioctl", self._touched(identity, project=_FSX.unpack(value)[3]))
            case _:
                refuse(errno.ENOTTY)
        return value

    # Names.

    def open_new(self, directory: int, name: bytes, mode: int) -> int:
        self._enter("open_new")
        identity = self.create(self._at(directory), name, mode)
        return self.open_files.add(identity, os.O_RDWR)

    def create(self, directory: int, name: bytes, mode: int) -> int:
        """Create a file, as any process may; returns its identity."""
        above = self.disk.inodes[directory]
        if name in above.names:
            refuse(errno.EEXIST)
        tick, identity = self.clock.tick, max(self.disk.inodes) + 1
        inode = Inode(self._number(), stat.S_IFREG | mode, atime=tick, mtime=tick, ctime=tick)
        # New files inherit a default ACL (acl(5)).
        if DEFAULT_ACL in above.xattrs:
            inode.xattrs[ACL] = above.xattrs[DEFAULT_ACL]
        named = self._names(directory, (name, identity))
        self._do("open_new", NewInode(directory, identity, inode), *named)
        self.open_files.tell(directory, [("create", name, 0)])
        return identity

    def _number(self) -> int:
        """Return the number for a new inode."""
        # A number stays in use while its inode is open or has a name.
        opened = {file.identity for file in self.open_files.files.values()}
        inodes = self.disk.inodes.items()
        used = {i.number for each, i in inodes if each in opened or self.disk.links[each]}
        if not self.reuse:
            return max(inode.number for _, inode in inodes) + 1
        return next(number for number in range(2, len(used) + 3) if number not in used)

    def _link(self, directory: int, name: bytes, identity: int) -> None:
        if name in self._inode(directory).names:
            refuse(errno.EEXIST)
        at = self._at(directory)
        self._do("link", *self._names(at, (name, identity)), self._touched(identity))
        self.open_files.tell(at, [("create", name, 0)])

    def link_fd(self, fd: int, directory: int, name: bytes) -> None:
        self._enter("link_fd")
        identity = self._at(fd)
        # linkat(2) refuses an inode that has lost its last name.
        if not self.disk.links[identity]:
            refuse(errno.ENOENT)
        self._link(directory, name, identity)

    def link(self, directory: int, name: bytes, other: bytes) -> None:
        self._enter("link")
        self._link(directory, other, self._lookup(directory, name))

    def rename(self, directory: int, name: bytes, other: bytes) -> None:
        self._enter("rename")
        self._lookup(directory, name)
        self.replace(self._at(directory), name, other)

    def replace(self, directory: int, name: bytes, other: bytes) -> None:
        """Rename a file, as any process may."""
        here = self.disk.inodes[directory].names
        identity, replaced = here[name], here.get(other)
        if replaced == identity:
            return  # two names of one inode both stay (rename(2))
        touched = [self._touched(each) for each in (identity, replaced) if each is not None]
        names = self._names(directory, (name, None), (other, identity))
        self._do("rename", *names, *touched)
        self.open_files.tell(directory, [("from", name, 1), ("to", other, 1)])

    def exchange(self, directory: int, name: bytes, other: bytes) -> None:
        self._enter("exchange")
        self._can_exchange()
        one, two = self._lookup(directory, name), self._lookup(directory, other)
        at = self._at(directory)
        names = self._names(at, (name, two), (other, one))
        self._do("exchange", *names, self._touched(one), self._touched(two))
        # The kernel reports an exchange as two moves, each with its own cookie (fs/namei.c).
        ways = (("from", name, 1), ("to", other, 1), ("from", other, 2), ("to", name, 2))
        self.open_files.tell(at, ways)

    def _can_exchange(self) -> None:
        """Raise if names cannot be exchanged; some filesystems lack it."""

    def unlink(self, directory: int, name: bytes) -> None:
        self._enter("unlink")
        identity = self._lookup(directory, name)
        at = self._at(directory)
        self._do("unlink", *self._names(at, (name, None)), self._touched(identity))
        self.open_files.tell(at, [("delete", name, 0)])

    # Durability, leases, and changes of others.

    def syncfs(self, fd: int) -> None:
        self._enter("syncfs")
        self.open_files.of(fd)
        self.timeline.events.append(Synced())

    def sync(self) -> None:
        self._enter("sync")
        self.timeline.events.append(Synced())

    def fsync(self, fd: int) -> None:
        """Sync a file, as other programs do."""
        self._enter("fsync")
        self.timeline.events.append(FileSynced(self._at(fd)))

    def lease(self, fd: int, kind: int) -> None:
        self._enter("lease")
        self.open_files.lease(fd, kind)

    def leased(self, fd: int) -> bool:
        self._enter("leased")
        file = self.open_files.of(fd)
        return file.leased and not file.broken

    def watcher(self) -> int:
        self._enter("watcher")
        return self.open_files.add_queue()

    def watch(self, queue: int, directory: int) -> int:
        self._enter("watch")
        watches = self.open_files.queues[queue].watches
        return watches.setdefault(self.open_files.of(directory).identity, len(watches) + 1)

    def changes(self, queue: int) -> bytes:
        self._enter("changes")
        return self.open_files.take(queue)

    def rewrite(self, fd: int, offset: int, length: int, flags: int) -> NoReturn:
        refuse(errno.EOPNOTSUPP)


class NoExchange(ModelSys):
    """A filesystem without RENAME_EXCHANGE."""

    def _can_exchange(self) -> None:
        refuse(errno.EINVAL)
