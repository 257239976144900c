"""Taking a device offline and online, and detaching one side (zpool(8); vdev.c, spa.c)."""

from __future__ import annotations

from zconsole.actions import conditions as must
from zconsole.actions.follow import leaf_is, leftover, onlined, when
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, decide, refuse
from zconsole.actions.running_scans import disturbed
from zconsole.actions.target import Target, disk_path, doubts, find, others_missing, stands_in
from zconsole.pool.redundancy import is_complete, may_fail, parity
from zconsole.units import counted


def plan_offline(situation: Situation, key: str, temporary: bool = False) -> ActionPlan:
    """Plan to take a device offline; ``temporary`` only until the next import or reboot."""
    target = find(situation.pool, key)
    if target is None:
        return refuse("offline", "Take a device offline", situation, must.NOT_THERE)
    options = ("-t",) if temporary else ()
    argv = situation.zpool("offline", *options, operands=(target.vdev.argument,))
    lasts = (
        "until the next reboot or import"
        if temporary
        else "until you put it online, also over a reboot"
    )
    plan = ActionPlan(
        action="offline",
        title=f"Take {target.name} offline",
        steps=(Step(argv, "take it offline"),),
        doubts=doubts(situation.pool, key, healthy=False),
        consequences=(
            f"it stays offline {lasts}",
            *_left_without(target),
        ),
        warnings=_no_redundancy_left(target),
        preconditions=(
            must.ANSWERING,
            must.present(target),
            must.of_device(target, "the vdev can do without it", _indispensable),
            _none_failed_since(target),
        ),
        follow=leaf_is(key, lambda t: t.vdev.state == "OFFLINE", f"{target.name} is offline"),
    )
    return decide(plan, situation)


def plan_online(situation: Situation, key: str, reopen: bool = False) -> ActionPlan:
    """Plan to put a device online; it is resilvered with what it missed.

    ``reopen``: allowed also for a device that is ONLINE. A pulled disk may return under another
    device node before the pool noticed; the command reopens it (vdev_online in vdev.c).
    """
    target = find(situation.pool, key)
    if target is None:
        return refuse("online", "Put a device online", situation, must.NOT_THERE)
    device = disk_path(situation.pool, target.vdev, situation.expands)
    argv = situation.zpool("online", operands=(device,))
    # ZFS starts no resilver during a rebuild (spa_async_thread, spa.c): the scrub after it fills
    # the device, too (dsl_scan_setup_sync, dsl_scan.c).
    after = ", after the rebuild that is running" if situation.active("rebuild") else ""
    if after and situation.facts.parameters.get("zfs_rebuild_scrub_enabled") == 0:
        after = " by the next scrub: none follows this rebuild (zfs_rebuild_scrub_enabled is 0)"
    plan = ActionPlan(
        action="online",
        title=f"Open {target.name} again" if reopen else f"Put {target.name} online",
        steps=(Step(argv, "open it again" if reopen else "put it online"),),
        consequences=(
            f"what it missed is resilvered onto it{after}",
            *disturbed(situation, returns=True),
        ),
        doubts=must.checkpoint_doubt(situation),
        preconditions=(
            must.ANSWERING,
            must.present(target),
            must.same_scans(situation),
            *((must.of_device(target, "it is offline", _not_out),) if not reopen else ()),
        ),
        urgent=lambda _: True,
        follow=onlined(situation, key, target.name),
    )
    return decide(plan, situation)


def plan_detach(situation: Situation, key: str) -> ActionPlan:
    """Plan to remove a side of a mirror, or one device of a replacing or spare group."""
    target = find(situation.pool, key)
    if target is None:
        return refuse("detach", "Detach a device", situation, must.NOT_THERE)
    argv = situation.zpool("detach", operands=(target.vdev.argument,))
    # Explain a group that is still there though nothing is being filled.
    meaning = leftover(target.group) if target.group is not None else None
    plan = ActionPlan(
        action="detach",
        title=f"Detach {target.name}",
        steps=(Step(argv, f"remove {target.name}"),),
        doubts=doubts(situation.pool, key, healthy=False),
        consequences=(_detach_effect(target),),
        not_undone=(
            "drops its copy: to return, it is resilvered in full",
            *(("the pool has one spare fewer; add a new one",) * bool(target.spares)),
        ),
        warnings=(
            *_no_redundancy_left(target),
            *((meaning,) if meaning and not situation.repairing else ()),
        ),
        preconditions=(
            must.ANSWERING,
            must.present(target),
            must.NO_CHECKPOINT,
            must.of_device(target, "what stays is complete", _no_copy_left),
            _none_failed_since(target),
        ),
        needs_typed=target.vdev.name,
        follow=when(lambda now: find(now.pool, key) is None, f"{target.name} is detached"),
    )
    return decide(plan, situation)


def _left_without(target: Target) -> tuple[str, ...]:
    """Return what being offline means meanwhile, and afterwards."""
    if target.vdev.vclass == "cache":
        return ("while it is offline, nothing is cached on it",)
    if _last_of_log(target):
        return ("while it is offline, synchronous writes go to the pool's other disks",)
    left = _redundancy_without(target)
    return (
        f"while it is offline, {may_fail(left)} in {target.top.name} without losing data",
        "when back online, it is resilvered with what was written meanwhile",
    )


def _last_of_log(target: Target) -> bool:
    """Return whether it is the last side of its log: ZFS writes out the log's data first."""
    log = target.top.vclass == "log"
    return log and not stands_in(target) and len(others_missing(target)) + 1 > parity(target.top)


def _redundancy_without(target: Target) -> int:
    """Return how many more devices may fail in the vdev once it is offline or detached."""
    return parity(target.top) - len(others_missing(target)) - (not stands_in(target))


def _no_redundancy_left(target: Target) -> tuple[str, ...]:
    """Return a warning if it takes the last redundancy, naming remaining devices with errors."""
    if _redundancy_without(target) > 0 or not is_complete(target.vdev) or stands_in(target):
        return ()
    if target.vdev.vclass == "cache" or _last_of_log(target):
        return ()
    stay = (v for v in target.top.leaves() if is_complete(v) and v is not target.vdev)
    noisy = [v for v in stay if v.errors.total]
    errors = (f"; {v.called} has {counted(v.errors.total, 'error')}" for v in noisy)
    return (
        f"leaves {target.top.name} with no redundancy: one more failure loses data"
        + "".join(errors),
    )


def _indispensable(_: Situation, now: Target) -> str | None:
    """Return why the vdev loses data without this device (zpool: "no valid replicas"), or None.

    A log and a cache may always be taken offline (vdev_offline_locked, vdev.c).
    """
    if now.vdev.vclass == "spare" or now.vdev.kind == "dspare" or now.vdev.children:
        return f"{now.name} cannot be taken offline"
    if now.vdev.state == "OFFLINE":
        return f"{now.name} is offline already"
    if stands_in(now) or now.vdev.vclass == "cache" or now.top.vclass == "log":
        return None
    if len(others_missing(now)) + 1 > parity(now.top):
        return f"no valid replicas: {now.top.name} would lose data without {now.name}"
    return None


def _none_failed_since(target: Target) -> Precondition:
    """Require that the vdev still has the redundancy that the plan showed."""
    planned = len(others_missing(target))

    def _why_not(_: Situation, now: Target) -> str | None:
        absent = len(others_missing(now))
        if absent <= planned:
            return None
        more = counted(absent - planned, "more device")
        return f"{now.top.name} lacks {more} than when planned; plan again"

    text = f"no other device of {target.top.name} failed since planning"
    return must.of_device(target, text, _why_not)


def _not_out(_: Situation, now: Target) -> str | None:
    """Return why going online changes nothing; None if it does something.

    ZFS keeps out a device that it gave up for errors (vdev_open).
    """
    if now.vdev.children:
        return f"{now.name} is not a device: put one of its devices online"
    if now.vdev.state in ("FAULTED", "DEGRADED"):
        return f"{now.name} is {now.vdev.state}, and stays so when put online: clear its errors"
    return f"{now.name} is online" if now.vdev.state == "ONLINE" else None


def _detach_effect(target: Target) -> str:
    """Return what stays in the place, and what that means for a replace or a spare."""
    group = target.group
    if group is None:
        sides = counted(len(target.top.children) - 1, "side")
        left = may_fail(_redundancy_without(target))
        return f"{target.top.name} keeps {sides}: {left} without losing data"
    others = ", ".join(v.called for v in group.children if v is not target.vdev)
    if group.kind != "spare":
        return f"{others} stays; this ends the replace"
    if target.spares:
        return f"{others}, so far a spare, becomes a permanent part of {target.top.name}"
    return f"{others} stays; the spare returns to the list of spares"


def _no_copy_left(situation: Situation, now: Target) -> str | None:
    """Return why it can't be detached: no side of a mirror or group, or the only complete copy."""
    if now.vdev.children:
        return f"{now.name} is not a device: detach one of its devices"
    if now.group is None and now.parent.kind != "mirror":
        return "only sides of mirrors, and devices being replaced or spared, can be detached"
    rest = [v for v in now.parent.children if v is not now.vdev]
    if any(spare.kind == "dspare" for spare in now.spares):
        return f"a distributed spare can only be returned: replace {now.name}"
    if any(is_complete(v) for v in rest) or _newcomer_being_filled(situation, now):
        return None
    return f"no valid replicas: nothing else in {now.parent.name} is complete"


def _newcomer_being_filled(situation: Situation, target: Target) -> bool:
    """Return whether it is a group's new device being filled: detaching it backs out.

    Nothing marks it while the resilver only scans metadata, so any running one is enough.
    """
    group = target.group
    if group is None or group.children[0] is target.vdev:
        return False
    return bool(situation.repairing) or not is_complete(target.vdev)
