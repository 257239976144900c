"""Frames and rebalance jobs as Prometheus metrics, for a page or a textfile.

They are made with the official client library. Values are in base units, as Prometheus recommends;
the end of a name tells unit and type.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from zconsole.errors import NotFoundError, UnavailableError, ZconsoleError
from zconsole.pool.scan_outcome import LastScan
from zconsole.system.printable import clean
from zconsole.timeline.frame import Frame, VdevRow

if TYPE_CHECKING:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    MetricFamily = CounterMetricFamily | GaugeMetricFamily

MISSING = (
    "export needs the prometheus_client library: pip install 'zconsole[export]', or "
    "apt install python3-prometheus-client"
)


class Family(NamedTuple):
    """A metric: name, help text, labels, and how to get its value from a subject."""

    name: str
    text: str
    """Help text."""
    subject: str
    """Kind of the things that have a value, a key of LABELS."""
    labels: tuple[str, ...]
    value: Callable[[Any], float | str | Mapping[str, float | None] | None]
    """Returns the value of one thing, None for no sample, or several by the last label's value.

    Text is a state: the value of the last label, of which the sample is 1.
    """

    @property
    def counts(self) -> bool:
        """Whether the metric is a counter; otherwise it is a gauge."""
        return self.name.endswith("_total")


def _getter(value: str | Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function for a value that is given as the path of an attribute."""
    return attrgetter(value) if isinstance(value, str) else value


def _errors(row: VdevRow) -> Mapping[str, float | None]:
    return {kind: getattr(row.vdev.errors, kind) for kind in ("read", "write", "cksum")}


LABELS = {
    "pool": ("pool",),
    "answering pool": ("pool",),
    "scan": ("pool", "function", "vdev"),
    "last scan": ("pool", "function"),
    "redundancy": ("pool", "vdev"),
    "top-level vdev": ("pool", "vdev"),
    "device": ("pool", "vdev", "device"),
    "trouble": ("pool", "device"),
    "spare": ("pool", "device"),
    "job": ("job_id",),
}
"""Labels by kind of subject.

A job's is not ``job``: Prometheus itself adds that label to what it scrapes.
"""

FAMILIES = tuple(
    Family(f"zconsole_{name}", text, subject, LABELS[subject] + tuple(more.split()), _getter(value))
    for subject, name, text, more, value in (
        ("pool", "pool_up", "1 when the newest sample of the pool succeeded", "",
         lambda f: not f.problem),
        ("pool", "pool_stale_seconds", "age of the newest good sample", "", "stale_seconds"),
        ("pool", "pool_sample_timestamp_seconds", "time of the newest good sample", "",
         lambda f: f.sample and f.sample.t),
        ("pool", "pool_health", "1 for the current word of the pool's health", "word",
         "health.word"),
        ("pool", "pool_state", "1 for the pool's state as zpool prints it", "state",
         lambda f: f.kstat if f.problem else f.state),
        ("answering pool", "pool_data_errors", "data errors", "", "seen.error_count"),
        ("scan", "scan_active", "1 while running, 0 while paused", "",
         lambda view: view.scan.state == "running"),
        ("scan", "scan_stage", "1 for the current stage", "stage", "stage"),
        ("scan", "scan_start_timestamp_seconds", "when the running scan began", "", "scan.start"),
        ("scan", "scan_done_ratio", "progress as zpool prints it", "",
         lambda view: None if view.percent is None else view.percent / 100),
        ("scan", "scan_issue_bytes_per_second", "bytes issued, recent", "", "issue_rate"),
        ("scan", "scan_scan_bytes_per_second", "bytes scanned, recent", "", "scan_rate"),
        ("scan", "scan_eta_seconds", "time left", "", "estimate.eta"),
        ("scan", "scan_eta_low_seconds", "low end of the range of the time left", "",
         "estimate.low"),
        ("scan", "scan_eta_high_seconds", "high end of the range of the time left", "",
         "estimate.high"),
        ("scan", "scan_stalled_seconds", "time without progress", "",
         lambda view: view.stalled or 0.0),
        ("scan", "scan_restarts", "restarts observed", "", "restarts"),
        ("scan", "scan_errors", "errors found", "", "scan.errors"),
        ("answering pool", "scan_limit", "1 for what limits the running scan", "cause",
         lambda f: f.limit and f.limit.cause),
        ("answering pool", "scan_ceiling_bytes_per_second", "estimated maximum rate", "",
         lambda f: f.ceiling and f.ceiling.rate),
        ("last scan", "last_scan_result", "1 for how the last scan ended", "result", "result"),
        ("last scan", "last_scan_end_timestamp_seconds", "when the last scan ended", "", "end"),
        ("last scan", "last_scan_duration_seconds", "time the last scan took, with pauses", "",
         "duration"),
        ("last scan", "last_scan_errors", "errors of the last scan", "", "errors"),
        # Even if another scan ended later; its age below needs a sample.
        ("pool", "last_scrub_end_timestamp_seconds", "when the last full scrub ended", "",
         "scrub.last"),
        ("answering pool", "scrub_age_seconds",
         "time since the last full scrub, or the pool's creation", "", "scrub.age"),
        ("answering pool", "scrub_overdue", "1 when the next full scrub is overdue", "",
         "scrub.overdue"),
        ("redundancy", "redundancy_left", "devices that may fail without data loss", "", "left"),
        ("answering pool", "balance_spread_ratio", "largest fill minus smallest", "",
         "balance.spread"),
        ("answering pool", "balance_imbalance_bytes", "bytes above the common fill", "",
         "balance.imbalance_bytes"),
        ("top-level vdev", "vdev_fill_ratio", "share allocated", "", "fill"),
        ("top-level vdev", "vdev_new_write_ratio", "expected share of new writes", "",
         "new_write_share"),
        ("device", "device_read_bytes_per_second", "bytes read, recent", "", "rates.read"),
        ("device", "device_write_bytes_per_second", "bytes written, recent", "", "rates.write"),
        ("device", "device_wait_seconds", "mean latency of a request", "", "rates.latency"),
        ("device", "device_busy_ratio", "share of time busy", "", "rates.busy"),
        ("device", "device_errors_total", "errors since they were last cleared", "type", _errors),
        ("trouble", "device_new_errors", "errors within the hour", "", "deltas.total"),
        ("trouble", "device_flaps", "disconnects within the hour", "", "flaps"),
        ("spare", "spare_trouble", "1 for what is wrong with a hot spare", "trouble", "kind"),
        ("job", "rebalance_job", "1 for the job's state", "state",
         lambda job: str(job["state"])),
        ("job", "rebalance_done_bytes", "bytes rewritten", "", lambda job: job.get("bytes_done")),
        ("job", "rebalance_total_bytes", "bytes to rewrite", "",
         lambda job: job.get("bytes_total")),
        ("job", "rebalance_bytes_per_second", "bytes rewritten, recent", "",
         lambda job: job.get("rate")),
    )
)  # fmt: skip
"""Every metric, in the order of the page.

The help text of a metric that names a state begins with ``1 for``. Unknown values have no sample.
"""


def families(
    frames: Iterable[Frame],
    jobs: Sequence[Mapping[str, Any]] = (),
    last: Callable[[Frame], Iterable[LastScan]] = lambda _: (),
) -> tuple[MetricFamily, ...]:
    """Return every metric that has samples; of samples with equal labels, the first counts.

    ``jobs`` are rebalance statuses as the command prints them; ``last`` returns a pool's last
    scans.
    """
    from prometheus_client import core  # lazy: an optional library

    things = [thing for frame in frames for thing in _subjects(frame, last(frame))]
    things += [("job", (str(job["job"]),), job) for job in jobs]
    made = []
    for family in FAMILIES:
        kind = core.CounterMetricFamily if family.counts else core.GaugeMetricFamily
        metric = kind(family.name, family.text, labels=family.labels)
        samples: dict[tuple[str, ...], float] = {}
        for subject, labels, thing in things:
            if subject != family.subject:
                continue
            found = family.value(thing)
            several = found if isinstance(found, Mapping) else {None: found}
            if isinstance(found, str):
                several = {found: 1.0} if found else {}
            for word, value in several.items():
                named = labels if word is None else (*labels, word)
                if value is not None:
                    samples.setdefault(tuple(clean(each or "") for each in named), float(value))
        for named, value in samples.items():
            metric.add_metric(named, value)
        made.append(metric)
    return tuple(metric for metric in made if metric.samples)


def _subjects(
    frame: Frame, last: Iterable[LastScan]
) -> Iterator[tuple[str, tuple[str | None, ...], Any]]:
    """Yield everything in a frame that has metrics: kind of subject, label values, and itself."""
    pool = frame.pool
    yield "pool", (pool,), frame
    for ended in last:
        yield "last scan", (pool, ended.function), ended
    if frame.problem:  # the rest would be from an old sample
        return
    yield "answering pool", (pool,), frame
    for view in frame.scans:
        if view.scan.active:
            yield "scan", (pool, view.scan.function, view.scan.vdev), view
    for entry in frame.redundancy:
        yield "redundancy", (pool, entry.vdev), entry
    for vdev in frame.balance.vdevs:
        yield "top-level vdev", (pool, vdev.name), vdev
    top = ""
    for row in frame.rows:
        if row.depth == 1:
            top = row.vdev.name
        if row.depth > 0 and not row.vdev.children:
            yield "device", (pool, top, row.vdev.name), row
    for trouble in frame.troubles:
        yield "trouble", (pool, trouble.name), trouble
    for spare in frame.spares:
        yield "spare", (pool, spare.name), spare


class Page:
    """The newest metrics, as a collector in a registry of its own."""

    def __init__(self) -> None:
        """Raises UnavailableError if prometheus_client is not installed."""
        try:
            from prometheus_client.registry import CollectorRegistry
        except ImportError:
            raise UnavailableError(MISSING) from None
        self.families: tuple[MetricFamily, ...] = ()
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def collect(self) -> Iterator[MetricFamily]:
        """Yield every metric; the library calls this in the server's thread."""
        yield from self.families


def write(page: Page, path: Path) -> None:
    """Replace a textfile for node_exporter atomically.

    Its directory often belongs to another user: the draft in it is a new file with a name that
    can't be guessed, so that no symbolic link can lead root to another file. Raises NotFoundError
    if ``path`` is a directory, UnavailableError if permission is denied, ZconsoleError if it can't
    be replaced for another reason.
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
