"""What is not as it was before the swap: the way back, and what stays when it is given up."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

from zconsole.actions.offline import plan_detach, plan_online
from zconsole.actions.plan import Situation, zpool
from zconsole.actions.scrub import plan_stop
from zconsole.actions.target import Target, disk_path, partition_of, stands_in
from zconsole.hardware.light import LASTING
from zconsole.pool.redundancy import is_complete
from zconsole.pool.topology import FAILED
from zconsole.swap.checklist import OPEN, Checklist, SwapStage, WayBack
from zconsole.swap.disk import MachineView, SwapDisk, replacing
from zconsole.swap.effects import plan_offline_safely, vdev_words
from zconsole.swap.steps import plan_light


def undone(swap: Checklist, view: MachineView) -> tuple[str, ...]:
    """What the swap, or a wrong pull during it, left undone, each with what to do about it."""
    found = (_of_wrong, _of_old, others_offline)
    texts = (text for each in found for text in each(swap, view))
    return (*texts, *light_words(swap))


def reminders(swap: Checklist, view: MachineView, now: float) -> tuple[str, ...]:
    """What nothing leads on from: disks meant to go; all of what a closed checklist left."""
    if swap.state == OPEN:
        return tuple(_of_wrong(replace(swap, wrong=()), view))
    lights = light_words(swap)
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
    if said and _old_helps(swap, view):
        said.append(f"Put {swap.old.words} online again first: that gives redundancy back.")
    return tuple(said)


def _old_helps(swap: Checklist, view: MachineView) -> bool:
    """Whether the old disk could stand in for one that is out: it is in, and was only offlined."""
    target = view.target(swap.old.key) if swap.meant else None
    there = view.device(swap.old) is not None
    return there and target is not None and target.vdev.state == "OFFLINE"


def _of_wrong(swap: Checklist, view: MachineView) -> Iterator[str]:
    for disk in (*swap.wrong, *swap.meant):
        found, out = view.leaf_of(disk), view.device(disk) is None
        if found is None:  # where its pool is there, that has let it go
            if out and view.of(disk.pool) is None:
                yield f"{disk.words} is still out: put it back"
            continue
        leaf = found[1].vdev
        if out:
            yield f"{disk.words} is still out: put it back, then run {_online(*found)}"
        elif leaf.state in FAILED:
            yield f"{disk.words} is in again, but {leaf.state}: run {_online(*found)}"
        elif not (is_complete(leaf) or leaf.shared):
            yield f"{disk.words} is not complete yet: wait for its resilver"


def _of_old(swap: Checklist, view: MachineView) -> Iterator[str]:
    situation, target = view.situation, view.target(swap.old.key)
    if target is None:
        return
    group, words = target.group, swap.old.words
    if group is not None and (group.kind == "replacing" or swap.spare is not None):
        new = group.children[-1]
        detach = _zpool("detach", view.pool.name, disk_path(view.pool, new, expands=True))
        if group.kind == "replacing":
            yield (
                f"{new.name} still takes the place of {words}: let the resilver"
                f" go on, nothing is lost; or run {detach}"
            )
        else:
            yield f"hot spare {new.name} still stands in for it: run {detach}"
    if view.devices and view.device(swap.old) is None and not swap.was_gone:
        online = _online(situation, target)
        yield f"{words} is still out: put it back, then run {online}, or replace it (zpool replace)"
    elif target.vdev.state == "OFFLINE":
        yield f"{words} is still OFFLINE: run {_online(situation, target)}"


def taken_offline(swap: Checklist, view: MachineView) -> tuple[tuple[Situation, Target], ...]:
    """Devices of other pools that this swap took offline, and that are on the old disk still."""
    if view.device(swap.old) is None:
        return ()
    return tuple(
        (situation, target)
        for situation, target in filter(None, map(view.leaf_of, swap.beside))
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
    part = partition_of(target.vdev)
    where = f" in {disk.place}" if disk.place else ""
    said = f"{disk.name} of {disk.pool} was on the same disk{where} and is {target.vdev.state}:"
    guided = shlex.join(("zconsole", "swap", disk.pool, disk.name))
    said += f" it needs a swap of its own ({guided})"
    if part is None or swap.new is None:
        return said
    command = _zpool("replace", disk.pool, disk.name, f"{swap.new.whole}-part{part}")
    return f"{said}, or, where the new disk has that partition: {command}"


def light_words(swap: Checklist) -> tuple[str, ...]:
    """That the light of the bay is still on, and what to run; () where it is off."""
    if not swap.lit or "light-off" in swap.passed:
        return ()
    named = swap.old.whole or swap.old.serial  # its path is unknown where another disk took it
    off = shlex.join(("zconsole", "light", "off", *filter(None, (named,))))
    return (f"the light of {swap.old.spot} is still on: run {off}",)


def _online(situation: Situation, target: Target) -> str:
    if target.vdev.state == "FAULTED":
        return _zpool("clear", situation.pool.name, target.argument)
    return _zpool(
        "online", situation.pool.name, disk_path(situation.pool, target.vdev, situation.expands)
    )


def _zpool(verb: str, *operands: str) -> str:
    """A command to run by hand: names may hold blanks, as those of pools do (zpool-create(8))."""
    return shlex.join(zpool(verb, operands=operands))


def way_back(swap: Checklist, view: MachineView, stage: SwapStage, clean: bool) -> WayBack | None:
    """What Back does: the inverse of what was done last; ``clean``: nothing is left undone."""
    if stage.alarm or stage.step == "light-off":
        return None
    if stage.step == "scrub":
        return _of_scrub(swap, view.situation, offered=stage.plan is not None)
    target = view.target(swap.old.key)
    if replacing(target) is not None:
        return _detaching(swap, view, target)
    back = None if target is None else _of_place(swap, view, stage, target)
    if back is None and light_words(swap) and not _old_helps(swap, view):
        back = WayBack("switch the light off", plan_light(view.situation, swap.old, on=False))
    back = back or _onlining(swap, view, target) or _detaching(swap, view, target)
    if back is None and clean and target is not None and swap.pulled is None:
        back = WayBack("give up this swap: nothing is left to undo", closes=True)
    return back


def _of_place(
    swap: Checklist, view: MachineView, stage: SwapStage, target: Target
) -> WayBack | None:
    """Take the disk that came back offline again, or put the one that is out back."""
    if swap.same and stage.step == "resilver":
        plan = plan_offline_safely(view.situation, target.key)
        return WayBack(f"take {target.name} offline again", plan)
    if swap.pulled is None or not view.devices or view.device(swap.old) is not None:
        return None
    disk = f"the old disk ({swap.old.mark})" if swap.old.mark else "the old disk"
    return WayBack(f"put {disk} back into {swap.old.place or 'its bay'}: it is put online again")


def _onlining(swap: Checklist, view: MachineView, target: Target | None) -> WayBack | None:
    """Put online what was taken offline, the devices of other pools on the disk first."""
    if target is None:
        return None
    for situation, other in taken_offline(swap, view):
        text = f"put {other.name} of {situation.pool.name} online again"
        return WayBack(text, plan_online(situation, other.key))
    if target.vdev.state != "OFFLINE":
        return None
    return WayBack(f"put {target.name} online again", plan_online(view.situation, target.key))


def _of_scrub(swap: Checklist, situation: Situation, offered: bool) -> WayBack | None:
    """Switch the light on that was switched off last, or stop the scrub that was begun."""
    if offered:
        if "light-off" not in swap.passed or swap.lit or not swap.old.light:
            return None
        return WayBack("switch the light on again", plan_light(situation, swap.old, on=True))
    if swap.scrub_begun is None or situation.active("scrub") is None:
        return None
    return WayBack("stop the scrub", plan_stop(situation))


def _detaching(swap: Checklist, view: MachineView, target: Target | None) -> WayBack | None:
    """Detach the new disk, or the spare that was put in, while it is being filled."""
    group = None if target is None else target.group
    if group is None or (key := group.children[-1].guid) is None:
        return None
    if group.kind != "replacing" and (group.kind != "spare" or swap.spare is None):
        return None
    plan = plan_detach(view.situation, key)
    return WayBack(plan.title[:1].lower() + plan.title[1:], plan)
