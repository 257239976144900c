"""What ``zpool`` would do to the simulated pool, with its answers (zpool_main.c, libzfs_pool.c)."""

from __future__ import annotations

from dataclasses import dataclass

from zconsole.sim import lifecycle, rebuild, scan
from zconsole.sim.disk import CANT_OPEN, FAULTED, OFFLINE, REMOVED, Leaf
from zconsole.sim.state import (
    ACTIVE,
    CANCELED,
    RESILVER,
    SCANNING,
    SCRUB,
    Expansion,
    Group,
    Member,
    PoolState,
    SimulatedScan,
    Top,
    leaves_of,
    parent,
    siblings,
    top_name,
)


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """How a command ended: exit status and what it printed."""

    status: int = 0
    stderr: str = ""
    stdout: str = ""


DONE = CommandOutcome()
_REOPENED = (FAULTED, REMOVED, CANT_OPEN)
LABEL_SPACE = 1 << 28
"""Devices may be this much smaller than the one they replace (rounding to metaslabs)."""


def replace(pool: PoolState, old: str, new: str, sequential: bool = False) -> CommandOutcome:
    """``zpool replace [-s] POOL OLD NEW``; devices by path, name or GUID."""
    failed = f"cannot replace {old} with {new}"
    found = locate(pool, old)
    if found is None:
        return CommandOutcome(255, f"{failed}: no such device in pool\n")
    fresh = loose(pool, new)
    if fresh is None:
        return _unusable(pool, new)
    top, leaf = found
    refused = _replace_refused(pool, top, leaf, fresh, sequential)
    if refused:
        return CommandOutcome(255, f"{failed}: {refused}\n")
    _take(pool, fresh)
    kind = "spare" if any(fresh is x for x in pool.spares) else "replacing"
    place = siblings(top, leaf)
    place[place.index(leaf)] = Group(kind, pool.new_guid(), [leaf, fresh])
    pool.note("vdev_attach", f"{fresh.name} replaces {leaf.name}", vdev=fresh.path)
    _resilver(pool, top, fresh, sequential)
    return DONE


def attach(pool: PoolState, device: str, new: str, sequential: bool = False) -> CommandOutcome:
    """``zpool attach [-s] POOL DEVICE NEW`` to a disk, a mirror, or a raidz (by its name)."""
    failed = f"cannot attach {new} to {device}"
    for index, top in enumerate(pool.tops):
        if top.kind == "raidz" and device in (top_name(top, index), str(top.guid)):
            return _widen(pool, index, new, failed)
    place = locate(pool, device)
    if place is None:
        return CommandOutcome(255, f"{failed}: no such device in pool\n")
    fresh = loose(pool, new)
    if fresh is None:
        return _unusable(pool, new)
    top, leaf = place
    if top.kind not in ("mirror", "disk"):
        return CommandOutcome(255, f"{failed}: can only attach to mirrors and top-level disks\n")
    refused = _replace_refused(pool, top, leaf, fresh, sequential)
    if refused:
        return CommandOutcome(255, f"{failed}: {refused}\n")
    _take(pool, fresh)
    top.kind = "mirror"
    top.members.append(fresh)
    pool.note("vdev_attach", f"{fresh.name} attached", vdev=fresh.path)
    _resilver(pool, top, fresh, sequential)
    return DONE


def _widen(pool: PoolState, index: int, new: str, failed: str) -> CommandOutcome:
    """Starts a raidz expansion (2.3, vdev_raidz_attach_sync)."""
    fresh = loose(pool, new)
    if fresh is None:
        return _unusable(pool, new)
    top = pool.tops[index]
    running = pool.expansion is not None and pool.expansion.state == ACTIVE
    smallest = min(leaf.model.size for leaf in top.leaves())
    refused = ""
    if pool.checkpoint is not None:
        refused = "checkpoint exists"
    elif running:
        refused = "raidz expansion in progress"
    elif fresh.model.size < smallest - LABEL_SPACE:
        refused = "device is too small"
    if refused:
        return CommandOutcome(255, f"{failed}: {refused}\n")
    _cancel_scrub(pool)
    _take(pool, fresh)
    fresh.dtl = 0.0
    top.members.append(fresh)
    pool.expansion = Expansion(index, pool.now, top.alloc)
    pool.note("vdev_attach", f"{fresh.name} widens {top_name(top, index)}", vdev=fresh.path)
    return DONE


def detach(pool: PoolState, device: str) -> CommandOutcome:
    """``zpool detach POOL DEVICE``."""
    place = locate(pool, device)
    failed = f"cannot detach {device}"
    if place is None:
        return CommandOutcome(255, f"{failed}: no such device in pool\n")
    if pool.checkpoint is not None:
        return CommandOutcome(255, f"{failed}: checkpoint exists\n")
    top, leaf = place
    group = parent(top, leaf)
    if group is None and (top.kind != "mirror" or top.width < 2):
        return CommandOutcome(255, f"{failed}: only applicable to mirror and replacing vdevs\n")
    rest = [member for member in siblings(top, leaf) if member is not leaf]
    if leaf.complete and not any(x.complete for member in rest for x in leaves_of(member)):
        return CommandOutcome(255, f"{failed}: no valid replicas\n")
    if group is None:
        top.members.remove(leaf)
    else:
        place_of = siblings(top, group)
        place_of[place_of.index(group)] = rest[0]
        if group.kind == "spare" and not any(leaf is spare for spare in pool.spares):
            _keep(pool, rest[0])
    _release(pool, leaf)
    pool.note("vdev_remove", f"{leaf.name} detached", vdev=leaf.path)
    return DONE


def offline(pool: PoolState, device: str, fault: bool = False) -> CommandOutcome:
    """``zpool offline [-f] POOL DEVICE``."""
    place = locate(pool, device)
    if place is None:
        return CommandOutcome(1, f"cannot offline {device}: no such device in pool\n")
    top, leaf = place
    was = leaf.state
    leaf.state = OFFLINE
    bad = top.lost() > top.tolerance
    leaf.state = was
    if bad:
        return CommandOutcome(1, f"cannot offline {device}: no valid replicas\n")
    if fault:
        lifecycle.lose(pool, leaf, FAULTED, 14)
    else:
        lifecycle.lose(pool, leaf, OFFLINE)
    return DONE


def online(pool: PoolState, device: str, expand: bool = False) -> CommandOutcome:
    """``zpool online [-e] POOL DEVICE``."""
    place = locate(pool, device)
    if place is None:
        return CommandOutcome(1, f"cannot online {device}: no such device in pool\n")
    top, leaf = place
    if not leaf.present:
        text = f"warning: device '{device}' onlined, but remains in faulted state\n"
        return CommandOutcome(
            0, "", text + "use 'zpool replace' to replace devices that are no longer present\n"
        )
    if not leaf.online:
        lifecycle.come_back(pool, leaf, 0.01)
    if expand or pool.autoexpand:
        lifecycle.expand(top)
    return DONE


def clear(pool: PoolState, device: str | None = None) -> CommandOutcome:
    """``zpool clear POOL [DEVICE]``: forgets errors, reopens, resumes a suspended pool."""
    places = [(top, x) for top in pool.tops for x in top.leaves()]
    if device is not None:
        place = locate(pool, device)
        if place is None:
            return CommandOutcome(1, f"cannot clear errors for {device}: no such device in pool\n")
        places = [place]
    for _, leaf in places:
        leaf.read_errors = leaf.write_errors = leaf.cksum_errors = leaf.slow_ios = 0.0
    missed = 0.0 if pool.suspended else 0.02  # nothing was written while it was suspended
    pool.suspended = False
    for _, leaf in places:
        if leaf.present and leaf.state in (
            FAULTED,
            REMOVED,
            CANT_OPEN,
        ):
            lifecycle.come_back(pool, leaf, missed)
    if any(top.lost() > top.tolerance for top in pool.tops if top.members):
        pool.suspended = True
        return CommandOutcome(1, f"cannot clear errors for {pool.name}: I/O error\n")
    pool.note("vdev_clear", "errors cleared", "notice")
    return DONE


def scrub(pool: PoolState, action: str = "start") -> CommandOutcome:
    """``zpool scrub [-p|-s] POOL``; ``action`` is start, pause or stop."""
    current = pool.scan
    running = current is not None and current.state == SCANNING
    resilvering = running and current is not None and current.function == RESILVER
    rebuilding = any(t.rebuild and t.rebuild.state == rebuild.ACTIVE for t in pool.tops)
    verb = {"start": "scrub", "pause": "pause scrubbing", "stop": "cancel scrubbing"}[action]
    failed = f"cannot {verb} {pool.name}"
    if resilvering or rebuilding:
        return CommandOutcome(1, f"{failed}: currently resilvering\n")
    if action == "start":
        return _scrub_start(pool, current if running else None, failed)
    if action == "pause":
        return _scrub_pause(pool, current if running else None, failed)
    if current is None or not running:
        return CommandOutcome(1, f"{failed}: there is no active scrub\n")
    current.state, current.end, current.paused_since = CANCELED, pool.now, 0.0
    pool.note("scrub_abort", "scrub canceled", "notice")
    return DONE


def _scrub_start(pool: PoolState, current: SimulatedScan | None, failed: str) -> CommandOutcome:
    if current is None:
        scan.begin(pool, SCRUB)
        return DONE
    if not current.paused_since:
        text = "currently scrubbing; use 'zpool scrub -s' to cancel scrub"
        return CommandOutcome(1, f"{failed}: {text}\n")
    current.spent_paused += pool.now - current.paused_since
    current.paused_since = 0.0
    pool.note("scrub_resume", "scrub resumed")
    return DONE


def _scrub_pause(pool: PoolState, current: SimulatedScan | None, failed: str) -> CommandOutcome:
    if current is None:
        return DONE  # says nothing since 2.2
    if current.paused_since:
        return CommandOutcome(1, f"{failed}: scrub is paused; use 'zpool scrub' to resume scrub\n")
    current.paused_since = pool.now
    pool.note("scrub_paused", "scrub paused", "notice")
    return DONE


def resilver(pool: PoolState) -> CommandOutcome:
    """``zpool resilver POOL``: starts over, deferred devices included."""
    lifecycle.resilver_all(pool)
    return DONE


def locate(pool: PoolState, device: str) -> tuple[Top, Leaf] | None:
    """The leaf in use that path, name or GUID ``device`` means, with its top-level vdev."""
    for top in pool.tops:
        for leaf in top.leaves():
            whole = leaf.path.removesuffix("-part1")
            if device in (leaf.path, whole, leaf.name, str(leaf.guid)):
                return top, leaf
    return None


def loose(pool: PoolState, device: str) -> Leaf | None:
    """The device that is free to be used: on the shelf, or a hot spare."""
    used = {leaf.guid for top in pool.tops for leaf in top.leaves()}
    for leaf in (*pool.host.shelf, *pool.spares):
        whole = leaf.path.removesuffix("-part1")
        if leaf.guid not in used and device in (leaf.path, whole, leaf.name, str(leaf.guid)):
            return leaf
    return None


def _unusable(pool: PoolState, new: str) -> CommandOutcome:
    if locate(pool, new) is not None:
        return CommandOutcome(
            1,
            "invalid vdev specification\nuse '-f' to override the following errors:\n"
            f"{new} is part of active pool '{pool.name}'\n",
        )
    return CommandOutcome(1, f"cannot resolve path '{new}': No such file or directory\n")


def _replace_refused(pool: PoolState, top: Top, old: Leaf, new: Leaf, sequential: bool) -> str:
    """Why the kernel would refuse, in libzfs' words (zpool_vdev_attach); "" if it would not."""
    healing = pool.scan is not None and (pool.scan.function, pool.scan.state) == (2, 1)
    if pool.checkpoint is not None:
        return "checkpoint exists"
    group = parent(top, old)
    if group is not None and (group.kind == "replacing" or old.complete):
        return "already in replacing/spare config; wait for completion or use 'zpool detach'"
    if new.model.size < old.model.size - LABEL_SPACE:
        return "device is too small"
    if sequential and top.kind not in ("mirror", "draid", "disk"):
        return "only mirror and dRAID vdevs support sequential reconstruction"
    if sequential and healing:
        return "currently resilvering"
    active = any(t.rebuild and t.rebuild.state == rebuild.ACTIVE for t in pool.tops)
    return "currently sequentially resilvering" if active and not sequential else ""


def _take(pool: PoolState, fresh: Leaf) -> None:
    if any(fresh is x for x in pool.host.shelf):
        pool.host.shelf = [x for x in pool.host.shelf if x is not fresh]
    fresh.dtl, fresh.opened, fresh.create_txg = 1.0, pool.t, pool.txg


def _keep(pool: PoolState, member: Member) -> None:
    """A spare that stays for good is no spare any more."""
    kept = leaves_of(member)
    pool.spares = [spare for spare in pool.spares if not any(spare is leaf for leaf in kept)]


def _release(pool: PoolState, leaf: Leaf) -> None:
    leaf.dtl, leaf.deferred, leaf.rebuilding = 0.0, False, False
    if leaf.present and not any(leaf is x for x in pool.spares):
        pool.host.shelf = [*pool.host.shelf, leaf]


def _resilver(pool: PoolState, top: Top, fresh: Leaf, sequential: bool) -> None:
    """Starts, restarts or defers, as dsl_scan_setup and dsl_scan_sync of 2.3 do."""
    _cancel_scrub(pool)
    current = pool.scan
    if sequential:
        known = top.rebuild.targets if top.rebuild and top.rebuild.state == rebuild.ACTIVE else []
        rebuild.begin(pool, top, [*known, fresh])
        return
    if current is None or current.state != SCANNING:
        lifecycle.resilver_all(pool)
        return
    wanted = max(1.0, current.total - current.skipped)
    early = current.issued / wanted < pool.tunables["zfs_resilver_defer_percent"] / 100.0
    never = pool.one_stage or pool.tunables["zfs_resilver_disable_defer"]  # resilver_defer: 0.8
    if early or never:
        lifecycle.resilver_all(pool)
    else:
        fresh.deferred = True


def _cancel_scrub(pool: PoolState) -> None:
    current = pool.scan
    if current is not None and (current.function, current.state) == (SCRUB, SCANNING):
        current.state, current.end, current.paused_since = CANCELED, pool.now, 0.0
        pool.note("scrub_abort", "scrub canceled by the replacement", "notice")
