"""When a scan ends: an estimate with a range, how both are computed, and how well they do.

``zpool`` divides the bytes left by the average rate of the current pass. One slow hour, a restart
or the burst at the start affects that average until the end. Here the rate comes from the console's
own samples. The range comes from how much different windows of these samples disagree, and from how
wrong they were when asked to predict what is already known.

**The five steps of an estimate**

1. *Measuring*. There is a rate of the console's own after ``MIN_POINTS`` (3) samples and
   ``progress.MIN_SECONDS`` (5 s) of work (for an activity ``TWO_GROUPS``, 10 s). ``_issuing``
   selects the samples that count: those since the first byte was issued or repaired, and at least
   ``WARM_UP`` after the start of the scan. Once the metadata walk has been over for
   ``WALKED_SECONDS``, samples from before its end are dropped, except for a scan with the kernel's
   own counters (2.2 and later) that was watched for ``pace.LEAST_WATCHED``. An end is given once
   both halves of any ``STEADY_SECONDS`` (15 s; more if samples are over 7.5 s apart) among the
   samples that count had the same rate within a factor of ``STEADY`` (1.35), or they span
   ``MOST_SECONDS`` (60 s). Until then the reason begins with "measuring" and zpool's own figure is
   shown instead, unless an earlier scan tells an end (step 4). Two things begin the measuring
   again. One is the end of the walk, unless the samples after it fulfill this rule already.
   The other is a change of the memory to sort in during the walk: no end is given, not even by an
   earlier scan, until the scan has issued for more than half of the time since, or that is half an
   hour ago. ``_by_average`` gives zpool's average, with the widest range, in two cases: if only one
   sample is taken (``goes_on`` is False) and the average covers ``LEAST_AVERAGED`` (7 s); and for a
   scan watched for ``MOST_SECONDS`` that advances in bursts of unknown length, does not move, or is
   printed too coarsely. That average gives no end if it includes skipped bytes, or if its end is
   over a year away (``LONGEST``).
2. *Windows* (``windows.py``) give the rate that the end is computed with; its formulas are below.
   Their input is the bytes done at each point (``_progress``). Those are the bytes issued. Of a
   resilver or rebuild they are the bytes repaired, converted to bytes issued, unless repaired bytes
   are missing or rounded more coarsely than a queue is deep (``_meter``). If the number of issued
   bytes still queued is unknown, bursts are evened out (``evened_out``) once their period is known.
   (The rate on the screen is another: ``scan_rate.present_rate``, over 10 to 60 s, or over whole
   turns while metadata is walked. Only before that is known, it is that of the windows.)
3. *Pace* (``pace.py``) is used once the samples that count span an hour, including phases in which
   metadata is walked. It fits the effects of the hour of the day, starting from those of an earlier
   scan, and (2.2 and later) of the share of the work that is sorted in memory, and passes the
   windows a course without these effects.
4. *Past* (``past.py``) is used, also while measuring and while metadata is walked, if the pool has
   finished an earlier scan of a kind that this one can learn from (``past.LEARNS_FROM``: a resilver
   also from a scrub), with a fifth to five times as many bytes, and if the speed is a fifth to five
   times that of the earlier scan, or may be within its doubt. It predicts by the share of the work
   done and, unless the earlier scan's pace was even, a second time by the hour of the day.
   ``combined`` is the mean of ln ETA, weighted by 1 / doubt^2; a forecast of steps 1 to 3 without
   an end takes no part. The doubt of the forecast from steps 1 to 3 is its s (below), at least
   0.32. That of an earlier scan is how much the two scans may differ, often less than 0.1: one that
   resembles this scan nearly decides.
5. *Known change* (``timeline/scan_rate.py``) comes last, if three things hold: tunables were
   changed in the last half hour; the rate since then would end the scan a fifth earlier or later
   than shown; and when they were changed, the rate jumped that way, by a factor of at least 1.15
   and at least 1 / 1.15 of that between the two ends. It waits for ``effect.SETTLE`` (75 s) and
   then for a rate that is steady for ``FOLLOWED_AFTER`` (4 minutes); only for ``LEAST_PRESENT`` (10
   s) if the values of before were put back and the rate of before is back with them; but always for
   ``AGAIN`` (15 minutes) once a change was followed and there were more than ``FEW`` (2) within an
   hour, as by the autopilot. It is not used while metadata is walked, whether or not the scan
   issues in between. The forecast is then computed again by steps 1 to 3 from the samples after the
   change, until both agree again; of the time before, only the pace over the day is kept, if known,
   and used once an hour was seen; an earlier scan takes no part.

Activities other than scans (a removal, an expansion) use only the first three steps, computed anew
with each sample. A scan is forecast anew after 30 s, 1 % of its ETA or 5 % of the time watched,
whichever is shortest; with each sample while there is no ETA; and at once when its state, stage or
tunables change or its counters break. In between, the last forecast counts down. If a scan has
stood still for a minute, the reason says so. Where the only hours of the day in which a scrub runs
are known, the estimate that is shown counts just these (``frame._in_hours``).

**The rate of the windows** (``windows.expected``)

All windows end now: the last 10, 20, 40 s and so on up to 5.7 h, as far as they are shorter than
the time watched, and all of that. So each contains all shorter ones. The time watched, W, is that
of the samples that count, without pauses; samples stored by an earlier console count, too. The rate
of a window, r, is the slope of the least-squares line through its points (at most 600, each with
the weight of the time that it stands for). A window of fewer than two points, or of less than 20
times the rounding of its ends, is left out. Its weight is the product of three answers:

- *Is it about as long as the time ahead?* ``exp(-ln(length / ahead)^2 / 2)``. ``ahead`` is the
  bytes left / r of the longest window (not the ETA that results). In this answer, but not in
  ``share`` below, it is at least 10 s.
- *Does it agree with the present?* ``exp(-m(r)) + 0.0001``, with ``m(r) = (ln(r / p) / d)^2 / 2``.
  W is cut, from now back, into stretches of 10 s, or of 8 % of W if that is longer. p
  is the rate of the newest, and ``d = 0.1 + 3 * usual + newest`` (``CERTAIN``, ``USUAL_FACTOR``):
  ``newest`` is the size of ln of the change from the stretch before to the newest, ``usual`` the
  median of the changes before that. With fewer than three stretches, or if one of the last two or
  over a fifth of all stood still, the answer is 1, and m is 0.
- *Did it predict well?* ``1 / (e^2 + 0.05^2)`` (``FORGIVEN``). At the moments 5, 10, 20, 30, 40,
  50, 60 and 70 % of W ago (those nearer than 8 s are moved there; 6 s must have been watched
  before), the rate of the window that ended then is compared with the slope of what came: of the
  next 8 s, or of half of the time watched before that moment if that is longer, but not beyond now.
  A window that would begin before the first sample begins there, so that long ones are tried soon,
  too. e is the root mean square of ln(predicted / came), weighted by 1 / (seconds ago); of a window
  not tried yet, the largest of the others, or ``UNTRIED`` (0.3).

ln w, the weighted mean of ln r, is then moved toward the mean of everything watched, M (bytes done
in W / W), the more, the further away the end is::

    ln rate = ln w + share * ln(M / w)
    share   = 0.8 * ahead / (ahead + W) * exp(-k * m(M))

k is 0.3 if the present is faster than M, which shows what the disks can do, but 0.05 if it is
slower, which may be due to a load that ends. The ETA is the bytes left / rate, for a rebuild 4 s
more.

**The range** is from ``ETA * e^-s - 2 s`` (``SLACK``) to ``ETA * e^s + 2 s``, but never below zero.
``s`` is the square root of a sum of squares, at most ``MAX_SPREAD`` (1: a factor of 2.7, also used
for zpool's average):

| term | value |
|---|---|
| ``BASE_SPREAD`` | 0.32 |
| disagreement | ``SPREAD_FACTOR`` (1.15) * root mean square of ln(r / w), by the weights |
| error | 1.15 * root mean square of e, by the weights |
| pace (step 3) | how far it is unknown what hour and memory do to the rest |

So the range is at least 0.65 of the ETA wide. An example without pace: samples every 5 s, 40
minutes at 200 MB/s, then 10 at 100, so W is 3000 s, and 3 TB left. ``ahead`` is 15,800 s, w 101
MB/s, M 180, ``share`` 0.28, the root mean square of e 0.34 and s 0.51: 7.0 h, from 4.2 to 11.7 h.
With pace, in the first half day, its term is about ``1.5 * (0.05 + v * min(1, W / 6 h))``, where v
is the standard deviation of ln(rate) among 24 equal parts of W.

With an earlier scan, s^2 is the mean, by the weights of step 4, of each prediction's
``spread^2 + ln(its ETA / combined ETA)^2``. The spread of steps 1 to 3 is s, that of an earlier
scan the root of ``doubt^2 + 0.15^2`` (``past.PAST_SPREAD``): the range may be half as wide. Three
things widen it beyond that:

- After a known change it includes the ETA that steps 1 to 4 give now.
- For half an hour after a change of tunables, it includes the end at the present rate whenever the
  screen names that.
- For a scrub that is kept to hours, the ETA and both ends of the range are each moved to when so
  many of these hours have passed.

Between two forecasts, ETA and both ends count down by the same seconds.

There is no range where there is no ETA:

- before step 1 or 4 gives an end;
- while nothing is issued yet and no earlier scan is known (the reason of a resilver then begins
  with what was predicted when the replacement was planned, if that is known);
- if the total is unknown, for an error scrub (it counts blocks, not bytes), and for saved JSON
  without a date;
- while the pool is suspended or a scan paused. One paused until its hours has the estimate from
  before the pause, if this console made it, else one by the average of its pass (``MAX_SPREAD``);
- once more than 101 % is done, of an activity 100 %.

While a pool does not answer, its ETA stays as it was, and the header shows how old it is in place
of the range.

**What the range is worth.** ``tests.bench.eta`` judges each sample between 5 and 95 % of a scan's
time at which an end is told. On the eight recorded scans, of 2 to 4 minutes, the true end lies in
the range at 88 % of these moments, in the worst scan at 55 %; its median width is 0.77 of the true
time left. With 22 more of 1 to 8 minutes, by which nothing was tuned, whose disks are loaded,
stall, fade, or go up and down, these are 88 % and 1.09; on ten of 2 to 28 minutes whose load
shifts, grows, ends or hiccups every minute or three, 79 % and 1.62, worst where a load ends bit by
bit (29 %); on 18 scans of ``tests.bench.synthetic`` (seeds 81231 and 81232) 87 % and 0.87.

The error of the end told on the 40 recordings is 0.19 of that of zpool's. It is 0.31 if the time of
measuring counts, too, in which zpool's figure is what is shown. Where zpool gives none, as below 10
MB/s in most of these, that is an error of 1. Against the plain average these 0.19 and 0.31 are 0.52
and 0.65: where loads take turns within minutes, little is gained (0.73 on the ten, worse in 4).

For long scans, ``tests.bench.eta_long`` judges three moments of each. On 16 simulated ones of 8
hours to 20 days (seed 1130, by which nothing was tuned) the true end lies in the range at 41 of 47
moments (13, 14 and 14 of them at 10, 25 and 50 % of the time; at the 48th no end was told), and the
range is 0.71 to 0.82 wide. On the next scan of the same pools, with the first one known, it does at
45 of 48, and the range is 0.34 to 0.36 wide.

**The effect of each constant**, in four figures. R is the error on eight recorded scans relative to
zpool's (``tests.bench.eta``). L is the mean error on twelve simulated scans of 30 to 422 hours
(``tests.bench.long_scans``, seed 4711), and P that on the next scans of six of these pools. For R,
L and P, lower is better. M is how much larger the error is without the feature on 124 scans that
were not used for tuning (``tests.bench.synthetic``, seeds 9001 to 9004), with its standard error in
parentheses: positive means that the feature helps.

The list was measured on an earlier version: compare its figures only with each other. With
everything enabled R was 0.287, L 0.198 and P 0.044, and the range contained the end at 84 % of the
moments, with a median width of 0.89. Each entry gives the figures without the feature, or with
another value where stated; figures that are not given did not change. A constant that is not listed
was not measured separately.

- ``progress.MIN_SECONDS`` 5 s, a transaction group: with 2 s, a window was 3 to 5 times too high or
  too low.
- ``STEADY_SECONDS`` 15 s, three transaction groups: with less, an end given to the minute was a
  fifth off.
- ``WARM_UP`` 4 s, while the queues fill: R 0.362.
- ``WALKED_SECONDS`` 30 s: no difference here. It is for releases before 2.2, which skip bytes
  instantly during the walk and count them as issued.
- Repaired bytes, because issued bytes run ahead by what is queued: R 0.407. The number of bytes
  repaired per byte issued is taken from the time when the queues were shortest. The topology gives
  it exactly only for a rebuild; for a raidz with small blocks it was 7 % off, so that the estimate
  never reached the end.
- ``FEWEST_BURSTS`` 3, bursts evened out: R 0.277, L 0.190, M +2.3 % (1.2). The ranges of synthetic
  scans with bursts and levels are 1.15 wide instead of 1.02.
- ``WINDOWS`` 10 s to 5.7 h, against the overall mean only: R 0.311, L 0.220, P 0.088, width 1.18.
- ``HORIZON_SPREAD`` 1, as long as the time ahead: R 0.285, L 0.185, M +2.0 % (0.9).
- ``windows.HINDCASTS``: R 0.288, L 0.204, P 0.052, width 1.19.
- ``PRESENT_SHARE`` 8 %: R 0.294; for a disk that became faster (2.3.9/mirror_slow_then_fast), the
  error is 0.50 instead of 0.42.
- ``MEAN_SHARE`` 0.8: R 0.285, L 0.191, M +2.8 % (0.7).
- ``LOAD_MISFIT_WEIGHT`` 0.05: L 0.196, M +0.1 % (0.1); without it, the range under load contains
  the end only if the load lasts.
- ``BASE_SPREAD`` 0.32, speeds have changed by a third before. With 0.2 and 0.45 the range contained
  80 and 92 % and was 0.65 and 1.21 wide. With 0.28, the end under a load that lasts is outside the
  range while the load has only just begun.
- ``SPREAD_FACTOR`` 1.15: with 0.6 and 2, the range contained 80 and 89 % and was 0.85 and 0.97
  wide.
- ``pace.LEAST_WATCHED`` 1 h; without the pace: L 0.450, P 0.127, M -26 % (8).
- The hours of the day (``pace.SWING``): L 0.272, P 0.123, M -2.2 % (0.9). Without only their
  12-hour wave: L 0.217, P 0.053.
- The share sorted in memory (``pace.COSTS``): L 0.411, M -13 % (4).
- An earlier scan: P 0.186; with only its position 0.113, with only the hour 0.050.

Bursts, ``HORIZON_SPREAD`` and ``MEAN_SHARE`` make R and L slightly worse. They are kept because of
M, which comes from scans that were not used for tuning. M argues against the pace because the speed
of synthetic scans depends on neither the hour nor the memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import exp, sqrt
from typing import NamedTuple

from zconsole import units
from zconsole.timeline.eta.pace import (
    EVEN,
    LEAST_WATCHED,
    Daily,
    WorkDone,
    fit_pace,
    mean_running_seconds,
    share_in_memory,
    value_at,
)
from zconsole.timeline.eta.progress import MIN_SECONDS, CurvePoint, ProgressCurve, Work
from zconsole.timeline.eta.windows import Slopes, Speed, expected

MIN_POINTS = 3
"""Fewest samples for a rate: between just two, the pool may have stood still, for example while it
was suspended."""
WARM_UP = 4.0
"""Seconds after its start during which a scan only fills the devices' queues."""
CLOCKS_APART = 2.0
"""A sample more than this many seconds before the scan's start shows that the clock was set."""
MEASURING = "measuring"
"""Beginning of the reason for no estimate while too little has been seen."""
NOT_YET = "not known yet"
"""In place of a duration if an estimate will come, though not within the minute."""
BASE_SPREAD = 0.32
"""Log spread of the range when all windows agree: speeds have changed by a third before."""
SPREAD_FACTOR = 1.15
"""Log spread of the range per unit of log ratio by which windows disagree and were wrong."""
MAX_SPREAD = 1.0
"""Log spread of a range that says next to nothing: a factor of 2.7 either way."""
SLACK = 2.0
"""Seconds by which a transaction group may take longer or shorter."""
WALKED_SECONDS = 30.0
"""Seconds watched after the metadata walk before samples from before its end are dropped."""
SKIPPED_FACTOR = 1.3
"""Factor by which the share repaired of recent bytes exceeds that of the whole scan if many
bytes were skipped before."""
UNBLURRED = 2.0**29
"""Bytes issued that are many compared with those in the queues (512 MiB)."""
SUSPENDED = "no estimate: the pool is suspended, nothing moves"
PAST_TOTAL = "past 100 %: remaining unknown"
PAST_SHARE = 0.01
"""Share by which the bytes done may exceed the total without an error: writes during a scan are
counted, too."""
LEAST_AVERAGED = 7.0
"""Seconds that an average must cover to say anything about the rest."""
STEADY_SECONDS = 15.0
"""Seconds for which a rate must be steady before an end is given: three transaction groups. Each
half lasts for a whole interval at least, so this takes longer if samples are far apart."""
STEADY = 1.35
"""Factor by which the halves of that time may differ: one transaction group more or less among
four."""
MOST_SECONDS = 60.0
"""Seconds after which an end is given even if the rate changes; the range shows how much it
does."""
LONGEST = 365 * 86400.0
"""Seconds; a longer estimate by the average means that a scan has hardly begun, or stands still."""
FEWEST_BURSTS = 3
"""Bursts that must be seen before their period is known."""
RECENT_BURSTS = 4
"""Number of periods over which the latest speed is averaged."""
LONG_STILL = 8.0
"""Seconds without a byte; a transaction group of fast disks takes less."""
HELD = ("paused", "suspended", "finished", "canceled", "exists", "interrupted")
"""Reasons for no estimate that waiting does not change."""


class Estimate(NamedTuple):
    """Seconds left with a range, or the reason why there is no estimate."""

    eta: float | None
    low: float | None
    high: float | None
    reason: str
    """The basis of the estimate (``resilvering at 124M/s over 5m00s``), or why there is none."""

    @property
    def lacking(self) -> str:
        """Text in place of a duration: whether an estimate will come, or nothing is running."""
        if self.reason.startswith(MEASURING):
            return MEASURING
        never = self.reason in HELD or self.reason.startswith("no estimate:")
        return "none" if never else NOT_YET

    def including(self, eta: float) -> Estimate:
        """Return the same estimate with a range that also includes ``eta``, in seconds."""
        return self._replace(low=min(self.low or 0.0, eta), high=max(self.high or 0.0, eta))


class Forecast(NamedTuple):
    """An estimate, and the windowed rate it is based on."""

    estimate: Estimate
    rate: float | None = None
    """Bytes/s."""
    window: float | None = None
    """Seconds that the rate covers; None for zpool's average."""
    spread: float = MAX_SPREAD
    """Log spread of the forecast from the scan's own course; ``past.combined`` uses it to weight
    that forecast against an earlier scan. The range of the combined estimate has another spread."""
    daily: Daily | None = None
    """Pace over the day; None if that is not known yet."""

    def later(self, seconds: float) -> Forecast:
        """Return the same forecast as it reads ``seconds`` later."""
        *told, reason = self.estimate
        eta, low, high = (None if at is None else max(0.0, at - seconds) for at in told)
        return self._replace(estimate=Estimate(eta, low, high, reason))


def nothing(reason: str) -> Estimate:
    """Return an estimate without figures, only with the reason."""
    return Estimate(None, None, None, reason)


def forecast(course: ProgressCurve, work: Work, known: Daily = EVEN) -> Forecast:
    """Forecast when the work is done, from its course; or give the reason why that is unknown.

    ``known`` is the pace over the day of an earlier scan.
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
        # A stop no longer than earlier ones may just be the wait between two bursts.
        waits = longest_still(xs, [p.issued + p.scanned for p in points])
        why = stopped if course.idle >= waits else "it advances in bursts"
        return _by_average(work, why, course, is_young)
    worked, left = progress
    if is_past(left, work):
        return Forecast(nothing(PAST_TOTAL))
    left, ts = max(0.0, left), [p.t for p in points]
    memory = None
    if work.to_scan:
        memory = share_in_memory(points, work.total, work.to_scan, work.alternates)
    pace = fit_pace(WorkDone(ts, xs, worked, left, memory), known)
    daily, done, doubt = EVEN, worked, 0.0
    if pace is not None:
        daily, done, left, doubt = pace
    mean_xs = mean_running_seconds(ts, xs, daily)
    speed = expected(Slopes(mean_xs, done), left, 2 * work.resolution)
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
    """Return whether both halves of some ``STEADY_SECONDS`` had about the same rate."""
    for x in xs:
        middle = _half_before(x, xs)
        start = _half_before(middle, xs)
        if start >= xs[0]:
            first, second, third = (value_at(xs, done, at) for at in (start, middle, x))
            early, late = (second - first) / (middle - start), (third - second) / (x - middle)
            if 0 < early <= STEADY * late and late <= STEADY * early:
                return True
    return False


def _half_before(x: float, xs: Sequence[float]) -> float:
    """Return ``x`` minus half of ``STEADY_SECONDS``, but no moment within a longer interval.

    Two parts of one interval would seem to have the same rate; so its beginning is returned.
    """
    before = x - STEADY_SECONDS / 2
    n = bisect_right(xs, before)
    is_far = 0 < n < len(xs) and xs[n] - xs[n - 1] > STEADY_SECONDS / 2
    return xs[n - 1] if is_far else before


def _byte_rate(points: Sequence[CurvePoint], speed: Speed) -> float:
    """Return bytes/s issued over a speed's window; the speed itself is of evened-out work."""
    last = points[-1]
    old = next(p for p in points if p.x >= last.x - max(speed.seconds, MIN_SECONDS))
    moved, seconds = last.issued - old.issued, last.x - old.x
    return moved / seconds if moved > 0 and seconds > 0 else speed.rate


def _progress(
    xs: Sequence[float], points: Sequence[CurvePoint], work: Work
) -> tuple[list[float], float] | None:
    """Return the bytes done at each point and the bytes left, by repaired, evened or issued bytes.

    None while a scan advances in bursts and too few were seen.
    """
    done, queued = _meter(points, work)
    left = work.total - work.issued
    if queued is not None:
        return done, left + queued
    # A scan that walks metadata in between is not waiting for devices, however long it issues
    # nothing.
    moved = [d + p.scanned for d, p in zip(done, points, strict=True)]
    level = None if work.alternates else evened_out(xs, done, moved)
    if level is not None:
        return level, left + done[-1] - level[-1]
    if work.average and not work.alternates and longest_still(xs, moved) >= LONG_STILL:
        return None
    return done, left


def evened_out(
    xs: Sequence[float], issued: Sequence[float], moved: Sequence[float] | None = None
) -> list[float] | None:
    """Return the bytes the devices have done at each point; None while the burst period is unknown.

    A scan issues as much as a transaction group may hold at once, then stands still until the
    devices have done it (``dsl_scan_sync`` waits for its ``scn_zio_root``): for two seconds on fast
    disks, for a quarter of a minute on disks that do 400 requests per second. So when a burst
    begins, everything issued before it is done, and between two such moments the devices have
    worked evenly.

    ``moved`` are the bytes whose standstill marks a burst, if that is more than the bytes issued.
    Before the first burst, and where points are too far apart to show one, the result is the bytes
    issued.
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
    """Return the seconds of the longest stretch without a byte."""
    longest = since = 0.0
    for (x, a), (y, b) in pairwise(zip(xs, issued, strict=True)):
        since = since + y - x if b <= a else 0.0
        longest = max(longest, since)
    return longest


def _issuing(points: Sequence[CurvePoint], work: Work) -> Sequence[CurvePoint]:
    """Return the points since bytes were first issued and the queues filled, if there are enough.

    While it walks the metadata, a scan issues nothing, or (before 2.2) counts what it skips as
    issued; so once the walk is done, only later points show the speed.
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
    # Counted in running seconds: a clock that was set back would make the scan young again.
    begun = points[0].x - (points[0].t - work.start)
    return [p for p in points if p.x - begun >= WARM_UP]


def _meter(points: Sequence[CurvePoint], work: Work) -> tuple[list[float], float | None]:
    """Return bytes done at each point, and bytes issued but not done now (None if unknown).

    Issued bytes run ahead of the devices by what is queued (tens of MB, and a whole metaslab in a
    rebuild), in bursts. Repaired bytes count completed writes and are a fixed share of the issued
    ones. If issued bytes include skipped ones (before 2.2), the share over the whole scan differs
    from that of the bytes seen here.
    """
    share = _share(points, work)
    if share is None:
        return [p.issued for p in points], None
    issued = points[-1].issued - points[0].issued
    # Queued bytes distort the share if only a few bytes were issued.
    if issued > 0 and issued >= min(0.25 * work.total, max(0.05 * work.total, UNBLURRED)):
        further = (points[-1].processed - points[0].processed) / issued
        if further > SKIPPED_FACTOR * share:
            return [p.processed / further for p in points], None
    return [p.processed / share for p in points], max(0.0, work.issued - work.processed / share)


def _share(points: Sequence[CurvePoint], work: Work) -> float | None:
    """Return bytes repaired per byte issued, taken from when the queues were shortest.

    For a rebuild the topology gives it exactly, for a resilver approximately: a raidz allocates
    padding for small blocks, which is issued but never written.
    """
    floor = 0.02 * work.total
    best = max((p.processed / p.issued for p in points if p.issued > floor), default=0.0)
    if work.processed <= 0 or best <= 0:
        return None
    if work.share is None or best > 1.05 * work.share:
        return best
    if work.sure:
        return work.share
    # Far below the share by topology, more than queues explain: then it is unknown.
    return best if best >= 0.5 * work.share else None


def ranged(eta: float, spread: float, reason: str) -> Estimate:
    """Return an estimate with its range; the module's docstring has the formula."""
    low = max(0.0, eta * exp(-spread) - SLACK)
    return Estimate(eta, low, eta * exp(spread) + SLACK, reason)


def _reason(work: Work, speed: Speed) -> str:
    own = f"{work.verb} at {units.rate(speed.rate)} over {units.duration(speed.seconds)}"
    if work.average is None:
        return own
    return f"{own}, zpool averages {units.rate(work.average)} over this pass"


def _by_average(work: Work, why: str, course: ProgressCurve, will_tell_more: bool) -> Forecast:
    """Forecast from zpool's average, if there is one; a single sample has nothing else.

    ``will_tell_more`` means that a few more samples, if they come, give a rate of our own.
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
    """Return whether more than the total is done, so that the rest is unknown."""
    return left < -PAST_SHARE * work.total if work.ends_at_total else left <= 0
