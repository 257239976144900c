"""Trim and initialize of one device (zpool-trim(8), zpool-initialize(8))."""

from __future__ import annotations

from typing import NamedTuple

from zconsole.actions import conditions as must
from zconsole.actions.follow import leaf_is
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, decide, refuse
from zconsole.actions.target import Target, find
from zconsole.pool.model import Progress, Vdev


class _Work(NamedTuple):
    """The texts that differ between trim and initialize."""

    doing: str
    effect: str
    warning: str = ""


_WORKS = {
    "trim": _Work("trimming", "tells the device which blocks are free; slows other I/O meanwhile"),
    "initialize": _Work(
        "initializing",
        "writes a pattern to all free space, so that what lies below allocates it now",
        "undoes TRIM: flash slows down, and thinly provisioned storage fills up",
    ),
}
CHANGES = {"start": (), "suspend": ("-s",), "cancel": ("-c",)}
"""Changes to a trim or initialize, with zpool's option for each."""


def plan_work(verb: str, situation: Situation, key: str, change: str = "start") -> ActionPlan:
    """Plan to start (or resume), suspend or cancel ``trim`` or ``initialize`` of one device."""
    work = _WORKS[verb]
    target = find(situation.pool, key)
    if target is None:
        return refuse(verb, f"{verb.capitalize()} a device", situation, must.NOT_THERE)
    argv = situation.zpool(verb, *CHANGES[change], operands=(target.vdev.argument,))
    what = verb.capitalize()
    if change != "start":
        what = f"{change.capitalize()} the {verb} of"
    done = {"start": ("complete",), "suspend": ("suspended",), "cancel": ("canceled",)}[change]
    plan = ActionPlan(
        action=verb,
        title=f"{what} {target.name}",
        steps=(Step(argv, f"{change} it"),),
        consequences=(work.effect,)
        if change == "start"
        else (("it keeps its progress",) if change == "suspend" else ("its progress is lost",)),
        warnings=(work.warning,) if work.warning and change == "start" else (),
        preconditions=(must.ANSWERING, must.present(target), _work_is(target, change, verb)),
        follow=leaf_is(
            key,
            lambda t: _state(t.vdev, verb) in done,
            f"{verb} of {target.name} {done[0]}",
        ),
        begins=verb if change == "start" else "",
    )
    return decide(plan, situation)


def _state(vdev: Vdev, verb: str) -> str | None:
    found: Progress | None = getattr(vdev, verb)
    return found.state if found else None


def _work_is(target: Target, change: str, verb: str) -> Precondition:
    """Require the state that the change needs; an unknown state is accepted."""

    doing = _WORKS[verb].doing

    def _why_not(_: Situation, now: Target) -> str | None:
        if now.vdev.children or now.vdev.vclass in ("spare", "cache"):
            return f"{target.name} is not a device that holds data"
        if now.vdev.state not in ("ONLINE", "DEGRADED"):
            return f"{now.name} is {now.vdev.state}"
        if verb == "trim" and now.vdev.trimmable is False:
            return f"{now.name} takes no trims"
        state = _state(now.vdev, verb)
        if change == "start":
            return f"{now.name} is {doing} already" if state == "active" else None
        wanted = ("active",) if change == "suspend" else ("active", "suspended")
        return None if state in wanted else f"{now.name} is not {doing}"

    words = "is not" if change == "start" else "is"
    return must.of_device(target, f"{target.name} {words} {doing}", _why_not)
