"""The frame, which is all that views read: a sample, and what the pool's past says of it.

In it stand the scans and activities with what follows from watching them, and a row for each vdev.
The facts of a scan at the end are decided once for text and screen: plain text lists them, the
screen colors them and drops those without room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from zconsole.diagnosis.bottleneck.evidence import WatchedScan
from zconsole.pool.balance import Balance
from zconsole.pool.health import Health
from zconsole.pool.model import (
    NOTHING,
    Activity,
    Event,
    HostLoad,
    IoRates,
    Pool,
    Sample,
    SampleFailure,
    Scan,
    Vdev,
)
from zconsole.pool.redundancy import Redundancy
from zconsole.pool.scan_outcome import ScanOutcome, scan_outcome
from zconsole.pool.spares import SpareTrouble
from zconsole.pool.topology import data_vdevs
from zconsole.timeline.eta.estimate import MEASURING, Estimate, nothing
from zconsole.timeline.eta.past import Comparison
from zconsole.timeline.eta.progress import doing
from zconsole.timeline.rates import RateSeries
from zconsole.timeline.scan_rate import PastRates
from zconsole.timeline.scrubs import UNKNOWN, ScrubAge
from zconsole.units import duration

if TYPE_CHECKING:
    from zconsole.diagnosis.bottleneck.finding import Ceiling, Verdict
    from zconsole.diagnosis.device_errors.faults import DeviceFault
    from zconsole.timeline.eta.past import PastScan


RESTARTED = "restarted "
"""How a note on a restart begins."""


class ScanView(NamedTuple):
    """A scan with what follows from watching it."""

    scan: Scan
    key: str
    """For ``RateSeries.tail``."""
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
    """Time to full redundancy, if later than this pass (deferred devices, a scrub to follow)."""
    notes: tuple[str, ...] = ()
    """In words, newest first: ``restarted 12:03 after sdc came back``, ``follow-on pass``."""
    past: PastRates = PastRates()
    """Its issue rate since it began, through restarts and follow-on passes."""
    comparison: Comparison | None = None
    """How it goes against the earlier scan by which it is predicted."""
    lag: str = ""
    """What the rate of now would give, where the estimate has not followed it yet; or that it
    has followed a change of tunables."""

    @property
    def left(self) -> float | None:
        """Seconds to go, as zpool has them while it is measuring; None where nobody knows."""
        measuring = self.estimate.eta is None and self.estimate.lacking == MEASURING
        return self.scan.zpool_eta if measuring else self.estimate.eta

    @property
    def watched(self) -> WatchedScan:
        """The scan, as what limits it is judged by."""
        rate = self.issue_rate if self.scan.two_stage else self.scan_rate
        return WatchedScan(self.scan, self.stage, rate)


class ActivityView(NamedTuple):
    """Work beside the scans, with its words, progress and end.

    The pool's own (a removal, expansion, checkpoint, trim, initialize), or that of consoles and
    jobs (``Additions``).
    """

    activity: Activity
    rate: float | None = None
    """Bytes/s, windowed."""
    estimate: Estimate = nothing("")
    stalled: float | None = None
    """Seconds without progress, once that is too long to be slow."""
    advice: str = ""
    """Why it does not go on, or why its percent is odd, and what to do."""
    flag: str = ""
    """What the header says of work that changes what the screen shows: ``REBALANCE``."""


class Additions(NamedTuple):
    """What consoles and jobs do to a pool, as its frame shows it."""

    activities: tuple[ActivityView, ...] = ()
    events: tuple[Event, ...] = ()
    flags: tuple[str, ...] = ()
    pulled: Mapping[str, float] = NOTHING
    """Leaves that were away as they were pulled by mistake, and until when (epoch seconds)."""


class VdevRow(NamedTuple):
    """One line of the topology."""

    key: str
    depth: int
    vdev: Vdev
    rates: IoRates
    slow_sibling: str | None = None
    """Why it is the odd one out among its siblings (``61ms, siblings 8ms``), else None."""
    missing_since: float | None = None
    """Epoch seconds at which it was seen to leave ONLINE, or its device to disappear."""

    @property
    def gone(self) -> bool:
        """Whether its device disappeared after the pool's last answer, which has it ONLINE."""
        return self.missing_since is not None and self.vdev.state == "ONLINE"


_TOGETHER = 60.0
"""Seconds within which devices that leave one after another are one incident: a shelf, a cable."""
_AWAY = frozenset({"UNAVAIL", "REMOVED", "FAULTED"})

DONE = "done"
"""Name of events done from a console: they are marked on the timeline of rates."""
OUTCOME = "outcome"
"""Name of events that tell how what was done from a console ended."""

AUTOPILOT = "autopilot"
"""Kind of activity: it sets the tunables of scans so that applications do not wait too long."""

SET_HERE = "set here"
"""State of tunables as an activity."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One pool as the views show it. Properties give what the sample has.

    Frozen but for ``series``, which all frames of a pool share.
    """

    pool: str
    """The shown name; with several machines, the host comes before it."""
    sample: Sample | None
    """The newest good sample; None if there never was one, and ``failure`` says why."""
    failure: SampleFailure | None
    """Why there is no newer sample; None while the sample is fresh."""
    health: Health
    series: RateSeries
    """Past rates. It grows with each later sample: who shows an old frame copies it first."""
    scans: tuple[ScanView, ...] = ()
    activities: tuple[ActivityView, ...] = ()
    redundancy: tuple[Redundancy, ...] = ()
    rows: tuple[VdevRow, ...] = ()
    balance: Balance = field(default_factory=Balance)
    over_since: float | None = None
    """Since when (epoch seconds) no scan runs; None while one runs or is paused."""
    events: tuple[Event, ...] = ()
    """Newest last."""
    flags: tuple[str, ...] = ()
    """REPLAY, DEMO, from the source."""
    limit: Verdict | None = None
    """What limits the running scan; None when none runs."""
    ceiling: Ceiling | None = None
    """The estimated maximum rate of the running scan; None while unknown."""
    troubles: tuple[DeviceFault, ...] = ()
    """Devices with new errors, or that disconnected, within the hour; worst first."""
    spares: tuple[SpareTrouble, ...] = ()
    """Hot spares that would not help when a device fails."""
    quiet_since: float | None = None
    """Epoch seconds of the newest errors or disconnect, else of the first sample."""
    scrub: ScrubAge = UNKNOWN
    """The last full scrub, and whether the next is overdue."""
    past: tuple[PastScan, ...] = ()
    """Finished scans as they went, newest first, also those that a later one took the place of."""
    age: float = 0.0
    """Seconds since the sample, where it is shown because the next one has not come yet."""

    def joined(self, added: Additions) -> Frame:
        """With what consoles and jobs do: events in order of time, one flag for work of a kind."""
        if added == Additions():
            return self
        events, pulled = self.events, added.pulled
        if added.events:
            events = tuple(sorted((*events, *added.events), key=lambda event: event.t))
        of_work = dict.fromkeys(view.flag for view in added.activities if view.flag)
        # Without disks that show no error, and were last away when they were pulled by mistake.
        troubles = (
            fault
            for fault in self.troubles
            if fault.last > pulled.get(fault.key, -inf) or fault.deltas.total or fault.gone
        )
        return replace(
            self,
            events=events,
            activities=(*self.activities, *added.activities),
            flags=(*self.flags, *of_work, *added.flags),
            troubles=tuple(troubles),
        )

    @property
    def scan(self) -> ScanView | None:
        """The running scan, else the newest, else None."""
        return self.scans[0] if self.scans else None

    @property
    def outcome(self) -> ScanOutcome:
        """How the newest scan has ended."""
        return self.outcome_of(self.scan.scan if self.scan else None)

    def outcome_of(self, scan: Scan | None) -> ScanOutcome:
        """How one of the pool's scans ended, including scans no longer shown."""
        waited = None if self.over_since is None else self.t - self.over_since
        return scan_outcome(scan, self.root, self.health.word, waited)

    @property
    def t(self) -> float:
        """Epoch seconds of the sample; of the failure where there never was a sample."""
        if self.sample is not None:
            return self.sample.t
        return self.failure.t if self.failure else 0.0

    @property
    def clock(self) -> float:
        """The same by the steady clock, which nobody sets."""
        seen = self.sample or self.failure
        return seen.clock if seen else 0.0

    @property
    def guid(self) -> str | None:
        """The pool's GUID, as ``Pool.guid``."""
        return self.sample.pool.guid if self.sample else None

    @property
    def state(self) -> str | None:
        """The pool's state; the kernel's word where there never was a sample."""
        return self.sample.pool.state if self.sample else self.kstat

    @property
    def seen(self) -> Pool:
        """The pool as the newest good sample has it; nothing but its name before the first."""
        return self.sample.pool if self.sample else Pool(self.pool, None, Vdev(self.pool, "root"))

    @property
    def root(self) -> Vdev | None:
        """The topology; None before the first good sample."""
        return self.sample.pool.root if self.sample else None

    @property
    def version(self) -> str | None:
        """The version of OpenZFS, as ``Sample.version``."""
        return self.sample.version if self.sample else None

    @property
    def tunables(self) -> Mapping[str, int]:
        """Module parameters of scans, where known."""
        return self.sample.tunables if self.sample else NOTHING

    @property
    def stale_seconds(self) -> float | None:
        """Age of the newest good sample; None where there never was one."""
        if self.sample is None or self.failure is None:
            return None if self.sample is None else self.age
        return max(0.0, self.failure.t - self.sample.t)

    @property
    def problem(self) -> str | None:
        """Why there is no newer sample, in words; None without a problem."""
        return self.failure.text if self.failure else None

    @property
    def absent(self) -> bool:
        """Whether it was exported or destroyed: it is no longer in the kernel's list of pools."""
        return self.failure is not None and self.failure.absent

    @property
    def kstat(self) -> str | None:
        """The kernel's newest word for the pool's state, also with a failure."""
        newest = self.failure or self.sample
        return newest.kstat if newest else None

    @property
    def suspended(self) -> bool:
        """Whether it waits for a device, so that nothing moves."""
        return self.seen.suspended or self.kstat == "SUSPENDED"

    @property
    def untold(self) -> tuple[str, ...]:
        """Names of the vdevs with data of which too little is shown to tell their redundancy."""
        told = [entry.vdev.partition("#")[0] for entry in self.redundancy]
        tops = data_vdevs(self.root) if self.root is not None else ()
        return tuple(vdev.name for vdev in tops if vdev.name not in told)

    @property
    def host(self) -> HostLoad | None:
        """The machine's load, the newest known."""
        failed = self.failure.host if self.failure else None
        return failed or (self.sample.host if self.sample else None)

    @property
    def looked(self) -> float | None:
        """Seconds of the steady clock when the newest reading of the pool began; None if unknown.

        Also of a reading that ended in ``problem``. Without a problem, the frame is no older.
        """
        newest = self.failure or self.sample
        return newest.began if newest else None

    @property
    def missing_devices(self) -> tuple[VdevRow, ...]:
        """The devices a suspended pool waits for; none where none was seen to leave.

        Those that left last: one that is away for longer did not suspend the pool. Where the pool
        still answers and nobody saw them leave, all that are away.
        """
        if not self.suspended:
            return ()
        leaves = [row for row in self.rows if not row.vdev.children]
        away = [row for row in leaves if row.gone or row.vdev.state in _AWAY]
        seen = [row.missing_since for row in away if row.missing_since is not None]
        if seen:
            begun = max(seen) - _TOGETHER
            return tuple(row for row in away if (row.missing_since or 0.0) >= begun)
        return () if self.problem else tuple(away)

    @property
    def has_every_device(self) -> bool:
        """Whether the machine has every device that was ONLINE when the pool answered last.

        Where a whole vdev was away then, others of its devices have to come back.
        """
        if self.root is None or any(top.state in _AWAY for top in data_vdevs(self.root)):
            return False
        leaves = [r for r in self.rows if not r.vdev.children and r.vdev.state == "ONLINE"]
        return bool(leaves) and all(row.vdev.block and not row.gone for row in leaves)


class Fact(NamedTuple):
    """One fact: ``errors 3``, and whether that is bad (``error``) or not ("")."""

    label: str
    value: str
    severity: str = ""


Pairs = tuple[tuple[str, str], ...]
"""Facts of a device, label and value, in the order they are shown."""
Size = Callable[[float | None], str]
"""How bytes are formatted: ``units.size`` as zpool does, or in the chosen units."""


def work_name(work: str, vdev: str | None) -> str:
    """``rebuild of mirror-0``, or just ``scrub`` for work on the whole pool."""
    return f"{work} of {vdev}" if vdev else work


def stage_words(scan: Scan, stage: str | None) -> str:
    """What a scan does, in words: ``finding blocks``, then ``resilvering``; a scrub ``checking``.

    Empty where the stage is not known. A rebuild finds no blocks first.
    """
    if not stage:
        return ""
    if stage == "scanning" and scan.function != "rebuild":
        return "finding blocks"
    return doing(scan)


def repaired_fact(scan: Scan, size: Size) -> Fact:
    """``resilvered 1.12T``: what a scan wrote; a scrub repairs. ``-`` when unknown."""
    word = {"resilver": "resilvered", "rebuild": "rebuilt"}.get(scan.function, "repaired")
    return Fact(word, size(scan.processed_bytes))


def result_facts(scan: Scan, size: Size) -> Iterator[Fact]:
    """The known results of a scan so far: bytes written and skipped, errors."""
    if scan.processed_bytes is not None:  # unknown on Solaris 10, and for an error scrub
        yield repaired_fact(scan, size)
    if scan.skipped_bytes:
        yield Fact("skipped", size(scan.skipped_bytes))
    if scan.errors is not None:
        yield Fact("errors", str(scan.errors), "error" if scan.errors else "")


def seconds_taken(scan: Scan) -> float | None:
    """Seconds from a scan's start to its end; None while it runs, or when unknown."""
    if scan.duration is not None or scan.start is None or scan.end is None:
        return scan.duration
    return scan.end - scan.start


def range_words(estimate: Estimate) -> str:
    """``(1h01m to 2h01m)``; empty for an estimate without a range."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f"({duration(estimate.low)} to {duration(estimate.high)})"
