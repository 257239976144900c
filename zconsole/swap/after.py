"""The steps after the new disk is there: replace, resilver, spare back, light off, scrub."""

from __future__ import annotations

from zconsole.actions.checkpoint import plan_discard
from zconsole.actions.clear import plan_clear
from zconsole.actions.follow import leftover
from zconsole.actions.offline import plan_detach, plan_online
from zconsole.actions.plan import ActionPlan
from zconsole.actions.replace import plan_replace
from zconsole.actions.running_scans import describe
from zconsole.actions.scrub import plan_resilver, plan_scrub
from zconsole.actions.target import Swap, Target, find, find_path
from zconsole.pool.redundancy import is_complete
from zconsole.pool.scan_outcome import settling
from zconsole.pool.topology import FAILED
from zconsole.swap.checklist import REPLACE_FIRST, SCRUB_CANCELED, Checklist
from zconsole.swap.disk import SwapDisk, device_of
from zconsole.swap.light import plan_light
from zconsole.swap.pulling import doubts, new_path
from zconsole.swap.refusal import partition_of
from zconsole.swap.resilver import BEGINNING, filling, just_ran, repairs, waits_its_turn
from zconsole.swap.stage import Answer, SwapStage, sentence
from zconsole.swap.view import MachineView
from zconsole.units import counted

NO_SCRUB = Answer("no-scrub", "Skip the scrub")
NO_WAIT = Answer("no-wait", "Stop waiting for the scrub: it goes on by itself")
LEAVE_LIT = Answer("leave-lit", "Leave the light as it is")


def replace(c: Checklist, v: MachineView, now: float) -> SwapStage | None:
    """Give the place to the new disk, or put the same one online; None once that has begun."""
    del now
    s = v.situation
    target = find(s.pool, c.old.key)
    if target is None or c.new is None:
        return None
    if target.group is not None and target.group.kind == "replacing":
        return None
    if c.same:
        return _online(c, v, target)
    device = device_of(c.new, v.devices)
    path = new_path(device, partition_of(target)) if device else c.new.whole
    smart = v.smart.get(device.path) if device else None
    return SwapStage(
        "replace",
        _replacing(c.old, c.new),
        (
            "The new disk is overwritten: what is on it is lost. Compare its serial number once"
            " more.",
            *((f"SMART of the new disk: {smart.words()}.",) if smart is not None else ()),
        ),
        warnings=tuple(f"{sentence(doubt)}." for doubt in doubts(c, v)),
        plan=plan_replace(s, Swap(c.old.key, path)),
        paths=(path,),
    )


def _replacing(old: SwapDisk, new: SwapDisk) -> str:
    """What the step does; where disks are named by their bay, only their labels tell them apart."""
    if old.mark and new.mark and old.spot == new.spot:
        return f"Replace {old.mark} with {new.mark} in {new.spot}"
    return f"Replace {old.name} with {new.words}"


def _online(c: Checklist, v: MachineView, target: Target) -> SwapStage | None:
    """The old disk is back: online, or clear where ZFS gave it up."""
    if target.vdev.state not in FAILED:
        return None
    s = v.situation
    faulted = target.vdev.state == "FAULTED"
    return SwapStage(
        "replace",
        f"Put {c.old.words} online again",
        (
            "The same disk is back: what it missed is resilvered. If errors return, its cable, its"
            " bay or the disk itself is bad.",
            "To use another disk instead, pull it again and insert that one.",
        ),
        plan=plan_clear(s, target.key) if faulted else plan_online(s, target.key),
    )


def resilver(c: Checklist, v: MachineView, now: float) -> SwapStage | None:
    """Wait until the new disk is filled; None once the place is whole again."""
    s = v.situation
    old = find(s.pool, c.old.key)
    if old is not None and old.group is not None and old.group.kind == "replacing":
        return _filling(c, v, old, now)
    leaf = old if c.same else new_leaf(c, v)
    if repairs(s) or (leaf is not None and not is_complete(leaf.vdev)):
        return _waiting(c, v)
    return _waiting(c, v) if just_ran(c, now) else None


def _filling(c: Checklist, v: MachineView, old: Target, now: float) -> SwapStage:
    s = v.situation
    over = [scan for scan in s.pool.scans if scan.function in ("resilver", "rebuild") and scan.end]
    newest = max(over, key=lambda scan: scan.end or 0.0, default=None)
    begun = max((e.t for e in c.log if e.step == "replace"), default=c.begun)
    # The resilver of a replace that was adopted may have ended before the checklist began.
    started = newest is not None and (newest.start or 0.0) >= int(begun)
    ended = newest is not None and (started or not settling(now, begun))
    fresh = just_ran(c, now) or settling(now, newest.end if newest else None)
    if repairs(s) or not ended or fresh:
        return _waiting(c, v)
    group = old.group
    plan = plan_resilver(s) if s.pool.checkpoint is None else plan_discard(s)
    return SwapStage(
        "resilver",
        f"The resilver ended, but {group.name if group else 'the group'} stays",
        ((leftover(group) or "") if group else "",),
        warnings=("Do not pull the old disk: it may hold the only good copy of some block.",),
        waits="the group to end",
        plan=plan,
        alarm=True,
    )


def _waiting(c: Checklist, v: MachineView) -> SwapStage:
    name = c.new.words if c.new else c.old.name
    leaf = find(v.situation.pool, c.old.key) if c.same else new_leaf(c, v)
    vdev = None if leaf is None else leaf.vdev
    return SwapStage(
        "resilver",
        f"Wait until {name} is filled",
        (_meanwhile(c, v),),
        waits=filling(v.situation, vdev),
        deferred=waits_its_turn(v.situation, vdev),
        final="" if c.same else "when it ends, the old disk leaves the pool for good",
    )


def _meanwhile(c: Checklist, v: MachineView) -> str:
    """What to do with the old disk while the new one is filled."""
    if c.mode != REPLACE_FIRST:
        return "Pull nothing until it ends."
    old = find(v.situation.pool, c.old.key)
    if old is not None and is_complete(old.vdev):
        return "Leave the old disk plugged in until it ends: it still counts for redundancy."
    if old is not None and old.vdev.state not in FAILED:
        return "Leave the old disk plugged in until it ends: it is still read."
    return (
        "Leave the old disk plugged in until it ends, though ZFS doesn't read from it: only then"
        " its pull is checked."
    )


def new_leaf(c: Checklist, v: MachineView) -> Target | None:
    """The leaf on the new disk; None while the pool has none."""
    if c.new is None:
        return None
    device = device_of(c.new, v.devices)
    paths = (device.path, *device.aliases) if device else (c.new.whole,)
    return find_path(v.situation.pool, tuple(p for p in paths if p))


def return_spare(c: Checklist, v: MachineView, now: float) -> SwapStage | None:
    """Give back a spare that still stands in; None when none does."""
    del now
    s = v.situation
    leaf = find(s.pool, c.old.key) if c.same else new_leaf(c, v)
    group = leaf.group if leaf is not None else None
    if leaf is None or group is None or group.kind != "spare":
        return None
    standing = next((x for x in leaf.spares if x.guid and not x.shared), None)
    if standing is None or standing.guid is None:
        return None
    return SwapStage(
        "return-spare",
        f"Return the hot spare {standing.name}",
        (f"{leaf.name} is complete: the spare isn't needed there any more.",),
        plan=plan_detach(s, standing.guid),
    )


def light_off(c: Checklist, v: MachineView, now: float) -> SwapStage | None:
    """Switch the light off that this checklist switched on; None once it is off."""
    del now
    if not c.lit or "light-off" in c.passed:
        return None
    return SwapStage(
        "light-off",
        f"Switch off the light of {c.old.spot}",
        (),
        plan=plan_light(v.situation, c.old, on=False),
        answers=(LEAVE_LIT,),
    )


def scrub(c: Checklist, v: MachineView, now: float) -> SwapStage | None:
    """Offer a scrub and follow it; None once it has ended, or none is wanted."""
    s = v.situation
    if "scrub" in c.passed:
        return None
    runs = s.active("scrub")
    asked = c.scrub_begun
    if runs is not None or (asked is not None and 0.0 <= now - asked < BEGINNING):
        return SwapStage(
            "scrub",
            f"Wait until {s.pool.name} is scrubbed",
            ("It reads every block once and finds damage that the old disk may have left.",),
            waits=describe(runs) if runs is not None else "the scrub to begin",
            answers=(NO_WAIT,),
        )
    if asked is not None and scrubbed(c, v):
        return None
    return SwapStage(
        "scrub",
        f"Scrub {s.pool.name}",
        ("It reads every block once and finds damage that the old disk may have left.",),
        plan=plan_scrub(s),
        answers=(NO_SCRUB,),
    )


def scrubbed(c: Checklist, v: MachineView) -> str:
    """How the scrub of this swap ended, in words; empty while none has."""
    # The kernel's start time is in whole seconds.
    over = (scan for scan in v.situation.pool.scans if scan.function == "scrub" and scan.end)
    ended = next((scan for scan in over if (scan.start or 0.0) >= int(c.begun)), None)
    if ended is None:
        return ""
    if ended.state == "canceled":
        return SCRUB_CANCELED
    return f"the scrub finished with {counted(ended.errors or 0, 'error')}"


def undo_replace(c: Checklist, v: MachineView) -> ActionPlan | None:
    """Detach the new disk while it is being filled; None when there is nothing to detach."""
    old = find(v.situation.pool, c.old.key)
    group = old.group if old else None
    if group is None or group.kind not in ("replacing", "spare"):
        return None
    key = group.children[-1].guid
    if key is None or (group.kind == "spare" and c.spare is None):
        return None
    return plan_detach(v.situation, key)
