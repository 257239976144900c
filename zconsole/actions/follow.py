"""Detecting from samples when an action has ended, and how.

The public functions return a ``Follow``, which is called with every new situation of the pool.
"""

from __future__ import annotations

from collections.abc import Callable

from zconsole.actions.plan import ActionOutcome, Follow, Situation, called
from zconsole.actions.target import Swap, Target, find, find_path, stands_in
from zconsole.pool.model import FAILED, Scan, Vdev
from zconsole.pool.redundancy import is_complete
from zconsole.pool.scan_outcome import same_scan, settling
from zconsole.timeline.scans import WORDS
from zconsole.units import counted


def replaced(situation: Situation, swaps: tuple[Swap, ...]) -> Follow:
    """Follow replaces until every old device is gone and the new ones are judged.

    Also ends if a group stays after the resilver, which is a failure.
    """
    spared = {w.old for w in swaps if (t := find(situation.pool, w.old)) and t.group is not None}

    def _follow(now: Situation) -> ActionOutcome | None:
        ends = [_one_replace(now, swap, swap.old in spared, situation) for swap in swaps]
        bad = next((end for end in ends if end is not None and not end.ok), None)
        if bad is not None or any(end is None for end in ends):
            return bad
        text = "; ".join(dict.fromkeys(end.text for end in ends if end))
        bays = filter(None, (_bay_left(swap.old, situation, now) for swap in swaps))
        return ActionOutcome(True, text, unused=tuple(bays))

    return _follow


def scan_ended(situation: Situation, function: str) -> Follow:
    """Follow until a scan of this function has finished or was canceled after ``situation``.

    A scan that ended before doesn't count, also if a rewound pool shows it again. A resilver
    discards a scrub, which is then over.
    """
    since = int(situation.t)  # the kernel's times are in whole seconds
    before = [scan for scan in situation.pool.scans if not scan.active]

    def _follow(now: Situation) -> ActionOutcome | None:
        ended = next(
            (
                scan
                for scan in now.pool.scans
                if scan.function == function and not scan.active
                if scan.end is not None and scan.end >= since
                if not any(same_scan(known, scan) for known in before)
            ),
            None,
        )
        if ended is not None:
            return _scan_outcome(ended, now.pool.name)
        repairs = (scan for scan in now.pool.scans if scan.function == "resilver" != function)
        old = situation.pool.scans
        new = (scan for scan in repairs if not any(same_scan(known, scan) for known in old))
        if not any(scan.active or (scan.start or scan.end or 0.0) >= since for scan in new):
            return None
        word = WORDS.get(function, function)
        text = f"a resilver has discarded the {word} of {now.pool.name}: start it again afterwards"
        return ActionOutcome(False, text)

    return _follow


def when(holds: Callable[[Situation], bool], text: str) -> Follow:
    """Follow until a condition holds, which is a success."""
    return lambda now: ActionOutcome(True, text, passes=True) if holds(now) else None


def leaf_is(key: str, holds: Callable[[Target], bool], text: str) -> Follow:
    """Follow until a condition holds for one vdev; a failure if the vdev leaves the pool."""

    def _follow(now: Situation) -> ActionOutcome | None:
        target = find(now.pool, key)
        if target is None:
            return ActionOutcome(False, "the device is no longer in the pool")
        return ActionOutcome(True, text, passes=True) if holds(target) else None

    return _follow


def onlined(situation: Situation, key: str, name: str) -> Follow:
    """Follow until the device is ONLINE; the outcome tells whether it is complete already.

    zpool's output doesn't tell this: it marks a device as resilvering only once the first bytes
    were written to it. The device is complete only after a repair that began after ``situation``
    and has ended.
    """
    before = find(situation.pool, key)
    known_errors = before.vdev.errors.total if before else 0

    def _follow(now: Situation) -> ActionOutcome | None:
        target = find(now.pool, key)
        if target is None:
            return ActionOutcome(False, "the device is no longer in the pool")
        if target.vdev.state in ("FAULTED", "DEGRADED"):
            text = f"{name} is {target.vdev.state}: remove the cause, then clear its errors"
            return ActionOutcome(False, text)
        if target.vdev.state != "ONLINE":
            return None
        ended = _ended_since(now, situation)
        if ended is not None and is_complete(target.vdev):
            trouble = _trouble(ended, target.vdev, known_errors)
            return ActionOutcome(not trouble, f"{name} is online{trouble or ' and complete'}")
        word = "a resilver of what it missed, if anything, begins now"
        if now.active("resilver"):
            word = "its resilver has begun"
        elif now.active("rebuild"):
            word = "its resilver follows the rebuild"
        text = f"{name} is online; {word}: pull no disk before it ends"
        return ActionOutcome(True, text, passes=True)

    return _follow


def leftover(vdev: Vdev) -> str | None:
    """Return what it means that a replacing or spare group stays after the resilver; else None."""
    if vdev.kind == "replacing":
        return (
            "a replacing group stays when the resilver ended with errors, or a checkpoint existed:"
            " the old device may hold the only good copy of some block. Fix or remove the damaged"
            " files, then resilver again or scrub. Detach the old device only if you don't need it."
        )
    if vdev.kind == "spare":
        return (
            "a spare is in use: replace the failed device to return the spare, or detach the"
            " failed device to make the spare permanent."
        )
    return None


def _one_replace(
    now: Situation, swap: Swap, spared: bool, before: Situation
) -> ActionOutcome | None:
    """Return the outcome of one replace; None while it is under way."""
    old = find(now.pool, swap.old)
    if old is None:
        gone = ActionOutcome(
            False, f"neither the old device nor {called(swap.new, now)} is in the pool"
        )
        return filled(now, swap.new, "in place", before, gone)
    if old.group is None:
        return ActionOutcome(False, f"backed out: only {old.name} is in its place")
    ended = _ended_since(now, before)
    if ended is None:
        return None
    if old.group.kind == "spare" and not spared:
        trouble = _trouble(ended)
        used = ActionOutcome(not trouble, f"a spare is in use for {old.name}{trouble}")
        return used if stands_in(old) else None
    if settling(now.t, ended.end) or now.waiting:
        return None
    return ActionOutcome(
        False,
        f"the resilver ended with {counted(ended.errors or 0, 'error')} and {old.group.name} is"
        f" still there: redundancy is not restored. {leftover(old.group) or ''}".rstrip(),
    )


def _bay_left(key: str, before: Situation, now: Situation) -> str:
    """Return the bay of a replaced disk; empty if it is unknown, or used by the pool."""
    old = find(before.pool, key)
    disk = old.vdev.disk if old is not None else None
    if disk is None or not disk.bay:
        return ""
    used = {leaf.disk.bay for leaf in now.pool.root.leaves() if leaf.disk is not None}
    return "" if disk.bay in used else disk.bay


def filled(
    now: Situation,
    device: str,
    place: str,
    before: Situation,
    absent: ActionOutcome | None = None,
) -> ActionOutcome | None:
    """Return the outcome for a new device, from its state, its errors and its resilver's end.

    ``absent`` is the outcome while the device is not in the pool.
    """
    new = leaf_on(now, device)
    if new is None:
        return absent
    device = called(device, now)
    if new.vdev.state in FAILED:
        return ActionOutcome(False, f"{device} is {place}, but {new.vdev.state}")
    if not is_complete(new.vdev) or now.repairing:
        return None
    ended = _ended_since(now, before)
    if ended is not None:
        trouble = _trouble(ended, new.vdev)
        return ActionOutcome(not trouble, f"{device} is {place}{trouble or ' and complete'}")
    if any((scan.start or 0.0) >= int(before.t) for scan in now.pool.scans):
        # The kernel keeps only the newest scrub or resilver.
        return ActionOutcome(
            False, f"{device} is {place}; how its resilver ended was not seen: scrub, then check"
        )
    return None


def leaf_on(now: Situation, path: str) -> Target | None:
    """Return the leaf on the device of a path, which may be any link to it; None without one."""
    device = now.facts.named(path)
    return find_path(now.pool, (path, *((device.path, *device.aliases) if device else ())))


def _trouble(ended: Scan, vdev: Vdev | None = None, known_errors: int = 0) -> str:
    """Return what is wrong with a filled device, to be appended to its place; empty if nothing."""
    if ended.state == "canceled":
        return f", but the {ended.name} was canceled"
    if ended.errors:
        errors = counted(ended.errors, "error")
        return f", but the {ended.name} ended with {errors}: data is damaged, see the events"
    new_errors = (vdev.errors.total if vdev else 0) - known_errors
    if new_errors > 0:
        return f", but had {counted(new_errors, 'error')} meanwhile: check its cable, then scrub"
    return ""


def _ended_since(now: Situation, before: Situation) -> Scan | None:
    """Return the newest resilver or rebuild that began after ``before`` and ended; else None."""
    newest = now.repaired
    if newest is None or now.repairing:
        return None
    if any(same_scan(known, newest) for known in before.pool.scans):
        return None
    # zpool's text output has only the end. The kernel's times are in whole seconds.
    begun = newest.end if newest.start is None else newest.start
    return newest if (begun or 0.0) >= int(before.t) else None


def _scan_outcome(scan: Scan, pool: str) -> ActionOutcome:
    which = f"the {scan.name} of {pool}"
    if scan.state == "canceled":
        return ActionOutcome(False, f"{which} was canceled")
    errors = counted(scan.errors or 0, "error")
    return ActionOutcome(not scan.errors, f"{which} finished with {errors}")
