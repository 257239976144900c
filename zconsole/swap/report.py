"""The report of a swap, as Markdown that can be filed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import Any

from zconsole.swap.checklist import (
    DONE,
    NOT_NEEDED,
    OPEN,
    TITLES,
    WAYS,
    Checklist,
    SwapEntry,
    SwapStage,
    sentence,
)
from zconsole.swap.choice import SwapChoice
from zconsole.swap.disk import SwapDisk
from zconsole.system.printable import clean
from zconsole.units import duration, size


def markdown(swap: Checklist, zone: tzinfo | None = UTC) -> str:
    """What was swapped, why, when and by which commands; times in ``zone``, None the machine's."""
    return "\n".join(clean(line) for line in _lines(swap, zone)) + "\n"


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
        return f"{TITLES[entry.step]}: {entry.text}"
    return entry.text


def _lines(swap: Checklist, zone: tzinfo | None) -> Iterator[str]:
    yield f"# Disk swap in {swap.pool}: {swap.old.name}"
    yield ""
    yield from (f"{line}  " for line in summary(swap))
    yield ""
    yield "| | old disk | new disk |"
    yield "| --- | --- | --- |"
    for label, old, new in _rows(swap):
        yield f"| {label} | {_cell(old)} | {_cell(new)} |"
    yield ""
    yield f"- pool: {swap.pool}{f' (GUID {swap.guid})' if swap.guid else ''}, vdev {swap.vdev}"
    yield f"- way: {WAYS[swap.mode]}"
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
        yield from _entry(entry, zone)


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


def _rows(swap: Checklist) -> Iterator[tuple[str, str, str]]:
    new = swap.new or SwapDisk("")
    for label, name in (
        ("name", "name"),
        ("bay", "bay"),
        ("port", "port"),
        ("model", "model"),
        ("serial", "serial"),
        ("WWN", "wwn"),
        ("path", "whole"),
    ):
        yield label, str(getattr(swap.old, name)), str(getattr(new, name))
    yield "size", size(swap.old.size), size(new.size)


def _cell(text: str) -> str:
    return text.replace("|", "\\|") or "-"


def _entry(entry: SwapEntry, zone: tzinfo | None) -> Iterator[str]:
    yield f"- {_when(entry.t, zone)} {entry_words(entry)}"
    if entry.command:
        yield f"  - `{entry.command}`: {entry.result or 'no result'}"


def _when(t: float, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(t, UTC).astimezone(zone).strftime("%Y-%m-%d %H:%M:%S %Z")


def checklist_record(swap: Checklist, stage: SwapStage | None) -> dict[str, Any]:
    """What scripts read; ``stage`` is None where the machine was not looked at."""
    return {
        "id": swap.id,
        "pool": swap.pool,
        "guid": swap.guid,
        "vdev": swap.vdev,
        "mode": swap.mode,
        "state": swap.state,
        "begun": swap.begun,
        "ended": swap.ended,
        "old": _disk(swap.old),
        "new": None if swap.new is None else _disk(swap.new),
        "step": stage.step if stage else swap.at,
        "steps": list(swap.steps),
        **(_stage(stage) if stage else {}),
        "log": [
            {
                "t": entry.t,
                "step": entry.step,
                "text": entry.text,
                "command": entry.command or None,
                "result": entry.result or None,
            }
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
        "question": asks(stage),
        "commands": [step.command for step in stage.plan.steps] if stage.plan else [],
        "refused": stage.plan.refused if stage.plan else None,
        "answers": [answer.name for answer in stage.answers],
    }


def asks(stage: SwapStage) -> bool:
    """Whether the step needs somebody's yes or word, rather than time or hands."""
    return not stage.over and (stage.plan is not None or not stage.waits)
