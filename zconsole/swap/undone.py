"""What is not as it was before the swap: what stays so when the checklist is given up."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

from zconsole.actions.offline import plan_online
from zconsole.actions.plan import Situation, zpool
from zconsole.actions.scrub import plan_stop
from zconsole.actions.target import Target, disk_path, find, stands_in
from zconsole.hardware.light import LASTING
from zconsole.pool.redundancy import is_complete
from zconsole.pool.topology import FAILED
from zconsole.swap.checklist import OPEN, Checklist, SwapStage, WayBack
from zconsole.swap.disk import MachineView, SwapDisk, device_of
from zconsole.swap.effects import vdev_words
from zconsole.swap.refusal import partition_of
from zconsole.swap.steps import plan_light, plan_offline_safely, undo_replace


def undone(swap: Checklist, view: MachineView) -> tuple[str, ...]:
    """What the swap, or a wrong pull during it, left undone, each with what to do about it."""
    found = (
        _of_wrong(swap, view),
        _of_old(swap, view),
        others_offline(swap, view),
        light_words(swap),
    )
    return tuple(text for each in found for text in each)


def reminders(swap: Checklist, view: MachineView, now: float) -> tuple[str, ...]:
    """What nothing leads on from: disks meant to go; all of what a closed checklist left."""
    if swap.state == OPEN:
        return tuple(_of_wrong(replace(swap, wrong=()), view))
    lights = tuple(light_words(swap))
    switched = max((e.t for e in swap.log if e.step == "light" and e.command), default=swap.begun)
    found = undone(swap, view) if swap.undone else lights
    return tuple(text for text in found if text not in lights or now - switched < LASTING)


def still_out(swap: Checklist, view: MachineView) -> tuple[str, ...]:
    """Disks that somebody meant to pull and the pool still misses, with the redundancy left."""
    said: list[str] = []
    for disk in swap.meant:
        found = view.leaf_of(disk)
        if found is None or is_complete(found[1].vdev):
            continue
        if found[1].vdev.shared and found[1].vdev.state not in FAILED:
            continue  # nothing makes it complete
        left = vdev_words(*found)
        said.append(f"{disk.words} is still out{f'; {left}' if left else ''}.")
    if said and old_helps(swap, view):
        said.append(f"Put {swap.old.words} online again first: that gives redundancy back.")
    return tuple(said)


def old_helps(swap: Checklist, view: MachineView) -> bool:
    """Whether the old disk could stand in for one that is out: it is in, and was only offlined."""
    if not swap.meant:
        return False
    target = find(view.situation.pool, swap.old.key)
    there = device_of(swap.old, view.devices) is not None
    return there and target is not None and target.vdev.state == "OFFLINE"


def _of_wrong(swap: Checklist, view: MachineView) -> Iterator[str]:
    for disk in (*swap.wrong, *swap.meant):
        found = view.leaf_of(disk)
        out = device_of(disk, view.devices) is None
        if found is None:  # where its pool is there, that has let it go
            if out and view.of(disk.pool) is None:
                yield f"{disk.words} is still out: put it back"
            continue
        situation, target = found
        if out:
            yield f"{disk.words} is still out: put it back, then run {_online(situation, target)}"
        elif target.vdev.state in FAILED:
            state = target.vdev.state
            yield f"{disk.words} is in again, but {state}: run {_online(situation, target)}"
        elif not (is_complete(target.vdev) or target.vdev.shared):
            yield f"{disk.words} is not complete yet: wait for its resilver"


def _of_old(swap: Checklist, view: MachineView) -> Iterator[str]:
    situation = view.situation
    target = find(situation.pool, swap.old.key)
    if target is None:
        return
    group = target.group
    if group is not None and group.kind == "replacing":
        detach = _zpool("detach", situation.pool.name, disk_path(group.children[-1]))
        yield (
            f"{group.children[-1].name} still takes the place of {swap.old.words}: let the resilver"
            f" go on, nothing is lost; or run {detach}"
        )
    elif group is not None and swap.spare is not None:
        detach = _zpool("detach", situation.pool.name, disk_path(group.children[-1]))
        yield f"hot spare {group.children[-1].name} still stands in for it: run {detach}"
    if view.devices and device_of(swap.old, view.devices) is None and not swap.was_gone:
        what = f"put it back, then run {_online(situation, target)}, or replace it (zpool replace)"
        yield f"{swap.old.words} is still out: {what}"
    elif target.vdev.state == "OFFLINE":
        yield f"{swap.old.words} is still OFFLINE: run {_online(situation, target)}"


def taken_offline(swap: Checklist, view: MachineView) -> tuple[tuple[Situation, Target], ...]:
    """Devices of other pools that this swap took offline, and that are on the old disk still."""
    if device_of(swap.old, view.devices) is None:
        return ()
    found = filter(None, map(view.leaf_of, swap.beside))
    return tuple(
        (situation, target)
        for situation, target in found
        if target.vdev.state == "OFFLINE"
        if any(_took_offline(e.command, situation.pool.name) for e in swap.log)
    )


def _took_offline(command: str, pool: str) -> bool:
    """Whether a command of the log, quoted for a shell, took a device of this pool offline."""
    try:
        words = shlex.split(command)
    except ValueError:  # a checklist that was damaged has to open all the same
        return False
    return words[:2] == ["zpool", "offline"] and words[-2] == pool


def others_offline(swap: Checklist, view: MachineView) -> Iterator[str]:
    """That devices of other pools are offline still, and what to run."""
    for situation, target in taken_offline(swap, view):
        name = f"{target.name} of {situation.pool.name}"
        yield f"{name}, on the same disk, is still OFFLINE: run {_online(situation, target)}"


def beside_left(swap: Checklist, view: MachineView) -> tuple[tuple[SwapDisk, str], ...]:
    """Devices of other pools that were on the old disk and are not complete, each in words."""
    if swap.pulled is None or swap.same:
        return ()
    found = ((disk, leaf[1]) for disk in swap.beside if (leaf := view.leaf_of(disk)) is not None)
    return tuple(
        (disk, _of_beside(swap, disk, target))
        for disk, target in found
        if not is_complete(target.vdev) and not stands_in(target)
    )


def _of_beside(swap: Checklist, disk: SwapDisk, target: Target) -> str:
    """That another pool still misses its part of the disk, and how it gets it back."""
    part = partition_of(target)
    where = f" in {disk.place}" if disk.place else ""
    said = f"{disk.name} of {disk.pool} was on the same disk{where} and is {target.vdev.state}:"
    guided = shlex.join(("zconsole", "swap", disk.pool, disk.name))
    said += f" it needs a swap of its own ({guided})"
    if part is None or swap.new is None:
        return said
    new = f"{swap.new.whole}-part{part}"
    replace = _zpool("replace", disk.pool, disk.name, new)
    return f"{said}, or, where the new disk has that partition: {replace}"


def light_words(swap: Checklist) -> Iterator[str]:
    """That the light of the bay is still on, and what to run."""
    if swap.lit and "light-off" not in swap.passed:
        yield f"the light of {swap.old.spot} is still on: run {_dark(swap.old)}"


def _dark(disk: SwapDisk) -> str:
    """The command that switches its light off; its path is unknown where another disk took it."""
    named = disk.whole or disk.serial
    return shlex.join(("zconsole", "light", "off", *((named,) if named else ())))


def _online(situation: Situation, target: Target) -> str:
    if target.vdev.state == "FAULTED":
        return _zpool("clear", situation.pool.name, target.argument)
    return _zpool("online", situation.pool.name, disk_path(target.vdev))


def _zpool(verb: str, *operands: str) -> str:
    """A command to run by hand: names may hold blanks, as those of pools do (zpool-create(8))."""
    return shlex.join(zpool(verb, operands=operands))


def way_back(swap: Checklist, view: MachineView, stage: SwapStage, clean: bool) -> WayBack | None:
    """What Back does: the inverse of what was done last; ``clean``: nothing is left undone."""
    if stage.alarm or stage.step == "light-off":
        return None
    if stage.step == "scrub":
        situation = view.situation
        return (
            _before_scrub(swap, situation) if stage.plan is not None else _stopping(swap, situation)
        )
    return _from_disk(swap, view, stage, clean)


def _from_disk(swap: Checklist, view: MachineView, stage: SwapStage, clean: bool) -> WayBack | None:
    """The inverse of what was done to the disks, or their light."""
    situation = view.situation
    target = find(situation.pool, swap.old.key)
    out = device_of(swap.old, view.devices) is None
    if target is not None and target.group is not None and target.group.kind == "replacing":
        return _detaching(swap, view)
    if swap.same and target is not None and stage.step == "resilver":
        return WayBack(
            f"take {target.name} offline again", plan_offline_safely(situation, target.key)
        )
    if swap.pulled is not None and target is not None and out and view.devices:
        disk = f"the old disk ({swap.old.mark})" if swap.old.mark else "the old disk"
        return WayBack(
            f"put {disk} back into {swap.old.place or 'its bay'}: it is put online again"
        )
    if swap.lit and "light-off" not in swap.passed and not old_helps(swap, view):
        return WayBack("switch the light off", plan_light(situation, swap.old, on=False))
    back = None if target is None else _onlining(swap, view, target)
    return back or _detaching(swap, view) or _closing(swap, clean and target is not None)


def _before_scrub(swap: Checklist, situation: Situation) -> WayBack | None:
    """Switch the light on that was switched off last."""
    if "light-off" not in swap.passed or swap.lit or not swap.old.light:
        return None
    return WayBack("switch the light on again", plan_light(situation, swap.old, on=True))


def _stopping(swap: Checklist, situation: Situation) -> WayBack | None:
    """Stop the scrub that this checklist began."""
    if swap.scrub_begun is None or situation.active("scrub") is None:
        return None
    return WayBack("stop the scrub", plan_stop(situation))


def _onlining(swap: Checklist, view: MachineView, target: Target) -> WayBack | None:
    """Put online what was taken offline, the devices of other pools on the disk first."""
    for situation, other in taken_offline(swap, view):
        text = f"put {other.name} of {situation.pool.name} online again"
        return WayBack(text, plan_online(situation, other.key))
    if target.vdev.state != "OFFLINE":
        return None
    return WayBack(f"put {target.name} online again", plan_online(view.situation, target.key))


def _detaching(swap: Checklist, view: MachineView) -> WayBack | None:
    plan = undo_replace(swap, view)
    return None if plan is None else WayBack(plan.title[:1].lower() + plan.title[1:], plan)


def _closing(swap: Checklist, clean: bool) -> WayBack | None:
    """Nothing was done, or it is undone: the checklist can be closed."""
    if not clean or swap.pulled is not None:
        return None
    return WayBack("give up this swap: nothing is left to undo", closes=True)
