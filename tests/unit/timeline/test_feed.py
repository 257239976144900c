"""A round that takes more than its share comes less often."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.table import rows
from zconsole.timeline.feed import ROUNDS, SHARE, STEP, Feed, SamplePace, Update
from zconsole.zfs.sources.base import Capabilities


def paced(costs: Sequence[float]) -> SamplePace:
    """After rounds that took so many seconds."""
    used = [0.0]
    pace = SamplePace(lambda: used[0])
    pace.begin()
    for cost in costs:
        used[0] += cost
        pace.begin()
    return pace


@rows("asked", [0.5, 1.0, 10.0])
def test_cheap_rounds_come_as_often_as_asked(asked: float) -> None:
    assert paced([asked * SHARE / 2] * ROUNDS).seconds(asked) == asked


def test_dear_rounds_come_as_seldom_as_their_share_says() -> None:
    cost = 1.0
    found = paced([cost] * ROUNDS).seconds(1.0)
    assert found >= cost / SHARE > found - STEP


def test_a_long_interval_leaves_room_for_them() -> None:
    assert paced([1.0] * ROUNDS).seconds(10.0) == 10.0


@rows("costs", [[5.0], [5.0, 0.01, 0.01], [0.01, 5.0, 0.01]])
def test_one_dear_round_slows_nothing_down(costs: list[float]) -> None:
    assert paced(costs).seconds(1.0) == 1.0


def test_it_is_as_often_as_asked_again_once_rounds_are_cheap() -> None:
    assert paced([1.0] * ROUNDS + [0.01]).seconds(1.0) == 1.0


def test_a_source_with_its_own_pace_keeps_it() -> None:
    assert paced([9.0] * ROUNDS).seconds(0.0) == 0.0


class Costly(Feed):
    """Rounds that take so many seconds of the processor, as it counts."""

    def __init__(self, cost: float) -> None:
        self.used = 0.0
        self.cost = cost
        super().__init__(1e-3, cpu=lambda: self.used)

    async def sample(self) -> Update:
        self.used += self.cost
        return Update((), Capabilities("demo"))


@rows(("cost", "slowed"), [(1e-6, False), (0.5, True)])
async def test_a_feed_waits_as_long_as_its_rounds_cost(cost: float, slowed: bool) -> None:
    feed = Costly(cost)
    for _ in range(ROUNDS + 1):
        await feed.next()
    assert (feed.pace > feed.interval) is slowed
    if slowed:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(feed.next(), 0.05)


async def test_who_waits_for_a_sample_does_not_wait_for_the_share_of_the_processor() -> None:
    feed = Costly(0.5)
    for _ in range(ROUNDS + 1):
        await feed.next()
    waiting = asyncio.create_task(feed.next())
    await asyncio.sleep(0)
    with feed.hurried(0.001):
        await asyncio.wait_for(waiting, 30)
        assert feed.pace == feed.interval
    assert feed.pace > feed.interval
