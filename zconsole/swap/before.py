"""The steps before the pull: replace or stand in first, take offline, switch the light on."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from zconsole.actions.candidates import spares
from zconsole.actions.offline import plan_offline
from zconsole.actions.plan import ActionPlan, Precondition, Situation
from zconsole.actions.replace import plan_replace
from zconsole.actions.target import Swap, Target, find, stands_in
from zconsole.pool.redundancy import is_complete
from zconsole.pool.topology import FAILED
from zconsole.swap.checklist import Checklist
from zconsole.swap.disk import device_of
from zconsole.swap.effects import Effect, effects, hindrance, with_filled
from zconsole.swap.light import plan_light
from zconsole.swap.resilver import filling, just_ran
from zconsole.swap.stage import Answer, SwapStage
from zconsole.swap.view import MachineView

SKIP_LIGHT = Answer(
    "no-light",
    "I know the bay: go on without the light",
    means="No light is switched on. Be sure of the bay: compare the label before you pull.",
)


def spare(c: Checklist, v: MachineView, now: float) -> SwapStage | None:
    """Let a hot spare stand in, and wait until it is filled; None once it is."""
    s = v.situation
    target = find(s.pool, c.old.key)
    if c.pulled is not None or target is None:
        return None
    if stands_in(target) and not just_ran(c, now):
        return None
    if target.group is not None:
        return SwapStage(
            "spare",
            f"Wait until {target.group.children[-1].name} is filled",
            ("Leave every disk where it is: the old disk is still read.",),
            waits=filling(s),
        )
    path = c.spare.whole if c.spare else ""
    if path not in spares(s.pool):
        path = next(iter(spares(s.pool)), path)
    return SwapStage(
        "spare",
        f"Let the hot spare stand in for {c.old.words}",
        ("Redundancy stays as it is while the disk is swapped; the spare returns afterwards.",),
        plan=plan_replace(s, Swap(c.old.key, path)),
        paths=(path,),
    )


def offline(c: Checklist, v: MachineView, now: float) -> SwapStage | None:
    """Take every leaf on the disk offline; None once no pool reads or writes it."""
    del now
    if c.pulled is not None or (v.devices and device_of(c.old, v.devices) is None):
        return None
    lost = effects(v, c.old)
    for effect in lost:
        s = v.of(effect.pool)
        target = None if s is None else find(s.pool, effect.key)
        if s is None or target is None or target.vdev.state in FAILED:
            continue
        along = [e.key for e in lost if e.pool == effect.pool]
        return _offline(c, s, target, effect, along)
    return None


def _offline(
    c: Checklist, s: Situation, target: Target, effect: Effect, along: Collection[str]
) -> SwapStage:
    ours = effect.key == c.old.key
    whose = "" if ours else f" It is on the same disk as {c.old.name}: one pull takes both."
    return SwapStage(
        "offline",
        f"Take {target.name} of {s.pool.name} offline",
        (f"Then nothing is written to the disk when you pull it.{whose}",),
        warnings=(f"{effect.text}.",) if not stands_in(target) else (),
        plan=plan_offline_safely(s, effect.key, along),
    )


def plan_offline_safely(s: Situation, key: str, along: Collection[str] = ()) -> ActionPlan:
    """``plan_offline``, refused as well while another member of the vdev is missing.

    Those whose keys are ``along`` are on the same disk, and go with it.
    """
    plan = plan_offline(s, key)
    if not plan.steps:
        return plan

    def _check(now: Situation) -> str | None:
        now = with_filled(now)
        target = find(now.pool, key)
        if target is None or stands_in(target):
            return None
        why = hindrance(now, target, along)
        return f"{why}: wait until it is complete" if why else None

    need = Precondition("no other device of the vdev is missing", _check)
    return dataclasses.replace(
        plan, preconditions=(*plan.preconditions, need), refused=plan.refused or _check(s)
    )


def light(c: Checklist, v: MachineView, now: float) -> SwapStage | None:
    """Switch the bay's light on; None once it is, or where there is none."""
    del now
    if not c.old.light or "light" in c.passed or c.pulled is not None or c.left_early:
        return None
    return SwapStage(
        "light",
        f"Switch on the light of {c.old.spot}",
        ("It shows which disk to pull; it goes off at the end.",),
        plan=plan_light(v.situation, c.old, on=True),
        answers=(SKIP_LIGHT,),
    )


def still_read(target: Target | None) -> bool:
    """Whether a pool would miss the leaf if it went now."""
    return target is not None and target.vdev.state not in FAILED and is_complete(target.vdev)
