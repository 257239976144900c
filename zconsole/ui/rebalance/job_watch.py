"""Rebalance jobs of the pools on show: polled, added to the frames, announced when they end.

Imports neither textual nor the code that runs jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from zconsole.errors import ZconsoleError
from zconsole.keyed_text import KeyedText
from zconsole.pool.model import Activity
from zconsole.timeline.eta.estimate import Estimate, nothing
from zconsole.timeline.frame import ActivityView
from zconsole.units import counted, percent

if TYPE_CHECKING:
    from zconsole.rebalance.backend import JobView, RebalanceBackend


@dataclass(frozen=True, slots=True)
class News:
    """News of a job for the operator."""

    text: str
    job: str
    """Id of the job."""
    severity: Literal["information", "warning"] = "information"
    notifies: bool = True
    """Whether it is also shown as a message; otherwise it is only an event."""


@dataclass(slots=True)
class JobWatch:
    """Jobs by pool, as of the last look at each."""

    make_backend: Callable[[], RebalanceBackend]
    keep: Callable[[str, News], None] = lambda _pool, _news: None
    """Records news of a pool's job as an event."""
    jobs: dict[str, tuple[JobView, ...]] = field(default_factory=dict)
    problem: str = ""
    """Why the last look failed; empty if it succeeded."""
    _rebalance_backend: RebalanceBackend | None = None
    _begun: int = 0
    """Number of looks begun, of all pools."""
    _newest: dict[str, int] = field(default_factory=dict)
    """Number of the newest look that was answered, by pool."""

    @property
    def rebalance_backend(self) -> RebalanceBackend:
        """The backend, created on first use."""
        if self._rebalance_backend is None:
            self._rebalance_backend = self.make_backend()
        return self._rebalance_backend

    async def look(self, pool: str) -> tuple[News, ...]:
        """Reread the jobs of a pool; return news of those that ended or were found interrupted."""
        self._begun += 1
        number = self._begun
        try:
            now = await self.rebalance_backend.jobs(pool)
        except ZconsoleError as error:
            self.problem = str(error)
            return ()
        if number < self._newest.get(pool, 0):  # it may predate a resume
            return ()
        self._newest[pool], self.problem = number, ""
        before = self.jobs.get(pool)
        self.jobs[pool] = now
        # The first look: jobs that ended before are no news, except those that were interrupted.
        if before is None:
            cut_off = (job.job for job in now if job.interrupted)
            said = "was interrupted; "
            return tuple(
                News(message_start(job) + said + _how_to_resume(job) + ".", job, "warning")
                for job in cut_off
            )
        happened = tuple(_changed(before, now))
        for news in happened:
            self.keep(pool, news)
        return tuple(news for news in happened if news.notifies)

    def of(self, pool: str) -> tuple[JobView, ...]:
        """Return the jobs of a pool, the newest first, as of the last look."""
        return self.jobs.get(pool, ())

    @property
    def live(self) -> tuple[JobView, ...]:
        """Jobs that were running or paused at the last look."""
        return tuple(job for jobs in self.jobs.values() for job in jobs if job.live)

    def may_change(self, pools: Collection[str]) -> bool:
        """Return whether another look may find changes even if no job was started meanwhile."""
        if self.problem or not self.jobs.keys() >= set(pools):
            return True
        return any(job.state != "finished" for jobs in self.jobs.values() for job in jobs)

    def shown(self, pool: str, now: float) -> tuple[ActivityView, ...]:
        """Return a line for each live job of a pool, else for each interrupted one.

        Without either, for the newest job if it was stopped (an older one was given up), or
        finished in the day before ``now`` (epoch seconds).
        """
        jobs = self.of(pool)
        shown = [job for job in jobs if job.live] or [job for job in jobs if job.interrupted]
        if not shown and jobs:
            over = jobs[0].state == "finished" and now - (jobs[0].ended or 0.0) > DAY
            shown = [] if over else [jobs[0]]
        return tuple(map(activity, shown))


DAY = 86_400.0
"""Seconds for which a finished job is shown."""


def activity(job: JobView) -> ActivityView:
    """Return the activity line of a job, for display among the scans."""
    if job.state == "finished":
        note = ", ".join(filter(None, (_notes(job), reason(job))))
        over = Activity("rebalance", job.state, end=job.ended, done_bytes=job.bytes_handled)
        return ActivityView(over._replace(note=note))
    if job.interrupted or job.state == "stopped":
        done = "" if job.share is None else f"at {percent(job.share, 1)}  "
        # The keys come before the directories, which may be cut.
        note = f"{done}(" + _how_to_resume(job.job) + f")  {' '.join(job.settings.dirs)}"
        state = "interrupted" if job.interrupted else "stopped"
        return ActivityView(Activity("rebalance", state, note=note))
    why = job.why or ""
    none = nothing(why or "no rate yet")
    return ActivityView(
        Activity(
            "rebalance",
            job.state,
            done_bytes=job.bytes_handled,
            total_bytes=job.goal,
            percent=None if job.share is None else 100.0 * job.share,
            note=_notes(job),
        ),
        job.rate,
        Estimate(job.eta_seconds, None, None, "") if job.eta_seconds else none,
        flag="REBALANCE",
    )


def message_start(job: str) -> str:
    """Return the beginning of all messages about a job; ``job`` is its id."""
    return f"Rebalance job {job} "


def _notes(job: JobView) -> str:
    """Return the kind of the sizes, ``12 files skipped, 1 file failed``, why the total changed."""
    counts = ((job.files_unmoved, "skipped"), (sum(job.failed.values()), "failed"))
    files = (f"{counted(n, 'file')} {word}" for n, word in counts if n)
    kind = () if job.goal is None else ("logical sizes",)  # beside raw ones of the pool
    return ", ".join((*kind, *files, *job.total_changed))


def _how_to_resume(job: str) -> KeyedText:
    """Return what resumes a job; ``job`` is its id."""
    by_key = "{key} lists it, {key} resumes it"
    command = f"zconsole rebalance resume {job} resumes it"
    return KeyedText(command, by_key, "rebalance", "hold")


def reason(job: JobView) -> str:
    """Return the reason for a state; empty if that says it, or the job was done or told to stop."""
    return "" if job.why in (None, job.state, "stop", "done") else job.why


def _changed(before: tuple[JobView, ...], now: tuple[JobView, ...]) -> Iterator[News]:
    """Yield news of jobs that began, resumed or ended between two looks."""
    known = {job.job: job for job in before}
    for job in now:
        old = known.get(job.job)
        was_live = old is not None and old.live
        if job.live and not was_live:
            word = "began" if old is None else "goes on"
            yield News(f"{message_start(job.job)}{word}", job.job, notifies=False)
        if job.live or not was_live:
            continue
        if job.state == "finished":
            failed = sum(job.failed.values())
            text = f"{message_start(job.job)}is over: {reason(job) or 'done'}"
            text += f", {counted(failed, 'file')} failed" if failed else ""
            yield News(text, job.job)
        else:
            why = f": {reason(job)}" if reason(job) else ""
            ordered = job.state == "stopped" and job.why == "stop"
            text = f"{message_start(job.job)}{job.state}{why}; " + _how_to_resume(job.job) + "."
            yield News(text, job.job, "information" if ordered else "warning")
