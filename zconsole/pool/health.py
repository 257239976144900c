"""Is it all right? One word, and why, worst first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from zconsole.pool.model import Pool, SampleFailure, Scan, Vdev
from zconsole.pool.redundancy import REPAIRS, is_complete
from zconsole.pool.topology import is_group
from zconsole.units import duration, size


class Health(NamedTuple):
    """Is it all right? ``word`` first, then why, worst first."""

    word: str
    """OK, DEGRADED, NOT RESTORED, FAULTED, SUSPENDED, UNAVAIL, ERRORS, STALE,
    NOT IMPORTED."""
    severity: str
    """ok, notice, warning or error."""
    reasons: tuple[str, ...] = ()


SETTLE = 15.0
"""Seconds after a repair's end in which the kernel still detaches what was replaced, and after a
replacement in which its repair begins."""
_UPKEEP = re.compile(r"\((?:\d+% )?(?:un)?(?:initializ|trim)")
"""How the notes of initialize and trim begin, which say nothing of why a device is gone."""
LOST_STATES = frozenset({"FAULTED", "UNAVAIL", "SUSPENDED"})


def health(pool: Pool, now: float, regrouped: float | None = None) -> Health:
    """The pool's condition from its own figures, at epoch second ``now``.

    The word is the worst that holds of FAULTED, UNAVAIL and SUSPENDED, NOT RESTORED (redundancy
    is not restored and no repair runs), ERRORS (damaged data), DEGRADED, OK; UNKNOWN where the
    source shows neither a state nor a device, as with the scan lines of saved output alone. Rows
    of devices tell by their states whether it is DEGRADED, too: of a disk that the kernel itself
    faults (spa_async_fault_vdev, module/zfs/spa.c 2.4.4) the vdevs above stay ONLINE.
    ``regrouped``: when a replacing vdev or a waiting device was last seen to come; a repair
    begins some transaction groups later.
    """
    unrestored = tuple(not_restored(pool, now, regrouped))
    reasons = (*unrestored, *_data_errors(pool), *_devices(pool))
    if pool.state in LOST_STATES:
        return Health(pool.state or "", "error", (*_lost(pool), *reasons))
    if unrestored:
        return Health("NOT RESTORED", "error", reasons)
    if pool.error_count or pool.damaged:
        return Health("ERRORS", "error", reasons)
    if pool.state not in (None, "ONLINE"):
        return Health(pool.state, "warning", reasons)
    if pool.state is None and not pool.root.children:
        return Health("UNKNOWN", "notice", reasons)
    if any(map(_is_impaired, pool.root.walk())):
        return Health("DEGRADED", "warning", reasons)
    noisy = tuple(_counters(pool.root))
    return Health("OK", "notice" if noisy else "ok", (*reasons, *noisy))


def unreachable(trouble: SampleFailure, age: float) -> Health:
    """The health of a pool that gives no fresh sample: the last good one is ``age`` seconds old."""
    lost = trouble.kstat if trouble.kstat in LOST_STATES else None
    word = lost or ("NOT IMPORTED" if trouble.absent else "STALE")
    seen = f"last seen {duration(age)} ago"
    return Health(word, "error" if lost else "warning", (trouble.text, seen))


def not_restored(pool: Pool, now: float, regrouped: float | None = None) -> Iterator[str]:
    """Why redundancy is not restored though no repair runs; nothing while one still does.

    After ``dsl_scan_done`` a replacing or spare vdev goes away only if the DTLs emptied: not with
    scan errors, and not while a checkpoint exists (module/zfs/dsl_scan.c, vdev.c 2.3.9). What
    stays tells that, as a later scrub's figures take the place of the repair's.
    """
    if not pool.scans or any(s.function in REPAIRS and s.active for s in pool.scans):
        return
    newest = _newest_repair(pool.scans)
    ended = newest.end if newest is not None else None
    settling = any(0 <= now - t < SETTLE for t in (ended, regrouped) if t is not None)
    groups = [] if settling else list(_unfilled(pool, newest))
    if groups and newest is not None and newest.state == "canceled":
        yield "the last repair was canceled"
    elif newest is not None and newest.errors:
        yield f"the last repair ended with {newest.errors} errors"
    if groups:
        since = f"after the {newest.function}" if newest is not None else "and nothing fills it"
        yield f"{', '.join(groups)} still there {since}"
        if _checkpointed(pool):
            yield "a checkpoint keeps a resilver from completing; discard it, then resilver again"
    waiting = [v.name for v in pool.root.walk() if v.awaiting_resilver]
    if waiting and not settling:
        yield f"{', '.join(waiting)} still waiting for a resilver"


def _unfilled(pool: Pool, newest: Scan | None) -> Iterator[str]:
    """Replacing and spare vdevs that a good repair would have ended.

    Where no repair is known any more, a whole spare in the place of a lost device waits for none.
    """
    for vdev in filter(is_group, pool.root.walk()):
        lost = vdev.children[0].state != "ONLINE"
        stands_in = vdev.kind == "spare" and lost and is_complete(vdev)
        if newest is not None or not stands_in or _checkpointed(pool):
            yield vdev.name


def _checkpointed(pool: Pool) -> bool:
    return any(a.kind == "checkpoint" for a in pool.activities)


def left_behind(root: Vdev | None) -> bool:
    """Whether something is there that a good repair takes away at its end or moments after it."""
    return root is not None and any(is_group(v) or v.awaiting_resilver for v in root.walk())


def _newest_repair(scans: tuple[Scan, ...]) -> Scan | None:
    repairs = [s for s in scans if s.function in REPAIRS and s.state in ("finished", "canceled")]
    return max(repairs, key=lambda s: s.end or s.start or 0.0, default=None)


def _is_impaired(vdev: Vdev) -> bool:
    """Whether a vdev tells that its pool, whatever its own state, is not whole."""
    apart = vdev.kind == "root" or vdev.vclass in ("spare", "cache")
    return not apart and vdev.state not in ("ONLINE", "")


def _lost(pool: Pool) -> Iterator[str]:
    if pool.state == "SUSPENDED":
        yield "all I/O is suspended: bring the device back, then clear"
    elif pool.message:
        yield pool.message


def _data_errors(pool: Pool) -> Iterator[str]:
    if pool.error_count:
        plural = "s" if pool.error_count != 1 else ""
        yield f"{pool.error_count} data error{plural}: files are damaged"
    elif pool.damaged:
        yield "data errors, it is not told how many: files are damaged"


def _devices(pool: Pool) -> Iterator[str]:
    leaves = (v for v in pool.root.leaves() if v.kind != "root" and v.vclass != "spare")
    gone = [v for v in leaves if v.state != "ONLINE" and not v.resilvering]
    for vdev in gone:
        why = vdev.note.partition("  ")[0]
        detail = f" ({why.strip('()')})" if why and not _UPKEEP.match(why) else ""
        yield f"{vdev.name} {vdev.state}{detail}"


def _counters(root: Vdev) -> Iterator[str]:
    for leaf in root.leaves():
        counts = leaf.errors
        if counts.total:
            yield (
                f"{leaf.name}: {counts.read or 0} read, {counts.write or 0} write, "
                f"{size(counts.cksum or 0)} checksum errors"
            )
