"""Texts and JSON records of a swap: the explanation before it, reminders, and the final report."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, tzinfo
from typing import Any

from zconsole.actions.plan import Situation
from zconsole.actions.running_scans import after_running
from zconsole.actions.target import partition_of, stands_in
from zconsole.diagnosis.device_errors.faults import SUSPECTS
from zconsole.hardware.light import LASTING
from zconsole.keyed_text import KeyedText
from zconsole.pool.model import FAILED
from zconsole.pool.redundancy import is_complete
from zconsole.scan_report.resilver_time import NO_SCAN
from zconsole.swap.choice import SwapChoice, SwapWay
from zconsole.swap.disk import (
    DONE,
    OPEN,
    SPARE_FIRST,
    Checklist,
    MachineView,
    SwapDisk,
    SwapEntry,
    sentence,
)
from zconsole.swap.effects import redundancy_words, without
from zconsole.swap.stage import (
    SwapStage,
    WayBack,
    light_words,
    online_line,
    undo_offline,
    zpool_line,
)
from zconsole.swap.steps import NOT_NEEDED, STEPS, WAYS, all_ways_back, steps_of
from zconsole.system.printable import inert
from zconsole.timeline.eta.estimate import Estimate
from zconsole.units import duration, size
from zconsole.zfs.zpool_output import ZpoolOutput


def explained(choice: SwapChoice) -> dict[str, list[str]]:
    """Return the explanation of a swap as lines by heading; headings without lines are left out.

    Risks come before the ways.
    """
    by_hand = [choice.refused] if choice.way is None else []
    if choice.refusal is not None:
        by_hand += [f"{n}. {line}" for n, line in enumerate(choice.refusal.manual, 1)]
        if choice.refusal.title:  # all else comes after it
            return {"Not guided": [choice.refusal.title, *by_hand]}
    old, others = choice.old, dict.fromkeys(effect.pool for effect in choice.effects)
    others.pop(old.pool, None)
    stay = ", ".join(disk.words for disk in choice.untouchable)
    out = f"With {old.spot} out and no new disk filled, pulling any of these loses data: {stay}"
    # A device that still works has not failed, so the heading must not say so.
    wrong = "What failed" if choice.failed else "What is wrong" if choice.faulty else "State"
    judged = (f"Judged: {SUSPECTS[choice.cause]}",) if choice.faulty else ()
    own = "needs a swap of its own afterwards; it is offered at the end of this one"
    parts = {
        "First": [sentence(choice.advice)] if choice.advice else [],
        f"Swap {old.words}": [*_about(choice)],
        wrong: [*choice.draft.why, *judged],
        "Redundancy now": [*choice.redundancy],
        "What a pull does now": [
            *(effect.text for effect in choice.effects),
            *(f"{pool} {own}" for pool in others),
        ],
        "Must stay": [
            *((out,) * bool(stay)),
            f"Pull {old.words} only; every other disk stays where it is",
        ],
        "Ways": [way_text(way) for way in choice.ways],
        "Not guided": by_hand,
    }
    return {heading: lines for heading, lines in parts.items() if lines}


def _about(choice: SwapChoice) -> Iterator[str]:
    old = choice.old
    yield f"{old.name} in {choice.draft.vdev} of {old.pool}"
    if old.model:
        yield f"Model {old.model}"
    if not old.place:
        yield "Its bay is unknown: find it by its serial number"
    if not old.mark:
        yield "Its serial number is unknown: a wrong disk in its place isn't noticed"


def way_text(way: SwapWay) -> str:
    """Return a way in one line: its title, and why it is or isn't possible."""
    return f"{WAYS[way.mode].title}: {f'not now: {way.refused}' if way.refused else way.why}"


def time_words(situation: Situation, way: SwapWay, estimate: Estimate | None) -> str:
    """Return how long the resilvers of a way take, and the basis of the estimate."""
    if way.begun and situation.left is not None:
        return f"Time: {duration(situation.left)} left of the resilver that runs"
    times = 2 if way.mode == SPARE_FIRST else 1
    runs = "two resilvers" if times > 1 else "one resilver"
    if not way.begun:
        runs = f"{after_running(situation)}{runs}"
    if estimate is None or estimate.eta is None:
        return f"Time: {runs} of unknown duration: {NO_SCAN}"
    each = " each" if times > 1 else " in all, and it runs already" if way.begun else ""
    return f"Time: {runs}, about {duration(estimate.eta)}{each}: {estimate.reason}"


def undone(swap: Checklist, view: MachineView) -> tuple[str, ...]:
    """Return what the swap or a wrong pull left undone, each with what to do about it."""
    stands = (back.left for back in all_ways_back(swap, view) if back.left)
    return (*_not_back((*swap.wrong, *swap.meant), view), *stands)


def reminders(swap: Checklist, view: MachineView, now: float) -> tuple[str, ...]:
    """Return reminders that no step of the checklist deals with.

    For an open checklist: disks that were pulled on purpose. For a closed one: everything it left
    undone; a light only for as long as it can be on.
    """
    if swap.state == OPEN:
        return tuple(_not_back(swap.meant, view))
    light = light_words(swap)
    # A light is switched off after LASTING seconds, so a reminder of it would be wrong then.
    switched = max((e.t for e in swap.log if e.step == "light" and e.command), default=swap.begun)
    found = undone(swap, view) if swap.undone else filter(None, (light,))
    return tuple(text for text in found if text != light or now - switched < LASTING)


def still_out(swap: Checklist, view: MachineView) -> Iterator[str]:
    """Yield warnings about disks pulled on purpose that their pool still misses."""
    said = [f"{text}." for text in _not_back(swap.meant, view)]
    yield from said
    if said and old_helps(swap, view):  # that restores redundancy at once
        first = f"Put {view.placed(swap.old).spot} online again first"
        yield KeyedText(f"{first}.", f"{first} ({{keys}}).", "undo-step")


def out_early(swap: Checklist, view: MachineView) -> Iterator[str]:
    """Yield a warning if the old disk is out before the new one is filled, and was still read."""
    elsewhere = swap.new is not None and swap.new.spot != swap.old.spot
    early = swap.was_needed and (swap.pulled is None or elsewhere)
    # The pool notices a pull only at its next read or write.
    seen = without(view, (swap.old,))
    target = seen.target(swap.old.key)
    out = bool(view.devices) and view.device(swap.old) is None
    if not (early and out) or target is None or target.vdev.state == "FAULTED":
        return
    for left in redundancy_words(seen.situation, target.top):
        what = f"{swap.old.words} is out too early: put it back"
        yield f"{what}; until the new disk is filled, {left}."


def still_in(swap: Checklist, view: MachineView) -> Iterator[str]:
    """Yield a warning if the old disk was said to be out, and the machine still shows it."""
    said = swap.unseen and swap.pulled is not None and not swap.same
    # Where a new disk is awaited in its bay, the step itself says so.
    if said and swap.new is not None and view.device(swap.old) is not None:
        yield f"The machine still shows {swap.old.words}. If it is still in, pull it now."


def old_helps(swap: Checklist, view: MachineView) -> bool:
    """Return whether the old disk is in and only OFFLINE, so that it could restore redundancy."""
    target = view.target(swap.old.key)
    out = any(disk.pool == swap.pool for disk in (*swap.wrong, *swap.meant))
    if not out or target is None or view.situation.suspended or view.device(swap.old) is None:
        return False
    return target.vdev.state == "OFFLINE"


def _not_back(disks: Iterable[SwapDisk], view: MachineView) -> Iterator[str]:
    """Yield what is left to do about disks that were pulled by mistake or on purpose."""
    for disk in disks:
        found, out = view.leaf_of(disk), view.device(disk) is None
        if found is None:  # if its pool is imported, the pool no longer has this device
            if out and view.of(disk.pool) is None:
                yield f"{disk.words} is still out: put it back"
            continue
        situation, target = found
        leaf = target.vdev
        left = "".join(f" ({words})" for words in redundancy_words(situation, target.top))
        run = f"run {online_line(situation, target)}{left}"
        if out:
            yield f"{disk.words} is still out: put it back, then {run}"
        elif leaf.state in FAILED:
            yield f"{disk.words} is in again, but {leaf.state}: {run}"
        elif not (is_complete(leaf) or leaf.shared):
            yield f"{disk.words} is not complete yet: wait for its resilver"


def beside_left(swap: Checklist, view: MachineView) -> tuple[tuple[SwapDisk, str], ...]:
    """Return devices of other pools that were on the old disk and are incomplete, with advice."""
    found: list[tuple[SwapDisk, str]] = []
    for disk in () if swap.pulled is None or swap.same else swap.beside:
        leaf = view.leaf_of(disk)
        if leaf is None or is_complete(leaf[1].vdev) or stands_in(leaf[1]):
            continue
        guided = shlex.join(("zconsole", "swap", disk.pool, disk.name))
        said = (
            f"{swap.old.words} also held {disk.name} of {disk.pool}, which is {leaf[1].vdev.state}:"
            f" it needs a swap of its own ({guided})"
        )
        if (part := partition_of(leaf[1].vdev)) is not None and swap.new is not None:
            command = zpool_line("replace", disk.pool, disk.name, f"{swap.new.whole}-part{part}")
            said += f", or, where the new disk has that partition: {command}"
        found.append((disk, said))
    return tuple(found)


def way_back(swap: Checklist, view: MachineView, stage: SwapStage, clean: bool) -> WayBack | None:
    """Return what the Back action does: undo what was done last. None if it can do nothing.

    ``clean``: nothing is left undone, so giving up the swap needs no command.
    """
    helps = old_helps(swap, view)
    if stage.alarm:  # of the devices on the disk, its own comes last
        return [*undo_offline(swap, view)][-1] if helps else None
    stands = [back for back in all_ways_back(swap, view, stage.step) if back.text]
    if helps:  # restore redundancy before switching a light
        stands.sort(key=lambda back: back.plan is None or back.plan.action != "online")
    gives_up = clean and view.target(swap.old.key) is not None and swap.pulled is None
    if not stands and gives_up:
        return WayBack(f"give up this swap: {swap.undoable}", closes=True)
    return next(iter(stands), None)


def markdown(
    swap: Checklist, zone: tzinfo | None = UTC, outputs: Sequence[ZpoolOutput] = ()
) -> str:
    """Return the swap report as Markdown; times are in ``zone``, None means the local zone.

    ``outputs``: what zpool says about the pool at the end, quoted as code.
    """
    lines = [inert(line) for line in _lines(swap, zone)]
    if outputs:
        lines += ["", "## zpool's own words"]
    for output in outputs:
        lines += ["", *(f"    {line}" for line in output.text.split("\n"))]
    return "\n".join(lines) + "\n"


def summary(swap: Checklist) -> tuple[str, ...]:
    """Return the outcome of a swap in a few sentences."""
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
        back = swap.new if swap.new.place else swap.old
        end = f"{back.words} is online again in {swap.vdev} of {swap.pool}, {took}."
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
    """Return the text of a log entry, preceded by the step's title if it would be unclear alone."""
    if entry.text.startswith(NOT_NEEDED):
        return f"{STEPS[entry.step].title}: {entry.text}"
    return entry.text


def _lines(swap: Checklist, zone: tzinfo | None) -> Iterator[str]:
    yield f"# Disk swap in {swap.pool}: {swap.old.words}"
    yield ""
    # Two blanks at the end of a line are a line break in Markdown.
    yield from (f"{line}  " for line in summary(swap))
    yield ""
    yield "| | old disk | new disk |"
    yield "| --- | --- | --- |"
    new = swap.new or SwapDisk("")
    for label, name in _FACTS.items():
        facts = [getattr(disk, name) for disk in (swap.old, new)]
        if name == "name":  # the path for a disk without a pool, unlike those of zpool status
            facts = [fact.rpartition("/")[2] if fact[:5] == "/dev/" else fact for fact in facts]
        yield f"| {label} | {' | '.join(map(_cell, facts))} |"
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
    """Yield the line with the resilver's duration and the predicted one."""
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
"""Report labels of disk facts, and the ``SwapDisk`` field of each."""


def _cell(text: str) -> str:
    return text.replace("|", "\\|") or "-"


def _when(at: float, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone(zone).strftime("%Y-%m-%d %H:%M:%S %Z")


_KEPT = ("id", "pool", "guid", "vdev", "mode", "state", "begun", "ended")
"""Checklist fields that are copied unchanged into the JSON record."""


def checklist_record(swap: Checklist, stage: SwapStage | None) -> dict[str, Any]:
    """Return a checklist as a JSON record; ``stage`` is None if the machine was not read."""
    return {
        **{name: getattr(swap, name) for name in _KEPT},
        "old": _disk(swap.old),
        "new": None if swap.new is None else _disk(swap.new),
        "step": stage.step if stage else swap.at,
        "steps": list(steps_of(swap)),
        **(_stage(stage) if stage else {}),
        "log": [
            {**asdict(entry), "command": entry.command or None, "result": entry.result or None}
            for entry in swap.log
        ],
    }


def choice_record(choice: SwapChoice) -> dict[str, Any]:
    """Return the JSON record of a swap that has not begun."""
    return {
        "pool": choice.old.pool,
        "guid": choice.draft.guid,
        "vdev": choice.draft.vdev,
        "old": _disk(choice.old),
        "gone": choice.draft.was_gone,
        "found": list(choice.draft.why),
        "cause": choice.cause,
        "redundancy": list(choice.redundancy),
        "must_stay": [_disk(disk) for disk in choice.untouchable],
        "effects": [
            {
                "pool": effect.pool,
                "device": effect.target.vdev.name,
                "vdev": effect.target.top.name,
                "left": effect.left,
            }
            for effect in choice.effects
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
