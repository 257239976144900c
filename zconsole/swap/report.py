"""What a swap was, for others: a report in Markdown that can be filed, and JSON for scripts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, tzinfo
from typing import Any

from zconsole.swap.checklist import (
    DONE,
    NOT_NEEDED,
    OPEN,
    WAYS,
    Checklist,
    SwapEntry,
    SwapStage,
    sentence,
)
from zconsole.swap.choice import SwapChoice
from zconsole.swap.disk import SwapDisk
from zconsole.swap.steps import STEPS
from zconsole.system.printable import inert
from zconsole.units import duration, size


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
    return (end, *_scrubbed(swap))


def _scrubbed(swap: Checklist) -> Iterator[str]:
    """How the scrub ended; of one that was not waited for, who knows it."""
    own = [entry for entry in swap.log if entry.step == "scrub"]
    if swap.scrub_begun is None:
        return
    if "scrub" in swap.passed:
        yield f"The scrub still ran when this ended: zpool status {swap.pool} tells its result."
    else:
        yield f"{sentence(own[-1].text)}."


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
