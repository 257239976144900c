"""Effects of steps that are still in place: how to undo each, by a plan or by hand."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from zconsole.actions import locate
from zconsole.actions.offline import plan_detach, plan_online
from zconsole.actions.plan import ActionPlan, Precondition, Situation, zpool
from zconsole.actions.scrub import plan_stop
from zconsole.actions.target import Target, disk_path
from zconsole.hardware.device import Device
from zconsole.pool.model import FAILED, Vdev
from zconsole.swap.disk import Checklist, MachineView, SwapDisk, device_of, replacing
from zconsole.swap.effects import plan_offline_safely


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
        ours = (e for e in swap.log if e.command.startswith("zpool offline "))
        taken = any(quoted in entry.command for entry in ours)
        if not taken or other.vdev.state != "OFFLINE":
            continue
        name = f"{other.name} of {situation.pool.name}"
        run = online_line(situation, other)
        left = f"{name}, on the same disk, is still OFFLINE: run {run}"
        plan = plan_online(situation, other.key)
        yield WayBack(f"put {name} online again", "put online", plan, left=left)
    if target is not None and target.vdev.state == "OFFLINE":
        run = online_line(view.situation, target)
        out = bool(view.devices) and not (there or swap.was_gone)  # undo_pull tells that
        left = "" if out else f"{swap.old.words} is still OFFLINE: run {run}"
        plan = plan_online(view.situation, target.key)
        yield WayBack(f"put {target.name} online again", "put online", plan, left=left)


def undo_light(swap: Checklist, view: MachineView) -> Iterator[WayBack]:
    """Yield the bay's light while it is on."""
    for left in light_words(swap):
        plan = plan_light(view.situation, swap.old, on=False)
        yield WayBack("switch the light off", "light off", plan, left=left)


def light_words(swap: Checklist) -> tuple[str, ...]:
    """Return a line about the light that is still on, with what to run; () if it is off."""
    if not swap.lit or "light-off" in swap.passed:
        return ()
    named = swap.old.whole or swap.old.serial  # the path is unknown if another disk has it by now
    off = shlex.join(("zconsole", "light", "off", *filter(None, (named,))))
    return (f"the light of {swap.old.spot} is still on: run {off}",)


def undo_pull(swap: Checklist, view: MachineView) -> Iterator[WayBack]:
    """Yield the old disk while it is out."""
    old, target = swap.old, view.target(swap.old.key)
    if target is None or not view.devices or view.device(old) is not None:
        return
    text = left = ""
    if swap.pulled is not None and replacing(target) is None:
        disk = f"the old disk ({old.mark})" if old.mark else "the old disk"
        text = f"put {disk} back into {old.place or 'its bay'}: it is put online again"
    if not swap.was_gone:
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


def online_line(situation: Situation, target: Target) -> str:
    """Return the command that brings a device back, to run by hand."""
    pool = situation.pool
    if target.vdev.state == "FAULTED":
        return zpool_line("clear", pool.name, target.argument)
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
