"""The frame, which is all that views read: a sample, with the conclusions from the pool's past.

It contains scans and activities with what follows from watching them, and a row for each vdev. The
facts of a scan, at the end of this module, are the same for text and screen: plain text lists them,
the screen colors them and drops those that do not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from zconsole import units
from zconsole.diagnosis.bottleneck.tracker import TunableEffects
from zconsole.pool.balance import Balance
from zconsole.pool.health import Health, SpareProblem
from zconsole.pool.model import (
    NOTHING,
    Activity,
    DatasetLoad,
    Event,
    HostLoad,
    IoRates,
    Pool,
    Sample,
    SampleFailure,
    Scan,
    Vdev,
    data_vdevs,
)
from zconsole.pool.redundancy import Redundancy
from zconsole.pool.scan_outcome import ScanOutcome, scan_outcome
from zconsole.system.day_hours import day_hours, local_time
from zconsole.timeline.eta.estimate import (
    LONGEST,
    MAX_SPREAD,
    MEASURING,
    NOT_YET,
    Estimate,
    nothing,
    ranged,
)
from zconsole.timeline.eta.past import Comparison
from zconsole.timeline.eta.progress import doing
from zconsole.timeline.rates import RateSeries
from zconsole.timeline.scan_rate import PastRates
from zconsole.timeline.scrubs import UNKNOWN, ScrubAge

if TYPE_CHECKING:
    from zconsole.diagnosis.bottleneck.finding import Ceiling, Verdict
    from zconsole.diagnosis.device_errors.faults import CommonCause, DeviceFault
    from zconsole.timeline.eta.past import PastScan
    from zconsole.tunables.effect import TunableEffect


RESTARTED = "restarted "
"""Beginning of a note on a restart."""


class ScanView(NamedTuple):
    """A scan with the results of watching it."""

    scan: Scan
    key: str
    """Key for ``RateSeries.tail``."""
    stage: str | None
    percent: float | None
    scan_rate: float | None
    """Bytes/s over a window; the pass average if there was only one sample."""
    issue_rate: float | None
    window: float | None
    """Seconds that the rates cover; None for a pass average."""
    estimate: Estimate
    restarts: int | None
    stalled: float | None = None
    """Seconds without progress, once that is long enough to count as stalled."""
    full: Estimate | None = None
    """Time until the devices are filled that wait for a pass after this one."""
    notes: tuple[str, ...] = ()
    """Notes, newest first: ``restarted 12:03 after sdc came back``, ``follow-on pass``."""
    past: PastRates = PastRates()
    """Issue rate since it began, through restarts and follow-on passes."""
    comparison: Comparison | None = None
    """Comparison with the earlier scan by which it is predicted."""
    lag: str = ""
    """ETA at the present rate, if the estimate has not followed that yet; or a note that the
    estimate has followed a change of tunables."""
    working: float | None = None
    """Seconds of work left, if the estimate also counts hours in which it is kept from running."""
    full_redundancy: bool = True
    """Whether redundancy is full when ``full`` is over; it is before if each device that waits
    replaces one that is whole."""
    until_paused: Estimate | None = None
    """The estimate that a paused scan had while it ran; None if that was not watched."""

    @property
    def full_called(self) -> str:
        """What is reached when ``full`` is over."""
        return "full redundancy" if self.full_redundancy else "all replaced"

    @property
    def left(self) -> float | None:
        """Seconds of work left, by zpool while the console is measuring.

        None if that is unknown, or while the scan is paused.
        """
        if self.working is not None or self.scan.state == "paused":
            return self.working
        measuring = self.estimate.eta is None and self.estimate.lacking == MEASURING
        return self.scan.zpool_eta if measuring else self.estimate.eta


class ActivityView(NamedTuple):
    """Work other than scans, with its progress and expected end.

    It is either the pool's own (a removal, expansion, checkpoint, trim, initialize), or that of
    consoles and jobs (``Additions``).
    """

    activity: Activity
    rate: float | None = None
    """Bytes/s over a window."""
    estimate: Estimate = nothing("")
    stalled: float | None = None
    """Seconds without progress, once that is too long to be just slow."""
    advice: str = ""
    """Why it does not continue, or why its percentage is odd, and what to do."""
    flag: str = ""
    """Header flag for work that changes what the screen shows: ``REBALANCE``."""


class Additions(NamedTuple):
    """Work and events of consoles and jobs, to be added to a pool's frame."""

    activities: tuple[ActivityView, ...] = ()
    events: tuple[Event, ...] = ()
    flags: tuple[str, ...] = ()
    pulled: Mapping[str, float] = NOTHING
    """Leaves that were away because they were pulled by mistake, and until when (epoch seconds)."""
    hours: str = ""
    """The only hours in which the pool's scrub runs, such as ``22:00-06:00``; empty if it may run
    at any time, or was paused by hand."""
    set_here: tuple[str, ...] = ()
    """Names of tunables that consoles have set."""
    predicted: float | None = None
    """Seconds that the running resilver takes in all, as predicted before; None if unknown."""


class VdevRow(NamedTuple):
    """One line of the topology."""

    key: str
    depth: int
    vdev: Vdev
    rates: IoRates
    slow_sibling: str | None = None
    """Why it stands out among its siblings (``61ms, siblings 8ms``), else None."""
    missing_since: float | None = None
    """Epoch seconds at which it was seen to leave ONLINE, or its device to disappear."""

    @property
    def gone(self) -> bool:
        """True if its device disappeared after the pool's last answer, which shows it ONLINE."""
        return self.missing_since is not None and self.vdev.state == "ONLINE"


def _in_hours(view: ScanView, hours: str, local: datetime) -> ScanView:
    """Return an active scrub with an estimate that includes the pauses outside these hours.

    ``local`` is the time of the sample in the machine's time zone. One that is paused until its
    hours has the estimate from before, else one by the average rate of its pass until then.
    """
    scan, told = view.scan, view.estimate
    if not hours or scan.function != "scrub" or not scan.active:
        return view
    if view.until_paused is not None and view.until_paused.eta is not None:
        told = view.until_paused._replace(reason=f"until paused, {view.until_paused.reason}")
    elif scan.state == "paused" and scan.pass_issued and scan.pass_start and scan.paused_since:
        if scan.to_issue_bytes is None or scan.issued_bytes is None:
            return view
        ran = scan.paused_since - scan.pass_start - (scan.pass_paused or 0.0)
        rate = scan.pass_issued / max(1.0, ran)
        left = max(0, scan.to_issue_bytes - scan.issued_bytes) / rate
        told = ranged(left, MAX_SPREAD, f"it ran at {units.rate(rate)} until paused")
    if told.eta is None or told.low is None or told.high is None or told.eta > LONGEST:
        return view
    eta, low, high = (
        day_hours(hours).until_worked(at, local) for at in (told.eta, told.low, told.high)
    )
    # The end at the present rate, which a lag names, knows of no hours.
    reason = told.reason.removeprefix(f"{view.lag}; ")
    return view._replace(
        estimate=Estimate(eta, low, high, f"with pauses outside {hours}; {reason}"),
        working=told.eta if scan.state == "running" else None,
        lag="",
    )


def _as_predicted(view: ScanView, seconds: float | None) -> ScanView:
    """Return a resilver that will have an estimate with what was predicted before, until then."""
    told, awaited = view.estimate, view.scan.function == "resilver" and view.scan.active
    if seconds is None or not awaited or told.eta is not None or told.lacking != NOT_YET:
        return view
    predicted = f"predicted {units.duration(seconds)} in all"
    return view._replace(estimate=nothing(f"{predicted}; {told.reason}"))


TOGETHER = 60.0
"""Seconds within which devices that leave one after another belong to one incident: a shelf, a
cable."""
_AWAY = frozenset({"UNAVAIL", "REMOVED", "FAULTED"})

DONE = "done"
"""Name of events for actions from a console: they are marked on the timeline of rates."""
OUTCOME = "outcome"
"""Name of events that report the outcome of an action from a console."""

AUTOPILOT = "autopilot"
"""Kind of the activity that adjusts scan tunables to keep latency low for applications."""

SWAP = "disk swap"
"""Kind of the activity of an open checklist of a disk swap; its note names the disk."""

UPKEEP = ("trim", "initialize")
"""Kinds of work on devices that do not change the pool."""

SCRUB_HOURS = "scrub hours"
"""Kind of the activity whose state is the only hours in which a pool is scrubbed."""

HELD_VDEVS = "allocating"
"""Kind of the activity that names vdevs which take no new writes while a job runs."""

SET_HERE = "set here"
"""State of the activity for tunables that were set."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One pool as the views show it; properties return what the sample has.

    Frozen except for ``series`` and ``effects``, which all frames of a pool share.
    """

    pool: str
    """Displayed name; with several machines, it begins with the host."""
    sample: Sample | None
    """The newest good sample; None if there never was one, and ``failure`` gives the reason."""
    failure: SampleFailure | None
    """Why there is no newer sample; None while the sample is fresh."""
    health: Health
    series: RateSeries
    """Past rates. They grow with each later sample: code that shows an old frame copies them
    first."""
    scans: tuple[ScanView, ...] = ()
    activities: tuple[ActivityView, ...] = ()
    redundancy: tuple[Redundancy, ...] = ()
    rows: tuple[VdevRow, ...] = ()
    balance: Balance = field(default_factory=Balance)
    over_since: float | None = None
    """Epoch seconds since when no scan runs; None while one runs or is paused."""
    events: tuple[Event, ...] = ()
    """Newest last."""
    flags: tuple[str, ...] = ()
    """REPLAY, DEMO, from the source."""
    limit: Verdict | None = None
    """What limits the running scan; None if none runs."""
    busiest_datasets: tuple[DatasetLoad, ...] | None = None
    """The few datasets and volumes with the most logical I/O, that first; None if unknown, or if no
    scan runs."""
    ceiling: Ceiling | None = None
    """Estimated maximum rate of the running scan; None while unknown."""
    troubles: tuple[DeviceFault, ...] = ()
    """Devices with new errors, or that disconnected, within the hour; worst first."""
    failed_disks: Mapping[str, str] = field(default_factory=dict)
    """How disks failed that have left the pool since, by serial number."""
    minutes_watched: int = 60
    """Whole minutes of the last hour in which new errors and disconnects would have been seen."""
    spares: tuple[SpareProblem, ...] = ()
    """Hot spares that would not help in a failure."""
    quiet_since: float | None = None
    """Epoch seconds of the newest errors or disconnect, else of the first sample."""
    scrub: ScrubAge = UNKNOWN
    """The last full scrub, and whether the next is overdue."""
    past: tuple[PastScan, ...] = ()
    """Finished scans and their courses, newest first, including those replaced by a later one."""
    age: float = 0.0
    """Seconds since the sample, if it is shown because the next one has not arrived yet."""
    effects: TunableEffects = field(default_factory=TunableEffects)
    """What changed tunables did; it grows like ``series``."""

    def effect(self, changed: float, others: Iterable[float]) -> TunableEffect | None:
        """Return the effect of tunables that changed at some time, others at other times.

        All in epoch seconds. None if nothing was seen before the change.
        """
        ahead = self.clock - self.t
        return self.effects.effect(changed + ahead, [t + ahead for t in others])

    def joined(self, added: Additions) -> Frame:
        """Add what consoles and jobs do: events in order of time, one flag per kind of work."""
        if added == Additions():
            return self
        events, pulled = self.events, added.pulled
        if added.events:
            events = tuple(sorted((*events, *added.events), key=lambda event: event.t))
        of_work = dict.fromkeys(view.flag for view in added.activities if view.flag)
        # Leave out disks without errors that were last away because they were pulled by mistake.
        troubles = tuple(
            fault
            for fault in self.troubles
            if fault.last > pulled.get(fault.key, -inf) or fault.deltas.total or fault.gone
        )
        known = {
            fault.unsteady: f"{fault.name}: pulled by mistake during a swap"
            for fault in self.troubles
            if fault not in troubles
        }
        reasons = tuple(known.get(str(reason), reason) for reason in self.health.reasons)
        local = local_time(self.t)
        scans = (_as_predicted(view, added.predicted) for view in self.scans)
        return replace(
            self,
            events=events,
            scans=tuple(_in_hours(view, added.hours, local) for view in scans),
            activities=(*self.activities, *added.activities),
            flags=(*self.flags, *of_work, *added.flags),
            limit=self.limit.with_set_here(added.set_here) if self.limit else None,
            troubles=troubles,
            health=self.health._replace(reasons=reasons),
        )

    @property
    def scan(self) -> ScanView | None:
        """The running scan, else the newest, else None."""
        return self.scans[0] if self.scans else None

    @property
    def work(self) -> ScanView | ActivityView | None:
        """The work with an end that is running: a scan, else a removal, job or the like."""
        if self.scan is not None and self.scan.scan.active:
            return self.scan
        for view in self.activities:
            work = view.activity
            if work.state == "running" and work.total_bytes and work.kind not in UPKEEP:
                return view
        return None

    @property
    def outcome(self) -> ScanOutcome:
        """Outcome of the newest scan."""
        return self.outcome_of(self.scan.scan if self.scan else None)

    def outcome_of(self, scan: Scan | None) -> ScanOutcome:
        """Return the outcome of one of the pool's scans, including scans no longer shown."""
        waited = None if self.over_since is None else self.t - self.over_since
        return scan_outcome(scan, self.root, self.health.word, waited)

    @property
    def common_causes(self) -> tuple[CommonCause, ...]:
        """What several devices in trouble have in common."""
        found = self.common_cause_of.values()
        return tuple({(cause.hub, cause.since): cause for cause in found}.values())

    @property
    def common_cause_of(self) -> Mapping[str, CommonCause]:
        """What a device has in common with others in trouble, by its name."""
        return {fault.name: fault.common for fault in self.troubles if fault.common}

    @property
    def t(self) -> float:
        """Epoch seconds of the sample, or of the failure if there never was a sample."""
        if self.sample is not None:
            return self.sample.t
        return self.failure.t if self.failure else 0.0

    @property
    def clock(self) -> float:
        """Time of the sample or failure by the steady clock, in seconds."""
        seen = self.sample or self.failure
        return seen.clock if seen else 0.0

    @property
    def guid(self) -> str | None:
        """The pool's GUID, as in ``Pool.guid``."""
        return self.sample.pool.guid if self.sample else None

    @property
    def state(self) -> str | None:
        """The pool's state; the kernel's state word if there never was a sample."""
        return self.sample.pool.state if self.sample else self.kstat

    @property
    def seen(self) -> Pool:
        """The pool in the newest good sample; only its name before the first."""
        return self.sample.pool if self.sample else Pool(self.pool, None, Vdev(self.pool, "root"))

    @property
    def root(self) -> Vdev | None:
        """The topology; None before the first good sample."""
        return self.sample.pool.root if self.sample else None

    @property
    def version(self) -> str | None:
        """Version of OpenZFS, as in ``Sample.version``."""
        return self.sample.version if self.sample else None

    @property
    def tunables(self) -> Mapping[str, int]:
        """Module parameters of scans, where known."""
        return self.sample.tunables if self.sample else NOTHING

    @property
    def stale_seconds(self) -> float | None:
        """Age of the newest good sample in seconds; None if there never was one."""
        if self.sample is None or self.failure is None:
            return None if self.sample is None else self.age
        return max(0.0, self.failure.t - self.sample.t)

    @property
    def problem(self) -> str | None:
        """Why there is no newer sample, in words; None if there is no problem."""
        return self.failure.text if self.failure else None

    @property
    def absent(self) -> bool:
        """True if the pool was exported or destroyed, so that the kernel no longer lists it."""
        return self.failure is not None and self.failure.absent

    @property
    def kstat(self) -> str | None:
        """The kernel's newest state word of the pool, also with a failure."""
        newest = self.failure or self.sample
        return newest.kstat if newest else None

    @property
    def suspended(self) -> bool:
        """True if the pool waits for a device, so that nothing moves."""
        return self.seen.suspended or self.kstat == "SUSPENDED"

    @property
    def untold(self) -> tuple[str, ...]:
        """Names of data vdevs for which the sample shows too little to derive their redundancy."""
        told = [entry.vdev.partition("#")[0] for entry in self.redundancy]
        tops = data_vdevs(self.root) if self.root is not None else ()
        return tuple(vdev.name for vdev in tops if vdev.name not in told)

    @property
    def host(self) -> HostLoad | None:
        """The newest known load of the machine."""
        failed = self.failure.host if self.failure else None
        return failed or (self.sample.host if self.sample else None)

    @property
    def looked(self) -> float | None:
        """Steady clock in seconds when the newest reading of the pool began; None if unknown.

        Includes a reading that ended in ``problem``. Without a problem, the frame is no older.
        """
        newest = self.failure or self.sample
        return newest.began if newest else None

    @property
    def missing_devices(self) -> tuple[VdevRow, ...]:
        """Devices that a suspended pool waits for; empty if none was seen to leave.

        Only those that left last: a device away for longer did not suspend the pool. If the pool
        still answers and none was seen to leave, all that are away.
        """
        if not self.suspended:
            return ()
        leaves = [row for row in self.rows if not row.vdev.children]
        away = [row for row in leaves if row.gone or row.vdev.state in _AWAY]
        seen = [row.missing_since for row in away if row.missing_since is not None]
        if seen:
            begun = max(seen) - TOGETHER
            return tuple(row for row in away if (row.missing_since or 0.0) >= begun)
        return () if self.problem else tuple(away)

    @property
    def has_every_device(self) -> bool:
        """True if the machine has every device that was ONLINE when the pool last answered.

        False if a whole vdev was away then, as other devices of it have to return.
        """
        if self.root is None or any(top.state in _AWAY for top in data_vdevs(self.root)):
            return False
        leaves = [r for r in self.rows if not r.vdev.children and r.vdev.state == "ONLINE"]
        return bool(leaves) and all(row.vdev.block and not row.gone for row in leaves)


class Fact(NamedTuple):
    """One fact: ``errors 3``, and whether it is bad (``error``) or not ("")."""

    label: str
    value: str
    severity: str = ""


Pairs = tuple[tuple[str, str], ...]
"""Facts about a device, label and value, in the order they are shown."""
Size = Callable[[float | None], str]
"""Function that formats bytes: ``units.size`` as zpool does, or in the chosen units."""


def work_name(work: str, vdev: str | None) -> str:
    """Return ``rebuild of mirror-0``, or just ``scrub`` for work on the whole pool."""
    return f"{work} of {vdev}" if vdev else work


def stage_words(scan: Scan, stage: str | None) -> str:
    """Return what a scan does: ``finding blocks``, then ``resilvering``; a scrub ``checking``.

    Empty if the stage is unknown. A rebuild has no phase of finding blocks.
    """
    if not stage:
        return ""
    if stage == "scanning" and scan.function != "rebuild":
        return "finding blocks"
    return doing(scan)


def repaired_fact(scan: Scan, size: Size) -> Fact:
    """Return what a scan wrote: ``resilvered 1.12T``; a scrub repairs. ``-`` if unknown."""
    word = {"resilver": "resilvered", "rebuild": "rebuilt"}.get(scan.function, "repaired")
    return Fact(word, size(scan.processed_bytes))


def result_facts(scan: Scan, size: Size) -> Iterator[Fact]:
    """Yield the known results of a scan so far: bytes written and skipped, errors."""
    if scan.processed_bytes is not None:  # unknown on Solaris 10, and for an error scrub
        yield repaired_fact(scan, size)
    if scan.skipped_bytes:
        yield Fact("skipped", size(scan.skipped_bytes))
    if scan.errors is not None:
        yield Fact("errors", str(scan.errors), "error" if scan.errors else "")


def seconds_taken(scan: Scan) -> float | None:
    """Return seconds from a scan's start to its end; None while it runs, or if unknown."""
    if scan.duration is not None or scan.start is None or scan.end is None:
        return scan.duration
    return scan.end - scan.start


def time_taken(scan: Scan, word: str) -> str:
    """Return ``took 9h12m`` with ``word``, or ``ran 4h12m`` for a scan that was paused meanwhile.

    Empty while it runs, or if unknown. Comparisons of scans leave pauses out, too.
    """
    taken, paused = seconds_taken(scan), scan.pass_paused or 0.0
    if scan.paused_since is not None and scan.end is not None:  # canceled while paused
        paused += scan.end - scan.paused_since
    if taken is None:
        return ""
    if paused:
        return f"ran {units.duration(max(0.0, taken - paused))}"
    return f"{word} {units.duration(taken)}"


def range_words(estimate: Estimate) -> str:
    """Return ``(1h01m to 2h01m)``; empty for an estimate without a range."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f"({units.duration(estimate.low)} to {units.duration(estimate.high)})"
