"""How long a resilver of a disk would take, from how fast scans of this pool went before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from zconsole.pool.model import Scan, Vdev
from zconsole.pool.redundancy import REPAIRS
from zconsole.pool.topology import data_vdevs
from zconsole.scan_report.report import ScanReport
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.eta.past import PastScan
from zconsole.timeline.frame import seconds_taken
from zconsole.units import percent, rate

LEAST_SECONDS = 30.0
LEAST_BYTES = 64 * 2**20
"""Bytes a report must have seen written to a disk for its rate to count."""
GUESS = (0.6, 2.0)
"""The range around a single known rate: fill, fragmentation and load vary."""
MARGIN = (0.85, 1.2)
"""… and around the slowest and the fastest of several."""
_ALIKE = (*REPAIRS, "scrub")
"""Functions of scans that read all data, as a resilver does."""


@dataclass(frozen=True, slots=True)
class PastRate:
    """How fast one scan was for each disk it worked on."""

    rate: float
    """Bytes/s."""
    text: str
    """What it was: ``the last watched resilver``."""
    t: float
    """Epoch seconds at which it began; 0 when unknown."""
    closeness: int
    """How near to a resilver: 2 a disk that was seen being filled, 1 a resilver as a whole, 0 a
    scrub."""


def paces(
    root: Vdev, scans: Sequence[Scan], reports: Sequence[ScanReport] = ()
) -> tuple[PastRate, ...]:
    """Every rate known from finished scans and reports; the most similar and newest first.

    A finished scan of T allocated bytes in S seconds moved T divided by its disks per disk. A
    report has what was written to the filled disk.
    """
    disks, found = _disks(root), list(_of_reports(reports))
    for scan in scans:
        total, seconds = scan.to_issue_bytes, seconds_taken(scan) or 0.0
        over = scan.state == "finished" and scan.function in _ALIKE
        if disks and over and total and seconds >= 1:
            found.append(_mean(total / seconds / disks, "last", scan.function, scan.start or 0.0))
    return tuple(sorted(found, key=lambda pace: (-pace.closeness, -pace.t)))


def pace_of_running(root: Vdev, scan: Scan, now: float, left: float | None) -> PastRate | None:
    """The rate of a scan that runs, over all its time, of which ``left`` seconds are predicted.

    ``now`` is in epoch seconds. None where its end can't be predicted, or it tells nothing.
    """
    disks = _disks(root)
    known = scan.active and scan.function in _ALIKE
    if not disks or not known or left is None or scan.start is None or not scan.to_issue_bytes:
        return None
    each = scan.to_issue_bytes / max(1.0, now - scan.start + left) / disks
    return _mean(each, "running", scan.function, scan.start)


def pace_of_past(root: Vdev, past: PastScan) -> PastRate | None:
    """The rate of a finished scan of the whole pool that a later one took the place of.

    None of one of a single vdev, or that tells nothing.
    """
    disks = _disks(root)
    if not disks or past.vdev is not None or past.function not in _ALIKE:
        return None
    return _mean(past.total / past.seconds / disks, "last", past.function, past.start)


def resilver_duration(root: Vdev, disk_bytes: int, known: Sequence[PastRate]) -> Estimate | None:
    """How long a new disk of ``disk_bytes`` would take in its vdev's fill of its size.

    Based on the newest of the most similar past rates; the range on all of that kind. None
    without a rate or anything to copy.
    """
    tops = _tops(root)
    if not known or not tops:
        return None
    fill = max((vdev.alloc_bytes or 0) / (vdev.size_bytes or 1) for vdev in tops)
    return _duration(fill * disk_bytes, f"{percent(fill)} of the disk", known)


def member_duration(top: Vdev, known: Sequence[PastRate]) -> Estimate | None:
    """How long one disk of a top-level vdev would resilver; its new disk's size does not matter.

    None without a pace, or where nothing is allocated.
    """
    if not known or not top.alloc_bytes:
        return None
    return _duration(top.alloc_bytes / _width(top), "its share of the data", known)


def _duration(need: float, what: str, known: Sequence[PastRate]) -> Estimate:
    newest = known[0]
    alike = [pace.rate for pace in known if pace.closeness == newest.closeness]
    expected = need / newest.rate
    low, high = GUESS[0] * expected, GUESS[1] * expected
    if len(alike) > 1:
        low, high = MARGIN[0] * need / max(alike), MARGIN[1] * need / min(alike)
    reason = f"estimated from {newest.text}'s speed ({rate(newest.rate)} per disk; {what})"
    if len(alike) > 1:
        reason += f", {len(alike)} recorded"
    return Estimate(expected, low, high, reason)


def _of_reports(reports: Sequence[ScanReport]) -> Iterator[PastRate]:
    for report in reports:
        if report.state != "finished" or report.function not in REPAIRS:
            continue
        filled = [d for d in report.devices if d.filled and d.seconds >= LEAST_SECONDS]
        rates = [d.write_bytes / d.seconds for d in filled if d.write_bytes >= LEAST_BYTES]
        if rates:
            yield PastRate(min(rates), f"the last watched {report.function}", report.start, 2)


def _mean(each: float, which: str, function: str, start: float) -> PastRate:
    """The rate of a scan as a whole, in bytes/s for each disk."""
    return PastRate(each, f"the {which} {function}", start, 1 if function in REPAIRS else 0)


def _tops(root: Vdev) -> list[Vdev]:
    found = (vdev for vdev in data_vdevs(root) if vdev.vclass == "normal")
    return [vdev for vdev in found if vdev.alloc_bytes and vdev.size_bytes]


def _disks(root: Vdev) -> int:
    """Disks that the pool's data is spread over."""
    return sum(_width(vdev) for vdev in _tops(root))


def _width(vdev: Vdev) -> int:
    """Disks that an allocated byte of a vdev is spread over; the sides of a mirror are the same."""
    return len(vdev.children) if vdev.kind.startswith(("raidz", "draid")) else 1
