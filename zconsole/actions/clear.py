"""Clearing error counters, which also resumes a suspended pool (zpool-clear(8))."""

from __future__ import annotations

from collections.abc import Callable

from zconsole.actions import conditions as must
from zconsole.actions.follow import when
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, decide, refuse, zpool
from zconsole.actions.target import Target, find, key_of, members
from zconsole.pool.model import ERRORS, MULTIHOST, Vdev
from zconsole.pool.redundancy import parity
from zconsole.pool.topology import data_vdevs


def plan_clear(s: Situation, key: str | None = None) -> ActionPlan:
    """Zero the error counters of the pool or one device; resumes a suspended pool."""
    target = find(s.pool, key) if key else None
    if key and target is None:
        return refuse("clear", "Clear errors", s.pool.name, must.NOT_THERE)
    operands = (s.pool.name, target.argument) if target else (s.pool.name,)
    whose = target.name if target else s.pool.name
    plan = ActionPlan(
        action="clear",
        title=f"{'Resume' if s.suspended else 'Clear errors of'} {whose}",
        steps=(Step(zpool("clear", operands=operands), "clear the counters, reopen"),),
        consequences=_clear_effects(s),
        not_undone=(_clear_erases(s),),
        warnings=_suspended_warnings(s),
        preconditions=(must.of_this_host(), _devices_back()),
        alternatives=_back_first(s),
        follow=when(_cleared(target), f"the counters of {whose} are cleared"),
        saves_evidence=True,
        urgent=lambda now: now.suspended,
    )
    return decide(plan, s)


def _clear_effects(s: Situation) -> tuple[str, ...]:
    if s.suspended:
        return (
            "reopens the devices; if they answer, waiting writes continue",
            "what a device missed is resilvered onto it",
        )
    return (
        "sets all error counters to 0, and retries a faulted device",
        "a device that returns is resilvered with what it missed",
    )


def _clear_erases(s: Situation) -> str:
    first = "as well, if that can be written" if s.suspended else "first"
    return (
        "the counters and the list of damaged files are erased; they are written to the audit log"
        f" {first}"
    )


def _suspended_warnings(s: Situation) -> tuple[str, ...]:
    if not s.suspended or s.pool.suspension == MULTIHOST:
        return ()
    doubt = "if multihost is on, make sure first that no other host has imported it"
    return (
        *([doubt] if s.pool.suspension != ERRORS else []),
        "a reboot or forced export instead loses what was not written yet (the last seconds)",
    )


def _devices_back() -> Precondition:
    """For a suspended pool: enough devices are there, with labels that are this pool's."""

    def _check(s: Situation) -> str | None:
        if not s.suspended:
            return None
        for top in data_vdevs(s.pool.root):
            away = [problem for member in members(top) if (problem := _missing(s, member))]
            if len(away) > parity(top):
                return "; ".join(away)
        return None

    return Precondition("enough devices are back and their labels readable", _check)


def _missing(s: Situation, member: Vdev) -> str:
    """Why no device in a place is usable yet; empty where one is, or was not looked at."""
    data = (leaf for leaf in member.leaves() if not (leaf.shared or leaf.unfilled))
    problems = [_away(s, leaf) for leaf in data]
    return "; ".join(filter(None, problems)) if None not in problems else ""


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
    if s.pool.suspension == MULTIHOST:
        return ("make sure that no other host has it", "then reboot this machine and import it")
    return (
        "bring the device back first: check cable, power, bay; then try again",
        "clear the pool once its label can be read",
    )


def _cleared(target: Target | None) -> Callable[[Situation], bool]:
    def _holds(s: Situation) -> bool:
        if s.suspended:
            return False
        now = find(s.pool, target.key) if target else None
        root = now.vdev if now else s.pool.root
        return all(vdev.errors.total == 0 for vdev in root.walk())

    return _holds
