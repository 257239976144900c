"""Excluding slow raidz or dRAID disks from reads: ``sit_out``, ``autosit`` (vdevprops(7), 2.4).

The kernel's checks are in vdev_prop_set, module/zfs/vdev.c (master of August 2026).
"""

from __future__ import annotations

from zconsole.actions import conditions as must
from zconsole.actions.follow import leaf_is
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, decide, refuse
from zconsole.actions.target import Target, find
from zconsole.pool.model import Vdev
from zconsole.pool.redundancy import is_complete, members, parity
from zconsole.units import counted

SINCE = (2, 4)
IN_PARITY = "it is in a raidz or dRAID"


def plan_sit_out(situation: Situation, key: str, on: bool) -> ActionPlan:
    """Plan to exclude a device from normal reads, or to read from it again."""
    target = find(situation.pool, key)
    title = "Let reads go around a device" if on else "Read from a device again"
    if target is None:
        return refuse("sit-out", title, situation, must.NOT_THERE)
    name = target.name
    parity_left = must.of_device(target, "parity is left for its data", _parity_used_up)
    plan = ActionPlan(
        action="sit-out",
        title=f"Let reads go around {name}" if on else f"Read from {name} again",
        steps=(_set(situation, f"sit_out={'on' if on else 'off'}", target),),
        consequences=(
            f"normal reads leave {name} out: its data is rebuilt from parity",
            "writes, scrubs and resilvers still use it",
            "lasts until it is switched off, the pool is exported or the machine restarts",
        )
        if on
        else (f"reads use {name} again",),
        warnings=_warnings(target, on),
        preconditions=(
            must.ANSWERING,
            must.release("sit_out", SINCE),
            must.present(target),
            must.of_device(target, IN_PARITY, _without_parity),
            _not_yet(target, on),
            *((parity_left,) if on else ()),
        ),
        follow=leaf_is(
            key,
            lambda now: now.vdev.sitting_out == on,
            f"reads go around {name}" if on else f"reads use {name}",
        ),
    )
    return decide(plan, situation)


def plan_autosit(situation: Situation, key: str, on: bool) -> ActionPlan:
    """Plan to switch whether slow disks of a vdev sit out automatically."""
    target = find(situation.pool, key)
    value = "on" if on else "off"
    if target is None:
        return refuse("autosit", f"Switch autosit {value}", situation, must.NOT_THERE)
    top = find(situation.pool, target.top_key) or target

    def _why_not(_: Situation, now: Target) -> str | None:
        return f"autosit is {value} already" if now.top.autosit is on else None

    plan = ActionPlan(
        action="autosit",
        title=f"Switch autosit of {top.name} {value}",
        steps=(_set(situation, f"autosit={value}", top),),
        consequences=(
            "reads go around a disk that is much slower than its siblings, for 10 minutes at a time"
            if on
            else "a slow disk slows down every read of its vdev; one that sits out comes back",
        ),
        preconditions=(
            must.ANSWERING,
            must.release("autosit", SINCE),
            must.present(top),
            must.of_device(top, IN_PARITY, _without_parity),
            must.of_device(top, f"autosit is not {value}", _why_not),
        ),
        follow=leaf_is(top.key, lambda now: now.top.autosit is on, f"autosit is {value}"),
    )
    return decide(plan, situation)


def _set(situation: Situation, setting: str, target: Target) -> Step:
    words = situation.zpool("set", setting, operands=(target.vdev.argument,))
    return Step(words, "switch it")


def _warnings(target: Target, on: bool) -> tuple[str, ...]:
    slow = "a disk this slow may be failing: look at its errors and SMART, and plan its replacement"
    auto = "autosit is on: it can let the device sit out again"
    return (slow,) if on else (auto,) if target.top.autosit else ()


def has_parity(top: Vdev) -> bool:
    """Return whether reads can go around the vdev's devices, with data rebuilt from parity."""
    return top.kind.startswith(("raidz", "draid")) and top.vclass not in ("spare", "cache")


def _without_parity(_: Situation, now: Target) -> str | None:
    """Return why the device's data can't be rebuilt from parity; None if it can."""
    if has_parity(now.top):
        return None
    return f"only devices of a raidz or dRAID can sit out; {now.name} is in none"


def _not_yet(target: Target, on: bool) -> Precondition:
    """Require that the device is not yet in the wanted state."""

    def _why_not(_: Situation, now: Target) -> str | None:
        if now.vdev.children:
            return f"{now.name} is no single device"
        if now.vdev.sitting_out is on:
            return f"{now.name} sits out already" if on else f"{now.name} does not sit out"
        return None

    return must.of_device(target, "it does not yet" if on else "it sits out", _why_not)


def _parity_used_up(_: Situation, now: Target) -> str | None:
    """Return why no parity is left for the device's data; None if some is.

    Each other device that sits out or is incomplete uses up one. The kernel counts only those that
    sit out.
    """
    others = [member for member in members(now.top) if now.vdev not in member.walk()]
    lost = sum(not is_complete(m) or any(v.sitting_out for v in m.leaves()) for m in others)
    if lost < parity(now.top):
        return None
    do = "sits out or is" if lost == 1 else "sit out or are"
    return f"{counted(lost, 'other device')} of {now.top.name} {do} incomplete: no parity left"
