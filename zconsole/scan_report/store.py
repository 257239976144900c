"""Reports on disk: one file per scan in the state directory, the newest of each pool."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from zconsole.errors import NotFoundError, NotUnderstoodError
from zconsole.scan_report.report import ScanReport, dumped, loaded
from zconsole.system import state_dir
from zconsole.system.async_writer import LockedStore
from zconsole.system.state_dir import StateError

MOST_BYTES = 4 * 2**20
KEPT = 50
"""Reports of one pool that are kept, the newest."""
_NAME = re.compile(r"report-(\d+)-(\d+)-(resilver|scrub|rebuild|errorscrub)\.json", re.ASCII)


class ReportStore(LockedStore):
    """Stores reports: one console of a pool writes them at a time, all read them."""

    __slots__ = ()

    def save(self, report: ScanReport) -> bool:
        """Write a report unless another console does; raises StateError when it cannot be."""
        name = f"report-{report.guid}-{report.start:.0f}-{report.function}.json"
        if self.directory is None or not _NAME.fullmatch(name):
            return False
        if not self.mine(f"report-{report.guid}.lock"):
            return False
        self.write(self.directory / name, dumped(report).encode())
        if report.state != "running":
            self.patient.call(partial(self._forget_old, str(report.guid)))
        return True

    def unfinished(self, guid: str) -> tuple[ScanReport, ...]:
        """Reports of a pool whose scans had not ended when last seen.

        Raises StateError where the disk doesn't answer.
        """
        found = self.patient.call(partial(self.reports, guid=guid))
        return tuple(report for report in found if report.state in ("running", "paused"))

    def reports(self, pool: str | None = None, guid: str | None = None) -> list[ScanReport]:
        """Every readable report of a pool, or of all, newest first; damaged ones are left out."""
        found: dict[str, ScanReport] = {}
        for directory in self.readable:
            for path in _files(directory, guid):
                report = _read(path)
                if report is not None and pool in (None, report.pool):
                    found.setdefault(path.name, report)
        return sorted(found.values(), key=lambda report: -report.start)

    def _forget_old(self, guid: str) -> None:
        if self.directory is None:
            return
        paths = sorted(_files(self.directory, guid), key=_start, reverse=True)
        for path in paths[KEPT:]:
            state_dir.remove(path)


def read_report(path: Path) -> ScanReport:
    """A report given as a file. Raises NotFoundError or NotUnderstoodError."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise NotUnderstoodError(f"{path}: too large for a scan report")
    return loaded(data.decode("utf-8-sig", "replace"), str(path))


def _files(directory: Path, guid: str | None) -> list[Path]:
    try:
        names = [path for path in directory.iterdir() if _NAME.fullmatch(path.name)]
    except OSError:
        return []
    return [path for path in names if guid is None or path.name.startswith(f"report-{guid}-")]


def _start(path: Path) -> int:
    match = _NAME.fullmatch(path.name)
    return int(match[2]) if match else 0


def _read(path: Path) -> ScanReport | None:
    try:
        return loaded(state_dir.read_private(path, MOST_BYTES).decode(), str(path))
    except (StateError, NotUnderstoodError, FileNotFoundError, UnicodeDecodeError):
        return None
