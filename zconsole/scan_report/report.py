"""A scan's report as data, and to and from its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from zconsole.errors import NotUnderstoodError
from zconsole.output.json import line
from zconsole.pool.model import Scan
from zconsole.system.records import RecordError, from_json, parse_json
from zconsole.timeline.scrubs import is_full_scrub

FORMAT = 1
MOST_POINTS = 600
_DIGITS = 12
"""Digits of a float: more would only fill the file."""
_LATEST = 1e11
"""Epoch seconds, in the year 5138: every time below it has a date to print."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One point of the course. Rates in bytes/s, shares 0…1."""

    t: float
    """Epoch seconds."""
    issue_rate: float | None
    scan_rate: float | None = None
    percent: float | None = None
    told_end: float | None = None
    """Epoch seconds of its predicted end."""
    cpu: float | None = None
    memory: float | None = None
    """Share of the machine's memory in use."""
    latency: float | None = None
    """Mean disk wait in seconds."""
    cause: str | None = None
    """What limited it (a cause of zconsole.diagnosis.bottleneck)."""


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """What one device did for the scan: bytes moved, mean share busy, waits in seconds."""

    name: str
    filled: bool
    """Whether it was being resilvered."""
    read_bytes: float
    write_bytes: float
    seconds: float
    busy: float | None
    latency: float | None
    worst_latency: float | None
    new_errors: int = 0
    disk: str = ""
    """Where its disk sits and which it is: ``Slot 05, serial ZC1A2B3C``; empty if unknown."""


@dataclass(frozen=True, slots=True)
class TunableChange:
    """A module parameter that changed while it ran, and the issue rate around that."""

    t: float
    name: str
    before: int
    after: int
    issue_before: float | None = None
    issue_after: float | None = None
    latency_before: float | None = None
    latency_after: float | None = None


@dataclass(frozen=True, slots=True)
class ScanReport:
    """The report of one scan. Bytes, seconds, epoch seconds."""

    pool: str
    guid: str | None
    function: str
    vdev: str | None
    start: float
    state: str
    """running, finished or canceled."""
    watched_from: float
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
    """Cause to the seconds it was the limit."""
    evidence: Mapping[str, str] = field(default_factory=dict)
    """Cause to its evidence, in words, when last seen."""
    troubles: Mapping[str, str] = field(default_factory=dict)
    """Device to its new errors with their cause, in words."""
    changes: tuple[TunableChange, ...] = ()
    tunables: Mapping[str, int] = field(default_factory=dict)
    """Module parameters of scans as they were when it was first seen, where known."""
    ceiling: float | None = None
    """Its estimated maximum rate on these disks, in issued bytes/s, by the last estimate."""
    ceiling_text: str = ""
    notes: tuple[str, ...] = ()
    full: bool | None = None
    """See Scan.full."""

    @property
    def duration(self) -> float:
        """Seconds from its start to its end, or to the last sample."""
        last = self.moments[-1].t if self.moments else self.start
        return max(0.0, (self.end if self.end is not None else last) - self.start)

    @property
    def full_scrub(self) -> float | None:
        """When it ended, in epoch seconds, if it is of a full scrub that finished; else None."""
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
        """Mean bytes/s issued over its whole length."""
        if not self.issued_bytes or self.duration <= 0:
            return None
        return self.issued_bytes / self.duration


def dumped(report: ScanReport) -> str:
    """The report as one JSON document; NaN and infinity are null."""
    return line({"format": FORMAT, **asdict(report)}, digits=_DIGITS)


def loaded(text: str, name: str) -> ScanReport:
    """A report from its JSON. Raises NotUnderstoodError, naming ``name``, for anything else."""
    try:
        data = parse_json(text)
        if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
            raise RecordError("from another version")
        report = from_json(ScanReport, data)
        times = [report.start, report.watched_from, *(m.t for m in report.moments)]
        if not all(0 <= t < _LATEST for t in (*times, report.end or 0.0)):
            raise RecordError("a time out of range")
    except ValueError as error:
        why = error if isinstance(error, RecordError) else type(error).__name__
        raise NotUnderstoodError(f"{name}: not a scan report ({why})") from None
    return replace(report, moments=report.moments[:MOST_POINTS])
