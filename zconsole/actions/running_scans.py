"""Descriptions of running scans, and what a new device to fill does to them.

From spa_vdev_attach in module/zfs/spa.c, dsl_scan_assess_vdev (of vdev_open) and dsl_scan_sync in
dsl_scan.c, and vdev_rebuild.c (2.1 to 2.4): any attach stops a scrub; a resilver is restarted
unless the device can be deferred, whether it is new or comes back (online, clear).
"""

from __future__ import annotations

from zconsole.actions.plan import Facts, Situation
from zconsole.pool.model import Scan, Vdev
from zconsole.scan_report.resilver_time import NO_SCAN
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.scans import WORDS
from zconsole.units import duration


def describe(scan: Scan) -> str:
    """Return a scan in words, such as ``rebuild of mirror-0 running (3.0 %)``."""
    word = WORDS.get(scan.function, scan.function)
    where = f" of {scan.vdev}" if scan.vdev else ""
    return f"{word}{where} {scan.state} ({progress(scan)})"


def progress(scan: Scan) -> str:
    """Return a scan's progress: ``38.2 %``, or ``an unknown share``.

    While metadata is scanned, little is issued, so the share of scanned metadata is added.
    """
    share = "an unknown share" if scan.percent is None else f"{scan.percent:.1f} %"
    total, scanned = scan.total_bytes, scan.scanned_bytes
    if scan.stage != "scanning" or not scan.two_stage or not total or scanned is None:
        return share
    return f"{share}, finding blocks {100.0 * scanned / total:.1f} %"


def disturbed(
    situation: Situation, rebuilt: Vdev | None = None, *, returns: bool = False
) -> tuple[str, ...]:
    """Return what running scans lose if a resilver starts, one sentence per scan.

    ``rebuilt``: the top-level vdev, if a sequential rebuild of it starts instead. ``returns``: the
    resilver is for a device that comes back, and reads only what it missed.
    """
    said = discarded(situation)
    if rebuilt is None:
        resilver = situation.active("resilver")
        own = "a pass of its own, for what it missed" if returns else "a full pass of its own"
        return (*said, *((_on_resilver(situation.facts, resilver, own),) if resilver else ()))
    again = (s for s in situation.running if s.function == "rebuild" and s.vdev == rebuilt.name)
    return (
        *said,
        *(
            f"the rebuild of {rebuilt.name} restarts from 0 with both devices:"
            f" {progress(scan)} is lost"
            for scan in again
        ),
    )


LITTLE = 10.0
"""Percent of a resilver up to which a restart for one common pass is worth it.

This is the default of zfs_resilver_defer_percent in OpenZFS 2.3.
"""


def after_running(situation: Situation, restarted: float = -1.0) -> str:
    """Return ``after the running resilver (about 1h33m left), `` if a new device waits for it.

    ``restarted``: percent up to which the plan restarts it instead.
    """
    runs = situation.active("resilver")
    if runs is None or not will_defer(situation.facts, runs.percent):
        return ""
    if (runs.percent or 0.0) <= restarted:
        return ""
    left = "" if situation.left is None else f" (about {duration(situation.left)} left)"
    return f"after the running resilver{left}, "


def takes(estimate: Estimate | None, work: str = "the resilver", wait: str = "") -> str:
    """Return how long a resilver is likely to take and why, or that it is unknown and why.

    ``wait``: what ``after_running`` returned, if the work can have to wait.
    """
    if estimate is None or estimate.eta is None:
        why = estimate.reason if estimate else ""
        return f"how long {work} takes is unknown: {why or NO_SCAN}"
    return f"{wait}{work} takes about {duration(estimate.eta)}, {estimate.reason}"


def discarded(situation: Situation) -> tuple[str, ...]:
    """Return the running and paused scrubs that any resilver discards, with their progress."""
    words = {"scrub": "scrub", "errorscrub": WORDS["errorscrub"]}
    return tuple(
        f"the {'paused' if scan.state == 'paused' else 'running'} {words[scan.function]} is"
        f" discarded at {progress(scan)}; a later one starts from 0"
        for scan in situation.running
        if scan.function in words
    )


def _on_resilver(facts: Facts, scan: Scan, own: str) -> str:
    """Return what one more device does to the running resilver, or ``own``, the pass it gets."""
    defers = will_defer(facts, scan.percent)
    if defers is None:
        return (
            "a resilver is running: the device waits for it, or restarts it from 0"
            f" ({progress(scan)} lost); the pool features that decide this are unknown"
        )
    if defers:
        return (
            f"resilver running ({progress(scan)}): the device waits for it (awaiting"
            f" resilver), then gets {own}"
        )
    return f"the running resilver restarts from 0 to include it ({progress(scan)} lost)"


def will_defer(facts: Facts, percent: float | None) -> bool | None:
    """Return whether another device waits for a resilver at this progress; None when unknown.

    Without the feature resilver_defer, or with zfs_resilver_disable_defer, it never waits; since
    2.3 it does not wait while less than zfs_resilver_defer_percent has been issued.
    """
    feature = facts.has("resilver_defer")
    if feature is None:
        return None
    if not feature or facts.parameters.get("zfs_resilver_disable_defer"):
        return False
    # This module parameter exists since 2.3; earlier releases always defer.
    threshold = facts.parameters.get("zfs_resilver_defer_percent")
    if threshold is None:
        return True if () < facts.version < (2, 3) else None
    return None if percent is None else percent >= threshold
