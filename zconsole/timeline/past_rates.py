"""The rate of one scan from its start to now, in a bounded number of equal steps, with marks.

What is kept never grows: once it is full, pairs of steps become one, and each covers twice the
time. A scan of days so keeps steps of minutes; one that has just begun, a step a sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

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
    def trend(self) -> float | None:
        """By what share the rate has grown of late: 0.1 for a tenth; None while unknown."""
        most = round(TREND_SECONDS / self.step) or 1
        half = min(most, len(self.rates) // 2)
        if half * self.step < TREND_LEAST:
            return None
        late = _mean(self.rates[-half:])
        early = _mean(self.rates[-half * (1 + TREND_BEFORE) : -half])
        return None if late is None or not early else late / early - 1


STEADY = 0.05
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

    def add(self, t: float, rate: float | None) -> None:
        """Keep the rate of the sample at ``t`` (epoch seconds)."""
        if not self._rates:
            self._begin = t
        elif (len(self._rates), self._samples) == (1, 1) and 0 < t - self._begin <= MOST_APART:
            # A console that was away for a day does not sample once a day.
            self._step = max(self._step, 2.0 ** math.floor(math.log2(t - self._begin)))
        is_usual = self._is_usual(t)
        at = max(int((t - self._begin) // self._step), len(self._rates) - 1, 0)
        while at >= MOST_STEPS:
            self._halve()
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

    def _is_usual(self, t: float) -> bool:
        """Whether samples are as far apart as they were before: then none is missing."""
        apart = 0.0 if self._last is None else t - self._last
        is_usual = apart <= min(MOST_APART, USUAL * self._apart)
        self._last, self._apart = t, apart
        return is_usual

    def _halve(self) -> None:
        """Let each step cover twice the time."""
        if len(self._rates) % 2 == 0:
            self._samples *= 2
        self._rates = [_mean(self._rates[n : n + 2]) for n in range(0, len(self._rates), 2)]
        self._step *= 2


def _mean(rates: Sequence[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) / len(known) if known else None
