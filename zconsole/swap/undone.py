"""What is not as it was before the swap: what stays so when the checklist is given up."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

from zconsole.actions.plan import Situation, zpool
from zconsole.actions.target import Target, disk_path, find, stands_in
from zconsole.hardware.light import LASTING
from zconsole.pool.redundancy import is_complete
from zconsole.pool.topology import FAILED
from zconsole.swap.checklist import OPEN, Checklist
from zconsole.swap.disk import SwapDisk, device_of
from zconsole.swap.effects import vdev_words
from zconsole.swap.refusal import partition_of
from zconsole.swap.view import MachineView


def undone(c: Checklist, v: MachineView) -> tuple[str, ...]:
    """What the swap, or a wrong pull during it, left undone, each with what to do about it."""
    found = (_of_wrong(c, v), _of_old(c, v), others_offline(c, v), light_words(c))
    return tuple(text for each in found for text in each)


def reminders(c: Checklist, v: MachineView, now: float) -> tuple[str, ...]:
    """What nothing leads on from: disks meant to go; all of what a closed checklist left."""
    if c.state == OPEN:
        return tuple(_of_wrong(replace(c, wrong=()), v))
    lights = tuple(light_words(c))
    switched = max((e.t for e in c.log if e.step == "light" and e.command), default=c.begun)
    found = undone(c, v) if c.undone else lights
    return tuple(text for text in found if text not in lights or now - switched < LASTING)


def still_out(c: Checklist, v: MachineView) -> tuple[str, ...]:
    """Disks that somebody meant to pull and the pool still misses, with the redundancy left."""
    said: list[str] = []
    for disk in c.meant:
        found = v.leaf_of(disk)
        if found is None or is_complete(found[1].vdev):
            continue
        if found[1].vdev.shared and found[1].vdev.state not in FAILED:
            continue  # nothing makes it complete
        left = vdev_words(*found)
        said.append(f"{disk.words} is still out{f'; {left}' if left else ''}.")
    if said and old_helps(c, v):
        said.append(f"Put {c.old.words} online again first: that gives redundancy back.")
    return tuple(said)


def old_helps(c: Checklist, v: MachineView) -> bool:
    """Whether the old disk could stand in for one that is out: it is in, and was only offlined."""
    if not c.meant:
        return False
    target = find(v.situation.pool, c.old.key)
    there = device_of(c.old, v.devices) is not None
    return there and target is not None and target.vdev.state == "OFFLINE"


def _of_wrong(c: Checklist, v: MachineView) -> Iterator[str]:
    for disk in (*c.wrong, *c.meant):
        found = v.leaf_of(disk)
        out = device_of(disk, v.devices) is None
        if found is None:  # where its pool is there, that has let it go
            if out and v.of(disk.pool) is None:
                yield f"{disk.words} is still out: put it back"
            continue
        s, target = found
        if out:
            yield f"{disk.words} is still out: put it back, then run {_online(s, target)}"
        elif target.vdev.state in FAILED:
            yield f"{disk.words} is in again, but {target.vdev.state}: run {_online(s, target)}"
        elif not (is_complete(target.vdev) or target.vdev.shared):
            yield f"{disk.words} is not complete yet: wait for its resilver"


def _of_old(c: Checklist, v: MachineView) -> Iterator[str]:
    s = v.situation
    target = find(s.pool, c.old.key)
    if target is None:
        return
    group = target.group
    if group is not None and group.kind == "replacing":
        detach = _zpool("detach", s.pool.name, disk_path(group.children[-1]))
        yield (
            f"{group.children[-1].name} still takes the place of {c.old.words}: let the resilver"
            f" go on, nothing is lost; or run {detach}"
        )
    elif group is not None and c.spare is not None:
        detach = _zpool("detach", s.pool.name, disk_path(group.children[-1]))
        yield f"hot spare {group.children[-1].name} still stands in for it: run {detach}"
    if v.devices and device_of(c.old, v.devices) is None and not c.was_gone:
        what = f"put it back, then run {_online(s, target)}, or replace it (zpool replace)"
        yield f"{c.old.words} is still out: {what}"
    elif target.vdev.state == "OFFLINE":
        yield f"{c.old.words} is still OFFLINE: run {_online(s, target)}"


def taken_offline(c: Checklist, v: MachineView) -> tuple[tuple[Situation, Target], ...]:
    """Devices of other pools that this swap took offline, and that are on the old disk still."""
    if device_of(c.old, v.devices) is None:
        return ()
    found = filter(None, map(v.leaf_of, c.beside))
    return tuple(
        (s, target)
        for s, target in found
        if target.vdev.state == "OFFLINE"
        if any(_took_offline(e.command, s.pool.name) for e in c.log)
    )


def _took_offline(command: str, pool: str) -> bool:
    """Whether a command of the log, quoted for a shell, took a device of this pool offline."""
    try:
        words = shlex.split(command)
    except ValueError:  # a checklist that was damaged has to open all the same
        return False
    return words[:2] == ["zpool", "offline"] and words[-2] == pool


def others_offline(c: Checklist, v: MachineView) -> Iterator[str]:
    """That devices of other pools are offline still, and what to run."""
    for s, target in taken_offline(c, v):
        name = f"{target.name} of {s.pool.name}"
        yield f"{name}, on the same disk, is still OFFLINE: run {_online(s, target)}"


def beside_left(c: Checklist, v: MachineView) -> tuple[tuple[SwapDisk, str], ...]:
    """Devices of other pools that were on the old disk and are not complete, each in words."""
    if c.pulled is None or c.same:
        return ()
    found = ((disk, leaf[1]) for disk in c.beside if (leaf := v.leaf_of(disk)) is not None)
    return tuple(
        (disk, _of_beside(c, disk, target))
        for disk, target in found
        if not is_complete(target.vdev) and not stands_in(target)
    )


def _of_beside(c: Checklist, disk: SwapDisk, target: Target) -> str:
    """That another pool still misses its part of the disk, and how it gets it back."""
    part = partition_of(target)
    where = f" in {disk.place}" if disk.place else ""
    said = f"{disk.name} of {disk.pool} was on the same disk{where} and is {target.vdev.state}:"
    swap = shlex.join(("zconsole", "swap", disk.pool, disk.name))
    said += f" it needs a swap of its own ({swap})"
    if part is None or c.new is None:
        return said
    new = f"{c.new.whole}-part{part}"
    replace = _zpool("replace", disk.pool, disk.name, new)
    return f"{said}, or, where the new disk has that partition: {replace}"


def light_words(c: Checklist) -> Iterator[str]:
    """That the light of the bay is still on, and what to run."""
    if c.lit and "light-off" not in c.passed:
        yield f"the light of {c.old.spot} is still on: run {_dark(c.old)}"


def _dark(disk: SwapDisk) -> str:
    """The command that switches its light off; its path is unknown where another disk took it."""
    named = disk.whole or disk.serial
    return shlex.join(("zconsole", "light", "off", *((named,) if named else ())))


def _online(s: Situation, target: Target) -> str:
    if target.vdev.state == "FAULTED":
        return _zpool("clear", s.pool.name, target.argument)
    return _zpool("online", s.pool.name, disk_path(target.vdev))


def _zpool(verb: str, *operands: str) -> str:
    """A command to run by hand: names may hold blanks, as those of pools do (zpool-create(8))."""
    return shlex.join(zpool(verb, operands=operands))
