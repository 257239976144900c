"""Replacing devices of a pool, one or several with one resilver; spares in use.

Sources: zpool-replace(8); spa_vdev_attach in module/zfs/spa.c and zpool_vdev_attach in
libzfs_pool.c.
"""

from __future__ import annotations

from collections.abc import Iterator

from zconsole.actions import conditions as must
from zconsole.actions.candidates import cautions, own_ashift
from zconsole.actions.follow import replaced
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, called, decide, refuse
from zconsole.actions.running_scans import LITTLE, after_running, disturbed, takes
from zconsole.actions.target import Swap, Target, doubts, find
from zconsole.keyed_text import KeyedText
from zconsole.pool.model import FAILED, Vdev, is_group
from zconsole.pool.redundancy import is_complete, may_fail, parity, redundancy
from zconsole.pool.spares import spares
from zconsole.timeline.eta.estimate import Estimate

SEQUENTIAL_KINDS = ("mirror", "draid", "disk", "file")
"""Top-level layouts that can be rebuilt sequentially; the last two are single disks.

A single disk that is being replaced or spared already can't (spa_vdev_attach, spa.c).
"""

SEQUENTIAL = (
    "sequential: restores redundancy sooner, as it reads the vdev in order, but checks no"
    " checksums; ZFS starts a scrub afterwards to check them"
)
HEALING = "healing resilver: checks every block against its checksum while copying"


def plan_replace(
    situation: Situation,
    swap: Swap,
    sequential: bool = False,
    estimate: Estimate | None = None,
) -> ActionPlan:
    """Plan to replace a device by another; ``sequential`` rebuilds without checksums (-s).

    ``estimate``: how long a healing resilver takes; None if unknown.
    """
    target = find(situation.pool, swap.old)
    if target is None:
        return refuse("replace", "Replace a device", situation, must.NOT_THERE)
    plan = ActionPlan(
        action="replace",
        title=f"Replace {_old_and_new(situation, target, swap.new)}",
        steps=(_replace_step(situation, target, swap.new, sequential),),
        doubts=(*_joins(situation, target), *doubts(situation.pool, swap.old)),
        consequences=(
            SEQUENTIAL if sequential else HEALING,
            takes(estimate, _work(sequential), after_running(situation)),
            *disturbed(situation, target.top if sequential else None),
            *_redundancy_meanwhile(situation, (target,)),
            *_of_spares(situation, target, swap.new),
            "to back out while it runs, detach the new device",
        ),
        not_undone=("overwrites what is on the new device",),
        warnings=_warnings_of(situation, target, swap.new),
        preconditions=(must.same_scans(situation), *_common_conditions(sequential)),
        follow=replaced(situation, (swap,)),
        begins="rebuild" if sequential else "resilver",
        predicted=None if sequential or estimate is None else estimate.eta,
    )
    return decide(plan, situation)


def plan_batch(
    situation: Situation,
    swaps: tuple[Swap, ...],
    sequential: bool = False,
    estimate: Estimate | None = None,
) -> ActionPlan:
    """Plan to replace several devices with one resilver, restarted once if a device has to wait.

    ``estimate``: how long one healing resilver of all takes; None if unknown.
    """
    title = "Replace 1 device" if len(swaps) == 1 else f"Replace {len(swaps)} devices at once"
    found = tuple(filter(None, (find(situation.pool, swap.old) for swap in swaps)))
    why = ""
    if not swaps or len(found) != len(swaps):
        why = "not all of the old devices are in the pool"
    elif len({swap.old for swap in swaps}) < len(swaps):
        why = "an old device is named twice"
    elif len({swap.new for swap in swaps}) < len(swaps):
        why = "a new device is named twice"
    if why:
        return refuse("replace", title, situation, why)
    pairs = tuple(zip(found, swaps, strict=True))
    replaces = tuple(
        _replace_step(situation, target, swap.new, sequential) for target, swap in pairs
    )
    plan = ActionPlan(
        action="replace",
        title=title,
        steps=replaces if sequential else (*replaces, _restart_step(situation)),
        doubts=tuple(text for target in found for text in _joins(situation, target)),
        consequences=_batch_consequences(situation, found, sequential, estimate),
        not_undone=("overwrites what is on the new devices",),
        warnings=tuple(
            f"{t.name}: {text}"
            for t, swap in pairs
            for text in _warnings_of(situation, t, swap.new)
        ),
        preconditions=(
            must.same_scans(situation),
            *_common_conditions(sequential),
            # All replaces are checked before the first one runs, so that none fails halfway.
            *(need for step in replaces for need in step.requires),
            _enough_left(found),
        ),
        follow=replaced(situation, swaps),
        begins="rebuild" if sequential else "resilver",
        predicted=None if sequential or estimate is None else estimate.eta,
    )
    return decide(plan, situation)


def being_replaced(situation: Situation, group: Vdev) -> str:
    """Return who replaces whom in a replacing group, and the progress: ``… by bay09 (45.7 %)``.

    Without the percentage if it is unknown, or if the new device still waits for its resilver.
    """
    old, *new = (next(vdev.leaves()) for vdev in group.children)
    said = f"{old.called} is already being replaced by {', '.join(leaf.called for leaf in new)}"
    rebuilt = {top.name for top in situation.pool.root.children if group in top.walk()}
    for scan in situation.running:
        fills = scan.function == "resilver" or (scan.function == "rebuild" and scan.vdev in rebuilt)
        if fills and scan.percent is not None and not any(leaf.awaiting_resilver for leaf in new):
            return f"{said} ({scan.percent:.1f} %)"
    return said


def _joins(situation: Situation, target: Target) -> tuple[str, ...]:
    """Return the doubt about adding one more disk to a replace that runs; () otherwise."""
    group = target.group
    if group is None or group.kind != "replacing":
        return ()
    more = "a third" if len(group.children) == 2 else "another"
    said = being_replaced(situation, group)
    act = KeyedText("zconsole swap", "{keys}", "swap")
    return (f"{said}; {more} disk joins. " + act + " follows the one that runs.",)


def _enough_left(targets: tuple[Target, ...]) -> Precondition:
    """Require that no vdev has more absent devices than its parity covers."""

    def _check(situation: Situation) -> str | None:
        for target in {t.top_key: t for t in targets}.values():
            fresh = find(situation.pool, target.key)
            if fresh is None:
                continue
            absent = sum(not is_complete(v) for v in fresh.top.children or (fresh.top,))
            if absent > parity(fresh.top):
                return (
                    f"{fresh.top.name}: {absent} devices are missing or incomplete, parity"
                    f" covers {parity(fresh.top)}"
                )
        return None

    return Precondition("no vdev has more missing devices than parity", _check)


def _batch_consequences(
    situation: Situation,
    targets: tuple[Target, ...],
    sequential: bool,
    estimate: Estimate | None,
) -> tuple[str, ...]:
    """Return the consequences of replacing several devices."""
    names = ", ".join(t.name for t in targets)
    several = f"starts {len(targets)} replaces, in this order: {names}"
    once = (
        "one rebuild per vdev fills all new devices of it at the same time"
        if sequential
        else (
            "one resilver fills all new devices at the same time; if one has to wait, the resilver"
            " restarts at once, when little is lost"
        )
    )
    disturbances = dict.fromkeys(
        text for t in targets for text in disturbed(situation, t.top if sequential else None)
    )
    # Old devices that still read must stay in: they count for redundancy.
    reading = [t.name for t in targets if t.vdev.state not in FAILED]
    which = "the old devices" if len(reading) == len(targets) > 1 else ", ".join(reading)
    count = "they still count" if len(reading) > 1 else "it still counts"
    stay = f"leave {which} plugged in until it finishes: {count} for redundancy"
    return (
        several if len(targets) > 1 else f"replaces {names}",
        once,
        takes(estimate, _work(sequential), after_running(situation, LITTLE)),
        *disturbances,
        *((stay,) if reading else ()),
        *_redundancy_meanwhile(situation, targets),
    )


def _restart_step(situation: Situation) -> Step:
    """Build the step that restarts the resilver if a device has to wait and little is lost."""

    def _skip(now: Situation) -> str | None:
        if not now.waiting:
            return "no device waits: one resilver fills them all"
        scan = now.active("resilver")
        if scan is not None and (scan.percent or 0.0) > LITTLE:
            return (
                f"the running resilver is at {scan.percent:.1f} %: the waiting devices get their"
                " own pass after it"
            )
        return None

    return Step(
        situation.zpool("resilver"),
        "if a device has to wait: restart the resilver for all of them",
        skip=_skip,
        # zpool resilver needs this feature (zpool-resilver(8)).
        requires=(must.feature("resilver_defer", "restarting a resilver", (0, 8)),),
    )


def _replace_step(situation: Situation, target: Target, new: str, sequential: bool) -> Step:
    """Build the step of one replace, with its own preconditions."""
    options = ("-s",) if sequential else ()
    argv = situation.zpool(
        "replace",
        *options,
        *own_ashift(target, new, situation.facts),
        operands=(target.vdev.argument, new),
    )
    requires = [
        must.present(target),
        must.of_device(target, f"{target.name} is a device that holds data", _holds_no_data),
        must.same_device(situation, new),
        must.fits(situation, target, new, spare_serves=True),
    ]
    if sequential:
        requires.append(
            must.of_device(target, "the vdev can be rebuilt sequentially", _not_sequential)
        )
    return Step(argv, f"replace {_old_and_new(situation, target, new)}", requires=tuple(requires))


def _old_and_new(situation: Situation, target: Target, new: str) -> str:
    """Return ``bay05 with bay15 (serial ZC1A2B3C)``; the old one is called old in the same bay."""
    name = called(new, situation)
    same_bay = name.startswith(f"{target.name} ")
    return f"{'the old ' * same_bay}{target.name} with {name}"


def _common_conditions(sequential: bool) -> tuple[Precondition, ...]:
    """Return the preconditions of every replace on the pool as a whole."""
    other = "resilver" if sequential else "rebuild"
    rebuild = must.feature("device_rebuild", "sequential reconstruction (-s)", (2, 0))
    return (
        must.ANSWERING,
        must.NO_CHECKPOINT,
        must.no_activity("removal", "device removal"),
        must.nothing_runs(other),
        *((rebuild,) if sequential else ()),
    )


def _not_sequential(_: Situation, now: Target) -> str | None:
    """Return why the vdev can't be rebuilt sequentially, such as raidz; None if it can."""
    if is_group(now.top):
        return f"{now.top.name}: no sequential rebuild until that is over; replace without -s"
    if now.top.kind.startswith(SEQUENTIAL_KINDS):
        return None
    return f"{now.top.name} is {now.top.kind}: only mirror and dRAID can rebuild sequentially"


def _holds_no_data(_: Situation, now: Target) -> str | None:
    """Return why spa_vdev_attach (spa.c) would refuse it: an interior vdev, a spare or a cache."""
    if now.vdev.children:
        return f"{now.name} is not a device: replace its disks one by one"
    if now.vdev.vclass in ("spare", "cache"):
        return f"{now.name} is a {now.vdev.vclass} device: remove it and add another one"
    return None


def _work(sequential: bool) -> str:
    """Return the work whose time is estimated: that of a sequential rebuild is unknown."""
    return "a healing resilver" if sequential else "the resilver"


def _redundancy_meanwhile(situation: Situation, targets: tuple[Target, ...]) -> tuple[str, ...]:
    """Return how many more devices may fail meanwhile, one sentence per vdev involved."""
    left = {id(vdev): entry for vdev, entry in redundancy(situation.pool)}
    said: list[str] = []
    for top in {id(t.top): t.top for t in targets}.values():
        entry = left.get(id(top))
        if entry is None:
            continue
        only = f"; untouchable: {', '.join(entry.untouchable)}" if entry.untouchable else ""
        # Which blocks of an old device can't be read is unknown (see pool.redundancy).
        old = [t for t in targets if t.top is top and is_complete(t.vdev)]
        unread = [leaf.called for leaf in top.leaves() if leaf.name in entry.unread]
        unread += [t.name for t in old if t.vdev.errors.total and t.vdev.name not in entry.unread]
        if reservation := entry._replace(unread=tuple(unread)).reservation:
            only = f", {reservation}"
        said.append(
            f"while it runs, {may_fail(entry.left)} in {top.name} without losing data{only}"
        )
    return tuple(said)


def _of_spares(situation: Situation, target: Target, new: str) -> Iterator[str]:
    """Yield the fate of a spare that stands in, and that a hot spare is only temporary."""
    if names := ", ".join(spare.called for spare in target.spares if not spare.shared):
        yield f"when it is done, {names} is available again"
    if spare := spares(situation.pool).get(new):
        yield (
            f"hot spare {spare.called} only stands in: {situation.pool.name} stays DEGRADED and the"
            f" spare INUSE until {target.name} is replaced by another disk, or detached"
        )


def _warnings_of(situation: Situation, target: Target, new: str) -> tuple[str, ...]:
    """Return the warnings of one replace."""
    said: list[str] = []
    if new not in spares(situation.pool):
        said += cautions(situation.pool, target, new, situation.facts)
    if is_complete(target.vdev):
        state = "ONLINE, with errors" if target.vdev.errors.total else "ONLINE and complete"
        said.append(f"the old device is {state}: leave it plugged in until the resilver finishes")
    if target.group is not None and target.group.kind == "spare":
        said.append(
            f"{target.name} is already in {target.group.name}: this adds one more device to it"
        )
    if "too many errors" in target.vdev.note or target.vdev.state == "FAULTED":
        said.append("the old device is faulted: ZFS doesn't read from it")
    return tuple(said)
