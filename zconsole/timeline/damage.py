"""Damage that was seen and that zpool no longer tells of, until a scan has read everything again.

``zpool clear`` sets the counters to 0 and empties the list of damaged files (zfs_ioc_clear in
module/zfs/zfs_ioctl.c); it repairs nothing. An import sets the counters of devices to 0, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo

from zconsole.pool.model import Pool, Sample, Scan
from zconsole.pool.scan_outcome import started
from zconsole.pool.topology import Placed, data_vdevs
from zconsole.timeline.scrubs import NEARLY_ALL, is_full_scrub
from zconsole.units import counted

AT_ONCE = 60.0
"""Seconds between two samples up to which what happened meanwhile has the time of the later one."""


@dataclass(frozen=True, slots=True)
class Damage:
    """The damage of a pool as it was counted last, and what of it was cleared."""

    t: float = 0.0
    """Epoch seconds of the sample that it is of."""
    errors: int = 0
    """``Pool.error_count``."""
    checksum: Mapping[str, int] = field(default_factory=dict)
    """Checksum errors of devices that have any, by the key of the vdev."""
    risen: float | None = None
    """When any of these last rose; None once a scan of everything has found no errors since."""
    cleared: float | None = None
    """When any of these last fell to 0 unchecked; None if they did not."""
    sudden: bool = True
    """Whether the sample before ``cleared`` was at most a minute older."""
    errors_cleared: int = 0
    checksum_cleared: int = 0


class DamageTracker:
    """Takes every sample of a pool; tells what was cleared and not checked since."""

    def __init__(self, tz: tzinfo) -> None:
        self._tz = tz
        self.last = Damage()

    def push(self, sample: Sample, tree: Mapping[str, Placed]) -> None:
        """Take in a sample and the vdevs of its tree by key."""
        pool, last = sample.pool, self.last
        errors = last.errors if pool.error_count is None else pool.error_count
        checksum = _checksum_errors(tree)
        left = last.checksum.keys() & tree.keys() - checksum.keys()
        fell = sum(last.checksum[key] for key in left)
        rose = any(count > last.checksum.get(key, 0) for key, count in checksum.items())
        now = replace(last, t=sample.t, errors=errors, checksum=checksum)
        if errors > last.errors or rose:
            now = replace(now, risen=sample.t)
        now = _checked(now, sample)
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
        """``418 errors were cleared at 12:04 and not checked since: scrub to know``, or None."""
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


def _checksum_errors(tree: Mapping[str, Placed]) -> dict[str, int]:
    return {
        key: place.vdev.errors.cksum
        for key, place in tree.items()
        if place.vdev.errors.cksum and not place.vdev.children
    }


def _checked(damage: Damage, sample: Sample) -> Damage:
    """Without what a scan of everything has checked that began after the newest damage was seen.

    Where it ended with errors, these are what is known from then on.
    """
    for scan in sample.pool.scans:
        began = started(scan)
        if damage.risen is None or began is None or began < damage.risen or scan.errors is None:
            continue
        if _reads_everything(scan, sample):
            found = damage.risen if scan.errors else None
            damage = Damage(damage.t, damage.errors, damage.checksum, found)
    return damage


def _reads_everything(scan: Scan, sample: Sample) -> bool:
    """Whether it read all copies of all blocks, and has finished.

    A resilver of a raidz reads all columns, as a scrub does (vdev_raidz_io_start_read in
    module/zfs/vdev_raidz.c), one of a mirror only one side (vdev_mirror_io_start).
    """
    if scan.function != "resilver" or scan.state != "finished":
        return is_full_scrub(scan, sample.version)
    tops = data_vdevs(sample.pool.root)
    if len(tops) != 1 or not tops[0].kind.startswith("raidz") or scan.skipped_bytes is None:
        return False
    return (scan.issued_bytes or 0) >= NEARLY_ALL * (scan.total_bytes or float("inf"))
