"""Disks that were pulled and should not have been: noticed, put back, complete again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from zconsole.actions.clear import plan_clear
from zconsole.actions.conditions import OTHER_HOST
from zconsole.actions.offline import plan_online
from zconsole.actions.plan import ActionPlan, Situation
from zconsole.actions.target import Target, find
from zconsole.pool.model import MULTIHOST
from zconsole.pool.redundancy import is_complete
from zconsole.pool.topology import FAILED
from zconsole.swap.checklist import PUT_BACK, Checklist
from zconsole.swap.disk import SwapDisk, device_of, disk_of, disk_of_leaf, leaves_of
from zconsole.swap.effects import vdev_words
from zconsole.swap.resilver import filling, just_ran, repairs
from zconsole.swap.stage import NO_NEED, Answer, SwapStage, sentence
from zconsole.swap.view import MachineView


@dataclass(frozen=True, slots=True)
class _InPool:
    """A disk with its pool, and its leaf there."""

    disk: SwapDisk
    s: Situation
    target: Target


def missing(c: Checklist, v: MachineView) -> tuple[SwapDisk, ...]:
    """Disks of pools that were there before and are not now.

    The old disk is left out, and so is one that somebody said was meant to go.
    """
    meant = {disk.whole for disk in c.meant}
    gone = (disk for disk in away(c, v) if disk.pool and disk.whole not in meant)
    return tuple(disk for disk in gone if not _leaving(disk, v) and _is_needed(disk, v))


def dropped(c: Checklist, v: MachineView) -> tuple[SwapDisk, ...]:
    """Disks that were pulled by mistake and are in again, but that ZFS gave up afterwards."""
    returned = {(disk.pool, disk.key) for disk in c.returned}
    back = (d for d in c.around if (d.pool, d.key) in returned and d not in c.wrong)
    return tuple(
        disk
        for disk in back
        if device_of(disk, v.devices) is not None
        if (leaf := v.leaf_of(disk)) is not None and leaf[1].vdev.state in FAILED
    )


def _is_needed(disk: SwapDisk, v: MachineView) -> bool:
    """Whether a pool may still have a leaf on it: one that was replaced meanwhile is free to go."""
    s = v.of(disk.pool)
    if s is None or find(s.pool, disk.key) is not None:
        return True
    leaves = ((s, key, leaf) for s in v.situations for key, leaf in leaves_of(s.pool))
    return any(disk_of_leaf(s, leaf, key).whole == disk.whole for s, key, leaf in leaves)


def _leaving(disk: SwapDisk, v: MachineView) -> bool:
    """Whether another checklist swaps this disk."""
    return any((disk.pool, disk.key) == (each.pool, each.key) for each in v.leaving)


def away(c: Checklist, v: MachineView) -> tuple[SwapDisk, ...]:
    """Disks that were there before and are not now, those that hold no pool included."""
    if not v.devices:
        return ()
    return tuple(disk for disk in c.around if device_of(disk, v.devices) is None)


def is_back(c: Checklist, disk: SwapDisk, v: MachineView, now: float) -> bool:
    """Whether a disk that was pulled is on the machine again, and complete in its pool.

    zpool marks what is being filled only once the first bytes were written to it: as long as any
    repair runs, or may be about to begin, the disk doesn't count as complete.
    """
    if device_of(disk, v.devices) is None:
        return False
    found = _in(disk, v)
    if found is None or found.target.vdev.vclass in ("spare", "cache") or found.target.vdev.shared:
        return True
    whole = not found.s.suspended and is_complete(found.target.vdev)
    return whole and disk.key in c.noticed and not repairs(found.s) and not just_ran(c, now)


def knows(c: Checklist, disk: SwapDisk, v: MachineView) -> bool:
    """Whether its pool has noticed that a disk was out, or opened it again since."""
    found = _in(disk, v)
    if found is None:
        return False
    if found.s.suspended or found.target.vdev.state in FAILED:  # zpool clear opens every device
        return True
    if device_of(disk, v.devices) is None:
        return False
    reopening = {step.command for step in plan_online(found.s, disk.key, reopen=True).steps}
    own = [entry for entry in c.log if entry.step == PUT_BACK]
    since = max((entry.t for entry in own if not entry.command), default=c.begun)
    ran = {entry.command for entry in own if entry.t >= since and entry.result == "done"}
    return disk.key in c.noticed or bool(reopening & ran)


def put_back(c: Checklist, v: MachineView) -> SwapStage | None:
    """What to do about the disks that were pulled by mistake; None when there are none."""
    out = tuple(disk for disk in c.wrong if device_of(disk, v.devices) is None)
    back = next((each for disk in c.wrong if disk not in out and (each := _in(disk, v))), None)
    plan = _plan(c, back) if back is not None else None
    if out:
        return _still_out(c, v, out, back, plan)
    if back is None:
        return None
    hold = (
        f"Do not pull {c.old.words} before it is complete."
        if device_of(c.old, v.devices) is not None
        else "Pull nothing else before it is complete."
    )
    text = (*_redundancy(back), f"It is in again. {hold}")
    if plan is not None and back.target.vdev.state not in FAILED and not back.s.suspended:
        text += (
            f"{back.s.pool.name} has not noticed that it was out, and may still use it as it was"
            " before: have it opened again.",
        )
    return SwapStage(
        c.at,
        sentence(_bringing(back, plan, back.disk.words)),
        text,
        waits=filling(back.s) if plan is None else "",
        plan=plan,
        final=_final(plan),
        alarm=True,
        brief=_bringing(back, plan, back.disk.spot),
    )


def _bringing(each: _InPool, plan: ActionPlan | None, disk: str) -> str:
    if plan is None:
        return f"wait until {disk} is complete again"
    return f"bring {disk} back into {each.s.pool.name}"


def _final(plan: ActionPlan | None) -> str:
    """Why there is no way back from putting a disk back: there is nothing to go back to."""
    if plan is not None and plan.action == "clear":
        return "it resets the error counts; else it only undoes the wrong pull"
    return f"{NO_NEED}this undoes the wrong pull"


def _still_out(
    c: Checklist,
    v: MachineView,
    out: tuple[SwapDisk, ...],
    back: _InPool | None,
    plan: ActionPlan | None,
) -> SwapStage:
    """Some are out still; ``back`` is one that is in again, and ``plan`` brings it online."""
    disks = tuple({disk.whole: disk for disk in out}.values())  # one holds devices of many pools
    names = _all(disks)
    text = [*_about_out(c, v, out, disks)]
    if back is not None and plan is not None:
        text.append(f"{back.disk.words} is in again: bring it back into {back.s.pool.name}.")
    text.append(f"Pull nothing else until {_it(disks, 'it is', 'they are')} back and complete.")
    return SwapStage(
        c.at,
        f"WRONG DISK{'S' * (len(disks) > 1)}: put {names} back now",
        tuple(text),
        waits=f"{names} to return",
        plan=plan,
        answers=(_meant(disks[0]),),
        final=_final(plan),
        alarm=True,
        brief=f"WRONG DISK OUT: put {' and '.join(d.spot for d in disks)} back",
    )


def _about_out(
    c: Checklist, v: MachineView, out: tuple[SwapDisk, ...], disks: tuple[SwapDisk, ...]
) -> Iterator[str]:
    """What the pools have left, what sits in the bays by now, and what else to know."""
    known = [each for disk in out if (each := _in(disk, v)) is not None]
    yield from dict.fromkeys(line for each in known for line in _redundancy(each))
    for disk in disks:
        for text in another_in_bay(disk, v):
            yield f"{text}. Take it out, insert {disk.mark or disk.name}."
    yield f"The machine lost {_all(disks)}; {_old_words(c, v)}."
    for pool in dict.fromkeys(disk.pool for disk in out if disk.pool):
        yield f"{pool} needs the data on {_it(disks)}."
    for held in {each.s.pool.name: each.s.pool for each in known if each.s.suspended}.values():
        waits = "it continues once the disk is back and cleared"
        yield f"{held.name} is suspended: {OTHER_HOST if held.suspension == MULTIHOST else waits}."
    yield f"If nobody pulled {_it(disks)}, look there: a failed disk, or a lost link."


def _all(disks: tuple[SwapDisk, ...]) -> str:
    return " and ".join(disk.words for disk in disks)


def _it(disks: tuple[SwapDisk, ...], one: str = "it", several: str = "them") -> str:
    return one if len(disks) == 1 else several


def _meant(disk: SwapDisk) -> Answer:
    text = f"Do not wait for {disk.place or disk.words}: it was pulled on purpose, or has failed"
    return Answer("meant", text, typed="meant")


def _old_words(c: Checklist, v: MachineView) -> str:
    """Where the disk of this checklist is meanwhile."""
    if device_of(c.old, v.devices) is None:
        return f"{c.old.words}, which this checklist swaps, is out too"
    return f"the disk to swap is {c.old.words}"


def another_in_bay(disk: SwapDisk, v: MachineView) -> Iterator[str]:
    """Another disk in the bay of one that is out: somebody took the wrong one to put back."""
    if device_of(disk, v.devices) is not None:
        return
    found = (device for device in v.devices if device.kind == "disk" and disk.shares_place(device))
    for other in map(disk_of, found):
        yield f"{disk.place} holds {other.mark or other.name}: not the one"


def _redundancy(each: _InPool) -> Iterator[str]:
    if not each.s.suspended and (words := vdev_words(each.s, each.target)):
        yield f"{words}."


def _plan(c: Checklist, each: _InPool) -> ActionPlan | None:
    """What brings a device back that was out; None while nothing has to be run."""
    s, target = each.s, each.target
    if s.suspended:
        return plan_clear(s)
    if target.vdev.state == "FAULTED":
        return plan_clear(s, target.key)
    if target.vdev.state in FAILED:
        return plan_online(s, target.key)
    return None if each.disk.key in c.noticed else plan_online(s, target.key, reopen=True)


def _in(disk: SwapDisk, v: MachineView) -> _InPool | None:
    found = v.leaf_of(disk)
    return None if found is None else _InPool(disk, *found)
