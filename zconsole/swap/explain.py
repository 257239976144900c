"""What to read before a swap begins, as headed lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from zconsole.diagnosis.device_errors.faults import SUSPECTS
from zconsole.swap.checklist import SPARE_FIRST, WAYS
from zconsole.swap.choice import SwapChoice, SwapWay
from zconsole.swap.stage import sentence
from zconsole.timeline.eta.estimate import Estimate
from zconsole.units import duration

FIRST_HEADING = "First"
FAILED_HEADING, WRONG_HEADING = "What failed", "What is wrong"
WAYS_HEADING = "Ways"


class ExplainedPart(NamedTuple):
    """A heading and its lines."""

    heading: str
    lines: tuple[str, ...]


def explained(choice: SwapChoice) -> tuple[ExplainedPart, ...]:
    """Everything to know, the danger before the ways; parts without lines are left out."""
    if choice.refusal is not None and choice.refusal.title:  # all else comes after it
        return (ExplainedPart("Not guided", (choice.refusal.title, *_by_hand(choice))),)
    parts = (
        ExplainedPart(FIRST_HEADING, (sentence(choice.advice),) if choice.advice else ()),
        ExplainedPart(f"Swap {choice.old.words}", tuple(_disk(choice))),
        ExplainedPart(_wrong(choice), (*choice.found, *_judged(choice))),
        ExplainedPart("Redundancy now", choice.redundancy),
        ExplainedPart("What a pull does now", tuple(_pulling(choice))),
        ExplainedPart("Must stay", tuple(_must_stay(choice))),
        ExplainedPart(WAYS_HEADING, tuple(way_text(way) for way in choice.ways)),
        ExplainedPart("Not guided", tuple(_by_hand(choice))),
    )
    return tuple(part for part in parts if part.lines)


def way_text(way: SwapWay) -> str:
    """A way in one line: what it is called, and why it is or isn't possible."""
    if way.refused:
        return f"{WAYS[way.mode]}: not now: {way.refused}"
    return f"{WAYS[way.mode]}: {way.why}"


def time_words(way: SwapWay, estimate: Estimate | None) -> str:
    """How long the resilvers of a way take, and what that is based on; what is left of one."""
    if way.left is not None:
        return f"Time: {duration(way.left)} left of the resilver that runs"
    times = 2 if way.mode == SPARE_FIRST else 1
    runs = "two resilvers" if times > 1 else "one resilver"
    if estimate is None or estimate.eta is None:
        return f"Time: {runs} of unknown duration: no completed scan recorded"
    each = " each" if times > 1 else " in all, and it runs already" if way.begun else ""
    return f"Time: {runs}, about {duration(estimate.eta)}{each}: {estimate.reason}"


def _pulling(choice: SwapChoice) -> Iterator[str]:
    """What it does to each pool on the disk, and which of them this swap doesn't restore."""
    yield from (effect.text for effect in choice.effects)
    for pool in dict.fromkeys(e.pool for e in choice.effects if e.pool != choice.old.pool):
        yield f"{pool} needs a swap of its own afterwards; it is offered at the end of this one"


def _wrong(choice: SwapChoice) -> str:
    """The heading over what speaks for a swap: of a device that still works nothing failed."""
    if choice.failed:
        return FAILED_HEADING
    return WRONG_HEADING if choice.faulty else "State"


def _judged(choice: SwapChoice) -> Iterator[str]:
    """The likely cause; of a device that shows nothing wrong there is none."""
    if choice.faulty:
        yield f"Judged: {SUSPECTS[choice.cause]}"


def _disk(choice: SwapChoice) -> Iterator[str]:
    old = choice.old
    yield f"{old.name} in {choice.vdev} of {old.pool}"
    if old.model:
        yield f"Model {old.model}"
    if not old.place:
        yield "Its bay is unknown: find it by its serial number"
    if not old.mark:
        yield "Its serial number is unknown: a wrong disk in its place isn't noticed"


def _must_stay(choice: SwapChoice) -> Iterator[str]:
    names = ", ".join(disk.words for disk in choice.untouchable)
    if names:
        yield (
            f"With {choice.old.name} out and no new disk filled, pulling any of these loses data:"
            f" {names}"
        )
    yield f"Pull {choice.old.words} only; every other disk stays where it is"


def _by_hand(choice: SwapChoice) -> Iterator[str]:
    if choice.refusal is not None:
        yield choice.refusal.why
        yield from (f"{n}. {line}" for n, line in enumerate(choice.refusal.manual, 1))
    elif choice.way is None:
        yield choice.refused
