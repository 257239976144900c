"""Frames and rebalance jobs as gauges of the official client library: a page, or a textfile.

In base units, as Prometheus recommends.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zconsole.errors import NotFoundError, UnavailableError, ZconsoleError
from zconsole.history.views import ScanView
from zconsole.monitor.frame import Frame, VdevRow
from zconsole.system.printable import clean

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily

MISSING = (
    "export needs the prometheus_client library: pip install 'zconsole[export]', or "
    "apt install python3-prometheus-client"
)

FAMILIES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("zconsole_pool_up", "1 when the newest sample of the pool succeeded", ("pool",)),
    ("zconsole_pool_stale_seconds", "age of the newest good sample", ("pool",)),
    ("zconsole_pool_health", "1 for the current word of the pool's health", ("pool", "word")),
    ("zconsole_pool_data_errors", "data errors", ("pool",)),
    ("zconsole_scan_active", "1 while running, 0 while paused", ("pool", "function", "vdev")),
    ("zconsole_scan_stage", "1 for the current stage", ("pool", "function", "vdev", "stage")),
    ("zconsole_scan_done_ratio", "progress as zpool prints it", ("pool", "function", "vdev")),
    ("zconsole_scan_issue_bytes_per_second", "bytes issued, recent", ("pool", "function", "vdev")),
    ("zconsole_scan_scan_bytes_per_second", "bytes scanned, recent", ("pool", "function", "vdev")),
    ("zconsole_scan_eta_seconds", "time left", ("pool", "function", "vdev")),
    ("zconsole_scan_eta_low_seconds", "low end of its range", ("pool", "function", "vdev")),
    ("zconsole_scan_eta_high_seconds", "high end of its range", ("pool", "function", "vdev")),
    ("zconsole_scan_stalled_seconds", "time without progress", ("pool", "function", "vdev")),
    ("zconsole_scan_restarts", "restarts observed", ("pool", "function", "vdev")),
    ("zconsole_scan_errors", "errors found", ("pool", "function", "vdev")),
    ("zconsole_scan_limit", "1 for what limits the running scan", ("pool", "cause")),
    ("zconsole_scan_ceiling_bytes_per_second", "estimated maximum rate", ("pool",)),
    ("zconsole_redundancy_left", "devices that may fail without data loss", ("pool", "vdev")),
    ("zconsole_balance_spread_ratio", "largest fill minus smallest", ("pool",)),
    ("zconsole_balance_imbalance_bytes", "bytes above the common fill", ("pool",)),
    ("zconsole_vdev_fill_ratio", "share allocated", ("pool", "vdev")),
    ("zconsole_vdev_new_write_ratio", "expected share of new writes", ("pool", "vdev")),
    ("zconsole_device_read_bytes_per_second", "recent rate", ("pool", "vdev", "device")),
    ("zconsole_device_write_bytes_per_second", "recent rate", ("pool", "vdev", "device")),
    ("zconsole_device_wait_seconds", "mean latency of a request", ("pool", "vdev", "device")),
    ("zconsole_device_busy_ratio", "share of time busy", ("pool", "vdev", "device")),
    ("zconsole_device_new_errors", "errors within the hour", ("pool", "device")),
    ("zconsole_device_flaps", "disconnects within the hour", ("pool", "device")),
    ("zconsole_rebalance_job", "1 for the job's state", ("job", "state")),
    ("zconsole_rebalance_done_bytes", "bytes rewritten", ("job",)),
    ("zconsole_rebalance_total_bytes", "bytes to rewrite", ("job",)),
    ("zconsole_rebalance_bytes_per_second", "current rate", ("job",)),
)
"""Name, help text and labels of every metric."""


class Gauges:
    """Collects samples under the declared families; unknown values have no sample."""

    def __init__(self) -> None:
        from prometheus_client.core import GaugeMetricFamily  # lazy: an optional library

        self.families = {
            name: GaugeMetricFamily(name, text, labels=labels) for name, text, labels in FAMILIES
        }
        self._seen: set[tuple[str, tuple[str, ...]]] = set()

    def put(self, name: str, value: float | None, *labels: str | None) -> None:
        """Add a sample; label values in the family's order. The first of equal ones counts."""
        values = tuple(clean(label or "") for label in labels)
        if value is None or (name, values) in self._seen:
            return
        self._seen.add((name, values))
        self.families[f"zconsole_{name}"].add_metric(values, float(value))


def families(
    frames: Iterable[Frame], jobs: Sequence[Mapping[str, Any]] = ()
) -> tuple[GaugeMetricFamily, ...]:
    """Every metric with a sample; ``jobs`` are rebalance statuses as the command prints them."""
    gauges = Gauges()
    for frame in frames:
        _pool(gauges, frame)
    for job in jobs:
        _job(gauges, job)
    return tuple(family for family in gauges.families.values() if family.samples)


def _pool(gauges: Gauges, frame: Frame) -> None:
    pool = frame.pool
    gauges.put("pool_up", 0.0 if frame.problem else 1.0, pool)
    gauges.put("pool_stale_seconds", frame.stale_seconds, pool)
    gauges.put("pool_health", 1.0, pool, frame.health.word)
    if frame.problem:
        return
    gauges.put("pool_data_errors", frame.seen.error_count, pool)
    for view in frame.scans:
        if view.scan.active:
            _scan(gauges, pool, view)
    if frame.limit is not None:
        gauges.put("scan_limit", 1.0, pool, frame.limit.cause)
    if frame.ceiling is not None:
        gauges.put("scan_ceiling_bytes_per_second", frame.ceiling.rate, pool)
    for entry in frame.redundancy:
        gauges.put("redundancy_left", entry.left, pool, entry.vdev)
    gauges.put("balance_spread_ratio", frame.balance.spread, pool)
    gauges.put("balance_imbalance_bytes", frame.balance.imbalance_bytes, pool)
    for vdev in frame.balance.vdevs:
        gauges.put("vdev_fill_ratio", vdev.fill, pool, vdev.name)
        gauges.put("vdev_new_write_ratio", vdev.new_write_share, pool, vdev.name)
    for top, row in _leaves(frame.rows):
        _device(gauges, pool, top, row)
    for trouble in frame.troubles:
        gauges.put("device_new_errors", trouble.deltas.total, pool, trouble.name)
        gauges.put("device_flaps", trouble.flaps, pool, trouble.name)


def _scan(gauges: Gauges, pool: str, view: ScanView) -> None:
    scan, estimate = view.scan, view.estimate
    labels = (pool, scan.function, scan.vdev)
    gauges.put("scan_active", 1.0 if scan.state == "running" else 0.0, *labels)
    if view.stage is not None:
        gauges.put("scan_stage", 1.0, *labels, view.stage)
    gauges.put("scan_done_ratio", None if view.percent is None else view.percent / 100, *labels)
    gauges.put("scan_issue_bytes_per_second", view.issue_rate, *labels)
    gauges.put("scan_scan_bytes_per_second", view.scan_rate, *labels)
    gauges.put("scan_eta_seconds", estimate.eta, *labels)
    gauges.put("scan_eta_low_seconds", estimate.low, *labels)
    gauges.put("scan_eta_high_seconds", estimate.high, *labels)
    gauges.put("scan_stalled_seconds", view.stalled or 0.0, *labels)
    gauges.put("scan_restarts", view.restarts, *labels)
    gauges.put("scan_errors", scan.errors, *labels)


def _leaves(rows: Sequence[VdevRow]) -> Iterator[tuple[str, VdevRow]]:
    top = ""
    for row in rows:
        if row.depth == 1:
            top = row.vdev.name
        if row.depth > 0 and not row.vdev.children:
            yield top, row


def _device(gauges: Gauges, pool: str, top: str, row: VdevRow) -> None:
    labels, rates = (pool, top, row.vdev.name), row.rates
    gauges.put("device_read_bytes_per_second", rates.read, *labels)
    gauges.put("device_write_bytes_per_second", rates.write, *labels)
    gauges.put("device_wait_seconds", rates.latency, *labels)
    gauges.put("device_busy_ratio", rates.busy, *labels)


def _job(gauges: Gauges, job: Mapping[str, Any]) -> None:
    name = str(job["job"])
    gauges.put("rebalance_job", 1.0, name, str(job["state"]))
    gauges.put("rebalance_done_bytes", job.get("bytes_done"), name)
    gauges.put("rebalance_total_bytes", job.get("bytes_total"), name)
    gauges.put("rebalance_bytes_per_second", job.get("rate"), name)


class Page:
    """The newest families, in a registry of their own."""

    def __init__(self) -> None:
        """Raises UnavailableError without the library."""
        try:
            from prometheus_client.registry import CollectorRegistry
        except ImportError:
            raise UnavailableError(MISSING) from None
        self.families: tuple[GaugeMetricFamily, ...] = ()
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
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
