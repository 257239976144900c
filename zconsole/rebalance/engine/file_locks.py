"""Detection of files that other processes use: inodes locked, held open, mounted or overlaid.

Replacing a file gives its name to another inode. A process that still has the old one would write
to a file that nobody can find any more, so files in use are left alone.
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
"""Bytes of a struct loop_info64, which begins with the file's device and inode (linux/loop.h)."""
RECENT = 1.0
"""Seconds for which a result is recent enough to decide which files are not worth copying."""

_GONE = (errno.ENOENT, errno.ESRCH, errno.EINVAL, errno.EACCES, errno.EPERM)
"""Errors for a process that ended (mounts_open_common, fs/proc_namespace.c), or is hidden."""
_LOCK = re.compile(
    r"\d+:(?: *->)? (?:FLOCK|POSIX|OFDLCK) .* (-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) \S+ \S+"
)
"""Process, device and inode in a line of /proc/locks; ``->`` marks a process that waits."""


Locks = Set[tuple[int, int]]
"""Device and inode of files with a lock."""


def locked_inodes(table: Path = Path("/proc/locks")) -> Locks:
    """Return device and inode of every file with a flock or POSIX lock (proc_locks(5)).

    Leases are left out, and so are this process's own locks: they are on its journal and records,
    and where the inode number alone counts (``may_be_locked``) a file to move may have the same.
    """
    try:
        lines = table.read_text().splitlines()
    except FileNotFoundError:
        return frozenset()
    # A batch may have 8,000 leases: leave them out before lines are matched.
    found = (_LOCK.fullmatch(line) for line in lines if ": LEASE " not in line)
    return frozenset(
        (os.makedev(int(lock[2], 16), int(lock[3], 16)), int(lock[4]))
        for lock in found
        if lock and int(lock[1]) != os.getpid()
    )


class Alarm:
    """A flag that SIGIO sets: somebody wants to open a leased file for writing."""

    def __init__(self) -> None:
        self.raised = False

    def __call__(self, *_: object) -> None:
        """Set the flag; this is the signal handler."""
        self.raised = True


@dataclass(frozen=True, slots=True)
class Table:
    """The mounts of a namespace, as seen from one root directory in it."""

    text: bytes
    process: str
    """Id of a process that sees them; empty for this process."""
    view: View
    spots: frozenset[Spot]
    """Places that are mounted or covered by a mount: files among them are in use."""


Tables = Mapping[tuple[str, str], Table]
"""Mount tables by namespace and root directory."""


InUse = dict[tuple[int, int], str]
"""By device and inode of a file, the process that has it mounted; empty for this process."""
Unreached = dict[bytes, list[tuple[Spot, str]]]
"""By device, the mounted places without a ``View.local_path``, each with a process."""


@dataclass(frozen=True, slots=True)
class FilesInUse:
    """A snapshot of the files in use by others, and by whom.

    Only ``mounted`` grows afterwards, as directories are opened (``add_unreached``).
    """

    taken: float
    """When it was taken (steady seconds)."""
    own: View
    views: tuple[View, ...]
    holders: Holders
    mounted: InUse
    unreached: Unreached
    layers: tuple[tuple[Spot, str], ...]
    """Directories of mounted overlays, and a process that sees each."""
    unseen: int
    """Number of mount namespaces that exist without a process."""
    lost: int = 0
    """Number of overlays with directories that were not found."""

    def user(self, device: int, inode: int) -> str | None:
        """Return ``in use by …``, at most 40 characters, or None for a file not seen in use."""
        process = self.mounted.get((device, inode))
        if process is not None:
            return _by("a mount", process)
        for held in self.holders.by_inode.get(inode, ()):
            if self._is_on(held, device):
                return f"in use by {holders.name_of(held.process, self.holders.proc)}"
        return None

    def may_be_locked(self, locks: Locks, directory: int, device: int, inode: int) -> bool:
        """Whether a file in an open directory may be one of those with a lock.

        /proc/locks has the filesystem's device (lock_get_status, fs/locks.c). stat(2) may return
        another, on btrfs (the subvolume's) and on overlays (a layer's): there the inode number
        alone counts, which may leave out a file too many; a later run moves that.
        """
        devices = {of for of, number in locks if number == inode}
        if not devices or device in devices:
            return bool(devices)
        mount = self.own.mounts.get(mounts.mount_number(directory))
        return mount is None or mount.kind in overlays.KINDS or mount.device != _number(device)

    def add_unreached(self, directory: int) -> None:
        """Add to ``mounted`` the ``unreached`` files that an open directory leads to.

        Call it before ``user``, with each directory that has a name of the file. If the path of
        the directory is unknown, its files with the names of unreached ones count.
        """
        if not self.unreached:
            return
        device, place = self._place(directory)
        for spot, process in self.unreached.get(device, ()):
            if place is None:
                path: bytes | None = spot.path.rpartition(b"/")[2]
            else:
                mount, here = place
                path = self.own.path_through(mount, spot)
                path = path and os.path.relpath(path, here)
            if path:
                _add(self.mounted, _file(path, process, directory))

    def overlay(self, directory: int) -> str | None:
        """Return ``in use by …`` if an open directory is in a layer of an overlay, or contains one.

        None otherwise.
        """
        return self._layer(directory, lambda layer, spot: layer.holds(spot) or spot.holds(layer))

    def inside_overlay(self, directory: int) -> str | None:
        """Return ``in use by …`` if an open directory is in a layer of an overlay, or None."""
        return self._layer(directory, lambda layer, spot: layer.holds(spot))

    def _layer(self, directory: int, meets: Callable[[Spot, Spot], bool]) -> str | None:
        if not self.layers:
            return None
        device, place = self._place(directory)
        # A directory whose path is unknown may be in any layer on its device.
        spot = None if place is None else place[0].spot(place[1])
        met = (
            process
            for layer, process in self.layers
            if (layer.device == device if spot is None else meets(layer, spot))
        )
        return next((_by("an overlay", process) for process in met), None)

    def _place(self, directory: int) -> tuple[bytes, tuple[MountPoint, bytes] | None]:
        """Return the device of an open directory, then its mount and path, or None if unknown.

        The mount is in no table in a chroot whose root isn't a mount point. The path is unknown if
        it is longer than the kernel prints (d_path, PATH_MAX).
        """
        mount = self.own.mounts.get(mounts.mount_number(directory))
        if mount is None:
            return _number(os.fstat(directory).st_dev), None
        try:
            path = os.fsencode(Path(f"/proc/self/fd/{directory}").readlink())
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            return mount.device, None
        return mount.device, (mount, path)

    def _is_on(self, held: HeldFile, device: int) -> bool:
        """Whether a descriptor may be on the filesystem with this device.

        True also if its mount is in no table, as after ``umount -l``, and on btrfs, where st_dev
        differs from the device of the mount.
        """
        mount = _mount_of(held, self.views)
        if mount is None:
            return not held.nameless
        return mount.kind == b"btrfs" or mount.device == _number(device)


@dataclass(slots=True)
class Users:
    """Finds out who uses which files. Caches mounts and overlays, which seldom change."""

    proc: Path = PROC
    blocks: Path = BLOCKS
    clock: Callable[[], float] = time.monotonic
    last: FilesInUse | None = None
    """The newest snapshot."""
    _tables: dict[tuple[str, str], Table] = field(default_factory=dict)
    """Mount tables by namespace and root directory, this process's first."""
    _layers: dict[tuple[str, MountPoint], overlays.Layers] = field(default_factory=dict)
    """Layers by the namespace of the table and the overlay's mount."""
    _stacked: dict[Spot, str] = field(default_factory=dict)
    """Directories of all overlays ever seen, and a process that has them in the newest snapshot.

    After ``umount -l`` an overlay lives on while it is used, but is in no mount table.
    """

    def recent(self) -> FilesInUse:
        """Return the last snapshot if it is recent, or take one. Raises OSError without /proc."""
        if self.last is None or self.clock() - self.last.taken > RECENT:
            return self.look()
        return self.last

    def look(self, listen: Callable[[], None] = lambda: None) -> FilesInUse:
        """Take a snapshot now; ``listen`` is called now and then.

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
        """Read every different mount table; processes may end meanwhile."""
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
        """Return the files that are mounted or covered by a mount, and the places not reached."""
        # Reversed: the table of this process is the first, and of equal keys the last one counts.
        seen = {
            s: table.process for table in list(self._tables.values())[::-1] for s in table.spots
        }
        files: InUse = {}
        unreached: Unreached = defaultdict(list)
        for spot, process in seen.items():
            path = own.local_path(spot)
            if path is None:
                unreached[spot.device].append((spot, process))
            else:
                _add(files, _file(path, process))
        return files, unreached

    def _images(self, own: View) -> InUse:
        """Return the files that the kernel reads as a disk: of loop devices, and of erofs.

        Those that it also writes to refuse the lease, so only reading has to be detected. A loop
        device tells the inode of its file; if it may not be asked, the path by which it was
        attached is looked up, which may be one of another namespace. Paths that lead to a server
        are not looked up.
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
        found = (own.local_path(spot) for spot in spots if spot is not None)
        return images | {key: "" for path in found if path for key in _file(path, "")}

    def _overlaid(self, own: View) -> dict[Spot, str]:
        """Return the directories of overlays, and a process that sees each.

        Their paths belong to the namespace in which they were mounted: the one that sees them or,
        with most containers, ours. Both are tried.
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
        """Count the overlays, each with a device of its own, not all of whose layers were found."""
        lost, whole = set[bytes](), set[bytes]()
        for (_, mount), found in self._layers.items():
            (lost if found.lost else whole).add(mount.device)
        return len(lost - whole)

    def _unseen(self, own: View, found: Holders) -> int:
        mounted = {os.fsdecode(m.root) for m in own.mounts.values() if m.kind == b"nsfs"}
        kept = {root for root in mounted if root.startswith("mnt:")} | found.namespaces
        return len(kept - {namespace for namespace, _ in self._tables})


def _table(place: Path, process: str, known: Table | None) -> Table:
    """Return the mounts that a process sees; an unchanged table is not parsed again."""
    text = mounts.table_of(place)
    if known is not None and known.text == text:
        return Table(text, process, known.view.seen_by(place), known.spots)
    view = View(place, mounts.parse(text))
    return Table(text, process, view, frozenset(view.spots()))


def _file(path: bytes, process: str, directory: int | None = None) -> InUse:
    """Return an entry for the regular file at a path; empty for anything else, or nothing there."""
    with contextlib.suppress(OSError):
        status = os.stat(path, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            return {(status.st_dev, status.st_ino): process}
    return {}


def _add(files: InUse, more: InUse) -> None:
    """Add files in use: of several processes that have the same one mounted, this one counts."""
    for file, process in more.items():
        if files.get(file) != "":
            files[file] = process


def _number(device: int) -> bytes:
    """Return a device as a mount table has it: ``8:1``."""
    return b"%d:%d" % (os.major(device), os.minor(device))


def _image_of(disk: str) -> tuple[int, int] | None:
    """Return device and inode of a loop device's file (LOOP_GET_STATUS64), or None if refused."""
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
    """Stat the files on local filesystems whose inodes the kernel does not print (before 5.14)."""
    for held in found.by_inode.pop(None, ()):
        mount = _mount_of(held, views)
        if mount is not None and mount.kind in mounts.LOCAL:
            with contextlib.suppress(OSError):
                found.by_inode[(proc / held.link).stat().st_ino].append(held)


def _by(what: str, process: str) -> str:
    return f"in use by {what} (pid {process})" if process else f"in use by {what}"
