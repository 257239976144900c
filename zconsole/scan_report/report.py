"""The report of a scan as data, and its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from zconsole.errors import NotUnderstoodError
from zconsole.output.json import line
from zconsole.pool.model import Scan
from zconsole.system.records import RecordError, from_json, parse_json
from zconsole.timeline.scrubs import is_full_scrub

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
        scan = Scan(
            self.function,
            self.state,
            total_bytes=self.total_bytes,
            issued_bytes=self.issued_bytes,
            full=self.full,
        )
        return self.end if is_full_scrub(scan, self.version) else None

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
