"""Statistics of a report: the accuracy of its ETAs, its limits, and differences between two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean

from zconsole.scan_report.report import ScanReport

SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Shares of a scan's duration at which the ETA is compared with the actual end."""


@dataclass(frozen=True, slots=True)
class CheckedPrediction:
    """A predicted time to the end of a scan, and the actual one."""

    share: float
    """Share of the scan's duration at which it was predicted."""
    predicted: float
    """Seconds left, as predicted then."""
    actual: float
    """Seconds that it actually took from then on."""

    @property
    def error(self) -> float:
        """Error as a share of the actual time; positive if the scan took less than predicted."""
        return self.predicted / self.actual - 1 if self.actual > 0 else 0.0


def predictions(report: ScanReport) -> tuple[CheckedPrediction, ...]:
    """Return the ETA at each of SHARES of a finished scan's duration at which it was watched."""
    if report.state != "finished" or report.end is None:
        return ()
    found = []
    for share in SHARES:
        t = report.start + share * report.duration
        far = max(2.0, 0.05 * report.duration)  # beyond it, the scan was not watched at that time
        near = (moment for moment in report.moments if abs(moment.t - t) <= far)
        nearest = min(near, key=lambda moment: abs(moment.t - t), default=None)
        if nearest is not None and nearest.told_end is not None:
            found.append(
                CheckedPrediction(share, nearest.told_end - nearest.t, report.end - nearest.t)
            )
    return tuple(found)


def mean(values: Iterator[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if there are none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure in two reports."""

    name: str
    unit: str
    """Unit: bytes, bytes/s, s, share or count."""
    first: float | None
    second: float | None

    @property
    def change(self) -> float | None:
        """Change as a share, second / first - 1; None if either is unknown or the first is 0."""
        if not self.first or self.second is None:
            return None
        return self.second / self.first - 1


def differences(first: ScanReport, second: ScanReport) -> tuple[Difference, ...]:
    """Compare the duration, bytes, rates, processor, memory, latency and errors of two scans."""
    pairs = zip(_figures(first), _figures(second), strict=True)
    return tuple(Difference(a[0], a[1], a[2], b[2]) for a, b in pairs)


def _figures(report: ScanReport) -> Iterator[tuple[str, str, float | None]]:
    moments = report.moments
    yield "duration", "s", report.duration
    yield "issued", "bytes", _number(report.issued_bytes)
    yield "repaired", "bytes", _number(report.processed_bytes)
    yield "mean rate", "bytes/s", report.rate
    issuing = (m.issue_rate for m in moments if m.issue_rate)
    yield "best rate", "bytes/s", max(issuing, default=None)
    yield "estimated maximum rate", "bytes/s", report.ceiling
    yield "source disk, mean", "bytes/s", _disk(report, filled=False)
    yield "new disk, mean", "bytes/s", _disk(report, filled=True)
    yield "processor, mean", "share", mean(m.cpu for m in moments)
    yield "memory, mean", "share", mean(m.memory for m in moments)
    yield "disk latency, mean", "s", mean(m.latency for m in moments)
    yield "errors", "count", _number(report.errors)
    yield "restarts", "count", _number(report.restarts)


def _number(value: int | None) -> float | None:
    return None if value is None else float(value)


def _disk(report: ScanReport, filled: bool) -> float | None:
    """Return the mean bytes/s of a disk: written if ``filled``, else read; None without any."""
    disks = [d for d in report.devices if d.filled == filled and d.seconds > 0]
    moved = [(d.write_bytes if filled else d.read_bytes) / d.seconds for d in disks]
    return fmean(moved) if moved else None


def limits_by_time(report: ScanReport) -> list[tuple[str, float, float]]:
    """Return each limit's cause, seconds and share of the time, the longest first."""
    total = sum(report.limits.values())
    ranked = sorted(report.limits.items(), key=lambda item: -item[1])
    return [(cause, seconds, seconds / total) for cause, seconds in ranked] if total > 0 else []


def share_of_maximum(report: ScanReport) -> float | None:
    """Return the mean rate of a scan while it issued, as a share of its estimated maximum.

    At most 1; None if unknown.
    """
    rate = mean(m.issue_rate for m in report.moments if m.issue_rate)
    return min(1.0, rate / report.ceiling) if rate and report.ceiling else None


def different_tunables(first: ScanReport, second: ScanReport) -> Mapping[str, tuple[int, int]]:
    """Return the module parameters that differ between two reports, with both values."""
    common = sorted(first.tunables.keys() & second.tunables.keys())
    pairs = {name: (first.tunables[name], second.tunables[name]) for name in common}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
