"""Finding the vdev of an action, and naming it so that zpool cannot mistake it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from zconsole.pool.model import FAILED, Pool, Vdev, is_group, placed
from zconsole.pool.redundancy import is_complete, members

_PARTITION = re.compile(r"-part(\d+)$|^/dev/(?:(?:s|h|v|xv)d[a-z]+|\w*\dp)(\d+)$")
"""A partition in udev's links, or in kernel names; a whole disk's link may end in a digit, too."""


@dataclass(frozen=True, slots=True)
class Target:
    """A vdev with its parent and top-level vdev."""

    key: str
    """The key of ``model.placed``: its GUID where the source knows it."""
    vdev: Vdev
    parent: Vdev
    top: Vdev
    top_key: str

    @property
    def name(self) -> str:
        """The displayed name: ``Vdev.called``, with the former path if that is a GUID."""
        name, note = self.vdev.called, self.vdev.note
        return f"{name} ({note})" if name == self.vdev.name and note.startswith("was ") else name

    @property
    def argument(self) -> str:
        """The name to give to zpool: ``Vdev.argument``, of a vdev with devices its printed name.

        Not every release accepts the GUID of an interior vdev.
        """
        return self.vdev.name if self.vdev.children else self.vdev.argument

    @property
    def group(self) -> Vdev | None:
        """The replacing or spare vdev around it, else None."""
        return self.parent if is_group(self.parent) else None

    @property
    def spares(self) -> tuple[Vdev, ...]:
        """The spares that stand in for this device."""
        group = self.group
        spared = group is not None and group.kind == "spare" and group.children[0] is self.vdev
        return group.children[1:] if group is not None and spared else ()


@dataclass(frozen=True, slots=True)
class Swap:
    """An old device, by key, and the path of its replacement."""

    old: str
    new: str


def targets(pool: Pool) -> Iterator[Target]:
    """Yield every vdev of a pool, in the order of ``zpool status``."""
    places = {place.key: place for place in placed(pool.root)}
    for place in places.values():
        if place.top is not None and place.parent is not None:
            parent, top = places[place.parent].vdev, places[place.top].vdev
            yield Target(place.key, place.vdev, parent, top, place.top)


def find(pool: Pool, key: str) -> Target | None:
    """Return the vdev with this key; None if the pool no longer has it."""
    return next((target for target in targets(pool) if target.key == key), None)


def key_of(pool: Pool, vdev: Vdev) -> str | None:
    """Return the key of a vdev of this very pool object; None if it has no such vdev."""
    return next((place.key for place in placed(pool.root) if place.vdev is vdev), None)


def stands_in(target: Target) -> bool:
    """Return whether another device in the same place, a spare or the new one, is complete."""
    siblings = target.group.children if target.group else ()
    return any(is_complete(v) for v in siblings if v is not target.vdev)


def disk_path(pool: Pool, leaf: Vdev, expands: bool) -> str:
    """Return the name to give to ``zpool online``: the GUID, or the disk's path if it expands.

    Where it ``expands`` (``-e``, or autoexpand), zpool opens the name it was given to relabel a
    whole disk, and knows no GUID there (zpool_vdev_online, libzfs_pool.c; seen on 2.3.9: "cannot
    expand GUID: no such device in pool"). For a whole disk, status prints the name without the
    partition. The GUID is kept if another device has the same path: zpool would take the first of
    them.
    """
    path = leaf.path or ""
    folder, _, file = path.rpartition("/")
    alone = not any(v.path == path and v.guid != leaf.guid for v in pool.root.leaves())
    relabeled = expands and file != leaf.name.rpartition("/")[2] and alone
    if not path.startswith("/") or (leaf.guid and not relabeled):
        return leaf.guid or path or leaf.name
    return f"{folder}/{leaf.name}" if file.startswith(leaf.name) else path


def partition_in(path: str) -> str | None:
    """Return the partition number in a path; None for a whole disk."""
    match = _PARTITION.search(path)
    return next(filter(None, match.groups()), None) if match else None


def partition_of(leaf: Vdev) -> str | None:
    """Return the partition number of a leaf; None for a whole disk.

    For a whole disk, zpool prints the name without the partition that it made itself, which is
    number 1. A full path (``-P``) does not tell, so partition 1 counts as a whole disk there.
    """
    path = leaf.path or ""
    if path.rpartition("/")[2] != leaf.name.rpartition("/")[2]:
        return None
    part = partition_in(path)
    return None if part == "1" and leaf.name.startswith("/") else part


def failed(pool: Pool, key: str | None = None) -> tuple[Target, ...]:
    """Return the failed data devices, below the vdev of this key or in all of the pool.

    Excluded are devices that are being replaced, and the new devices of such replaces.
    """
    root = found.vdev if key and (found := find(pool, key)) else pool.root
    inside = {id(leaf) for leaf in root.leaves()}
    return tuple(
        target
        for target in targets(pool)
        if id(target.vdev) in inside and target.vdev.state in FAILED
        if target.vdev.vclass not in ("spare", "cache")
        if target.group is None
        or (target.group.kind == "spare" and target.group.children[0] is target.vdev)
    )


def find_path(pool: Pool, paths: tuple[str, ...]) -> Target | None:
    """Return the leaf whose path, or first partition, is one of these; None without one."""
    # zpool partitions a whole disk itself and puts its vdev into partition 1.
    wanted = {name for path in paths if path for name in (path, f"{path}-part1")}
    leaves = (target for target in targets(pool) if not target.vdev.children)
    return next((leaf for leaf in leaves if leaf.vdev.path in wanted), None)


def others_missing(target: Target) -> tuple[Vdev, ...]:
    """Return the incomplete members of the leaf's top-level vdev, without its own."""
    return tuple(
        member
        for member in members(target.top)
        if not is_complete(member) and all(vdev is not target.vdev for vdev in member.walk())
    )


def suspects(pool: Pool, faulty: Iterable[str] = ()) -> tuple[Target, ...]:
    """Return the devices to replace first: failed, then ``faulty`` (by key), then with errors."""
    every = {target.key: target for target in targets(pool)}
    noisy = (t for t in every.values() if t.vdev.errors.total and t.vdev.vclass != "cache")
    counted = (t.key for t in noisy if not t.vdev.shared)
    keys = dict.fromkeys((*(t.key for t in failed(pool)), *faulty, *counted))
    return tuple(every[key] for key in keys if key in every and not every[key].vdev.children)


def doubts(
    pool: Pool, key: str, faulty: Iterable[str] = (), healthy: bool = True
) -> tuple[str, ...]:
    """Return the doubt that another device is meant: this one has no errors, others do.

    ``healthy``: doubt also if no other device has errors. That is for a replace, as nobody replaces
    a good disk for nothing; a good disk is taken offline for many reasons.
    """
    target = find(pool, key)
    others = suspects(pool, faulty)
    if target is None or target.vdev.state in FAILED or key in {other.key for other in others}:
        return ()
    if not (others or healthy):
        return ()
    found: dict[tuple[str, str, str], list[str]] = {}
    for other in sorted(others, key=lambda other: other.vdev.state not in FAILED):
        state = other.vdev.state
        words = ("has", "have", "failed" if state in FAILED else "errors")
        if state in ("OFFLINE", "REMOVED"):  # somebody may have taken it offline, or pulled it
            words = ("is", "are", state)
        found.setdefault(words, []).append(other.name)
    said = [f"{target.name} shows no errors"]
    for (one, several, what), names in found.items():
        said.append(f"{', '.join(names)} {one if len(names) == 1 else several} {what}")
    return ("; ".join(said),)
