"""The effect of a change of a tunable: issue rate and application latency before and after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SETTLE = 75.0
"""Seconds after a change that count for neither side.

These are about three transaction groups, and the minute over which a scan's rate is measured
(``timeline/scan_rate.py``).
"""

WINDOW = 120.0
"""Seconds compared on each side; if samples are rare, as many as ``ENOUGH`` samples take."""

LONGEST = 900.0
"""Most seconds compared on each side."""

ENOUGH = 5
"""Fewest samples on each side that show how much its rate varies by itself."""

BRIEF = 60.0
"""Seconds of rates before a change that show how much they vary by themselves.

A rate is measured over up to a minute (``timeline/scan_rate.py``): within less, it is the same
measurement again and again.
"""

LARGE = 1.5
"""Least factor between a rough rate and the later one that counts as an effect.

In simulated scans, the rate of a scan's first seconds is 0.7 to 1.35 times that of later minutes.
"""


@dataclass(frozen=True, slots=True)
class EffectSample:
    """One sample: time, bytes/s issued by the scan, and mean latency of other I/O in seconds."""

    t: float
    issue_rate: float | None
    latency: float | None
    limit: str = ""
    """What limits the scan, in words, where no tunable lifts that; empty where one may."""
    stage: str = ""
    """``scanning`` or ``issuing``; empty if unknown."""


@dataclass(frozen=True, slots=True)
class TunableEffect:
    """Medians before and after a change; None if there were too few samples."""

    issue_before: float | None
    issue_after: float | None
    latency_before: float | None
    latency_after: float | None
    issue_clear: bool = False
    """Whether the issue rate's ranges on both sides do not overlap; if rough, whether the change is
    large."""
    latency_clear: bool = False
    """Whether the latency's ranges on both sides do not overlap."""
    rough: bool = False
    """Whether the scan was watched so briefly before that its issue rate then is a rough figure."""
    doubt: str = ""
    """Why the issue rates say nothing about the tunable."""
    over: bool = False
    """Whether no more samples can count: a median that is None now stays so."""
    crowded: bool = False
    """Whether that is due to other changes, before it or after it."""

    @property
    def gain(self) -> float | None:
        """Change of the issue rate as a share of the earlier one: 0.25 is a quarter faster."""
        return _change(self.issue_before, self.issue_after)

    @property
    def cost(self) -> float | None:
        """Change of the latency as a share of the earlier one."""
        return _change(self.latency_before, self.latency_after)


def _change(before: float | None, after: float | None) -> float | None:
    return after / before - 1 if before and after is not None else None


def measure(
    points: Iterable[EffectSample], changed: float, others: Iterable[float] = ()
) -> TunableEffect:
    """Return the effect of a change at ``changed`` (epoch seconds).

    ``others`` are the times of other changes: neither side reaches past one of them, so that the
    effect is that of a single change.
    """
    marks = [t for t in others if t != changed]
    first = max([changed - LONGEST, *(t + SETTLE for t in marks if t < changed)])
    last = min([changed + SETTLE + LONGEST, *(t for t in marks if t > changed)])
    near = [p for p in points if changed - LONGEST <= p.t]
    kept = [p for p in near if first <= p.t]
    is_seen = bool(kept) and kept[-1].t >= last
    before, after = sides = _sides(kept, changed, last)
    rates = [_known(p.issue_rate for p in side) for side in sides]
    waits = [_known(p.latency for p in side) for side in sides]
    was, now = _middle(rates[0], least=1), _middle(rates[1])
    gain, rough = _change(was, now) or 0.0, _is_rough(before, changed)
    clear = not 1 / LARGE < 1 + gain < LARGE if rough else _is_clear(*rates)
    doubt = _across(before, after)
    if clear:
        doubt = doubt or _doubt(gain, before, after, kept, changed)
    elif rough and now is not None:
        doubt = doubt or "watched too briefly before it"
    was_seen = any(p.issue_rate is not None for p in near if p.t < changed)
    return TunableEffect(
        issue_before=was,
        issue_after=now,
        latency_before=_middle(waits[0]),
        latency_after=_middle(waits[1]),
        issue_clear=clear and not doubt,
        latency_clear=_is_clear(*waits),
        rough=rough,
        doubt=doubt,
        over=is_seen or not rates[0],  # no samples are added to the past
        crowded=last < changed + SETTLE + LONGEST if rates[0] else was_seen,
    )


def _sides(
    kept: Sequence[EffectSample], changed: float, last: float
) -> tuple[list[EffectSample], list[EffectSample]]:
    """The samples that count before a moment, and after it up to ``last``."""
    settled = changed + SETTLE
    before = _near(reversed([p for p in kept if p.t < changed]), changed)
    return before, _near((p for p in kept if settled <= p.t < last), settled)


def _is_rough(before: Iterable[EffectSample], changed: float) -> bool:
    """Whether these samples are too few, or too new, to show how much the rate varies by itself."""
    times = [point.t for point in before if point.issue_rate is not None]
    return bool(times) and (len(times) < ENOUGH or changed - min(times) < BRIEF)


def _across(before: Sequence[EffectSample], after: Sequence[EffectSample]) -> str:
    """Return which stages of the scan are compared if these differ; empty if they are the same.

    A scan that alternates between its stages is comparable if both sides have both.
    """
    was, now = ({point.stage for point in side if point.stage} for side in (before, after))
    if not was or not now or was == now:
        return ""
    return " before, ".join(" and ".join(sorted(stages)) for stages in (was, now)) + " after"


def _doubt(
    gain: float,
    before: Sequence[EffectSample],
    after: Sequence[EffectSample],
    kept: Sequence[EffectSample],
    changed: float,
) -> str:
    """Why a change need not be the tunable's: another limit, or a rate that moves by itself.

    Any tunable can hold a scan back, but none lifts a limit that it does not touch: a scan that
    gets faster was freed of the limit it had, one that gets slower met the limit that it has since.
    """
    was, now = _limit(before), _limit(after)
    if limit := was if gain > 0 else now * (now != was):
        return f"limited by {limit}"
    moment = changed - SETTLE - WINDOW
    while kept[0].t < moment:
        early, late = _sides(kept, moment, changed)
        moved = _change(_rate(early), _rate(late))
        if moved is not None and abs(moved) >= abs(gain):
            return "the rate moves as much by itself"
        moment -= WINDOW / 2
    return ""


def _rate(side: Iterable[EffectSample]) -> float | None:
    return _middle(_known(point.issue_rate for point in side))


def _limit(side: Sequence[EffectSample]) -> str:
    """Return the most frequent limit of these samples that no tunable lifts; empty if none."""
    limits = [point.limit for point in side]
    return max(set(limits), key=limits.count, default="")


def _near(side: Iterable[EffectSample], at: float) -> list[EffectSample]:
    """Return the samples that count, from a side that is ordered away from ``at``."""
    kept: list[EffectSample] = []
    for point in side:
        if abs(point.t - at) > WINDOW and len(kept) >= ENOUGH:
            break
        kept.append(point)
    return kept


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _middle(values: Sequence[float], least: int = ENOUGH) -> float | None:
    from statistics import median  # lazy: commands that take one sample start faster

    return median(values) if len(values) >= least else None


def _is_clear(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether the values differ by more than either side varies by itself."""
    if min(len(before), len(after)) < ENOUGH:
        return False
    return max(before) < min(after) or max(after) < min(before)
