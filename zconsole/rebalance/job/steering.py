"""What steers a running job: signals, orders in its journal, limits, and all that it waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from zconsole.rebalance.engine.item import StopJobError
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.job.free_space import SpaceGate
from zconsole.rebalance.job.job import Job, JobClocks, orders_of
from zconsole.rebalance.job.wait_conditions import (
    Backoff,
    DiskWait,
    Gate,
    Pacer,
    devices_of,
    window_gate,
)
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.plan_model import JobDirectory
from zconsole.rebalance.planning.settings import Limits


@dataclass(slots=True)
class JobControl:
    """Has a pacer obey. ``stop`` is set by a signal handler: why to stop."""

    journal: Journal
    job: Job
    reader: FactsReader
    places: Sequence[JobDirectory]
    space: SpaceGate
    lasting: Sequence[Gate]
    """What holds the job back whatever its limits are; they know what was before these changed."""
    pacer: Pacer
    clocks: JobClocks
    limits_changed: Callable[[], None] = field(default=lambda: None)
    """Called when other limits have come to count while the job runs."""
    stop: str | None = None
    limits: Limits = field(init=False)
    _order: str = field(init=False)

    def __post_init__(self) -> None:
        self._read()
        self._apply_limits()

    def _read(self) -> None:
        self._order, changed = orders_of(self.journal)
        self.limits = self.job.settings.limits.changed(changed)

    def _apply_limits(self) -> None:
        self.space.reserves = self.job.reserves_at(self.limits.min_free)
        self.space.trend.forget()
        self.pacer.rate = self.limits.rate
        # Orders first: who stops or pauses a job must not wait for a pool that does not answer.
        self.pacer.gates = [self._obey, *self._limiting(), *self.lasting]

    def _limiting(self) -> Iterator[Gate]:
        """Gates that follow from the limits, which may change while the job runs."""
        if self.limits.window:
            yield window_gate(self.limits.window, self.clocks.local)
        if self.limits.max_latency:
            wait = DiskWait(devices_of(self.reader, self.places))
            yield Backoff(self.limits.max_latency, wait, self.clocks.monotonic)

    def _obey(self) -> str | None:
        """The gate of signals, and of what other processes wrote into the journal."""
        if self.stop:
            raise StopJobError(self.stop)
        if self.journal.others_wrote():
            before = self.limits
            self._read()
            if before != self.limits:
                self._apply_limits()
                self.limits_changed()
        if self._order == "stop":
            raise StopJobError("stop")
        return "paused" if self._order == "pause" else None
