"""A raidz2 with a disk being replaced, and the problems that may occur."""

from __future__ import annotations

import math

from tests.records import replace
from tests.ui.frames.making import GIB, MIB, NOW, TIB, disk, frame, group
from zconsole.diagnosis.bottleneck.finding import Ceiling, Suggestion, Verdict
from zconsole.diagnosis.device_errors.faults import (
    Deltas,
    DeviceFault,
    ProbeResults,
    SmartCounts,
    with_cause,
)
from zconsole.pool.balance import Balance, VdevBalance
from zconsole.pool.health import Health
from zconsole.pool.model import ErrorCounters, Event, IoRates, Scan, Vdev
from zconsole.pool.redundancy import Redundancy
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.frame import Frame, ScanView
from zconsole.timeline.scan_rate import Mark, PastRates

IDS = (
    "ata-WDC_WD40EFRX-68N32N0_WD-WCC7K0ECACF",
    "ata-WDC_WD40EFRX-68N32N0_WD-WCC7K00B76A",
    "ata-WDC_WD40EFRX-68N32N0_WD-WCC7K0F9785",
    "ata-WDC_WD40EFRX-68N32N0_WD-WCC7K0F34DA",
    "ata-WDC_WD40EFRX-68N32N0_WD-WCC7K02B5AF",
)
"""Names of the disks: kept, new, kept, slow, kept."""


def resilver() -> Frame:
    """Return the raidz2 of screens.md: one disk replaced, one sibling slow."""
    made = frame(
        _raidz2(),
        rates=_rates(),
        slow={IDS[3]: "61 ms, others 8 ms"},
        state="DEGRADED",
        health=Health("DEGRADED", "warning", ("a replacement is being resilvered",)),
        scans=(_issuing(),),
        limit=Verdict(
            "slow-disk",
            "WCC7K0F34DA is slow: 97 % busy, siblings 40 %; latency 61ms, siblings 8ms",
            sure=0.9,
            suggestion=Suggestion("look at its SMART errors; it may be the next to fail"),
            disk=IDS[3],
        ),
        ceiling=Ceiling(410 * MIB, 0.3, "the slowest disk"),
        redundancy=(Redundancy("raidz2-0", 1),),
        balance=_even(),
        events=_EVENTS,
        quiet_since=NOW - 2220,
    )
    table = [124.0 * MIB * (0.9 + 0.1 * math.sin(i / 9)) for i in range(240)]
    made.series.tables = {("scan:1", "issue_rate"): table}  # type: ignore[attr-defined]
    return made


def _raidz2() -> Vdev:
    replacing = group(
        "replacing-0",
        "replacing",
        disk(IDS[0]),
        disk(IDS[1], resilvering=True, scan_processed=1143 * GIB),
        state="DEGRADED",
    )
    shaky = disk(
        IDS[3],
        errors=ErrorCounters(3, 0, 0, 7),
        guid="12399887766554433221",
        ashift=9,
        physical_ashift=12,
        size_bytes=4 * TIB,
        queues={"async_r": (12, 2), "scrub": (31, 3), "sync_r": (0, 0)},
        histograms={
            "disk_r": tuple(
                [0] * 18 + [3, 40, 310, 900, 620, 700, 2200, 4100, 1900, 300, 12, 1] + [0] * 7
            )
        },
    )
    raidz = group(
        "raidz2-0",
        "raidz2",
        replacing,
        disk(IDS[2]),
        shaky,
        disk(IDS[4]),
        state="DEGRADED",
        size_bytes=16 * TIB,
        alloc_bytes=13 * TIB,
    )
    return group("tank", "root", raidz, state="DEGRADED", size_bytes=16 * TIB, alloc_bytes=13 * TIB)


def _issuing() -> ScanView:
    scan = Scan(
        "resilver",
        "running",
        "issuing",
        start=NOW - 20000,
        total_bytes=int(12.9 * TIB),
        scanned_bytes=int(12.9 * TIB),
        issued_bytes=int(4.93 * TIB),
        skipped_bytes=0,
        processed_bytes=1143 * GIB,
        errors=0,
        percent=38.2,
        zpool_eta=45660.0,
    )
    return ScanView(
        scan,
        "scan:1",
        "issuing",
        38.2,
        0.0,
        124 * MIB,
        300.0,
        Estimate(64320, 58200, 78000, "resilvering at 124M/s over 5m00s"),
        1,
        notes=("restarted 12:03 after WCC7K0F34DA came back",),
        past=_past(),
    )


def _past() -> PastRates:
    """Return rates over 5.5 hours: metadata first, a dip while a disk was gone, a restart."""
    rates = [0.0 if n < 40 else 124.0 * MIB * (0.9 + 0.1 * math.sin(n / 9)) for n in range(313)]
    rates[276:280] = [None, 20.0 * MIB, 12.0 * MIB, 60.0 * MIB]
    marks = (Mark(NOW - 17400, "resilvering"), Mark(NOW - 2280, "restart"))
    return PastRates(NOW - 20032, 64.0, tuple(rates), marks)


def _rates() -> dict[str, IoRates]:
    read = IoRates(37 * MIB, 0, 410, 0, 0.008, 0.40)
    return {
        "tank": IoRates(147 * MIB, 37 * MIB, 1640, 420),
        "raidz2-0": IoRates(147 * MIB, 37 * MIB, 1640, 420),
        IDS[0]: read,
        IDS[1]: IoRates(0, 37 * MIB, 0, 420, 0.090, 1.0),
        IDS[2]: read._replace(latency=0.009, busy=0.41),
        IDS[3]: read._replace(latency=0.061, busy=0.97),
        IDS[4]: read._replace(busy=0.39),
    }


def _even() -> Balance:
    return Balance(
        0.81,
        0.0,
        0.0,
        (VdevBalance("raidz2-0", "raidz2", 16 * TIB, 13 * TIB, 3 * TIB, 0.8125, 0.12, 0.0, 1.0),),
    )


_EVENTS = (
    Event(NOW - 4000, "resilver_start", "resilver started", "notice"),
    Event(NOW - 2200, "statechange", "WCC7K0F34DA went REMOVED", "error", origin="console"),
    Event(NOW - 2160, "statechange", "WCC7K0F34DA is ONLINE again", "notice"),
)


def flaky() -> Frame:
    """Return the resilver, its slow disk with a bad cable, and a tunable that somebody changed."""
    made = resilver()
    shaky = next(row for row in made.rows if row.vdev.name.endswith("F34DA"))
    found = DeviceFault(
        shaky.key,
        shaky.vdev.name,
        Deltas(3, 0, 40, 0, 1500.0),
        NOW - 2160,
        flaps=2,
        restarts=1,
    )
    signs = ProbeResults(
        SmartCounts(True, 0, 0, 0, 112), ("ata3: hard resetting link",), SmartCounts(True, crc=90)
    )
    return replace(
        made,
        troubles=(with_cause(found, signs),),
        version="2.3.9",
        tunables={"zfs_vdev_scrub_max_active": 1, "zfs_resilver_min_time_ms": 3000},
    )


def suspended() -> Frame:
    """Return a pool that has not answered for two minutes."""
    base = resilver()
    gone = {row.vdev.name: NOW - 130 for row in base.rows[3:5]}
    rows = tuple(
        replace(
            row,
            vdev=replace(row.vdev, state="REMOVED", resilvering=False),
            rates=IoRates(),
            missing_since=gone[row.vdev.name],
        )
        if row.vdev.name in gone
        else row
        for row in base.rows
    )
    return replace(
        base,
        rows=rows,
        stale_seconds=128.0,
        kstat="SUSPENDED",
        state="SUSPENDED",
        problem="no answer from ZFS within 5s",
        health=Health(
            "SUSPENDED", "error", ("no answer from ZFS within 5s", "last seen 2m08s ago")
        ),
        redundancy=(Redundancy("raidz2-0", 0, ("…F9785", "…F34DA", "…2B5AF")),),
    )


def deserted() -> Frame:
    """Return a pool that does not answer and has lost a device, ONLINE in its last tree."""
    base = suspended()
    lost = base.rows[5]
    row = replace(lost, rates=IoRates(), missing_since=NOW - 60)
    return replace(base, rows=tuple(row if each is lost else each for each in base.rows))


def unrestored() -> Frame:
    """Return a pool with a replacing vdev left after its resilver: finished is not safe."""
    base = resilver()
    done = replace(base.scans[0].scan, state="finished", end=NOW - 600, errors=2, percent=None)
    view = replace(base.scans[0], scan=done, stage=None, percent=None, notes=())
    return replace(
        base,
        scans=(view,),
        health=Health(
            "NOT RESTORED",
            "error",
            ("the last repair ended with 2 errors", "replacing-0 still there after the resilver"),
        ),
    )


def of_scan(**fields: object) -> Frame:
    """Return the resilver with other fields of its scan view."""
    base = resilver()
    return replace(base, scans=(base.scans[0]._replace(**fields),))
