"""Ends of work and device failures: detaching, deferral, restarts and follow-on scans."""

from __future__ import annotations

from collections.abc import Sequence

from zconsole.sim import scan
from zconsole.sim.disk import CANT_OPEN, FAULTED, NO_ERRORS, OFFLINE, ONLINE, REMOVED, Leaf
from zconsole.sim.state import FINISHED, RESILVER, SCRUB, PoolState, SimulatedScan
from zconsole.sim.topology import REBUILT, Group, Top, groups, leaves_of, parent, siblings

HOUR = 3600.0


def errors(pool: PoolState, leaves: Sequence[Leaf], dt: float) -> None:
    """Add the errors that failing leaves make in ``dt`` seconds, and the repairs by scans."""
    for leaf in leaves:
        if leaf.error_rate is NO_ERRORS or not leaf.online or not leaf.in_flight:
            continue
        read, write, cksum, slow = (rate * dt / HOUR for rate in leaf.error_rate)
        before = int(leaf.reads.errors) + int(leaf.cksum_errors)
        leaf.reads.errors += read
        leaf.writes.errors += write
        leaf.cksum_errors += cksum
        leaf.slow_ios += slow
        if pool.scan is not None and pool.scan.running:
            # Each error is repaired by writing one record of 128 KiB.
            repaired = (int(leaf.reads.errors) + int(leaf.cksum_errors) - before) * 131072.0
            pool.scan.processed += repaired
            leaf.scan_processed += repaired


def conclude(pool: PoolState) -> None:
    """End work that is finished, and start work that waited for it."""
    for top in pool.tops:
        _conclude_rebuild(pool, top)
    current = pool.scan
    if current is not None and current.running and scan.ended(current):
        _conclude_scan(pool, current)


def _conclude_scan(pool: PoolState, current: SimulatedScan) -> None:
    """End a scan that is through, detach what it replaced, and resilver the devices that waited."""
    current.state, current.end = FINISHED, pool.now
    # Damage that can't be repaired is old data: a scrub from a later txg on doesn't read it.
    if current.function == SCRUB and not current.txgs[0]:
        current.errors += int(pool.data_errors)
    # With a checkpoint or an error the DTLs are kept, and so are the old devices (dsl_scan_done).
    is_clean = current.errors < 1 and pool.checkpoint is None
    for leaf in current.targets if is_clean else ():
        if leaf.online and not leaf.deferred:
            leaf.dtl = 0.0
    if current.function == SCRUB:
        pool.scrubbed_txg = current.txgs[1]
        pool.note("scrub_finish", f"scrub finished with {int(current.errors)} errors")
        return
    if is_clean:
        pool.note("resilver_finish", "resilver finished")
        _settle(pool)
    waiting = [leaf for leaf in pool.in_vdevs() if leaf.deferred and leaf.online]
    for leaf in waiting:
        leaf.deferred = False
    if waiting:
        scan.begin(pool, RESILVER, waiting)


def _conclude_rebuild(pool: PoolState, top: Top) -> None:
    current = top.rebuild
    if current is None or not current.active or current.scanned < current.estimate - 1.0:
        return
    current.state, current.end = REBUILT, pool.now
    for leaf in current.targets:
        leaf.dtl, leaf.rebuilding = 0.0, False
    pool.note("resilver_finish", "sequential rebuild finished")
    _settle(pool)
    if pool.tunables["zfs_rebuild_scrub_enabled"] and not pool.rebuilding:
        # It fills what came back meanwhile: it covers the DTLs (dsl_scan_setup_sync).
        scan.begin(pool, SCRUB, pool.lacking())


def _settle(pool: PoolState) -> None:
    """Detach the older devices of every replacing vdev whose newest device is complete.

    A spare vdev stays until one of its devices is detached, or until the failed one has been
    replaced: then the spare returns to the spares (spa_vdev_resilver_done_hunt).
    """
    for top in pool.tops:
        for group in groups(top):
            new = group.children[-1]
            if group.kind == "replacing" and isinstance(new, Leaf) and new.complete:
                _collapse(pool, top, group, new)


def _collapse(pool: PoolState, top: Top, group: Group, new: Leaf) -> None:
    """Put ``new`` in the place of ``group``; the spare that stood in becomes free again."""
    outer = parent(top, group)
    place = siblings(top, group)
    place[place.index(group)] = new
    for old in (leaf for member in group.children[:-1] for leaf in leaves_of(member)):
        pool.note("vdev_remove", f"{old.name} detached", vdev=old.path)
        release(pool, old)
    if outer is not None and outer.kind == "spare":
        place = siblings(top, outer)
        place[place.index(outer)] = new
        pool.note("vdev_remove", f"{leaves_of(outer.children[-1])[0].name} is a spare again")
    if pool.autoexpand:
        expand(top)


def release(pool: PoolState, leaf: Leaf) -> None:
    """Forget what a detached device was doing; it stays plugged in until somebody pulls it."""
    leaf.dtl, leaf.deferred, leaf.rebuilding = 0.0, False, False
    if leaf.present and leaf not in pool.spares:
        pool.host.shelf = [*pool.host.shelf, leaf]


def lose(pool: PoolState, leaf: Leaf, state: int = REMOVED, aux: int = 0) -> None:
    """Let a device stop answering; suspend the pool if redundancy does not cover it."""
    leaf.state, leaf.aux = state, aux
    leaf.present = leaf.present and state in (OFFLINE, FAULTED)
    word = {REMOVED: "REMOVED", FAULTED: "FAULTED", CANT_OPEN: "UNAVAIL", OFFLINE: "OFFLINE"}
    pool.note("statechange", f"{leaf.name} is {word[state]}", "error", leaf.path)
    for top in pool.tops:
        if leaf in list(top.leaves()) and top.failed:
            suspend(pool)


def suspend(pool: PoolState) -> None:
    """Suspend all I/O (failmode=wait)."""
    if not pool.suspended:
        pool.suspended = True
        pool.note("io_failure", "pool suspended: I/O has failed", "error")


def come_back(pool: PoolState, leaf: Leaf, missed: float) -> None:
    """Let a device answer again that lacks ``missed`` (0…1) of its data, and resilver that."""
    leaf.state, leaf.aux, leaf.present = ONLINE, 0, True
    pool.note("vdev_online", f"{leaf.name} is ONLINE", "notice", leaf.path)
    leaf.dtl = max(leaf.dtl, missed)
    if missed:
        resilver(pool, leaf)


def expand(top: Top) -> None:
    """Let ``top`` use the full size of its devices, once every one of them is larger."""
    top.space = max(top.space, top.usable)


def resilver(pool: PoolState, fresh: Leaf) -> None:
    """Start or restart a resilver for a device that lacks data, or let it wait for the running one.

    The kernel decides alike for a device that is attached and one that comes back
    (spa_vdev_attach in spa.c, dsl_scan_assess_vdev in dsl_scan.c): with the feature resilver_defer
    it waits. Then dsl_scan_sync restarts a resilver of which little is issued (since 2.3), or if
    zfs_resilver_disable_defer is set. Nothing begins during a rebuild (spa_async_thread).
    """
    current = pool.scan
    if pool.rebuilding:
        return
    if current is None or not current.active or current.function != RESILVER:
        resilver_all(pool)
        return
    wanted = max(1.0, current.total - current.skipped)
    early = current.issued / wanted < pool.tunables["zfs_resilver_defer_percent"] / 100.0
    if early or not pool.resilver_defer or pool.tunables["zfs_resilver_disable_defer"]:
        resilver_all(pool)
    else:
        fresh.deferred = True


def resilver_all(pool: PoolState) -> None:
    """(Re)start the resilver of all devices that lack data, except targets of a rebuild.

    Log devices are included: all metadata is walked for them, and nothing is issued.
    """
    previous = pool.scan
    aims = pool.lacking()
    if not aims:
        return
    for leaf in aims:
        leaf.deferred = False
    if previous is not None and previous.active:
        pool.note("history_event", "scan aborted, restarting", "warning")
    scan.begin(pool, RESILVER, aims)
