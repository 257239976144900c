"""What a step of a swap shows, and the answers that only the operator can give to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from zconsole.actions.plan import ActionPlan
from zconsole.hardware.light import LASTING
from zconsole.swap.disk import REPLACE_FIRST, Checklist, SwapDisk
from zconsole.swap.way_back import WayBack


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a step that only the operator can give."""

    name: str
    text: str
    """The full statement: ``I have pulled it``."""
    key: str
    """A label of a word or two beside the key: ``done``, ``skip light``."""
    means: str
    """What giving it does, for the question whether to give it."""
    passes: str = ""
    """The step that it marks as passed, if any."""
    change: Callable[[Checklist, float], Checklist] = lambda swap, _: swap
    """Returns the checklist with what else it means; takes the time in epoch seconds."""
    typed: str | None = None
    """A word to type first, where a mistake would cost data."""

    def given(self, swap: Checklist, now: float) -> Checklist:
        """Return the checklist once the operator gave this answer at ``now``."""
        swap = swap.noting(now, swap.at, f'the operator said: "{self.text}"')
        return self.change(swap.passing(self.passes) if self.passes else swap, now)


@dataclass(frozen=True, slots=True)
class SwapStage:
    """The current step of a checklist, as derived from the present state."""

    title: str
    """The instruction, verb first: ``Pull bay07 (serial WD-1234)``."""
    text: tuple[str, ...] = ()
    """Full sentences: why, how, what to look for."""
    step: str = ""
    """The step's key in ``STEPS``."""
    warnings: tuple[str, ...] = ()
    """Dangers, shown before the step is done."""
    waits: str = ""
    """The event waited for; empty while only the operator is waited for."""
    deferred: bool = False
    """Whether the running resilver is of other disks, so that this disk's starts after it."""
    plan: ActionPlan | None = None
    """The plan that does the step; a refused plan says why it can't run yet."""
    paths: tuple[str, ...] = ()
    """Devices named in the plan, which are checked again before it runs."""
    answers: tuple[Answer, ...] = ()
    undo: str | None = None
    """What Back will do once the step is taken; None: what its row in ``STEPS`` says."""
    back: WayBack | None = None
    """What the Back action does now; None if nothing can be undone, and ``final`` says why."""
    final: str = ""
    """What can't be undone once the step is taken; empty if all can be undone."""
    alarm: bool = False
    """Whether something is wrong that must be put right first."""
    brief: str = ""
    """Short form of the title, naming bays only; empty if the title is short."""
    undone: tuple[str, ...] = ()
    """What stays undone if the swap is given up now, and what to do about each."""
    reminders: tuple[str, ...] = ()
    """What is still out, offline or lit without a step that leads on from it, and what to run."""
    then: tuple[SwapDisk, ...] = ()
    """Devices of other pools that were on the disk, and need a swap of their own."""
    over: bool = False
    """Whether the checklist is done."""

    @property
    def asks(self) -> bool:
        """Whether the step needs the operator's confirmation or answer.

        False if it needs only time, or hands at the machine.
        """
        return not self.over and (self.plan is not None or not self.waits)


SKIP_LIGHT = Answer(
    "no-light",
    "Go on without the light: I know the bay",
    "skip light",
    "No light is switched on. Be sure of the bay: compare the label before you pull.",
    passes="light",
)
SAME = Answer(
    "same",
    "The same disk is back, with a better contact",
    "same disk",
    "The next step puts it online again: no new disk takes its place.",
    change=lambda swap, _: replace(swap, unseen=False),
)
LEAVE_LIT = Answer(
    "leave-lit",
    "Leave the light as it is",
    "leave light on",
    f"Skips the step: the light stays on, and goes off {LASTING / 3600:g} hours after it went on.",
    passes="light-off",
)
NO_SCRUB = Answer(
    "no-scrub",
    "Skip the scrub",
    "skip scrub",
    "Skips the step: damage that the old disk may have left stays unknown until a later scrub.",
    passes="scrub",
)
NO_WAIT = Answer(
    "no-wait",
    "Stop waiting for the scrub: it goes on by itself",
    "skip the wait",
    "Ends the checklist without the result of the scrub.",
    passes="scrub",
)


def pulled(old: SwapDisk) -> Answer:
    """Return the answer that the old disk is out."""
    label = f"Its label must say {old.mark}." if old.mark else "Be sure that it was the right bay."
    return Answer(
        "pulled",
        "I have pulled it, and its label says so",
        "done",
        f"Goes on to the next step, with {old.words} out. {label}",
        change=lambda swap, now: replace(swap, pulled=now, unseen=not swap.was_gone),
        typed="pulled",
    )


def elsewhere(new: SwapDisk, spot: str) -> Answer:
    """Return the answer that the new disk stays in another bay than the old one's, ``spot``."""
    return Answer(
        "elsewhere",
        "Use the new disk where it is",
        "use it there",
        f"The new disk stays in {new.spot}, and {spot} stays empty.",
        passes="elsewhere",
    )


def replacing_first(swap: Checklist, new: SwapDisk) -> Checklist:
    """Return a checklist of any way as one that replaces first, with this disk."""
    # A hot spare is no step of that way: it goes on from the first one.
    at = "insert" if swap.at == "spare" else swap.at
    return replace(swap, mode=REPLACE_FIRST, new=new, at=at)


def use_now(new: SwapDisk, old: SwapDisk) -> Answer:
    """Return the answer that replaces first after all, with a disk that is in another bay."""

    def _change(swap: Checklist, now: float) -> Checklist:
        swap = replacing_first(swap, new).retaking("light")
        return swap.noting(now, "insert", f"{new.words} is in: the new disk")

    return Answer(
        "use-now",
        f"Go on with {new.words}, which is new and fits: replace first, pull {old.spot} afterwards",
        "use new disk",
        f"Safer: {old.words} stays in until the new disk is filled, and is pulled then.",
        change=_change,
    )
