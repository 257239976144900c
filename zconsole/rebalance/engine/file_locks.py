"""What other processes use: inodes they lock, hold open or have mounted, or want to open.

To replace a file gives its name to another inode. Whoever still has the old one would write to a
file that nobody finds any more: such files are left alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import struct
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

from zconsole.rebalance.engine import holders, overlays
from zconsole.rebalance.engine.holders import PROC, HeldFile, Holders
from zconsole.system import mounts
from zconsole.system.mounts import MountPoint, Spot, View

BLOCKS = Path("/sys/block")
_LOOP_GET_STATUS64 = 0x4C05
_LOOP_INFO = 232
"""Bytes of a struct loop_info64, whose first members are the file's device and inode
(linux/loop.h)."""
RECENT = 1.0
"""Seconds for which a look is good enough to say what is not worth copying."""

_GONE = (errno.ENOENT, errno.ESRCH, errno.EINVAL, errno.EACCES, errno.EPERM)
"""What is said of a process that ended (mounts_open_common, fs/proc_namespace.c), or is hidden."""
_LOCK = re.compile(
    r"^\d+:(?: *->)? (?:FLOCK|POSIX|OFDLCK) .* (-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) \S+ \S+$",
    re.MULTILINE,
)


Locks = Set[tuple[int, int]]
"""Device and inode of files with a lock."""


def locked_inodes(table: Path = Path("/proc/locks")) -> Locks:
    """Device and inode of every file with a flock or POSIX lock (proc_locks(5)); leases are not.

    Nor are the locks of this process: they are on its journal and records, whose inode numbers
    may be those of files to be moved where the number alone counts (``may_be_locked``).
    """
    try:
        text = table.read_text()
    except FileNotFoundError:
        return frozenset()
    return frozenset(
        (os.makedev(int(major, 16), int(minor, 16)), int(inode))
        for pid, major, minor, inode in _LOCK.findall(text)
        if int(pid) != os.getpid()
    )


class Alarm:
    """Raised by SIGIO: somebody wants to open a leased file for writing."""

    def __init__(self) -> None:
        self.raised = False

    def __call__(self, *_: object) -> None:
        """The signal handler."""
        self.raised = True


@dataclass(frozen=True, slots=True)
class Table:
    """The mounts of a namespace, as seen from one root directory in it."""

    text: bytes
    process: str
    """One that sees them; empty for this one."""
    view: View
    spots: frozenset[Spot]
    """What is mounted there or lies under a mount point: files among them are in use."""


Tables = Mapping[tuple[str, str], Table]
"""By namespace and root directory."""


InUse = dict[tuple[int, int], str]
"""By device and inode of a file, the process that has it mounted, empty for this one."""
Unreached = dict[bytes, list[tuple[Spot, str]]]
"""By device, what is mounted where no path leads without asking a server, and by which process."""


@dataclass(frozen=True, slots=True)
class FilesInUse:
    """Who uses what, at one moment."""

    taken: float
    own: View
    views: tuple[View, ...]
    holders: Holders
    mounted: InUse
    unreached: Unreached
    layers: tuple[tuple[Spot, str], ...]
    """The directories of mounted overlays, and a process that sees each."""
    unseen: int
    """Mount namespaces that are kept without a process."""
    lost: int = 0
    """Overlays with directories that are not found."""

    def user(self, device: int, inode: int) -> str | None:
        """``in use by …``, within 40 characters; None for a file that nobody is seen to use."""
        process = self.mounted.get((device, inode))
        if process is not None:
            return _by("a mount", process)
        for held in self.holders.by_inode.get(inode, ()):
            if self._is_on(held, device):
                return f"in use by {holders.name_of(held.process, self.holders.proc)}"
        return None

    def may_be_locked(self, locks: Locks, directory: int, device: int, inode: int) -> bool:
        """Whether a file in an open directory may be one of those with a lock.

        /proc/locks tells the filesystem's device (lock_get_status, fs/locks.c). stat(2) may tell
        another, on btrfs (the subvolume's) and on overlays (a layer's): there the number alone
        counts, which may keep back a file too many, for a later run to move.
        """
        devices = {of for of, number in locks if number == inode}
        if not devices or device in devices:
            return bool(devices)
        mount = self.own.mounts.get(mounts.mount_number(directory))
        named = f"{os.major(device)}:{os.minor(device)}".encode()
        return mount is None or mount.kind in overlays.KINDS or mount.device != named

    def reach(self, directory: int) -> None:
        """Find the files among what is ``unreached`` from an open directory of their filesystem.

        To be called before ``user`` for every directory that a file has a name in.
        """
        mount, here = self._place(directory) if self.unreached else (None, None)
        if mount is None or here is None:
            return
        for spot, process in self.unreached.get(mount.device, ()):
            path = self.own.path_in(mount, spot)
            if path is not None:
                self.mounted.update(_file(os.path.relpath(path, here), process, directory))

    def overlay(self, directory: int) -> str | None:
        """The same for an open directory of this process that is in, or has, part of an overlay."""
        return self._layer(directory, lambda layer, spot: layer.holds(spot) or spot.holds(layer))

    def inside_overlay(self, directory: int) -> str | None:
        """The same for files of an open directory."""
        return self._layer(directory, lambda layer, spot: layer.holds(spot))

    def _layer(self, directory: int, meets: Callable[[Spot, Spot], bool]) -> str | None:
        if not self.layers:
            return None
        mount, path = self._place(directory)
        if mount is None:  # in no table, as in a chroot whose root is no mount
            device = os.fstat(directory).st_dev
            spot, path = Spot(b"%d:%d" % (os.major(device), os.minor(device)), b"/"), None
        else:
            # A path that the kernel does not print may lead through any layer of its filesystem.
            spot = Spot(mount.device, b"/") if path is None else mount.spot(path)
        met = (
            process
            for layer, process in self.layers
            if (layer.device == spot.device if path is None else meets(layer, spot))
        )
        return next((_by("an overlay", process) for process in met), None)

    def _place(self, directory: int) -> tuple[MountPoint | None, bytes | None]:
        """The mount that a directory of this process was opened through, and its path.

        None for a path that is longer than the kernel prints (d_path, PATH_MAX).
        """
        mount = self.own.mounts.get(mounts.mount_number(directory))
        try:
            return mount, os.fsencode(Path(f"/proc/self/fd/{directory}").readlink())
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            return mount, None

    def _is_on(self, held: HeldFile, device: int) -> bool:
        """Whether a descriptor is on a filesystem.

        Yes where its mount is in no table, as when it was detached, and on btrfs, whose devices
        (st_dev) are not those of its mounts.
        """
        mount = _mount_of(held, self.views)
        named = f"{os.major(device)}:{os.minor(device)}".encode()
        return mount is None or mount.kind == b"btrfs" or mount.device == named


@dataclass(slots=True)
class Users:
    """Looks at who uses what. Remembers what seldom changes between two looks."""

    proc: Path = PROC
    blocks: Path = BLOCKS
    clock: Callable[[], float] = time.monotonic
    last: FilesInUse | None = None
    _tables: dict[tuple[str, str], Table] = field(default_factory=dict)
    """By namespace and root directory, this process's first."""
    _layers: dict[tuple[str, MountPoint], overlays.Layers] = field(default_factory=dict)
    """By the table's namespace and the overlay."""
    _stacked: dict[Spot, str] = field(default_factory=dict)
    """Directories of all overlays ever seen, and a process that saw each in the last look.

    An overlay lives on after ``umount -l`` as long as anybody uses it, and no table has it.
    """

    def recent(self) -> FilesInUse:
        """The last look, where that is recent, or one now. Raises OSError without /proc."""
        if self.last is None or self.clock() - self.last.taken > RECENT:
            return self.look()
        return self.last

    def look(self, listen: Callable[[], None] = lambda: None) -> FilesInUse:
        """Look at everything now; ``listen`` is called now and then.

        Raises OSError without /proc.
        """
        taken = self.clock()
        this = (self.proc / "self").readlink().name
        self._read_tables(this)
        listen()
        tables = list(self._tables.values())
        own, views = tables[0].view, tuple(table.view for table in tables)
        found = Holders.look(frozenset({this}), listen, self.proc)
        _resolve(found, views, self.proc)
        mounted, unreached = self._mounted(own)
        mounted |= self._images(own)
        self._stacked = dict.fromkeys(self._stacked, "") | self._overlaid(own)
        layers, unseen = tuple(self._stacked.items()), self._unseen(own, found)
        self.last = FilesInUse(
            taken, own, views, found, mounted, unreached, layers, unseen, self._lost()
        )
        return self.last

    def _read_tables(self, this: str) -> None:
        """All different mount tables; other processes may end meanwhile."""
        before, self._tables = self._tables, {}
        with holders.opened(os.fspath(self.proc)) as table:
            self._read_table(table, this, "", before)
            for process in holders.processes(table):
                for place in holders.places(table, process, holders.KCMP_FS):
                    try:
                        self._read_table(table, place, process, before)
                    except OSError as error:
                        if error.errno not in _GONE:
                            raise

    def _read_table(self, table: int, place: str, process: str, before: Tables) -> None:
        namespace = os.readlink(f"{place}/ns/mnt", dir_fd=table)
        key = (namespace, os.readlink(f"{place}/root", dir_fd=table))
        if key not in self._tables:
            self._tables[key] = _table(self.proc / place, process, before.get(key))

    def _mounted(self, own: View) -> tuple[InUse, Unreached]:
        """Files that are mounted, or mounted on. This process's own come last, and count."""
        seen = {
            s: table.process for table in list(self._tables.values())[::-1] for s in table.spots
        }
        files: InUse = {}
        unreached: Unreached = defaultdict(list)
        for spot, process in seen.items():
            path = own.path_to(spot)
            if path is None:
                unreached[spot.device].append((spot, process))
            else:
                files |= _file(path, process)
        return files, unreached

    def _images(self, own: View) -> InUse:
        """Files that the kernel reads as a disk: of loop devices, and of erofs.

        It writes to none of them through these; one that is written to refuses the lease. A loop
        device tells the inode of its own; where it may not be asked, the path by which it was
        attached is looked for, which may be one of another namespace. Paths are asked for where no
        server has to be.
        """
        images: InUse = {}
        paths = {
            mount.source
            for table in self._tables.values()
            for mount in table.view.mounts.values()
            if mount.kind == b"erofs" and mount.source.startswith(b"/")
        }
        with contextlib.suppress(FileNotFoundError):  # no sysfs
            for disk in self.blocks.iterdir():
                if disk.name.startswith("loop"):
                    with contextlib.suppress(OSError):  # one without a file
                        backing = (disk / "loop/backing_file").read_bytes()
                        if (image := _image_of(disk.name)) is not None:
                            images[image] = ""
                        else:
                            paths.add(backing.removesuffix(b"\n"))
        spots = (own.follow(path, sure=True) for path in paths)
        found = (own.path_to(spot) for spot in spots if spot is not None)
        return images | {key: "" for path in found if path for key in _file(path, "")}

    def _overlaid(self, own: View) -> dict[Spot, str]:
        """The directories of overlays, and a process that sees each.

        Their paths were given in the namespace that mounted them, be it that which sees them or,
        as with most containers, ours.
        """
        spots: dict[Spot, str] = {}
        before, self._layers = self._layers, {}
        for (namespace, _), table in self._tables.items():
            for mount in table.view.mounts.values():
                if mount.kind not in overlays.KINDS:
                    continue
                key = (namespace, mount)
                found = before.get(key)
                if found is None or found.lost or not found.spots:
                    found = overlays.found(mount, (table.view, own))
                self._layers[key] = found
                spots = dict.fromkeys(found.spots, table.process) | spots
        return spots

    def _lost(self) -> int:
        """Overlays, each with a device of its own, that no view finds all directories of."""
        lost, whole = set[bytes](), set[bytes]()
        for (_, mount), found in self._layers.items():
            (lost if found.lost else whole).add(mount.device)
        return len(lost - whole)

    def _unseen(self, own: View, found: Holders) -> int:
        mounted = {os.fsdecode(m.root) for m in own.mounts.values() if m.kind == b"nsfs"}
        kept = {root for root in mounted if root.startswith("mnt:")} | found.namespaces
        return len(kept - {namespace for namespace, _ in self._tables})


def _table(place: Path, process: str, known: Table | None) -> Table:
    """The mounts that a process sees, and where they are known already, nothing worked out anew."""
    text = mounts.table_of(place)
    if known is not None and known.text == text:
        return Table(text, process, known.view.seen_by(place), known.spots)
    view = View(place, mounts.parse(text))
    return Table(text, process, view, frozenset(view.spots()))


def _file(path: bytes, process: str, directory: int | None = None) -> InUse:
    """A regular file, by device and inode; nothing for anything else, or where none is."""
    with contextlib.suppress(OSError):
        status = os.stat(path, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            return {(status.st_dev, status.st_ino): process}
    return {}


def _image_of(disk: str) -> tuple[int, int] | None:
    """Device and inode of a loop device's file (LOOP_GET_STATUS64); None where it does not tell."""
    try:
        fd = os.open(f"/dev/{disk}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = fcntl.ioctl(fd, _LOOP_GET_STATUS64, bytes(_LOOP_INFO))
        finally:
            os.close(fd)
    except OSError:
        return None
    device, inode = struct.unpack_from("=QQ", found)
    return device, inode


def _mount_of(held: HeldFile, views: Iterable[View]) -> MountPoint | None:
    return next((v.mounts[held.mount] for v in views if held.mount in v.mounts), None)


def _resolve(found: Holders, views: Iterable[View], proc: Path) -> None:
    """Find the inodes that kernels before 5.14 do not print, where no server has to be asked."""
    for held in found.by_inode.pop(None, ()):
        mount = _mount_of(held, views)
        if mount is not None and mount.kind in mounts.LOCAL:
            with contextlib.suppress(OSError):
                found.by_inode[(proc / held.link).stat().st_ino].append(held)


def _by(what: str, process: str) -> str:
    return f"in use by {what} (pid {process})" if process else f"in use by {what}"
