"""The checklist of one swap: the disks, the way, what was done and when."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from zconsole.actions.plan import ActionPlan
from zconsole.swap.disk import SwapDisk

REPLACE_FIRST, SPARE_FIRST, PULL_FIRST = "replace-first", "spare-first", "pull-first"
OPEN, DONE, BACKED_OUT = "open", "done", "backed out"


class Way(NamedTuple):
    """A way of swapping: what it is called, and its steps between ``explain`` and ``report``."""

    title: str
    steps: tuple[str, ...]


_AFTER = ("return-spare", "light-off", "scrub")
_PULLING = ("offline", "light", "pull", "insert", "replace", "resilver", *_AFTER)
WAYS = {
    REPLACE_FIRST: Way(
        "Replace first, pull afterwards",
        ("replace", "resilver", "offline", "light", "pull", *_AFTER),
    ),
    SPARE_FIRST: Way("Let a hot spare stand in, then pull", ("spare", *_PULLING)),
    PULL_FIRST: Way("Pull first, then insert the new disk", _PULLING),
}
PUT_BACK = "put-back"
"""What the log calls the way back of a wrong disk, which is no step of its own."""
NOT_NEEDED = "not needed"
"""What the log says of a step that this machine, or this pool, didn't need."""
SCRUB_CANCELED = "the scrub was canceled before its end"
"""What it says of a scrub that somebody stopped."""
OUT_ALREADY = "not needed: it is out already"
"""What it says of taking offline a disk that left before."""


def needed_steps(mode: str, light: bool, spared: bool, along: bool) -> tuple[str, ...]:
    """The steps of a way that are needed here, for plan and checklist alike.

    ``light``: the bay has one; ``spared``: a hot spare stands in; ``along``: other devices are on
    the disk, so that it has to be taken offline though its own device left the pool.
    """
    idle = {
        *(("light", "light-off") if not light else ()),
        *(("return-spare",) if not spared else ()),
        *(("offline",) if mode == REPLACE_FIRST and not along else ()),
    }
    return (*(step for step in WAYS[mode].steps if step not in idle), "report")


@dataclass(frozen=True, slots=True)
class SwapEntry:
    """One line of what happened."""

    t: float
    """Epoch seconds."""
    step: str
    text: str
    command: str = ""
    """The command that was run, quoted for a shell."""
    result: str = ""
    """How it ended: ``done``, or what it printed."""


@dataclass(frozen=True, slots=True)
class ReturnedDisk:
    """A disk that was pulled by mistake, and is complete in its pool again."""

    pool: str
    key: str
    t: float
    """Epoch seconds at which it was complete again."""


@dataclass(frozen=True, slots=True)
class Checklist:
    """One swap. What the pool and the machine tell anew each time is not kept here."""

    id: str
    """Eight hexadecimal digits."""
    pool: str
    guid: str | None
    begun: float
    """Epoch seconds."""
    old: SwapDisk
    vdev: str
    """The top-level vdev the old disk was in."""
    mode: str
    """replace-first, spare-first or pull-first."""
    why: tuple[str, ...] = ()
    """What failed, and why it was thought so."""
    predicted: float | None = None
    """Seconds that its resilver was predicted to take when it began; None where unknown."""
    basis: str = ""
    """What that was based on."""
    new: SwapDisk | None = None
    """The disk that takes the place: chosen before, or seen in the bay."""
    spare: SwapDisk | None = None
    """The hot spare that stands in meanwhile, where it was put in by this checklist."""
    spared: bool = False
    """Whether a hot spare stands in meanwhile, put in by whomever."""
    along: bool = False
    """Whether other devices of pools are on the old disk, and go with it."""
    beside: tuple[SwapDisk, ...] = ()
    """Of those, the ones of other pools."""
    was_gone: bool = False
    """Whether the machine had lost the old disk before the swap began."""
    around: tuple[SwapDisk, ...] = ()
    """Every other disk of the machine, as it was before anybody pulled one."""
    wrong: tuple[SwapDisk, ...] = ()
    """Of those, disks that were pulled and are not complete again; those still out are first."""
    noticed: tuple[str, ...] = ()
    """Keys of disks in ``wrong`` of which the pool knows: it lost them, or opened them again."""
    meant: tuple[SwapDisk, ...] = ()
    """Of those, disks that are out and that somebody said were meant to go."""
    returned: tuple[ReturnedDisk, ...] = ()
    """Disks that were pulled by mistake during this swap: nothing is wrong with them."""
    pulled: float | None = None
    """Epoch seconds at which the old disk was seen, or said, to be out."""
    unseen: bool = False
    """Whether somebody said so while the machine still showed the disk."""
    same: bool = False
    """Whether the disk that came is the old one again: only its cable or contact was bad."""
    passed: tuple[str, ...] = ()
    """Steps that nothing shows to be done: done, or left out, by somebody's word."""
    lit: bool = False
    """Whether the light is on that this checklist switched on."""
    boot: str = ""
    """The boot during which it was last looked at."""
    at: str = "explain"
    """The step that was current then."""
    log: tuple[SwapEntry, ...] = ()
    state: str = OPEN
    ended: float | None = None
    undone: tuple[str, ...] = ()
    """What was left undone when it was given up, and what to do about it."""

    @property
    def steps(self) -> tuple[str, ...]:
        """Every step of its way, in order."""
        return ("explain", *WAYS[self.mode].steps, "report")

    def listed(self, at: str) -> tuple[str, ...]:
        """The steps that people see, ``at`` being the current one; what it never needs is not."""
        needed = needed_steps(self.mode, bool(self.old.light), self.spared, self.along)
        ran = {entry.step for entry in self.log if entry.command}
        return tuple(
            step for step in self.steps if step in needed or step in ran or step == at != "explain"
        )

    @property
    def left_early(self) -> bool:
        """Whether the old disk is out, and left before anything took it offline."""
        return self.was_gone and any(entry.text == OUT_ALREADY for entry in self.log)

    @property
    def resilvered(self) -> float | None:
        """Seconds between giving the place to the new disk and the end of its resilver."""
        begun, ended = self.noted("replace"), self.noted("resilver")
        return None if begun is None or ended is None or ended < begun else ended - begun

    @property
    def scrub_begun(self) -> float | None:
        """When this checklist began a scrub; None where it didn't, or stopped it again."""
        own = [entry for entry in self.log if entry.step == "scrub" and entry.command]
        stopped = not own or "-s" in own[-1].command.split()
        return None if stopped else own[-1].t

    def noted(self, step: str) -> float | None:
        """When something was written down of a step last; None where nothing was."""
        return max((entry.t for entry in self.log if entry.step == step), default=None)

    def noting(
        self, t: float, step: str, text: str, command: str = "", result: str = ""
    ) -> Checklist:
        """With one more line of what happened."""
        return replace(self, log=(*self.log, SwapEntry(t, step, text, command, result)))

    def passing(self, step: str) -> Checklist:
        """With a step done, or left out, though nothing shows it."""
        return self if step in self.passed else replace(self, passed=(*self.passed, step))

    def retaking(self, step: str) -> Checklist:
        """With a step that was passed to be taken again."""
        return replace(self, passed=tuple(each for each in self.passed if each != step))

    def ending(self, t: float, state: str, undone: tuple[str, ...] = ()) -> Checklist:
        """Closed: done or backed out, with what was left undone."""
        return replace(self, state=state, ended=t, undone=undone)


@dataclass(frozen=True, slots=True)
class Answer:
    """Something only a person can say; given to ``Guide.answer`` by its name."""

    name: str
    text: str
    """What is said by it: ``I have pulled it``."""
    key: str
    """The same in a word or two, beside its key: ``done``, ``skip light``."""
    typed: str | None = None
    """What to type first, where a mistake would cost data."""
    means: str = ""
    """What follows from it, where the text of the step speaks of the other choice."""
    passes: str = ""
    """The step that is passed by it, or what is allowed; empty where it does something else."""
    noted: str = ""
    """What the log says then."""


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
    """What can't be undone once the step is taken, or since it was; empty when all can.

    What begins with a capital is said as it stands, else ``No way back:`` comes first.
    """
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
    def asks(self) -> bool:
        """Whether the step needs somebody's yes or word, rather than time or hands."""
        return not self.over and (self.plan is not None or not self.waits)

    @property
    def final_line(self) -> str:
        """What can't be undone, as a line of its own; empty where all can."""
        if self.final[:1].isupper():
            return self.final
        return f"No way back: {self.final}" if self.final else ""

    def undo_line(self, key: str) -> str:
        """What Back does once the step is taken, by the key or word that does it."""
        return (
            f"{self.until}, {key} {self.undo}" if self.until else f"Afterwards: {key} {self.undo}"
        )


def sentence(text: str) -> str:
    """A text with a capital letter at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"
