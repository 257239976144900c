"""What each step costs: what Back does once it is taken, or what can't be undone then."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from zconsole.actions.candidates import Candidate, held, judge, spares
from zconsole.actions.checkpoint import plan_discard
from zconsole.actions.clear import plan_clear
from zconsole.actions.follow import leftover
from zconsole.actions.locate import ON_LABEL, light_effects
from zconsole.actions.offline import plan_detach, plan_offline, plan_online
from zconsole.actions.plan import (
    ActionPlan,
    LightOrder,
    Precondition,
    Situation,
    Step,
    decide,
)
from zconsole.actions.replace import plan_replace
from zconsole.actions.running_scans import describe
from zconsole.actions.scrub import plan_resilver, plan_scrub
from zconsole.actions.target import Swap, Target, find, find_path, stands_in
from zconsole.hardware.device import Device
from zconsole.hardware.light import LASTING
from zconsole.pool.model import Scan, Vdev
from zconsole.pool.redundancy import is_complete
from zconsole.pool.scan_outcome import settling
from zconsole.pool.topology import FAILED
from zconsole.swap.checklist import (
    REPLACE_FIRST,
    SCRUB_CANCELED,
    Answer,
    Checklist,
    SwapStage,
    sentence,
)
from zconsole.swap.disk import MachineView, SwapDisk, device_of, disk_of
from zconsole.swap.effects import Effect, effects, hindrance, untouchable, with_filled
from zconsole.swap.refusal import partition_of
from zconsole.units import counted, size


class StepCost(NamedTuple):
    """The way back from a step that is taken; one of ``undo`` and ``final`` is never empty."""

    undo: str = ""
    """What Back does: ``puts it online again``."""
    until: str = ""
    """Until when it does, where that ends."""
    final: str = ""
    """Why there is no way back; with ``undo``, what is lost all the same."""
    brief: str = ""
    """The same in a few words, for a list of steps; empty where nothing is lost."""


COSTS = {
    "spare": StepCost("detaches it again"),
    "offline": StepCost("puts it online again"),
    "light": StepCost("switches it off again"),
    "pull": StepCost("has it put back into its bay, then puts it online again"),
    "insert": StepCost("has it taken out again and the old disk put back"),
    "replace": StepCost(
        "takes the new disk out again",
        until="Until the resilver ends",
        brief="new disk is overwritten",
    ),
    "resilver": StepCost(
        final="when it ends, the old disk leaves the pool for good", brief="no way back after this"
    ),
    "return-spare": StepCost(final="what the spare holds is dropped; it is AVAIL again"),
    "light-off": StepCost("switches it on again"),
    "scrub": StepCost("stops it"),
}
"""By step, where nothing is special about the swap."""


def cost_of(swap: Checklist, step: str) -> StepCost:
    """What a step of this checklist costs."""
    if step == "pull" and swap.mode == REPLACE_FIRST:
        return StepCost(final="the old disk has left the pool already")
    if step == "replace" and swap.same:
        return StepCost("takes it offline again")
    if step == "resilver" and swap.same:
        return COSTS["offline"]._replace(undo="takes it offline again")
    return COSTS.get(step, StepCost())


def plan_light(situation: Situation, disk: SwapDisk, on: bool) -> ActionPlan:
    """Switch the light of the disk's bay; the disk must have one (``SwapDisk.light``)."""
    word = "on" if on else "off"
    step = Step(
        ("zconsole", "light", word, disk.whole),
        f"switch {disk.light} {word}",
        light=LightOrder(on, _remembered(disk)),
    )
    plan = ActionPlan(
        "locate",
        f"Switch the light of {disk.spot} {word}",
        (step,),
        consequences=light_effects(on),
        preconditions=(_same_bay(disk),),
        # A suspended pool is when somebody looks for the bay.
        urgent=lambda _: True,
    )
    return decide(plan, situation)


def _remembered(disk: SwapDisk) -> Device:
    """The disk as it was: its light is found by its serial number, else by its bay."""
    return Device(
        disk.whole, disk.node, serial=disk.serial, bay=disk.bay, locate=disk.light or None
    )


def _same_bay(disk: SwapDisk) -> Precondition:
    """The disk sits in the bay of this light; one that is out leaves its bay where it was."""

    def _check(situation: Situation) -> str | None:
        device = device_of(disk, situation.facts.devices)
        if device is None or disk.shares_place(device) is not False:
            return None
        return f"{disk.mark or disk.name} is in another bay now: {device.bay or device.port}"

    return Precondition(f"{disk.name} is in the same bay, or out", _check)


FILLING = ("zpool replace", "zpool online", "zpool clear", "zpool resilver")
"""What a resilver follows."""
BEGINNING = 10.0
"""Seconds after a command until the resilver that it causes has begun at the latest."""


def waits_its_turn(situation: Situation, leaf: Vdev | None) -> bool:
    """Whether the device's resilver starts only after the one that runs."""
    running = any(scan.function == "resilver" for scan in situation.running)
    return running and leaf is not None and leaf.awaiting_resilver


def filling(situation: Situation, leaf: Vdev | None = None) -> str:
    """The running resilver or rebuild in words; that one is about to begin where none runs.

    ``leaf``: the device that is waited for; the one that runs may be of others only.
    """
    if situation.suspended:
        return f"{situation.pool.name} is suspended: no resilver runs"
    runs = [scan for scan in situation.running if scan.function in ("resilver", "rebuild")]
    if waits_its_turn(situation, leaf):
        return f"its own resilver, which starts after the running one ({_all(runs)})"
    if runs:
        return _all(runs)
    if any(leaf.awaiting_resilver for leaf in situation.pool.root.leaves()):
        return "the next resilver (awaiting resilver)"
    return "the resilver to begin"


def _all(scans: Sequence[Scan]) -> str:
    return "; ".join(map(describe, scans))


def repairs(situation: Situation) -> bool:
    """Whether a resilver or rebuild runs, or a device waits for one."""
    waiting = any(leaf.awaiting_resilver for leaf in situation.pool.root.leaves())
    return waiting or any(scan.function in ("resilver", "rebuild") for scan in situation.running)


def just_ran(swap: Checklist, now: float) -> bool:
    """Whether a command ran so recently that its resilver may not have begun."""
    begun = (entry for entry in swap.log if entry.command.startswith(FILLING))
    return any(0.0 <= now - entry.t < BEGINNING for entry in begun)


SKIP_LIGHT = Answer(
    "no-light",
    "I know the bay: go on without the light",
    means="No light is switched on. Be sure of the bay: compare the label before you pull.",
)


def look_spare(swap: Checklist, view: MachineView, now: float) -> SwapStage | None:
    """Let a hot spare stand in, and wait until it is filled; None once it is."""
    situation = view.situation
    target = find(situation.pool, swap.old.key)
    if swap.pulled is not None or target is None:
        return None
    if stands_in(target) and not just_ran(swap, now):
        return None
    if target.group is not None:
        return SwapStage(
            "spare",
            f"Wait until {target.group.children[-1].name} is filled",
            ("Leave every disk where it is: the old disk is still read.",),
            waits=filling(situation),
        )
    path = swap.spare.whole if swap.spare else ""
    if path not in spares(situation.pool):
        path = next(iter(spares(situation.pool)), path)
    return SwapStage(
        "spare",
        f"Let the hot spare stand in for {swap.old.words}",
        ("Redundancy stays as it is while the disk is swapped; the spare returns afterwards.",),
        plan=plan_replace(situation, Swap(swap.old.key, path)),
        paths=(path,),
    )


def look_offline(swap: Checklist, view: MachineView, now: float) -> SwapStage | None:
    """Take every leaf on the disk offline; None once no pool reads or writes it."""
    del now
    if swap.pulled is not None or (view.devices and device_of(swap.old, view.devices) is None):
        return None
    lost = effects(view, swap.old)
    for effect in lost:
        situation = view.of(effect.pool)
        target = None if situation is None else find(situation.pool, effect.key)
        if situation is None or target is None or target.vdev.state in FAILED:
            continue
        along = [e.key for e in lost if e.pool == effect.pool]
        return _offline(swap, situation, target, effect, along)
    return None


def _offline(
    swap: Checklist,
    situation: Situation,
    target: Target,
    effect: Effect,
    along: Collection[str],
) -> SwapStage:
    ours = effect.key == swap.old.key
    whose = "" if ours else f" It is on the same disk as {swap.old.name}: one pull takes both."
    return SwapStage(
        "offline",
        f"Take {target.name} of {situation.pool.name} offline",
        (f"Then nothing is written to the disk when you pull it.{whose}",),
        warnings=(f"{effect.text}.",) if not stands_in(target) else (),
        plan=plan_offline_safely(situation, effect.key, along),
    )


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
    return dataclasses.replace(
        plan, preconditions=(*plan.preconditions, need), refused=plan.refused or _check(situation)
    )


def look_light(swap: Checklist, view: MachineView, now: float) -> SwapStage | None:
    """Switch the bay's light on; None once it is, or where there is none."""
    del now
    if not swap.old.light or "light" in swap.passed or swap.pulled is not None or swap.left_early:
        return None
    return SwapStage(
        "light",
        f"Switch on the light of {swap.old.spot}",
        ("It shows which disk to pull; it goes off at the end.",),
        plan=plan_light(view.situation, swap.old, on=True),
        answers=(SKIP_LIGHT,),
    )


def still_read(target: Target | None) -> bool:
    """Whether a pool would miss the leaf if it went now."""
    return target is not None and target.vdev.state not in FAILED and is_complete(target.vdev)


PULLED = Answer("pulled", "I have pulled it, and its label says so", typed="pulled")
SAME = Answer("same", "The same disk is back, with a better contact")
ELSEWHERE = Answer("elsewhere", "Use the new disk where it is")


def look_pull(swap: Checklist, view: MachineView, now: float) -> SwapStage | None:
    """Wait for the pull of the right disk; None once it is out."""
    if swap.pulled is not None:
        return None
    target = find(view.situation.pool, swap.old.key)
    if still_read(target) and swap.mode != REPLACE_FIRST:
        hold = "it is online: take it offline first"
        return SwapStage("pull", f"Do not pull {swap.old.words} yet", (), waits=hold, alarm=True)
    if swap.left_early:
        return _left_early(swap, view)
    unseen = _unseen(swap, view)
    title = f"Pull {swap.old.words}"
    return SwapStage(
        "pull",
        title,
        (*_how_found(swap, now), *_others_out(swap, view), *unseen),
        warnings=tuple(_must_stay(swap, view)),
        waits="" if unseen else f"{swap.old.words} to leave the machine",
        answers=(PULLED,),
    )


def _left_early(swap: Checklist, view: MachineView) -> SwapStage:
    """The disk was out before its turn: only a person knows whether it was pulled."""
    return SwapStage(
        "pull",
        f"{swap.old.words} is out already: say that you pulled it",
        (
            "It was pulled, or lost its link, before it was taken offline: nothing was taken"
            " offline, and nothing has to be any more.",
            f"Its label says {swap.old.mark}: compare it, then say so."
            if swap.old.mark
            else "Its serial number is unknown: be sure of the bay.",
        ),
        warnings=tuple(_must_stay(swap, view)),
        answers=(PULLED,),
    )


def _how_found(swap: Checklist, now: float) -> Iterator[str]:
    """How to know the disk with your own eyes."""
    if "light" in swap.passed and swap.lit:
        hours = f"{LASTING / 3600:g} hours"
        out = f"The light of {swap.old.spot} went off after {hours}: switch it off and on again."
        yield (f"The light of {swap.old.spot} is on." if _lasts(swap, now, LASTING) else out)
    elif not swap.old.light:
        yield "The bay has no light that can be switched."
    if swap.old.mark:
        yield f"Its label says {swap.old.mark}{f', {swap.old.model}' if swap.old.model else ''}."
        if swap.old.serial and not swap.old.light:
            yield f"The serial number stands {ON_LABEL}."
    else:
        yield "Its serial number is unknown: be sure of the bay."
    yield (
        "Without hot-plug: power the machine off, swap the disk, power on; this checklist goes on"
        " after the boot."
    )


def _lasts(swap: Checklist, now: float, lasting: float) -> bool:
    """Whether the disk was made to be seen, by its light or by reads, less than that ago."""
    begun = max((e.t for e in swap.log if e.step == "light" and e.result == "done"), default=None)
    return begun is not None and now - begun < lasting


def _others_out(swap: Checklist, view: MachineView) -> Iterator[str]:
    """Disks without a pool that went meanwhile: no harm, but not the pull that is waited for."""
    for disk in away(swap, view):
        if not disk.pool:
            yield f"{disk.words} left the machine: it is not the one, but holds no pool."


def _unseen(swap: Checklist, view: MachineView) -> tuple[str, ...]:
    """Why the pull can't be checked here; () where it can."""
    if not view.devices:
        return (
            "The machine's disks can't be read: the pull can't be checked. Say when it is out.",
        )
    if swap.was_gone:
        return (
            "The machine lost this disk before: nothing shows its pull. Compare the serial number"
            " on its label, then say so. A wrong disk that is pulled is noticed.",
        )
    return ()


def _must_stay(swap: Checklist, view: MachineView) -> Iterator[str]:
    stay = untouchable(view.situation, swap.old)
    if stay:
        yield f"Pulling any of these loses data: {', '.join(d.spot for d in stay)}."
    else:
        yield "Pull no other disk."


def look_insert(swap: Checklist, view: MachineView, now: float) -> SwapStage | None:
    """Wait for the new disk, and judge it; None once one is in that fits."""
    del now
    if swap.new is not None and device_of(swap.new, view.devices) is not None:
        return None
    target = find(view.situation.pool, swap.old.key)
    spot = swap.old.place or "the same bay"
    found = inserted(swap, view)
    if found is None or target is None:
        return _empty(swap, spot)
    if found.unnamed:
        return replace(_empty(swap, spot), waits=f"udev to name the disk in {disk_of(found).spot}")
    if swap.unseen and swap.old.is_on(found):
        return _still_shown(swap, spot, found)
    if not swap.old.is_on(found) and swap.old.shares_place(found) is False:
        return _elsewhere(found, spot)
    return _unfit(swap, view, found)


def _empty(swap: Checklist, spot: str) -> SwapStage:
    size_words = (
        f"{size(swap.old.size)} or larger" if swap.old.size else "of the same size or larger"
    )
    return SwapStage(
        "insert",
        f"Insert the new disk into {spot}",
        (
            f"It must be {size_words}, with sectors that the vdev can use; both are checked.",
            "If only its cable or contact was bad, put the same disk back: it is recognized.",
        ),
        waits=f"a disk in {spot}",
    )


def _still_shown(swap: Checklist, spot: str, found: Device) -> SwapStage:
    name = found.node.rpartition("/")[2] or "DISK"
    return SwapStage(
        "insert",
        f"Insert the new disk into {spot}, and make the machine see it",
        (
            f"The machine still shows {swap.old.words}. If it is still in, pull it now.",
            "If it is out, the machine doesn't notice that disks go or come: power off and on, or"
            " have it look again with these commands, as root:",
            # Each on a line of its own, and short enough not to be broken: they are copied.
            f"echo 1 > /sys/block/{name}/device/delete",
            "echo '- - -' | tee /sys/class/scsi_host/host*/scan",
        ),
        waits=f"another disk in {spot}",
        answers=(SAME,),
    )


def _elsewhere(found: Device, spot: str) -> SwapStage:
    new = disk_of(found)
    return SwapStage(
        "insert",
        f"The new disk is in {new.spot}, not in {spot}",
        (f"Move it to {spot}, or use it where it is: {new.words}.",),
        waits=f"a disk in {spot}",
        answers=(ELSEWHERE,),
    )


def _unfit(swap: Checklist, view: MachineView, found: Device) -> SwapStage | None:
    problems = unfit(swap, view, found)
    if not problems:
        return None
    new = disk_of(found)
    return SwapStage(
        "insert",
        f"{new.words} does not fit",
        (*(f"{sentence(problem)}." for problem in problems), "Insert another one."),
        waits=f"a disk that fits in {swap.old.place or 'the same bay'}",
    )


def inserted(swap: Checklist, view: MachineView) -> Device | None:
    """The disk that came after the pull: the old one again, one in its place, or one elsewhere."""
    disks = [device for device in view.devices if device.kind == "disk"]
    in_place = [d for d in disks if swap.old.shares_place(d) or swap.old.is_on(d)]
    fresh = [d for d in disks if not any(known.is_on(d) for known in swap.around)]
    return next(iter((*in_place, *fresh)), None)


def not_taken(swap: Checklist, view: MachineView) -> Iterator[str]:
    """The disk that was put in and can't be used where it is, and why."""
    found = inserted(swap, view)
    if found is None or found.unnamed or (swap.unseen and swap.old.is_on(found)):
        return
    new = disk_of(found)
    if not swap.old.is_on(found) and swap.old.shares_place(found) is False:
        yield f"{new.words} was inserted, not in {swap.old.place or 'the same bay'}"
    elif problems := unfit(swap, view, found):
        yield f"{new.words} was inserted and does not fit: {'; '.join(problems)}"


def is_same(swap: Checklist, view: MachineView, found: Device) -> bool:
    """Whether it is the old disk again; without serial and WWN, whether it has the pool's label."""
    marked = swap.old.is_marked(found)
    if marked is not None:
        return marked
    return swap.old.is_on(found) and found.contents.zfs_pool == view.situation.pool.name


def accepted(swap: Checklist, view: MachineView) -> SwapDisk | None:
    """The inserted disk, if it can be used where it is; None while there is none.

    It has no path that lasts before udev has named it.
    """
    found = inserted(swap, view)
    if found is None or found.unnamed:
        return None
    if swap.unseen and swap.old.is_on(found):
        return None
    displaced = swap.old.shares_place(found) is False and not swap.old.is_on(found)
    if (displaced and ELSEWHERE.name not in swap.passed) or unfit(swap, view, found):
        return None
    return disk_of(found)


def unfit(swap: Checklist, view: MachineView, found: Device) -> tuple[str, ...]:
    """Why an inserted disk can't be used; () when it can, or is the old one."""
    target = find(view.situation.pool, swap.old.key)
    if target is None or is_same(swap, view, found):
        return ()
    judged: Candidate = judge(view.situation.pool, target, found, view.situation.facts)
    smart = view.smart.get(found.path)
    # zpool also overwrites what is on a disk with the path of the old one: that is not wanted.
    problems = list(dict.fromkeys((*judged.problems, *held(view.situation.pool, found))))
    if smart is not None and smart.passed is False:
        problems.append(f"SMART reports a failing disk: {smart.words()}")
    part = partition_of(target)
    if part is not None and new_path(found, part) not in found.aliases:
        problems.append(
            f"{target.vdev.name} is partition {part} of its disk: make the same partitions on the"
            f" new one (sgdisk --replicate={found.node} /dev/OTHER, sgdisk --randomize-guids"
            f" {found.node})"
        )
    return tuple(problems)


def doubts(swap: Checklist, view: MachineView) -> tuple[str, ...]:
    """What speaks against the inserted disk though it can be used."""
    target = find(view.situation.pool, swap.old.key)
    device = None if swap.new is None else device_of(swap.new, view.devices)
    if target is None or device is None or swap.same:
        return ()
    said = list(judge(view.situation.pool, target, device, view.situation.facts).cautions)
    smart = view.smart.get(device.path)
    if smart is not None and (smart.reallocated or smart.pending or smart.uncorrectable):
        said.append(f"it is not new: {smart.words()}")
    return tuple(said)


def new_path(device: Device, part: str | None) -> str:
    """What to give to zpool: the whole disk, or its partition of this number."""
    return device.path if part is None else f"{device.path}-part{part}"


def past(swap: Checklist, view: MachineView) -> bool:
    """Whether somebody, or ZED, has already given the place to a disk that came into it."""
    if swap.mode == REPLACE_FIRST:
        return False
    target = find(view.situation.pool, swap.old.key)
    return target is None or (target.group is not None and target.group.kind == "replacing")


NO_SCRUB = Answer("no-scrub", "Skip the scrub")
NO_WAIT = Answer("no-wait", "Stop waiting for the scrub: it goes on by itself")
LEAVE_LIT = Answer("leave-lit", "Leave the light as it is")


def look_replace(swap: Checklist, view: MachineView, now: float) -> SwapStage | None:
    """Give the place to the new disk, or put the same one online; None once that has begun."""
    del now
    situation = view.situation
    target = find(situation.pool, swap.old.key)
    if target is None or swap.new is None:
        return None
    if target.group is not None and target.group.kind == "replacing":
        return None
    if swap.same:
        return _online(swap, view, target)
    device = device_of(swap.new, view.devices)
    path = new_path(device, partition_of(target)) if device else swap.new.whole
    smart = view.smart.get(device.path) if device else None
    return SwapStage(
        "replace",
        _replacing(swap.old, swap.new),
        (
            "The new disk is overwritten: what is on it is lost. Compare its serial number once"
            " more.",
            *((f"SMART of the new disk: {smart.words()}.",) if smart is not None else ()),
        ),
        warnings=tuple(f"{sentence(doubt)}." for doubt in doubts(swap, view)),
        plan=plan_replace(situation, Swap(swap.old.key, path)),
        paths=(path,),
    )


def _replacing(old: SwapDisk, new: SwapDisk) -> str:
    """What the step does; where disks are named by their bay, only their labels tell them apart."""
    if old.mark and new.mark and old.spot == new.spot:
        return f"Replace {old.mark} with {new.mark} in {new.spot}"
    return f"Replace {old.name} with {new.words}"


def _online(swap: Checklist, view: MachineView, target: Target) -> SwapStage | None:
    """The old disk is back: online, or clear where ZFS gave it up."""
    if target.vdev.state not in FAILED:
        return None
    situation = view.situation
    faulted = target.vdev.state == "FAULTED"
    return SwapStage(
        "replace",
        f"Put {swap.old.words} online again",
        (
            "The same disk is back: what it missed is resilvered. If errors return, its cable, its"
            " bay or the disk itself is bad.",
            "To use another disk instead, pull it again and insert that one.",
        ),
        plan=plan_clear(situation, target.key) if faulted else plan_online(situation, target.key),
    )


def look_resilver(swap: Checklist, view: MachineView, now: float) -> SwapStage | None:
    """Wait until the new disk is filled; None once the place is whole again."""
    situation = view.situation
    old = find(situation.pool, swap.old.key)
    if old is not None and old.group is not None and old.group.kind == "replacing":
        return _filling(swap, view, old, now)
    leaf = old if swap.same else new_leaf(swap, view)
    if repairs(situation) or (leaf is not None and not is_complete(leaf.vdev)):
        return _waiting(swap, view)
    return _waiting(swap, view) if just_ran(swap, now) else None


def _filling(swap: Checklist, view: MachineView, old: Target, now: float) -> SwapStage:
    situation = view.situation
    over = [
        scan
        for scan in situation.pool.scans
        if scan.function in ("resilver", "rebuild") and scan.end
    ]
    newest = max(over, key=lambda scan: scan.end or 0.0, default=None)
    begun = max((e.t for e in swap.log if e.step == "replace"), default=swap.begun)
    # The resilver of a replace that was adopted may have ended before the checklist began.
    started = newest is not None and (newest.start or 0.0) >= int(begun)
    ended = newest is not None and (started or not settling(now, begun))
    fresh = just_ran(swap, now) or settling(now, newest.end if newest else None)
    if repairs(situation) or not ended or fresh:
        return _waiting(swap, view)
    group = old.group
    plan = (
        plan_resilver(situation) if situation.pool.checkpoint is None else plan_discard(situation)
    )
    return SwapStage(
        "resilver",
        f"The resilver ended, but {group.name if group else 'the group'} stays",
        ((leftover(group) or "") if group else "",),
        warnings=("Do not pull the old disk: it may hold the only good copy of some block.",),
        waits="the group to end",
        plan=plan,
        alarm=True,
    )


def _waiting(swap: Checklist, view: MachineView) -> SwapStage:
    name = swap.new.words if swap.new else swap.old.name
    leaf = find(view.situation.pool, swap.old.key) if swap.same else new_leaf(swap, view)
    vdev = None if leaf is None else leaf.vdev
    return SwapStage(
        "resilver",
        f"Wait until {name} is filled",
        (_meanwhile(swap, view),),
        waits=filling(view.situation, vdev),
        deferred=waits_its_turn(view.situation, vdev),
        final="" if swap.same else "when it ends, the old disk leaves the pool for good",
    )


def _meanwhile(swap: Checklist, view: MachineView) -> str:
    """What to do with the old disk while the new one is filled."""
    if swap.mode != REPLACE_FIRST:
        return "Pull nothing until it ends."
    old = find(view.situation.pool, swap.old.key)
    if old is not None and is_complete(old.vdev):
        return "Leave the old disk plugged in until it ends: it still counts for redundancy."
    if old is not None and old.vdev.state not in FAILED:
        return "Leave the old disk plugged in until it ends: it is still read."
    return (
        "Leave the old disk plugged in until it ends, though ZFS doesn't read from it: only then"
        " its pull is checked."
    )


def new_leaf(swap: Checklist, view: MachineView) -> Target | None:
    """The leaf on the new disk; None while the pool has none."""
    if swap.new is None:
        return None
    device = device_of(swap.new, view.devices)
    paths = (device.path, *device.aliases) if device else (swap.new.whole,)
    return find_path(view.situation.pool, tuple(p for p in paths if p))


def look_return_spare(swap: Checklist, view: MachineView, now: float) -> SwapStage | None:
    """Give back a spare that still stands in; None when none does."""
    del now
    situation = view.situation
    leaf = find(situation.pool, swap.old.key) if swap.same else new_leaf(swap, view)
    group = leaf.group if leaf is not None else None
    if leaf is None or group is None or group.kind != "spare":
        return None
    standing = next((x for x in leaf.spares if x.guid and not x.shared), None)
    if standing is None or standing.guid is None:
        return None
    return SwapStage(
        "return-spare",
        f"Return the hot spare {standing.name}",
        (f"{leaf.name} is complete: the spare isn't needed there any more.",),
        plan=plan_detach(situation, standing.guid),
    )


def look_light_off(swap: Checklist, view: MachineView, now: float) -> SwapStage | None:
    """Switch the light off that this checklist switched on; None once it is off."""
    del now
    if not swap.lit or "light-off" in swap.passed:
        return None
    return SwapStage(
        "light-off",
        f"Switch off the light of {swap.old.spot}",
        (),
        plan=plan_light(view.situation, swap.old, on=False),
        answers=(LEAVE_LIT,),
    )


def look_scrub(swap: Checklist, view: MachineView, now: float) -> SwapStage | None:
    """Offer a scrub and follow it; None once it has ended, or none is wanted."""
    situation = view.situation
    if "scrub" in swap.passed:
        return None
    runs = situation.active("scrub")
    asked = swap.scrub_begun
    if runs is not None or (asked is not None and 0.0 <= now - asked < BEGINNING):
        return SwapStage(
            "scrub",
            f"Wait until {situation.pool.name} is scrubbed",
            ("It reads every block once and finds damage that the old disk may have left.",),
            waits=describe(runs) if runs is not None else "the scrub to begin",
            answers=(NO_WAIT,),
        )
    if asked is not None and scrubbed(swap, view):
        return None
    return SwapStage(
        "scrub",
        f"Scrub {situation.pool.name}",
        ("It reads every block once and finds damage that the old disk may have left.",),
        plan=plan_scrub(situation),
        answers=(NO_SCRUB,),
    )


def scrubbed(swap: Checklist, view: MachineView) -> str:
    """How the scrub of this swap ended, in words; empty while none has."""
    # The kernel's start time is in whole seconds.
    over = (scan for scan in view.situation.pool.scans if scan.function == "scrub" and scan.end)
    ended = next((scan for scan in over if (scan.start or 0.0) >= int(swap.begun)), None)
    if ended is None:
        return ""
    if ended.state == "canceled":
        return SCRUB_CANCELED
    return f"the scrub finished with {counted(ended.errors or 0, 'error')}"


def undo_replace(swap: Checklist, view: MachineView) -> ActionPlan | None:
    """Detach the new disk while it is being filled; None when there is nothing to detach."""
    old = find(view.situation.pool, swap.old.key)
    group = old.group if old else None
    if group is None or group.kind not in ("replacing", "spare"):
        return None
    key = group.children[-1].guid
    if key is None or (group.kind == "spare" and swap.spare is None):
        return None
    return plan_detach(view.situation, key)


def away(swap: Checklist, view: MachineView) -> tuple[SwapDisk, ...]:
    """Disks that were there before and are not now, those that hold no pool included."""
    if not view.devices:
        return ()
    return tuple(disk for disk in swap.around if device_of(disk, view.devices) is None)


Look = Callable[[Checklist, MachineView, float], SwapStage | None]

LOOKS: Mapping[str, Look] = {
    "spare": look_spare,
    "offline": look_offline,
    "light": look_light,
    "pull": look_pull,
    "insert": look_insert,
    "replace": look_replace,
    "resilver": look_resilver,
    "return-spare": look_return_spare,
    "light-off": look_light_off,
    "scrub": look_scrub,
}
"""What looks whether a step is done: its stage, or None once it is."""

ONCE = frozenset({"pull", "insert"})
"""Steps that need not be done any more once the pool is past them."""
