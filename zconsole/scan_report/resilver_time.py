"""Estimates how long a resilver of a disk would take, from the speed of earlier scans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from zconsole.pool.model import Scan, Vdev, data_vdevs
from zconsole.pool.redundancy import REPAIRS
from zconsole.scan_report.report import ScanReport
from zconsole.timeline.eta.estimate import Estimate, nothing
from zconsole.timeline.frame import Frame, seconds_taken
from zconsole.units import percent, rate

LEAST_SECONDS = 30.0
"""Seconds for which a disk must have been watched for its rate to count."""
LEAST_BYTES = 64 * 2**20
"""Bytes that must have been written to a disk for its rate to count."""
GUESS = (0.6, 2.0)
"""Range of an estimate from a single rate, as factors: fill, fragmentation and load vary."""
MARGIN = (0.85, 1.2)
"""Range of an estimate from several rates, as factors of its values by the fastest and slowest."""
NO_SCAN = "no completed scan recorded"
"""Why nothing can be estimated."""
_ALIKE = (*REPAIRS, "scrub")
"""Functions of scans that read all data, as a resilver does."""


@dataclass(frozen=True, slots=True)
class PastRate:
    """The speed of an earlier scan per disk."""

    rate: float
    """Bytes/s per disk."""
    text: str
    """Name of the scan for a sentence: ``the last watched resilver``."""
    t: float
    """Epoch seconds at which the scan began; 0 if unknown."""
    closeness: int
    """Similarity to the resilver of a disk: 2 for a disk that was seen being resilvered, 1 for a
    resilver of which only the total is known, 0 for a scrub."""


def paces(
    root: Vdev, scans: Sequence[Scan], reports: Sequence[ScanReport] = ()
) -> tuple[PastRate, ...]:
    """Return the rates of finished scans and reports, the most similar and newest first.

    A finished scan of T allocated bytes in S seconds on D disks has the rate T / S / D. A report
    has the bytes written to each disk that was resilvered.
    """
    disks, found = _disks(root), list(_of_reports(reports))
    for scan in scans:
        total, seconds = scan.to_issue_bytes, seconds_taken(scan) or 0.0
        over = scan.state == "finished" and scan.function in _ALIKE
        if disks and over and total and seconds >= 1:
            found.append(_mean(total / seconds / disks, "last", scan.function, scan.start or 0.0))
    return _closest_first(found)


def known_paces(frame: Frame, reports: Sequence[ScanReport] = ()) -> tuple[PastRate, ...]:
    """Return the rates of a pool's finished scans and reports, as ``paces`` does.

    Only if there are none, those of running scans, and of scans that a later one replaced.
    """
    root = frame.seen.root
    if known := paces(root, frame.seen.scans, reports):
        return known
    disks, found = _disks(root), list[PastRate]()
    for view in frame.scans if disks else ():
        scan, total = view.scan, view.scan.to_issue_bytes
        alike = scan.active and scan.function in _ALIKE
        if alike and total and scan.start is not None and view.left is not None:
            seconds = max(1.0, frame.t - scan.start + view.left)
            found.append(_mean(total / seconds / disks, "running", scan.function, scan.start))
    for past in frame.past if disks else ():
        if past.vdev is None and past.function in _ALIKE:
            each = past.total / past.seconds / disks
            found.append(_mean(each, "last", past.function, past.start))
    return _closest_first(found)


def _closest_first(found: Iterable[PastRate]) -> tuple[PastRate, ...]:
    return tuple(sorted(found, key=lambda pace: (-pace.closeness, -pace.t)))


def resilver_duration(root: Vdev, disk_bytes: int, known: Sequence[PastRate]) -> Estimate | None:
    """Estimate the resilver of a new disk of ``disk_bytes``, filled as the fullest vdev is.

    Based on the newest of the most similar past rates, its range on all of these. None if no rate
    is known or there is nothing to copy.
    """
    tops = _tops(root)
    if not known or not tops:
        return None
    fill = max((vdev.alloc_bytes or 0) / (vdev.size_bytes or 1) for vdev in tops)
    return _duration(fill * disk_bytes, f"{percent(fill)} of the disk", known)


def member_duration(top: Vdev, known: Sequence[PastRate]) -> Estimate | None:
    """Estimate the resilver of one disk of a top-level vdev, whatever the size of the new disk.

    None if no rate is known, or nothing is allocated.
    """
    if not known or not top.alloc_bytes:
        return None
    return _duration(top.alloc_bytes / _width(top), "its share of the data", known)


def longest(tops: Iterable[Vdev], known: Sequence[PastRate]) -> Estimate:
    """Estimate one resilver of disks of these top-level vdevs at once, or say why it is unknown."""
    found = [each for top in tops if (each := member_duration(top, known)) is not None]
    no_data = nothing("nothing is known to be allocated there" if known else NO_SCAN)
    return max(found, key=lambda each: each.eta or 0.0, default=no_data)


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
        if rates:  # the slowest of several disks at a time sets the duration
            yield PastRate(min(rates), f"the last watched {report.function}", report.start, 2)


def _mean(each: float, which: str, function: str, start: float) -> PastRate:
    """Return the rate of a scan of which only the total is known; ``each`` is bytes/s per disk."""
    return PastRate(each, f"the {which} {function}", start, 1 if function in REPAIRS else 0)


def _tops(root: Vdev) -> list[Vdev]:
    found = (vdev for vdev in data_vdevs(root) if vdev.vclass == "normal")
    return [vdev for vdev in found if vdev.alloc_bytes and vdev.size_bytes]


def _disks(root: Vdev) -> int:
    """Return the number of disks that the pool's data is spread over."""
    return sum(_width(vdev) for vdev in _tops(root))


def _width(vdev: Vdev) -> int:
    """Return the number of disks that a vdev's allocated bytes are spread over; 1 for a mirror.

    Allocated bytes of raidz and dRAID include parity; a mirror's sides each hold all of them.
    """
    return len(vdev.children) if vdev.kind.startswith(("raidz", "draid")) else 1
