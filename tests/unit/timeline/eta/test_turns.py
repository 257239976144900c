from __future__ import annotations

import pytest

from zconsole.timeline.eta import turns
from zconsole.timeline.eta.estimate import Work, forecast
from zconsole.timeline.eta.progress_curve import ProgressCurve, ProgressReading

WALK, ISSUE, TURN = 100.0, 10.0, 1000.0
TOTAL = 20_000.0


def by_turns(seconds: float, step: float = 2.0) -> ProgressCurve:
    """Walks 1000 bytes in 10 s, then issues them in 100 s, and so on."""
    made, scanned, issued, t = ProgressCurve(), 0.0, 0.0, 0.0
    while t < seconds:
        made.add(ProgressReading(1000.0 + t, t, True, issued, scanned))
        if scanned - issued >= TURN or (issued % TURN and scanned > issued):
            issued = min(scanned, issued + ISSUE * step)
        else:
            scanned += WALK * step
        t += step
    return made


def test_a_byte_walked_and_a_byte_issued_each_cost_their_time():
    cost = turns.costs(by_turns(700).points)
    assert cost.walk == pytest.approx(1 / WALK)
    assert cost.issue == pytest.approx(1 / ISSUE)


def test_one_walk_before_the_first_byte_is_no_turn():
    assert turns.costs(by_turns(105).points) is None


def test_the_estimate_is_the_same_wherever_in_a_turn():
    for seconds in range(600, 720, 10):
        made = by_turns(seconds)
        last = made.points[-1]
        work = Work(TOTAL, last.issued, start=0.0, by_turns=True, to_scan=TOTAL)
        left = (TOTAL - last.scanned) / WALK + (TOTAL - last.issued) / ISSUE
        assert forecast(made, work).estimate.eta == pytest.approx(left, rel=0.05)
