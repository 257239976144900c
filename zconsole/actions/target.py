"""Finding the vdev an action is about, and naming it so that zpool cannot mistake it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from zconsole.pool.model import Pool, Vdev
from zconsole.pool.redundancy import is_complete
from zconsole.pool.topology import FAILED, is_group, placed

_PARTITION = re.compile(r"-part(\d+)$|^/dev/(?:(?:s|h|v|xv)d[a-z]+|\w*\dp)(\d+)$")
"""udev's links, else the kernel's own names: a whole disk's link may end in a digit, too."""


@dataclass(frozen=True, slots=True)
class Target:
    """A vdev with what stands above it."""

    key: str
    """The key of ``topology.placed``: its GUID where the source knows it."""
    vdev: Vdev
    parent: Vdev
    top: Vdev
    top_key: str

    @property
    def name(self) -> str:
        """How people call it: see ``Vdev.called``; with where it was when its name is a GUID."""
        name, note = self.vdev.called, self.vdev.note
        return f"{name} ({note})" if name == self.vdev.name and note.startswith("was ") else name

    @property
    def group(self) -> Vdev | None:
        """The replacing or spare group it is in, else None."""
        return self.parent if is_group(self.parent) else None

    @property
    def spares(self) -> tuple[Vdev, ...]:
        """The spares that stand in for it."""
        group = self.group
        spared = group is not None and group.kind == "spare" and group.children[0] is self.vdev
        return group.children[1:] if group is not None and spared else ()

    @property
    def argument(self) -> str:
        """How to name it to zpool: GUID, else absolute path, else the printed name.

        A GUID cannot be an option, holds no character a terminal obeys, and stays the same when
        device names move (zpool-replace(8): "device or GUID").
        """
        if self.vdev.guid:
            return self.vdev.guid
        if self.vdev.path and self.vdev.path.startswith("/"):
            return self.vdev.path
        return self.vdev.name


@dataclass(frozen=True, slots=True)
class Swap:
    """One old device, by key, and the path of the device that takes its place."""

    old: str
    new: str


def targets(pool: Pool) -> Iterator[Target]:
    """Yield every vdev of a pool, in the order ``zpool status`` prints."""
    places = {place.key: place for place in placed(pool.root)}
    for place in places.values():
        if place.top is not None and place.parent is not None:
            parent, top = places[place.parent].vdev, places[place.top].vdev
            yield Target(place.key, place.vdev, parent, top, place.top)


def find(pool: Pool, key: str) -> Target | None:
    """The vdev with this key; None once it is no longer in the pool."""
    return next((target for target in targets(pool) if target.key == key), None)


def key_of(pool: Pool, vdev: Vdev) -> str | None:
    """The key of a vdev of this very pool; None when it is not in it."""
    return next((place.key for place in placed(pool.root) if place.vdev is vdev), None)


def stands_in(target: Target) -> bool:
    """Whether another device in the same place, a spare or the new one, is complete."""
    siblings = target.group.children if target.group else ()
    return any(is_complete(v) for v in siblings if v is not target.vdev)


def disk_path(pool: Pool, leaf: Vdev, expands: bool) -> str:
    """How to name a device to ``zpool online``: by GUID, or the path of the disk where it must be.

    Where it ``expands`` (``-e``, or autoexpand), zpool opens what it was given to label a whole
    disk anew, and knows no GUID there (zpool_vdev_online, libzfs_pool.c; seen on 2.3.9: "cannot
    expand GUID: no such device in pool"). Of a whole disk, status prints the name without the
    partition. Not where another device has the path, too: zpool would take the first of them.
    """
    path = leaf.path or ""
    folder, _, file = path.rpartition("/")
    alone = not any(v.path == path and v.guid != leaf.guid for v in pool.root.leaves())
    relabeled = expands and file != leaf.name.rpartition("/")[2] and alone
    if not path.startswith("/") or (leaf.guid and not relabeled):
        return leaf.guid or path or leaf.name
    return f"{folder}/{leaf.name}" if file.startswith(leaf.name) else path


def partition_in(path: str) -> str | None:
    """The number of the partition that a path names; None for a whole disk."""
    match = _PARTITION.search(path)
    return next(filter(None, match.groups()), None) if match else None


def partition_of(leaf: Vdev) -> str | None:
    """The number of the partition that a leaf is; None for a whole disk.

    Of a whole disk, zpool prints the name without the partition it made itself, which is number 1;
    but for a full path (``-P``), which does not tell.
    """
    path = leaf.path or ""
    if path.rpartition("/")[2] != leaf.name.rpartition("/")[2]:
        return None
    part = partition_in(path)
    return None if part == "1" and leaf.name.startswith("/") else part


def failed(pool: Pool, key: str | None = None) -> tuple[Target, ...]:
    """The devices that hold data and have failed, below the vdev of this key or in all the pool.

    Not one that is being replaced already, nor the new one of such a replace.
    """
    root = found.vdev if key and (found := find(pool, key)) else pool.root
    inside = {id(leaf) for leaf in root.leaves()}
    return tuple(t for t in targets(pool) if id(t.vdev) in inside and _lacks_a_replacement(t))


def _lacks_a_replacement(target: Target) -> bool:
    group = target.group
    return (
        target.vdev.state in FAILED
        and target.vdev.vclass not in ("spare", "cache")
        and (group is None or (group.kind == "spare" and group.children[0] is target.vdev))
    )


def find_path(pool: Pool, paths: tuple[str, ...]) -> Target | None:
    """The leaf whose path is one of these, or that of the first partition of one."""
    wanted = {name for path in paths if path for name in (path, f"{path}-part1")}
    leaves = (target for target in targets(pool) if not target.vdev.children)
    return next((leaf for leaf in leaves if leaf.vdev.path in wanted), None)


def members(top: Vdev) -> tuple[Vdev, ...]:
    """The members of a top-level vdev; itself when it is a single device or group."""
    return (top,) if not top.children or is_group(top) else top.children


def others_missing(target: Target) -> tuple[Vdev, ...]:
    """Members of the same top-level vdev that are not complete, the leaf's own left out."""
    return tuple(
        member
        for member in members(target.top)
        if not is_complete(member) and all(vdev is not target.vdev for vdev in member.walk())
    )


def suspects(pool: Pool, faulty: Iterable[str] = ()) -> tuple[Target, ...]:
    """The devices to replace first: failed ones, ``faulty`` ones (by key), others with errors."""
    every = {target.key: target for target in targets(pool)}
    noisy = (t for t in every.values() if t.vdev.errors.total and t.vdev.vclass != "cache")
    counted = (t.key for t in noisy if not t.vdev.shared)
    keys = dict.fromkeys((*(t.key for t in failed(pool)), *faulty, *counted))
    return tuple(every[key] for key in keys if key in every and not every[key].vdev.children)


def doubts(
    pool: Pool, key: str, faulty: Iterable[str] = (), healthy: bool = True
) -> tuple[str, ...]:
    """What speaks for another device: this one shows no errors, and others do, or have failed.

    ``healthy``: also where no other device does. Nobody replaces a good disk for nothing, but one
    goes offline for many reasons.
    """
    target = find(pool, key)
    others = suspects(pool, faulty)
    if target is None or target.vdev.state in FAILED or key in {other.key for other in others}:
        return ()
    if not (others or healthy):
        return ()
    said = [f"{target.name} shows no errors"]
    for verb, is_meant in (("failed", True), ("errors", False)):
        names = [t.name for t in others if (t.vdev.state in FAILED) == is_meant]
        if names:
            said.append(f"{', '.join(names)} {'has' if len(names) == 1 else 'have'} {verb}")
    return ("; ".join(said),)
