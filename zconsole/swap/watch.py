"""Which step of a checklist is current: seen from the pool and the machine, not remembered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from zconsole.actions.clear import plan_clear
from zconsole.actions.conditions import OTHER_HOST
from zconsole.actions.offline import plan_online
from zconsole.actions.plan import ActionPlan, Situation
from zconsole.actions.target import Target, find
from zconsole.hardware.light import LASTING
from zconsole.pool.model import MULTIHOST
from zconsole.pool.redundancy import is_complete
from zconsole.pool.topology import FAILED
from zconsole.swap.checklist import (
    NO_NEED,
    NOT_NEEDED,
    OPEN,
    OUT_ALREADY,
    PUT_BACK,
    REPLACE_FIRST,
    TITLES,
    Answer,
    Checklist,
    ReturnedDisk,
    SwapStage,
    WayBack,
    sentence,
)
from zconsole.swap.choice import around
from zconsole.swap.disk import MachineView, SwapDisk, device_of, disk_of, disk_of_leaf, leaves_of
from zconsole.swap.effects import marked, vdev_words, without
from zconsole.swap.report import summary
from zconsole.swap.steps import (
    LOOKS,
    ONCE,
    accepted,
    away,
    cost_of,
    filling,
    is_same,
    just_ran,
    not_taken,
    past,
    repairs,
    scrubbed,
)
from zconsole.swap.undone import (
    beside_left,
    others_offline,
    reminders,
    still_out,
    undone,
    way_back,
)


def current(swap: Checklist, view: MachineView, now: float) -> SwapStage:
    """The current step; ``now`` is in epoch seconds."""
    view = without(marked(view), (*swap.wrong, *swap.meant))
    if swap.state != OPEN:
        return replace(_report(swap, view), reminders=reminders(swap, view, now))
    found = put_back(swap, view) or _suspended(swap, view) or _first(swap, view, now)
    if found is None:
        return _report(swap, view)
    left = undone(swap, view)
    warned = () if found.alarm else still_out(swap, view)
    return replace(
        _costing(swap, found),
        warnings=(*warned, *found.warnings),
        back=way_back(swap, view, found, clean=not left),
        undone=left,
        reminders=reminders(swap, view, now),
    )


def _costing(swap: Checklist, stage: SwapStage) -> SwapStage:
    """With what Back will do, or what can't be undone, where the step is still to be taken."""
    waits = stage.plan is None and stage.step in ("spare", "resilver", "scrub")
    refused = stage.plan is not None and stage.plan.refused is not None
    if stage.alarm or waits or refused:
        return stage
    cost = cost_of(swap, stage.step)
    return replace(stage, undo=cost.undo, until=cost.until, final=stage.final or cost.final)


def _first(swap: Checklist, view: MachineView, now: float) -> SwapStage | None:
    for step in swap.steps:
        look = LOOKS.get(step)
        if look is None or (step in ONCE and past(swap, view)):
            continue
        if (stage := look(swap, view, now)) is not None:
            return stage
    return None


def absent(swap: Checklist) -> SwapStage:
    """The stage while the pool is not imported; one that is over needs none."""
    if swap.state != OPEN:
        return _report(swap, None)
    return SwapStage(
        swap.at,
        f"Import {swap.pool}",
        (
            f"{swap.pool} is not imported. Import it (zpool import {swap.pool}); the checklist"
            " goes on.",
        ),
        waits=f"{swap.pool} (GUID {swap.guid})" if swap.guid else swap.pool,
        back=WayBack("give up this swap: nothing is run", closes=True),
    )


def _suspended(swap: Checklist, view: MachineView) -> SwapStage | None:
    situation = view.situation
    if not situation.suspended:
        return None
    if situation.pool.suspension == MULTIHOST:
        title = f"{situation.pool.name} is suspended: another host may have it"
        return SwapStage(swap.at, title, (f"{OTHER_HOST}.", "Pull nothing."), alarm=True)
    return SwapStage(
        swap.at,
        f"{situation.pool.name} is suspended: bring its devices back",
        (
            "Too few of its disks answer. Check cables, power and bays; once their labels can be"
            " read, clear the pool.",
            "Pull nothing.",
        ),
        plan=plan_clear(situation),
        final="it resets the error counts of the pool",
        alarm=True,
    )


def _report(swap: Checklist, view: MachineView | None) -> SwapStage:
    then = () if view is None else beside_left(swap, view)
    online = () if view is None or swap.undone else others_offline(swap, view)
    text = (*summary(swap), *_left_lit(swap), *online, *(f"{text}." for _, text in then))
    return SwapStage("report", TITLES["report"], text, then=tuple(d for d, _ in then), over=True)


def _left_lit(swap: Checklist) -> tuple[str, ...]:
    """That the light was left on, by somebody's word."""
    if not swap.lit or swap.undone:  # what is undone says so itself
        return ()
    hours = f"{LASTING / 3600:g} hours"
    off = f"zconsole light off {swap.old.whole}"
    return (
        f"The light of {swap.old.spot} is still on; it goes off {hours} after it went on, or by"
        f" {off}.",
    )


def noticed(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """The checklist with what pool and machine show now; the same one where nothing is new."""
    if swap.state != OPEN:
        return swap
    view = marked(view)
    swap = _strays(_baseline(_relocated(_moved(swap, view, now), view, now), view), view, now)
    swap = _misplaced(
        _inserted(_adopted(_pulled(swap, view, now), view, now), view, now), view, now
    )
    stage = current(swap, view, now)
    if stage.alarm:
        return swap
    swap = _stepped(swap, view, stage, now)
    return swap.ending(now, "done") if stage.over else swap


def _moved(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """After a boot, or with the pool imported under another name."""
    name = view.situation.pool.name
    if view.boot != swap.boot:
        swap = replace(swap, boot=view.boot, unseen=False).noting(
            now, swap.at, "the machine was booted"
        )
    if name != swap.pool:
        swap = swap.noting(now, swap.at, f"{swap.pool} is called {name} now")
        own = replace(swap.old, pool=name)
        beside = tuple(replace(d, pool=name) if d.pool == swap.pool else d for d in swap.around)
        swap = replace(swap, pool=name, old=own, around=beside)
    return swap


def _relocated(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """Where the old disk sits now: until it is pulled it may have been moved to another bay."""
    device = None if swap.pulled is not None else device_of(swap.old, view.devices)
    if device is None or not swap.old.is_marked(device):
        return swap
    here = disk_of(device)
    stays = here.port == swap.old.port or not here.port
    old = replace(
        swap.old,
        whole=here.whole,
        node=here.node,
        bay=here.bay or (swap.old.bay if stays else ""),
        port=here.port or swap.old.port,
        light=here.light or (swap.old.light if stays else ""),
    )
    if old == swap.old:
        return swap
    moved, swap = (
        old.words != swap.old.words and bool(swap.old.place),
        replace(swap, old=old),
    )
    if not moved:
        return swap
    passed = tuple(step for step in swap.passed if step != "light")
    return replace(swap, passed=passed).noting(now, swap.at, f"{old.mark} is in {old.place} now")


def _baseline(swap: Checklist, view: MachineView) -> Checklist:
    """Until the disk may be pulled, the disks that are there now are those that must stay."""
    waits = swap.steps.index(swap.at) < swap.steps.index("pull") and not swap.wrong
    if not waits or not view.devices or missing(swap, view):
        return swap
    there = around(view, swap.old)
    return swap if there == swap.around else replace(swap, around=there)


def _strays(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """Disks that are out and should not be; those that are back and complete."""
    swap = _unmeant(swap, view, now)
    for disk in missing(swap, view):
        if disk not in swap.wrong:
            swap = replace(swap, wrong=(*swap.wrong, disk))
            swap = swap.noting(now, PUT_BACK, f"wrong disk: {disk.words} left the machine")
    for disk in dropped(swap, view):
        swap = replace(swap, wrong=(*swap.wrong, disk))
        swap = swap.noting(now, PUT_BACK, f"{disk.words} is in, but dropped out of {disk.pool}")
    known = tuple(disk.key for disk in swap.wrong if knows(swap, disk, view))
    for disk in swap.wrong:
        if disk.key in swap.noticed and disk.key not in known:
            swap = swap.noting(now, PUT_BACK, f"{disk.words} left the machine again")
    swap = swap if known == swap.noticed else replace(swap, noticed=known)
    for disk in swap.wrong:
        if is_back(swap, disk, view, now):
            found = (*swap.returned, ReturnedDisk(disk.pool, disk.key, now))
            swap = replace(
                swap, wrong=tuple(d for d in swap.wrong if d is not disk), returned=found
            )
            swap = swap.noting(now, PUT_BACK, f"{disk.words} is back and complete")
    ordered = tuple(sorted(swap.wrong, key=lambda d: device_of(d, view.devices) is not None))
    return swap if ordered == swap.wrong else replace(swap, wrong=ordered)


def _unmeant(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """Disks that were meant to go and are in again: to be brought back like wrong ones."""
    for disk in swap.meant:
        if device_of(disk, view.devices) is not None:
            rest = tuple(d for d in swap.meant if d is not disk)
            beside = tuple(d for d in swap.around if (d.whole, d.key) != (disk.whole, disk.key))
            swap = replace(swap, meant=rest, wrong=(*swap.wrong, disk), around=(*beside, disk))
            swap = swap.noting(now, PUT_BACK, f"{disk.words} is in again")
    return swap


def _pulled(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """The old disk left the machine: while its pull was waited for, or of its own accord."""
    if swap.pulled is not None or not view.devices:
        return swap
    if device_of(swap.old, view.devices) is not None:
        return replace(swap, was_gone=False) if swap.was_gone else swap
    if any(swap.old.shares_place(d) for d in view.devices):
        how = f"{swap.old.words} is out: another disk is in its bay"
        return replace(swap, pulled=now, was_gone=False).noting(now, "pull", how)
    if swap.was_gone:
        return swap
    if swap.at in ("light", "pull"):
        how = f"{swap.old.words} is out: it left the machine"
        return replace(swap, pulled=now).noting(now, "pull", how)
    return _left(swap, now)


def _left(swap: Checklist, now: float) -> Checklist:
    """The old disk left though its pull was not waited for."""
    if swap.at == "offline":  # pulled before its turn
        swap = swap.noting(now, "offline", OUT_ALREADY)
        return replace(swap, was_gone=True).noting(
            now, "pull", f"{swap.old.words} left the machine"
        )
    return replace(swap, was_gone=True).noting(
        now, swap.at, f"{swap.old.words} left the machine by itself"
    )


def _adopted(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """A replace that somebody else, or ZED, has begun meanwhile."""
    target = find(view.situation.pool, swap.old.key)
    group = target.group if target is not None else None
    if swap.new is not None or group is None or group.kind != "replacing":
        return swap
    key, leaf = next(
        each for each in leaves_of(view.situation.pool) if each[1] is group.children[-1]
    )
    new = disk_of_leaf(view.situation, leaf, key)
    swap = replace(
        swap,
        new=new,
        pulled=swap.pulled if swap.mode == REPLACE_FIRST else swap.pulled or now,
    )
    return swap.noting(now, "replace", f"started elsewhere: {new.words} takes the place")


def _inserted(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """The disk that was put in after the pull, once it fits; none when it is out again."""
    if swap.mode == REPLACE_FIRST or swap.pulled is None or not view.devices:
        return swap
    known = None if swap.new is None else device_of(swap.new, view.devices)
    if swap.new is not None and known is not None:
        better = disk_of(known)  # udev may tell the serial number of a new disk a little late
        return replace(swap, new=better) if better.mark and not swap.new.mark else swap
    if past(swap, view):
        return swap
    new = accepted(swap, view)
    if new is None:
        return swap if swap.new is None else replace(swap, new=None, same=False)
    device = device_of(new, view.devices)
    same = device is not None and is_same(swap, view, device)
    what = "the same disk again" if same else "the new disk"
    swap = replace(swap, new=new, same=same)
    return swap.noting(now, "insert", f"{new.words} is in: {what}")


def _misplaced(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """With a line for each disk that was put in and is not the one, once each."""
    wrong = (text for disk in swap.wrong for text in another_in_bay(disk, view))
    awaited = swap.pulled is not None and swap.new is None and not past(swap, view)
    unfit = not_taken(swap, view) if awaited else ()
    said = {_head(entry.text) for entry in swap.log}
    for step, texts in ((PUT_BACK, wrong), ("insert", unfit)):
        for text in texts:
            swap = swap if _head(text) in said else swap.noting(now, step, text)
    return swap


def _head(text: str) -> str:
    """What a line of the log is about: the reasons behind it have figures, which change."""
    return text.partition(": ")[0]


def _stepped(swap: Checklist, view: MachineView, stage: SwapStage, now: float) -> Checklist:
    """With a line for every step that is done since it was last looked at."""
    if stage.step == swap.at:
        return swap
    listed = swap.listed(stage.step)
    for step in swap.steps[swap.steps.index(swap.at) : swap.steps.index(stage.step)]:
        if step == "resilver":
            swap = swap.noting(now, step, "the resilver is done")
        elif step == "scrub" and step not in swap.passed and (ended := scrubbed(swap, view)):
            swap = swap.noting(now, step, ended)
        elif step in listed and not any(entry.step == step for entry in swap.log):
            swap = swap.noting(now, step, NOT_NEEDED)
    return replace(swap, at=stage.step)


@dataclass(frozen=True, slots=True)
class _InPool:
    """A disk with its pool, and its leaf there."""

    disk: SwapDisk
    situation: Situation
    target: Target


def missing(swap: Checklist, view: MachineView) -> tuple[SwapDisk, ...]:
    """Disks of pools that were there before and are not now.

    The old disk is left out, and so is one that somebody said was meant to go.
    """
    meant = {disk.whole for disk in swap.meant}
    gone = (disk for disk in away(swap, view) if disk.pool and disk.whole not in meant)
    return tuple(disk for disk in gone if not _leaving(disk, view) and _is_needed(disk, view))


def dropped(swap: Checklist, view: MachineView) -> tuple[SwapDisk, ...]:
    """Disks that were pulled by mistake and are in again, but that ZFS gave up afterwards."""
    returned = {(disk.pool, disk.key) for disk in swap.returned}
    back = (d for d in swap.around if (d.pool, d.key) in returned and d not in swap.wrong)
    return tuple(
        disk
        for disk in back
        if device_of(disk, view.devices) is not None
        if (leaf := view.leaf_of(disk)) is not None and leaf[1].vdev.state in FAILED
    )


def _is_needed(disk: SwapDisk, view: MachineView) -> bool:
    """Whether a pool may still have a leaf on it: one that was replaced meanwhile is free to go."""
    situation = view.of(disk.pool)
    if situation is None or find(situation.pool, disk.key) is not None:
        return True
    leaves = (
        (situation, key, leaf)
        for situation in view.situations
        for key, leaf in leaves_of(situation.pool)
    )
    return any(
        disk_of_leaf(situation, leaf, key).whole == disk.whole for situation, key, leaf in leaves
    )


def _leaving(disk: SwapDisk, view: MachineView) -> bool:
    """Whether another checklist swaps this disk."""
    return any((disk.pool, disk.key) == (each.pool, each.key) for each in view.leaving)


def is_back(swap: Checklist, disk: SwapDisk, view: MachineView, now: float) -> bool:
    """Whether a disk that was pulled is on the machine again, and complete in its pool.

    zpool marks what is being filled only once the first bytes were written to it: as long as any
    repair runs, or may be about to begin, the disk doesn't count as complete.
    """
    if device_of(disk, view.devices) is None:
        return False
    found = _in(disk, view)
    if found is None or found.target.vdev.vclass in ("spare", "cache") or found.target.vdev.shared:
        return True
    whole = not found.situation.suspended and is_complete(found.target.vdev)
    return (
        whole
        and disk.key in swap.noticed
        and not repairs(found.situation)
        and not just_ran(swap, now)
    )


def knows(swap: Checklist, disk: SwapDisk, view: MachineView) -> bool:
    """Whether its pool has noticed that a disk was out, or opened it again since."""
    found = _in(disk, view)
    if found is None:
        return False
    if (
        found.situation.suspended or found.target.vdev.state in FAILED
    ):  # zpool clear opens every device
        return True
    if device_of(disk, view.devices) is None:
        return False
    reopening = {step.command for step in plan_online(found.situation, disk.key, reopen=True).steps}
    own = [entry for entry in swap.log if entry.step == PUT_BACK]
    since = max((entry.t for entry in own if not entry.command), default=swap.begun)
    ran = {entry.command for entry in own if entry.t >= since and entry.result == "done"}
    return disk.key in swap.noticed or bool(reopening & ran)


def put_back(swap: Checklist, view: MachineView) -> SwapStage | None:
    """What to do about the disks that were pulled by mistake; None when there are none."""
    out = tuple(disk for disk in swap.wrong if device_of(disk, view.devices) is None)
    back = next(
        (each for disk in swap.wrong if disk not in out and (each := _in(disk, view))), None
    )
    plan = _plan(swap, back) if back is not None else None
    if out:
        return _still_out(swap, view, out, back, plan)
    if back is None:
        return None
    hold = (
        f"Do not pull {swap.old.words} before it is complete."
        if device_of(swap.old, view.devices) is not None
        else "Pull nothing else before it is complete."
    )
    text = (*_redundancy(back), f"It is in again. {hold}")
    if plan is not None and back.target.vdev.state not in FAILED and not back.situation.suspended:
        text += (
            f"{back.situation.pool.name} has not noticed that it was out, and may still use it as"
            " it was before: have it opened again.",
        )
    return SwapStage(
        swap.at,
        sentence(_bringing(back, plan, back.disk.words)),
        text,
        waits=filling(back.situation) if plan is None else "",
        plan=plan,
        final=_final(plan),
        alarm=True,
        brief=_bringing(back, plan, back.disk.spot),
    )


def _bringing(each: _InPool, plan: ActionPlan | None, disk: str) -> str:
    if plan is None:
        return f"wait until {disk} is complete again"
    return f"bring {disk} back into {each.situation.pool.name}"


def _final(plan: ActionPlan | None) -> str:
    """Why there is no way back from putting a disk back: there is nothing to go back to."""
    if plan is not None and plan.action == "clear":
        return "it resets the error counts; else it only undoes the wrong pull"
    return f"{NO_NEED}this undoes the wrong pull"


def _still_out(
    swap: Checklist,
    view: MachineView,
    out: tuple[SwapDisk, ...],
    back: _InPool | None,
    plan: ActionPlan | None,
) -> SwapStage:
    """Some are out still; ``back`` is one that is in again, and ``plan`` brings it online."""
    disks = tuple({disk.whole: disk for disk in out}.values())  # one holds devices of many pools
    names = _all(disks)
    text = [*_about_out(swap, view, out, disks)]
    if back is not None and plan is not None:
        text.append(
            f"{back.disk.words} is in again: bring it back into {back.situation.pool.name}."
        )
    text.append(f"Pull nothing else until {_it(disks, 'it is', 'they are')} back and complete.")
    return SwapStage(
        swap.at,
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
    swap: Checklist, view: MachineView, out: tuple[SwapDisk, ...], disks: tuple[SwapDisk, ...]
) -> Iterator[str]:
    """What the pools have left, what sits in the bays by now, and what else to know."""
    known = [each for disk in out if (each := _in(disk, view)) is not None]
    yield from dict.fromkeys(line for each in known for line in _redundancy(each))
    for disk in disks:
        for text in another_in_bay(disk, view):
            yield f"{text}. Take it out, insert {disk.mark or disk.name}."
    yield f"The machine lost {_all(disks)}; {_old_words(swap, view)}."
    for pool in dict.fromkeys(disk.pool for disk in out if disk.pool):
        yield f"{pool} needs the data on {_it(disks)}."
    for held in {
        each.situation.pool.name: each.situation.pool for each in known if each.situation.suspended
    }.values():
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


def _old_words(swap: Checklist, view: MachineView) -> str:
    """Where the disk of this checklist is meanwhile."""
    if device_of(swap.old, view.devices) is None:
        return f"{swap.old.words}, which this checklist swaps, is out too"
    return f"the disk to swap is {swap.old.words}"


def another_in_bay(disk: SwapDisk, view: MachineView) -> Iterator[str]:
    """Another disk in the bay of one that is out: somebody took the wrong one to put back."""
    if device_of(disk, view.devices) is not None:
        return
    found = (
        device for device in view.devices if device.kind == "disk" and disk.shares_place(device)
    )
    for other in map(disk_of, found):
        yield f"{disk.place} holds {other.mark or other.name}: not the one"


def _redundancy(each: _InPool) -> Iterator[str]:
    if not each.situation.suspended and (words := vdev_words(each.situation, each.target)):
        yield f"{words}."


def _plan(swap: Checklist, each: _InPool) -> ActionPlan | None:
    """What brings a device back that was out; None while nothing has to be run."""
    situation, target = each.situation, each.target
    if situation.suspended:
        return plan_clear(situation)
    if target.vdev.state == "FAULTED":
        return plan_clear(situation, target.key)
    if target.vdev.state in FAILED:
        return plan_online(situation, target.key)
    return (
        None if each.disk.key in swap.noticed else plan_online(situation, target.key, reopen=True)
    )


def _in(disk: SwapDisk, view: MachineView) -> _InPool | None:
    found = view.leaf_of(disk)
    return None if found is None else _InPool(disk, *found)
