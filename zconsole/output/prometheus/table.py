"""The table of metrics: the page, the dashboard and the alert rules are made from it.

Names are in base units, as Prometheus recommends; the end of a name tells its unit and type.
"""

from __future__ import annotations

from typing import NamedTuple


class Family(NamedTuple):
    """Name, help text and labels of a metric."""

    name: str
    text: str
    labels: tuple[str, ...]

    @property
    def counts(self) -> bool:
        """Whether it is a counter; the others are gauges."""
        return self.name.endswith("_total")

    @property
    def names_state(self) -> bool:
        """Whether its value is always 1, and its last label is what it tells."""
        return self.text.startswith("1 for ")


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
BY_NAME = {family.name: family for family in FAMILIES}
