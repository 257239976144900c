"""What a step of a swap shows, the answers that only the operator can give, and the ways back.

A way back undoes one effect of a step that is still in place, by a plan or by hand.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from zconsole.actions import locate
from zconsole.actions.clear import plan_clear
from zconsole.actions.offline import plan_detach, plan_online
from zconsole.actions.plan import ActionPlan, Precondition, Situation, zpool
from zconsole.actions.scrub import plan_stop
from zconsole.actions.target import Target, disk_path
from zconsole.hardware.device import Device
from zconsole.hardware.light import LASTING
from zconsole.pool.model import FAILED, Vdev
from zconsole.swap.disk import (
    REPLACE_FIRST,
    Checklist,
    MachineView,
    SwapDisk,
    device_of,
    replacing,
)
from zconsole.swap.effects import free_bay, in_bay_of, plan_offline_safely


@dataclass(frozen=True, slots=True)
class WayBack:
    """One effect of a step that is still in place, and how to undo it."""

    text: str
    """What the Back action does: ``put bay07 online again``; empty if it can't undo this now."""
    key: str = ""
    """A label of a word or two beside the key: ``put online``."""
    plan: ActionPlan | None = None
    """The plan that undoes it; None if nothing has to be run."""
    closes: bool = False
    """Whether the checklist is closed by it."""
    left: str = ""
    """What is left undone if the swap is given up, and what to run; empty if nothing is."""


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
        "I have pulled it, and compared its label",
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
    """Return a checklist, of whatever way, as one that replaces first, with this disk."""
    # A hot spare is no step of that way: the checklist goes on from its first step.
    at = "insert" if swap.at == "spare" else swap.at
    return replace(swap, mode=REPLACE_FIRST, new=new, at=at)


def use_now(new: SwapDisk, old: SwapDisk) -> Answer:
    """Return the answer to replace before pulling after all, as a new disk is in another bay."""

    def _change(swap: Checklist, now: float) -> Checklist:
        # The old disk is pulled later now: only then is its bay to be lit.
        swap = replacing_first(swap, new).retaking("light")
        return swap.noting(now, "insert", f"{new.words} is in: the new disk")

    return Answer(
        "use-now",
        f"Go on with {new.words}, which is new and fits: replace first, pull {old.spot} afterwards",
        "use new disk",
        f"Safer: {old.words} stays in until the new disk is filled, and is pulled then.",
        change=_change,
    )


def undo_spare(swap: Checklist, view: MachineView) -> Iterator[WayBack]:
    """Yield the hot spare that this swap let stand in."""
    target = view.target(swap.old.key)
    group = None if target is None or swap.spare is None else target.group
    if group is not None and group.kind == "spare":
        yield _detaching(
            view, group, f"hot spare {group.children[-1].called} still stands in for it:"
        )


def _detaching(view: MachineView, group: Vdev, left: str) -> WayBack:
    """Build the way back that detaches a group's newest device.

    ``left``: what is left undone as long as the device stays.
    """
    new = group.children[-1]
    by_hand = zpool_line("detach", view.pool.name, disk_path(view.pool, new, expands=True))
    left = f"{left} run {by_hand}"
    if new.guid is None:
        return WayBack("", left=left)
    plan = plan_detach(view.situation, new.guid)
    return WayBack(plan.title[:1].lower() + plan.title[1:], "detach", plan, left=left)


def undo_offline(swap: Checklist, view: MachineView) -> Iterator[WayBack]:
    """Yield the disk's devices that are still offline, those of other pools first."""
    target, there = view.target(swap.old.key), view.device(swap.old) is not None
    for situation, other in filter(None, map(view.leaf_of, swap.beside if there else ())):
        # The log has its commands quoted for a shell.
        quoted = f" {shlex.quote(situation.pool.name)} "
        ran = (e.command for e in swap.log if e.command.startswith("zpool offline "))
        if other.vdev.state != "OFFLINE" or not any(quoted in command for command in ran):
            continue
        name = f"{other.name} of {situation.pool.name}"
        run = online_line(situation, other)
        left = f"{name}, on the same disk, is still OFFLINE: run {run}"
        plan = plan_online(situation, other.key)
        yield WayBack(f"put {name} online again", "put online", plan, left=left)
    if target is not None and target.vdev.state == "OFFLINE":
        run = online_line(view.situation, target)
        out = bool(view.devices) and not (there or swap.was_gone)  # undo_pull tells that
        told = out or replacing(target) is not None
        left = "" if told else f"{swap.old.words} is still OFFLINE: run {run}"
        plan = plan_online(view.situation, target.key)
        yield WayBack(f"put {target.name} online again", "put online", plan, left=left)


def undo_light(swap: Checklist, view: MachineView) -> Iterator[WayBack]:
    """Yield the bay's light while it is on."""
    if left := light_words(swap):
        plan = plan_light(view.situation, swap.old, on=False)
        yield WayBack("switch the light off", "light off", plan, left=left)


def light_words(swap: Checklist) -> str:
    """Return a line about the light that is still on, with what to run; empty if it is off."""
    if not swap.lit or "light-off" in swap.passed:
        return ""
    named = swap.old.whole or swap.old.serial  # the path is unknown if another disk has it by now
    off = shlex.join(("zconsole", "light", "off", *filter(None, (named,))))
    return f"the light of {swap.old.spot} is still on: run {off}"


def undo_pull(swap: Checklist, view: MachineView) -> Iterator[WayBack]:
    """Yield the old disk while it is out."""
    old, target = swap.old, view.target(swap.old.key)
    if target is None or not view.devices or view.device(old) is not None:
        return
    if replacing(target) is not None:  # it may stay out; its bay may hold the new disk
        return
    text = left = ""
    if swap.pulled is not None:
        disk = f"the old disk ({old.mark})" if old.mark else "the old disk"
        bay = free_bay(view, old) if in_bay_of(old, view) else old.place or "its bay"
        text = f"put {disk} back into {bay}: it is put online again"
    if swap.left_early or not swap.was_gone:
        run = online_line(view.situation, target)
        left = (
            f"{old.words} is still out: put it back, then run {run}, or replace it (zpool replace)"
        )
    yield WayBack(text, "put back", left=left)


def undo_replace(swap: Checklist, view: MachineView) -> Iterator[WayBack]:
    """Yield the new disk that is being filled, or the old one that was put online again."""
    target = view.target(swap.old.key)
    if target is None:
        return
    if (group := replacing(target)) is not None:
        left = f"{group.children[-1].called} still takes the place of {swap.old.words}"
        yield _detaching(view, group, f"{left}: let the resilver go on, nothing is lost; or")
    elif swap.same and target.vdev.state not in FAILED:
        plan = plan_offline_safely(view.situation, target.key)
        yield WayBack(f"take {target.name} offline again", "take offline", plan)


def undo_light_off(swap: Checklist, view: MachineView) -> Iterator[WayBack]:
    """Yield the bay's light once it was switched off."""
    off = "light-off" in swap.passed and not swap.lit
    if off and swap.old.light and swap.scrub_begun is None:
        plan = plan_light(view.situation, swap.old, on=True)
        yield WayBack("switch the light on again", "light on", plan)


def undo_scrub(swap: Checklist, view: MachineView) -> Iterator[WayBack]:
    """Yield the running scrub that this swap began."""
    if swap.scrub_begun is not None and view.situation.active("scrub") is not None:
        yield WayBack("stop the scrub", "stop scrub", plan_stop(view.situation))


def plan_return(situation: Situation, target: Target) -> ActionPlan:
    """Plan to bring a failed device back: one that is FAULTED has to be cleared."""
    plan = plan_clear if target.vdev.state == "FAULTED" else plan_online
    return plan(situation, target.key)


def online_line(situation: Situation, target: Target) -> str:
    """Return the command that brings a device back, to run by hand."""
    pool = situation.pool
    if target.vdev.state == "FAULTED":
        return zpool_line("clear", pool.name, target.vdev.argument)
    return zpool_line("online", pool.name, disk_path(pool, target.vdev, situation.expands))


def zpool_line(verb: str, *operands: str) -> str:
    """Return a zpool command to run by hand, quoted for a shell.

    Pool names may contain blanks (zpool-create(8)).
    """
    return shlex.join(zpool(verb, operands=operands))


def plan_light(situation: Situation, disk: SwapDisk, on: bool) -> ActionPlan:
    """Plan to switch a bay's light, also if its disk is out or no longer in the pool.

    The bay must have a light (``SwapDisk.light``). It is found by the disk's serial number, else by
    the bay's name.
    """

    def _same_bay(now: Situation) -> str | None:
        device = device_of(disk, now.facts.devices)
        if device is None or disk.shares_place(device) is not False:
            return None
        return f"{disk.mark or disk.words} is in another bay now: {device.bay or device.port}"

    remembered = Device(
        disk.whole, disk.node, serial=disk.serial, bay=disk.bay, locate=disk.light or None
    )
    in_place = Precondition(f"{disk.words} is in the same bay, or out", _same_bay)
    title = f"Switch the light of {disk.spot} {'on' if on else 'off'}"
    return locate.plan_light(situation, title, remembered, on, in_place)
