"""How fast a job goes, and how it waits."""

from __future__ import annotations

from itertools import pairwise

import pytest

from zconsole.rebalance.engine.item import StopJobError
from zconsole.rebalance.job.pacer import LOOK, Pacer


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_the_rate_limit_holds_on_average() -> None:
    clock = Clock()
    pacer = Pacer(clock, clock.sleep, [], lambda why: None, rate=1000.0)
    for _ in range(100):
        pacer.tick(100)
    assert clock.now - 100 == pytest.approx(10, rel=0.1)


def test_a_closed_gate_is_waited_for_and_told() -> None:
    clock, told = Clock(), []
    opens = clock.now + 3
    gate = lambda: None if clock.now >= opens else "paused"  # noqa: E731
    pacer = Pacer(clock, clock.sleep, [gate], told.append)
    pacer.tick(1)
    assert told == ["paused", None]
    assert opens <= clock.now < opens + 1


def test_orders_are_noticed_within_a_second_of_a_slow_limit() -> None:
    clock = Clock()
    stops = clock.now + 2

    def gate() -> str | None:
        if clock.now >= stops:
            raise StopJobError("stop")
        return None

    pacer = Pacer(clock, clock.sleep, [gate], lambda why: None, rate=1.0)
    with pytest.raises(StopJobError):
        pacer.tick(10_000)
    assert clock.now < stops + 1
    assert LOOK < 1


def test_leases_are_served_while_waiting() -> None:
    clock, served = Clock(), []
    pacer = Pacer(clock, clock.sleep, [], lambda why: None, rate=100.0)
    pacer.service = lambda: served.append(clock.now)
    pacer.tick(100)
    gaps = [b - a for a, b in pairwise(served)]
    assert served
    assert max(gaps) < 0.1
