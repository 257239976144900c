"""What pulling a disk does to every pool that is on it, and which disks must stay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from zconsole.actions.plan import Situation
from zconsole.actions.target import Target, find, members
from zconsole.pool.model import Vdev
from zconsole.pool.redundancy import Redundancy, is_complete, parity, redundancy
from zconsole.pool.topology import data_vdevs
from zconsole.swap.disk import SwapDisk, disk_of_leaf, leaves_of
from zconsole.swap.view import MachineView
from zconsole.units import counted


@dataclass(frozen=True, slots=True)
class Effect:
    """One leaf that goes with the disk."""

    pool: str
    key: str
    name: str
    vdev: str
    left: int
    """How many more devices its top-level vdev may lose afterwards; below 0, data is lost."""

    @property
    def text(self) -> str:
        """The effect in one sentence."""
        if self.left < 0:
            return f"pulling it loses data of {self.vdev} in {self.pool}: no device may go there"
        more = counted(self.left, "more device")
        return f"without it, {more} may fail in {self.vdev} of {self.pool} without losing data"


def effects(v: MachineView, old: SwapDisk) -> tuple[Effect, ...]:
    """Every leaf of every pool on this disk that still holds data there, the disk's own first."""
    found = (effect for s in v.situations for effect in _in_pool(s, old))
    return tuple(sorted(found, key=lambda e: (e.pool, e.key) != (old.pool, old.key)))


def _in_pool(s: Situation, old: SwapDisk) -> Iterator[Effect]:
    for key, leaf in leaves_of(s.pool):
        target = find(s.pool, key)
        if target is None or leaf.vclass in ("spare", "cache"):
            continue
        own = (s.pool.name, key) == (old.pool, old.key)
        if own or disk_of_leaf(s, leaf, key).whole == old.whole != "":
            yield Effect(s.pool.name, key, leaf.name, target.top.name, left_without(target))


def left_without(target: Target) -> int:
    """How many more devices its top-level vdev may lose once this leaf is gone; below 0: data."""
    top = _without(target.top, target.vdev)
    absent = sum(not is_complete(member) for member in members(top))
    return parity(top) - absent


def others_missing(target: Target) -> tuple[str, ...]:
    """Members of the same top-level vdev that are not complete, the leaf's own left out."""
    return tuple(
        member.name
        for member in members(target.top)
        if not is_complete(member) and not any(v is target.vdev for v in member.walk())
    )


def stands_in(target: Target) -> bool:
    """Whether another device in the same place, a spare or the new one, is complete."""
    siblings = target.group.children if target.group else ()
    return any(is_complete(v) for v in siblings if v is not target.vdev)


def untouchable(s: Situation, old: SwapDisk) -> tuple[SwapDisk, ...]:
    """Disks whose loss loses data once this one is out: all that no redundancy covers then."""
    target = find(s.pool, old.key)
    root = s.pool.root if target is None else _without(s.pool.root, target.vdev)
    entries = redundancy(root, s.pool.scans)
    names = [
        (top, name)
        for top, entry in zip(data_vdevs(root), entries, strict=True)
        for name in entry.untouchable
    ]
    disks = {id(leaf): disk_of_leaf(s, leaf, key) for key, leaf in leaves_of(s.pool)}
    return tuple(
        disks[id(leaf)]
        for top, name in names
        for leaf in top.leaves()
        if leaf.name == name and id(leaf) in disks
    )


def redundancy_words(s: Situation) -> tuple[str, ...]:
    """How many more devices each top-level vdev may lose now, one sentence each."""
    return tuple(_of_vdev(entry) for entry in redundancy(s.pool.root, s.pool.scans))


def _of_vdev(entry: Redundancy) -> str:
    if not entry.left:
        return f"{entry.vdev} has no redundancy left"
    return f"{counted(entry.left, 'more device')} may fail in {entry.vdev}"


def _without(vdev: Vdev, leaf: Vdev) -> Vdev:
    """The same tree, with one leaf removed from the machine."""
    if vdev is leaf:
        return vdev._replace(state="REMOVED")
    if not vdev.children:
        return vdev
    return vdev._replace(children=tuple(_without(child, leaf) for child in vdev.children))
