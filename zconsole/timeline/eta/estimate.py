"""When a scan ends: an estimate with a range, and where both come from.

``zpool`` divides what is left by the average of the current pass; one slow hour, a restart or the
burst at its start stays in that average to the end. Here the rate comes from the console's own
samples, and the range from how far the windows of these samples disagree and how far off they were
before.

**The estimators, and when each speaks**

1. *Measuring*. There is a rate of our own once ``MIN_POINTS`` samples and ``progress.MIN_SECONDS``
   of work (of an activity two transaction groups, ``TWO_GROUPS``) were seen. ``_issuing`` says
   which samples count: those since the first byte was issued or repaired, and from ``WARM_UP``
   after the scan's start on. Once the metadata walk has been over for ``WALKED_SECONDS``, those
   from before its end are left out, unless a scan with the kernel's own counters (2.2 and later)
   was watched for ``pace.LEAST_WATCHED``. There is an end once the rate was steady for
   ``STEADY_SECONDS``, or the samples that count span ``MOST_SECONDS``. Until then the reason begins
   with "measuring", and zpool's figure stands beside it. ``_by_average`` gives zpool's average with
   the widest range: where only one sample is taken (not ``goes_on``) if it covers
   ``LEAST_AVERAGED`` seconds, and of a scan watched for ``MOST_SECONDS`` that advances in bursts of
   unknown length, does not move, or is printed too coarsely. It gives no end where the average
   counts what is skipped, beyond ``LONGEST``, and once more than all is done.
2. *Windows* (``windows.py``) speak from then on. ``_progress`` says what was worked off at each
   moment: the bytes repaired, where the source has them exactly, or the bytes issued (``_meter``).
   Where it is not known how many issued bytes are still queued, bursts are evened out
   (``levelled``), once their period is known. ``expected`` lays lines through the last
   10 s, 20 s and so on up to 5.7 h of it, and through all of it, and weighs each by three
   questions: is it as long as the time to go, did it predict what came since, does it fit the
   present. The mean of all is blended in.
3. *Pace* (``pace.py``) speaks once the samples that count span an hour, with any turns of walking
   among them. It fits the hour of the day, beginning with that of an earlier scan, and the share
   sorted in memory, and hands the windows a course from which these are taken out.
4. *Past* (``past.py``) speaks, also while it is measuring, if the pool finished a scan before from
   which this kind learns, and which was a fifth to five times as large: by its place on the disks
   and, unless its pace was even, by the hour of the day. ``together`` weighs each by the inverse
   square of its ``doubt``. That of an earlier scan is how unlike this one it may be, without
   ``past.PAST_SPREAD``; the forecast made here counts with its full spread.
5. *Known change* (``timeline/scan_rate.py``) speaks last, if tunables changed and the rate since
   would end the scan a fifth earlier or later than is told. It waits for ``effect.SETTLE`` (75 s),
   then for a rate that is steady for ``FOLLOWED_AFTER`` (4 minutes), or for ``AGAIN`` (15 minutes)
   after repeated changes, and never speaks while metadata is walked, by turns or not. The forecast
   is made again from the samples after the change; of what was before, only the pace over the day
   stays, if it is known.

Activities beside scans (a removal, an expansion) have only the first three, anew with each sample.
Between two forecasts of a scan the last one counts down.

**The range** reaches from ``eta * e^-s - SLACK`` to ``eta * e^s + SLACK``. s is the root of the sum
of three squares: ``BASE_SPREAD``; ``SPREAD_FACTOR`` times what the windows disagree by and were off
by when asked to predict the past, before the mean is blended in; and how unsure the pace is of what
is ahead. It is at most ``MAX_SPREAD``, which is also that of zpool's average. With an earlier scan,
s is that of the mixture of all that speak, where ``past.PAST_SPREAD`` is the least of an earlier
scan. After a known change the range also holds the estimate that was given up. The low end is never
below zero.

**What each constant does.** Four figures say it. R is the error on eight recorded scans relative to
zpool's (``tests.bench.eta``, 24 moments of each). L is the mean error on twelve simulated scans of
30 to 422 hours (``tests.bench.long_scans``, seed 4711), and P on the next scans of six of these
pools. Of these three, lower is better. M is how much larger the error on 124 scans that nobody
tuned by (``tests.bench.synthetic``, seeds 9001 to 9004) is without the thing, with its standard
error in brackets: positive means that the thing helps.

When the list was measured, R was 0.287, L 0.198 and P 0.044 with everything in place, and the range
held 84 % of the recorded ends with a median width of 0.89 of the time left. An entry has what
these were without the thing, or with another value where it says so; what it does not name stayed
the same. A constant that is not in the list was not measured alone.

- ``progress.MIN_SECONDS`` 5 s, a transaction group: with 2 s, a window told 3 to 5 times too much
  or too little.
- ``STEADY_SECONDS`` 15 s, three transaction groups: with less, an end told to the minute was a
  fifth off.
- ``WARM_UP`` 4 s, while the queues fill: R 0.362.
- ``WALKED_SECONDS`` 30 s: no difference here. It is for releases before 2.2, which skip bytes at
  once during the walk and count them as issued.
- Repaired bytes, as issued ones run ahead by what is queued: R 0.407. How many are repaired for
  each byte issued is taken from where the queues ran lowest. The topology tells it exactly only
  for a rebuild; for a raidz with small blocks it was 7 % off, so that the estimate never approached
  the end.
- Bursts, ``FEWEST_BURSTS`` 3 until a period is known: R 0.277, L 0.190, M +2.3 % (1.2). Ranges of
  synthetic scans in bursts and levels are 1.15 wide instead of 1.02.
- ``WINDOWS`` 10 s to 5.7 h, against the mean of all: R 0.311, L 0.220, P 0.088, width 1.18.
- ``HORIZON_SPREAD`` 1, an hour is predicted best by about an hour: R 0.285, L 0.185, M +2.0 %
  (0.9).
- ``windows.HINDCASTS``, a window weighs by the inverse square of its misses: R 0.288, L 0.204, P
  0.052, width 1.19.
- ``PRESENT_SHARE`` 8 %, a window that contradicts the present weighs next to nothing: R 0.294;
  where a disk became faster (2.3.9/mirror_slow_then_fast), the error is 0.50 instead of 0.42.
- ``MEAN_SHARE`` 0.8, load comes and goes: R 0.285, L 0.191, M +2.8 % (0.7).
- ``LOAD_MISFIT_WEIGHT`` 0.05, a scan slower than its mean may be under a load that ends: L 0.196,
  M +0.1 % (0.1); without it, the range of a load has the end only if the load lasts.
- ``BASE_SPREAD`` 0.32, speeds have changed by a third before. With 0.2 and 0.45 the range held 80
  and 92 %, and was 0.65 and 1.21 wide. With 0.28, a load that lasts is out of it when it has just
  begun.
- ``SPREAD_FACTOR`` 1.15: with 0.6 and 2, the range held 80 and 89 %, and was 0.85 and 0.97 wide.
- ``pace.LEAST_WATCHED`` 1 h; without the pace: L 0.450, P 0.127, M -26 % (8).
- The hours of the day (``pace.SWING``): L 0.272, P 0.123, M -2.2 % (0.9). Without their 12-hour
  wave only: L 0.217, P 0.053.
- What is sorted in memory (``pace.COSTS``): L 0.411, M -13 % (4).
- An earlier scan: P 0.186; by its place alone 0.113, by the hour alone 0.050.

Bursts, ``HORIZON_SPREAD`` and ``MEAN_SHARE`` make R and L slightly worse. They stay because of M,
which comes from scans that nobody tuned by. M speaks against the pace because the speed of
synthetic scans depends on neither the hour nor the memory.

**What the range holds today.** On the eight recorded scans 88 % of the ends, with a median width of
0.77 of the time left; with ten more whose disks stall, fade, saw and wander, 87 % and 1.06; on 18
scans of ``tests.bench.synthetic`` (seeds 81231 and 81232) 87 %, with 0.87. R is 0.33, with the ten
0.36, as zpool's figure is what is judged until the rate is steady; from then on it is 0.24.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import exp, sqrt
from typing import NamedTuple

from zconsole import units
from zconsole.timeline.eta.pace import (
    EVEN,
    LEAST_WATCHED,
    Daily,
    Worked,
    fitted,
    held_in_memory,
    value_at,
    worths,
)
from zconsole.timeline.eta.progress import MIN_SECONDS, CurvePoint, ProgressCurve, Work
from zconsole.timeline.eta.windows import Slopes, Speed, expected

MIN_POINTS = 3
"""Between two, the pool may have stood still: after it was suspended, say."""
WARM_UP = 4.0
"""Seconds after its start in which a scan only fills the devices' queues."""
CLOCKS_APART = 2.0
"""Seconds before its start at which a scan can't have been seen, unless the clock was set."""
MEASURING = "measuring"
"""How the reason begins for which there is no estimate while too little was seen."""
BASE_SPREAD = 0.32
"""Log spread of the range when all windows agree: speeds have changed by a third before."""
SPREAD_FACTOR = 1.15
"""Log spread of the range for each unit of log ratio by which windows disagree and were off."""
MAX_SPREAD = 1.0
"""Log spread of a range that says as good as nothing: a factor of 2.7 either way."""
SLACK = 2.0
"""Seconds either way that a transaction group may take longer or shorter."""
WALKED_SECONDS = 30.0
"""Seconds watched after the metadata walk from which what was before is left out."""
SKIPPED_FACTOR = 1.3
UNBLURRED = 2.0**29
"""Bytes compared with which those queued are few."""
SUSPENDED = "no estimate: the pool is suspended, nothing moves"
PAST_TOTAL = "past 100 %: remaining unknown"
PAST_SHARE = 0.01
"""Writes during a scan carry its bytes a little past the total without anything wrong."""
LEAST_AVERAGED = 7.0
"""Seconds that an average must cover to say anything of the rest."""
STEADY_SECONDS = 15.0
"""Seconds for which a rate has to be steady before it tells an end: three transaction groups."""
STEADY = 1.35
"""By what factor the halves of that time may differ: one group among four more or less."""
MOST_SECONDS = 60.0
"""After so many an end is told also where the rate changes: the range says how much it does."""
LONGEST = 365 * 86400.0
"""Seconds beyond which an average is one of a scan that has hardly begun, or stands still."""
FEWEST_BURSTS = 3
"""Bursts from which their period is known."""
RECENT_BURSTS = 4
"""Of so many periods the last speed is the mean."""
LONG_STILL = 8.0
"""Seconds without a byte that are longer than a transaction group of fast disks takes."""
HELD = ("paused", "suspended", "finished", "canceled", "exists", "interrupted")
"""Reasons for which waiting gives no estimate."""


class Estimate(NamedTuple):
    """Seconds to go with a range, or the reason there is none."""

    eta: float | None
    low: float | None
    high: float | None
    reason: str
    """What it is based on (``resilvering at 124M/s over 5m00s``), or why there is none."""

    @property
    def lacking(self) -> str:
        """What stands in place of a duration: one will come, or nothing is under way."""
        if self.reason.startswith(MEASURING):
            return MEASURING
        never = self.reason in HELD or self.reason.startswith("no estimate:")
        return "none" if never else "not known yet"


class Forecast(NamedTuple):
    """An estimate and the windowed rate it is based on."""

    estimate: Estimate
    rate: float | None = None
    """Bytes/s."""
    window: float | None = None
    """Seconds; None for zpool's average."""
    spread: float = MAX_SPREAD
    """Log spread by the scan's own course, by which ``past.together`` weighs that against an
    earlier scan. The range of the estimate has another one then."""
    daily: Daily | None = None
    """Its pace over the day; None where that is not known yet."""

    def later(self, seconds: float) -> Forecast:
        """The same forecast, that many seconds later."""
        *told, reason = self.estimate
        eta, low, high = (None if at is None else max(0.0, at - seconds) for at in told)
        return self._replace(estimate=Estimate(eta, low, high, reason))


def nothing(reason: str) -> Estimate:
    """No estimate, and why."""
    return Estimate(None, None, None, reason)


def forecast(course: ProgressCurve, work: Work, known: Daily = EVEN) -> Forecast:
    """When the work is done, judging by its course; with the reason if that is unknown.

    ``known``: the pace over the day that an earlier scan had.
    """
    points = _issuing(course.points, work)
    xs = [p.x for p in points]
    seconds = xs[-1] - xs[0] if xs else 0.0
    seen, is_young = units.counted(len(course.points), "sample"), course.seconds < MOST_SECONDS
    if len(points) < MIN_POINTS or seconds < work.least_seconds:
        return _by_average(work, seen, course, will_tell_more=True)
    progress = _progress(xs, points, work)
    stopped = f"no progress for {units.duration(course.idle)}"
    if progress is None:
        # A stop that is as long as any before it may be no wait between two bursts.
        waits = longest_still(xs, [p.issued + p.scanned for p in points])
        why = stopped if course.idle >= waits else "it advances in bursts"
        return _by_average(work, why, course, is_young)
    worked, left = progress
    if is_past(left, work):
        return Forecast(nothing(PAST_TOTAL))
    left, ts = max(0.0, left), [p.t for p in points]
    memory = None
    if work.to_scan:
        memory = held_in_memory(points, work.total, work.to_scan, work.by_turns)
    pace = fitted(Worked(ts, xs, worked, left, memory), known)
    daily, done, doubt = EVEN, worked, 0.0
    if pace is not None:
        daily, done, left, doubt = pace
    worth = worths(ts, xs, daily)
    speed = expected(Slopes(worth, done), left, 2 * work.resolution)
    if speed is None:
        why = "what is printed is too coarse yet" if work.resolution else stopped
        return _by_average(work, why, course, is_young)
    spread = min(MAX_SPREAD, sqrt(BASE_SPREAD**2 + (SPREAD_FACTOR * speed.spread) ** 2 + doubt**2))
    shown = speed if pace is None else speed._replace(rate=_byte_rate(points, speed))
    eta = daily.until(ts[-1], left / speed.rate) + work.tail
    estimate = ranged(eta, spread, _reason(work, shown))
    if seconds < MOST_SECONDS and not _was_steady(xs, worked):
        estimate = nothing(f"{MEASURING}, {seen}")
    own = None if pace is None else daily
    return Forecast(estimate, shown.rate, speed.seconds, spread, own)


def _was_steady(xs: Sequence[float], done: Sequence[float]) -> bool:
    """Whether both halves of some ``STEADY_SECONDS`` had about the same rate."""
    for x, end in zip(xs, done, strict=True):
        if x - xs[0] >= STEADY_SECONDS:
            start, middle = (value_at(xs, done, x - STEADY_SECONDS / part) for part in (1, 2))
            early, late = middle - start, end - middle
            if 0 < early <= STEADY * late and late <= STEADY * early:
                return True
    return False


def _byte_rate(points: Sequence[CurvePoint], speed: Speed) -> float:
    """Bytes/s issued over the time of a speed that is one of work at an even pace."""
    last = points[-1]
    old = next(p for p in points if p.x >= last.x - max(speed.seconds, MIN_SECONDS))
    moved, seconds = last.issued - old.issued, last.x - old.x
    return moved / seconds if moved > 0 and seconds > 0 else speed.rate


def _progress(
    xs: Sequence[float], points: Sequence[CurvePoint], work: Work
) -> tuple[list[float], float] | None:
    """Bytes done at each point and left now, by those repaired, the bursts, or those issued.

    None while a scan advances in bursts and too few were seen.
    """
    done, queued = _meter(points, work)
    left = work.total - work.issued
    if queued is not None:
        return done, left + queued
    # What walks metadata meanwhile does not wait for devices, however long it issues nothing.
    moved = [d + p.scanned for d, p in zip(done, points, strict=True)]
    level = None if work.by_turns else levelled(xs, done, moved)
    if level is not None:
        return level, left + done[-1] - level[-1]
    if work.average and not work.by_turns and longest_still(xs, moved) >= LONG_STILL:
        return None
    return done, left


def levelled(
    xs: Sequence[float], issued: Sequence[float], moved: Sequence[float] | None = None
) -> list[float] | None:
    """Bytes the devices have done at each point; None while the period is not known yet.

    A scan issues what a transaction group may hold at once and stands still until the devices are
    done with it (``dsl_scan_sync`` waits for its ``scn_zio_root``): for two seconds on fast disks,
    for a quarter of a minute on disks that do 400 requests a second. So when a burst begins, all
    that was issued before it is done, and from one such moment to the next the devices have worked
    evenly.

    ``moved``: what stands still between bursts, if that is more than the bytes issued.
    Before the first burst, and where points are too far apart to show one, all that was issued.
    """
    steps = [b - a for a, b in pairwise(issued if moved is None else moved)]
    found = [n for n in range(1, len(steps)) if steps[n] > 0 >= steps[n - 1]]
    if len(found) < FEWEST_BURSTS:
        return None
    done = list(issued[: found[0]])
    for a, b in pairwise(found):
        speed = (issued[b] - issued[a]) / (xs[b] - xs[a])
        done += [issued[a] + speed * (x - xs[a]) for x in xs[a:b]]
    last, early = found[-1], found[max(0, len(found) - 1 - RECENT_BURSTS)]
    speed = (issued[last] - issued[early]) / (xs[last] - xs[early])
    ahead = (
        min(issued[n], issued[last] + speed * (xs[n] - xs[last])) for n in range(last, len(xs))
    )
    return [*done, *ahead]


def longest_still(xs: Sequence[float], issued: Sequence[float]) -> float:
    """Seconds of the longest stretch without a byte."""
    longest = since = 0.0
    for (x, a), (y, b) in pairwise(zip(xs, issued, strict=True)):
        since = since + y - x if b <= a else 0.0
        longest = max(longest, since)
    return longest


def _issuing(points: Sequence[CurvePoint], work: Work) -> Sequence[CurvePoint]:
    """The points since bytes were first issued and the queues filled, if that leaves enough.

    While it walks the metadata a scan issues nothing, or (before 2.2) counts what it skips as
    issued; so once the walk is done, only what came after it tells the speed.
    """
    # A rebuild issues a whole metaslab at once, and repairs it while it issues nothing.
    idle = (points[0].issued, points[0].processed) if points else (0.0, 0.0)
    moved = (i for i, p in enumerate(points) if p.issued > idle[0] or p.processed > idle[1])
    first = next(moved, 0)
    points = points[max(0, first - 1) :]
    known = work.to_scan is not None and points and points[-1].x - points[0].x >= LEAST_WATCHED
    if work.walked and points and not known:
        done = next(i for i, p in enumerate(points) if p.scanned == points[-1].scanned)
        points = points[done if points[-1].x - points[done].x >= WALKED_SECONDS else 0 :]
    if work.start is None or not points or points[0].t < work.start - CLOCKS_APART:
        return points
    # By running seconds: a clock set back would make it young again.
    begun = points[0].x - (points[0].t - work.start)
    return [p for p in points if p.x - begun >= WARM_UP]


def _meter(points: Sequence[CurvePoint], work: Work) -> tuple[list[float], float | None]:
    """Bytes done at each point, and the bytes issued but not done now (None: unknown).

    Issued bytes run ahead of the devices by what is queued (tens of MB, and a whole metaslab in a
    rebuild), in bursts. Repaired bytes count what has come back; they are a fixed share of the
    issued ones. Where issued bytes include skipped ones (before 2.2), the share of all is not the
    share of the further ones.
    """
    share = _share(points, work)
    if share is None:
        return [p.issued for p in points], None
    issued = points[-1].issued - points[0].issued
    # What is queued blurs the share of a few.
    if issued > 0 and issued >= min(0.25 * work.total, max(0.05 * work.total, UNBLURRED)):
        further = (points[-1].processed - points[0].processed) / issued
        if further > SKIPPED_FACTOR * share:
            return [p.processed / further for p in points], None
    return [p.processed / share for p in points], max(0.0, work.issued - work.processed / share)


def _share(points: Sequence[CurvePoint], work: Work) -> float | None:
    """Bytes repaired for each byte issued: what it was where the queues ran lowest.

    The topology knows it of a rebuild. Of a resilver it knows about what it is: a raidz allocates
    padding for small blocks, which is issued and never written.
    """
    floor = 0.02 * work.total
    best = max((p.processed / p.issued for p in points if p.issued > floor), default=0.0)
    if work.processed <= 0 or best <= 0:
        return None
    if work.share is None or best > 1.05 * work.share:
        return best
    if work.sure:
        return work.share
    # Far below what the topology says, more than queues explain: then it is unknown.
    return best if best >= 0.5 * work.share else None


def ranged(eta: float, spread: float, reason: str) -> Estimate:
    """An estimate with its range, as the module's docstring has it."""
    low = max(0.0, eta * exp(-spread) - SLACK)
    return Estimate(eta, low, eta * exp(spread) + SLACK, reason)


def _reason(work: Work, speed: Speed) -> str:
    own = f"{work.verb} at {units.rate(speed.rate)} over {units.duration(speed.seconds)}"
    if work.average is None:
        return own
    return f"{own}, zpool averages {units.rate(work.average)} over this pass"


def _by_average(work: Work, why: str, course: ProgressCurve, will_tell_more: bool) -> Forecast:
    """From zpool's average when there is one; that is all a single sample has.

    ``will_tell_more``: whether a few more samples, if they come, give a rate of our own.
    """
    watched = will_tell_more and (course.goes_on or len(course.points) > 1)
    not_yet = f"{MEASURING}, " if watched else "no estimate yet: "
    left = work.total - work.issued
    if is_past(left, work):
        return Forecast(nothing(PAST_TOTAL), work.average)
    if not work.average or work.average <= 0:
        return Forecast(nothing(f"{not_yet}{why}"))
    average = f"zpool averages {units.rate(work.average)} over this pass"
    if work.skips:
        return Forecast(nothing(f"no estimate: {average}, with what it skipped"), work.average)
    if watched or (work.averaged is not None and work.averaged < LEAST_AVERAGED):
        over = f"zpool averages over {units.duration(work.averaged)} only"
        return Forecast(nothing(f"{not_yet}{why if watched else over}"), work.average)
    eta = max(0.0, left) / work.average + work.tail
    if eta > LONGEST:
        return Forecast(nothing(f"{not_yet}{average}, as good as nothing"), work.average)
    return Forecast(ranged(eta, MAX_SPREAD, f"{average} ({why})"), work.average)


def is_past(left: float, work: Work) -> bool:
    """Whether more than all is done, so that what is left is not known."""
    return left < -PAST_SHARE * work.total if work.ends_at_total else left <= 0
