"""Hand-made frames for tests of the code that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.records import replace
from zconsole.pool.balance import balance
from zconsole.pool.health import health
from zconsole.pool.model import ErrorCounters, IoRates, Pool, Sample, Scan, Vdev, placed
from zconsole.pool.redundancy import redundancy
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.frame import Frame, ScanView, VdevRow

NOTHING = Estimate(None, None, None, "nothing runs")


@dataclass(frozen=True, slots=True)
class NoSeries:
    """A series that stores nothing."""

    def tail(self, _key: str, _metric: str, _count: int) -> Sequence[float | None]:
        return ()


def view(scan: Scan, estimate: Estimate = NOTHING, **fields) -> ScanView:
    """Return the view of a scan of which nothing is known but its own counters."""
    base = ScanView(
        scan=scan,
        key=str(scan.key),
        stage=scan.stage,
        percent=scan.percent,
        scan_rate=None,
        issue_rate=None,
        window=None,
        estimate=estimate,
        restarts=None,
    )
    return replace(base, **fields)


def frame(pool: Pool, t: float = 1000.0, scans: tuple[ScanView, ...] = (), **fields) -> Frame:
    """Return a frame of ``pool``; its scans are shown without derived figures unless given.

    Unless ``over_since`` is given, this is the first frame without a running scan.
    """
    left = redundancy(Pool(pool.name, pool.state, pool.root))
    rows = tuple(VdevRow(p.key, p.depth, p.vdev, IoRates()) for p in placed(pool.root))
    base = Frame(
        pool=pool.name,
        sample=Sample(t, t, "libzfs", True, pool),
        failure=None,
        health=health(pool, t),
        scans=scans or tuple(view(scan) for scan in pool.scans),
        activities=(),
        redundancy=tuple(entry for _, entry in left),
        rows=rows,
        balance=balance(pool.root),
        series=NoSeries(),
        over_since=None if any(scan.active for scan in pool.scans) else t,
    )
    return replace(base, **fields)


def mirror_pool(*scans: Scan, state: str = "ONLINE", **fields) -> Pool:
    """Return pool ``tank``: one mirror of sda and sdb."""
    disks = (Vdev("sda", "disk", guid="11"), Vdev("sdb", "disk", guid="12"))
    top = Vdev("mirror-0", "mirror", guid="10", size_bytes=100, alloc_bytes=40, children=disks)
    root = Vdev("tank", "root", guid="1", state=state, children=(top,))
    return Pool("tank", state, root, guid="1", scans=scans, error_count=0, errors=(), **fields)


def noisy_pool(*scans: Scan, cksum: int = 12) -> Pool:
    """Return pool ``tank``, ONLINE, whose sda has counted checksum errors."""
    pool = mirror_pool(*scans)
    top = pool.root.children[0]
    sda = top.children[0]._replace(errors=ErrorCounters(0, 0, cksum))
    top = top._replace(children=(sda, *top.children[1:]))
    return replace(pool, root=pool.root._replace(children=(top,)))
