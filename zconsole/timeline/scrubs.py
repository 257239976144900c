"""How long ago a pool was scrubbed in full, and damage that no scrub has checked since.

In samples a later scan replaces a scrub, so the last full scrub is remembered. ``zpool clear`` sets
the counters to 0 (vdev_clear in module/zfs/vdev.c) but repairs nothing. An import also sets the
counters of devices to 0, and any scan that ends renews the list of damaged files. So damage that
zpool no longer reports still counts until a scan has read everything again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from math import inf
from typing import NamedTuple

from zconsole.config.settings import SCRUB_OVERDUE_AFTER
from zconsole.pool.model import Placed, Pool, Sample, Scan, data_vdevs, parse_version
from zconsole.pool.scan_outcome import SAME_END, started
from zconsole.timeline.events import is_ahead
from zconsole.units import counted, days

PARTIAL_SINCE = (2, 3)
"""The first OpenZFS with partial scrubs (``-C``, ``-S``, ``-E``)."""
NEARLY_ALL = 0.9
"""Least share of a pool that a full scrub reads; it reads less if space was freed in the
meantime. The total of a partial scrub is the whole pool, too: what is older than its range is not
counted at all (dsl_scan_visitbp), what is newer is counted as skipped (dsl_scan_scrub_cb)."""


class ScrubAge(NamedTuple):
    """The last finished full scrub of a pool. Times in epoch seconds, durations in seconds."""

    last: float | None = None
    """Time at which it ended."""
    age: float | None = None
    """Seconds since then or, for a pool never scrubbed, since its creation. None if unknown."""
    overdue: bool | None = None
    """True if that is too long; None if the age is unknown."""
    never: bool = False
    """True if the pool is known never to have been scrubbed."""

    @property
    def words(self) -> str:
        """``last scrub 12 days ago``, ``no scrub in 41 days``; empty if nothing is known."""
        if self.age is None:
            return "never scrubbed" if self.never else ""
        ago = days(self.age)
        return f"no scrub in {ago}" if self.never else f"last scrub {ago} ago"


UNKNOWN = ScrubAge()


class ScrubTracker:
    """Remembers a pool's last full scrub, which a later scan replaces in samples."""

    def __init__(self, overdue_after: float | None = SCRUB_OVERDUE_AFTER) -> None:
        """``overdue_after`` is in seconds, None for a pool that is not judged (saved output)."""
        self._overdue_after = overdue_after
        self._last: float | None = None
        self._guid: str | None = None

    def recall(self, end: float | None, now: float = inf) -> None:
        """Record the end of a full scrub; times of one that is known already may differ slightly.

        If its clock was ahead, the scrub ended at an unknown time before ``now``.
        """
        if is_ahead(self._last, now):
            self._last = now
        if is_ahead(end, now):
            end = now if self._last is None else None
        if end is not None and (self._last is None or end > self._last + SAME_END):
            self._last = end

    def push(self, sample: Sample) -> ScrubAge:
        """Add a sample; return what is known then."""
        pool = sample.pool
        before, self._guid = self._guid, pool.guid or self._guid
        if before not in (None, self._guid):  # another pool of the same name
            self._last = None
        for scan in pool.scans:
            if is_full_scrub(scan, sample.version):
                self.recall(scan.end, sample.t)
        self.recall(pool.full_scrub, sample.t)
        told = pool.scans_known and not pool.lacks
        never = self._last is None and (pool.created is not None or (told and not pool.scans))
        since = self._last if self._last is not None else pool.created
        if since is None or not sample.dated:
            return ScrubAge(self._last, never=never)
        age = max(0.0, sample.t - since)
        overdue = None if self._overdue_after is None else age > self._overdue_after
        return ScrubAge(self._last, age, overdue, never)


def is_full_scrub(scan: Scan, version: str | None) -> bool:
    """Return whether a scan is a finished scrub of the whole pool, as far as is known.

    ``version`` is the OpenZFS it ran on. Without history, if partial scrubs are possible, a scrub
    that read nearly everything counts as full; so does one in saved output of an unknown release,
    unless its figures contradict that.
    """
    if scan.function != "scrub" or scan.state != "finished":
        return False
    if scan.full is not None:
        return scan.full
    running = parse_version(version)
    if running and running < PARTIAL_SINCE:
        return True
    if scan.total_bytes is None or scan.issued_bytes is None:
        return not running
    return scan.issued_bytes >= NEARLY_ALL * scan.total_bytes


AT_ONCE = 60.0
"""Seconds between two samples up to which a change between them gets the time of the later one."""


@dataclass(frozen=True, slots=True)
class Damage:
    """The last counted damage of a pool, and how much of it was cleared."""

    t: float = 0.0
    """Epoch seconds of its sample."""
    errors: int = 0
    """Number of data errors (``Pool.error_count``)."""
    checksum: Mapping[str, int] = field(default_factory=dict)
    """Checksum errors of devices that have any, by the key of the vdev."""
    risen: float | None = None
    """Time at which any of these last rose; None once a full scan has found no errors since."""
    cleared: float | None = None
    """Time at which any of these last fell to 0 unchecked; None if they did not."""
    sudden: bool = True
    """True if the sample before ``cleared`` was at most a minute older."""
    errors_cleared: int = 0
    checksum_cleared: int = 0


class DamageTracker:
    """Takes every sample of a pool; reports damage that was cleared and not checked since."""

    def __init__(self, tz: tzinfo) -> None:
        self._tz = tz
        self.last = Damage()

    def set_back(self, seconds: float) -> None:
        """Shift all times: the clock was set back; ``seconds`` is negative."""
        last = self.last
        self.last = replace(
            last,
            t=last.t + seconds,
            risen=last.risen and last.risen + seconds,
            cleared=last.cleared and last.cleared + seconds,
        )

    def push(self, sample: Sample, tree: Mapping[str, Placed]) -> None:
        """Add a sample and the vdevs of its tree by key."""
        pool, last = sample.pool, self.last
        errors = last.errors if pool.error_count is None else pool.error_count
        leaves = ((key, place.vdev) for key, place in tree.items() if not place.vdev.children)
        checksum = {key: vdev.errors.cksum for key, vdev in leaves if vdev.errors.cksum}
        left = last.checksum.keys() & tree.keys() - checksum.keys()
        fell = sum(last.checksum[key] for key in left)
        rose = any(count > last.checksum.get(key, 0) for key, count in checksum.items())
        now = replace(last, t=sample.t, errors=errors, checksum=checksum)
        if errors > last.errors or rose:
            now = replace(now, risen=sample.t)
        for scan in pool.scans:
            # A full scan that began after the newest damage was seen has checked it. If it ended
            # with errors, these are the known damage from then on.
            began = started(scan)
            if now.risen is None or began is None or began < now.risen or scan.errors is None:
                continue
            if _reads_everything(scan, sample):
                found = now.risen if scan.errors else None
                now = Damage(now.t, now.errors, now.checksum, found)
        gone = last.errors if errors == 0 else 0
        if now.risen is not None and (gone or fell):
            now = replace(
                now,
                cleared=sample.t,
                sudden=sample.t - last.t <= AT_ONCE,
                errors_cleared=now.errors_cleared + gone,
                checksum_cleared=now.checksum_cleared + fell,
            )
        self.last = now

    def unchecked(self, pool: Pool, now: float) -> str | None:
        """Return a line about cleared damage that no scan has checked, or None.

        For example ``418 errors were cleared at 12:04 and not checked since: scrub to know``.
        """
        last = self.last
        if last.cleared is None or last.risen is None:
            return None
        kind = "error" if last.errors_cleared else "checksum error"
        count = last.errors_cleared or last.checksum_cleared
        when = datetime.fromtimestamp(last.cleared, self._tz)
        today = when.date() == datetime.fromtimestamp(now, self._tz).date()
        clock = when.strftime("%H:%M" if today else "%d %b %H:%M")
        scrubs = any(
            scan.function == "scrub" and scan.active and (scan.start or 0.0) >= last.risen
            for scan in pool.scans
        )
        return (
            f"{counted(count, kind)} {'was' if count == 1 else 'were'} cleared "
            f"{'at' if last.sudden else 'before'} {clock} and not checked since: "
            f"{'the running scrub will tell' if scrubs else 'scrub to know'}"
        )


def _reads_everything(scan: Scan, sample: Sample) -> bool:
    """Return whether a scan has finished and read all copies of all blocks.

    A resilver of a raidz reads all columns, as a scrub does (vdev_raidz_io_start_read in
    module/zfs/vdev_raidz.c), one of a mirror only one side (vdev_mirror_io_start).
    """
    if scan.function != "resilver" or scan.state != "finished":
        return is_full_scrub(scan, sample.version)
    tops = data_vdevs(sample.pool.root)
    if len(tops) != 1 or not tops[0].kind.startswith("raidz") or scan.skipped_bytes is None:
        return False
    return (scan.issued_bytes or 0) >= NEARLY_ALL * (scan.total_bytes or float("inf"))
