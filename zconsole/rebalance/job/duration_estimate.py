"""How long a job will take, before it has run: from what is known of the pool's pace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zconsole.rebalance.backend import JobView, PlanView


@dataclass(frozen=True, slots=True)
class JobPace:
    """Bytes of files a second, and what that rests on."""

    rate: float
    basis: str


def pace_of(proposal: PlanView, jobs: Sequence[JobView], scan_rate: float | None) -> JobPace | None:
    """The pace to expect; None where nothing is known.

    A job's own pace goes before the mean rate of the pool's last scan (allocated bytes/s), of
    which a rewrite gets about half, as it writes what it reads. A rate limit bounds either.
    """
    rates = [job.rate for job in jobs if job.rate]
    limit = proposal.settings.limits.rate
    found: JobPace | None = None
    if rates:
        found = JobPace(rates[0], "the pace of another job")
    elif scan_rate:
        found = JobPace(scan_rate / 2 / proposal.raw_factor, "half the pace of the last scan")
    if limit is not None and (found is None or limit < found.rate):
        return JobPace(limit, "the rate limit")
    return found
