"""Frames and rebalance jobs as metrics of the official client library: a page, or a textfile.

The names of metrics are in base units, as Prometheus recommends; their end tells unit and type.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from zconsole.errors import NotFoundError, UnavailableError, ZconsoleError
from zconsole.pool.scan_outcome import LastScan
from zconsole.system.printable import clean
from zconsole.timeline.frame import Frame, ScanView, VdevRow

if TYPE_CHECKING:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    MetricFamily = CounterMetricFamily | GaugeMetricFamily

MISSING = (
    "export needs the prometheus_client library: pip install 'zconsole[export]', or "
    "apt install python3-prometheus-client"
)


class Family(NamedTuple):
    """Name, help text and labels of a metric."""

    name: str
    text: str
    labels: tuple[str, ...]

    @property
    def counts(self) -> bool:
        """Whether it is a counter; the others are gauges."""
        return self.name.endswith("_total")


_POOL = ("pool",)
_SCAN = ("pool", "function", "vdev")
_LAST = ("pool", "function")
_VDEV = ("pool", "vdev")
_DEVICE = ("pool", "vdev", "device")
_JOB = ("job_id",)
"""Not ``job``: Prometheus itself puts that label on what it scrapes."""

FAMILIES = tuple(
    Family(f"zconsole_{name}", text, labels)
    for name, text, labels in (
        ("pool_up", "1 when the newest sample of the pool succeeded", _POOL),
        ("pool_stale_seconds", "age of the newest good sample", _POOL),
        ("pool_sample_timestamp_seconds", "time of the newest good sample", _POOL),
        ("pool_health", "1 for the current word of the pool's health", (*_POOL, "word")),
        ("pool_state", "1 for the pool's state as zpool prints it", (*_POOL, "state")),
        ("pool_data_errors", "data errors", _POOL),
        ("scan_active", "1 while running, 0 while paused", _SCAN),
        ("scan_stage", "1 for the current stage", (*_SCAN, "stage")),
        ("scan_start_timestamp_seconds", "when the running scan began", _SCAN),
        ("scan_done_ratio", "progress as zpool prints it", _SCAN),
        ("scan_issue_bytes_per_second", "bytes issued, recent", _SCAN),
        ("scan_scan_bytes_per_second", "bytes scanned, recent", _SCAN),
        ("scan_eta_seconds", "time left", _SCAN),
        ("scan_eta_low_seconds", "low end of the range of the time left", _SCAN),
        ("scan_eta_high_seconds", "high end of the range of the time left", _SCAN),
        ("scan_stalled_seconds", "time without progress", _SCAN),
        ("scan_restarts", "restarts observed", _SCAN),
        ("scan_errors", "errors found", _SCAN),
        ("scan_limit", "1 for what limits the running scan", (*_POOL, "cause")),
        ("scan_ceiling_bytes_per_second", "estimated maximum rate", _POOL),
        ("last_scan_result", "1 for how the last scan ended", (*_LAST, "result")),
        ("last_scan_end_timestamp_seconds", "when the last scan ended", _LAST),
        ("last_scan_duration_seconds", "time the last scan took, with pauses", _LAST),
        ("last_scan_errors", "errors of the last scan", _LAST),
        ("last_scrub_end_timestamp_seconds", "when the last full scrub ended", _POOL),
        ("scrub_age_seconds", "time since the last full scrub, or the pool's creation", _POOL),
        ("scrub_overdue", "1 when the next full scrub is overdue", _POOL),
        ("redundancy_left", "devices that may fail without data loss", _VDEV),
        ("balance_spread_ratio", "largest fill minus smallest", _POOL),
        ("balance_imbalance_bytes", "bytes above the common fill", _POOL),
        ("vdev_fill_ratio", "share allocated", _VDEV),
        ("vdev_new_write_ratio", "expected share of new writes", _VDEV),
        ("device_read_bytes_per_second", "bytes read, recent", _DEVICE),
        ("device_write_bytes_per_second", "bytes written, recent", _DEVICE),
        ("device_wait_seconds", "mean latency of a request", _DEVICE),
        ("device_busy_ratio", "share of time busy", _DEVICE),
        ("device_errors_total", "errors since they were last cleared", (*_DEVICE, "type")),
        ("device_new_errors", "errors within the hour", ("pool", "device")),
        ("device_flaps", "disconnects within the hour", ("pool", "device")),
        ("spare_trouble", "1 for what is wrong with a hot spare", ("pool", "device", "trouble")),
        ("rebalance_job", "1 for the job's state", (*_JOB, "state")),
        ("rebalance_done_bytes", "bytes rewritten", _JOB),
        ("rebalance_total_bytes", "bytes to rewrite", _JOB),
        ("rebalance_bytes_per_second", "bytes rewritten, recent", _JOB),
    )
)
"""Every metric, in the order of the page. The text of one whose value names a state begins with
``1 for``. Unknown values have no sample."""


class MetricSamples:
    """Collects samples under the declared families; unknown values have no sample."""

    def __init__(self) -> None:
        self.families = {family.name: _family(family) for family in FAMILIES}
        self._seen: set[tuple[str, tuple[str, ...]]] = set()

    def put(self, name: str, value: float | None, *labels: str | None) -> None:
        """Add a sample; label values in the family's order. The first of equal ones counts."""
        values = tuple(clean(label or "") for label in labels)
        if value is None or (name, values) in self._seen:
            return
        self._seen.add((name, values))
        self.families[f"zconsole_{name}"].add_metric(values, float(value))


def _family(family: Family) -> MetricFamily:
    from prometheus_client import core  # lazy: an optional library

    kind = core.CounterMetricFamily if family.counts else core.GaugeMetricFamily
    return kind(family.name, family.text, labels=family.labels)


def families(
    frames: Iterable[Frame],
    jobs: Sequence[Mapping[str, Any]] = (),
    last: Callable[[Frame], Iterable[LastScan]] = lambda _: (),
) -> tuple[MetricFamily, ...]:
    """Every metric with a sample.

    ``jobs`` are rebalance statuses as the command prints them; ``last`` gives a pool's last scans.
    """
    samples = MetricSamples()
    for frame in frames:
        _pool(samples, frame)
        _last(samples, frame.pool, tuple(last(frame)))
        _scrub(samples, frame)
    for job in jobs:
        _job(samples, job)
    return tuple(family for family in samples.families.values() if family.samples)


def _pool(samples: MetricSamples, frame: Frame) -> None:
    pool = frame.pool
    samples.put("pool_up", 0.0 if frame.problem else 1.0, pool)
    samples.put("pool_stale_seconds", frame.stale_seconds, pool)
    samples.put("pool_health", 1.0, pool, frame.health.word)
    state = frame.kstat if frame.problem else frame.state
    samples.put("pool_state", 1.0 if state else None, pool, state)
    t = None if frame.sample is None else frame.sample.t
    samples.put("pool_sample_timestamp_seconds", t, pool)
    if frame.problem:
        return
    samples.put("pool_data_errors", frame.seen.error_count, pool)
    for view in frame.scans:
        if view.scan.active:
            _scan(samples, pool, view)
    if frame.limit is not None:
        samples.put("scan_limit", 1.0, pool, frame.limit.cause)
    if frame.ceiling is not None:
        samples.put("scan_ceiling_bytes_per_second", frame.ceiling.rate, pool)
    for entry in frame.redundancy:
        samples.put("redundancy_left", entry.left, pool, entry.vdev)
    samples.put("balance_spread_ratio", frame.balance.spread, pool)
    samples.put("balance_imbalance_bytes", frame.balance.imbalance_bytes, pool)
    for vdev in frame.balance.vdevs:
        samples.put("vdev_fill_ratio", vdev.fill, pool, vdev.name)
        samples.put("vdev_new_write_ratio", vdev.new_write_share, pool, vdev.name)
    for top, row in _leaves(frame.rows):
        _device(samples, pool, top, row)
    for trouble in frame.troubles:
        samples.put("device_new_errors", trouble.deltas.total, pool, trouble.name)
        samples.put("device_flaps", trouble.flaps, pool, trouble.name)
    for spare in frame.spares:
        samples.put("spare_trouble", 1.0, pool, spare.name, spare.kind)


def _scan(samples: MetricSamples, pool: str, view: ScanView) -> None:
    scan, estimate = view.scan, view.estimate
    labels = (pool, scan.function, scan.vdev)
    samples.put("scan_active", 1.0 if scan.state == "running" else 0.0, *labels)
    samples.put("scan_start_timestamp_seconds", scan.start, *labels)
    if view.stage is not None:
        samples.put("scan_stage", 1.0, *labels, view.stage)
    samples.put("scan_done_ratio", None if view.percent is None else view.percent / 100, *labels)
    samples.put("scan_issue_bytes_per_second", view.issue_rate, *labels)
    samples.put("scan_scan_bytes_per_second", view.scan_rate, *labels)
    samples.put("scan_eta_seconds", estimate.eta, *labels)
    samples.put("scan_eta_low_seconds", estimate.low, *labels)
    samples.put("scan_eta_high_seconds", estimate.high, *labels)
    samples.put("scan_stalled_seconds", view.stalled or 0.0, *labels)
    samples.put("scan_restarts", view.restarts, *labels)
    samples.put("scan_errors", scan.errors, *labels)


def _leaves(rows: Sequence[VdevRow]) -> Iterator[tuple[str, VdevRow]]:
    top = ""
    for row in rows:
        if row.depth == 1:
            top = row.vdev.name
        if row.depth > 0 and not row.vdev.children:
            yield top, row


def _device(samples: MetricSamples, pool: str, top: str, row: VdevRow) -> None:
    labels, rates = (pool, top, row.vdev.name), row.rates
    samples.put("device_read_bytes_per_second", rates.read, *labels)
    samples.put("device_write_bytes_per_second", rates.write, *labels)
    samples.put("device_wait_seconds", rates.latency, *labels)
    samples.put("device_busy_ratio", rates.busy, *labels)
    for kind in ("read", "write", "cksum"):
        samples.put("device_errors_total", getattr(row.vdev.errors, kind), *labels, kind)


def _last(samples: MetricSamples, pool: str, scans: Sequence[LastScan]) -> None:
    """The newest ended scan of each function."""
    newest = {scan.function: scan for scan in sorted(scans, key=lambda scan: scan.end)}
    for function, scan in newest.items():
        samples.put("last_scan_result", 1.0, pool, function, scan.result)
        samples.put("last_scan_end_timestamp_seconds", scan.end, pool, function)
        samples.put("last_scan_duration_seconds", scan.duration, pool, function)
        samples.put("last_scan_errors", scan.errors, pool, function)


def _scrub(samples: MetricSamples, frame: Frame) -> None:
    """The last full scrub, whatever scan ended after it; its age is as of a sample."""
    scrub = frame.scrub
    samples.put("last_scrub_end_timestamp_seconds", scrub.last, frame.pool)
    if not frame.problem:
        samples.put("scrub_age_seconds", scrub.age, frame.pool)
        samples.put("scrub_overdue", scrub.overdue, frame.pool)


def _job(samples: MetricSamples, job: Mapping[str, Any]) -> None:
    name = str(job["job"])
    samples.put("rebalance_job", 1.0, name, str(job["state"]))
    samples.put("rebalance_done_bytes", job.get("bytes_done"), name)
    samples.put("rebalance_total_bytes", job.get("bytes_total"), name)
    samples.put("rebalance_bytes_per_second", job.get("rate"), name)


class Page:
    """The newest families, in a registry of their own."""

    def __init__(self) -> None:
        """Raises UnavailableError without the library."""
        try:
            from prometheus_client.registry import CollectorRegistry
        except ImportError:
            raise UnavailableError(MISSING) from None
        self.families: tuple[MetricFamily, ...] = ()
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def collect(self) -> Iterator[MetricFamily]:
        """Every family (called in the server's thread)."""
        yield from self.families


def write(page: Page, path: Path) -> None:
    """Replace a textfile of node_exporter's at once.

    Its directory is often another user's: the draft beside it is new and its name cannot be
    guessed, so that no link leads root to a file elsewhere. Raises ZconsoleError when
    it cannot be replaced, NotFoundError where it is a directory, UnavailableError where it may not
    be.
    """
    from prometheus_client import generate_latest

    draft = path.parent / f".{path.name}.{os.urandom(8).hex()}"
    try:
        with draft.open("xb") as file:
            file.write(generate_latest(page.registry))
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        if isinstance(error, IsADirectoryError):
            raise NotFoundError(f"{path} is a directory, not a file") from None
        if isinstance(error, PermissionError):
            raise UnavailableError(f"{path}: permission denied") from None
        raise ZconsoleError(f"{path}: {error.strerror}") from None
