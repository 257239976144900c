"""Which step of a checklist is current: seen from the pool and the machine, not remembered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from zconsole.actions.clear import plan_clear
from zconsole.actions.conditions import OTHER_HOST
from zconsole.actions.target import find
from zconsole.hardware.light import LASTING
from zconsole.pool.model import MULTIHOST
from zconsole.swap import after, before, pulling
from zconsole.swap.checklist import (
    NOT_NEEDED,
    OPEN,
    OUT_ALREADY,
    PUT_BACK,
    REPLACE_FIRST,
    TITLES,
    Checklist,
    ReturnedDisk,
)
from zconsole.swap.choice import around
from zconsole.swap.costs import cost_of
from zconsole.swap.disk import device_of, disk_of, disk_of_leaf, leaves_of
from zconsole.swap.effects import marked, without
from zconsole.swap.report import summary
from zconsole.swap.stage import SwapStage, WayBack
from zconsole.swap.strays import another_in_bay, dropped, is_back, knows, missing, put_back
from zconsole.swap.undone import (
    beside_left,
    others_offline,
    reminders,
    still_out,
    undone,
)
from zconsole.swap.view import MachineView
from zconsole.swap.way_back import way_back

Look = Callable[[Checklist, MachineView, float], SwapStage | None]

LOOKS: Mapping[str, Look] = {
    "spare": before.spare,
    "offline": before.offline,
    "light": before.light,
    "pull": pulling.pull,
    "insert": pulling.insert,
    "replace": after.replace,
    "resilver": after.resilver,
    "return-spare": after.return_spare,
    "light-off": after.light_off,
    "scrub": after.scrub,
}
"""What looks whether a step is done: its stage, or None once it is."""

ONCE = frozenset({"pull", "insert"})
"""Steps that need not be done any more once the pool is past them."""


def current(c: Checklist, v: MachineView, now: float) -> SwapStage:
    """The current step; ``now`` is in epoch seconds."""
    v = without(marked(v), (*c.wrong, *c.meant))
    if c.state != OPEN:
        return replace(_report(c, v), reminders=reminders(c, v, now))
    found = put_back(c, v) or _suspended(c, v) or _first(c, v, now)
    if found is None:
        return _report(c, v)
    left = undone(c, v)
    warned = () if found.alarm else still_out(c, v)
    return replace(
        _costing(c, found),
        warnings=(*warned, *found.warnings),
        back=way_back(c, v, found, clean=not left),
        undone=left,
        reminders=reminders(c, v, now),
    )


def _costing(c: Checklist, stage: SwapStage) -> SwapStage:
    """With what Back will do, or what can't be undone, where the step is still to be taken."""
    waits = stage.plan is None and stage.step in ("spare", "resilver", "scrub")
    refused = stage.plan is not None and stage.plan.refused is not None
    if stage.alarm or waits or refused:
        return stage
    cost = cost_of(c, stage.step)
    return replace(stage, undo=cost.undo, until=cost.until, final=stage.final or cost.final)


def _first(c: Checklist, v: MachineView, now: float) -> SwapStage | None:
    for step in c.steps:
        look = LOOKS.get(step)
        if look is None or (step in ONCE and pulling.past(c, v)):
            continue
        if (stage := look(c, v, now)) is not None:
            return stage
    return None


def absent(c: Checklist) -> SwapStage:
    """The stage while the pool is not imported; one that is over needs none."""
    if c.state != OPEN:
        return _report(c, None)
    return SwapStage(
        c.at,
        f"Import {c.pool}",
        (f"{c.pool} is not imported. Import it (zpool import {c.pool}); the checklist goes on.",),
        waits=f"{c.pool} (GUID {c.guid})" if c.guid else c.pool,
        back=WayBack("give up this swap: nothing is run", closes=True),
    )


def _suspended(c: Checklist, v: MachineView) -> SwapStage | None:
    s = v.situation
    if not s.suspended:
        return None
    if s.pool.suspension == MULTIHOST:
        title = f"{s.pool.name} is suspended: another host may have it"
        return SwapStage(c.at, title, (f"{OTHER_HOST}.", "Pull nothing."), alarm=True)
    return SwapStage(
        c.at,
        f"{s.pool.name} is suspended: bring its devices back",
        (
            "Too few of its disks answer. Check cables, power and bays; once their labels can be"
            " read, clear the pool.",
            "Pull nothing.",
        ),
        plan=plan_clear(s),
        final="it resets the error counts of the pool",
        alarm=True,
    )


def _report(c: Checklist, v: MachineView | None) -> SwapStage:
    then = () if v is None else beside_left(c, v)
    online = () if v is None or c.undone else others_offline(c, v)
    text = (*summary(c), *_left_lit(c), *online, *(f"{text}." for _, text in then))
    return SwapStage("report", TITLES["report"], text, then=tuple(d for d, _ in then), over=True)


def _left_lit(c: Checklist) -> tuple[str, ...]:
    """That the light was left on, by somebody's word."""
    if not c.lit or c.undone:  # what is undone says so itself
        return ()
    hours = f"{LASTING / 3600:g} hours"
    off = f"zconsole light off {c.old.whole}"
    return (
        f"The light of {c.old.spot} is still on; it goes off {hours} after it went on, or by"
        f" {off}.",
    )


def noticed(c: Checklist, v: MachineView, now: float) -> Checklist:
    """The checklist with what pool and machine show now; the same one where nothing is new."""
    if c.state != OPEN:
        return c
    v = marked(v)
    c = _strays(_baseline(_relocated(_moved(c, v, now), v, now), v), v, now)
    c = _misplaced(_inserted(_adopted(_pulled(c, v, now), v, now), v, now), v, now)
    stage = current(c, v, now)
    if stage.alarm:
        return c
    c = _stepped(c, v, stage, now)
    return c.ending(now, "done") if stage.over else c


def _moved(c: Checklist, v: MachineView, now: float) -> Checklist:
    """After a boot, or with the pool imported under another name."""
    name = v.situation.pool.name
    if v.boot != c.boot:
        c = replace(c, boot=v.boot, unseen=False).noting(now, c.at, "the machine was booted")
    if name != c.pool:
        c = c.noting(now, c.at, f"{c.pool} is called {name} now")
        own = replace(c.old, pool=name)
        beside = tuple(replace(d, pool=name) if d.pool == c.pool else d for d in c.around)
        c = replace(c, pool=name, old=own, around=beside)
    return c


def _relocated(c: Checklist, v: MachineView, now: float) -> Checklist:
    """Where the old disk sits now: until it is pulled it may have been moved to another bay."""
    device = None if c.pulled is not None else device_of(c.old, v.devices)
    if device is None or not c.old.is_marked(device):
        return c
    here = disk_of(device)
    stays = here.port == c.old.port or not here.port
    old = replace(
        c.old,
        whole=here.whole,
        node=here.node,
        bay=here.bay or (c.old.bay if stays else ""),
        port=here.port or c.old.port,
        light=here.light or (c.old.light if stays else ""),
    )
    if old == c.old:
        return c
    moved, c = old.words != c.old.words and bool(c.old.place), replace(c, old=old)
    if not moved:
        return c
    passed = tuple(step for step in c.passed if step != "light")
    return replace(c, passed=passed).noting(now, c.at, f"{old.mark} is in {old.place} now")


def _baseline(c: Checklist, v: MachineView) -> Checklist:
    """Until the disk may be pulled, the disks that are there now are those that must stay."""
    waits = c.steps.index(c.at) < c.steps.index("pull") and not c.wrong
    if not waits or not v.devices or missing(c, v):
        return c
    there = around(v, c.old)
    return c if there == c.around else replace(c, around=there)


def _strays(c: Checklist, v: MachineView, now: float) -> Checklist:
    """Disks that are out and should not be; those that are back and complete."""
    c = _unmeant(c, v, now)
    for disk in missing(c, v):
        if disk not in c.wrong:
            c = replace(c, wrong=(*c.wrong, disk))
            c = c.noting(now, PUT_BACK, f"wrong disk: {disk.words} left the machine")
    for disk in dropped(c, v):
        c = replace(c, wrong=(*c.wrong, disk))
        c = c.noting(now, PUT_BACK, f"{disk.words} is in, but dropped out of {disk.pool}")
    known = tuple(disk.key for disk in c.wrong if knows(c, disk, v))
    for disk in c.wrong:
        if disk.key in c.noticed and disk.key not in known:
            c = c.noting(now, PUT_BACK, f"{disk.words} left the machine again")
    c = c if known == c.noticed else replace(c, noticed=known)
    for disk in c.wrong:
        if is_back(c, disk, v, now):
            found = (*c.returned, ReturnedDisk(disk.pool, disk.key, now))
            c = replace(c, wrong=tuple(d for d in c.wrong if d is not disk), returned=found)
            c = c.noting(now, PUT_BACK, f"{disk.words} is back and complete")
    ordered = tuple(sorted(c.wrong, key=lambda d: device_of(d, v.devices) is not None))
    return c if ordered == c.wrong else replace(c, wrong=ordered)


def _unmeant(c: Checklist, v: MachineView, now: float) -> Checklist:
    """Disks that were meant to go and are in again: to be brought back like wrong ones."""
    for disk in c.meant:
        if device_of(disk, v.devices) is not None:
            rest = tuple(d for d in c.meant if d is not disk)
            beside = tuple(d for d in c.around if (d.whole, d.key) != (disk.whole, disk.key))
            c = replace(c, meant=rest, wrong=(*c.wrong, disk), around=(*beside, disk))
            c = c.noting(now, PUT_BACK, f"{disk.words} is in again")
    return c


def _pulled(c: Checklist, v: MachineView, now: float) -> Checklist:
    """The old disk left the machine: while its pull was waited for, or of its own accord."""
    if c.pulled is not None or not v.devices:
        return c
    if device_of(c.old, v.devices) is not None:
        return replace(c, was_gone=False) if c.was_gone else c
    if any(c.old.shares_place(d) for d in v.devices):
        how = f"{c.old.words} is out: another disk is in its bay"
        return replace(c, pulled=now, was_gone=False).noting(now, "pull", how)
    if c.was_gone:
        return c
    if c.at in ("light", "pull"):
        how = f"{c.old.words} is out: it left the machine"
        return replace(c, pulled=now).noting(now, "pull", how)
    return _left(c, now)


def _left(c: Checklist, now: float) -> Checklist:
    """The old disk left though its pull was not waited for."""
    if c.at == "offline":  # pulled before its turn
        c = c.noting(now, "offline", OUT_ALREADY)
        return replace(c, was_gone=True).noting(now, "pull", f"{c.old.words} left the machine")
    return replace(c, was_gone=True).noting(now, c.at, f"{c.old.words} left the machine by itself")


def _adopted(c: Checklist, v: MachineView, now: float) -> Checklist:
    """A replace that somebody else, or ZED, has begun meanwhile."""
    target = find(v.situation.pool, c.old.key)
    group = target.group if target is not None else None
    if c.new is not None or group is None or group.kind != "replacing":
        return c
    key, leaf = next(each for each in leaves_of(v.situation.pool) if each[1] is group.children[-1])
    new = disk_of_leaf(v.situation, leaf, key)
    c = replace(c, new=new, pulled=c.pulled if c.mode == REPLACE_FIRST else c.pulled or now)
    return c.noting(now, "replace", f"started elsewhere: {new.words} takes the place")


def _inserted(c: Checklist, v: MachineView, now: float) -> Checklist:
    """The disk that was put in after the pull, once it fits; none when it is out again."""
    if c.mode == REPLACE_FIRST or c.pulled is None or not v.devices:
        return c
    known = None if c.new is None else device_of(c.new, v.devices)
    if c.new is not None and known is not None:
        better = disk_of(known)  # udev may tell the serial number of a new disk a little late
        return replace(c, new=better) if better.mark and not c.new.mark else c
    if pulling.past(c, v):
        return c
    new = pulling.accepted(c, v)
    if new is None:
        return c if c.new is None else replace(c, new=None, same=False)
    device = device_of(new, v.devices)
    same = device is not None and pulling.is_same(c, v, device)
    what = "the same disk again" if same else "the new disk"
    c = replace(c, new=new, same=same)
    return c.noting(now, "insert", f"{new.words} is in: {what}")


def _misplaced(c: Checklist, v: MachineView, now: float) -> Checklist:
    """With a line for each disk that was put in and is not the one, once each."""
    wrong = (text for disk in c.wrong for text in another_in_bay(disk, v))
    awaited = c.pulled is not None and c.new is None and not pulling.past(c, v)
    unfit = pulling.not_taken(c, v) if awaited else ()
    said = {_head(entry.text) for entry in c.log}
    for step, texts in ((PUT_BACK, wrong), ("insert", unfit)):
        for text in texts:
            c = c if _head(text) in said else c.noting(now, step, text)
    return c


def _head(text: str) -> str:
    """What a line of the log is about: the reasons behind it have figures, which change."""
    return text.partition(": ")[0]


def _stepped(c: Checklist, v: MachineView, stage: SwapStage, now: float) -> Checklist:
    """With a line for every step that is done since it was last looked at."""
    if stage.step == c.at:
        return c
    listed = c.listed(stage.step)
    for step in c.steps[c.steps.index(c.at) : c.steps.index(stage.step)]:
        if step == "resilver":
            c = c.noting(now, step, "the resilver is done")
        elif step == "scrub" and step not in c.passed and (ended := after.scrubbed(c, v)):
            c = c.noting(now, step, ended)
        elif step in listed and not any(entry.step == step for entry in c.log):
            c = c.noting(now, step, NOT_NEEDED)
    return replace(c, at=stage.step)
