"""Outcome of scans: whether they have ended, and whether redundancy is restored.

After ``dsl_scan_done`` a replacing or spare vdev is removed only if its DTLs are empty: not with
scan errors, and not while a checkpoint exists (module/zfs/dsl_scan.c, vdev.c 2.3.9). So a vdev that
is left shows an incomplete repair, even after a later scrub has replaced the repair's counters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from zconsole.keyed_text import KeyedText
from zconsole.pool.model import Pool, Scan, Vdev, is_group
from zconsole.pool.redundancy import REPAIRS, SEEN, is_complete
from zconsole.units import counted, size

KEEP_OLD = "keep the old disk: it still counts"
"""Advice if a repair left redundancy to depend on the old disk."""
BY_SPARE = "a spare stands in: replace or detach the lost disk"
"""Advice if a hot spare provides the redundancy; it stays INUSE until then."""
GRACE = 20.0
"""Seconds to wait after a scan's end before judging it, or after a replacement for its repair.

The kernel removes replaced devices in an asynchronous task some txgs later
(spa_vdev_resilver_done), and may begin another pass.
"""


READS = ("ONLINE", "DEGRADED", "")
"""States in which a device can be filled; "" if none is shown."""
WELL = frozenset({"OK", "ATTENTION"})
"""Health words with nothing to restore: errors of a device may be older than the scan."""


class ScanOutcome(NamedTuple):
    """Outcome of a scan."""

    over: bool
    """Whether no scan of its pool is running or paused."""
    restored: bool | None
    """Whether redundancy is complete after it; None while that may still change."""
    left_behind: bool
    """Whether something remains that a successful repair would have removed."""
    canceled: bool


class LastScan(NamedTuple):
    """The newest ended scan of a function. ``end`` in epoch seconds, ``duration`` in seconds."""

    function: str
    result: str
    """``RESTORED``, ``NOT_RESTORED`` or ``CANCELED``."""
    end: float
    duration: float | None
    errors: int | None


RESTORED, NOT_RESTORED, CANCELED = "restored", "not restored", "canceled"


def last_scan(pool: Pool, scan: Scan, word: str, now: float) -> LastScan | None:
    """Return the outcome of ``scan`` from the pool's current state, at epoch second ``now``.

    None while it or another scan of its pool is running, and until its result is final.
    """
    if scan.end is None or scan.active:
        return None
    waited = None if any(each.active for each in pool.scans) else now - scan.end
    outcome = scan_outcome(scan, pool.root, word, waited)
    if outcome.restored is None:
        return None
    result = CANCELED if outcome.canceled else RESTORED if outcome.restored else NOT_RESTORED
    took = scan.duration if scan.start is None else scan.end - scan.start
    return LastScan(scan.function, result, scan.end, took, scan.errors)


def scan_outcome(
    scan: Scan | None, root: Vdev | None, word: str, waited: float | None
) -> ScanOutcome:
    """Return the outcome of ``scan`` in a pool with this tree and this health word.

    ``waited``: seconds since the last scan was seen to run, negative if the clock was set back;
    None while one runs.
    """
    canceled = scan is not None and scan.state == "canceled"
    behind = left_behind(root)
    bad = canceled or behind or word not in WELL or bool(scan is not None and scan.errors)
    if waited is None or (bad and 0 <= waited < GRACE):
        return ScanOutcome(waited is not None, None, behind, canceled)
    return ScanOutcome(True, not bad, behind, canceled)


def settling(now: float, *ends: float | None) -> bool:
    """Whether any of these times is within GRACE, so that more changes may follow."""
    return any(0 <= now - t < GRACE for t in ends if t is not None)


def is_end(scan: Scan, later: Scan) -> bool:
    """Whether ``later`` is the end of ``scan``, or a scan after it.

    If the pool was rewound, neither is the case: the scan is gone, unfinished.
    """
    if None in (scan.start, later.end):
        return True
    return later.key == scan.key or (later.end or 0.0) >= (scan.start or 0.0)


SAME_END = 2.0
"""Seconds by which sources may differ on the end of a scan: text prints whole seconds."""
MINUTE = 60.0
"""Seconds by which the duration of a scan may be too short: before 0.8 text has whole minutes."""


def same_scan(known: Scan, scan: Scan) -> bool:
    """Whether two samples, perhaps of different sources, show the same scan; ``known`` is older.

    Text shows no start of an ended scan: it is identified by its end, or by its duration if it was
    seen running. Solaris 10 shows no start at all: a scan that runs after one has ended is another.
    """
    if (known.function, known.vdev) != (scan.function, scan.vdev):
        return False
    if scan.active or None not in (known.start, scan.start):
        return known.start == scan.start and (known.active or scan.start is not None)
    if known.active and known.start is not None:
        begun = started(scan)
        # A rebuild's length leaves out the time in which the pool was exported.
        if begun is None or scan.function == "rebuild":
            return scan.end is None or scan.end >= known.start
        return abs(begun - known.start) <= MINUTE
    return known.end is None or scan.end is None or abs(known.end - scan.end) <= SAME_END


def left_behind(root: Vdev | None) -> bool:
    """Whether something remains that a successful repair removes at its end or shortly after."""
    return root is not None and any(is_group(v) or v.awaiting_resilver for v in root.walk())


def not_restored(
    pool: Pool,
    now: float,
    regrouped: float | None = None,
    damaged: Iterable[tuple[str, int]] = (),
) -> Iterator[str]:
    """Yield reasons why redundancy is not restored; nothing while a repair is running.

    ``regrouped``: epoch second at which a replacing vdev or a device waiting for a resilver was
    last added; ``damaged``: devices that returned damaged data to the last resilver, and how often.
    """
    if not pool.scans or any(s.function in REPAIRS and s.active for s in pool.scans):
        return
    newest = _newest_repair(pool)
    wait = settling(now, newest.end if newest is not None else None, regrouped)
    groups = [] if wait else list(_unfilled(pool, newest))
    kept = list(_checkpoint(pool)) if groups else []
    yield from kept
    if groups and newest is not None and newest.state == "canceled":
        yield "the last repair was canceled"
    elif newest is not None and newest.errors:
        yield f"the last repair ended with {counted(newest.errors, 'error')}"
    if groups:
        since = f"after the {newest.function}" if newest is not None else "and no resilver runs"
        yield f"{', '.join(vdev.name for vdev in groups)} still there {since}"
        whole = newest is None or not newest.errors
        news = [new for v in groups if v.kind == "replacing" for new in v.children[1:]]
        if whole and not kept and any(new.state in READS for new in news):
            yield _resilver_again(pool)
        for new in (new for new in news if new.state not in READS):
            yield f"no resilver fills {new.name} ({new.state}): bring it back or detach it"
        # Redundancy depends on the old disk, so it must stay.
        if any(v.kind == "replacing" and is_complete(v.children[0]) for v in groups):
            yield KEEP_OLD
        if whole and not kept and any(map(_stands_in, groups)):
            yield BY_SPARE
    waiting = [v.name for v in pool.root.walk() if v.awaiting_resilver]
    if waiting and not wait:
        yield f"{', '.join(waiting)} still waiting for a resilver"
    yield from _scrub_after_rebuild(pool.scans)
    # Such a resilver may leave damage: a later scrub repaired more (seen on OpenZFS 2.2.11).
    for name, count in damaged:
        errors = "1 checksum error" if count == 1 else f"{count} checksum errors"
        yield f"{name} returned damaged data to the resilver ({errors}): scrub"


def _newest_repair(pool: Pool) -> Scan | None:
    """Return the repair that ended last."""
    ended = (s for s in pool.scans if s.state in ("finished", "canceled"))
    repairs = (s for s in ended if s.function in REPAIRS)
    return max(repairs, key=lambda s: s.end or s.start or 0.0, default=None)


def canceled_repair(pool: Pool) -> Iterator[str]:
    """Yield a warning if the last repair was canceled and no scrub has checked redundancy since.

    Nothing while a later scrub or repair is running: the kernel then forgets the earlier scan.
    """
    newest = _newest_repair(pool)
    if newest is None or newest.state != "canceled":
        return
    later = [s for s in pool.scans if (s.end or s.start or 0.0) > (newest.end or 0.0)]
    scrubs = (s for s in later if s.function == "scrub" and s.state != "canceled")
    checked = any(s.active or not s.errors for s in scrubs)
    if not checked and not any(s.function in REPAIRS and s.active for s in pool.scans):
        yield "the last repair was canceled: scrub to check redundancy"


def _scrub_after_rebuild(scans: tuple[Scan, ...]) -> Iterator[str]:
    """Advise another scrub if the one after a rebuild repaired data.

    A rebuild copies without checking checksums, and one scrub may not repair everything.
    """
    rebuilt = [s.end for s in scans if s.function == "rebuild"]
    for scan in scans:
        own = (start := started(scan)) is not None and settling(start, *rebuilt)
        if scan.function == "scrub" and scan.state == "finished" and scan.processed_bytes and own:
            yield f"the scrub after the rebuild repaired {size(scan.processed_bytes)}: scrub again"


def started(scan: Scan) -> float | None:
    """Return when a scan began; from its end and duration (whole seconds in text) if not shown."""
    if scan.start is not None or scan.end is None or scan.duration is None:
        return scan.start
    return scan.end - scan.duration + 1.0


def has_checkpoint(pool: Pool) -> bool:
    """Whether a checkpoint exists that is not being discarded: it keeps resilvers from completing.

    ``dsl_scan_done`` then leaves the DTLs as they are (module/zfs/dsl_scan.c 2.2.11).
    """
    return pool.checkpoint is not None and not pool.checkpoint.discarding


def blocked_repair(pool: Pool) -> Iterator[str]:
    """Yield a warning if a checkpoint keeps the running repair from removing replaced devices.

    ``dsl_scan_done`` looks for the checkpoint when the resilver ends: one that is gone by then does
    no harm.
    """
    runs = [scan.function for scan in pool.scans if scan.function in REPAIRS and scan.active]
    if not has_checkpoint(pool) or not runs:
        return
    again = "resilver" in runs
    yield _checkpoint_blocks(
        pool,
        " before the resilver ends" if again else "",
        ", else it has to run again" if again else "",
    )


def _checkpoint_blocks(pool: Pool, when: str = "", otherwise: str = "") -> str:
    blocks = "a checkpoint blocks the replacement: "
    return KeyedText(
        f"{blocks}zpool checkpoint -d {pool.name}{when}{otherwise}",
        f"{blocks}discard it{when} ({{keys}}){otherwise}",
        "actions",
    )


def _checkpoint(pool: Pool) -> Iterator[str]:
    """If a checkpoint is the cause, yield that, and the commands to run."""
    if pool.checkpoint is None:
        return
    waits = "a checkpoint blocked the resilver: wait until it is discarded"
    yield _checkpoint_blocks(pool) if has_checkpoint(pool) else waits
    yield "then " + _resilver_again(pool)


def _resilver_again(pool: Pool) -> str:
    said = f"resilver again: zpool resilver {pool.name}"
    return KeyedText(said, "resilver again ({keys})", "scans")


def _stands_in(group: Vdev) -> bool:
    """Whether a complete spare replaces a lost device."""
    lost = group.children[0].state != "ONLINE"
    return group.kind == "spare" and lost and is_complete(group)


def _unfilled(pool: Pool, newest: Scan | None) -> Iterator[Vdev]:
    """Yield replacing and spare vdevs that a successful repair would have removed.

    Two kinds of spare need no repair: a complete one for a lost device, if no repair is known, and
    one next to a complete device, after a successful repair.
    """
    well = newest is None or (newest.state == "finished" and not newest.errors)
    for vdev in filter(is_group, pool.root.walk()):
        # Of two complete devices, the kernel detaches the spare only if the other one came back
        # (vdev_unspare, module/zfs/vdev.c), not if the spare was attached by hand.
        beside = vdev.kind == "spare" and all(
            is_complete(v) and not v.unfilled for v in vdev.children
        )
        whole = (newest is None and _stands_in(vdev)) or (well and beside)
        if not whole or pool.checkpoint is not None:
            yield vdev


def skipped_devices(root: Vdev, scan: Scan) -> tuple[str, ...]:
    """Return the names of new devices that a running resilver skips while it fills others.

    They are filled in another pass. zpool does not mark them before 0.8, nor if they wait for a
    reason other than a deferred resilver.
    """
    begun = scan.function == "resilver" and scan.state == "running" and (scan.percent or 0) >= SEEN
    if not begun or not any(leaf.resilvering for leaf in root.leaves()):
        return ()
    news = (new for vdev in root.walk() if vdev.kind == "replacing" for new in vdev.children[1:])
    return tuple(
        new.name
        for new in news
        if new.state == "ONLINE" and not new.children and new.unfilled is not False
        if not (new.resilvering or new.awaiting_resilver)
    )


def scan_notes(root: Vdev, scan: Scan) -> Iterator[str]:
    """Yield notes on devices that a running resilver does not fill."""
    if names := skipped_devices(root, scan):
        yield f"{', '.join(names)} not being filled in this pass: another one has to follow"
    at_work = scan.issued_bytes if scan.two_stage else scan.scanned_bytes
    resilvers = scan.function == "resilver" and scan.state == "running"
    if not (resilvers and at_work and scan.processed_bytes == 0 and root.children):
        return
    lacking = any(
        is_group(vdev)
        or vdev.resilvering
        or vdev.awaiting_resilver
        or vdev.unfilled
        or (vdev.state != "ONLINE" and vdev.vclass != "spare")
        for vdev in root.walk()
    )
    if not lacking:
        yield "no device is shown that lacks data, and nothing has been written so far"
