"""Frames made by hand: the situations an operator meets, and some no operator should."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from zconsole.errorwatch.trouble import Deltas, Signs, SmartCounts, Trouble, with_signs
from zconsole.eta import Estimate
from zconsole.frame import (
    ActivityView,
    Balance,
    Frame,
    Health,
    Redundancy,
    Row,
    ScanView,
    VdevBalance,
)
from zconsole.limits.finding import Ceiling, Verdict
from zconsole.model import Activity, ErrorCounters, Event, HostLoad, IoRates, Progress, Scan, Vdev
from zconsole.topology import placed

NOW = 1795178467.0
"""2026-11-20 12:41:07 UTC."""
KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40


@dataclass
class Past:
    """A series that answers from a table, and for the rest wobbles around a row's own rate."""

    rates: Mapping[str, IoRates] = field(default_factory=dict)
    tables: Mapping[tuple[str, str], Sequence[float | None]] = field(default_factory=dict)
    length: int = 240

    def tail(self, key: str, metric: str, count: int) -> Sequence[float | None]:
        if (key, metric) in self.tables:
            return list(self.tables[key, metric])[-count:]
        now = getattr(self.rates.get(key, IoRates()), metric, None)
        if now is None:
            return [None] * min(count, self.length)
        phase = sum(map(ord, key))
        return [now * (0.85 + 0.15 * math.sin(phase + i)) for i in range(min(count, self.length))]

    def since(self, t: float) -> int | None:
        """A sample a second, the newest at NOW."""
        return round(NOW - t) if 0 <= NOW - t < self.length else None


def disk(name: str, **fields: object) -> Vdev:
    """A leaf with zero errors."""
    fields.setdefault("errors", ErrorCounters(0, 0, 0, 0))
    return Vdev(name, "disk", path=f"/dev/disk/by-id/{name}", **fields)  # type: ignore[arg-type]


def group(name: str, kind: str, *children: Vdev, **fields: object) -> Vdev:
    """An interior vdev."""
    fields.setdefault("errors", ErrorCounters(0, 0, 0))
    return Vdev(name, kind, children=children, **fields)  # type: ignore[arg-type]


def frame(
    root: Vdev,
    *,
    rates: Mapping[str, IoRates] | None = None,
    slow: Mapping[str, str] | None = None,
    missing: Mapping[str, float] | None = None,
    **fields: object,
) -> Frame:
    """A frame over a topology; rates, slow siblings and missing devices by vdev name."""
    rates, slow, missing = rates or {}, slow or {}, missing or {}
    rows = tuple(
        Row(
            place.key,
            place.depth,
            place.vdev,
            rates.get(place.vdev.name, IoRates()),
            slow.get(place.vdev.name),
            missing.get(place.vdev.name),
        )
        for place in placed(root)
    )
    past = Past({row.key: row.rates for row in rows})
    empty: dict[str, object] = {
        "t": NOW,
        "source": "libzfs",
        "exact": True,
        "pool": root.name,
        "guid": "1027",
        "state": root.state,
        "message": None,
        "action": None,
        "error_count": 0,
        "errors": (),
        "stale_seconds": 0.3,
        "problem": None,
        "kstat": "ONLINE",
        "health": Health("OK", "ok"),
        "scans": (),
        "activities": (),
        "redundancy": (),
        "rows": rows,
        "balance": Balance(None, None, None),
        "series": past,
        "host": HostLoad(0.1, 2**34, 2**33),
    }
    return Frame(**(empty | fields))  # type: ignore[arg-type]


def resilver() -> Frame:
    """The raidz2 of screens.md: one disk replaced, one sibling slow."""
    ids = (
        "ata-WDC_WD40EFRX-68N32N0_WD-WCC7K0ECACF",
        "ata-WDC_WD40EFRX-68N32N0_WD-WCC7K00B76A",
        "ata-WDC_WD40EFRX-68N32N0_WD-WCC7K0F9785",
        "ata-WDC_WD40EFRX-68N32N0_WD-WCC7K0F34DA",
        "ata-WDC_WD40EFRX-68N32N0_WD-WCC7K02B5AF",
    )
    replacing = group(
        "replacing-0",
        "replacing",
        disk(ids[0]),
        disk(ids[1], resilvering=True, scan_processed=1143 * GIB),
        state="DEGRADED",
    )
    shaky = disk(
        ids[3],
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
        disk(ids[2]),
        shaky,
        disk(ids[4]),
        state="DEGRADED",
        size_bytes=16 * TIB,
        alloc_bytes=13 * TIB,
    )
    root = group("tank", "root", raidz, state="DEGRADED", size_bytes=16 * TIB, alloc_bytes=13 * TIB)
    read = IoRates(37 * MIB, 0, 410, 0, 0.008, 0.40)
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
    view = ScanView(
        scan,
        "scan:1",
        "issuing",
        38.2,
        0.0,
        124 * MIB,
        300.0,
        Estimate(64320, 58200, 78000, "issuing at 124M/s over 5m00s"),
        1,
        notes=("restarted 12:03 after WCC7K0F34DA came back",),
    )
    made = frame(
        root,
        rates={
            "tank": IoRates(147 * MIB, 37 * MIB, 1640, 420),
            "raidz2-0": IoRates(147 * MIB, 37 * MIB, 1640, 420),
            ids[0]: read,
            ids[1]: IoRates(0, 37 * MIB, 0, 420, 0.090, 1.0),
            ids[2]: read._replace(latency=0.009, busy=0.41),
            ids[3]: read._replace(latency=0.061, busy=0.97),
            ids[4]: read._replace(busy=0.39),
        },
        slow={ids[3]: "61 ms, others 8 ms"},
        state="DEGRADED",
        health=Health("DEGRADED", "warning", ("a replacement is being resilvered",)),
        scans=(view,),
        limit=Verdict(
            "slow-disk",
            "WCC7K0F34DA: 61 ms a read at 97% busy, the others 8 ms",
            sure=0.9,
            advice="look at its SMART errors; it may be the next to fail",
        ),
        ceiling=Ceiling(410 * MIB, 0.3, "the slowest disk"),
        redundancy=(Redundancy("raidz2-0", 1),),
        balance=Balance(
            0.81,
            0.0,
            0.0,
            (
                VdevBalance(
                    "raidz2-0", "raidz2", 16 * TIB, 13 * TIB, 3 * TIB, 0.8125, 0.12, 0.0, 1.0
                ),
            ),
        ),
        events=(
            Event(NOW - 4000, "resilver_start", "resilver started", "notice"),
            Event(NOW - 2200, "statechange", "WCC7K0F34DA went REMOVED", "error", origin="console"),
            Event(NOW - 2160, "statechange", "WCC7K0F34DA is ONLINE again", "notice"),
        ),
    )
    table = [124.0 * MIB * (0.9 + 0.1 * math.sin(i / 9)) for i in range(240)]
    made.series.tables = {("scan:1", "issue_rate"): table}  # type: ignore[attr-defined]
    return made


def flaky() -> Frame:
    """The resilver, its slow disk with a bad cable, and a tunable that somebody changed."""
    made = resilver()
    shaky = next(row for row in made.rows if row.vdev.name.endswith("F34DA"))
    found = Trouble(
        shaky.key,
        shaky.vdev.name,
        Deltas(3, 0, 40, 0, 1500.0),
        NOW - 2160,
        2,
        1,
    )
    signs = Signs(
        SmartCounts(True, 0, 0, 0, 112), ("ata3: hard resetting link",), SmartCounts(True, crc=90)
    )
    return replace(
        made,
        troubles=(with_signs(found, signs),),
        version="2.3.9",
        tunables={"zfs_vdev_scrub_max_active": 1, "zfs_resilver_min_time_ms": 3000},
    )


def healthy() -> Frame:
    """An idle pool with a vdev of every class."""

    def mirror(index: int, *names: str, vclass: str = "normal") -> Vdev:
        disks = tuple(disk(name, vclass=vclass) for name in names)
        return group(
            f"mirror-{index}", "mirror", *disks, vclass=vclass, size_bytes=TIB, alloc_bytes=TIB // 3
        )

    root = group(
        "backup",
        "root",
        mirror(0, "sda", "sdb"),
        mirror(1, "sdc", "sdd"),
        mirror(2, "nvme0n1p1", "nvme1n1p1", vclass="special"),
        mirror(3, "nvme0n1p2", "nvme1n1p2", vclass="log"),
        disk("nvme2n1", vclass="cache"),
        disk("sde", vclass="spare", state="AVAIL"),
        size_bytes=2 * TIB,
        alloc_bytes=2 * TIB // 3,
    )
    quiet = IoRates(0, 0, 0, 0, None, 0.0)
    past = Scan(
        "scrub",
        "finished",
        start=NOW - 4 * 86400 - 15120,
        end=NOW - 4 * 86400,
        processed_bytes=0,
        errors=0,
    )
    vdevs = tuple(
        VdevBalance(f"mirror-{i}", "mirror", TIB, TIB // 3, 2 * TIB // 3, 1 / 3, 0.02, 0.0, 0.5)
        for i in range(2)
    )
    return frame(
        root,
        rates={v.name: quiet for v in root.walk()},
        scans=(
            ScanView(
                past,
                "scan:0",
                None,
                None,
                None,
                None,
                None,
                Estimate(None, None, None, "finished"),
                0,
            ),
        ),
        redundancy=(
            Redundancy("mirror-0", 1),
            Redundancy("mirror-1", 1),
            Redundancy("mirror-2", 1),
        ),
        balance=Balance(1 / 3, 0.0, 0.0, vdevs),
    )


def imbalance() -> Frame:
    """93 % and 0.2 % after a vdev was added."""

    def raidz(index: int, alloc: float) -> Vdev:
        disks = (disk(f"sd{'abcdefgh'[index * 4 + i]}") for i in range(4))
        return group(
            f"raidz1-{index}", "raidz1", *disks, size_bytes=100 * TIB, alloc_bytes=int(alloc * TIB)
        )

    root = group("media", "root", raidz(0, 93.3), raidz(1, 0.2))
    write = IoRates(2 * MIB, 18 * MIB, 20, 180, 0.004, 0.2)
    vdevs = (
        VdevBalance(
            "raidz1-0",
            "raidz1",
            100 * TIB,
            int(93.3 * TIB),
            int(6.8 * TIB),
            0.933,
            0.41,
            46.5 * TIB,
            0.16,
        ),
        VdevBalance(
            "raidz1-1",
            "raidz1",
            100 * TIB,
            int(0.2 * TIB),
            int(99.8 * TIB),
            0.002,
            0.0,
            -46.5 * TIB,
            0.84,
        ),
    )
    return frame(
        root,
        rates={v.name: write for v in root.leaves()},
        redundancy=(Redundancy("raidz1-0", 1), Redundancy("raidz1-1", 1)),
        balance=Balance(0.4675, 0.931, 24.8 * TIB, vdevs),
    )


def swap() -> Frame:
    """All six disks of a raidz2 replaced at once, some resilvering, some waiting."""
    replacing = [
        group(
            f"replacing-{i}",
            "replacing",
            disk(f"c0t{i}d0"),
            disk(f"c1t{i}d0", resilvering=i < 4, awaiting_resilver=i >= 4),
        )
        for i in range(6)
    ]
    root = group("rpool", "root", group("raidz2-0", "raidz2", *replacing))
    rates = {f"c0t{i}d0": IoRates(90 * MIB, 0, 700, 0, 0.007, 0.8) for i in range(6)}
    rates |= {f"c1t{i}d0": IoRates(0, 88 * MIB, 0, 300, 0.004, 0.6) for i in range(4)}
    scan = Scan(
        "resilver",
        "running",
        "scanning",
        start=NOW - 600,
        total_bytes=8 * TIB,
        scanned_bytes=2 * TIB,
        issued_bytes=TIB // 4,
        processed_bytes=TIB // 5,
        errors=0,
        percent=3.1,
    )
    view = ScanView(
        scan,
        "scan:1",
        "scanning",
        3.1,
        900 * MIB,
        300 * MIB,
        60.0,
        Estimate(None, None, None, "still scanning metadata"),
        0,
        full=Estimate(90000, 60000, 130000, "two more disks wait for their turn"),
    )
    return frame(
        root,
        rates=rates,
        scans=(view,),
        redundancy=(Redundancy("raidz2-0", 0, tuple(f"c0t{i}d0" for i in range(6))),),
        health=Health("DEGRADED", "warning", ("two disks wait for a resilver",)),
    )


def suspended() -> Frame:
    """A pool that has not answered for two minutes."""
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


def many(leaves: int = 1000) -> Frame:
    """A pool of many mirrors, all busy."""
    mirrors = tuple(
        group(f"mirror-{i}", "mirror", disk(f"slot{2 * i:04}"), disk(f"slot{2 * i + 1:04}"))
        for i in range(leaves // 2)
    )
    root = group("huge", "root", *mirrors)
    rates = {
        v.name: IoRates(
            (i % 97) * MIB, (i % 31) * MIB, i % 500, i % 300, 0.001 * (i % 20), (i % 100) / 100
        )
        for i, v in enumerate(root.leaves())
    }
    return frame(root, rates=rates)


def rebuilds() -> Frame:
    """dRAID: two rebuilds at once, a scrub, a removal, a checkpoint, a spare in use, trim."""
    spare = group(
        "spare-3",
        "spare",
        disk("d03", state="UNAVAIL", note="was /dev/d03"),
        Vdev("draid2-0-0", "dspare", resilvering=True),
        state="DEGRADED",
    )
    disks = [disk(f"d{i:02}", trim=Progress("active", share=0.43)) for i in range(3)]
    draid = group("draid2:4d:11c:1s-0", "draid2", *disks, spare, state="DEGRADED")
    root = group(
        "lab",
        "root",
        draid,
        group("mirror-1", "mirror", disk("m0"), disk("m1", resilvering=True)),
        Vdev("draid2-0-0", "dspare", vclass="spare", state="INUSE"),
        state="DEGRADED",
    )

    def rebuild(vdev: str, percent: float) -> ScanView:
        scan = Scan(
            "rebuild",
            "running",
            vdev=vdev,
            start=NOW - 900,
            total_bytes=4 * TIB,
            scanned_bytes=2 * TIB,
            issued_bytes=TIB,
            processed_bytes=TIB // 9,
            errors=0,
            percent=percent,
        )
        return ScanView(
            scan,
            f"scan:{vdev}",
            None,
            percent,
            2 * GIB,
            900 * MIB,
            60.0,
            Estimate(3600, 3000, 4800, "rebuilding at 900M/s"),
            0,
        )

    removal = ActivityView(
        Activity("removal", "running", "mirror-2", done_bytes=TIB // 2, total_bytes=TIB),
        200 * MIB,
        Estimate(2600, 2000, 3000, "copying at 200M/s"),
    )
    kept = ActivityView(
        Activity("checkpoint", "exists", start=NOW - 90000, total_bytes=9 * GIB),
        None,
        Estimate(None, None, None, ""),
    )
    return frame(
        root,
        scans=(rebuild("draid2:4d:11c:1s-0", 25.0), rebuild("mirror-1", 70.0)),
        activities=(removal, kept),
        state="DEGRADED",
        health=Health("DEGRADED", "warning", ("d03 UNAVAIL (was /dev/d03)",)),
    )


def unrestored() -> Frame:
    """Finished is not safe: a replacing vdev is still there after the resilver."""
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


def odd_names() -> Frame:
    """Names with escapes, markup, wide characters and no end."""
    names = (
        "a\x1b[31mred\x07",
        "[bold]no[/bold]",
        "磁碟一號",
        "e\u0301\u202ereversed",
        "x" * 300,
        "two words",
        "\udcff\udcfe",
        "",
    )
    root = group(
        "p\x1b]0;title\x07",
        "root",
        group("mirror-0", "mirror", *(disk(n, note=f"was {n}") for n in names)),
    )
    return frame(
        root,
        message="\x1b[2J",
        health=Health("DEGRADED", "warning", ("\x1b[2Jodd",)),
        events=(Event(NOW, "x", "\x9b31m \u2028 bad", "warning", vdev="\x00"),),
        flags=("REPLAY",),
    )


ALL = {
    made.__name__: made
    for made in (
        resilver,
        flaky,
        healthy,
        imbalance,
        swap,
        suspended,
        many,
        rebuilds,
        unrestored,
        odd_names,
    )
}
"""Every situation by name."""
