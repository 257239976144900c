"""The steps of a checklist as the console lists them: done, current, to come; which are final."""

from __future__ import annotations

from typing import NamedTuple

from zconsole.swap.checklist import BACKED_OUT, NOT_NEEDED, STEPS, TITLES, Checklist

FINAL = frozenset({"replace", "resilver"})
"""Steps after which there is no way back: the new disk is overwritten, the old one leaves."""
STEP_WORDS = {**TITLES, "replace": "Replace by the new disk"}
_SKIPPED = (NOT_NEEDED, "answered: no-light", "answered: leave-lit", "answered: no-scrub")
"""What the log says of a step that was left out."""
_LIGHTS = ("light", "light-off")


class ListedStep(NamedTuple):
    """One line of the list."""

    words: str
    state: str
    """done, current, left out or to come."""
    final: bool


def steps_of_way(mode: str) -> tuple[str, ...]:
    """The steps of a way, those that are only for some machines included."""
    return STEPS[mode]


def listed_steps(c: Checklist, at: str) -> tuple[ListedStep, ...]:
    """The steps of a checklist, ``at`` being the current one; what it never needs is not listed."""
    listed = [step for step in c.steps if step != "explain" and _is_needed(c, step, at)]
    # One that was given up came as far as the step that was current then.
    reached = c.at if c.state == BACKED_OUT else at
    now = listed.index(reached) if reached in listed else 0
    return tuple(
        ListedStep(STEP_WORDS[step], _state(c, step, number - now, step == at), step in FINAL)
        for number, step in enumerate(listed)
    )


def _state(c: Checklist, step: str, beyond: int, current: bool) -> str:
    if current or beyond >= 0:
        return "current" if current else "to come"
    skipped = any(e.step == step and e.text in _SKIPPED for e in c.log)
    return "left out" if skipped else "done"


def _is_needed(c: Checklist, step: str, at: str) -> bool:
    if step in _LIGHTS:
        return bool(c.old.light) or step == at
    return step != "return-spare" or c.spare is not None or step == at
