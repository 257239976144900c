"""How pools depend on a disk: the effect of a pull, running repairs, and room for a new disk."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from zconsole.actions.candidates import Candidate, held, judge_device
from zconsole.actions.offline import plan_offline
from zconsole.actions.plan import ActionPlan, Precondition, Situation
from zconsole.actions.running_scans import describe
from zconsole.actions.target import Target, find, others_missing, partition_of, stands_in
from zconsole.hardware.device import Device
from zconsole.hardware.location import bay_names
from zconsole.pool.model import FAILED, Vdev, is_group
from zconsole.pool.redundancy import (
    is_complete,
    may_fail,
    members,
    parity,
    redundancy,
)
from zconsole.swap.disk import (
    REPLACE_FIRST,
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
    """One leaf on the disk, with the redundancy left once the disk is pulled."""

    situation: Situation
    """The state of the leaf's pool."""
    target: Target
    left: int
    """How many more devices the top-level vdev may lose after the pull; below 0, data is lost."""

    @property
    def pool(self) -> str:
        """The name of the leaf's pool."""
        return self.situation.pool.name

    @property
    def failed(self) -> bool:
        """Whether the leaf has failed already."""
        return self.target.vdev.state in FAILED

    def is_of(self, disk: SwapDisk) -> bool:
        """Return whether it is the leaf for which the disk was recorded."""
        return (self.pool, self.target.key) == (disk.pool, disk.key)

    @property
    def text(self) -> str:
        """The effect of the pull in one sentence."""
        leaf, top = self.target.vdev, self.target.top.name
        if self.failed and self.left >= 0:
            return (
                f"nothing more: {leaf.called} is {leaf.state} already, and"
                f" {may_fail(self.left)} in {top} of {self.pool} without losing data"
            )
        if self.failed:  # a failed leaf gives no data, so pulling it loses none
            return f"nothing more: {leaf.called} of {self.pool} is {leaf.state} already"
        if self.left < 0:
            return f"pulling it loses data of {top} in {self.pool}: no device may go there"
        return f"without it, {may_fail(self.left)} in {top} of {self.pool} without losing data"


def effects(view: MachineView, old: SwapDisk) -> tuple[Effect, ...]:
    """Return the effect on every data-holding leaf on this disk, the recorded leaf first."""
    device = view.device(old)
    found: list[Effect] = []
    for situation in view.situations:
        pool = situation.pool.name
        lost = [
            target
            for target in leaves_of(situation.pool)
            # Spares and caches hold no data that a pull could lose.
            if target.vdev.vclass not in ("spare", "cache")
            if (pool, target.key) == (old.pool, old.key) or _goes(situation, target, old, device)
        ]
        along = [target.vdev for target in lost]
        found += (Effect(situation, each, left_without(each, *along)) for each in lost)
    return tuple(sorted(found, key=lambda effect: not effect.is_of(old)))


def _goes(situation: Situation, target: Target, old: SwapDisk, device: Device | None) -> bool:
    """Return whether a leaf is on this disk; ``device`` is None if the disk is out."""
    here = leaf_device(situation, target.vdev)
    if device is None or here is None:
        # A path alone is not enough: it may name a bay, which another disk may have by now.
        return here is device and disk_of_leaf(situation, target).whole == old.whole != ""
    return same_unit(here, device)


def left_without(target: Target, *along: Vdev) -> int:
    """Return how many more devices the top-level vdev may lose once this leaf is gone.

    Below 0, data is lost. ``along``: leaves that go together with it.
    """
    top = target.top
    for leaf in (target.vdev, *along):
        top = _without(top, leaf)
    absent = sum(not is_complete(member) for member in members(top))
    return parity(top) - absent


def hindrance(situation: Situation, target: Target, along: Collection[str] = ()) -> str:
    """Return why the vdev can't spare one more device now; empty if it can.

    Leaves with keys in ``along`` are on the same disk and don't count. zpool marks a device as
    resilvering only once the first bytes were written to it; so, if the kernel doesn't tell which
    devices are unfilled, every running resilver counts.
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
    repaired = any(scan.vdev in (None, target.top.name) for scan in situation.repairing)
    if repaired and any(leaf.unfilled is None for leaf in others):
        return f"a resilver runs, and may be filling another device of {target.top.name}"
    return ""


def plan_offline_safely(situation: Situation, key: str, along: Collection[str] = ()) -> ActionPlan:
    """Plan to take a device offline, refused as well while another vdev member is missing.

    Leaves with keys in ``along`` are on the same disk and go with it.
    """
    plan = plan_offline(situation, key)
    if not plan.steps:
        return plan

    def _check(now: Situation) -> str | None:
        now = with_filled(now)
        target = find(now.pool, key)
        # A complete spare or new device in its place makes up for it.
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


def waits_its_turn(situation: Situation, leaf: Vdev | None) -> bool:
    """Return whether the device's resilver is deferred until the running one ends."""
    running = situation.active("resilver") is not None
    return running and leaf is not None and leaf.awaiting_resilver


def filling(situation: Situation, leaf: Vdev | None = None) -> str:
    """Describe the running or next resilver or rebuild.

    ``leaf``: the device that is waited for; the running resilver may fill other devices only.
    """
    if situation.suspended:
        return f"{situation.pool.name} is suspended: no resilver runs"
    runs = "; ".join(map(describe, situation.repairing))
    if waits_its_turn(situation, leaf):
        return f"its own resilver, which starts after the running one ({runs})"
    if not runs and situation.waiting:
        return "the next resilver (awaiting resilver)"
    return runs or "the resilver to begin"


def marked(view: MachineView) -> MachineView:
    """Return the view with ``with_filled`` applied to every pool."""
    others = tuple(map(with_filled, view.others))
    return replace(view, situation=with_filled(view.situation), others=others)


def without(
    view: MachineView, disks: Iterable[SwapDisk], also_present: bool = False
) -> MachineView:
    """Return the view with the leaves of disks that left the machine counted as lost.

    A pool notices a pull only at its next read or write, and its state is sampled later still.
    ``also_present``: whether the disks that are in the machine count as lost, too.
    """
    for disk in disks:
        out = also_present or view.device(disk) is None
        found = view.leaf_of(disk) if out else None
        if found is None or found[1].vdev.state in FAILED:
            continue
        situation, target = found
        root = _without(situation.pool.root, target.vdev)
        view = view.having(replace(situation, pool=replace(situation.pool, root=root)))
    return view


def with_filled(situation: Situation) -> Situation:
    """Return the situation with every device marked as resilvering that a running repair may fill.

    These are the devices that the kernel reports as unfilled and, if it does not report that, the
    new devices of replacing and spare groups.
    """
    scans = situation.repairing
    if not scans:
        return situation
    root = situation.pool.root
    # A resilver is of the whole pool and names no vdev; a rebuild is of one top-level vdev.
    tops = tuple(
        _filled(top) if any(x.vdev in (None, top.name) for x in scans) else top
        for top in root.children
    )
    return replace(situation, pool=replace(situation.pool, root=root._replace(children=tops)))


def _filled(vdev: Vdev, newcomer: bool = False) -> Vdev:
    """Mark unfilled leaves below a vdev; ``newcomer``: it is a new device in a group."""
    if not vdev.children:
        filled = vdev.unfilled or (newcomer and vdev.unfilled is None)
        return vdev._replace(resilvering=True) if filled else vdev
    group = is_group(vdev)
    # The first child of a group is the old device, all others are new.
    children = tuple(
        _filled(child, newcomer or (group and number > 0))
        for number, child in enumerate(vdev.children)
    )
    return vdev._replace(children=children)


def untouchable(situation: Situation, old: SwapDisk) -> tuple[SwapDisk, ...]:
    """Return the disks whose loss would lose data once this disk is out."""
    pool = situation.pool
    target = find(pool, old.key)
    root = pool.root if target is None else _without(pool.root, target.vdev)
    stay = {
        id(leaf)
        for top, entry in redundancy(replace(pool, root=root))
        for leaf in top.leaves()
        if leaf.name in entry.untouchable
    }
    return tuple(disk_of_leaf(situation, leaf) for leaf in leaves_of(pool) if id(leaf.vdev) in stay)


def redundancy_words(situation: Situation, only: Vdev | None = None) -> tuple[str, ...]:
    """Return how many more devices may fail: one sentence per top-level vdev with data.

    ``only``: the one top-level vdev to describe.
    """
    said: list[str] = []
    for top, entry in redundancy(situation.pool):
        if only is not None and top is not only:
            continue
        left = f"{may_fail(entry.left)} in {entry.vdev} without losing data"
        if not entry.left:
            left = f"{entry.vdev} has no redundancy left"
        unread = tuple(leaf.called for leaf in top.leaves() if leaf.name in entry.unread)
        said.append(", ".join(filter(None, (left, entry._replace(unread=unread).reservation))))
    return tuple(said)


def kept_words(situation: Situation, target: Target, name: str) -> str:
    """Describe the redundancy while the old device, called ``name``, stays until it is replaced."""
    entries = redundancy(situation.pool)
    left = next((entry.left for top, entry in entries if top is target.top), None)
    if left == 0:
        return "Redundancy stays as it is: none left"
    reduced = left is not None and left < parity(target.top)
    # Which blocks of a device need repair is unknown (see ``is_complete``).
    unread = target.vdev.errors.total and is_complete(target.vdev)
    but = f", except for blocks that {name} can't read" if unread else ""
    return f"Redundancy {'does not drop further' if reduced else 'never drops'}{but}"


def _without(vdev: Vdev, leaf: Vdev) -> Vdev:
    """Return the tree with one leaf marked REMOVED."""
    if vdev is leaf:
        return vdev._replace(state="REMOVED")
    if not vdev.children:
        return vdev
    return vdev._replace(children=tuple(_without(child, leaf) for child in vdev.children))


NAMED_BAYS = 3
"""Number of empty bays that are named."""


def empty_bays(view: MachineView, old: SwapDisk) -> str | None:
    """Return the empty bays for a disk such as the old one; None if the bays are not known.

    The text is ``Slot 11 or Slot 12``, and empty if every bay is full.
    """
    path = old.node or old.whole or old.path
    shelves = [each for each in view.enclosures if bool(each.key) != ("nvme" in path)]
    if not shelves:
        return None
    names = bay_names(tuple(view.enclosures))
    empty = [
        names[each.key, slot.name] for each in shelves for slot in each.slots if not slot.disks
    ]
    empty = [name for name in empty if name != old.bay]  # its own, if it is out
    # Where vdev_id.conf names the bays, an empty one's name is not known.
    if len(empty) > NAMED_BAYS or (old.bay and old.bay not in names.values()):
        return f"an empty bay ({len(empty)} are empty)" if empty else ""
    return " or ".join(empty)


def free_bay(view: MachineView, old: SwapDisk) -> str:
    """Return the empty bays for a disk such as the old one, as far as they are known."""
    return empty_bays(view, old) or "a free bay"


def in_bay_of(disk: SwapDisk, view: MachineView) -> SwapDisk | None:
    """Return a pool's disk in the bay of this one, which is out: a wrong one was put back there.

    It stays: pulled again, its pool would miss it again.
    """
    there = (device for device in view.devices if device.kind == "disk")
    others = {d.path for d in there if disk.shares_place(d) and not disk.is_on(d)} - {disk.whole}
    return next((d for d in view.leaf_disks if d.whole in others), None) if others else None


def holding(disk: SwapDisk, other: SwapDisk) -> str:
    """Return that a pool's disk is in the bay of this one, and stays there."""
    return f"{disk.place} holds {other.mark or other.name} of {other.pool}, which stays there"


def bay_for_new(swap: Checklist, view: MachineView) -> str:
    """Return where to insert the new disk: the old one's bay, or a free one if that is in use."""
    old = swap.old
    if (swap.mode == REPLACE_FIRST and swap.pulled is None) or in_bay_of(old, view):
        return free_bay(view, old)
    return old.place or "the same bay"


class Inserted(NamedTuple):
    """A disk inserted since the swap began, and whether it can be used."""

    device: Device
    verdict: str = "fits"
    """One of "fits", "unnamed" (by udev), "shown", "elsewhere" or "unfit".

    "shown": the machine still lists the old disk, though the operator said that it is out.
    """
    problems: tuple[str, ...] = ()
    """The reasons if it is unfit."""


def inserted(swap: Checklist, view: MachineView) -> Inserted | None:
    """Find the disk inserted since the swap began: the first that fits, else the first.

    After the pull, that is also the old disk, and disks in its bay come first. A disk that a pool
    uses is none, wherever it was inserted.
    """
    old, out = swap.old, swap.pulled is not None
    disks = [device for device in view.devices if device.kind == "disk"]
    in_place = [d for d in disks if out and (old.shares_place(d) or old.is_on(d))]
    fresh = [d for d in disks if not any(known.is_on(d) for known in (old, *swap.around))]
    came = (*in_place, *fresh)
    # A new disk in a bay that names the path has the path of the old one.
    used = {disk.whole for disk in view.leaf_disks} - {old.whole} if came else set()
    free = (device for device in came if old.is_on(device) or device.path not in used)
    found = [_judged(swap, view, device) for device in free]
    return next((each for each in found if each.verdict == "fits"), next(iter(found), None))


def _judged(swap: Checklist, view: MachineView, found: Device) -> Inserted:
    """Judge an inserted disk."""
    old = swap.old
    if found.unnamed:  # its only path may change at the next boot
        return Inserted(found, "unnamed")
    if old.is_on(found):
        if swap.unseen:
            return Inserted(found, "shown")
    elif (
        swap.mode != REPLACE_FIRST
        and swap.pulled is not None
        and old.shares_place(found) is False
        and "elsewhere" not in swap.passed
        and in_bay_of(old, view) is None
    ):
        return Inserted(found, "elsewhere")
    target = view.target(old.key)
    if target is None or is_same(swap, view, found):
        return Inserted(found)
    problems = judge_inserted(view, target, found).problems
    return Inserted(found, "unfit" if problems else "fits", problems)


def is_same(swap: Checklist, view: MachineView, found: Device) -> bool:
    """Return whether it is the old disk; without serial and WWN, the pool's label decides."""
    marked = swap.old.is_marked(found)
    if marked is not None:
        return marked
    return swap.old.is_on(found) and found.contents.zfs_pool == view.pool.name


def judge_inserted(view: MachineView, target: Target, found: Device) -> Candidate:
    """Judge an inserted disk, or the partition of it that takes the place of the old one."""
    part, smart = partition_of(target.vdev), view.counts(found)
    inside = found if part is None else partition_on(found, part)
    device = inside or found
    judged = judge_device(view.pool, target, device, view.situation.facts)
    # zpool replace overwrites the contents of a disk with the old path without asking.
    problems = list(dict.fromkeys((*judged.problems, *held(view.pool, device))))
    cautions = list(judged.cautions)
    if smart is not None and smart.passed is False:
        problems.append(f"SMART reports a failing disk: {smart.words()}")
    if smart is not None and (smart.reallocated or smart.pending or smart.uncorrectable):
        cautions.append(f"it is not new: {smart.words()}")
    if inside is None:
        problems.append(
            f"{target.name} is partition {part} of its disk: make the same partitions on the"
            f" new one (sgdisk --replicate={found.node} /dev/OTHER, sgdisk --randomize-guids"
            f" {found.node})"
        )
    return replace(judged, problems=tuple(problems), cautions=tuple(cautions))
