"""The frame: the only thing views read. Built from a sample and the pool's history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from zconsole.history.views import ActivityView, ScanView, Series
from zconsole.pool.balance import Balance
from zconsole.pool.health import Health
from zconsole.pool.model import NOTHING, Event, HostLoad, IoRates, Vdev
from zconsole.pool.redundancy import Redundancy

if TYPE_CHECKING:
    from zconsole.diagnosis.bottleneck.finding import Ceiling, Verdict
    from zconsole.diagnosis.device_errors.faults import DeviceFault


class VdevRow(NamedTuple):
    """One line of the topology."""

    key: str
    depth: int
    vdev: Vdev
    rates: IoRates
    slow_sibling: str | None = None
    """Why it is the odd one out among its siblings (``61 ms, others 8 ms``), else None."""
    missing_since: float | None = None
    """Epoch seconds at which the console saw it leave ONLINE, or its device go."""

    @property
    def gone(self) -> bool:
        """Whether its device left after the last answer of the pool, which has it ONLINE."""
        return self.missing_since is not None and self.vdev.state == "ONLINE"


class Mark(NamedTuple):
    """Something done from a console, on the timeline of a scan's rate."""

    t: float
    """Epoch seconds."""
    text: str


class Frame(NamedTuple):
    """One pool as the views show it."""

    t: float
    source: str | None
    """What took the sample; None where none was ever taken."""
    exact: bool
    pool: str
    guid: str | None
    state: str | None
    message: str | None
    action: str | None
    error_count: int | None
    errors: tuple[str, ...] | None
    stale_seconds: float | None
    """Age of the newest good sample; None where there never was one."""
    problem: str | None
    kstat: str | None
    health: Health
    scans: tuple[ScanView, ...]
    activities: tuple[ActivityView, ...]
    redundancy: tuple[Redundancy, ...]
    rows: tuple[VdevRow, ...]
    balance: Balance
    series: Series
    events: tuple[Event, ...] = ()
    """Newest last."""
    host: HostLoad | None = None
    version: str | None = None
    comment: str | None = None
    flags: tuple[str, ...] = ()
    """REPLAY, DEMO, as the source says."""
    limit: Verdict | None = None
    """What the running scan waits for; None when none runs."""
    ceiling: Ceiling | None = None
    """The fastest the running scan could go; None while nothing was seen to tell."""
    tunables: Mapping[str, int] = NOTHING
    """Module parameters of scans, where known."""
    marks: tuple[Mark, ...] = ()
    """What was done from consoles, newest last."""
    troubles: tuple[DeviceFault, ...] = ()
    """Devices with new errors, or that came and went, within the hour; worst first."""
    see: str | None = None
    """Where zpool says that more is told of its message."""
    absent: bool = False
    """Whether it was exported or destroyed since: the kernel's list of pools has it no longer."""
    looked: float | None = None
    """Seconds of the steady clock when the newest look at the pool began, also one that ended in
    ``problem``: without a problem, the frame shows nothing older. None if unknown."""

    @property
    def scan(self) -> ScanView | None:
        """The running scan, else the newest, else None."""
        return self.scans[0] if self.scans else None

    @property
    def root(self) -> Vdev | None:
        """The topology; None before the first good sample."""
        return self.rows[0].vdev if self.rows else None
