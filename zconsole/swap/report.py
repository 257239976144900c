"""What a swap leaves: the way back, what stays undone, a report in Markdown, JSON for scripts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime, tzinfo
from typing import Any

from zconsole.actions.offline import plan_detach, plan_online
from zconsole.actions.plan import Situation, zpool
from zconsole.actions.scrub import plan_stop
from zconsole.actions.target import Target, disk_path, partition_of, stands_in
from zconsole.hardware.light import LASTING
from zconsole.pool.redundancy import is_complete
from zconsole.pool.topology import FAILED
from zconsole.swap.checklist import (
    DONE,
    NOT_NEEDED,
    OPEN,
    WAYS,
    Checklist,
    SwapEntry,
    SwapStage,
    WayBack,
    sentence,
)
from zconsole.swap.choice import SwapChoice
from zconsole.swap.disk import MachineView, SwapDisk, replacing
from zconsole.swap.effects import plan_offline_safely, vdev_words
from zconsole.swap.steps import STEPS, plan_light
from zconsole.system.printable import inert
from zconsole.units import duration, size


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
    found: list[tuple[SwapDisk, str]] = []
    for disk in () if swap.pulled is None or swap.same else swap.beside:
        leaf = view.leaf_of(disk)
        if leaf is None or is_complete(leaf[1].vdev) or stands_in(leaf[1]):
            continue
        where = f" in {disk.place}" if disk.place else ""
        guided = shlex.join(("zconsole", "swap", disk.pool, disk.name))
        said = (
            f"{disk.name} of {disk.pool} was on the same disk{where} and is {leaf[1].vdev.state}:"
            f" it needs a swap of its own ({guided})"
        )
        if (part := partition_of(leaf[1].vdev)) is not None and swap.new is not None:
            command = _zpool("replace", disk.pool, disk.name, f"{swap.new.whole}-part{part}")
            said += f", or, where the new disk has that partition: {command}"
        found.append((disk, said))
    return tuple(found)


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
    own = ((view.situation, target),) if target.vdev.state == "OFFLINE" else ()
    for situation, each in (*taken_offline(swap, view), *own):
        of = "" if each is target else f" of {situation.pool.name}"
        return WayBack(f"put {each.name}{of} online again", plan_online(situation, each.key))
    return None


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


def markdown(swap: Checklist, zone: tzinfo | None = UTC) -> str:
    """What was swapped, why, when and by which commands; times in ``zone``, None the machine's."""
    return "\n".join(inert(line) for line in _lines(swap, zone)) + "\n"


def summary(swap: Checklist) -> tuple[str, ...]:
    """The end in a few sentences."""
    if swap.state == OPEN:
        return ("Every step is done.",)
    if swap.undone:
        return ("Given up. Not undone:", *map(sentence, swap.undone))
    if swap.state != DONE:
        return (f"Backed out: {swap.old.words} stays in {swap.vdev} of {swap.pool}.",)
    took = f"{duration((swap.ended or swap.begun) - swap.begun)} after this swap began"
    if swap.new is None:
        gone = f"{swap.old.words} is no longer in {swap.vdev} of {swap.pool}, {took}."
        return (gone, "What took its place, if anything did, was not seen here.")
    new = swap.new.words
    if swap.same:
        end = f"{swap.old.words} is online again in {swap.vdev} of {swap.pool}, {took}."
    else:
        end = f"{new} has replaced {swap.old.words} in {swap.vdev} of {swap.pool}, {took}."
    if swap.scrub_begun is None:
        return (end,)
    if "scrub" in swap.passed:
        told = f"The scrub still ran when this ended: zpool status {swap.pool} tells its result."
    else:
        told = f"{sentence([entry for entry in swap.log if entry.step == 'scrub'][-1].text)}."
    return (end, told)


def entry_words(entry: SwapEntry) -> str:
    """What happened, in words that need no other."""
    if entry.text.startswith(NOT_NEEDED):
        return f"{STEPS[entry.step].title}: {entry.text}"
    return entry.text


def _lines(swap: Checklist, zone: tzinfo | None) -> Iterator[str]:
    yield f"# Disk swap in {swap.pool}: {swap.old.name}"
    yield ""
    yield from (f"{line}  " for line in summary(swap))
    yield ""
    yield "| | old disk | new disk |"
    yield "| --- | --- | --- |"
    new = swap.new or SwapDisk("")
    for label, name in _FACTS.items():
        yield f"| {label} | {_cell(getattr(swap.old, name))} | {_cell(getattr(new, name))} |"
    yield f"| size | {size(swap.old.size)} | {size(new.size)} |"
    yield ""
    yield f"- pool: {swap.pool}{f' (GUID {swap.guid})' if swap.guid else ''}, vdev {swap.vdev}"
    yield f"- way: {WAYS[swap.mode].title}"
    yield f"- started: {_when(swap.begun, zone)}"
    if swap.ended is not None:
        yield f"- ended: {_when(swap.ended, zone)} ({swap.state})"
    yield from _resilver(swap)
    yield ""
    yield "## Why"
    yield ""
    yield from (f"- {line}" for line in swap.why)
    yield ""
    yield "## What happened"
    yield ""
    for entry in swap.log:
        yield f"- {_when(entry.t, zone)} {entry_words(entry)}"
        if entry.command:
            yield f"  - `{entry.command}`: {entry.result or 'no result'}"


def _resilver(swap: Checklist) -> Iterator[str]:
    """How long the resilver took, and how long it was said to take."""
    took = swap.resilvered
    if took is None and swap.predicted is None:
        return
    said = (
        f"predicted {duration(swap.predicted)} ({swap.basis})"
        if swap.predicted
        else "not predicted"
    )
    yield f"- resilver: {said}{'' if took is None else f', took {duration(took)}'}"


_FACTS = {name: name for name in ("name", "bay", "port", "model", "serial")}
_FACTS |= {"WWN": "wwn", "path": "whole"}
"""What the report calls a fact of a disk, and its field."""


def _cell(text: str) -> str:
    return text.replace("|", "\\|") or "-"


def _when(t: float, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(t, UTC).astimezone(zone).strftime("%Y-%m-%d %H:%M:%S %Z")


_KEPT = ("id", "pool", "guid", "vdev", "mode", "state", "begun", "ended")
"""What a script reads of a checklist as it is kept."""


def checklist_record(swap: Checklist, stage: SwapStage | None) -> dict[str, Any]:
    """What scripts read; ``stage`` is None where the machine was not looked at."""
    return {
        **{name: getattr(swap, name) for name in _KEPT},
        "old": _disk(swap.old),
        "new": None if swap.new is None else _disk(swap.new),
        "step": stage.step if stage else swap.at,
        "steps": list(swap.steps),
        **(_stage(stage) if stage else {}),
        "log": [
            {**asdict(entry), "command": entry.command or None, "result": entry.result or None}
            for entry in swap.log
        ],
    }


def choice_record(choice: SwapChoice) -> dict[str, Any]:
    """What a swap would be, before it begins."""
    return {
        "pool": choice.old.pool,
        "guid": choice.guid,
        "vdev": choice.vdev,
        "old": _disk(choice.old),
        "gone": choice.gone,
        "found": list(choice.found),
        "cause": choice.cause,
        "redundancy": list(choice.redundancy),
        "must_stay": [_disk(disk) for disk in choice.untouchable],
        "effects": [
            {"pool": e.pool, "device": e.name, "vdev": e.vdev, "left": e.left}
            for e in choice.effects
        ],
        "ways": [
            {
                "mode": way.mode,
                "why": way.why,
                "new": None if way.new is None else _disk(way.new),
                "refused": way.refused or None,
            }
            for way in choice.ways
        ],
        "refused": choice.refused or None,
        "by_hand": list(choice.refusal.manual) if choice.refusal else [],
    }


def _disk(disk: SwapDisk) -> dict[str, Any]:
    return {
        "name": disk.name,
        "path": disk.whole or None,
        "serial": disk.serial or None,
        "wwn": disk.wwn or None,
        "model": disk.model or None,
        "size_bytes": disk.size,
        "bay": disk.bay or None,
        "port": disk.port or None,
    }


def _stage(stage: SwapStage) -> dict[str, Any]:
    return {
        "title": stage.title,
        "text": list(stage.text),
        "warnings": list(stage.warnings),
        "waits_for": stage.waits or None,
        "alarm": stage.alarm,
        "question": stage.asks,
        "commands": [step.command for step in stage.plan.steps] if stage.plan else [],
        "refused": stage.plan.refused if stage.plan else None,
        "answers": [answer.name for answer in stage.answers],
    }
