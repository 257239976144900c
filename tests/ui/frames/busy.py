"""Many scans and activities at once."""

from __future__ import annotations

from tests.ui.frames.making import GIB, MIB, NOW, TIB, disk, frame, group
from zconsole.pool.health import Health
from zconsole.pool.model import Activity, IoRates, Progress, Scan, Vdev
from zconsole.pool.redundancy import Redundancy
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.frame import ActivityView, Frame, ScanView


def swap() -> Frame:
    """Return a raidz2 with all six disks being replaced, some resilvering, some waiting."""
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
        Estimate(None, None, None, "still finding blocks"),
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


def rebuilds() -> Frame:
    """Return a dRAID: two rebuilds, a scrub, a removal, a checkpoint, a spare in use, trim."""
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
            scanned_bytes=int(percent / 100 * 4 * TIB),
            issued_bytes=int(percent / 100 * 2 * TIB),
            skipped_bytes=2 * TIB,
            processed_bytes=int(percent / 100 * 2 * TIB),
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
