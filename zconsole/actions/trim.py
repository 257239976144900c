"""Trim and initialize of one device (zpool-trim(8), zpool-initialize(8))."""

from __future__ import annotations

from dataclasses import dataclass

from zconsole.actions import conditions as must
from zconsole.actions.follow import leaf_is
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, decide, refuse
from zconsole.actions.target import Target, find
from zconsole.pool.model import Progress, Vdev


@dataclass(frozen=True, slots=True)
class _Work:
    """What tells trim and initialize apart."""

    verb: str
    doing: str
    effect: str
    warning: str = ""


_TRIM = _Work(
    "trim",
    "trimming",
    "tells the device which blocks are free; slows other I/O meanwhile",
)
_INITIALIZE = _Work(
    "initialize",
    "initializing",
    "writes a pattern to all free space, so that what lies below allocates it now",
    "undoes TRIM: flash slows down, and thinly provisioned storage fills up",
)
CHANGES = {"start": (), "suspend": ("-s",), "cancel": ("-c",)}
"""What can be done with a trim or initialize, and zpool's option for it."""


def plan_trim(situation: Situation, key: str, change: str = "start") -> ActionPlan:
    """Start (or resume), suspend or cancel the trim of one device."""
    return _plan_work(situation, key, change, _TRIM)


def plan_initialize(situation: Situation, key: str, change: str = "start") -> ActionPlan:
    """Start (or resume), suspend or cancel the initialize of one device."""
    return _plan_work(situation, key, change, _INITIALIZE)


def _plan_work(situation: Situation, key: str, change: str, work: _Work) -> ActionPlan:
    target = find(situation.pool, key)
    if target is None:
        return refuse(work.verb, f"{work.verb.capitalize()} a device", situation, must.NOT_THERE)
    argv = situation.zpool(work.verb, *CHANGES[change], operands=(target.argument,))
    verb = (
        work.verb.capitalize()
        if change == "start"
        else (f"{change.capitalize()} the {work.verb} of")
    )
    done = {"start": ("complete",), "suspend": ("suspended",), "cancel": ("canceled",)}[change]
    plan = ActionPlan(
        action=work.verb,
        title=f"{verb} {target.name}",
        steps=(Step(argv, f"{change} it"),),
        consequences=(work.effect,)
        if change == "start"
        else (("it keeps its progress",) if change == "suspend" else ("its progress is lost",)),
        warnings=(work.warning,) if work.warning and change == "start" else (),
        preconditions=(must.ANSWERING, must.present(target), _work_is(target, change, work)),
        follow=leaf_is(
            key,
            lambda t: _state(t.vdev, work) in done,
            f"{work.verb} of {target.name} {done[0]}",
        ),
        begins=work.verb if change == "start" else "",
    )
    return decide(plan, situation)


def _state(vdev: Vdev, work: _Work) -> str | None:
    found: Progress | None = getattr(vdev, work.verb)
    return found.state if found else None


def _work_is(target: Target, change: str, work: _Work) -> Precondition:
    """Whether it runs, as the change needs it to; unknown states get the benefit of the doubt."""

    def _why_not(_: Situation, now: Target) -> str | None:
        if now.vdev.children or now.vdev.vclass in ("spare", "cache"):
            return f"{target.name} is not a device that holds data"
        if now.vdev.state not in ("ONLINE", "DEGRADED"):
            return f"{now.name} is {now.vdev.state}"
        if work is _TRIM and now.vdev.trimmable is False:
            return f"{now.name} takes no trims"
        state = _state(now.vdev, work)
        if change == "start":
            return f"{now.name} is {work.doing} already" if state == "active" else None
        wanted = ("active",) if change == "suspend" else ("active", "suspended")
        return None if state in wanted else f"{now.name} is not {work.doing}"

    words = "is not" if change == "start" else "is"
    return must.of_device(target, f"{target.name} {words} {work.doing}", _why_not)
