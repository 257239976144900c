"""Clearing error counters, which also resumes a suspended pool (zpool-clear(8))."""

from __future__ import annotations

from zconsole.actions import conditions as must
from zconsole.actions.follow import when
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, decide, refuse
from zconsole.actions.running_scans import disturbed
from zconsole.actions.target import find, key_of
from zconsole.pool.model import APART, DATA, ERRORS, FAILED, Vdev, data_vdevs
from zconsole.pool.redundancy import members, parity


def plan_clear(situation: Situation, key: str | None = None) -> ActionPlan:
    """Plan to zero the error counters of the pool or one device; resumes a suspended pool."""
    target = find(situation.pool, key) if key else None
    if key and target is None:
        return refuse("clear", "Clear errors", situation, must.NOT_THERE)
    argv = situation.zpool("clear", operands=(target.vdev.argument,) if target else ())
    below = target.vdev if target else situation.pool.root
    # A device that is OFFLINE stays so; all others are reopened (vdev_clear, vdev.c).
    away = (v for v in below.leaves() if v.state in FAILED and v.vclass not in APART)
    returns = any(v.state != "OFFLINE" for v in away)
    whose = target.name if target else situation.pool.name
    first = "as well, if that can be written" if situation.suspended else "first"

    def _cleared(now: Situation) -> bool:
        found = find(now.pool, key) if key else None
        vdevs = (found.vdev if found else now.pool.root).walk()
        return not now.suspended and all(vdev.errors.total == 0 for vdev in vdevs)

    plan = ActionPlan(
        action="clear",
        title=f"{'Resume' if situation.suspended else 'Clear errors of'} {whose}",
        steps=(Step(argv, "clear the counters, reopen"),),
        consequences=(*_clear_effects(situation), *(disturbed(situation, returns=True) * returns)),
        not_undone=(f"the error counters are erased; they are written to the audit log {first}",),
        warnings=_suspended_warnings(situation),
        preconditions=(
            Precondition(
                "no other host may have imported the pool",
                lambda now: must.OTHER_HOST if now.may_be_elsewhere else None,
            ),
            Precondition("enough devices are back and their labels readable", _not_back),
            # A device that returns changes the scans, so these must be the ones in the
            # consequences.
            *((must.same_scans(situation),) if returns and not situation.suspended else ()),
        ),
        alternatives=_back_first(situation),
        follow=when(
            _cleared,
            f"{situation.pool.name} answers again, and the counters of {whose} are cleared"
            if situation.suspended
            else f"the counters of {whose} are cleared",
        ),
        saves_evidence=True,
        urgent=lambda now: now.suspended,
    )
    return decide(plan, situation)


def _clear_effects(situation: Situation) -> tuple[str, ...]:
    if situation.suspended:
        return (
            "reopens the devices; if they answer, waiting writes continue",
            "what a device missed is resilvered onto it",
        )
    # The list is only rotated when a scan ends (spa_errlog_rotate, called in dsl_scan.c alone).
    stays = "the list of damaged files stays until a scrub has completed"
    return (
        "sets all error counters to 0, and retries a faulted device",
        "a device that returns is resilvered with what it missed",
        *((stays,) if situation.pool.error_count else ()),
    )


def _suspended_warnings(situation: Situation) -> tuple[str, ...]:
    if not situation.suspended or situation.may_be_elsewhere:
        return ()
    doubt = "if multihost is on, make sure first that no other host has imported it"
    leaves = (v for v in situation.pool.root.leaves() if v.path and v.vclass in DATA)
    unread = any(key_of(situation.pool, leaf) not in situation.facts.labels for leaf in leaves)
    unsure = "not all labels were read (no answer from zdb): make sure that the devices are back"
    return (
        *([doubt] if situation.pool.suspension != ERRORS else []),
        *([unsure] if unread else []),
        "do not reboot or export: unwritten data (the last seconds) would be lost",
    )


def _not_back(situation: Situation) -> str | None:
    """Return why too few devices of a suspended pool are back with this pool's labels; else None.

    A device that is being replaced is not named if others are missing: those are to be brought
    back.
    """
    if not situation.suspended:
        return None
    for top in data_vdevs(situation.pool.root):
        found = ((member, _missing(situation, member)) for member in members(top))
        away = [(member, problem) for member, problem in found if problem]
        if len(away) > parity(top):
            stay = [
                problem
                for member, problem in away
                if all(vdev.kind != "replacing" for vdev in member.walk())
            ]
            return "; ".join(stay or [problem for _, problem in away])
    return None


def _missing(situation: Situation, member: Vdev) -> str:
    """Return why no device of a vdev member is usable yet; empty if one is, or was not checked."""
    data = (leaf for leaf in member.leaves() if not (leaf.shared or leaf.unfilled))
    problems = [_away(situation, leaf) for leaf in data]
    return "; ".join(filter(None, problems)) if None not in problems else ""


def _away(situation: Situation, leaf: Vdev) -> str | None:
    """Return why a suspended pool's leaf is not usable yet; None if it is or was not checked."""
    label = situation.facts.labels.get(key_of(situation.pool, leaf) or "")
    if label == "":
        return f"{leaf.called} is not back: no label can be read at {leaf.path}"
    if label is not None and situation.pool.guid is not None and label != situation.pool.guid:
        return f"{leaf.path} carries the label of another pool ({label})"
    return None


def _back_first(situation: Situation) -> tuple[str, ...]:
    """Return what to do first to resume a suspended pool."""
    if not situation.suspended:
        return ()
    if situation.may_be_elsewhere:
        return ("make sure that no other host has it", "then reboot this machine and import it")
    return (
        "bring the device back first: check cable, power, bay; then try again",
        "clear the pool once its label can be read",
    )
