"""Figures from a report: the accuracy of its ETAs, and how two reports differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean

from zconsole.scan_report.report import ScanReport

SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, slots=True)
class Promise:
    """An ETA at some share of a scan's duration, and what it really took."""

    share: float
    promised: float
    """Seconds left, as predicted then."""
    taken: float
    """Seconds it then took."""

    @property
    def error(self) -> float:
        """The error as a share of the actual time; positive when it took less."""
        return self.promised / self.taken - 1 if self.taken > 0 else 0.0


def promises(report: ScanReport) -> tuple[Promise, ...]:
    """The ETAs at each of SHARES of a finished scan's duration, where it was watched."""
    if report.state != "finished" or report.end is None:
        return ()
    found = []
    for share in SHARES:
        t = report.start + share * report.duration
        far = max(2.0, 0.05 * report.duration)
        near = (moment for moment in report.moments if abs(moment.t - t) <= far)
        nearest = min(near, key=lambda moment: abs(moment.t - t), default=None)
        if nearest is not None and nearest.told_end is not None:
            found.append(Promise(share, nearest.told_end - nearest.t, report.end - nearest.t))
    return tuple(found)


def mean(values: Iterator[float | None]) -> float | None:
    """The mean of what is known; None of nothing."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of two reports; ``change`` is the second by the first, less 1."""

    name: str
    unit: str
    """bytes, bytes/s, s, share or count."""
    first: float | None
    second: float | None

    @property
    def change(self) -> float | None:
        """None if either is unknown or the first is 0."""
        if not self.first or self.second is None:
            return None
        return self.second / self.first - 1


def differences(first: ScanReport, second: ScanReport) -> tuple[Difference, ...]:
    """Duration, bytes, rates, per-disk rates, processor and memory of two scans side by side."""
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
    """Mean bytes/s of a disk in the direction it worked."""
    disks = [d for d in report.devices if d.filled == filled and d.seconds > 0]
    moved = [(d.write_bytes if filled else d.read_bytes) / d.seconds for d in disks]
    return fmean(moved) if moved else None


def waits(report: ScanReport) -> list[tuple[str, float, float]]:
    """Each limit, the longest first, with its seconds and their share."""
    total = sum(report.limits.values())
    ranked = sorted(report.limits.items(), key=lambda item: -item[1])
    return [(cause, seconds, seconds / total) for cause, seconds in ranked] if total > 0 else []


def reached(report: ScanReport) -> float | None:
    """Share of its ceiling that a scan went at, on average while it issued; None when unknown."""
    rate = mean(m.issue_rate for m in report.moments if m.issue_rate)
    return min(1.0, rate / report.ceiling) if rate and report.ceiling else None


def set_apart(first: ScanReport, second: ScanReport) -> Mapping[str, tuple[int, int]]:
    """Module parameters that differ between the two."""
    common = sorted(first.tunables.keys() & second.tunables.keys())
    pairs = {name: (first.tunables[name], second.tunables[name]) for name in common}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
