"""Stored reports: one file per scan in the state directory, for the newest scans of each pool.

ZFS itself remembers only the last resilver or scrub, and the last rebuild of each vdev. The reports
also have earlier scans, and the condition in which each scan left the pool (``LastScans``).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from zconsole.errors import NotFoundError, NotUnderstoodError, ZconsoleError
from zconsole.pool.scan_outcome import (
    CANCELED,
    NOT_RESTORED,
    RESTORED,
    SAME_END,
    WELL,
    LastScan,
    last_scan,
)
from zconsole.scan_report.report import ScanReport, dumped, loaded
from zconsole.system.patient import PATIENCE
from zconsole.system.record_file import LockedStore, files_in
from zconsole.system.state_dir import read_private, remove
from zconsole.timeline.frame import Frame

MOST_BYTES = 4 * 2**20
"""Bytes of a report that is read."""
ANSWER = 20.0
"""Seconds for reading every report; a thousand take a few seconds."""
KEPT = 50
"""Newest reports of a pool that are kept, in addition to that of its last full scrub."""


class ReportStore(LockedStore):
    """The stored reports; one console at a time writes those of a pool, and all read them."""

    __slots__ = ()

    def save(self, report: ScanReport) -> bool:
        """Write a report unless another console does; return whether it was written.

        Raises StateError if it can't be written.
        """
        name = f"report-{report.guid}-{report.start:.0f}-{report.function}.json"
        # No report without a GUID, as from text, or of another function than the known ones.
        if self.directory is None or not _named().fullmatch(name):
            return False
        lock = f"report-{report.guid}.lock"
        if not self.mine(lock):
            return False
        self.put(name, dumped(report).encode(), lock)
        if report.state != "running":
            self.in_time(partial(self._forget_old, str(report.guid)))
        return True

    def unfinished(self, guid: str) -> tuple[ScanReport, ...]:
        """Return the reports of a pool's scans that had not ended when last seen.

        Raises StateError if the disk doesn't answer.
        """
        found = self.reports(guid=guid, seconds=PATIENCE)
        return tuple(report for report in found if report.state in ("running", "paused"))

    def full_scrub(self, guid: str) -> float | None:
        """Return when a pool's last full scrub ended (epoch seconds); None without a report of one.

        Raises StateError if the disk doesn't answer.
        """

        def _last() -> float | None:
            # From the newest on, so that mostly one file is read.
            paths = [path for place in self.readable for path in files_in(place, _named(guid))]
            return next(filter(None, map(_full_scrub, _newest_first(paths))), None)

        return self.in_time(_last)

    def reports(
        self, pool: str | None = None, guid: str | None = None, seconds: float = ANSWER
    ) -> list[ScanReport]:
        """Return every readable report of a pool, or of all pools, newest first.

        ``problems`` then has the unreadable ones. Raises StateError if it takes over ``seconds``.
        """
        found = self.read_files(_named(guid), _loaded, MOST_BYTES, seconds)
        chosen = (report for report in found if pool in (None, report.pool))
        return sorted(chosen, key=lambda report: -report.start)

    def _forget_old(self, guid: str) -> None:
        if self.directory is None:
            return
        paths = _newest_first(files_in(self.directory, _named(guid)))
        # The reports are read only if some must go: to find the newest full scrub among all.
        scrub = next(filter(_full_scrub, paths), None) if len(paths) > KEPT else None
        for path in paths[KEPT:]:
            if path != scrub:
                remove(path)


def read_report(path: Path) -> ScanReport:
    """Read a report from a file that the user named. Raises NotFoundError, NotUnderstoodError."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise NotUnderstoodError(f"{path}: too large for a scan report")
    return loaded(data.decode("utf-8-sig", "replace"), str(path))


def _named(guid: str | None = None) -> re.Pattern[str]:
    """Return the pattern of file names of a pool's reports, or all: GUID, start, function."""
    whose = r"\d+" if guid is None else re.escape(guid)
    words = rf"report-{whose}-\d+-(resilver|scrub|rebuild|errorscrub)\.json"
    return re.compile(words, re.ASCII)


def _loaded(path: Path, data: bytes) -> ScanReport:
    return loaded(data.decode(), str(path))


def _full_scrub(path: Path) -> float | None:
    """Return when the full scrub of a report ended (epoch seconds); None for any other file."""
    if path.name.endswith("-scrub.json"):
        with contextlib.suppress(ZconsoleError, OSError, UnicodeDecodeError):
            return _loaded(path, read_private(path, MOST_BYTES)).full_scrub
    return None


def _newest_first(paths: Iterable[Path]) -> list[Path]:
    def _start(path: Path) -> int:
        return int(path.name.split("-")[2])

    return sorted(paths, key=_start, reverse=True)


class LastScans:
    """The last scan of each function of all pools, with its result.

    It is learned from frames and, so that it outlasts a restart, from stored reports.
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[str, LastScan]] = {}
        """Last scans by function, by the pool's GUID, or its name if the source has none."""
        self._recalled: set[str] = set()
        """GUIDs of pools whose reports were added."""

    def wanted(self, frame: Frame) -> str | None:
        """Return the GUID of the frame's pool if its reports were not added yet, else None."""
        return None if frame.guid in self._recalled else frame.guid

    def recall(self, guid: str, reports: Iterable[ScanReport]) -> None:
        """Add the stored reports of a pool."""
        self._recalled.add(guid)
        known = self._known.setdefault(guid, {})
        for report in reports:
            if report.end is None or report.state not in ("finished", "canceled"):
                continue  # nobody watched how it ended
            well = report.health in WELL and not report.errors
            result = RESTORED if well else NOT_RESTORED
            if report.state == "canceled":
                result = CANCELED
            found = (report.function, result, report.end, report.duration, report.errors)
            _add(known, LastScan(*found))

    def push(self, frame: Frame) -> Sequence[LastScan]:
        """Add a frame; return its pool's last scan of each function."""
        known = self._known.setdefault(frame.guid or frame.pool, {})
        for scan in () if frame.problem else frame.seen.scans:
            found = last_scan(frame.seen, scan, frame.health.word, frame.t)
            if found is not None:
                _add(known, found)
        return tuple(known.values())


def _add(known: dict[str, LastScan], scan: LastScan) -> None:
    """Keep a scan if it is newer than the known one, or has a better result of the same scan.

    A better result may come some time after the end, when ZFS has detached the replaced disk. A
    worse one doesn't count: a disk that fails weeks later doesn't change how a scan ended.
    """
    before = known.get(scan.function)
    least = -SAME_END if scan.result == RESTORED else SAME_END
    if before is None or scan.end - before.end > least:
        known[scan.function] = scan
