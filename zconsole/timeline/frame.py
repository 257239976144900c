"""The frame: the only thing views read. A sample, and what the pool's history says of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from zconsole.pool.balance import Balance
from zconsole.pool.health import Health
from zconsole.pool.model import (
    NOTHING,
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
from zconsole.timeline.scrubs import UNKNOWN, ScrubAge
from zconsole.timeline.series import RateSeries
from zconsole.timeline.views import ActivityView, ScanView

if TYPE_CHECKING:
    from zconsole.diagnosis.bottleneck.finding import Ceiling, Verdict
    from zconsole.diagnosis.device_errors.faults import DeviceFault
    from zconsole.timeline.eta.past import PastScan


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


DONE = "done"
"""Name of events done from a console: they are marked on the timeline of rates."""
OUTCOME = "outcome"
"""Name of events that tell how what was done from a console ended."""

AUTOPILOT = "autopilot"
"""Kind of activity: it sets the tunables of scans so that applications do not wait too long."""
_FLAGS = {"rebalance": "REBALANCE", AUTOPILOT: "AUTOPILOT"}
"""Kinds of work that change what the screen shows, and their flags."""

SET_HERE = "set here"
"""State of tunables as an activity."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One pool as the views show it. Properties give what the sample has."""

    pool: str
    """The shown name; with several machines, the host comes before it."""
    sample: Sample | None
    """The newest good sample; None if there never was one, and ``failure`` says why."""
    failure: SampleFailure | None
    """Why there is no newer sample; None while the sample is fresh."""
    health: Health
    series: RateSeries
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
    scrub: ScrubAge = UNKNOWN
    """The last full scrub, and whether the next is overdue."""
    past: tuple[PastScan, ...] = ()
    """Finished scans as they went, newest first, also those that a later one took the place of."""
    age: float = 0.0
    """Seconds since the sample, where it is shown again because the next one has not come yet."""

    def joined(
        self, events: Iterable[Event], jobs: Sequence[ActivityView], flags: Sequence[str] = ()
    ) -> Frame:
        """With actions done from consoles, in order of time, the pool's jobs, and further flags.

        A rebalance that goes on and an autopilot have a flag: not a job that was interrupted, not
        an open checklist, not the hours of a scrub.
        """
        done = tuple(events)
        if not done and not jobs and not flags:
            return self
        works = [job.activity for job in jobs]
        of_work = {
            _FLAGS[w.kind]: None for w in works if w.kind in _FLAGS and w.state != "interrupted"
        }
        return replace(
            self,
            events=tuple(sorted((*self.events, *done), key=lambda e: e.t)) if done else self.events,
            activities=(*self.activities, *jobs),
            flags=(*self.flags, *of_work, *flags),
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
    def guid(self) -> str | None:
        """See Pool.guid."""
        return self.sample.pool.guid if self.sample else None

    @property
    def state(self) -> str | None:
        """See Pool.state; the kernel's word where there never was a sample."""
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
        """See Sample.version."""
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
        """See Sample.kstat; the newest, also with a failure."""
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
