"""Growing a pool in place: larger disks, more sides, wider raidz (zpool(8); vdev_raidz.c)."""

from __future__ import annotations

from zconsole.actions import conditions as must
from zconsole.actions.candidates import cautions, own_ashift
from zconsole.actions.follow import filled, leaf_on, when
from zconsole.actions.plan import (
    ActionOutcome,
    ActionPlan,
    Follow,
    Precondition,
    Situation,
    Step,
    decide,
    refuse,
)
from zconsole.actions.running_scans import after_running, disturbed, takes
from zconsole.actions.target import Target, disk_path, find, partition_of
from zconsole.pool.health import LABELS
from zconsole.pool.model import FAILED, Vdev, data_vdevs, is_group
from zconsole.pool.redundancy import is_complete, members
from zconsole.timeline.eta.estimate import Estimate
from zconsole.units import counted, size

WORTH = 0.05
"""Relative gain from which expanding is worth it: anything less is rounding to metaslabs."""


def plan_expand(situation: Situation, key: str) -> ActionPlan:
    """Plan to let a vdev use the whole size of its devices (online -e); can't be undone."""
    target = find(situation.pool, key)
    if target is None:
        return refuse("expand", "Expand a vdev", situation, must.NOT_THERE)
    pool, top = situation.pool, target.top

    def _grown(now: Situation) -> bool:
        found = find(now.pool, key)
        return found is not None and (found.top.size_bytes or 0) > (top.size_bytes or 0)

    gain = space_gained(situation, top)
    parts = [leaf.called for leaf in top.leaves() if partition_of(leaf) is not None]
    only = f": {', '.join(parts)} must have been made larger first" if parts else ""
    steps = tuple(
        Step(
            situation.zpool("online", "-e", operands=(disk_path(pool, leaf, expands=True),)),
            f"use the whole size of {leaf.called}",
        )
        for leaf in top.leaves()
    )
    plan = ActionPlan(
        action="expand",
        title=f"Expand {top.name}",
        steps=steps,
        consequences=(
            f"{top.name} gains about {size(gain)}"
            if gain
            else f"the space gained is unknown{only}",
        ),
        not_undone=(
            "a vdev never shrinks: from then on, only disks of the new size or larger can replace"
            " its disks",
        ),
        preconditions=(
            must.ANSWERING,
            must.present(target),
            must.of_device(target, "the vdev is complete", _incomplete),
            must.of_device(target, "all its disks are larger than their used part", _fully_used),
        ),
        needs_typed=top.name,
        # With nothing known to gain, the end could not be seen.
        follow=when(_grown, f"{top.name} has grown") if gain else None,
    )
    return decide(plan, situation)


def space_gained(situation: Situation, top: Vdev) -> int | None:
    """Return the bytes that a vdev would gain by expanding to its smallest disk.

    None when unknown, 0 for no gain. Disk sizes come from the machine, the vdev's size from the
    sample. While a raidz is being expanded onto an attached disk the gain is 0, as that space is
    added by itself at the end.
    """
    if situation.works("expansion", top.name):
        return 0
    sizes: list[int] = []
    for leaf in top.leaves():
        # For a whole disk, the path is that of the partition that zpool made and will enlarge.
        part = partition_of(leaf) is not None
        device = (situation.facts.named if part else situation.facts.disk)(leaf.path or "")
        if device is None or device.size is None or (part and device.kind == "disk"):
            return None  # a disk's size says nothing of its partition's
        sizes.append(device.size)
    if top.size_bytes is None or not sizes:
        return None
    width = 1 if top.kind in ("mirror", "disk", "file") else len(members(top))
    width -= top.spares_left or 0  # distributed spares give no space
    gain = (min(sizes) - LABELS) * width - top.size_bytes
    return gain if gain > top.size_bytes * WORTH else 0


def plan_attach(
    situation: Situation, key: str, new: str, estimate: Estimate | None = None
) -> ActionPlan:
    """Plan to attach a side to a mirror or single disk, or a disk to a raidz (not undoable).

    ``estimate``: how long its resilver takes; None if unknown.
    """
    target = find(situation.pool, key)
    if target is None:
        return refuse("attach", "Attach a device", situation, must.NOT_THERE)
    raidz = target.vdev.kind.startswith("raidz")
    shift = own_ashift(target, new, situation.facts)
    argv = situation.zpool("attach", *shift, operands=(target.argument, new))
    plan = ActionPlan(
        action="attach",
        title=f"Attach {new} to {target.name}",
        steps=(Step(argv, f"add {new} to {target.name}"),),
        consequences=_attach_effects(situation, target, estimate),
        not_undone=(
            "overwrites what is on the new device",
            *(("a raidz never gets narrower: you can't remove the disk again",) * raidz),
        ),
        warnings=cautions(situation.pool, target, new, situation.facts),
        preconditions=(
            must.ANSWERING,
            must.present(target),
            must.same_scans(situation),
            must.NO_CHECKPOINT,
            must.no_activity("removal", "device removal"),
            must.nothing_runs("rebuild"),
            must.of_device(target, "a device can be attached there", _takes_no_side),
            must.same_device(situation, new),
            must.fits(situation, target, new, spare_serves=False),
            *(
                (
                    # An expansion is refused, or stalls, if a device is absent.
                    must.of_device(target, "the vdev is complete", _incomplete),
                    must.feature("raidz_expansion", "raidz expansion", (2, 3)),
                    must.no_activity("expansion", "a raidz expansion"),
                    must.nothing_runs("resilver"),
                )
                if raidz
                else ()
            ),
        ),
        needs_typed=target.vdev.name if raidz else None,
        follow=_expanded(new, target)
        if raidz
        else lambda now: filled(now, new, f"part of {target.vdev.name}", situation),
        begins="expansion" if raidz else "resilver",
        predicted=None if raidz or estimate is None else estimate.eta,
    )
    return decide(plan, situation)


def _incomplete(_: Situation, now: Target) -> str | None:
    """Return which device of the vdev is not online and complete; None if all are."""
    lacking = next((v for v in now.top.leaves() if not is_complete(v)), None)
    if lacking is None and not any(is_group(v) for v in now.top.walk()):
        return None
    why = f" ({lacking.name} is {lacking.state})" if lacking and lacking.state != "ONLINE" else ""
    then = "bring it back or replace it first" if why else "wait for the resilver"
    return f"{now.top.name} is not complete yet{why}: {then}"


def _fully_used(situation: Situation, now: Target) -> str | None:
    """Return why expanding gains nothing; None if it gains, or that is unknown."""
    if space_gained(situation, now.top) != 0:
        return None
    return f"{now.top.name} cannot grow: its smallest disk is fully used"


def _attach_effects(
    situation: Situation, target: Target, estimate: Estimate | None
) -> tuple[str, ...]:
    """Return the consequences of an attach."""
    if target.vdev.kind.startswith("raidz"):
        return (
            "raidz expansion: every block is moved once; this takes long and survives reboots",
            "old blocks keep their old data-to-parity ratio until they are rewritten",
            "ZFS scrubs the pool afterwards",
        )
    return (
        f"{situation.pool.name} resilvers the new side;"
        " redundancy grows by one when that is complete",
        takes(estimate, wait=after_running(situation)),
        *disturbed(situation),
    )


def _takes_no_side(_: Situation, now: Target) -> str | None:
    """Return why nothing can be attached there: only mirrors, single disks and raidz grow."""
    if now.vdev.vclass in ("spare", "cache") or now.group is not None:
        return f"{now.name} cannot take another side"
    grows = now.vdev is now.top or now.top.kind == "mirror"
    if (grows and not now.vdev.children) or now.vdev.kind.startswith("raidz"):
        return None
    return f"{now.name} is in {now.top.name}: only mirrors, single disks and raidz grow"


def plan_autoexpand(situation: Situation, on: bool) -> ActionPlan:
    """Plan to switch autoexpand, with which a vdev grows once all of its disks are larger."""
    value = "on" if on else "off"

    def _check(now: Situation) -> str | None:
        return (
            f"autoexpand is {value} already"
            if (now.facts.properties.get("autoexpand") == value)
            else None
        )

    gains = [(top, space_gained(situation, top)) for top in data_vdevs(situation.pool.root)]
    now = ", ".join(f"{top.name} by about {size(gain)}" for top, gain in gains if gain)
    at_once = on and bool(now)  # ZFS requests it through ZED (spa_async_autoexpand, spa.c)
    plan = ActionPlan(
        action="autoexpand",
        title=f"Switch autoexpand {value}",
        steps=(Step(situation.zpool("set", f"autoexpand={value}"), "switch it"),),
        consequences=(
            "when all disks of a vdev are larger, it grows by itself"
            if on
            else "vdevs grow only with zpool online -e",
            *((f"grows at once, as its disks are larger already: {now}",) * at_once),
        ),
        not_undone=("a vdev never shrinks again",) if on else (),
        preconditions=(must.ANSWERING, Precondition(f"autoexpand is not {value}", _check)),
        needs_typed=situation.pool.name if at_once else None,
        follow=when(
            lambda now: now.facts.properties.get("autoexpand") == value, f"autoexpand is {value}"
        ),
    )
    return decide(plan, situation)


def _expanded(new: str, target: Target) -> Follow:
    """Follow a raidz expansion until all blocks are moved; ok if the device had no errors."""

    def _follow(now: Situation) -> ActionOutcome | None:
        found = leaf_on(now, new)
        if found is None or now.works("expansion"):
            return None
        place = f"{new} is part of {target.vdev.name}"
        if found.vdev.state in FAILED or found.vdev.errors.total:
            errors = counted(found.vdev.errors.total, "error")
            return ActionOutcome(False, f"{place}, but {found.vdev.state} with {errors}")
        if not is_complete(found.vdev):
            return None
        return ActionOutcome(True, f"{place} and its blocks are moved")

    return _follow
