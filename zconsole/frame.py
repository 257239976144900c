"""The frame: the only thing views read. Built from a sample and the pool's history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from zconsole.eta import Estimate
from zconsole.model import NOTHING, Activity, Event, HostLoad, IoRates, Scan, Vdev

if TYPE_CHECKING:
    from zconsole.errorwatch.trouble import Trouble
    from zconsole.limits.finding import Ceiling, Verdict


class Series(Protocol):
    """Past rates, newest last, for sparklines; bounded, never mutated by a reader."""

    def tail(self, key: str, metric: str, count: int) -> Sequence[float | None]:
        """The last ``count`` values of ``metric`` (read, write: bytes/s; latency: s; busy) of a
        vdev key, or of a scan (metric scan_rate, issue_rate); None where there was no sample."""

    def since(self, t: float) -> int | None:
        """How many samples ago (0: the newest) the first one at or after ``t`` was taken; None
        when no sample before ``t`` is kept."""


class ScanView(NamedTuple):
    """A scan with what follows from having watched it."""

    scan: Scan
    key: str
    """For ``Series.tail``."""
    stage: str | None
    percent: float | None
    scan_rate: float | None
    """Bytes/s over a window; the pass average when there was only one sample."""
    issue_rate: float | None
    window: float | None
    """Seconds the rates cover; None for a pass average."""
    estimate: Estimate
    restarts: int | None
    stalled: float | None = None
    """Seconds without progress, once that is long enough to call it stalled."""
    full: Estimate | None = None
    """To full redundancy, where that is later than this pass (deferred devices, scrub to come)."""
    notes: tuple[str, ...] = ()
    """In words, newest first: ``restarted 12:03 after sdc came back``, ``follow-on pass``."""


class ActivityView(NamedTuple):
    """A removal, expansion, checkpoint, trim or initialize with its windowed rate."""

    activity: Activity
    rate: float | None
    estimate: Estimate


class Redundancy(NamedTuple):
    """How many more devices of a top-level vdev may fail now without losing data."""

    vdev: str
    left: int
    untouchable: tuple[str, ...] = ()
    """At 0: the devices whose loss would lose data."""


class Health(NamedTuple):
    """Is it all right? ``word`` first, then why, worst first."""

    word: str
    """OK, DEGRADED, NOT RESTORED, FAULTED, SUSPENDED, UNAVAIL, ERRORS, STALE,
    NOT IMPORTED."""
    severity: str
    """ok, notice, warning or error."""
    reasons: tuple[str, ...] = ()


class Row(NamedTuple):
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


class VdevBalance(NamedTuple):
    """Fill of one normal-class top-level vdev; the names of contract's BALANCE."""

    name: str
    kind: str
    size_bytes: int | None
    alloc_bytes: int | None
    free_bytes: int | None
    fill: float | None
    frag: float | None
    surplus_bytes: float | None
    new_write_share: float | None


class Balance(NamedTuple):
    """How evenly data is spread over the normal-class top-level vdevs."""

    target_fill: float | None
    spread: float | None
    imbalance_bytes: float | None
    vdevs: tuple[VdevBalance, ...] = ()


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
    rows: tuple[Row, ...]
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
    troubles: tuple[Trouble, ...] = ()
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
