"""The current step of a swap, and the changes that a look at pool and machine records.

The current step is derived anew each time. What can't be derived again is recorded in the
checklist: a pull, an inserted disk, and disks that were pulled by mistake. The latter must return
before any other step goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from zconsole.actions.clear import plan_clear
from zconsole.actions.conditions import OTHER_HOST
from zconsole.actions.offline import plan_online
from zconsole.actions.plan import ActionPlan, Situation
from zconsole.actions.target import Target
from zconsole.hardware.light import LASTING
from zconsole.pool.model import FAILED, Scan
from zconsole.pool.redundancy import is_complete
from zconsole.swap.choice import around
from zconsole.swap.disk import (
    DONE,
    OPEN,
    OUT_ALREADY,
    REPLACE_FIRST,
    TOO_EARLY,
    Checklist,
    MachineView,
    ReturnedDisk,
    SwapDisk,
    disk_of,
    disk_of_leaf,
    leaves_of,
    replacing,
    sentence,
)
from zconsole.swap.effects import (
    filling,
    free_bay,
    holding,
    in_bay_of,
    inserted,
    is_same,
    marked,
    redundancy_words,
    without,
)
from zconsole.swap.report import (
    beside_left,
    old_helps,
    out_early,
    reminders,
    still_in,
    still_out,
    summary,
    undone,
    way_back,
)
from zconsole.swap.stage import (
    Answer,
    SwapStage,
    WayBack,
    plan_return,
    replacing_first,
    undo_offline,
    use_now,
)
from zconsole.swap.steps import (
    NOT_NEEDED,
    PUT_BACK,
    SCRUB_CANCELED,
    STEPS,
    absent_disks,
    back_early,
    comes_before,
    just_ran,
    listed,
    new_leaf,
    replace_begun,
    resilver_stage,
    scrubbed,
    step_of,
    steps_of,
    to_do,
)
from zconsole.units import counted


def current(swap: Checklist, view: MachineView, now: float) -> SwapStage:
    """Return the current step; ``now`` is in epoch seconds."""
    view = without(marked(view), (*swap.wrong, *swap.meant))
    kept = reminders(swap, view, now)
    found = None
    if swap.state == OPEN:
        found = put_back(swap, view) or _suspended(swap, view)
        found = found or back_early(swap, view) or to_do(swap, view, now)
    if found is None:
        return replace(_report(swap, view), reminders=kept)
    left = undone(swap, view)
    found = replace(
        found, back=way_back(swap, view, found, clean=not left), undone=left, reminders=kept
    )
    if found.alarm:
        return found
    # Only a step that is still to be taken says what Back will do afterwards: not an alarm, nor a
    # wait for something that already runs, nor a plan that can't run.
    waits = found.plan is None and found.step in ("spare", "resilver", "scrub")
    if not waits and (found.plan is None or found.plan.refused is None):
        step = step_of(swap, found.step)
        undo = step.undo if found.undo is None else found.undo
        found = replace(found, undo=undo, final=found.final or step.final)
    new = new_elsewhere(swap, view)
    return replace(
        found,
        text=(*_back_again(swap), *found.text),
        warnings=(
            *still_out(swap, view),
            *out_early(swap, view),
            *still_in(swap, view),
            *found.warnings,
        ),
        answers=(*(() if new is None else (use_now(new, swap.old),)), *found.answers),
    )


def _back_again(swap: Checklist) -> Iterator[str]:
    """Yield a line per disk pulled by mistake that is complete again since the last step."""
    since = max((entry.t for entry in swap.log if entry.step != PUT_BACK), default=swap.begun)
    back = {(disk.pool, disk.key) for disk in swap.returned if disk.t >= since}
    words = (disk.words for disk in swap.around if (disk.pool, disk.key) in back)
    yield from (f"{name} is back and complete." for name in dict.fromkeys(words))


def new_elsewhere(swap: Checklist, view: MachineView) -> SwapDisk | None:
    """Return a new disk in another bay that could replace the old one before its pull."""
    waits = swap.mode != REPLACE_FIRST and swap.pulled is None and swap.at != "spare"
    if not waits or view.device(swap.old) is None or replace_begun(swap, view):
        return None
    found = inserted(swap, view)
    if found is None or found.verdict != "fits" or found.device.failure:
        return None
    return disk_of(found.device)


def look_at(swap: Checklist, view: MachineView | None, now: float) -> tuple[Checklist, SwapStage]:
    """Return a checklist with what a look at the machine adds to it, and its current step.

    ``view``: None while the pool is not imported.
    """
    if view is None:
        return swap, _absent(swap) if swap.state == OPEN else _report(swap, None)
    seen = noticed(swap, view, now)
    return seen, current(seen, view, now)


def _absent(swap: Checklist) -> SwapStage:
    """Build the stage while the pool is not imported."""
    pool = swap.pool
    text = f"{pool} is not imported. Import it (zpool import {pool}); the checklist goes on."
    return SwapStage(
        f"Import {pool}",
        (text,),
        swap.at,
        waits=f"{pool} (GUID {swap.guid})" if swap.guid else pool,
        back=WayBack("give up this swap: nothing is run", closes=True),
    )


def _suspended(swap: Checklist, view: MachineView) -> SwapStage | None:
    """Return the stage for a suspended pool: bring its devices back; None otherwise."""
    if not view.situation.suspended:
        return None
    pool, nothing = view.pool, "Pull nothing."
    if view.situation.may_be_elsewhere:
        title = f"{pool.name} is suspended: another host may have it"
        return SwapStage(title, (f"{OTHER_HOST}.", nothing), swap.at, alarm=True)
    what = (
        "Too few of its disks answer. Check cables, power and bays; once their labels can be read,"
        " clear the pool."
    )
    return SwapStage(
        f"{pool.name} is suspended: bring its devices back",
        (what, nothing),
        swap.at,
        plan=plan_clear(view.situation),
        final="Error counts of the pool are reset. Cannot be undone",
        alarm=True,
    )


def _report(swap: Checklist, view: MachineView | None) -> SwapStage:
    """Build the final stage: the outcome, and what is still lit, offline or needs another swap."""
    then = () if view is None else beside_left(swap, view)
    text = [*summary(swap)]
    if swap.lit and not swap.undone:  # left on by the operator; ``undone`` would name it
        text.append(
            f"The light of {swap.old.spot} is still on; it goes off {LASTING / 3600:g} hours after"
            f" it went on, or by zconsole light off {swap.old.whole}."
        )
    if view is not None and not swap.undone:
        text += filter(None, (back.left for back in undo_offline(swap, view)))
    text += (f"{said}." for _, said in then)
    pools = tuple(disk for disk, _ in then)
    warned = () if view is None or swap.undone else tuple(still_in(swap, view))
    return SwapStage(
        STEPS["report"].title, tuple(text), "report", warnings=warned, then=pools, over=True
    )


# What a look adds


def noticed(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """Return the checklist updated from pool and machine."""
    if swap.state != OPEN:
        return swap
    view = marked(view)
    # The order matters: the baseline of disks must be known before a missing one is noticed, and a
    # pull before the disk that is inserted after it.
    for notice in (
        _moved,
        _relocated,
        _baseline,
        _returning,
        _wrong_disks,
        _pulled,
        _adopted,
        _inserted,
        _filled,
    ):
        swap = notice(swap, view, now)
    stage = current(swap, view, now)
    # No step counts as done during an alarm.
    if stage.alarm:
        return swap
    swap = _log_steps(swap, view, stage, now)
    return replace(swap, state=DONE, ended=now) if stage.over else swap


def _moved(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """Note a reboot, and a pool imported under another name."""
    name = view.pool.name
    if view.boot != swap.boot:
        swap = replace(swap, boot=view.boot, unseen=False)
        swap = swap.noting(now, swap.at, "the machine was booted")
    if name != swap.pool:
        swap = swap.noting(now, swap.at, f"{swap.pool} is called {name} now")
        own = replace(swap.old, pool=name)
        beside = tuple(replace(d, pool=name) if d.pool == swap.pool else d for d in swap.around)
        swap = replace(swap, pool=name, old=own, around=beside)
    return swap


def _relocated(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """Update the old disk's place: it may be moved to another bay before it is pulled."""
    old = swap.old
    if swap.pulled is not None:
        return swap
    found = view.placed(old)
    swap = replace(swap, old=found)
    if found.words == old.words or not old.place:
        return swap
    return swap.retaking("light").noting(now, swap.at, f"{found.mark} is in {found.place} now")


def _baseline(swap: Checklist, view: MachineView, _: float) -> Checklist:
    """Record the disks present now as those that must stay, until the pull is due."""
    waits = comes_before(swap, swap.at, "pull") and not swap.wrong
    if not waits or not view.devices or missing(swap, view):
        return swap
    # An unused disk that came since is no part of it: it may be the new one.
    known = {disk.whole for disk in swap.around}
    there = (d for d in around(view, swap.old) if d.pool or d.whole in known)
    return replace(swap, around=tuple(there))


def _returning(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """Note disks that are in again: in another bay than before, or though meant to stay out."""
    for disk in swap.wrong:
        if (here := view.placed(disk)).spot != disk.spot:
            swap = swap.noting(now, PUT_BACK, _in_again(here, disk))
    swap = replace(swap, wrong=tuple(view.placed(disk) for disk in swap.wrong))
    for disk in swap.meant:  # back in: it has to become complete, too
        if view.device(disk) is not None:
            here, rest = view.placed(disk), tuple(d for d in swap.meant if d is not disk)
            beside = (d for d in swap.around if d.leaf != disk.leaf)
            swap = replace(swap, meant=rest, wrong=(*swap.wrong, here), around=(*beside, disk))
            swap = swap.noting(now, PUT_BACK, _in_again(here, disk))
    return swap


def _wrong_disks(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """Note disks that are out by mistake, and those that are back and complete."""
    returned = {(disk.pool, disk.key) for disk in swap.returned}
    lost = [(disk, f"wrong disk: {disk.words} left the machine") for disk in missing(swap, view)]
    lost += [
        (disk, f"{disk.words} is in, but dropped out of {disk.pool}")
        for disk in swap.around
        # Back after a wrong pull, but ZFS gave it up afterwards.
        if disk.leaf in returned and view.device(disk) is not None and view.has_failed(disk)
    ]
    for disk, said in lost:
        if disk.leaf not in {each.leaf for each in swap.wrong}:
            swap = replace(swap, wrong=(*swap.wrong, disk)).noting(now, PUT_BACK, said)
    known = tuple(disk.key for disk in swap.wrong if _knows(swap, disk, view))
    for disk in swap.wrong:
        if disk.key in swap.noticed and disk.key not in known:
            swap = swap.noting(now, PUT_BACK, f"{disk.words} left the machine again")
    swap = replace(swap, noticed=known)
    for disk in swap.wrong:
        if is_back(swap, disk, view, now):
            rest = tuple(d for d in swap.wrong if d is not disk)
            found = (*swap.returned, ReturnedDisk(disk.pool, disk.key, now))
            around = tuple(disk if d.leaf == disk.leaf else d for d in swap.around)
            swap = replace(swap, wrong=rest, returned=found, around=around)
            swap = swap.noting(now, PUT_BACK, f"{disk.words} is back and complete")
    for disk in swap.wrong:
        for other in another_in_bay(disk, view):
            swap = _noting_once(swap, now, PUT_BACK, other)
    # Disks that are still out come first, as ``on_purpose`` takes the first one.
    ordered = sorted(swap.wrong, key=lambda disk: view.device(disk) is not None)
    return replace(swap, wrong=tuple(ordered))


def _in_again(disk: SwapDisk, before: SwapDisk) -> str:
    """Return that a disk that was out is in again, and from which bay if it is in another one."""
    moved = f", which was in {before.spot}," if before.spot != disk.spot else ""
    return f"{disk.words}{moved} is in again"


def _noting_once(swap: Checklist, now: float, step: str, text: str) -> Checklist:
    """Return the checklist with one more log entry, unless it has the same already.

    Only the text before the colon counts: the reasons behind it have figures, which change.
    """
    said = {entry.text.partition(": ")[0] for entry in swap.log}
    return swap if text.partition(": ")[0] in said else swap.noting(now, step, text)


def _pulled(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """Note that the old disk left the machine, at the pull step or by itself."""
    words = swap.old.words
    if swap.pulled is not None or not view.devices:
        return swap
    if view.device(swap.old) is not None:
        return replace(swap, was_gone=False)
    # Another disk in its bay proves the pull, also of a disk that was lost before.
    if any(swap.old.shares_place(device) for device in view.devices):
        how = f"{words} is out: another disk is in its bay"
        return replace(swap, pulled=now, was_gone=False).noting(now, "pull", how)
    replaced = swap.mode == REPLACE_FIRST and view.target(swap.old.key) is None
    if swap.was_gone:  # once it is replaced, nothing needs it
        return replace(swap, pulled=now) if replaced and swap.left_early else swap
    if replaced or swap.at in ("light", "pull"):
        how = f"{words} is out: it left the machine"
        return replace(swap, pulled=now).noting(now, "pull", how)
    return _left_early(replace(swap, was_gone=True), now)


def _left_early(swap: Checklist, now: float) -> Checklist:
    """Note that the old disk left the machine before its pull was due."""
    if swap.mode == REPLACE_FIRST:
        return swap.noting(now, "pull", TOO_EARLY)
    words = swap.old.words
    step, how = swap.at, f"{words} left the machine by itself"
    if step == "offline":  # pulled one step too early
        swap = swap.noting(now, step, OUT_ALREADY)
        step, how = "pull", f"{words} left the machine"
    return swap.noting(now, step, how)


def _adopted(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """Note a replace that somebody else, or ZED, has begun meanwhile."""
    group, mine = replacing(view.target(swap.old.key)), new_leaf(swap, view)
    # With several new disks in the group, only the last one stays.
    displaced = group is not None and mine is not None and mine.vdev in group.children[1:-1]
    if group is None or not (swap.new is None or displaced):
        return swap
    new = view.newcomer(group)
    swap = swap.noting(now, "replace", f"started elsewhere: {new.words} takes the place")
    if swap.pulled is None and view.device(swap.old) is not None:
        return replacing_first(swap, new)  # its pull is still to come
    # In the other ways the pull comes before the replace, so it counts as done.
    pulled = swap.pulled if swap.mode == REPLACE_FIRST else swap.pulled or now
    return replace(swap, new=new, pulled=pulled)


def _inserted(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """Note the inserted disk, whether or not it fits; forget one that fits when it is out again."""
    if not view.devices or (swap.mode != REPLACE_FIRST and swap.pulled is None):
        return swap
    if swap.new is not None and (known := view.device(swap.new)) is not None:
        better = disk_of(known)  # udev may report the serial number of a new disk late
        return replace(swap, new=better) if better.mark and not swap.new.mark else swap
    if replace_begun(swap, view):
        return swap
    found = inserted(swap, view)
    if found is not None and found.verdict == "fits":
        new, same = disk_of(found.device), is_same(swap, view, found.device)
        said = f"{new.words} is in: {'the same disk again' if same else 'the new disk'}"
        return replace(swap, new=new, same=same).noting(now, "insert", said)
    swap = replace(swap, new=None, same=False)
    if found is None or found.verdict not in ("elsewhere", "unfit"):
        return swap
    said = f"{disk_of(found.device).words} was inserted"
    said += (
        f" and does not fit: {'; '.join(found.problems)}"
        if found.problems
        else f", not in {swap.old.place or 'the same bay'}"
    )
    return _noting_once(swap, now, "insert", said)


def _filled(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """Note that the new disk is filled, during an alarm too: another resilver may follow."""
    if swap.same:
        done = swap.at == "resilver" and resilver_stage(swap, view, now) is None
    else:
        leaf = new_leaf(swap, view)
        gone = view.target(swap.old.key) is None
        done = gone and leaf is not None and is_complete(leaf.vdev)
    return _noting_filled(swap, view, now) if done else swap


def _noting_filled(swap: Checklist, view: MachineView, now: float) -> Checklist:
    """Return the checklist with its resilver's end, unless noted since the replace."""
    noted = [entry.step for entry in swap.log if entry.step in ("replace", "resilver")]
    if noted[-1:] == ["resilver"]:
        return swap
    last = _last_repair(swap, view)
    swap = replace(swap, resilvered=None if last is None else _took(last))
    return swap.noting(_end(last, now), "resilver", "the resilver is done")


def _log_steps(swap: Checklist, view: MachineView, stage: SwapStage, now: float) -> Checklist:
    """Add a log entry for every step that was done since the last look."""
    if stage.step == swap.at:
        return swap
    shown, every = listed(swap, stage.step), steps_of(swap)
    for step in every[every.index(swap.at) : every.index(stage.step)]:
        if step == "resilver":
            swap = _noting_filled(swap, view, now)
        elif step == "scrub" and step not in swap.passed and (scrub := scrubbed(swap, view)):
            errors = counted(scrub.errors or 0, "error")
            canceled = scrub.state == "canceled"
            text = SCRUB_CANCELED if canceled else f"the scrub finished with {errors}"
            swap = swap.noting(_end(scrub, now), step, text)
        elif step in shown and swap.noted(step) is None:
            swap = swap.noting(now, step, NOT_NEEDED)
    return replace(swap, at=stage.step)


def _last_repair(swap: Checklist, view: MachineView) -> Scan | None:
    """Return the resilver that filled the new disk, if it ended and the pool still tells of it."""
    last, leaf = view.situation.repaired, new_leaf(swap, view)
    if last is None or last.end is None or last.end < swap.begun or view.situation.repairing:
        return None
    # A resilver counts what it writes to each leaf from 0 on (``vdev_scan_stat_init``, vdev.c).
    others = leaf is not None and leaf.vdev.scan_processed == 0 and last.function == "resilver"
    return None if others else last


def _took(scan: Scan) -> float | None:
    """Return how long an ended scan took."""
    return scan.duration if scan.start is None or scan.end is None else scan.end - scan.start


def _end(scan: Scan | None, now: float) -> float:
    """Return when a scan ended; the checklist may notice that late. ``now`` if it is not known."""
    return now if scan is None or scan.end is None else min(now, scan.end)


# Disks that were pulled and should not have been


def missing(swap: Checklist, view: MachineView) -> tuple[SwapDisk, ...]:
    """Return disks of pools that were present before and are missing now.

    Excluded are the old disk, disks that another checklist swaps, and disks that the operator said
    were pulled on purpose.
    """
    meant, leaving = {disk.leaf for disk in swap.meant}, {disk.leaf for disk in view.leaving}
    absent = absent_disks(swap, view)
    used = {disk.whole for disk in view.leaf_disks} if absent else set()
    return tuple(
        disk
        for disk in absent
        if disk.pool and disk.leaf not in meant and disk.leaf not in leaving
        # A disk that was replaced meanwhile may go.
        if view.of(disk.pool) is None or view.leaf_of(disk) is not None or disk.whole in used
    )


def is_back(swap: Checklist, disk: SwapDisk, view: MachineView, now: float) -> bool:
    """Return whether a pulled disk is present again, and complete in its pool.

    zpool marks a device as resilvering only once the first bytes were written to it. As long as any
    repair runs, or may be about to begin, the disk does not count as complete.
    """
    if view.device(disk) is None:
        return False
    found = view.leaf_of(disk)
    if found is None:
        return True
    situation, leaf = found[0], found[1].vdev
    # No resilver makes these complete: they hold no data, or are complete in no place.
    if leaf.vclass in ("spare", "cache") or leaf.shared:
        return True
    whole = not situation.suspended and is_complete(leaf)
    repairs = situation.repairing or situation.waiting or just_ran(swap, situation.pool, now)
    return whole and disk.key in swap.noticed and not repairs


def _knows(swap: Checklist, disk: SwapDisk, view: MachineView) -> bool:
    """Return whether the disk's pool noticed the pull, or has opened the device again since."""
    found = view.leaf_of(disk)
    if found is None:
        return False
    situation, target = found
    if situation.suspended or target.vdev.state in FAILED:  # zpool clear reopens every device
        return True
    if view.device(disk) is None:
        return False
    # It is back before the pool noticed the pull: the pool knows once a command reopened it.
    reopening = {step.command for step in plan_online(situation, disk.key, reopen=True).steps}
    own = [entry for entry in swap.log if entry.step == PUT_BACK]
    since = max((entry.t for entry in own if not entry.command), default=swap.begun)
    ran = {entry.command for entry in own if entry.t >= since and entry.result == "done"}
    return disk.key in swap.noticed or bool(reopening & ran)


def put_back(swap: Checklist, view: MachineView) -> SwapStage | None:
    """Return the stage for disks that were pulled by mistake; None if there are none."""
    out = [disk for disk in swap.wrong if view.device(disk) is None]
    returned = ((disk, view.leaf_of(disk)) for disk in swap.wrong if disk not in out)
    back = next(((disk, leaf) for disk, leaf in returned if leaf is not None), None)
    plan: ActionPlan | None = None  # brings back online a device that was out
    if back is not None:
        disk, (situation, target) = back
        if situation.suspended:
            plan = plan_clear(situation)
        elif target.vdev.state in FAILED:
            plan = plan_return(situation, target)
        elif disk.key not in swap.noticed:
            plan = plan_online(situation, target.key, reopen=True)
    clears = plan is not None and plan.action == "clear"
    final = "Error counts are reset. Cannot be undone" if clears else ""
    # Redundancy does not count a disk that is in again before it is complete.
    seen = without(view, swap.wrong, also_present=True)
    if out:
        stage = _still_out(swap, seen, out, None if back is None or plan is None else back[0])
    elif back is not None:
        stage = _coming_back(swap, seen, *back, plan)
    else:
        return None
    return replace(stage, plan=plan, final=final, alarm=True)


def _coming_back(
    swap: Checklist,
    view: MachineView,
    back: SwapDisk,
    leaf: tuple[Situation, Target],
    plan: ActionPlan | None,
) -> SwapStage:
    """Build the stage for a disk that is in again but not complete yet; no other one is out."""
    situation, target = leaf
    hold = (
        f"Do not pull {view.placed(swap.old).words} before {back.spot} is complete."
        if view.device(swap.old) is not None
        else f"Pull nothing else before {back.spot} is complete."
    )
    text = (*_redundancy(view, [back]), f"{_in_again(back, _before(swap, back))}. {hold}")
    if plan is not None and target.vdev.state not in FAILED and not situation.suspended:
        text += (
            f"{situation.pool.name} has not noticed that it was out, and may still use it as it was"
            " before: have it opened again.",
        )

    def _what(disk: str) -> str:
        if plan is not None:
            return f"bring {disk} back into {situation.pool.name}"
        wait = f"wait until {disk} is complete again"
        return (
            f"put {view.placed(swap.old).spot} online again, then {wait}"
            if old_helps(swap, view)
            else wait
        )

    waits = filling(situation) if plan is None else ""
    return SwapStage(
        sentence(_what(back.words)), text, swap.at, waits=waits, brief=_what(back.spot)
    )


def _still_out(
    swap: Checklist, view: MachineView, out: list[SwapDisk], back: SwapDisk | None
) -> SwapStage:
    """Build the stage for disks that are still out.

    ``back``: one that is in again and can be brought online.
    """
    disks = tuple({disk.whole: disk for disk in out}.values())  # several leaves may be on one
    names = " and ".join(disk.words for disk in disks)
    spots = " and ".join(disk.spot for disk in disks)
    several = len(disks) > 1
    they, them, each = ("they", "them", "disks are") if several else ("it", "it", "disk is")
    left = _redundancy(view, out)
    text = [*left]
    for disk in disks:
        mark, others = disk.mark or disk.name, another_in_bay(disk, view)
        text += (f"{other}. Take it out, insert {mark}." for other in others)
        if (member := in_bay_of(disk, view)) is not None:
            text.append(f"{holding(disk, member)}: insert {mark} into {free_bay(view, disk)}.")
    old = (
        f"{swap.old.words}, which this checklist swaps, is out too"
        if view.device(swap.old) is None
        else f"the disk to swap is {view.placed(swap.old).words}"
    )
    text.append(f"The machine lost {names}; {old}.")
    pools = dict.fromkeys(disk.pool for disk in out if disk.pool)
    text += (f"{pool} needs the data on {spots}." for pool in pools)
    for held in filter(None, map(view.of, pools)):
        if held.suspended:
            waits = f"it continues once the {each} back; then clear the pool"
            why = OTHER_HOST if held.may_be_elsewhere else waits
            text.append(f"{held.pool.name} is suspended: {why}.")
    text.append(f"If nobody pulled {spots}, {they} may have failed: check {them}.")
    if back is not None:
        text.append(f"{_in_again(back, _before(swap, back))}: bring it back into {back.pool}.")
    text.append(f"Pull nothing else until {spots} {'are' if several else 'is'} back and complete.")
    meant = f"Do not wait for {disks[0].place or disks[0].words}: it was pulled on purpose, or has"
    # A command takes effect at once, a hand later: redundancy is back sooner by the old disk.
    first = ""
    if old_helps(swap, view):
        first = f"put {view.placed(swap.old).spot} online again, then "
    return SwapStage(
        f"WRONG DISK{'S' * several}: {first}put {names} back{'' if first else ' now'}",
        tuple(text),
        swap.at,
        waits=f"{names} to return",
        answers=(
            Answer(
                "meant",
                f"{meant} failed",
                "disk stays out",
                " ".join((f"Goes on with the swap while {disks[0].words} is out.", *left)),
                change=on_purpose,
                typed="out",
            ),
        ),
        brief=f"wrong disk{'s' * several} pulled: {first}put {spots} back",
    )


def on_purpose(swap: Checklist, _: float) -> Checklist:
    """Treat the first wrong disk as pulled on purpose, with every leaf on it."""
    if not swap.wrong:  # it came back meanwhile
        return swap
    gone = swap.wrong[0]
    same = tuple(disk for disk in swap.wrong if disk.whole == gone.whole)
    rest = tuple(disk for disk in swap.wrong if disk not in same)
    return replace(swap, wrong=rest, meant=(*swap.meant, *same))


def _before(swap: Checklist, disk: SwapDisk) -> SwapDisk:
    """Return a disk that was pulled by mistake as it was before that."""
    return next((each for each in swap.around if each.leaf == disk.leaf), disk)


def another_in_bay(disk: SwapDisk, view: MachineView) -> Iterator[str]:
    """Yield a line if another disk is in the bay of one that is out; not if a pool uses it."""
    if view.device(disk) is not None or in_bay_of(disk, view) is not None:
        return
    found = (
        device for device in view.devices if device.kind == "disk" and disk.shares_place(device)
    )
    for other in map(disk_of, found):
        yield f"{disk.place} holds {other.mark or other.name}: not the one"


def _redundancy(view: MachineView, disks: Iterable[SwapDisk]) -> tuple[str, ...]:
    """Return the redundancy left in the disks' vdevs, a sentence each; none of suspended pools.

    ZFS marks every device that a resilver writes to, also one that it only repairs. Such a device
    does not count, so redundancy may seem to drop as a disk returns: that is explained.
    """
    said: list[str] = []
    for situation, target in filter(None, map(view.leaf_of, disks)):
        if situation.suspended:
            continue
        said += (f"{words}." for words in redundancy_words(situation, target.top))
        said += (
            f"{disk_of_leaf(situation, other).spot} does not count until the resilver ends, which"
            " writes to it, too."
            for other in leaves_of(situation.pool)
            if other.top is target.top and other.vdev.state == "ONLINE" and other.vdev.resilvering
            if not is_complete(other.group or other.vdev)
        )
    return tuple(dict.fromkeys(said))
