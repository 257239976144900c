"""The steps of a checklist as the console lists them: done, current, to come; what they cost."""

from __future__ import annotations

from typing import NamedTuple

from zconsole.swap.checklist import BACKED_OUT, NOT_NEEDED, SCRUB_CANCELED, TITLES, Checklist
from zconsole.swap.costs import cost_of

STEP_WORDS = {**TITLES, "replace": "Replace by the new disk"}


class ListedStep(NamedTuple):
    """One line of the list."""

    words: str
    state: str
    """done, current, left out or to come."""
    cost: str


def listed_steps(c: Checklist, at: str, filed: bool = False) -> tuple[ListedStep, ...]:
    """The steps of a checklist, ``at`` being the current one; what it never needs is not listed.

    ``filed``: whether its report is saved.
    """
    listed = c.listed(at)
    # One that was given up came as far as the step that was current then.
    reached = c.at if c.state == BACKED_OUT else at
    now = listed.index(reached) if reached in listed else 0
    states = (
        "done" if filed and step == "report" else _state(c, step, number - now, step == at)
        for number, step in enumerate(listed)
    )
    return tuple(
        ListedStep(_words(c, step), state, cost_of(c, step).brief)
        for step, state in zip(listed, states, strict=True)
    )


def _words(c: Checklist, step: str) -> str:
    """What a step is called; a scrub that was not waited for only began."""
    began = step == "scrub" and step in c.passed and c.scrub_begun is not None
    return "Start a scrub" if began else STEP_WORDS[step]


def _state(c: Checklist, step: str, beyond: int, current: bool) -> str:
    if current or beyond >= 0:
        return "current" if current else "to come"
    own = [entry for entry in c.log if entry.step == step]
    ran = any(entry.command for entry in own)
    if step == "scrub":
        ran = c.scrub_begun is not None and own[-1].text != SCRUB_CANCELED
        return "done" if ran else "left out"
    skipped = step in c.passed or any(entry.text.startswith(NOT_NEEDED) for entry in own)
    return "left out" if skipped and not ran else "done"
