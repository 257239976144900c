"""Trim, initialize, clear and the identify LED (zpool-trim(8), -initialize(8), -clear(8))."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from zconsole.actions import conditions as must
from zconsole.actions.follow import leaf_is, when
from zconsole.actions.offline import NOT_THERE
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, decide, refuse, zpool
from zconsole.actions.target import Target, find, key_of
from zconsole.pool.model import Progress, Vdev
from zconsole.pool.redundancy import parity
from zconsole.pool.topology import data_vdevs


@dataclass(frozen=True, slots=True)
class _Work:
    """What tells trim and initialize apart."""

    verb: str
    doing: str
    effect: str
    of: Callable[[Vdev], Progress | None]


_TRIM = _Work(
    "trim",
    "trimming",
    "tells the device which blocks are free; that slows other I/O meanwhile",
    lambda vdev: vdev.trim,
)
_INITIALIZE = _Work(
    "initialize",
    "initializing",
    "writes a pattern to all free space, so that it is allocated below and read once",
    lambda vdev: vdev.initialize,
)
CHANGES = {"start": (), "suspend": ("-s",), "cancel": ("-c",)}
"""What can be done with a trim or initialize, and zpool's option for it."""


def plan_trim(s: Situation, key: str, change: str = "start") -> ActionPlan:
    """Start (or resume), suspend or cancel the trim of one device."""
    return _plan_work(s, key, change, _TRIM)


def plan_initialize(s: Situation, key: str, change: str = "start") -> ActionPlan:
    """Start (or resume), suspend or cancel the initialize of one device."""
    return _plan_work(s, key, change, _INITIALIZE)


def plan_locate(s: Situation, key: str, on: bool) -> ActionPlan:
    """Switch the identify LED of a device's bay, where the enclosure has one (ses, sysfs)."""
    target = find(s.pool, key)
    title = f"Switch the locate LED {'on' if on else 'off'}"
    if target is None:
        return refuse("locate", title, s.pool.name, NOT_THERE)
    device = s.facts.device(target.vdev.path or "")
    if device is None or device.locate is None:
        return refuse(
            "locate",
            title,
            s.pool.name,
            f"{target.name} is in no bay with an LED",
            "the serial number tells which disk it is",
        )
    value = "1" if on else "0"
    step = Step(("tee", device.locate), f"write {value} to it", write=(device.locate, value))
    plan = ActionPlan(
        "locate",
        f"{title}: {target.name}",
        s.pool.name,
        (step,),
        consequences=(f"the light of the bay {'goes on' if on else 'goes off'}; nothing else",),
        preconditions=(_same_bay(target, device.locate),),
        # A suspended pool is when somebody looks for the bay.
        urgent=lambda now: True,
    )
    return decide(plan, s)


def plan_clear(s: Situation, key: str | None = None) -> ActionPlan:
    """Zero the error counters of the pool or one device; resumes a suspended pool."""
    target = find(s.pool, key) if key else None
    if key and target is None:
        return refuse("clear", "Clear errors", s.pool.name, NOT_THERE)
    operands = (s.pool.name, target.argument) if target else (s.pool.name,)
    whose = target.name if target else s.pool.name
    plan = ActionPlan(
        action="clear",
        title=f"{'Resume' if s.suspended else 'Clear errors of'} {whose}",
        pool=s.pool.name,
        steps=(Step(zpool("clear", operands=operands), "clear the counters, reopen", False),),
        consequences=_clear_effects(s),
        not_undone=(_clear_erases(s),),
        warnings=_suspended_warnings(s),
        preconditions=(_devices_back(),),
        alternatives=_back_first(s),
        follow=when(_cleared(target), f"{whose} is clear"),
        saves_evidence=True,
        urgent=lambda now: now.suspended,
    )
    return decide(plan, s)


def _same_bay(target: Target, led: str) -> Precondition:
    def _check(s: Situation) -> str | None:
        device = s.facts.device(target.vdev.path or "")
        moved = device is not None and device.locate != led
        return f"{target.name} is in another bay now; plan again" if moved else None

    return Precondition(f"{target.name} is in the same bay", _check)


def _plan_work(s: Situation, key: str, change: str, work: _Work) -> ActionPlan:
    target = find(s.pool, key)
    if target is None or change not in CHANGES:
        return refuse(work.verb, f"{work.verb} a device", s.pool.name, NOT_THERE)
    argv = zpool(work.verb, *CHANGES[change], operands=(s.pool.name, target.argument))
    verb = (
        work.verb.capitalize()
        if change == "start"
        else (f"{change.capitalize()} the {work.verb} of")
    )
    done = {"start": ("complete",), "suspend": ("suspended",), "cancel": ("canceled",)}[change]
    plan = ActionPlan(
        action=work.verb,
        title=f"{verb} {target.name}",
        pool=s.pool.name,
        steps=(Step(argv, f"{change} it"),),
        consequences=(work.effect,)
        if change == "start"
        else (("it keeps its place",) if change == "suspend" else ("its progress is lost",)),
        preconditions=(must.answering(), must.present(target), _work_is(target, change, work)),
        follow=leaf_is(key, lambda t: _state(t.vdev, work) in done, f"{work.verb} {done[0]}"),
    )
    return decide(plan, s)


def _state(vdev: Vdev, work: _Work) -> str | None:
    found = work.of(vdev)
    return found.state if found else None


def _work_is(target: Target, change: str, work: _Work) -> Precondition:
    """Whether it runs, as the change needs it to; unknown states get the benefit of the doubt."""

    def _check(s: Situation) -> str | None:
        now = find(s.pool, target.key)
        if now is None or now.vdev.children or now.vdev.vclass in ("spare", "cache"):
            return f"{target.name} is no device that can be {work.verb}ed"
        if now.vdev.state not in ("ONLINE", "DEGRADED"):
            return f"{now.name} is {now.vdev.state}"
        state = _state(now.vdev, work)
        if change == "start":
            return f"{now.name} is {work.doing} already" if state == "active" else None
        wanted = ("active",) if change == "suspend" else ("active", "suspended")
        return None if state in wanted else f"{now.name} is not {work.doing}"

    words = "is not" if change == "start" else "is"
    return Precondition(f"{target.name} {words} {work.doing}", _check)


def _clear_effects(s: Situation) -> tuple[str, ...]:
    if s.suspended:
        return (
            "the devices are opened again; if they answer, waiting writes go on where they stopped",
            "what a device missed meanwhile is resilvered onto it",
        )
    return (
        "all counters go to 0, and a faulted device is tried again",
        "a device that comes back by it is resilvered with what it missed",
    )


def _clear_erases(s: Situation) -> str:
    first = "as well, if that can be written" if s.suspended else "first"
    return (
        "the counters and the list of damaged files are erased; they are written to the audit log"
        f" {first}"
    )


def _suspended_warnings(s: Situation) -> tuple[str, ...]:
    if not s.suspended:
        return ()
    return ("a reboot or forced export instead loses what was not written yet (the last seconds)",)


def _devices_back() -> Precondition:
    """For a suspended pool: enough devices are there, with labels that are this pool's."""

    def _check(s: Situation) -> str | None:
        if not s.suspended:
            return None
        for top in data_vdevs(s.pool.root):
            away = [problem for leaf in top.leaves() if (problem := _away(s, leaf))]
            if len(away) > parity(top):
                return "; ".join(away)
        return None

    return Precondition("enough devices are back and their labels readable", _check)


def _away(s: Situation, leaf: Vdev) -> str | None:
    """Why a leaf of a suspended pool is not usable yet; None when it is, or was not looked at."""
    label = s.facts.labels.get(key_of(s.pool, leaf) or "")
    if label == "":
        return f"{leaf.name} is not back: no label can be read at {leaf.path}"
    if label is not None and s.pool.guid is not None and label != s.pool.guid:
        return f"{leaf.path} carries the label of another pool ({label})"
    return None


def _back_first(s: Situation) -> tuple[str, ...]:
    if not s.suspended:
        return ()
    return (
        "bring the device back first: check cable, power, bay; then look again",
        "clear the pool once its label can be read",
    )


def _cleared(target: Target | None) -> Callable[[Situation], bool]:
    def holds(s: Situation) -> bool:
        if s.suspended:
            return False
        now = find(s.pool, target.key) if target else None
        root = now.vdev if now else s.pool.root
        return all(vdev.errors.total == 0 for vdev in root.walk())

    return holds
