"""What a disk is to the pools: what its pull does, what is being filled, whether a new one fits."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from zconsole.actions.candidates import held, judge_device
from zconsole.actions.offline import plan_offline
from zconsole.actions.plan import ActionPlan, Precondition, Situation
from zconsole.actions.running_scans import describe
from zconsole.actions.target import Target, find, members, others_missing, partition_of, stands_in
from zconsole.hardware.device import Device
from zconsole.pool.model import Scan, Vdev
from zconsole.pool.redundancy import (
    REPAIRS,
    Redundancy,
    by_vdev,
    is_complete,
    may_fail,
    of_pool,
    parity,
)
from zconsole.pool.topology import FAILED, is_group
from zconsole.swap.disk import (
    Checklist,
    MachineView,
    SwapDisk,
    disk_of_leaf,
    leaf_device,
    leaves_of,
    partition_on,
    same_unit,
)


@dataclass(frozen=True, slots=True)
class Effect:
    """One leaf that goes with the disk."""

    situation: Situation
    """Its pool."""
    target: Target
    left: int
    """How many more devices its top-level vdev may lose afterwards; below 0, data is lost."""

    @property
    def pool(self) -> str:
        """The name of its pool."""
        return self.situation.pool.name

    @property
    def failed(self) -> bool:
        """Whether the leaf has failed already."""
        return self.target.vdev.state in FAILED

    def is_of(self, disk: SwapDisk) -> bool:
        """Whether it is the very leaf that a disk is remembered by."""
        return (self.pool, self.target.key) == (disk.pool, disk.key)

    @property
    def text(self) -> str:
        """The effect in one sentence."""
        leaf, top = self.target.vdev, self.target.top.name
        if self.failed and self.left >= 0:
            return (
                f"nothing more: {leaf.called} is {leaf.state} already, and"
                f" {may_fail(self.left)} in {top} of {self.pool}"
            )
        if self.failed:  # what it no longer gives can't be lost by pulling it
            return f"nothing more: {leaf.called} of {self.pool} is {leaf.state} already"
        if self.left < 0:
            return f"pulling it loses data of {top} in {self.pool}: no device may go there"
        return f"without it, {may_fail(self.left)} in {top} of {self.pool} without losing data"


def effects(view: MachineView, old: SwapDisk) -> tuple[Effect, ...]:
    """Every leaf of every pool on this disk that still holds data there, the disk's own first."""
    device = view.device(old)
    found: list[Effect] = []
    for situation in view.situations:
        pool = situation.pool.name
        lost = [
            target
            for target in leaves_of(situation.pool)
            if target.vdev.vclass not in ("spare", "cache")
            if (pool, target.key) == (old.pool, old.key) or _goes(situation, target, old, device)
        ]
        along = [target.vdev for target in lost]
        found += (Effect(situation, each, left_without(each, *along)) for each in lost)
    return tuple(sorted(found, key=lambda effect: not effect.is_of(old)))


def _goes(situation: Situation, target: Target, old: SwapDisk, device: Device | None) -> bool:
    """Whether a leaf is on this disk; ``device`` is the disk, as long as it is there."""
    here = leaf_device(situation, target.vdev)
    if device is None or here is None:
        # A path alone is not enough: another disk may have the bay by now.
        return here is device and disk_of_leaf(situation, target).whole == old.whole != ""
    return same_unit(here, device)


def left_without(target: Target, *along: Vdev) -> int:
    """How many more devices its top-level vdev may lose once this leaf is gone; below 0: data.

    ``along``: leaves that go with it.
    """
    top = target.top
    for leaf in (target.vdev, *along):
        top = _without(top, leaf)
    absent = sum(not is_complete(member) for member in members(top))
    return parity(top) - absent


def hindrance(situation: Situation, target: Target, along: Collection[str] = ()) -> str:
    """Why its vdev can't do without one more device now; empty where it can.

    Those whose keys are ``along`` are on the same disk. zpool marks what is being filled only
    once the first bytes were written to it: where the kernel doesn't tell, every resilver counts.
    """
    beside = {id(each.vdev) for each in leaves_of(situation.pool) if each.key in along}
    others = [leaf for leaf in target.top.leaves() if leaf is not target.vdev]
    missing = [
        member.called
        for member in others_missing(target)
        if not beside & {id(vdev) for vdev in member.walk()}
    ]
    if missing:
        return f"{', '.join(missing)} of {target.top.name} is missing or being filled"
    repaired = any(scan.vdev in (None, target.top.name) for scan in repairing(situation))
    if repaired and any(leaf.unfilled is None for leaf in others):
        return f"a resilver runs, and may be filling another device of {target.top.name}"
    return ""


def plan_offline_safely(situation: Situation, key: str, along: Collection[str] = ()) -> ActionPlan:
    """``plan_offline``, refused as well while another member of the vdev is missing.

    Those whose keys are ``along`` are on the same disk, and go with it.
    """
    plan = plan_offline(situation, key)
    if not plan.steps:
        return plan

    def _check(now: Situation) -> str | None:
        now = with_filled(now)
        target = find(now.pool, key)
        if target is None or stands_in(target):
            return None
        why = hindrance(now, target, along)
        return f"{why}: wait until it is complete" if why else None

    need = Precondition("no other device of the vdev is missing", _check)
    return replace(
        plan,
        preconditions=(*plan.preconditions, need),
        refused=plan.refused or _check(situation),
    )


def repairing(situation: Situation) -> tuple[Scan, ...]:
    """The resilvers and rebuilds that run."""
    return tuple(scan for scan in situation.running if scan.function in REPAIRS)


def repairs(situation: Situation) -> bool:
    """Whether a resilver or rebuild runs, or a device waits for one."""
    waiting = any(leaf.awaiting_resilver for leaf in situation.pool.root.leaves())
    return waiting or bool(repairing(situation))


def waits_its_turn(situation: Situation, leaf: Vdev | None) -> bool:
    """Whether the device's resilver starts only after the one that runs."""
    running = situation.active("resilver") is not None
    return running and leaf is not None and leaf.awaiting_resilver


def filling(situation: Situation, leaf: Vdev | None = None) -> str:
    """The running resilver or rebuild in words; that one is about to begin where none runs.

    ``leaf``: the device that is waited for; the one that runs may be of others only.
    """
    if situation.suspended:
        return f"{situation.pool.name} is suspended: no resilver runs"
    runs = "; ".join(map(describe, repairing(situation)))
    if waits_its_turn(situation, leaf):
        return f"its own resilver, which starts after the running one ({runs})"
    if not runs and repairs(situation):
        return "the next resilver (awaiting resilver)"
    return runs or "the resilver to begin"


def marked(view: MachineView) -> MachineView:
    """The same, each pool as ``with_filled`` makes it."""
    others = tuple(map(with_filled, view.others))
    return replace(view, situation=with_filled(view.situation), others=others)


def without(view: MachineView, disks: Iterable[SwapDisk]) -> MachineView:
    """The same, the leaves of disks that left the machine counted as lost.

    The pool notices a pull only with its next read or write, and is sampled after that.
    """
    for disk in disks:
        found = None if view.device(disk) is not None else view.leaf_of(disk)
        if found is None or found[1].vdev.state in FAILED:
            continue
        situation, target = found
        root = _without(situation.pool.root, target.vdev)
        view = view.having(replace(situation, pool=replace(situation.pool, root=root)))
    return view


def with_filled(situation: Situation) -> Situation:
    """The same, with every device marked that a running repair fills, or may fill.

    Those are the ones that the kernel calls unfilled, and newcomers of which it doesn't tell.
    """
    scans = repairing(situation)
    if not scans:
        return situation
    root = situation.pool.root
    tops = tuple(
        _filled(top) if any(x.vdev in (None, top.name) for x in scans) else top
        for top in root.children
    )
    return replace(situation, pool=replace(situation.pool, root=root._replace(children=tops)))


def _filled(vdev: Vdev, newcomer: bool = False) -> Vdev:
    if not vdev.children:
        filled = vdev.unfilled or (newcomer and vdev.unfilled is None)
        return vdev._replace(resilvering=True) if filled else vdev
    group = is_group(vdev)
    children = tuple(
        _filled(child, newcomer or (group and number > 0))
        for number, child in enumerate(vdev.children)
    )
    return vdev._replace(children=children)


def untouchable(situation: Situation, old: SwapDisk) -> tuple[SwapDisk, ...]:
    """Disks whose loss loses data once this one is out: all that no redundancy covers then."""
    pool = situation.pool
    target = find(pool, old.key)
    root = pool.root if target is None else _without(pool.root, target.vdev)
    entries = by_vdev(root, pool.scans, checkpoint=pool.checkpoint is not None)
    stay = {
        id(leaf)
        for top, entry in entries
        for leaf in top.leaves()
        if leaf.name in entry.untouchable
    }
    return tuple(disk_of_leaf(situation, leaf) for leaf in leaves_of(pool) if id(leaf.vdev) in stay)


def redundancy_words(situation: Situation) -> tuple[str, ...]:
    """How many more devices each top-level vdev may lose now, one sentence each."""
    return tuple(_of_vdev(entry) for _, entry in of_pool(situation.pool))


def vdev_words(situation: Situation, target: Target) -> str:
    """The same of the top-level vdev of one device; empty where that holds no data."""
    entry = _entry(situation, target)
    return "" if entry is None else _of_vdev(entry)


def kept_words(situation: Situation, target: Target) -> str:
    """What becomes of redundancy where the device stays in until another one is filled."""
    entry = _entry(situation, target)
    if entry is not None and not entry.left:
        return "Redundancy stays as it is: none left"
    # Where ZFS repairs it, what it lacks is unknown: see is_complete.
    if target.vdev.errors.total and is_complete(target.vdev):
        name = target.name
        return f"{name} counts for redundancy meanwhile, unless ZFS has to repair blocks on it"
    reduced = entry is not None and entry.left < parity(target.top)
    return f"Redundancy {'does not drop further' if reduced else 'never drops'}"


def _entry(situation: Situation, target: Target) -> Redundancy | None:
    return next((entry for top, entry in of_pool(situation.pool) if top is target.top), None)


def _of_vdev(entry: Redundancy) -> str:
    if not entry.left:
        return f"{entry.vdev} has no redundancy left"
    return f"{may_fail(entry.left)} in {entry.vdev}"


def _without(vdev: Vdev, leaf: Vdev) -> Vdev:
    """The same tree, with one leaf removed from the machine."""
    if vdev is leaf:
        return vdev._replace(state="REMOVED")
    if not vdev.children:
        return vdev
    return vdev._replace(children=tuple(_without(child, leaf) for child in vdev.children))


class Inserted(NamedTuple):
    """The disk that came after the pull, judged."""

    device: Device
    verdict: str = "fits"
    """fits, unnamed (by udev), shown (the old one, said to be out), elsewhere or unfit."""
    problems: tuple[str, ...] = ()
    """Why it is unfit."""


def inserted(swap: Checklist, view: MachineView) -> Inserted | None:
    """The disk that came after the pull: the old one again, one in its place, or one elsewhere."""
    old = swap.old
    disks = [device for device in view.devices if device.kind == "disk"]
    in_place = [d for d in disks if old.shares_place(d) or old.is_on(d)]
    fresh = [d for d in disks if not any(known.is_on(d) for known in swap.around)]
    found = next(iter((*in_place, *fresh)), None)
    if found is None:
        return None
    if found.unnamed:  # it has no path that lasts
        return Inserted(found, "unnamed")
    if old.is_on(found):
        if swap.unseen:
            return Inserted(found, "shown")
    elif old.shares_place(found) is False and "elsewhere" not in swap.passed:
        return Inserted(found, "elsewhere")
    problems = _unfit(swap, view, found)
    return Inserted(found, "unfit" if problems else "fits", problems)


def is_same(swap: Checklist, view: MachineView, found: Device) -> bool:
    """Whether it is the old disk again; without serial and WWN, whether it has the pool's label."""
    marked = swap.old.is_marked(found)
    if marked is not None:
        return marked
    return swap.old.is_on(found) and found.contents.zfs_pool == view.pool.name


def _unfit(swap: Checklist, view: MachineView, found: Device) -> tuple[str, ...]:
    """Why an inserted disk can't be used; () when it can, or is the old one."""
    target = view.target(swap.old.key)
    if target is None or is_same(swap, view, found):
        return ()
    part = partition_of(target.vdev)
    inside = None if part is None else partition_on(found, part)
    device = found if inside is None else inside
    judged = judge_device(view.pool, target, device, view.situation.facts)
    # zpool also overwrites what is on a disk with the path of the old one: that is not wanted.
    problems = list(dict.fromkeys((*judged.problems, *held(view.pool, device))))
    smart = view.counts(found)
    if smart is not None and smart.passed is False:
        problems.append(f"SMART reports a failing disk: {smart.words()}")
    if part is not None and inside is None:
        problems.append(
            f"{target.name} is partition {part} of its disk: make the same partitions on the"
            f" new one (sgdisk --replicate={found.node} /dev/OTHER, sgdisk --randomize-guids"
            f" {found.node})"
        )
    return tuple(problems)
