"""Reports on disk: one file per scan in the state directory, the newest of each pool."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from zconsole.errors import NotFoundError, NotUnderstoodError
from zconsole.scan_report.report import ScanReport, dumped, loaded
from zconsole.system import state_dir
from zconsole.system.async_writer import LockedStore
from zconsole.system.state_dir import StateError

MOST_BYTES = 4 * 2**20
KEPT = 50
"""Reports of one pool that are kept, the newest; and that of its last full scrub."""
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

    def full_scrub(self, guid: str) -> float | None:
        """Epoch seconds of the end of a pool's last full scrub; None without a report of one.

        Raises StateError where the disk doesn't answer.
        """
        return self.patient.call(partial(_last_full_scrub, self.readable, guid))

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
        paths = _newest_first(_files(self.directory, guid))
        scrub = next(filter(_full_scrub, paths), None) if len(paths) > KEPT else None
        for path in paths[KEPT:]:
            if path != scrub:
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


def _last_full_scrub(directories: Iterable[Path], guid: str) -> float | None:
    """The first found is the newest; it is mostly the only file that is read."""
    paths = [path for directory in directories for path in _files(directory, guid)]
    return next(filter(None, map(_full_scrub, _newest_first(paths))), None)


def _full_scrub(path: Path) -> float | None:
    """See ScanReport.full_scrub."""
    report = _read(path) if path.name.endswith("-scrub.json") else None
    return None if report is None else report.full_scrub


def _newest_first(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=_start, reverse=True)


def _start(path: Path) -> int:
    match = _NAME.fullmatch(path.name)
    return int(match[2]) if match else 0


def _read(path: Path) -> ScanReport | None:
    try:
        return loaded(state_dir.read_private(path, MOST_BYTES).decode(), str(path))
    except (StateError, NotUnderstoodError, FileNotFoundError, UnicodeDecodeError):
        return None
