"""The odd one out among the leaves of a top-level vdev."""

from __future__ import annotations

from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from zconsole.pool.model import IoRates, Vdev
from zconsole.pool.topology import Placed
from zconsole.timeline.rates import (
    BUSY_GAP,
    BUSY_SHARE,
    LATENCY_FACTOR,
    LATENCY_FLOOR,
    slow_siblings,
)

WAITS = st.none() | st.sampled_from([0.0, 0.003, 0.008, 0.01, 0.024, 0.03, 0.031, 0.09, 0.5])
BUSY = st.none() | st.sampled_from([0.0, 0.3, 0.55, 0.6, 0.7, 0.9, 0.95, 1.0])


def leaf(number: int) -> Placed:
    vdev = Vdev(name=f"disk{number}", kind="disk", vclass="normal", state="ONLINE")
    return Placed(f"{number}", 2, vdev, None, "top")


def rates(latency: float | None, busy: float | None) -> IoRates:
    return IoRates(None, None, None, None, latency, busy)


def test_one_that_waits_over_three_times_as_long_stands_out():
    found = {"0": rates(0.061, 0.5), "1": rates(0.008, 0.5), "2": rates(0.008, 0.5)}
    assert slow_siblings([*map(leaf, range(3))], found) == {"0": "61ms, siblings 8ms"}


def test_one_that_is_much_busier_stands_out():
    found = {"0": rates(0.008, 0.97), "1": rates(0.008, 0.5), "2": rates(0.008, 0.4)}
    assert slow_siblings([*map(leaf, range(3))], found) == {"0": "97 % busy, siblings 45 %"}


def test_of_two_neither_is_the_odd_one():
    found = {"0": rates(0.5, 1.0), "1": rates(0.008, 0.1)}
    assert slow_siblings([*map(leaf, range(2))], found) == {}


def stands_out(own: IoRates, others: list[IoRates]) -> bool:
    """The definition, without a look at the whole first."""
    waits = [o.latency for o in others if o.latency is not None]
    works = [o.busy for o in others if o.busy is not None]
    waited, worked = own.latency or 0.0, own.busy or 0.0
    slow = bool(waits) and waited >= LATENCY_FLOOR and waited > LATENCY_FACTOR * median(waits)
    return slow or (bool(works) and worked >= BUSY_SHARE and worked - median(works) >= BUSY_GAP)


@given(st.lists(st.builds(rates, WAITS, BUSY), min_size=3, max_size=8))
def test_none_is_passed_over_that_differs_from_the_median_of_the_others(every: list[IoRates]):
    found = slow_siblings([*map(leaf, range(len(every)))], {f"{n}": r for n, r in enumerate(every)})
    others = [every[:n] + every[n + 1 :] for n in range(len(every))]
    assert set(found) == {f"{n}" for n, own in enumerate(every) if stands_out(own, others[n])}
