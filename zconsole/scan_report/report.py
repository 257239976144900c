"""The report of a scan as data, its JSON and statistics, and its differences from another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean

from zconsole.errors import NotUnderstoodError
from zconsole.output.json import line
from zconsole.system.records import RecordError, from_json, parse_json

FORMAT = 1
"""Version of the JSON; others are refused."""
MOST_POINTS = 600
"""Moments in a report, at most."""
_DIGITS = 12
"""Significant digits of a float: more would only make the file larger."""
_LATEST = 1e11
"""Bound for times in epoch seconds, in the year 5138: Python can print the date of any below it."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a scan. Rates are in bytes/s, shares 0…1."""

    t: float
    """Epoch seconds."""
    issue_rate: float | None
    scan_rate: float | None = None
    percent: float | None = None
    """Progress, 0 to 100."""
    told_end: float | None = None
    """Epoch seconds of the scan's end as predicted then."""
    cpu: float | None = None
    memory: float | None = None
    """Share of the machine's memory in use."""
    latency: float | None = None
    """Mean latency of the pool's disks in seconds."""
    cause: str | None = None
    """Cause of the scan's limit, as named in zconsole.diagnosis.bottleneck."""


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """The work of one device during a scan."""

    name: str
    filled: bool
    """Whether it was being resilvered at any time."""
    read_bytes: float
    write_bytes: float
    seconds: float
    """Seconds for which its rates were known."""
    busy: float | None
    """Mean share of the time in which it was busy, 0…1."""
    latency: float | None
    """Mean latency in seconds."""
    worst_latency: float | None
    """Highest latency of a sample in seconds."""
    new_errors: int = 0
    disk: str = ""
    """Bay and identity of its disk: ``Slot 05, serial ZC1A2B3C``; empty if unknown."""


@dataclass(frozen=True, slots=True)
class TunableChange:
    """A change of a module parameter during a scan, and its effect.

    Issue rates are in bytes/s, latencies in seconds, each before and after the change.
    """

    t: float
    name: str
    before: int
    after: int
    issue_before: float | None = None
    issue_after: float | None = None
    latency_before: float | None = None
    latency_after: float | None = None
    doubt: str = ""
    """Why the issue rates say nothing about the tunable: ``issuing before, scanning after``."""


@dataclass(frozen=True, slots=True)
class ScanReport:
    """The report of one scan. Sizes are in bytes, times in epoch seconds."""

    pool: str
    guid: str | None
    function: str
    vdev: str | None
    start: float
    state: str
    """running, paused, finished, canceled or restarted."""
    watched_from: float
    """Epoch seconds of the first sample of it."""
    end: float | None = None
    total_bytes: int | None = None
    issued_bytes: int | None = None
    processed_bytes: int | None = None
    errors: int | None = None
    restarts: int | None = None
    health: str = ""
    version: str | None = None
    moments: tuple[Moment, ...] = ()
    devices: tuple[DeviceReport, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    """Seconds that each cause was the limit."""
    evidence: Mapping[str, str] = field(default_factory=dict)
    """Newest evidence, in words, of each cause that was the limit."""
    troubles: Mapping[str, str] = field(default_factory=dict)
    """New errors with their cause, in words, of each device that had any."""
    changes: tuple[TunableChange, ...] = ()
    tunables: Mapping[str, int] = field(default_factory=dict)
    """Module parameters of scans, as far as known, when the scan was first seen."""
    ceiling: float | None = None
    """Estimated maximum rate on these disks, in issued bytes/s, by the last estimate."""
    ceiling_text: str = ""
    """Basis of that estimate, in words."""
    notes: tuple[str, ...] = ()
    full: bool | None = None
    """Whether a scrub is of the whole pool, not of a range of txgs; None if unknown."""

    @property
    def duration(self) -> float:
        """Seconds from the scan's start to its end, or to the last sample."""
        last = self.moments[-1].t if self.moments else self.start
        return max(0.0, (self.end if self.end is not None else last) - self.start)

    @property
    def full_scrub(self) -> float | None:
        """Epoch seconds of the scan's end if it is a full scrub that has finished; else None."""
        is_one = self.function == "scrub" and self.state == "finished" and self.full
        return self.end if is_one else None

    @property
    def rate(self) -> float | None:
        """Mean issued bytes/s over the whole duration; None if unknown."""
        if not self.issued_bytes or self.duration <= 0:
            return None
        return self.issued_bytes / self.duration


def dumped(report: ScanReport) -> str:
    """Return the report as one JSON document; NaN and infinity are null."""
    return line({"format": FORMAT, **asdict(report)}, digits=_DIGITS)


def loaded(text: str, name: str) -> ScanReport:
    """Decode a report from its JSON. Raises NotUnderstoodError, with ``name`` as the file."""
    try:
        data = parse_json(text)
        if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
            raise RecordError("from another version")
        report = from_json(ScanReport, data)
        times = [report.start, report.watched_from, *(m.t for m in report.moments)]
        if not all(0 <= t < _LATEST for t in (*times, report.end or 0.0)):
            raise RecordError("a time out of range")
    except ValueError as error:
        why = error if isinstance(error, RecordError) else "not JSON"
        raise NotUnderstoodError(f"{name}: not a scan report ({why})") from None
    return replace(report, moments=report.moments[:MOST_POINTS])


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
