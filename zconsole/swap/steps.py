"""The steps of a swap: when each is done, its plan or question, its text and its undo.

``STEPS`` at the end of the module has one row per step, and ``WAYS`` their order. The functions of
the rows stand above, in the same order. A step is derived from pool and machine each time and keeps
no state. Facts that only a person or the past can tell are kept in the checklist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from zconsole.actions import locate
from zconsole.actions.checkpoint import plan_discard
from zconsole.actions.follow import leftover
from zconsole.actions.offline import plan_detach
from zconsole.actions.replace import plan_replace
from zconsole.actions.running_scans import describe
from zconsole.actions.scrub import plan_resilver, plan_scrub
from zconsole.actions.target import Swap, Target, find_path, partition_of, stands_in
from zconsole.hardware.light import LASTING
from zconsole.keyed_text import KeyedText
from zconsole.pool.model import FAILED, Pool, Scan
from zconsole.pool.redundancy import REPAIRS, is_complete
from zconsole.pool.scan_outcome import settling
from zconsole.pool.spares import spares
from zconsole.swap.disk import (
    PULL_FIRST,
    REPLACE_FIRST,
    SPARE_FIRST,
    Checklist,
    MachineView,
    SwapDisk,
    disk_of,
    partition_on,
    replacing,
    sentence,
)
from zconsole.swap.effects import (
    bay_for_new,
    effects,
    filling,
    holding,
    in_bay_of,
    inserted,
    judge_inserted,
    plan_offline_safely,
    untouchable,
    waits_its_turn,
)
from zconsole.swap.stage import (
    LEAVE_LIT,
    NO_SCRUB,
    NO_WAIT,
    SAME,
    SKIP_LIGHT,
    SwapStage,
    WayBack,
    elsewhere,
    plan_light,
    plan_return,
    pulled,
    undo_light,
    undo_light_off,
    undo_offline,
    undo_pull,
    undo_replace,
    undo_scrub,
    undo_spare,
)
from zconsole.units import size

PUT_BACK = "put-back"
"""Log name for bringing back a disk that was pulled by mistake; not a step in ``STEPS``."""
NOT_NEEDED = "not needed"
"""Log text of a step that this machine or pool didn't need."""
SCRUB_CANCELED = "the scrub was canceled before its end"
"""Log text of a scrub that somebody stopped."""


FILLING = ("zpool replace", "zpool online", "zpool clear", "zpool resilver")
"""Commands after which a resilver starts."""
BEGINNING = 10.0
"""Longest time in seconds from a command to the start of the resilver that it causes."""


def spare_stage(swap: Checklist, view: MachineView, now: float) -> SwapStage | None:
    """Return the stage to attach a hot spare and wait until it is filled; None once it is."""
    situation, target = view.situation, view.target(swap.old.key)
    if swap.pulled is not None or target is None:
        return None
    if stands_in(target) and not just_ran(swap, view.pool, now):
        return None
    failed = target.vdev.state in FAILED
    if target.group is not None:
        why = "" if failed else ": the old disk is still read"
        return SwapStage(
            f"Wait until {target.group.children[-1].called} is filled",
            (f"Leave every disk where it is{why}.",),
            waits=filling(situation),
        )
    path = swap.spare.whole if swap.spare else ""
    # The chosen spare may be in use by now: then any other one will do.
    if path not in spares(view.pool):
        path = next(iter(spares(view.pool)), path)
    redundancy = "Redundancy is restored" if failed else "Redundancy stays as it is"
    return SwapStage(
        f"Let the hot spare stand in for {swap.old.words}",
        (f"{redundancy} while the disk is swapped; the spare returns afterwards.",),
        plan=plan_replace(situation, Swap(swap.old.key, path), estimate=swap.estimate),
        paths=(path,),
    )


def offline_stage(swap: Checklist, view: MachineView, _: float) -> SwapStage | None:
    """Return the stage to take the disk's leaves offline; None once no pool uses the disk."""
    if swap.pulled is not None or (view.devices and view.device(swap.old) is None):
        return None
    lost = effects(view, swap.old)
    for effect in lost:
        if effect.failed:
            continue
        situation, target = effect.situation, effect.target
        ours = effect.is_of(swap.old)
        whose = "" if ours else f" It is on {swap.old.words}, too: one pull takes both."
        along = [each.target.key for each in lost if each.pool == effect.pool]
        plan = plan_offline_safely(situation, target.key, along)
        ran = {entry.command for entry in swap.log}
        again = f"{target.name} is online again: take it offline once more."
        return SwapStage(
            f"Take {target.name} of {situation.pool.name} offline",
            (
                *((again,) if any(step.command in ran for step in plan.steps) else ()),
                f"Once offline, nothing is written to the disk when you pull it.{whose}",
            ),
            warnings=(f"{effect.text}.",) if not stands_in(target) else (),
            plan=plan,
        )
    return None


def light_stage(swap: Checklist, view: MachineView, _: float) -> SwapStage | None:
    """Return the stage to switch the bay's light on; None once it is on, or if there is none."""
    done = "light" in swap.passed or swap.pulled is not None or swap.left_early
    if not swap.old.light or done:
        return None
    return SwapStage(
        f"Switch on the light of {swap.old.spot}",
        ("The light shows which disk to pull; it goes off at the end.",),
        plan=plan_light(view.situation, swap.old, on=True),
        answers=(SKIP_LIGHT,),
    )


def replace_begun(swap: Checklist, view: MachineView) -> bool:
    """Return whether a replace of the old disk has begun, whoever began it, or is done."""
    target = view.target(swap.old.key)
    return target is None or replacing(target) is not None


def pull_stage(swap: Checklist, view: MachineView, now: float) -> SwapStage | None:
    """Return the stage that waits for the pull of the right disk; None once it is out."""
    old = swap.old
    if swap.pulled is not None or (swap.mode != REPLACE_FIRST and replace_begun(swap, view)):
        return None
    target = view.target(old.key)
    if swap.mode != REPLACE_FIRST and target is not None and is_complete(target.vdev):
        hold = "it is online: take it offline first"
        return SwapStage(f"Do not pull {old.words} yet", (), waits=hold, alarm=True)
    title, waits = f"Pull {old.words}", f"{old.words} to leave the machine"
    text = tuple(_how_found(swap, view, now))
    if swap.left_early:  # only a person knows whether it was pulled
        title, waits = f"{old.words} is out already: say that you pulled it", ""
        text = (
            "It was pulled, or lost its link, before it was taken offline: nothing was taken"
            " offline, and nothing has to be any more.",
            f"Its label says {old.mark}: compare it, then say so."
            if old.mark
            else "Its serial number is unknown: be sure of the bay.",
        )
    elif not view.devices:
        waits = ""
        text += (
            "The machine's disks can't be read: the pull can't be checked. Say when it is out.",
        )
    elif swap.was_gone:
        waits = ""
        text += (
            "The machine lost this disk before: nothing shows its pull. Compare the serial number"
            " on its label, then say so. A wrong disk that is pulled is noticed.",
        )
    stay = ", ".join(disk.spot for disk in untouchable(view.situation, old))
    warned = f"Pulling any of these loses data: {stay}." if stay else "Pull no other disk."
    return SwapStage(title, text, warnings=(warned,), waits=waits, answers=(pulled(old),))


def _how_found(swap: Checklist, view: MachineView, now: float) -> Iterator[str]:
    """Yield how to recognize the disk by its light and label, and which unused disks are out."""
    old = swap.old
    if "light" in swap.passed and swap.lit:
        switched = [e.t for e in swap.log if e.step == "light" and e.result == "done"]
        if switched and now - max(switched) < LASTING:
            yield f"The light of {old.spot} is on."
        else:
            hours = f"{LASTING / 3600:g} hours"
            yield f"The light of {old.spot} went off after {hours}: switch it off and on again."
    elif not old.light:
        yield "The bay has no light that can be switched."
    if old.mark:
        yield f"Its label says {old.mark}{f', {old.model}' if old.model else ''}."
        if old.serial and not old.light:
            yield f"The serial number stands {locate.ON_LABEL}."
    else:
        yield "Its serial number is unknown: be sure of the bay."
    what = "take the disk out" if swap.mode == REPLACE_FIRST else "swap the disk"
    yield (
        f"Without hot-plug: power the machine off, {what}, power on; this checklist goes on after"
        " the boot."
    )
    for disk in absent_disks(swap, view):
        if not disk.pool:
            yield f"{disk.words} left the machine: it is not the one, but holds no pool."


def absent_disks(swap: Checklist, view: MachineView) -> tuple[SwapDisk, ...]:
    """Return disks that were present before and are not now, unused ones included."""
    if not view.devices:
        return ()
    return tuple(disk for disk in swap.around if view.device(disk) is None)


LOOKING_AGAIN = {
    "sd": (
        "echo 1 > /sys/block/{}/device/delete",
        "echo '- - -' | tee /sys/class/scsi_host/host*/scan",
    ),
    # An NVMe controller is a PCI device, so it is removed and found by the files of PCI.
    "nvme": (
        "echo 1 > /sys/block/{}/device/device/remove",
        "echo 1 > /sys/bus/pci/rescan",
    ),
}
"""Commands that make the kernel drop a disk that is out and find a new one, by name prefix.

The number in the name of an NVMe disk need not be its controller's, so the path starts at the disk.
"""


def insert_stage(swap: Checklist, view: MachineView, _: float) -> SwapStage | None:
    """Return the stage that waits for the new disk and checks it; None once one fits."""
    if replace_begun(swap, view) or view.device(swap.new) is not None:
        return None
    old, spot, found = swap.old, bay_for_new(swap, view), inserted(swap, view)
    text: tuple[str, ...]
    verdict = "" if found is None else found.verdict
    if found is None or verdict == "unnamed":
        least = f"{size(old.size)} or larger" if old.size else "of the same size or larger"
        beside = swap.mode == REPLACE_FIRST and swap.pulled is None
        full = in_bay_of(old, view)
        text = (
            *(() if full is None else (f"{holding(old, full)}.",)),
            f"It must be {least}, with sectors that the vdev can use; both are checked.",
            f"Leave {old.words} where it is until the new disk is filled."
            if beside and view.device(old) is not None
            else "If only its cable or contact was bad, put the same disk back: it is recognized.",
        )
        waits = f"udev to name the disk in {disk_of(found.device).spot}" if found else ""
        title = f"Insert the new disk into {spot}"
        return SwapStage(title, text, waits=waits or f"a disk in {spot}")
    new = disk_of(found.device)
    if verdict == "shown":
        name = found.device.node.rpartition("/")[2]
        known = (each for kind, each in LOOKING_AGAIN.items() if name.startswith(kind))
        commands = [command.format(name) for command in next(known, ())]
        way = "power off and on, or have it look again with these commands, as root:"
        return SwapStage(
            f"Insert the new disk into {spot}, and make the machine see it",
            (
                f"The machine still shows {old.words}. If it is still in, pull it now.",
                "If it is out, the machine doesn't notice that disks go or come:"
                f" {way if commands else 'power off and on.'}",
                # One command per line, short enough not to be wrapped: they are copied from the
                # screen.
                *commands,
            ),
            waits=f"another disk in {spot}",
            answers=(SAME,),
        )
    if verdict == "elsewhere":
        title = f"The new disk is in {new.spot}, not in {spot}"
        text = (f"Move it to {spot}, or use it where it is: {new.words}.",)
        return SwapStage(title, text, waits=f"a disk in {spot}", answers=(elsewhere(new, spot),))
    if verdict == "unfit":
        waits, insert = f"a disk that fits in {spot}", "Insert"
        if old.shares_place(found.device):
            insert = f"Pull {new.words} again, then insert"
        elif new.place:
            waits += f", or in {new.place} once this one is out"
        text = (*(f"{sentence(each)}." for each in found.problems), f"{insert} another disk.")
        return SwapStage(f"{new.words} does not fit", text, waits=waits)
    return None


def replace_stage(swap: Checklist, view: MachineView, _: float) -> SwapStage | None:
    """Return the stage to replace, or to put the same disk online; None once that has begun."""
    old, new, target = swap.old, swap.new, view.target(swap.old.key)
    if target is None or new is None or replacing(target) is not None:
        return None
    off = target.vdev.state == "OFFLINE" and any(
        e.step == "offline" and e.command for e in swap.log
    )
    if swap.same or (off and swap.mode == REPLACE_FIRST and view.device(old) is not None):
        return _online(swap, view, target)
    device, part = view.device(new), partition_of(target.vdev)
    given = device if device is None or part is None else partition_on(device, part)
    path = new.whole if device is None else f"{device.path}-part{part}"
    path = path if given is None else given.path
    smart = view.counts(device)
    doubts = () if device is None else judge_inserted(view, target, device).warnings
    # Disks named by bay have the same name, so only their labels tell them apart.
    labels = old.mark and new.mark and old.spot == new.spot
    return SwapStage(
        f"Replace {old.mark} with {new.mark} in {new.spot}"
        if labels
        else f"Replace {old.words} with {new.words}",
        (
            "The new disk is overwritten: what is on it is lost. Compare its serial number"
            " with its label.",
            *((f"SMART of the new disk: {smart.words()}.",) if smart is not None else ()),
        ),
        warnings=tuple(f"{sentence(doubt)}." for doubt in doubts),
        plan=plan_replace(view.situation, Swap(old.key, path), estimate=swap.estimate),
        paths=(path,),
    )


def _online(swap: Checklist, view: MachineView, target: Target) -> SwapStage | None:
    """Return the stage to put the old disk online, or to clear it if it is FAULTED."""
    if target.vdev.state not in FAILED:
        return None
    return SwapStage(
        f"Put {view.placed(swap.old).words} online again",
        (
            "The same disk is back: what it missed is resilvered. If errors return, its cable, its"
            " bay or the disk itself is bad.",
            "To use another disk instead, pull it again and insert that one.",
        )
        if swap.same
        else ("It is read, and counts for redundancy, until the new disk is filled.",),
        plan=plan_return(view.situation, target),
        undo=None if swap.same else "",
    )


def back_early(swap: Checklist, view: MachineView) -> SwapStage | None:
    """Return the stage to put an old disk online that was pulled too early and is in again."""
    target = view.target(swap.old.key)
    if not swap.was_needed or swap.same or target is None or view.device(swap.old) is None:
        return None
    # One that is OFFLINE or FAULTED was so before.
    stage = None if target.vdev.state in ("OFFLINE", "FAULTED") else _online(swap, view, target)
    return None if stage is None else replace(stage, step=swap.at, alarm=True)


def just_ran(swap: Checklist, pool: Pool, now: float) -> bool:
    """Return whether a command ran so recently that its resilver may not have begun."""
    begun = (entry for entry in swap.log if entry.command.startswith(FILLING))
    # The kernel's start time is in whole seconds.
    newest = max((scan.start or 0.0 for scan in pool.scans if scan.function in REPAIRS), default=0)
    # Below 0 if the clock was set back: such a command doesn't count.
    return any(0.0 <= now - entry.t < BEGINNING and newest < int(entry.t) for entry in begun)


def resilver_stage(swap: Checklist, view: MachineView, now: float) -> SwapStage | None:
    """Return the stage that waits until the new disk is filled; None once the vdev is whole."""
    situation, old = view.situation, view.target(swap.old.key)
    leaf, group = old if swap.same else new_leaf(swap, view), replacing(old)
    waits = situation.repairing or situation.waiting or just_ran(swap, view.pool, now)
    if group is None:
        lacks = leaf is not None and not is_complete(leaf.vdev)
        return _waiting(swap, view, leaf) if waits or lacks else None
    last, begun = situation.repaired, swap.noted("replace") or swap.begun
    # An adopted replace may have finished resilvering before the checklist began.
    early = last is None or ((last.start or 0.0) < int(begun) and settling(now, begun))
    # ZFS removes the replaced device only a while after the resilver's end (see ``settling``).
    if waits or early or settling(now, last and last.end):
        return _waiting(swap, view, leaf)
    return SwapStage(
        f"The resilver ended, but {group.name} stays",
        (leftover(group) or "",),
        warnings=("Do not pull the old disk: it may hold the only good copy of some block.",),
        waits="the group to end",
        # A checkpoint keeps the group in place: without discarding it, no resilver helps.
        plan=(plan_resilver if view.pool.checkpoint is None else plan_discard)(situation),
        alarm=True,
    )


def _waiting(swap: Checklist, view: MachineView, leaf: Target | None) -> SwapStage:
    """Build the stage that waits for the resilver."""
    old, vdev = view.target(swap.old.key), None if leaf is None else leaf.vdev
    stay = "Leave the old disk plugged in until it ends"
    out = bool(view.devices) and view.device(swap.old) is None
    if out or swap.mode != REPLACE_FIRST or swap.pulled is not None:
        meanwhile = "Pull nothing until it ends."
    elif old is not None and is_complete(old.vdev):
        meanwhile = f"{stay}: it still counts for redundancy."
    elif old is not None and old.vdev.state not in FAILED:
        meanwhile = f"{stay}: it is still read."
    else:
        meanwhile = f"{stay}, though ZFS doesn't read from it: the pull can only be checked then."
    return SwapStage(
        f"Wait until {view.placed(swap.new or swap.old).words} is filled",
        (meanwhile,),
        waits=filling(view.situation, vdev),
        deferred=waits_its_turn(view.situation, vdev),
        final="" if swap.same else STEPS["resilver"].final,
    )


def new_leaf(swap: Checklist, view: MachineView) -> Target | None:
    """Return the leaf on the new disk; None while the pool has none."""
    if swap.new is None:
        return None
    device = view.device(swap.new)
    paths = (device.path, *device.aliases) if device else (swap.new.whole,)
    return find_path(view.pool, tuple(filter(None, paths)))


def return_spare_stage(swap: Checklist, view: MachineView, _: float) -> SwapStage | None:
    """Return the stage to detach a spare that still stands in; None if none does."""
    leaf = view.target(swap.old.key) if swap.same else new_leaf(swap, view)
    if leaf is None:
        return None
    # zpool can't tell which place is meant for a spare that stands in at several.
    standing = next((spare for spare in leaf.spares if not spare.shared), None)
    if standing is None or standing.guid is None:
        return None
    return SwapStage(
        f"Return the hot spare {standing.called}",
        (f"{leaf.name} is complete: the spare isn't needed there any more.",),
        plan=plan_detach(view.situation, standing.guid),
    )


def light_off_stage(swap: Checklist, view: MachineView, _: float) -> SwapStage | None:
    """Return the stage to switch off the light that this checklist switched on; None if off."""
    if not swap.lit or "light-off" in swap.passed:
        return None
    return SwapStage(
        f"Switch off the light of {swap.old.spot}",
        plan=plan_light(view.situation, swap.old, on=False),
        answers=(LEAVE_LIT,),
    )


def scrub_stage(swap: Checklist, view: MachineView, now: float) -> SwapStage | None:
    """Return the stage to offer a scrub and wait for it; None once it ended or was skipped."""
    situation, asked = view.situation, swap.scrub_begun
    runs = situation.active("scrub")
    # A scrub appears in the samples only some time after its command.
    begins = asked is not None and 0.0 <= now - asked < BEGINNING
    if "scrub" in swap.passed:
        return None
    text = ("A scrub reads every block once and finds damage that the old disk may have left.",)
    if runs is not None or begins:
        return SwapStage(
            f"Wait until {view.pool.name} is scrubbed",
            text,
            waits=describe(runs) if runs is not None else "the scrub to begin",
            answers=(NO_WAIT,),
        )
    if asked is not None and scrubbed(swap, view):
        return None
    title = f"Scrub {view.pool.name}"
    return SwapStage(title, text, plan=plan_scrub(situation), answers=(NO_SCRUB,))


def scrubbed(swap: Checklist, view: MachineView) -> Scan | None:
    """Return the scrub of this swap once it has ended."""
    # The kernel's start time is in whole seconds.
    over = (scan for scan in view.pool.scans if scan.function == "scrub" and scan.end)
    return next((scan for scan in over if (scan.start or 0.0) >= int(swap.begun)), None)


def _by_back(does: str, when: str = "Afterwards:") -> KeyedText:
    """Return a sentence with what Back does, and when."""
    return KeyedText(f"{when} Back {does}", f"{when} {{keys}} {does}", "undo-step")


class SwapStep(NamedTuple):
    """A kind of step: its title, how it is seen to be done, and how to undo it.

    At least one of ``undo`` and ``final`` is set for a step that changes something.
    """

    title: str
    stage: Callable[[Checklist, MachineView, float], SwapStage | None] = lambda *_: None
    """Returns the stage (a plan, question or wait) until the step is done, then None."""
    ways_back: Callable[[Checklist, MachineView], Iterable[WayBack]] = lambda *_: ()
    """Returns the step's effects that are still in place; the one to undo first comes first."""
    undo: str = ""
    """What Back will do, shown before the step is taken."""
    final: str = ""
    """Why there is no way back; together with ``undo``, what is lost anyway."""
    brief: str = ""
    """A few words about the loss for a list of steps; empty if nothing is lost."""


STEPS = {
    "explain": SwapStep("Read what will happen"),
    "spare": SwapStep(
        "Let a hot spare stand in", spare_stage, undo_spare, _by_back("detaches it again")
    ),
    "offline": SwapStep(
        "Take the old disk offline", offline_stage, undo_offline, _by_back("puts it online again")
    ),
    "light": SwapStep(
        "Find the bay by its light", light_stage, undo_light, _by_back("switches it off again")
    ),
    "pull": SwapStep(
        "Pull the old disk",
        pull_stage,
        undo_pull,
        _by_back("asks you to put it back into its bay, then puts it online again"),
    ),
    "insert": SwapStep(
        "Insert the new disk",
        insert_stage,
        undo=_by_back("asks you to take it out again and put the old disk back"),
    ),
    "replace": SwapStep(
        "Replace",
        replace_stage,
        undo_replace,
        _by_back("detaches the new disk again", "Afterwards, until the resilver ends:"),
        brief="new disk is overwritten",
    ),
    "resilver": SwapStep(
        "Wait for the resilver",
        resilver_stage,
        final="No way back once it ends: the old disk then leaves the pool for good",
        brief="no way back after this",
    ),
    "return-spare": SwapStep(
        "Return the hot spare",
        return_spare_stage,
        final="No way back: what the spare holds is dropped; it is AVAIL again",
    ),
    "light-off": SwapStep(
        "Switch the light off", light_off_stage, undo_light_off, _by_back("switches it on again")
    ),
    "scrub": SwapStep("Scrub", scrub_stage, undo_scrub, _by_back("stops it")),
    "report": SwapStep("Save the report"),
}
"""Every step by name; ``WAYS`` has the steps of each way in order."""


class Way(NamedTuple):
    """A way of swapping: its title, and its steps between ``explain`` and ``report``."""

    title: str
    steps: tuple[str, ...]


_AFTER = ("return-spare", "light-off", "scrub")
_PULLING = ("offline", "light", "pull", "insert", "replace", "resilver", *_AFTER)
WAYS = {
    REPLACE_FIRST: Way(
        "Replace first, pull afterwards",
        ("insert", "replace", "resilver", "offline", "light", "pull", *_AFTER),
    ),
    SPARE_FIRST: Way("Let a hot spare stand in, then pull", ("spare", *_PULLING)),
    PULL_FIRST: Way("Pull first, then insert the new disk", _PULLING),
}


def steps_of(swap: Checklist) -> tuple[str, ...]:
    """Return every step of a checklist's way, in order."""
    return ("explain", *WAYS[swap.mode].steps, "report")


def comes_before(swap: Checklist, one: str, other: str) -> bool:
    """Return whether one step of a checklist's way comes before another."""
    return steps_of(swap).index(one) < steps_of(swap).index(other)


def listed(swap: Checklist, at: str = "explain") -> tuple[str, ...]:
    """Return the steps to show, ``at`` being the current one, without those never needed."""
    every, replaces_first = steps_of(swap), swap.mode == REPLACE_FIRST
    idle = {
        "explain",
        *(("light", "light-off") if not swap.old.light else ()),
        *(("return-spare",) if not swap.spared else ()),
        # Once replaced, the old device has left the pool: only others may have to go offline.
        *(("offline",) if replaces_first and not swap.along else ()),
        # The new disk may have been in the machine already.
        *(("insert",) if replaces_first and swap.new and swap.noted("insert") is None else ()),
    }
    # A step that ran before another way was chosen may be ahead again, but not needed there.
    reached = every[: every.index(at) + 1]
    ran = {entry.step for entry in swap.log if entry.command and entry.step in reached}
    needed = {*every} - idle | ran | {at} - {"explain"}
    return tuple(step for step in every if step in needed)


def step_of(swap: Checklist, name: str) -> SwapStep:
    """Return a step with its undo text adapted to this checklist."""
    step = STEPS[name]
    if name == "insert" and swap.mode == REPLACE_FIRST:
        return step._replace(undo="")  # nothing was run yet
    if name == "pull" and swap.mode == REPLACE_FIRST:
        return step._replace(undo="", final="No way back: the old disk has left the pool already")
    if name in ("replace", "resilver") and swap.same:
        return step._replace(undo=_by_back("takes it offline again"), final="", brief="")
    return step


def to_do(swap: Checklist, view: MachineView, now: float) -> SwapStage | None:
    """Return the stage of the first step that is not done; None once all are done."""
    for name in steps_of(swap):
        if (stage := STEPS[name].stage(swap, view, now)) is not None:
            return replace(stage, step=name)
    return None


def all_ways_back(swap: Checklist, view: MachineView, at: str = "explain") -> Iterator[WayBack]:
    """Yield what the steps taken left in place, newest first.

    ``at``: the current step. A final step before it ends the list: nothing leads back behind that.
    """
    for name in reversed(steps_of(swap)):
        if STEPS[name].final and comes_before(swap, name, at):
            return
        yield from STEPS[name].ways_back(swap, view)
