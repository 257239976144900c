"""Adding a vdev, log, cache or spare to a pool (zpool-add(8); zpool_do_add in zpool_main.c).

Never with ``-f``: what zpool would refuse is refused here, with what can be done instead; and where
zpool no longer checks, as in a pool whose vdevs don't match each other, redundancy is still asked
for. ``zpool add -n`` is no step of the plan: zpool makes the same checks before it touches a disk.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

from zconsole.actions import conditions as must
from zconsole.actions.add_effects import (
    alignment,
    alternatives,
    balance_effects,
    meaning,
    permanent,
    removable,
    warnings,
)
from zconsole.actions.candidates import judge_new
from zconsole.actions.follow import when
from zconsole.actions.layout import Layout, ashift_option, wanted_shift
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, decide, refuse, zpool
from zconsole.actions.target import find_path
from zconsole.hardware.device import Device
from zconsole.pool.redundancy import Replication, least_redundant, mismatch
from zconsole.units import counted


def plan_add(situation: Situation, layout: Layout, devices: tuple[str, ...]) -> ActionPlan:
    """Add devices to a pool as one vdev, or as logs, caches or spares; the paths of ``devices``."""
    title = f"Add a {layout.name} of {counted(len(devices), 'device')} to {situation.pool.name}"
    if why := _senseless(situation, layout, devices):
        return refuse("add", title, situation.pool.name, why)
    known = [device for path in devices if (device := situation.facts.named(path)) is not None]
    sizes = [device.size for device in known if device.size is not None]
    argv = zpool(
        "add",
        *ashift_option(situation, layout, known),
        operands=(situation.pool.name, *layout.words, *devices),
    )
    stays = permanent(situation, layout)
    plan = ActionPlan(
        action="add",
        title=title,
        steps=(Step(argv, f"add a {layout.name}"),),
        consequences=(
            *meaning(layout),
            *(
                balance_effects(situation, layout.kind, len(devices), sizes)
                * (layout.vclass == "normal")
            ),
            *alignment(situation, layout, known),
            *(() if stays else (removable(situation, layout),)),
        ),
        not_undone=("overwrites what is on the devices", *filter(None, (stays,))),
        warnings=tuple(warnings(situation, layout, devices, sizes)),
        preconditions=(
            must.answering(),
            must.no_activity("removal", "device removal"),
            _same_vdevs(situation),
            *_suitable(layout, len(devices)),
            *(must.same_device(situation, path) for path in devices),
            *(_free(layout, path) for path in devices),
            _like_the_pool(layout, devices),
        ),
        needs_typed=situation.pool.name if stays else None,
        alternatives=alternatives(situation, layout, devices),
        follow=when(_arrived(devices), f"the {layout.name} is part of {situation.pool.name}"),
    )
    return decide(plan, situation)


def _senseless(situation: Situation, layout: Layout, devices: tuple[str, ...]) -> str | None:
    """What is wrong with the question itself."""
    if layout.vclass != "normal" and layout.kind.startswith("raidz"):
        return f"ZFS has no {layout.vclass} of raidz: use a mirror"
    if layout.vclass in ("cache", "spare") and layout.kind != "disk":
        return f"a {layout.vclass} is a single device: add several one beside the other"
    if len(devices) < layout.least:
        return f"a {layout.name} needs at least {counted(layout.least, 'device')}"
    if odd := next((path for path in devices if not path.startswith("/")), None):
        return f"{odd}: not an absolute path"
    return _on_one_disk(situation, layout, devices)


def _on_one_disk(situation: Situation, layout: Layout, devices: tuple[str, ...]) -> str | None:
    """Which devices are the same one, a disk and its partition, or no redundancy for each other."""
    facts = situation.facts
    found = [facts.named(path) or Device(path) for path in devices]
    for each, other in permutations(found, 2):
        if other.path in (each.path, *each.aliases):
            return "a device is named twice"
        shared = set(facts.disks_under(each)) & set(facts.disks_under(other))
        if shared and layout.kind != "disk":
            both = f"{each.path}, {other.path}"
            return f"on one disk: {both}; a {layout.name} would lose them together"
    return None


def _same_vdevs(situation: Situation) -> Precondition:
    """Nobody else has added or removed a vdev meanwhile."""
    planned = _top_level(situation)

    def _check(now: Situation) -> str | None:
        if _top_level(now) == planned:
            return None
        return f"the vdevs of {now.pool.name} have changed since planning; plan again"

    return Precondition("no vdev was added or removed since planning", _check)


def _top_level(situation: Situation) -> frozenset[str]:
    return frozenset(
        f"{vdev.vclass} {vdev.guid or vdev.name}" for vdev in situation.pool.root.children
    )


def _suitable(layout: Layout, devices: int) -> tuple[Precondition, ...]:
    """What a vdev that holds data must be: as redundant as the pool, and of a feature it has."""
    if not layout.holds_data:
        return ()
    feature = must.feature("allocation_classes", f"a {layout.vclass} vdev", (0, 8))
    redundant = Precondition(
        "it is as redundant as the pool", lambda s: _too_weak(s, layout, layout.of(devices))
    )
    return (*(feature,) * (layout.vclass != "normal"), redundant)


def _too_weak(situation: Situation, layout: Layout, new: Replication) -> str | None:
    """Why its loss would be likelier than that of the pool's other vdevs."""
    wanted = least_redundant(situation.pool.root)
    if new.survives >= wanted:
        return None
    lost = f"if it is lost, all of {situation.pool.name} is lost"
    what = f"{layout.vclass} vdev" if layout.vclass != "normal" else "vdev"
    if not new.survives:
        return f"a lone disk as a {what} has no redundancy: {lost}"
    return (
        f"less redundancy than the pool: a {new.words} survives {new.survives} lost, the pool's"
        f" vdevs {wanted}; {lost}"
    )


def _free(layout: Layout, path: str) -> Precondition:
    """The device is there, holds nothing and is in use by nothing, as far as the machine tells."""

    def _check(situation: Situation) -> str | None:
        device = situation.facts.named(path)
        if device is None:
            return f"{path} is not a device of this machine" if situation.facts.devices else None
        problems = judge_new(situation.pool, device, wanted_shift(situation, layout)).problems
        return f"{path}: {problems[0]}" if problems else None

    return Precondition(f"{path} is there, free and fits", _check)


def _like_the_pool(layout: Layout, devices: tuple[str, ...]) -> Precondition:
    """It needs no ``-f`` (check_replication), and the kernel takes it (spa_vdev_add, spa.c)."""

    def _check(situation: Situation) -> str | None:
        if not layout.holds_data:
            return None
        # What a removal leaves behind is in no sample; the feature stays active for good
        # (zpool-features(7)).
        removed = situation.facts.features.get("device_removal") == "active"
        if layout.kind.startswith("raidz") and removed:
            return "a vdev was removed from this pool: ZFS adds no raidz to it any more"
        found = (situation.facts.named(path) for path in devices)
        sizes = [d.size for d in found if d is not None and d.size is not None]
        why = mismatch(situation.pool.root, layout.of(len(devices)), sizes)
        return None if why is None else f"{why}; zpool adds that only with -f, never used here"

    return Precondition("its layout is like that of the pool's vdevs", _check)


def _arrived(devices: tuple[str, ...]) -> Callable[[Situation], bool]:
    """Each of the devices is part of the pool."""

    def _holds(now: Situation) -> bool:
        return all(_is_member(now, path) for path in devices)

    return _holds


def _is_member(now: Situation, path: str) -> bool:
    device = now.facts.named(path)
    return (
        find_path(now.pool, (path, *((device.path, *device.aliases) if device else ()))) is not None
    )
