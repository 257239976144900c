"""Keeping reports while a session runs: gathered, written now and then, and when a scan ends."""

from __future__ import annotations

from zconsole.monitor.frame import Frame
from zconsole.scan_report.recorder import ReportRecorder
from zconsole.scan_report.report import ScanReport
from zconsole.scan_report.store import ReportStore

SAVE_SECONDS = 60.0


class ReportKeeper:
    """One book a pool; with a store, unfinished reports go on where an earlier run left off."""

    def __init__(self, store: ReportStore | None = None) -> None:
        self._store = store
        self._books: dict[str, ReportRecorder] = {}
        self._saved: dict[str, float] = {}

    def push(self, frame: Frame) -> tuple[ScanReport, ...]:
        """Take in a frame; returns the reports that are complete with it, which are written.

        Raises StateError when one cannot be written.
        """
        book = self._books.get(frame.pool)
        if book is None:
            book = self._books[frame.pool] = self._opened(frame)
        done = book.push(frame)
        for report in done:
            self._write(report)
        if frame.t - self._saved.setdefault(frame.pool, frame.t) >= SAVE_SECONDS:
            self._saved[frame.pool] = frame.t
            self._write_all(book)
        return done

    def current(self) -> tuple[ScanReport, ...]:
        """Reports of the scans that still run."""
        return tuple(report for book in self._books.values() for report in book.current())

    def close(self) -> None:
        """Write what runs once more. Raises StateError when that fails."""
        try:
            for book in self._books.values():
                self._write_all(book)
        finally:
            if self._store is not None:
                self._store.close()

    def _opened(self, frame: Frame) -> ReportRecorder:
        book = ReportRecorder()
        if self._store is not None and frame.guid is not None:
            for report in self._store.unfinished(frame.guid):
                book.resume(report)
        return book

    def _write_all(self, book: ReportRecorder) -> None:
        for report in book.current():
            self._write(report)

    def _write(self, report: ScanReport) -> None:
        if self._store is not None:
            self._store.save(report)
