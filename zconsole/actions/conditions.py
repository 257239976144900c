"""Preconditions shared by plans; each says in words why it fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from zconsole.actions.candidates import judge_device
from zconsole.actions.plan import Precondition, Situation
from zconsole.actions.running_scans import describe
from zconsole.actions.target import Target, find
from zconsole.hardware.device import Device
from zconsole.pool.model import Version
from zconsole.pool.scan_outcome import has_checkpoint
from zconsole.pool.spares import spares, unfit_spare
from zconsole.timeline.scans import WORDS
from zconsole.units import size

NOT_THERE = "the device is not in the pool"


OTHER_HOST = (
    "multihost writes failed: another host may have imported the pool, and a clear is refused or"
    " hangs. Make sure that no other host has it, then reboot and import it"
)
"""Text for a pool that multihost suspended, to keep two hosts from writing (ZFS-8000-MM)."""


def _suspended(situation: Situation) -> str | None:
    """Return why a suspended pool takes no command, and what to do; None for other pools."""
    if not situation.suspended:
        return None
    if situation.may_be_elsewhere:
        return f"the pool is suspended and takes no command: {OTHER_HOST}"
    return (
        "the pool is suspended and takes no command: bring the missing device back, then"
        " clear the pool"
    )


ANSWERING = Precondition("the pool is not suspended", _suspended)


def present(target: Target) -> Precondition:
    """Require that the plan's device is still in the pool, in the same kind of place."""

    def _check(situation: Situation) -> str | None:
        now = find(situation.pool, target.key)
        if now is None:
            return (
                f"{target.name} is no longer in {situation.pool.name};"
                " the pool was changed elsewhere"
            )
        if now.group is None and target.group is not None:
            return (
                f"{target.name} is no longer in {target.group.name}; the pool was changed elsewhere"
            )
        if now.group is not None and target.group is None:
            return (
                f"{target.name} is in {now.group.name} now; its replacement was started elsewhere"
            )
        if now.vdev.shared:
            return (
                f"{target.name} stands in at several places, and zpool can't tell which is meant:"
                " replace the disks it stands in for"
            )
        return None

    return Precondition(f"{target.name} is where it was when planned", _check)


def of_device(
    target: Target, text: str, why_not: Callable[[Situation, Target], str | None]
) -> Precondition:
    """Build a condition on a device's present state; ``why_not`` returns why it fails."""

    def _check(situation: Situation) -> str | None:
        now = find(situation.pool, target.key)
        return NOT_THERE if now is None else why_not(situation, now)

    return Precondition(text, _check)


def same_scans(situation: Situation) -> Precondition:
    """Require that no scan started, ended or changed state since the consequences were written."""
    planned = {(*scan.key, scan.state) for scan in situation.running}

    def _check(now: Situation) -> str | None:
        found = {(*scan.key, scan.state) for scan in now.running}
        if found == planned:
            return None
        running = "; ".join(describe(scan) for scan in now.running) or "no scan"
        return f"a scan has changed since planning; now: {running}"

    return Precondition("no scan changed since planning", _check)


def checkpoint_doubt(situation: Situation) -> tuple[str, ...]:
    """Return the doubt about a resilver in a pool with a checkpoint; () without one."""
    if not has_checkpoint(situation.pool):
        return ()
    return (
        "the pool has a checkpoint: no resilver restores redundancy while it exists. Discard it"
        f" first (zpool checkpoint -d {situation.pool.name}); you can't rewind to it afterwards",
    )


def _checkpointed(situation: Situation) -> str | None:
    """Return why a checkpoint is in the way (spa_vdev_attach, spa_vdev_detach, spa_vdev_remove)."""
    if situation.pool.checkpoint is None:
        return None
    if situation.pool.checkpoint.discarding:
        return "a checkpoint is being discarded: wait for it"
    return (
        "the pool has a checkpoint, so ZFS refuses replace, attach, detach and remove: discard it"
        " first (zpool checkpoint -d); you can't rewind to it afterwards"
    )


NO_CHECKPOINT = Precondition("no checkpoint exists", _checkpointed)


def no_activity(kind: str, words: str) -> Precondition:
    """Require that no removal or expansion runs: the kernel would answer "busy"."""

    def _check(situation: Situation) -> str | None:
        return f"{words} is running: wait for it" if situation.works(kind) else None

    return Precondition(f"no {words} is running", _check)


def nothing_runs(*functions: str, paused: bool = True) -> Precondition:
    """Require that none of these scans runs; a paused scan counts unless ``paused`` is False."""

    def _check(situation: Situation) -> str | None:
        counted = (scan for scan in situation.running if paused or scan.state == "running")
        found = next((scan for scan in counted if scan.function in functions), None)
        return None if found is None else describe(found)

    *others, last = (WORDS.get(name, name) for name in functions)
    names = f"{', '.join(others)} or {last}" if others else last
    return Precondition(f"no {names} is running", _check)


def feature(name: str, what: str, since: Version) -> Precondition:
    """Require a pool feature, available ``since`` a release; unknown counts as enabled."""
    words = ".".join(map(str, since))

    def _check(situation: Situation) -> str | None:
        # An older release does not list the feature at all, which alone would count as unknown.
        if why := release(what, since).check(situation):
            return why
        if situation.facts.has(name) is False:
            return f"{what} needs the pool feature {name}, which is not enabled on this pool"
        return None

    return Precondition(f"feature {name} (OpenZFS {words}) is enabled", _check)


def release(what: str, since: Version) -> Precondition:
    """Require a kernel module of at least release ``since``; an unknown release is accepted."""
    words = ".".join(map(str, since))

    def _check(situation: Situation) -> str | None:
        return (
            f"{what} needs OpenZFS {words}"
            if situation.facts.version and situation.facts.version < since
            else None
        )

    return Precondition(f"OpenZFS {words} or later runs", _check)


def fits(situation: Situation, target: Target, new: str, spare_serves: bool) -> Precondition:
    """Require that the new device fits this place, as far as the machine can tell.

    ``spare_serves``: it may be one of the pool's free hot spares.
    """

    def _why_not(fresh: Situation, now: Target) -> str | None:
        if spare_serves and (spare := spares(fresh.pool).get(new)) is not None:
            problem = unfit_spare(spare, now.vdev, now.top)
            return f"{new}: {problem}" if problem else None
        device = fresh.facts.named(new)
        # Without any device the list could not be read, which says nothing about this one.
        if device is None:
            return f"{new} is not a device of this machine" if fresh.facts.devices else None
        problems = judge_device(fresh.pool, now, device, fresh.facts).problems
        return f"{new}: {'; '.join(problems)}" if problems else None

    is_spare = spare_serves and new in spares(situation.pool)
    what = "an available hot spare" if is_spare else "there, free"
    return of_device(target, f"{new} is {what} and fits", _why_not)


def same_device(situation: Situation, path: str) -> Precondition:
    """Require that ``path`` names the same device as in ``situation``.

    A path may name a place: another disk in the same bay, or a rename by udev, gives it a new
    device. The identifiers from kernel and udev are compared where they were known, for a hot spare
    its GUID, too. A disk swapped between the fresh sample and zpool's own opening of the path,
    while the audit log is written, is not noticed.
    """
    known = _known(situation, path)

    def _check(now: Situation) -> str | None:
        found = _known(now, path)
        changed = [
            f"{name} {found.get(name, 'unknown')}, not {value}"
            for name, value in known.items()
            if found.get(name) != value
        ]
        if not changed:
            return None
        if not found:
            return f"{path} is no longer there; choose the device again"
        return f"{path} is a different device now: {'; '.join(changed)}; choose the device again"

    words = ", ".join(f"{name} {value}" for name, value in known.items())
    doubt = "; its serial number is unknown, so another disk of this size isn't noticed"
    named = known.keys() & {"serial", "WWN", "spare"}
    text = f"{path} is the same device: {words}{'' if named else doubt}"
    unknown = "no serial number, WWN, model or size is known, so a swapped disk isn't noticed"
    return Precondition(text if known else f"{path}: {unknown}", _check)


def _known(situation: Situation, path: str) -> Mapping[str, str]:
    """Return what identifies the device, as far as pool, kernel and udev know it."""
    device, spare = situation.facts.named(path) or Device(path), spares(situation.pool).get(path)
    found = {
        "serial": device.serial,
        "WWN": device.wwn,
        "model": device.model,
        "size": "" if device.size is None else f"{size(device.size)} ({device.size} bytes)",
        "spare": "" if spare is None or not spare.guid else f"GUID {spare.guid}",
    }
    return {name: value for name, value in found.items() if value}


def outdated(now: Situation, since: float, urgent: bool) -> str | None:
    """Return why a situation can't be acted on: begun before ``since``, or with a problem.

    An urgent plan may run on the last known state if the newest sample failed.
    """
    if now.looked is None or now.looked <= since:
        return f"{now.pool.name} was not sampled after you confirmed; try again"
    if urgent:
        return None
    if now.suspended:
        return _suspended(now)
    if now.problem is not None:
        return f"{now.pool.name} cannot be read: {now.problem}. Nothing was run"
    return None
