"""Totals of each device over a scan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from zconsole.scan_report.report import DeviceReport
from zconsole.timeline.frame import VdevRow

MOST = 256
"""Devices in a report; in larger pools, the first ones."""
DATA = ("normal", "special", "dedup")


@dataclass(slots=True)
class _Sums:
    """Bytes, seconds, and busy and waiting time weighted by them."""

    name: str
    filled: bool = False
    read: float = 0.0
    write: float = 0.0
    seconds: float = 0.0
    busy: float = 0.0
    busy_seconds: float = 0.0
    waited: float = 0.0
    requests: float = 0.0
    worst: float = 0.0
    errors: int = 0
    counter: int | None = None
    disk: str = ""


class DeviceLog:
    """The devices of one scan."""

    def __init__(self, earlier: Iterable[DeviceReport] = ()) -> None:
        self._sums: dict[str, _Sums] = {}
        self._earlier = {device.name: device for device in earlier}

    def add(self, rows: Sequence[VdevRow], seconds: float) -> None:
        """Take in the rows of a frame: errors new since the last one, and rates.

        The rates held for ``seconds``; 0 if the time between is unknown.
        """
        for row in rows:
            entry = self._of(row)
            if entry is None:
                continue
            if row.vdev.disk is not None:
                entry.disk = row.vdev.disk.words()
            now = row.vdev.errors.total
            if entry.counter is not None:
                entry.errors += max(0, now - entry.counter)
            entry.counter = now
            if seconds:
                _add(entry, row, seconds)

    def _of(self, row: VdevRow) -> _Sums | None:
        if row.vdev.children or row.vdev.vclass not in DATA or row.depth == 0:
            return None
        entry = self._sums.get(row.key)
        if entry is None and len(self._sums) < MOST:
            entry = self._sums[row.key] = _sums(row.vdev.name, self._earlier.get(row.vdev.name))
        return entry

    def reports(self) -> tuple[DeviceReport, ...]:
        """Each device that did anything."""
        seen = (entry for entry in self._sums.values() if entry.seconds > 0)
        now = [_report(x) for x in seen if x.read + x.write > 0 or x.errors > 0]
        known = {device.name for device in now}
        return (*now, *(d for d in self._earlier.values() if d.name not in known))


def _sums(name: str, earlier: DeviceReport | None) -> _Sums:
    if earlier is None:
        return _Sums(name)
    moved = _Sums(name, earlier.filled, earlier.read_bytes, earlier.write_bytes, earlier.seconds)
    moved.errors, moved.worst = earlier.new_errors, earlier.worst_latency or 0.0
    moved.disk = earlier.disk
    if earlier.busy is not None:
        moved.busy, moved.busy_seconds = earlier.busy * earlier.seconds, earlier.seconds
    if earlier.latency is not None:
        moved.waited, moved.requests = earlier.latency * earlier.seconds, earlier.seconds
    return moved


def _add(entry: _Sums, row: VdevRow, seconds: float) -> None:
    rates = row.rates
    entry.filled = entry.filled or row.vdev.resilvering
    entry.read += (rates.read or 0.0) * seconds
    entry.write += (rates.write or 0.0) * seconds
    entry.seconds += seconds
    if rates.busy is not None:
        entry.busy += rates.busy * seconds
        entry.busy_seconds += seconds
    if rates.latency is not None:
        requests = ((rates.read_ops or 0.0) + (rates.write_ops or 0.0)) * seconds
        entry.waited += rates.latency * requests
        entry.requests += requests
        entry.worst = max(entry.worst, rates.latency)


def _report(entry: _Sums) -> DeviceReport:
    return DeviceReport(
        entry.name,
        entry.filled,
        entry.read,
        entry.write,
        entry.seconds,
        entry.busy / entry.busy_seconds if entry.busy_seconds else None,
        entry.waited / entry.requests if entry.requests else None,
        entry.worst or None,
        entry.errors,
        entry.disk,
    )
