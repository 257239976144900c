"""What each step costs: what Back does once it is taken, or what can't be undone then."""

from __future__ import annotations

from typing import NamedTuple

from zconsole.swap.checklist import REPLACE_FIRST, Checklist


class StepCost(NamedTuple):
    """The way back from a step that is taken; one of ``undo`` and ``final`` is never empty."""

    undo: str = ""
    """What Back does: ``puts it online again``."""
    until: str = ""
    """Until when it does, where that ends."""
    final: str = ""
    """Why there is no way back; with ``undo``, what is lost all the same."""
    brief: str = ""
    """The same in a few words, for a list of steps; empty where nothing is lost."""


COSTS = {
    "spare": StepCost("detaches it again"),
    "offline": StepCost("puts it online again"),
    "light": StepCost("switches it off again"),
    "pull": StepCost("has it put back into its bay, then puts it online again"),
    "insert": StepCost("has it taken out again and the old disk put back"),
    "replace": StepCost(
        "takes the new disk out again",
        until="Until the resilver ends",
        brief="new disk is overwritten",
    ),
    "resilver": StepCost(
        final="when it ends, the old disk leaves the pool for good", brief="no way back after this"
    ),
    "return-spare": StepCost(final="what the spare holds is dropped; it is AVAIL again"),
    "light-off": StepCost("switches it on again"),
    "scrub": StepCost("stops it"),
}
"""By step, where nothing is special about the swap."""


def cost_of(c: Checklist, step: str) -> StepCost:
    """What a step of this checklist costs."""
    if step == "pull" and c.mode == REPLACE_FIRST:
        return StepCost(final="the old disk has left the pool already")
    if step == "replace" and c.same:
        return StepCost("takes it offline again")
    if step == "resilver" and c.same:
        return COSTS["offline"]._replace(undo="takes it offline again")
    return COSTS.get(step, StepCost())
