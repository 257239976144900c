from __future__ import annotations

from tests.table import rows
from zconsole.timeline.past_rates import HOLE, PastRates
from zconsole.timeline.rate_lag import rate_lag

STEP = 8.0


@rows(
    ("unseen", "words"),
    [
        (HOLE, "rate rose 1m36s ago, ETA follows: 1h00m if it stays"),
        (3600.0, "at the rate of now 1h00m if it stays"),
    ],
)
def test_a_moment_is_told_of_a_change_that_was_seen(unseen, words):
    rates = (1.0, 1.0, *[None] * int(unseen / STEP), 4.0, 4.0, 4.0, 4.0)
    found = rate_lag(4.0, 4.0 * 3600, 2 * 3600.0, PastRates(0.0, STEP, rates), False)
    assert found is not None
    assert found.words == words


@rows(("rate", "back"), [(4.0, 3.0), (1.0, 1.5)])
def test_nothing_is_told_of_a_rate_that_is_on_its_way_back(rate, back):
    """Beside an arrow that pointed down, a rate was said to have risen, and what if it stays."""
    steady = (2.0,) * 40 + (rate,) * 60
    turned = steady + (back,) * 8
    assert rate_lag(rate, 2.0 * 3600, 3600.0, PastRates(0.0, STEP, steady), False)
    assert rate_lag(back, 2.0 * 3600, 3600.0, PastRates(0.0, STEP, turned), False) is None
