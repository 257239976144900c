"""The jobs of the pools on show: read now and then, shown in the frames, announced when they end.

Imports neither textual nor what runs jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from zconsole.errors import ZconsoleError
from zconsole.pool.model import Activity
from zconsole.timeline.eta.estimate import Estimate, nothing
from zconsole.timeline.frame import ActivityView
from zconsole.units import counted

if TYPE_CHECKING:
    from zconsole.rebalance.backend import JobView, RebalanceBackend


@dataclass(frozen=True, slots=True)
class News:
    """Something about a job that the operator should hear of."""

    text: str
    severity: Literal["information", "warning"] = "information"
    loud: bool = True
    """Whether it is said at once, too; else it is only among the events."""


@dataclass(slots=True)
class JobWatch:
    """What is known of the jobs, by pool."""

    make_backend: Callable[[], RebalanceBackend]
    keep: Callable[[str, News], None] = lambda _pool, _news: None
    """Keeps what happened to a job of a pool, for its events."""
    jobs: dict[str, tuple[JobView, ...]] = field(default_factory=dict)
    problem: str = ""
    """Why the newest look failed; empty when it did not."""
    _rebalance_backend: RebalanceBackend | None = None
    _begun: int = 0
    _newest: dict[str, int] = field(default_factory=dict)

    @property
    def rebalance_backend(self) -> RebalanceBackend:
        """The backend, made when it is first wanted."""
        if self._rebalance_backend is None:
            self._rebalance_backend = self.make_backend()
        return self._rebalance_backend

    async def look(self, pool: str) -> tuple[News, ...]:
        """Ask for the jobs of a pool again; what has come to an end, or was found so."""
        self._begun += 1
        number = self._begun
        try:
            now = await self.rebalance_backend.jobs(pool)
        except ZconsoleError as error:
            self.problem = str(error)
            return ()
        if number < self._newest.get(pool, 0):  # it may have seen a job before it was resumed
            return ()
        self._newest[pool], self.problem = number, ""
        before = self.jobs.get(pool)
        self.jobs[pool] = now
        if before is None:
            cut_off = (told_of(job.job) for job in now if job.interrupted)
            said = "was interrupted; B shows it, P there resumes it."
            return tuple(News(f"{told}{said}", "warning") for told in cut_off)
        happened = tuple(_changed(before, now))
        for news in happened:
            self.keep(pool, news)
        return tuple(news for news in happened if news.loud)

    @property
    def live(self) -> tuple[JobView, ...]:
        """The jobs that were at work when last looked at."""
        return tuple(job for jobs in self.jobs.values() for job in jobs if job.live)

    def may_change(self, pools: Collection[str]) -> bool:
        """Whether another look can find anything new though no job was begun meanwhile."""
        if self.problem or not self.jobs.keys() >= set(pools):
            return True
        return any(job.state != "finished" for jobs in self.jobs.values() for job in jobs)

    def shown(self, pool: str) -> tuple[ActivityView, ...]:
        """A line for each job at work on a pool, else for each that was interrupted."""
        jobs = self.jobs.get(pool, ())
        shown = [job for job in jobs if job.live] or [job for job in jobs if job.interrupted]
        return tuple(map(activity, shown))


def activity(job: JobView) -> ActivityView:
    """A job as a line beside the scans."""
    if job.interrupted:
        done = "" if job.share is None else f"at {job.share:.0%}  "
        note = f"{done}{' '.join(job.settings.dirs)}  (B shows it; P there resumes it)"
        return ActivityView(Activity("rebalance", "interrupted", note=note))
    why = job.why or ""
    none = nothing(why or "no rate yet")
    return ActivityView(
        Activity(
            "rebalance",
            job.state,
            done_bytes=job.bytes_handled,
            total_bytes=job.goal,
            percent=None if job.share is None else 100.0 * job.share,
            note=_left_out(job),
        ),
        job.rate,
        Estimate(job.eta_seconds, None, None, "") if job.eta_seconds else none,
        flag="REBALANCE",
    )


def told_of(job: str) -> str:
    """How every message about a job begins; ``job`` is its id."""
    return f"Rebalance job {job} "


def _left_out(job: JobView) -> str:
    """``12 files skipped, 1 file failed``, and why its total changed; empty without any of it."""
    counts = ((job.files_unmoved, "skipped"), (sum(job.failed.values()), "failed"))
    files = (f"{counted(n, 'file')} {word}" for n, word in counts if n)
    return ", ".join((*files, *job.total_changed))


def reason(job: JobView) -> str:
    """Why a job is as it is, unless its state says it: a stopped job had an order to stop."""
    return "" if job.why in (None, job.state, "stop") else job.why


def _changed(before: tuple[JobView, ...], now: tuple[JobView, ...]) -> Iterator[News]:
    """What began or ended between two looks."""
    known = {job.job: job for job in before}
    for job in now:
        old = known.get(job.job)
        was_live = old is not None and old.live
        if job.live and not was_live:
            word = "began" if old is None else "goes on"
            yield News(f"{told_of(job.job)}{word}", loud=False)
        if job.live or not was_live:
            continue
        if job.state == "finished":
            failed = sum(job.failed.values())
            text = f"{told_of(job.job)}is over: {reason(job) or 'done'}"
            yield News(f"{text}, {counted(failed, 'file')} failed" if failed else text)
        else:
            why = f": {reason(job)}" if reason(job) else ""
            ordered = job.state == "stopped" and job.why == "stop"
            text = f"{told_of(job.job)}{job.state}{why}; B shows it, P there resumes it."
            yield News(text, "information" if ordered else "warning")
