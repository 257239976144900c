"""Disks that were pulled and should not have been: noticed, put back, complete again."""

from __future__ import annotations

from zconsole.actions.clear import plan_clear
from zconsole.actions.offline import plan_online
from zconsole.actions.plan import ActionPlan, Situation
from zconsole.actions.target import FAILED, Target, find
from zconsole.pool.redundancy import is_complete
from zconsole.swap.checklist import Checklist
from zconsole.swap.disk import SwapDisk, device_of
from zconsole.swap.resilver import filling, just_ran, repairs
from zconsole.swap.stage import Answer, SwapStage
from zconsole.swap.view import MachineView

MEANT = Answer("meant", "It was meant to go, or has failed: do not wait for it", typed="meant")


def missing(c: Checklist, v: MachineView) -> tuple[SwapDisk, ...]:
    """Disks of pools that were there before and are not now, the old disk left out."""
    gone = (disk for disk in away(c, v) if disk.pool)
    return tuple(disk for disk in gone if not _leaving(disk, v))


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
    s, target = _in_pool(disk, v)
    if s is None or target is None or target.vdev.vclass in ("spare", "cache"):
        return True
    whole = not s.suspended and is_complete(target.vdev)
    return whole and not repairs(s) and not just_ran(c, now)


def put_back(c: Checklist, v: MachineView) -> SwapStage | None:
    """What to do about the first disk that was pulled by mistake; None when there is none."""
    if not c.wrong:
        return None
    disk = c.wrong[0]
    if device_of(disk, v.devices) is None:
        return _still_out(c, v, disk)
    s, target = _in_pool(disk, v)
    if s is None or target is None:
        return None
    plan = _plan(s, target)
    title = f"Bring {disk.words} back into {s.pool.name}"
    text = (f"It is in again. Do not pull {c.old.words} before it is complete.",)
    if plan is None:
        waits = filling(s)
        title = f"Wait until {disk.words} is complete again"
        return SwapStage("pull", title, text, waits=waits, alarm=True)
    return SwapStage("pull", title, text, plan=plan, alarm=True)


def _still_out(c: Checklist, v: MachineView, disk: SwapDisk) -> SwapStage:
    s, _ = _in_pool(disk, v)
    suspended = s is not None and s.suspended
    text = [f"The machine lost {disk.words}; the disk to pull is {c.old.words}."]
    if disk.pool:
        text.append(f"It belongs to {disk.pool}: it holds data that is needed.")
    if suspended:
        text.append(f"{disk.pool} is suspended: it continues once the disk is back and cleared.")
    text.append("If nobody pulled it, it has failed or lost its link: look at it there.")
    text.append("Pull nothing else until it is back and complete.")
    return SwapStage(
        "pull",
        f"WRONG DISK: put {disk.words} back now",
        tuple(text),
        waits=f"{disk.words} to return",
        answers=(MEANT,),
        alarm=True,
    )


def _plan(s: Situation, target: Target) -> ActionPlan | None:
    """What brings a device back that was out; None while nothing has to be run."""
    if s.suspended:
        return plan_clear(s)
    if target.vdev.state == "FAULTED":
        return plan_clear(s, target.key)
    return plan_online(s, target.key) if target.vdev.state in FAILED else None


def _in_pool(disk: SwapDisk, v: MachineView) -> tuple[Situation | None, Target | None]:
    s = v.of(disk.pool) if disk.pool else None
    return s, None if s is None else find(s.pool, disk.key)
