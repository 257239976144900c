"""The pull, checked, and the new disk, judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from zconsole.actions.candidates import Candidate, held, judge
from zconsole.actions.locate import ON_LABEL
from zconsole.actions.target import find
from zconsole.hardware import light
from zconsole.hardware.device import Device
from zconsole.swap.before import still_read
from zconsole.swap.checklist import REPLACE_FIRST, Checklist
from zconsole.swap.disk import SwapDisk, device_of, disk_of
from zconsole.swap.effects import untouchable
from zconsole.swap.refusal import partition_of
from zconsole.swap.stage import Answer, SwapStage, sentence
from zconsole.swap.strays import away
from zconsole.swap.view import MachineView
from zconsole.units import size

PULLED = Answer("pulled", "I have pulled it, and its label says so", typed="pulled")
SAME = Answer("same", "The same disk is back, with a better contact")
ELSEWHERE = Answer("elsewhere", "Use the new disk where it is")


def pull(c: Checklist, v: MachineView, now: float) -> SwapStage | None:
    """Wait for the pull of the right disk; None once it is out."""
    if c.pulled is not None:
        return None
    target = find(v.situation.pool, c.old.key)
    if still_read(target) and c.mode != REPLACE_FIRST:
        hold = "it is online: take it offline first"
        return SwapStage("pull", f"Do not pull {c.old.words} yet", (), waits=hold, alarm=True)
    if c.left_early:
        return _left_early(c, v)
    unseen = _unseen(c, v)
    title = f"Pull {c.old.words}"
    return SwapStage(
        "pull",
        title,
        (*_how_found(c, now), *_others_out(c, v), *unseen),
        warnings=tuple(_must_stay(c, v)),
        waits="" if unseen else f"{c.old.words} to leave the machine",
        answers=(PULLED,),
    )


def _left_early(c: Checklist, v: MachineView) -> SwapStage:
    """The disk was out before its turn: only a person knows whether it was pulled."""
    return SwapStage(
        "pull",
        f"{c.old.words} is out already: say that you pulled it",
        (
            "It was pulled, or lost its link, before it was taken offline: nothing was taken"
            " offline, and nothing has to be any more.",
            f"Its label says {c.old.mark}: compare it, then say so."
            if c.old.mark
            else "Its serial number is unknown: be sure of the bay.",
        ),
        warnings=tuple(_must_stay(c, v)),
        answers=(PULLED,),
    )


def _how_found(c: Checklist, now: float) -> Iterator[str]:
    """How to know the disk with your own eyes."""
    if "light" in c.passed and c.lit:
        hours = f"{light.LASTING / 3600:g} hours"
        out = f"The light of {c.old.spot} went off after {hours}: switch it off and on again."
        yield f"The light of {c.old.spot} is on." if _lasts(c, now, light.LASTING) else out
    elif not c.old.light:
        yield "The bay has no light that can be switched."
    if c.old.mark:
        yield f"Its label says {c.old.mark}{f', {c.old.model}' if c.old.model else ''}."
        if c.old.serial and not c.old.light:
            yield f"The serial number stands {ON_LABEL}."
    else:
        yield "Its serial number is unknown: be sure of the bay."
    yield (
        "Without hot-plug: power the machine off, swap the disk, power on; this checklist goes on"
        " after the boot."
    )


def _lasts(c: Checklist, now: float, lasting: float) -> bool:
    """Whether the disk was made to be seen, by its light or by reads, less than that ago."""
    begun = max((e.t for e in c.log if e.step == "light" and e.result == "done"), default=None)
    return begun is not None and now - begun < lasting


def _others_out(c: Checklist, v: MachineView) -> Iterator[str]:
    """Disks without a pool that went meanwhile: no harm, but not the pull that is waited for."""
    for disk in away(c, v):
        if not disk.pool:
            yield f"{disk.words} left the machine: it is not the one, but holds no pool."


def _unseen(c: Checklist, v: MachineView) -> tuple[str, ...]:
    """Why the pull can't be checked here; () where it can."""
    if not v.devices:
        return (
            "The machine's disks can't be read: the pull can't be checked. Say when it is out.",
        )
    if c.was_gone:
        return (
            "The machine lost this disk before: nothing shows its pull. Compare the serial number"
            " on its label, then say so. A wrong disk that is pulled is noticed.",
        )
    return ()


def _must_stay(c: Checklist, v: MachineView) -> Iterator[str]:
    stay = untouchable(v.situation, c.old)
    if stay:
        yield f"Pulling any of these loses data: {', '.join(d.spot for d in stay)}."
    else:
        yield "Pull no other disk."


def insert(c: Checklist, v: MachineView, now: float) -> SwapStage | None:
    """Wait for the new disk, and judge it; None once one is in that fits."""
    del now
    if c.new is not None and device_of(c.new, v.devices) is not None:
        return None
    target = find(v.situation.pool, c.old.key)
    spot = c.old.place or "the same bay"
    found = inserted(c, v)
    if found is None or target is None:
        return _empty(c, spot)
    if found.unnamed:
        return replace(_empty(c, spot), waits=f"udev to name the disk in {disk_of(found).spot}")
    if c.unseen and c.old.is_on(found):
        return _still_shown(c, spot, found)
    if not c.old.is_on(found) and c.old.shares_place(found) is False:
        return _elsewhere(found, spot)
    return _unfit(c, v, found)


def _empty(c: Checklist, spot: str) -> SwapStage:
    size_words = f"{size(c.old.size)} or larger" if c.old.size else "of the same size or larger"
    return SwapStage(
        "insert",
        f"Insert the new disk into {spot}",
        (
            f"It must be {size_words}, with sectors that the vdev can use; both are checked.",
            "If only its cable or contact was bad, put the same disk back: it is recognized.",
        ),
        waits=f"a disk in {spot}",
    )


def _still_shown(c: Checklist, spot: str, found: Device) -> SwapStage:
    name = found.node.rpartition("/")[2] or "DISK"
    return SwapStage(
        "insert",
        f"Insert the new disk into {spot}, and make the machine see it",
        (
            f"The machine still shows {c.old.words}. If it is still in, pull it now.",
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


def _unfit(c: Checklist, v: MachineView, found: Device) -> SwapStage | None:
    problems = unfit(c, v, found)
    if not problems:
        return None
    new = disk_of(found)
    return SwapStage(
        "insert",
        f"{new.words} does not fit",
        (*(f"{sentence(problem)}." for problem in problems), "Insert another one."),
        waits=f"a disk that fits in {c.old.place or 'the same bay'}",
    )


def inserted(c: Checklist, v: MachineView) -> Device | None:
    """The disk that came after the pull: the old one again, one in its place, or one elsewhere."""
    disks = [device for device in v.devices if device.kind == "disk"]
    in_place = [d for d in disks if c.old.shares_place(d) or c.old.is_on(d)]
    fresh = [d for d in disks if not any(known.is_on(d) for known in c.around)]
    return next(iter((*in_place, *fresh)), None)


def not_taken(c: Checklist, v: MachineView) -> Iterator[str]:
    """The disk that was put in and can't be used where it is, and why."""
    found = inserted(c, v)
    if found is None or found.unnamed or (c.unseen and c.old.is_on(found)):
        return
    new = disk_of(found)
    if not c.old.is_on(found) and c.old.shares_place(found) is False:
        yield f"{new.words} was inserted, not in {c.old.place or 'the same bay'}"
    elif problems := unfit(c, v, found):
        yield f"{new.words} was inserted and does not fit: {'; '.join(problems)}"


def is_same(c: Checklist, v: MachineView, found: Device) -> bool:
    """Whether it is the old disk again; without serial and WWN, whether it has the pool's label."""
    marked = c.old.is_marked(found)
    if marked is not None:
        return marked
    return c.old.is_on(found) and found.contents.zfs_pool == v.situation.pool.name


def accepted(c: Checklist, v: MachineView) -> SwapDisk | None:
    """The inserted disk, if it can be used where it is; None while there is none.

    It has no path that lasts before udev has named it.
    """
    found = inserted(c, v)
    if found is None or found.unnamed:
        return None
    if c.unseen and c.old.is_on(found):
        return None
    displaced = c.old.shares_place(found) is False and not c.old.is_on(found)
    if (displaced and ELSEWHERE.name not in c.passed) or unfit(c, v, found):
        return None
    return disk_of(found)


def unfit(c: Checklist, v: MachineView, found: Device) -> tuple[str, ...]:
    """Why an inserted disk can't be used; () when it can, or is the old one."""
    target = find(v.situation.pool, c.old.key)
    if target is None or is_same(c, v, found):
        return ()
    judged: Candidate = judge(v.situation.pool, target, found, v.situation.facts)
    smart = v.smart.get(found.path)
    # zpool also overwrites what is on a disk with the path of the old one: that is not wanted.
    problems = list(dict.fromkeys((*judged.problems, *held(v.situation.pool, found))))
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


def doubts(c: Checklist, v: MachineView) -> tuple[str, ...]:
    """What speaks against the inserted disk though it can be used."""
    target = find(v.situation.pool, c.old.key)
    device = None if c.new is None else device_of(c.new, v.devices)
    if target is None or device is None or c.same:
        return ()
    said = list(judge(v.situation.pool, target, device, v.situation.facts).cautions)
    smart = v.smart.get(device.path)
    if smart is not None and (smart.reallocated or smart.pending or smart.uncorrectable):
        said.append(f"it is not new: {smart.words()}")
    return tuple(said)


def new_path(device: Device, part: str | None) -> str:
    """What to give to zpool: the whole disk, or its partition of this number."""
    return device.path if part is None else f"{device.path}-part{part}"


def past(c: Checklist, v: MachineView) -> bool:
    """Whether somebody, or ZED, has already given the place to a disk that came into it."""
    if c.mode == REPLACE_FIRST:
        return False
    target = find(v.situation.pool, c.old.key)
    return target is None or (target.group is not None and target.group.kind == "replacing")
