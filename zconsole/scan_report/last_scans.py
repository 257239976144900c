"""How the last scan of each function ended, also across restarts.

ZFS itself remembers one resilver or scrub, and one rebuild of each vdev. The stored reports know
what came before, and in what condition each scan left the pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from zconsole.pool.scan_outcome import (
    CANCELED,
    NOT_RESTORED,
    RESTORED,
    SAME_END,
    WELL,
    LastScan,
    last_scan,
)
from zconsole.scan_report.report import ScanReport
from zconsole.timeline.frame import Frame

_Known = dict[tuple[str, bool], LastScan]
"""By function, and whether it was canceled: a canceled scrub is no reason to forget a finished
one."""


class LastScans:
    """Takes every frame, and once the stored reports of each pool."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        """By GUID; by name where the source has none, as in text."""
        self._recalled: set[str] = set()

    def wanted(self, frame: Frame) -> str | None:
        """The GUID of a pool whose reports were not taken in yet, else None."""
        return None if frame.guid in self._recalled else frame.guid

    def recall(self, guid: str, reports: Iterable[ScanReport]) -> None:
        """Take in the stored reports of a pool."""
        self._recalled.add(guid)
        known = self._known.setdefault(guid, {})
        for scan in filter(None, map(_reported, reports)):
            _add(known, scan)

    def push(self, frame: Frame) -> Sequence[LastScan]:
        """What is known with this frame: at most two scans of a function, one of them canceled."""
        known = self._known.setdefault(frame.guid or frame.pool, {})
        for scan in () if frame.problem else frame.seen.scans:
            found = last_scan(frame.seen, scan, frame.health.word, frame.t)
            if found is not None:
                _add(known, found)
        return tuple(known.values())


def _add(known: _Known, scan: LastScan) -> None:
    """Keep a newer scan, or the better result of the same one.

    A disk that fails weeks later does not change how a scan ended, but what a scan leaves behind
    may go away some time after its end.
    """
    key = (scan.function, scan.result == CANCELED)
    before = known.get(key)
    least = -SAME_END if scan.result == RESTORED else SAME_END
    if before is None or scan.end - before.end > least:
        known[key] = scan


def _reported(report: ScanReport) -> LastScan | None:
    """What a report says of its scan; None if its end was not seen."""
    if report.end is None or report.state not in ("finished", "canceled"):
        return None
    well = report.health in WELL and not report.errors
    result = CANCELED if report.state == "canceled" else RESTORED if well else NOT_RESTORED
    return LastScan(report.function, result, report.end, report.duration, report.errors)
