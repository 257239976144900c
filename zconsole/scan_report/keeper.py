"""Keeping reports while a session runs: gathered, written now and then, and when a scan ends."""

from __future__ import annotations

from zconsole.monitor.frame import Frame
from zconsole.scan_report.recorder import ReportRecorder
from zconsole.scan_report.report import ScanReport
from zconsole.scan_report.store import ReportStore

SAVE_SECONDS = 60.0


class ReportKeeper:
    """Records each pool; with a store, unfinished reports go on where an earlier run left off."""

    def __init__(self, store: ReportStore | None = None) -> None:
        self._store = store
        self._recorders: dict[str, ReportRecorder] = {}
        self._saved: dict[str, float] = {}

    def push(self, frame: Frame) -> tuple[ScanReport, ...]:
        """Take in a frame; returns the reports that are complete with it, which are written.

        Raises StateError when one cannot be written.
        """
        recorder = self._recorders.get(frame.pool)
        if recorder is None:
            recorder = self._recorders[frame.pool] = self._opened(frame)
        done = recorder.push(frame)
        for report in done:
            self._write(report)
        if frame.t - self._saved.setdefault(frame.pool, frame.t) >= SAVE_SECONDS:
            self._saved[frame.pool] = frame.t
            self._write_all(recorder)
        return done

    def current(self) -> tuple[ScanReport, ...]:
        """Reports of the scans that still run."""
        return tuple(
            report for recorder in self._recorders.values() for report in recorder.current()
        )

    def close(self) -> None:
        """Write what runs once more. Raises StateError when that fails."""
        try:
            for recorder in self._recorders.values():
                self._write_all(recorder)
        finally:
            if self._store is not None:
                self._store.close()

    def _opened(self, frame: Frame) -> ReportRecorder:
        recorder = ReportRecorder()
        if self._store is not None and frame.guid is not None:
            for report in self._store.unfinished(frame.guid):
                recorder.resume(report)
        return recorder

    def _write_all(self, recorder: ReportRecorder) -> None:
        for report in recorder.current():
            self._write(report)

    def _write(self, report: ScanReport) -> None:
        if self._store is not None:
            self._store.save(report)
