"""Scans of a pool of one mirror, sample by sample."""

from __future__ import annotations

from datetime import UTC

from tests.records import replace
from zconsole.pool.model import Pool, Sample, Scan, Vdev
from zconsole.timeline.pool import PoolTimeline

T = 1_800_000_000.0
MIB = 2**20
TOTAL = 10_000 * MIB


def disk(name: str, **fields) -> Vdev:
    return Vdev(name, "disk", guid=name, **fields)


HEALTHY = (disk("a"), disk("b"))


def sample(second: float, *scans: Scan, leaves=HEALTHY, source="libzfs", events=()) -> Sample:
    top = Vdev("mirror-0", "mirror", guid="m", children=leaves)
    pool = Pool("tank", "ONLINE", Vdev("tank", "root", guid="r", children=(top,)), scans=scans)
    return Sample(T + second, second, source, True, pool, events=events)


def resilver(issued: float, start: float = 0.0, **fields) -> Scan:
    scan = Scan(
        "resilver",
        "running",
        stage="issuing",
        start=T + start,
        total_bytes=TOTAL,
        scanned_bytes=TOTAL,
        issued_bytes=int(issued),
        skipped_bytes=0,
    )
    return replace(scan, **fields)


def watched(*samples: Sample) -> PoolTimeline:
    timeline = PoolTimeline(UTC)
    for one in samples:
        timeline.push(one)
    return timeline


def running(seconds: range, start: float = 0.0, rate: float = 50 * MIB, **fields) -> list[Sample]:
    return [sample(n, resilver((n - start) * rate, start), **fields) for n in seconds]


def view(timeline: PoolTimeline):
    return timeline.frame.scans[0]


def names(timeline: PoolTimeline) -> list[str]:
    return [event.name for event in timeline.events.all]


WAITING = (disk("a"), disk("b", resilvering=True), disk("c", awaiting_resilver=True))


def ended(start: float, seconds: float, function: str = "resilver") -> Sample:
    fields = {"function": function, "state": "finished", "stage": None}
    return sample(start + seconds, resilver(TOTAL, start, end=T + start + seconds, **fields))


def scrub(seconds: range, start: float, rate: float) -> list[Sample]:
    return [
        sample(n, resilver((n - start) * rate, start, function="scrub", pass_start=T + start))
        for n in seconds
    ]


MONTH = 30 * 86400
