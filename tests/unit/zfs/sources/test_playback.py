"""Steering a replay."""

from __future__ import annotations

import asyncio

from tests.table import rows
from zconsole.zfs.sources.playback import SPEEDS, Playback


def at(t: float, **fields: object) -> Playback:
    return Playback(t=t, span=(100.0, 300.0), **fields)  # type: ignore[arg-type]


def test_the_share_follows_the_time():
    assert [at(t).share for t in (100.0, 150.0, 300.0, 400.0)] == [0.0, 0.25, 1.0, 1.0]
    assert Playback(t=1.0).share is None
    assert Playback(t=1.0, span=(1.0, 1.0)).share == 1.0


def test_moving_stays_within_the_recording_and_adds_up():
    playback = at(150.0)
    assert playback.seek(0.1)
    assert playback.seek(0.1)
    assert playback.target == 190.0
    playback.seek(5.0)
    assert playback.target == 300.0
    playback.seek(-5.0)
    assert playback.target == 100.0


def test_what_has_no_places_cannot_be_moved_in():
    playback = Playback(t=1.0)
    assert not playback.seek(0.1)
    assert playback.target is None


def test_the_speeds_end_at_both_ends():
    playback = at(150.0)
    for _ in SPEEDS:
        playback.faster(1)
    assert playback.speed == SPEEDS[-1]
    for _ in SPEEDS:
        playback.faster(-1)
    assert playback.speed == SPEEDS[0]


async def test_time_passes_at_once_where_none_is_to_pass():
    assert await at(150.0, speed=None).passes(1e9)
    assert await at(150.0).passes(0.0)


@rows("paused", [False, True])
async def test_a_wish_to_be_elsewhere_ends_the_wait(paused):
    playback = at(150.0, paused=paused)
    waiting = asyncio.create_task(playback.passes(1e9))
    await asyncio.sleep(0)
    playback.seek(0.5)
    assert await waiting is False


async def test_a_pause_holds_until_it_is_over_and_a_speed_counts_at_once():
    playback = at(150.0, paused=True)
    waiting = asyncio.create_task(playback.passes(1e6))
    await asyncio.sleep(0.01)
    playback.speed = 1e12
    playback.toggle()
    assert await waiting
