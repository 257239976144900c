"""One pool over time: its history, what limits its scan, the errors of its devices."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, tzinfo

from zconsole.diagnosis.bottleneck.tracker import BottleneckTracker
from zconsole.diagnosis.device_errors.tracker import DeviceErrorTracker
from zconsole.history import PoolHistory
from zconsole.monitor.build_frame import blank_frame, frame_of, stale_frame
from zconsole.monitor.frame import Frame
from zconsole.pool.model import Sample, SampleFailure


class PoolMonitor:
    """Turns the samples of one pool into frames; fed with every one, in order."""

    def __init__(self, zone: tzinfo = UTC, flags: tuple[str, ...] = ()) -> None:
        self.history = PoolHistory(zone)
        self._flags = flags
        self._bottleneck = BottleneckTracker()
        self._device_errors = DeviceErrorTracker()

    def push(self, sample: Sample) -> Frame:
        """The frame of a fresh sample."""
        history, bottleneck = self.history, self._bottleneck
        history.push(sample)
        self._device_errors.push(sample.t, history.tree)
        bottleneck.push(sample, history.tree, history.all_rates, history.scan_views)
        return replace(
            frame_of(sample, history, self._flags),
            limit=bottleneck.verdict,
            ceiling=bottleneck.ceiling,
            troubles=self._device_errors.faults(sample.t, history.tree, history.events),
        )

    def push_failure(self, failure: SampleFailure, last: Frame | None) -> Frame:
        """The frame of a pool that gave no sample, from ``last``, the one of its newest sample."""
        self.history.push_trouble(failure)
        if last is None:
            return blank_frame(failure, self.history.series)
        return stale_frame(last, failure, self.history)
