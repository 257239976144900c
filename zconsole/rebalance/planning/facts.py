"""Facts about ZFS that a plan needs: datasets, snapshots, pool, vdevs, blocks of files.

Parsed from the output of zfs(8) and zpool(8) with ``-Hp``, OpenZFS 2.1 to 2.4, and of
``zdb -ddddd`` (zdb(8)).
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from math import inf
from pathlib import Path
from typing import NamedTuple

from zconsole.errors import NotUnderstoodError, UnavailableError
from zconsole.pool import balance
from zconsole.pool.allocator import Space
from zconsole.pool.model import Pool, Vdev, Version, Volumes, parse_version
from zconsole.system import mounts
from zconsole.system.host import ROOT
from zconsole.system.mounts import MountPoint
from zconsole.system.printable import clean
from zconsole.system.process import Completed, DeadlineError, run_blocking
from zconsole.zfs.decode.listing import DATASET_COLUMNS, capacities, dataset_bytes, space_of
from zconsole.zfs.decode.text import pools_of
from zconsole.zfs.decode.values import draid_shape
from zconsole.zfs.sources.kstat import module_version, pool_state

DEADLINE = 20.0
"""Seconds to wait for zfs or zpool; a pool that is suspended never answers."""
ZDB_DEADLINE = 30.0
"""Seconds; zdb reads the pool's metadata from its disks."""
PROPERTIES = (
    "compression,checksum,dedup,copies,recordsize,special_small_blocks,encryption,origin,creation,"
    "available,used,referenced,written,usedbysnapshots,quota,refquota,reservation,refreservation,"
    "guid,compressratio,acltype,xattr,readonly,sharenfs,sharesmb"
)
NOPWRITE = frozenset({"sha256", "sha512", "skein", "edonr", "blake3"})
"""Checksums with which ZFS skips writing unchanged content (zio_checksum.c, NOPWRITE)."""
_ADDED = re.compile(r"^(\d{4}-\d\d-\d\d\.\d\d:\d\d:\d\d) zpool add (.*)", re.MULTILINE)
_PROPERTY = re.compile("-[a-zA-Z]*o")
"""Options of which the last takes the next word as its value: ``-o ashift=12``, ``-fo``."""
_CLASSES = frozenset({"log", "cache", "spare", "special", "dedup"})
_LOST = frozenset({"DEGRADED", "FAULTED", "OFFLINE", "REMOVED", "UNAVAIL"})
_CALLED = {"rebuild": "resilver", "errorscrub": "scrub"}
"""Scans that ``zpool status`` names differently."""
_MOVING = {"removal": "vdev removal", "expansion": "raidz expansion"}
_EXTENT = re.compile(
    r"^[ \t]*[0-9a-f]+ +L0 ((?:\d+:[0-9a-f]+:[0-9a-f]+ )+)([0-9a-f]+)L/([0-9a-f]+)P"
    r"(?: F=\d+ B=(\d+)/(\d+))?",
    re.MULTILINE,
)
_TOP_LEVEL = "\n            children["
_FIELD = re.compile(r"^ {16}(create_txg|is_log|alloc_bias): '?(\w+)'?$", re.MULTILINE)
"""Fields of a top-level vdev in ``zdb -C``; fields of its devices are indented further."""
_OBJECT = re.compile(r"^ +Object +lvl .*\n +(\d+) ", re.MULTILINE)

Run = Callable[[Sequence[str], float], Completed]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot; creation in epoch seconds."""

    creation: int
    holds: int
    clones: bool


@dataclass(frozen=True, slots=True)
class Dataset:
    """One filesystem, with its snapshots (newest last) and its newest bookmark."""

    name: str
    properties: Mapping[str, str]
    snapshots: tuple[Snapshot, ...] = ()
    bookmarked: int | None = None
    """Creation of the newest bookmark, epoch seconds; None if there is none."""

    @property
    def pool(self) -> str:
        """Name of its pool."""
        return self.name.split("/")[0]

    def number(self, name: str) -> int | None:
        """Return a property in bytes or seconds; None for ``none``, ``-`` and the like."""
        return _whole(self.properties.get(name, ""))

    @property
    def ratio(self) -> float:
        """Compression ratio (content bytes / block bytes); 1 if unknown."""
        try:
            return float(self.properties.get("compressratio", "").rstrip("x"))
        except ValueError:
            return 1.0

    def is_on(self, name: str) -> bool:
        """Whether a property is set to anything but ``off`` or ``none``."""
        return self.properties.get(name, "off") not in ("off", "-", "none", "")

    @property
    def drops_unchanged(self) -> bool:
        """Whether rewriting unchanged content in place writes nothing (nop-write, zio.c)."""
        strong = self.properties.get("checksum", "").split(",")[0] in NOPWRITE
        return (
            strong
            and self.is_on("compression")
            and not self.is_on("dedup")
            and not self.is_on("encryption")
        )


class Condition(NamedTuple):
    """State of a pool, and the work in progress on it."""

    state: str
    """State as in ``zpool status``, such as ONLINE."""
    scanning: str | None = None
    """``resilver`` or ``scrub`` while one runs."""
    moving: str | None = None
    """``vdev removal`` or ``raidz expansion`` while one runs.

    Files moved meanwhile would stay on the same vdev, or as narrow as before.
    """
    checkpoint: bool = False
    """Whether a checkpoint keeps every freed block allocated."""


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """A pool: its properties, its normal-class vdevs and its condition."""

    name: str
    properties: Mapping[str, str]
    spaces: tuple[Space, ...]
    version: Version
    condition: Condition = field(default=Condition("ONLINE"))
    fragmentation: float | None = None
    added: int | None = None
    """When the newest vdev was added, epoch seconds; None if never, or unknown without root."""
    special: tuple[Space, ...] = ()
    """Top-level vdevs of the special class."""
    used: int | None = None
    """Bytes that the datasets have allocated, without parity and without reservations."""
    sector: int | None = None
    """Smallest allocation in bytes (2^ashift); None if unknown."""
    available: int | None = None
    """Bytes that ``zfs list`` calls available in the pool; None if unknown."""
    volumes: Volumes | None = None
    """None if unknown."""

    def number(self, name: str) -> int:
        """Return a property in bytes; 0 if this version has none."""
        return _whole(self.properties.get(name, "")) or 0

    @property
    def raw_factor(self) -> float:
        """Raw bytes per allocated byte, at least 1: parity and padding."""
        alloc = sum(space.alloc for space in self.spaces)
        return max(1.0, alloc / self.used) if self.used and self.used > 0 else 1.0


@dataclass(frozen=True, slots=True)
class JobDirectory:
    """One directory of a job and the filesystem it is on."""

    root: bytes
    kind: str
    """Type of the filesystem."""
    source: str
    """Device or, on ZFS, dataset."""
    dataset: Dataset | None
    point: str = "/"
    """Mount point of the filesystem."""
    read_only: bool = False
    options: str = ""
    """Mount options of the filesystem."""

    @property
    def path(self) -> str:
        """The directory's path as text."""
        return os.fsdecode(self.root)

    @property
    def key(self) -> str:
        """Identifies this filesystem across reboots; on ZFS by the dataset's guid as well."""
        guid = self.dataset.properties.get("guid", "") if self.dataset else ""
        return f"{self.kind}:{self.source}:{guid}"


class Quota(NamedTuple):
    """Quota of a user, group or project on a dataset, and the space used; bytes."""

    holder: str
    used: int
    limit: int

    @property
    def left(self) -> int:
        """Bytes left under the quota."""
        return max(0, self.limit - self.used)


class Extent(NamedTuple):
    """A data block, other than a hole or one embedded in its pointer. Sizes in bytes."""

    vdev: int
    offset: str
    """Offset of the first copy on the vdev, hexadecimal."""
    size: int
    """Raw size of the first copy, parity included."""
    length: int
    stored: int
    """Physical size: the length after compression, without parity."""
    copies: int
    raw: int
    """Raw size of all copies."""
    birth: int = 0
    """txg in which the block was written here; a rewrite does not change its file's ctime."""


Listed = Mapping[int, Sequence[Extent]]
"""Blocks of files, by inode number."""


@dataclass(slots=True)
class FactsReader:
    """Asks zfs and zpool. Methods raise UnavailableError if they don't answer."""

    run: Run = field(default=run_blocking)
    root: Path = ROOT

    def version(self) -> Version:
        """Return the version of the kernel module, such as ``(2, 3, 9)``; empty without one."""
        return parse_version(module_version(self.root))

    def dataset(self, name: str, with_snapshots: bool = True) -> Dataset:
        """Read a dataset and, if wanted, its snapshots (oldest first) and newest bookmark."""
        text = self._ask("zfs", "get", "-Hp", "-o", "property,value", PROPERTIES, name)
        dataset = Dataset(name, _pairs(text))
        if not with_snapshots:
            return dataset
        rows = self._listed("snapshot", "creation,userrefs,clones", name)
        snapshots = tuple(
            Snapshot(_whole(created) or 0, _whole(held) or 0, clones not in ("-", ""))
            for created, held, clones in rows
        )
        newest = None
        with contextlib.suppress(UnavailableError):
            for (created,) in self._listed("bookmark", "creation", name):
                newest = _whole(created)
        return replace(dataset, snapshots=snapshots, bookmarked=newest)

    def pool(self, name: str) -> PoolFacts:
        """Read a pool. Raises UnavailableError for a suspended one, without asking it."""
        listed, status, idle = self._listing(name)
        version = self.version()
        properties = _pairs(self._ask("zpool", "get", "-Hp", "-o", "property,value", "all", name))
        # Sum over all datasets: ``used`` of the root dataset would include reservations.
        used, volumes = self.datasets(name)
        cloned = _whole(properties.get("bclonesaved", "")) or 0  # counted with every reference
        return PoolFacts(
            name=name,
            properties=properties,
            spaces=spaces_of(listed, version, idle=idle),
            special=spaces_of(listed, version, "special", idle),
            version=version,
            condition=condition_of(status),
            fragmentation=listed.fragmentation,
            used=used - cloned,
            volumes=volumes,
            sector=self._sector(name, properties),
            available=_whole(self.property_of(name, "available")),
        )

    def datasets(self, name: str) -> tuple[int, Volumes | None]:
        """Return the bytes of all datasets of a pool, and of its volumes; None if unknown."""
        return dataset_bytes(self._ask("zfs", "list", "-Hp", "-o", DATASET_COLUMNS, "-r", name))

    def listing(self, name: str) -> tuple[tuple[Space, ...], float | None]:
        """Read the normal-class vdevs, and the fragmentation of free space (0…1)."""
        listed, _, idle = self._listing(name)
        return spaces_of(listed, self.version(), idle=idle), listed.fragmentation

    def free(self, name: str) -> float | None:
        """Return the share of a pool that is free; None if the answer can't be parsed."""
        figures = self._ask("zpool", "list", "-Hp", "-o", "free,size", name).split()
        free, size = [_whole(word) for word in figures] if len(figures) == 2 else (None, None)
        return free / size if free is not None and size else None

    def property_of(self, dataset: str, name: str) -> str:
        """Return a property of a dataset; empty if it is unknown."""
        with contextlib.suppress(UnavailableError):
            return self._ask("zfs", "get", "-Hp", "-o", "value", name, dataset).strip()
        return ""

    def quotas(self, dataset: str) -> list[Quota]:
        """List the quotas of users, groups and projects; empty without permission."""
        found = []
        for command in ("userspace", "groupspace", "projectspace"):
            with contextlib.suppress(UnavailableError):
                text = self._ask("zfs", command, "-Hp", "-o", "type,name,used,quota", dataset)
                for kind, name, used, limit in _rows(text, 4):
                    if kind and used.isdigit() and _whole(limit):
                        holder = f"{kind.split()[-1].lower()} {clean(name)}"
                        found.append(Quota(holder, int(used), int(limit)))
        return found

    def room_of_snapshots(self, dataset: Dataset) -> float:
        """Return the bytes that a dataset's snapshots may grow by, infinite if nothing limits them.

        A refquota limits live files, but not data that only snapshots hold (zfsprops(7)).
        """
        bounds = [inf]
        if quota := dataset.number("quota"):
            bounds.append(quota - (dataset.number("used") or 0))
        # ``available`` of the dataset includes its refquota, that of the parent does not.
        parent = dataset.name.rpartition("/")[0]
        if parent and (above := _whole(self.property_of(parent, "available"))) is not None:
            bounds.append(above)
        return min(bounds)

    def condition(self, name: str) -> Condition:
        """Read the condition of a pool; a suspended one is not asked, as it would not answer."""
        if pool_state(name, self.root) == "SUSPENDED":
            return Condition("SUSPENDED")
        return condition_of(self._status(name))

    def device_paths(self, name: str) -> list[list[str]]:
        """Return the paths of the pool's devices by class: normal vdevs, logs, and so on."""
        classes: list[list[str]] = []
        for line in self._ask("zpool", "list", "-vHPp", name).splitlines():
            if not line.startswith("\t"):  # the pool, then the name of each further class
                classes.append([])
            elif (word := line.strip("\t").split("\t")[0]).startswith("/"):
                classes[-1].append(word)
        return [paths for paths in classes if paths]

    def snapshots_now(self, dataset: str) -> tuple[int, int]:
        """Return the txg of a dataset's newest snapshot (0 if none), and how many have holds."""
        rows = self._listed("snapshot", "createtxg,userrefs", dataset)
        return max((int(txg) for txg, _ in rows), default=0), sum(bool(_whole(n)) for _, n in rows)

    def added(self, name: str) -> int | None:
        """Return when data vdevs were last added (epoch seconds), from the pool's history.

        Root only. None if there was no addition or the history can't be read.
        """
        with contextlib.suppress(UnavailableError):
            return last_addition(self._ask("zpool", "history", name))
        return None

    def added_txg(self, name: str) -> int | None:
        """Return the txg in which the newest data vdev was added (root only); None if zdb fails."""
        parts = self._zdb("-C", name).split(_TOP_LEVEL)[1:]
        tops = [dict(_FIELD.findall(part)) for part in parts]
        data = [top for top in tops if top.get("is_log") != "1" and "alloc_bias" not in top]
        return max((int(top["create_txg"]) for top in data if "create_txg" in top), default=None)

    def blocks(self, dataset: str, inodes: Sequence[int]) -> Listed:
        """Return the blocks of files, by inode, as zdb lists them (root only); empty if it can't.

        zdb takes a pool's name alone for the meta object set: its root dataset needs the slash.
        """
        target = dataset if "/" in dataset else f"{dataset}/"
        # Text before the first object, then alternately an inode and its description.
        _, *parts = _OBJECT.split(self._zdb("-ddddd", target, *map(str, inodes)))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        return {int(inode): [*map(_extent, _EXTENT.findall(text))] for inode, text in pairs}

    def sync(self, pool: str) -> None:
        """Wait until everything written to the pool is on its disks."""
        self._ask("zpool", "sync", pool, deadline=600.0)

    def _sector(self, name: str, properties: Mapping[str, str]) -> int | None:
        """Return the sector size of the vdevs with the largest ashift, in bytes; None if unknown.

        ashift is a vdev property since OpenZFS 2.2 (vdevprops(7)); before, only the pool's is used.
        """
        try:
            text = self._ask("zpool", "get", "-Hp", "-o", "value", "ashift", name, "all-vdevs")
        except UnavailableError:
            text = properties.get("ashift", "")
        shift = max((_whole(word) or 0 for word in text.split()), default=0)
        return 1 << shift if shift else None

    def _listed(self, kind: str, columns: str, dataset: str) -> list[list[str]]:
        """Return columns of the snapshots or bookmarks of a dataset, oldest first."""
        order = "-s", "creation", "-o", columns, dataset
        text = self._ask("zfs", "list", "-Hp", "-t", kind, "-d", "1", *order)
        return _rows(text, columns.count(",") + 1)

    def _zdb(self, *words: str) -> str:
        """Return what zdb prints, in part if it fails; empty if it gives no answer."""
        try:
            return self.run(["zdb", *words], ZDB_DEADLINE).stdout
        except (OSError, DeadlineError):
            return ""

    def _listing(self, name: str) -> tuple[Vdev, Pool | None, frozenset[str]]:
        """Return the sizes of a pool's vdevs, its status, and the vdevs that take no new writes.

        Those have allocating=off, or are being removed. A suspended pool would not answer.
        """
        if pool_state(name, self.root) == "SUSPENDED":
            raise UnavailableError(
                f"pool {name} is suspended: reconnect its disks, then run zpool clear {name}"
            )
        try:
            listed = capacities(self._ask("zpool", "list", "-vHp", name))[0]
        except (NotUnderstoodError, IndexError) as error:
            raise UnavailableError(f"zpool list {name}: {error}") from error
        status = self._status(name)
        tops = status.root.children if status else ()
        return listed, status, frozenset(top.name for top in tops if top.allocating is False)

    def _status(self, name: str) -> Pool | None:
        try:
            return pools_of(self._ask("zpool", "status", name), UTC)[0]
        except (NotUnderstoodError, IndexError):
            return None

    def _ask(self, *argv: str, deadline: float = DEADLINE) -> str:
        try:
            done = self.run(argv, deadline)
        except (OSError, DeadlineError) as error:
            raise UnavailableError(f"{argv[0]}: {error}") from error
        if done.returncode != 0:
            raise UnavailableError(f"{argv[0]} {argv[1]}: {done.stderr.strip()}")
        return done.stdout


def condition_of(pool: Pool | None) -> Condition:
    """Derive the condition from ``zpool status``; state UNKNOWN for None."""
    if pool is None:
        return Condition("UNKNOWN")
    scan = next((s.function for s in pool.scans if s.state == "running"), None)
    works = [work.kind for work in pool.activities if work.state == "running"]
    rows = (v for v in pool.root.walk() if v.vclass not in ("cache", "spare"))
    state = pool.state or "UNKNOWN"
    if state == "ONLINE" and any(v.state in _LOST for v in rows):
        state = "DEGRADED"  # a faulted disk is not always propagated to the pool's state
    return Condition(
        state,
        scan and _CALLED.get(scan, scan),
        next((_MOVING[kind] for kind in works if kind in _MOVING), None),
        any(work.kind == "checkpoint" for work in pool.activities),
    )


def last_addition(history: str) -> int | None:
    """Return when data vdevs were last added, in epoch seconds; None if never.

    ``history`` is what ``zpool history`` prints, with the machine's local times. A command names
    data vdevs first: those after the name of a class, such as ``log``, belong to that class.
    """
    newest = None
    for date, words in _ADDED.findall(history):
        rest = words.split()
        while rest and rest[0].startswith("-"):
            has_value = _PROPERTY.fullmatch(rest[0])
            rest = rest[2 if has_value else 1 :]
        # What is left: the pool, then the first vdev or the class of all.
        if rest[1:] and rest[1] not in _CLASSES:
            newest = date
    return int(time.mktime(time.strptime(newest, "%Y-%m-%d.%H:%M:%S"))) if newest else None


def spaces_of(
    listed: Vdev, version: Version, wanted: str = "normal", idle: Collection[str] = ()
) -> tuple[Space, ...]:
    """Return the top-level vdevs of one class, weighted as that version's allocator does.

    The ``idle`` ones take no new writes, so their free bytes count for nothing.
    """
    found = []
    for row in listed.children:
        if row.vclass == wanted:
            top = row._replace(size_bytes=space_of(row), allocating=row.name not in idle)
            if shape := draid_shape(row.name):
                top = top._replace(data_disks=shape.data, spares_left=shape.spares)
            found.append(top)
    return balance.spaces_of(found, version)


_TYPES = {
    0xEF53: b"ext4",
    0x58465342: b"xfs",
    0x9123683E: b"btrfs",
    0x01021994: b"tmpfs",
    0xF2F52010: b"f2fs",
    0xCA451A4E: b"bcachefs",
    0x2FC12FC1: b"zfs",
    0x794C7630: b"overlay",
    0x6969: b"nfs",
    0x65735546: b"fuse",
}
"""Filesystem types by their statfs(2) number (linux/magic.h; ZFS_SUPER_MAGIC in zfs)."""


def unlisted_mount(directory: bytes) -> MountPoint:
    """Describe the mount of a directory that is missing from our mount table.

    Such as in a chroot whose root is not a mount point. The type comes from statfs(2), the dataset
    from the mount table of process 1, if that may be read. Raises OSError.
    """
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listed = None
        with contextlib.suppress(OSError):
            listed = mount_of(mounts.mount_number(fd), mounts.SELF.parent / "1")
        read_only = bool(os.statvfs(fd).f_flag & os.ST_RDONLY)
        kind = _TYPES.get(mounts.filesystem_type(fd), b"unknown")
    finally:
        os.close(fd)
    source = listed.source if listed else b""
    return MountPoint(0, 0, b"", b"/", b"/", kind, b"", source, read_only)


def mount_of(number: int, process: Path = mounts.SELF) -> MountPoint | None:
    """Return the mount with this number in a process's mount table. Raises OSError."""
    return mounts.parse(mounts.table_of(process)).get(number)


def options_now(place: JobDirectory) -> str:
    """Return the current mount options of a job's filesystem, without accessing it."""
    with contextlib.suppress(OSError):
        if mount := mount_of(mounts.mount_at(place.root)):
            return os.fsdecode(mount.options)
    return place.options


def mountpoints_of(pool: str, process: Path = mounts.SELF) -> dict[str, str]:
    """Map mount points to the datasets of a pool, sorted, each dataset once.

    Snapshots and bind mounts are left out.
    """
    found: dict[str, str] = {}
    for each in mounts.rows(mounts.table_of(process)):
        dataset = os.fsdecode(each.source)
        ours = dataset.split("/")[0] == pool and "@" not in dataset
        if each.kind == b"zfs" and each.root == b"/" and ours:
            found.setdefault(dataset, os.fsdecode(each.point))
    return dict(sorted((point, dataset) for dataset, point in found.items()))


def _whole(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _rows(text: str, columns: int) -> list[list[str]]:
    """Split output of ``-H`` into its rows; those of another length are no rows."""
    rows = (line.split("\t") for line in text.splitlines())
    return [row for row in rows if len(row) == columns]


def _pairs(text: str) -> dict[str, str]:
    return dict(_rows(text, 2))


def _extent(fields: tuple[str, ...]) -> Extent:
    """Build an extent from the groups of ``_EXTENT``."""
    addresses, length, stored, logical, physical = fields
    copies = [address.split(":") for address in addresses.split()]
    raw = [int(size, 16) for _, _, size in copies]
    vdev, offset, _ = copies[0]
    birth = int(physical or 0) or int(logical or 0)  # 0: the same as the other
    sizes = raw[0], int(length, 16), int(stored, 16)
    return Extent(int(vdev), offset, *sizes, len(raw), sum(raw), birth)
