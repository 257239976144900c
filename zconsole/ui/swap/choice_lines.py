"""Before a swap: one of its ways as lines, with what it costs, and all there is to know first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zconsole.swap.checklist import REPLACE_FIRST, WAYS
from zconsole.swap.choice import SwapChoice, SwapWay
from zconsole.swap.costs import COSTS
from zconsole.swap.explain import (
    FAILED_HEADING,
    FIRST_HEADING,
    WAYS_HEADING,
    WRONG_HEADING,
    explained,
    time_words,
)
from zconsole.timeline.eta.estimate import Estimate
from zconsole.ui.actions.plan_lines import wrapped
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.swap.steps import STEP_WORDS
from zconsole.ui.widgets.draw import Line, Span

_APART = (FIRST_HEADING, WAYS_HEADING, "Not guided")
"""Parts of the explanation that are shown in another way here."""
_ROLES = {FAILED_HEADING: "warning", WRONG_HEADING: "warning", "Must stay": "error"}


def choice_lines(
    choice: SwapChoice,
    way: SwapWay | None,
    estimate: Estimate | None,
    notes: Sequence[str],
    denied: str,
    look: DisplayFormat,
    width: int,
) -> tuple[Line, ...]:
    """Why it can't be, else what the way does and costs; then everything to know.

    ``estimate``: what a resilver of this device is predicted to take; ``notes`` are warnings.
    """
    parts = explained(choice)
    first = [text for part in parts if part.heading == FIRST_HEADING for text in part.lines]
    lines = _block(FIRST_HEADING, first, "warning", look, width)
    lines += _block("Check first", notes, "warning", look, width)
    if denied:
        lines += _block("Unavailable", (denied,), "error", look, width)
    if way is None:
        lines += _refused(choice, look, width)
    else:
        lines += _block("This way", tuple(_costs(way, estimate)), "", look, width)
    for part in parts:
        if part.heading not in _APART:
            lines += _block(part.heading, part.lines, _ROLES.get(part.heading, ""), look, width)
    if way is not None:
        lines += _block("Steps", tuple(_steps(choice, way)), "", look, width)
    others = [each for each in choice.ways if each is not way]
    lines += _block("Other ways", tuple(map(_other, others)), "dim", look, width)
    return tuple(lines)


def _refused(choice: SwapChoice, look: DisplayFormat, width: int) -> Iterator[Line]:
    """Why no swap can be begun, and the steps that do it by hand."""
    yield from _block("Not guided", (choice.refused,), "error", look, width)
    manual = choice.refusal.manual if choice.refusal else ()
    steps = tuple(f"{number}. {text}" for number, text in enumerate(manual, 1))
    yield from _block("By hand", steps, "bold", look, width)


def _costs(way: SwapWay, estimate: Estimate | None) -> Iterator[str]:
    yield way.why
    yield time_words(way, estimate)
    if way.mode == REPLACE_FIRST:
        yield "Pull the old disk once the resilver is done"


def _steps(choice: SwapChoice, way: SwapWay) -> Iterator[str]:
    """The steps in order, as the checklist lists them; those that can't be undone say so."""
    for number, step in enumerate(choice.steps(way), 1):
        brief = COSTS[step].brief if step in COSTS else ""
        cost = f" ({brief})" if brief else ""
        yield f"{number}. {STEP_WORDS[step]}{cost}"


def _other(way: SwapWay) -> str:
    return f"{WAYS[way.mode]}: {f'not now: {way.refused}' if way.refused else way.why}"


def _block(
    title: str, texts: Sequence[str], role: str, look: DisplayFormat, width: int
) -> list[Line]:
    found = [line for text in texts for line in wrapped(text, role, look, width)]
    return [(Span(f" {title}", "bold"),), *found] if found else []
