"""The rate of one scan: from its start to now, at present, and where its estimate lags it.

Past rates stand in a bounded number of equal steps, with marks. Once they are full, pairs of steps
become one, and each covers twice the time: a scan of days keeps steps of minutes, one that has just
begun a step a sample.

An operator looks at the present rate after a change. An estimate asks what to expect of the hours
to go, so its windows are as long; of a tunable that was changed a quarter of an hour ago they say
half. After a change of speed it waits to see whether that lasts, and whoever divides what is left
by the rate shown finds another time: the lag says so.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import ceil, floor, inf, log, log2, sqrt
from typing import NamedTuple

from zconsole import units
from zconsole.timeline.eta.estimate import levelled
from zconsole.timeline.eta.progress import RECENT_POINTS, CurvePoint
from zconsole.timeline.eta.windows import ROUNDINGS

MOST_STEPS = 600
MOST_MARKS = 40
HOLE = 64.0
"""Seconds without a sample, up to which the rate is taken to have been the one seen next."""
USUAL = 2.0
"""A sample this many times later than the one before it was is late, and none was missed."""
MOST_APART = 512.0
"""Seconds between the first two samples up to which they say how often there is one."""
TREND_SECONDS = 60.0
"""A trend compares this time, which a scan's rate is shown over, with what was before it …"""
TREND_BEFORE = 5
"""… up to this many times as long; of less that there is, halves."""
TREND_LEAST = 20.0
PRESENT_SECONDS = 60.0
"""Seconds that count: a dozen transaction groups, and several bursts of slow disks."""
LEAST_PRESENT = 10.0
"""Seconds that say something; after tunables were changed no more, until more have passed."""
_TUNED = re.compile(r"^\w+=|tunables changed$")
"""Finds the marks of changed tunables among all that are kept of a scan."""


class Mark(NamedTuple):
    """Something that happened to a scan: ``restart``, ``issuing``, ``paused``, a tunable set."""

    t: float
    """Epoch seconds."""
    text: str


class PastRates(NamedTuple):
    """The rates of a scan (bytes/s), oldest first; a step without any sample has none."""

    begin: float = 0.0
    """Epoch seconds at which the first step begins."""
    step: float = 1.0
    """Seconds of each."""
    rates: tuple[float | None, ...] = ()
    marks: tuple[Mark, ...] = ()
    """Oldest first."""

    @property
    def end(self) -> float:
        """Epoch seconds at which the newest step ends."""
        return self.begin + self.step * len(self.rates)

    @property
    def tuned(self) -> tuple[float, ...]:
        """When tunables changed (epoch seconds), oldest first."""
        return tuple(mark.t for mark in self.marks if _TUNED.search(mark.text))

    @property
    def trend(self) -> float | None:
        """By what share the rate has grown of late: 0.1 for a tenth; None while unknown.

        Of late begins where tunables changed, once a rate is that of after the change alone.
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
        late = _mean(self.rates[begin:])
        early = _mean(self.rates[max(0, end - half * TREND_BEFORE) : end])
        return None if late is None or not early else late / early - 1


LEVEL_TREND = 0.05
"""A rate that moved by less than this share goes neither up nor down."""


class PastRecorder:
    """Takes the rates of a scan in, a sample at a time."""

    def __init__(self, past: PastRates | None = None) -> None:
        """Go on with what was kept of it, or begin."""
        past = past or PastRates()
        self._begin, self._step = past.begin, past.step
        self._rates = list(past.rates)
        self._marks = list(past.marks)
        self._samples = 1
        """How many the newest step is the mean of."""
        self._last: float | None = None
        """Epoch seconds of the newest sample."""
        self._apart = 0.0
        """Seconds from the sample before it to that; 0 where there is none."""

    @property
    def past(self) -> PastRates:
        """What is kept now."""
        return PastRates(self._begin, self._step, tuple(self._rates), tuple(self._marks))

    def mark(self, t: float, text: str) -> None:
        """Keep that something happened."""
        self._marks.append(Mark(t, text))
        del self._marks[:-MOST_MARKS]

    def shift(self, seconds: float) -> None:
        """Date all anew: the clock was set by so many seconds."""
        self._begin += seconds
        self._last = self._last and self._last + seconds
        self._marks = [mark._replace(t=mark.t + seconds) for mark in self._marks]

    def add(self, t: float, rate: float | None) -> None:
        """Keep the rate of the sample at ``t`` (epoch seconds)."""
        if not self._rates:
            self._begin = t
        elif (len(self._rates), self._samples) == (1, 1) and 0 < t - self._begin <= MOST_APART:
            # A console that was away for a day does not sample once a day.
            self._step = max(self._step, 2.0 ** floor(log2(t - self._begin)))
        # Where samples are as far apart as they were before, none is missing.
        apart = 0.0 if self._last is None else t - self._last
        is_usual = apart <= min(MOST_APART, USUAL * self._apart)
        self._last, self._apart = t, apart
        at = max(int((t - self._begin) // self._step), len(self._rates) - 1, 0)
        while at >= MOST_STEPS:
            # Each step covers twice the time from then on.
            if len(self._rates) % 2 == 0:
                self._samples *= 2
            self._rates = [_mean(self._rates[n : n + 2]) for n in range(0, len(self._rates), 2)]
            self._step *= 2
            at //= 2
        missed = at - len(self._rates)
        if missed >= 0:
            filled = missed <= 1 or missed * self._step <= HOLE or is_usual
            self._rates += [rate if filled else None] * missed
            self._rates.append(rate)
            self._samples = 1
        elif rate is not None:
            old, self._samples = self._rates[-1], self._samples + 1
            self._rates[-1] = rate if old is None else old + (rate - old) / self._samples


def _mean(rates: Sequence[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) / len(known) if known else None


class PresentRate(NamedTuple):
    """Bytes/s issued, and the seconds they were seen over."""

    rate: float
    seconds: float


def present_rate(
    points: Sequence[CurvePoint], walks: bool, rounding: float = 0.0, changed: float = -inf
) -> PresentRate | None:
    """The rate of the newest points; None while they say too little.

    ``walks``: whether the scan walks metadata first, which is over at the newest point: the time
    until then does not count. ``rounding``: bytes by which a counter may be off. ``changed``:
    running seconds at which tunables changed: what was before says nothing of now.
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
    # What is before the span evens out the burst that it begins in.
    issued = [p.issued for p in recent[early:]]
    done = levelled(xs[early:], issued) or issued
    seconds, moved = now.x - xs[first], max(0.0, done[-1] - done[first - early])
    if seconds < LEAST_PRESENT or (rounding and moved < 2 * ROUNDINGS * rounding):
        return None
    # A sample more or less in the span is nothing to show.
    return PresentRate(
        moved / seconds,
        PRESENT_SECONDS if PRESENT_SECONDS <= seconds < 1.1 * PRESENT_SECONDS else seconds,
    )


def rate_by_turns(points: Sequence[CurvePoint], rounding: float = 0.0) -> PresentRate | None:
    """The rate while metadata is still walked, and what that finds is issued by turns.

    Of the last minute where it was issuing through all of that, else over whole turns: neither a
    minute of walking nor one of issuing says what the scan does.
    """
    starts: list[int] = []
    """Indexes of the points at which issuing began."""
    issuing = False
    for n, (a, b) in enumerate(pairwise(points)):
        # Where both counters move, as they do where samples are far apart, it issues.
        if b.issued > a.issued:
            starts += [] if issuing else [n]
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
"""By what factor both differ to be told of, and below which that ends: nothing flickers."""
LEAST_LEFT = 300.0
"""To the end; before that the last bytes and the queues are what differs."""


def rate_lag(
    rate: float | None, left: float, eta: float | None, past: PastRates, is_told: bool
) -> str:
    """How ``rate`` (bytes/s) contradicts ``eta`` seconds for ``left`` bytes; empty if it does not.

    ``rate rose 4m10s ago, ETA follows: 6h48m if it stays``. ``is_told``: whether it did a sample
    ago.
    """
    if not rate or rate <= 0 or eta is None or min(left / rate, eta) < LEAST_LEFT:
        return ""
    expected = left / eta
    if abs(log(rate / expected)) < log(CAUGHT_UP if is_told else LAGGING):
        return ""
    changed, trend = "rose" if rate > expected else "fell", past.trend or 0.0
    if (trend < -LEVEL_TREND) if rate > expected else (trend > LEVEL_TREND):
        return ""  # it is on its way back: "if it stays" would be said of what does not
    told = f"{units.duration(left / rate)} if it stays"
    # Since when it has been on this side of the level between both.
    newest_first, level = past.rates[::-1], sqrt(rate * expected)
    sides = (each if each is None else each > level for each in newest_first)
    steps = next((n for n, side in enumerate(sides) if side is (rate <= expected)), None)
    if steps is None or newest_first[:steps].count(None) * past.step > HOLE:
        return f"at the rate of now {told}"  # that was not seen, or it was so all along
    return f"rate {changed} {units.duration(steps * past.step)} ago, ETA follows: {told}"
