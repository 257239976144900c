"""The report of a swap, as Markdown that can be filed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo

from zconsole.swap.checklist import DONE, NOT_NEEDED, OPEN, TITLES, WAYS, Checklist, SwapEntry
from zconsole.swap.disk import SwapDisk
from zconsole.swap.stage import sentence
from zconsole.system.printable import clean
from zconsole.units import duration, size


def markdown(c: Checklist, zone: tzinfo | None = UTC) -> str:
    """What was swapped, why, when and by which commands; times in ``zone``, None the machine's."""
    return "\n".join(clean(line) for line in _lines(c, zone)) + "\n"


def summary(c: Checklist) -> tuple[str, ...]:
    """The end in a few sentences."""
    if c.state == OPEN:
        return ("Every step is done.",)
    if c.undone:
        return ("Given up. Not undone:", *map(sentence, c.undone))
    if c.state != DONE:
        return (f"Backed out: {c.old.words} stays in {c.vdev} of {c.pool}.",)
    took = f"{duration((c.ended or c.begun) - c.begun)} after this swap began"
    if c.new is None:
        gone = f"{c.old.words} is no longer in {c.vdev} of {c.pool}, {took}."
        return (gone, "What took its place, if anything did, was not seen here.")
    new = c.new.words
    if c.same:
        end = f"{c.old.words} is online again in {c.vdev} of {c.pool}, {took}."
    else:
        end = f"{new} has replaced {c.old.words} in {c.vdev} of {c.pool}, {took}."
    return (end, *_scrubbed(c))


def _scrubbed(c: Checklist) -> Iterator[str]:
    """How the scrub ended; of one that was not waited for, who knows it."""
    own = [entry for entry in c.log if entry.step == "scrub"]
    if c.scrub_begun is None:
        return
    if "scrub" in c.passed:
        yield f"The scrub still ran when this ended: zpool status {c.pool} tells its result."
    else:
        yield f"{sentence(own[-1].text)}."


def entry_words(entry: SwapEntry) -> str:
    """What happened, in words that need no other."""
    if entry.text.startswith(NOT_NEEDED):
        return f"{TITLES[entry.step]}: {entry.text}"
    return entry.text


def _lines(c: Checklist, zone: tzinfo | None) -> Iterator[str]:
    yield f"# Disk swap in {c.pool}: {c.old.name}"
    yield ""
    yield from (f"{line}  " for line in summary(c))
    yield ""
    yield "| | old disk | new disk |"
    yield "| --- | --- | --- |"
    for label, old, new in _rows(c):
        yield f"| {label} | {_cell(old)} | {_cell(new)} |"
    yield ""
    yield f"- pool: {c.pool}{f' (GUID {c.guid})' if c.guid else ''}, vdev {c.vdev}"
    yield f"- way: {WAYS[c.mode]}"
    yield f"- started: {_when(c.begun, zone)}"
    if c.ended is not None:
        yield f"- ended: {_when(c.ended, zone)} ({c.state})"
    yield from _resilver(c)
    yield ""
    yield "## Why"
    yield ""
    yield from (f"- {line}" for line in c.why)
    yield ""
    yield "## What happened"
    yield ""
    for entry in c.log:
        yield from _entry(entry, zone)


def _resilver(c: Checklist) -> Iterator[str]:
    """How long the resilver took, and how long it was said to take."""
    took = c.resilvered
    if took is None and c.predicted is None:
        return
    said = f"predicted {duration(c.predicted)} ({c.basis})" if c.predicted else "not predicted"
    yield f"- resilver: {said}{'' if took is None else f', took {duration(took)}'}"


def _rows(c: Checklist) -> Iterator[tuple[str, str, str]]:
    new = c.new or SwapDisk("")
    for label, name in (
        ("name", "name"),
        ("bay", "bay"),
        ("port", "port"),
        ("model", "model"),
        ("serial", "serial"),
        ("WWN", "wwn"),
        ("path", "whole"),
    ):
        yield label, str(getattr(c.old, name)), str(getattr(new, name))
    yield "size", size(c.old.size), size(new.size)


def _cell(text: str) -> str:
    return text.replace("|", "\\|") or "-"


def _entry(entry: SwapEntry, zone: tzinfo | None) -> Iterator[str]:
    yield f"- {_when(entry.t, zone)} {entry_words(entry)}"
    if entry.command:
        yield f"  - `{entry.command}`: {entry.result or 'no result'}"


def _when(t: float, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(t, UTC).astimezone(zone).strftime("%Y-%m-%d %H:%M:%S %Z")
