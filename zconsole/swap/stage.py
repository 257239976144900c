"""What is shown of the current step: what to do, what it waits for, the plan that does it."""

from __future__ import annotations

from dataclasses import dataclass

from zconsole.actions.plan import ActionPlan
from zconsole.swap.disk import SwapDisk

NO_NEED = "nothing to take back: "
"""How ``SwapStage.final`` begins where nobody would want to go back."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Something only a person can say; given to ``Guide.answer`` by its name."""

    name: str
    text: str
    """What is said by it: ``I have pulled it``."""
    typed: str | None = None
    """What to type first, where a mistake would cost data."""
    means: str = ""
    """What follows from it, where the text of the step speaks of the other choice."""


@dataclass(frozen=True, slots=True)
class WayBack:
    """What Back does from here."""

    text: str
    plan: ActionPlan | None = None
    """The plan that undoes the last step; None where nothing has to be run."""
    closes: bool = False
    """Whether the checklist is over with it."""


@dataclass(frozen=True, slots=True)
class SwapStage:
    """The current step of a checklist."""

    step: str
    title: str
    """What to do now, verb first: ``Pull bay07 (serial WD-1234)``."""
    text: tuple[str, ...] = ()
    """Whole sentences: why, how, what to look for."""
    warnings: tuple[str, ...] = ()
    """What is dangerous about it, said before it is done."""
    waits: str = ""
    """What it waits for; empty while it waits for the operator only."""
    deferred: bool = False
    """Whether the resilver that runs is of other disks, and this one's starts after it."""
    plan: ActionPlan | None = None
    """The plan that does the step; a refused one says why it can't be done yet."""
    paths: tuple[str, ...] = ()
    """Devices the plan names, to be looked at again before it runs."""
    answers: tuple[Answer, ...] = ()
    back: WayBack | None = None
    """None: there is no way back, and ``final`` says why."""
    final: str = ""
    """What can't be undone once the step is taken, or since it was; empty when all can."""
    undo: str = ""
    """What Back does once the step is taken."""
    until: str = ""
    """Until when it does, where that ends."""
    alarm: bool = False
    """Whether something is wrong that must be put right before anything else."""
    brief: str = ""
    """The same as the title in a few words, naming bays only; empty where the title is short."""
    undone: tuple[str, ...] = ()
    """What stays undone where the checklist is given up now, and what to do about each."""
    reminders: tuple[str, ...] = ()
    """What is out, offline or lit still though nothing leads on from it, and what to run."""
    then: tuple[SwapDisk, ...] = ()
    """Devices of other pools that were on the disk, and need a swap of their own."""
    over: bool = False
    """Whether nothing is left to do."""

    @property
    def final_line(self) -> str:
        """What can't be undone, as a line of its own; empty where all can."""
        if self.final.startswith(NO_NEED):
            return sentence(self.final)
        return f"No way back: {self.final}" if self.final else ""

    def undo_line(self, key: str) -> str:
        """What Back does once the step is taken, by the key or word that does it."""
        return (
            f"{self.until}, {key} {self.undo}" if self.until else f"Afterwards: {key} {self.undo}"
        )


def sentence(text: str) -> str:
    """A text with a capital letter at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"
