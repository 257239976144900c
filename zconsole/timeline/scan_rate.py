"""The rate of one scan: from its start to now, at present, and how its estimate follows it.

Past rates are kept in a bounded number of equal steps, with marks. When the steps are full, each
pair is merged, so that each step covers twice the time: a scan of days has steps of minutes, one
that has just begun a step per sample.

After a change, an operator looks at the present rate. An estimate looks for the rate to expect over
the hours left, so its windows are as long; if a tunable was changed a quarter of an hour ago, they
show half of the effect. After a change of speed the estimate waits to see whether it lasts, and
until then dividing the bytes left by the displayed rate gives another time: the lag explains this.
A rate that changed together with tunables is expected to last: once it is steady, earlier samples
no longer count, and the estimate follows it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import ceil, floor, inf, log, log2, sqrt
from typing import NamedTuple

from zconsole import units
from zconsole.timeline.eta.estimate import Forecast, evened_out, forecast
from zconsole.timeline.eta.pace import EVEN, value_at
from zconsole.timeline.eta.progress import RECENT_POINTS, CurvePoint, ProgressCurve, Work
from zconsole.timeline.eta.windows import ROUNDINGS
from zconsole.tunables.effect import ENOUGH, SETTLE

MOST_STEPS = 600
MOST_MARKS = 40
"""Steps and marks that are kept per scan."""
HOLE = 64.0
"""Seconds without a sample which are filled with the rate seen next."""
USUAL = 2.0
"""A sample that is this many times later than the previous interval is late, but none was
missed."""
MOST_APART = 512.0
"""Seconds between the first two samples up to which they determine the sampling interval."""
TREND_SECONDS = 60.0
"""Seconds of the recent part of a trend; a scan's rate is shown over the same time."""
TREND_BEFORE = 5
"""The earlier part of a trend is up to this many times as long; with less data, two halves are
compared."""
TREND_LEAST = 20.0
"""Seconds of recent samples that a trend needs."""
PRESENT_SECONDS = 60.0
"""Seconds over which the present rate is taken: a dozen transaction groups, several bursts of slow
disks."""
LEAST_PRESENT = 10.0
"""Least seconds for a present rate; after a change of tunables, only the time since then counts."""
_TUNED = re.compile(r"^\w+=|tunables changed$")
"""Finds the marks of changed tunables among all marks of a scan."""


class Mark(NamedTuple):
    """Something that happened to a scan: ``restart``, ``issuing``, ``paused``, a tunable set."""

    t: float
    """Epoch seconds."""
    text: str


class PastRates(NamedTuple):
    """Rates of a scan (bytes/s), oldest first; a step without samples has None."""

    begin: float = 0.0
    """Epoch seconds at which the first step begins."""
    step: float = 1.0
    """Length of each step in seconds."""
    rates: tuple[float | None, ...] = ()
    marks: tuple[Mark, ...] = ()
    """Oldest first."""

    @property
    def end(self) -> float:
        """Epoch seconds at which the newest step ends."""
        return self.begin + self.step * len(self.rates)

    @property
    def tuned(self) -> tuple[float, ...]:
        """Times at which tunables changed (epoch seconds), oldest first."""
        return tuple(mark.t for mark in self.marks if _TUNED.search(mark.text))

    @property
    def running(self) -> tuple[float | None, ...]:
        """The rates, with None for the steps in which the scan was paused."""
        rates, paused = list(self.rates), inf
        for mark in (*self.marks, Mark(self.end, "resumed")):
            if mark.text == "paused":
                paused = mark.t
            elif mark.text == "resumed" and paused < inf:
                first, last = (int((t - self.begin) // self.step) for t in (paused, mark.t))
                steps = range(max(0, first), min(last + 1, len(rates)))
                rates[steps.start : steps.stop] = [None] * len(steps)
                paused = inf
        return tuple(rates)

    @property
    def trend(self) -> float | None:
        """Share by which the rate has grown recently: 0.1 for a tenth; None while unknown.

        "Recently" starts at the last change of tunables, once there is a rate from after it alone.
        """
        count, most = len(self.rates), round(TREND_SECONDS / self.step) or 1
        begin = end = count - min(most, count // 2)
        if tuned := self.tuned:
            changed = (tuned[-1] - self.begin) / self.step
            settled = ceil(changed + LEAST_PRESENT / self.step)
            if begin < settled:
                begin, end = settled, max(0, floor(changed))
        half = count - begin
        if half * self.step < TREND_LEAST:
            return None
        rates = self.running
        late = _mean(rates[begin:])
        early = _mean(rates[max(0, end - half * TREND_BEFORE) : end])
        return None if late is None or not early else late / early - 1


LEVEL_TREND = 0.05
"""A rate that changed by less than this share counts as steady."""


class PastRecorder:
    """Records the rates of a scan, a sample at a time."""

    def __init__(self, past: PastRates | None = None) -> None:
        """Continue from stored rates, or start empty."""
        self.past = past or PastRates()
        """The rates recorded so far."""
        self._samples = 1
        """Number of samples in the newest step's mean."""
        self._last: float | None = None
        """Epoch seconds of the newest sample."""
        self._apart = 0.0
        """Seconds between the last two samples; 0 if there are none."""

    def mark(self, at: float, text: str) -> None:
        """Record an occurrence."""
        marks = (*self.past.marks, Mark(at, text))[-MOST_MARKS:]
        self.past = self.past._replace(marks=marks)

    def shift(self, seconds: float) -> None:
        """Shift all times: the clock was set by so many seconds."""
        marks = tuple(mark._replace(t=mark.t + seconds) for mark in self.past.marks)
        self.past = self.past._replace(begin=self.past.begin + seconds, marks=marks)
        self._last = self._last and self._last + seconds

    def add(self, now: float, rate: float | None) -> None:
        """Record the rate of the sample at ``now`` (epoch seconds)."""
        begin, step, rates = self.past.begin, self.past.step, list(self.past.rates)
        if not rates:
            begin = now
        elif (len(rates), self._samples) == (1, 1) and 0 < now - begin <= MOST_APART:
            # A console that was away for a day does not sample once a day.
            step = max(step, 2.0 ** floor(log2(now - begin)))
        # If samples are as far apart as before, none is missing.
        apart = 0.0 if self._last is None else now - self._last
        is_usual = apart <= min(MOST_APART, USUAL * self._apart)
        self._last, self._apart = now, apart
        at = max(int((now - begin) // step), len(rates) - 1, 0)
        while at >= MOST_STEPS:
            # Merge pairs of steps, so that each covers twice the time.
            if len(rates) % 2 == 0:
                self._samples *= 2
            rates = [_mean(rates[n : n + 2]) for n in range(0, len(rates), 2)]
            step *= 2
            at //= 2
        missed = at - len(rates)
        if missed >= 0:
            filled = missed <= 1 or missed * step <= HOLE or is_usual
            rates += [rate if filled else None] * missed
            rates.append(rate)
            self._samples = 1
        elif rate is not None:
            old, self._samples = rates[-1], self._samples + 1
            rates[-1] = rate if old is None else old + (rate - old) / self._samples
        self.past = self.past._replace(begin=begin, step=step, rates=tuple(rates))


def _mean(rates: Sequence[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) / len(known) if known else None


class PresentRate(NamedTuple):
    """Bytes/s issued, and the seconds over which they were measured."""

    rate: float
    seconds: float


def present_rate(
    points: Sequence[CurvePoint], walks: bool, rounding: float = 0.0, changed: float = -inf
) -> PresentRate | None:
    """Return the rate of the newest points; None while there are too few.

    ``walks`` means that the scan walks metadata first and has finished that at the newest point:
    earlier time does not count. ``rounding`` is the possible error of a counter in bytes.
    ``changed`` is the time, in running seconds, at which tunables changed: earlier time does not
    count either.
    """
    if not points:
        return None
    now = points[-1]
    recent = [p for p in points[-RECENT_POINTS:] if not walks or p.scanned == now.scanned]
    xs = [p.x for p in recent]
    span = min(PRESENT_SECONDS, max(LEAST_PRESENT, now.x - changed))
    first, early = (
        max(0, bisect_right(xs, now.x - ago) - 1) for ago in (span, PRESENT_SECONDS + span)
    )
    # Points before the span help to smooth the burst in which it begins.
    issued = [p.issued for p in recent[early:]]
    done = evened_out(xs[early:], issued) or issued
    seconds, moved = now.x - xs[first], max(0.0, done[-1] - done[first - early])
    if seconds < LEAST_PRESENT or (rounding and moved < 2 * ROUNDINGS * rounding):
        return None
    # A sample more or less in the span is not worth showing.
    return PresentRate(
        moved / seconds,
        PRESENT_SECONDS if PRESENT_SECONDS <= seconds < 1.1 * PRESENT_SECONDS else seconds,
    )


def alternating_rate(points: Sequence[CurvePoint], rounding: float = 0.0) -> PresentRate | None:
    """Return the rate of a scan that alternates between finding blocks and issuing.

    A turn is one of each. The rate is measured over as many whole turns as last a minute, because
    part of a turn has too much of one of the two; and since issuing last began if that lasts for a
    minute already, or no turn has ended yet. None if it has issued nothing, or too little.
    """
    starts: list[int] = []
    """Indices of the points at which issuing began."""
    issuing = False
    for n, (a, b) in enumerate(pairwise(points)):
        # If both counters move, as between distant samples, the scan is issuing.
        if b.issued > a.issued:
            if not issuing:
                starts.append(n)
            issuing = True
        elif b.scanned > a.scanned:
            issuing = False
    if not starts:
        return None
    now, last = points[-1], points[starts[-1]]
    period = last.x - points[starts[-2]].x if len(starts) > 1 else 0.0
    if issuing and (now.x - last.x >= PRESENT_SECONDS or not period):
        return present_rate(points[starts[-1] :], False, rounding)
    back = ceil(PRESENT_SECONDS / period) * period if period else now.x - last.x
    xs = [p.x for p in points]
    first = points[max(starts[0], bisect_right(xs, now.x - back) - 1)]
    seconds, moved = now.x - first.x, max(0.0, now.issued - first.issued)
    if seconds < LEAST_PRESENT or (rounding and moved < 2 * ROUNDINGS * rounding):
        return None
    return PresentRate(moved / seconds, seconds)


LAGGING, CAUGHT_UP = 1.2, 1.1
"""Factor of difference at which the lag is reported, and below which it ends; hysteresis avoids
flicker."""
LEAST_LEFT = 300.0
"""Seconds before the end; after that the difference is due to the last bytes and the queues."""


def rate_lag(
    rate: float | None, left: float, eta: float | None, past: PastRates, is_told: bool
) -> str:
    """Return how ``rate`` (bytes/s) contradicts ``eta`` seconds for ``left`` bytes.

    For example ``rate rose 4m10s ago; ETA 6h48m if it holds``; empty if it does not. ``is_told`` is
    True if the lag was reported with the previous sample.
    """
    if not rate or rate <= 0 or eta is None or min(left / rate, eta) < LEAST_LEFT:
        return ""
    expected = left / eta
    if abs(log(rate / expected)) < log(CAUGHT_UP if is_told else LAGGING):
        return ""
    changed, trend = "rose" if rate > expected else "fell", past.trend or 0.0
    if (trend < -LEVEL_TREND) if rate > expected else (trend > LEVEL_TREND):
        return ""  # it is returning to the expected rate: "if it holds" would be misleading
    told = f"ETA {units.duration(left / rate)} if it holds"
    # Time since the rate crossed the level between the present and the expected rate.
    newest_first, level = past.rates[::-1], sqrt(rate * expected)
    ran = past.running[::-1]
    # Idle time, such as the metadata walk, and the step in which it ended, show no change.
    sides = (
        None if each is None or 0.0 in (each, before) else each > level
        for each, before in zip(ran, (*ran[1:], None), strict=False)
    )
    steps = next((n for n, side in enumerate(sides) if side is (rate <= expected)), None)
    if steps is None or newest_first[:steps].count(None) * past.step > HOLE:
        return f"at the present rate: {told}"  # the change was not seen, or there was none
    return f"rate {changed} {units.duration(steps * past.step)} ago; {told}"


MOST_CHANGES = 40
"""Changes that are kept; the autopilot makes one every few minutes."""
RECENT = 1800.0
"""Seconds after a change during which a new level of the rate is attributed to it."""
FOLLOWED_AFTER = 240.0
"""Seconds for which a rate must be steady, starting ``SETTLE`` after a change, before it is
followed."""
AGAIN, FEW, LATELY = 900.0, 2, 3600.0
"""Seconds for which the rate must be steady before a further change is followed, after more than
``FEW`` changes in the last ``LATELY`` seconds: the operator may change settings again, and the
estimate would jump back and forth."""
SAME_LEVEL = 1.15
"""Factor by which the two halves of a steady stretch may differ: with load from applications, a
minute is up to a fifth faster or slower than the next."""
NEARLY = 1.18
"""Factor by which the present estimate and the time left at the present rate must differ before a
forecast, which takes milliseconds, is worthwhile: a little below ``LAGGING``."""
SAME_END = 1.03
"""Factor by which two equal estimates may differ; a change is followed until they do not differ
more."""


class _Change(NamedTuple):
    """A change of tunables: running seconds, which are not affected by pauses and clock changes."""

    x: float
    t: float
    """Epoch seconds."""
    before: Mapping[str, int] | None = None
    """Values of the tunables before it; None if it was stored by an earlier console."""
    after: Mapping[str, int] | None = None


class KnownChange:
    """The changes of tunables during a scan, and the one that its estimate has followed."""

    def __init__(self, times: Iterable[float] = (), points: Sequence[CurvePoint] = ()) -> None:
        """Start empty, or with changes at these epoch seconds within a stored course."""
        ts, xs = [point.t for point in points], [point.x for point in points]
        # Changes from before the course are dropped.
        within = (t for t in times if len(ts) > 1 and t > ts[0])
        self._changes = deque((_Change(value_at(ts, xs, t), t) for t in within), MOST_CHANGES)
        """Oldest first."""
        self.newest = self._changes[-1].x if self._changes else -inf
        """Running seconds of the newest change; -inf if there was none."""
        self._new: tuple[Mapping[str, int], Mapping[str, int]] | None = None
        """Values before and after, if tunables changed in the newest sample."""
        self._at: _Change | None = None
        """The change that is followed."""
        self._has_followed = False
        self.followed = ""
        """Note that the estimate is based on the time since a change; empty if it is not."""

    def is_recent(self, now: float) -> bool:
        """Return whether tunables changed lately; ``now`` is in running seconds."""
        return now - self.newest <= RECENT

    def add(self, before: Mapping[str, int], after: Mapping[str, int]) -> None:
        """Record that tunables changed in the sample that ``follow`` is given next."""
        self._new = before, after

    def follow(self, usual: Forecast, course: ProgressCurve, work: Work | None) -> Forecast:
        """Return the forecast from after a change, or ``usual`` if no change is to be followed."""
        self.followed = ""
        points, eta = course.points, usual.estimate.eta
        if self._new and points:
            self.newest = points[-1].x
            self._changes.append(_Change(self.newest, points[-1].t, *self._new))
            self._new = None
        if not self._changes or eta is None or work is None or work.alternates:
            return usual
        found = None if self._at is None else _since(points, self._at.x, work, usual)
        at, found = self._newer(found or usual, points, work) or (self._at, found)
        shown = 0.0 if found is None else found.estimate.eta or 0.0
        if found is None or at is None or not _differ(shown, eta, SAME_END):
            self._at = None
            return usual
        if at is not self._at:
            self._at, self._has_followed = at, True
        if _differ(shown, eta, CAUGHT_UP):
            followed, last = (
                units.duration(max(0.0, points[-1].t - change.t))
                for change in (at, self._changes[-1])
            )
            self.followed = f"ETA by the rate since tunables changed {followed} ago"
            if self._changes[-1] is not at:
                self.followed += f" (last {last} ago)"
        # The range also includes the estimate that is replaced.
        return found._replace(estimate=found.estimate.including(eta))

    def _newer(
        self, shown: Forecast, points: Sequence[CurvePoint], work: Work
    ) -> tuple[_Change, Forecast] | None:
        """Return the first later change after which a steady rate contradicts ``shown``."""
        eta, now = shown.estimate.eta or 0.0, points[-1].x
        oldest = max(now - RECENT, 0.0 if self._at is None else self._at.x)
        lately = sum(now - change.x <= LATELY for change in self._changes)
        is_often = self._has_followed and lately > FEW
        before = list[float]()
        for change in (each for each in self._changes if each.x > oldest):
            before.append(_rate(_between(points, change.x - FOLLOWED_AFTER, change.x)))
            after = _between(points, change.x + SETTLE, now)
            if len(after) < ENOUGH:
                continue
            rate, known = _rate(after), self._rate_before(change, points)
            # A rate that comes back with the values of before is known to last.
            is_back = min(rate, known) > 0 and not _differ(rate, known, SAME_LEVEL)
            least = AGAIN if is_often else LEAST_PRESENT if is_back else FOLLOWED_AFTER
            if now - after[0].x < least:
                continue
            # A cheap check first: a forecast takes far longer.
            times = rate * eta / max(1.0, work.total - work.issued)
            if not _differ(times, 1.0, NEARLY) or not _is_steady(after):
                continue
            if any(_explains(each, rate, times) for each in before):
                found = _since(points, change.x, work, shown)
                if found is not None and _differ(found.estimate.eta or 0.0, eta, LAGGING):
                    return change, found
        return None

    def _rate_before(self, change: _Change, points: Sequence[CurvePoint]) -> float:
        """Return the rate of before, if a change puts back the values of before; else 0."""
        for other in reversed(self._changes):
            if other.x < change.x and other.before is not None and other.before == change.after:
                # It was seen with the last of these points, and may be older.
                return _rate(_between(points, other.x - FOLLOWED_AFTER, other.x)[:-1])
        return 0.0


def _between(points: Sequence[CurvePoint], first: float, last: float) -> list[CurvePoint]:
    return [point for point in points if first <= point.x <= last]


def _is_steady(points: Sequence[CurvePoint]) -> bool:
    """Return whether both halves of the points' time had about the same rate."""
    first, last = points[0].x, points[-1].x
    middle = (first + last) / 2
    early, late = _rate(_between(points, first, middle)), _rate(_between(points, middle, last))
    return bool(early and late) and not _differ(late, early, SAME_LEVEL)


def _explains(before: float, after: float, times: float) -> bool:
    """Return whether a change from one rate to another accounts for a factor of ``times``.

    Changes due to the hour or the position on the disk are already part of the estimate.
    """
    if not before or not after:
        return False
    change, wanted, slack = log(after / before), log(times), log(SAME_LEVEL)
    return change * wanted > 0 and abs(change) >= max(slack, abs(wanted) - slack)


def _differ(a: float, b: float, factor: float) -> bool:
    """Return whether rates or times differ by more than a factor; 0 is not a rate."""
    return min(a, b) > 0 and abs(log(a / b)) > log(factor)


def _since(
    points: Sequence[CurvePoint], changed: float, work: Work, usual: Forecast
) -> Forecast | None:
    """Return the forecast from the points after a change; None if these give no speed."""
    after = [p for p in points if p.x >= changed + SETTLE]
    found = forecast(ProgressCurve(after), work, usual.daily or EVEN)
    return None if found.window is None or found.estimate.eta is None else found


def _rate(points: Sequence[CurvePoint]) -> float:
    """Return bytes/s with bursts evened out; 0 if nothing moved."""
    if len(points) < 2:
        return 0.0
    xs, issued = [p.x for p in points], [p.issued for p in points]
    done = evened_out(xs, issued) or issued
    return (done[-1] - done[0]) / (xs[-1] - xs[0])
