"""A recording that is moved in: where it goes on, and with which history."""

from __future__ import annotations

import asyncio
import json

import pytest

from zconsole.errors import ZconsoleError
from zconsole.timeline.replay_feed import WARM, ReplayFeed
from zconsole.timeline.session import Session
from zconsole.zfs.sources.replay import ReplaySource

pytestmark = pytest.mark.slow

POOL = "  pool: tank\n state: ONLINE\n"


@pytest.fixture
def made(tmp_path):
    """A feed over 5000 seconds of a pool, and the sessions made for other places."""
    path = tmp_path / "r"
    lines = (json.dumps({"t": t, "text": POOL}) for t in range(1000, 6000))
    path.write_text("".join(f"{line}\n" for line in lines))
    sessions: list[Session] = []

    def anew() -> Session:
        sessions.append(Session())
        return sessions[-1]

    return ReplayFeed(ReplaySource(str(path), 1e9), Session(), anew), sessions


async def at(feed: ReplayFeed) -> float:
    """The time of the next round."""
    update = await feed.next()
    assert update is not None
    return update.frames[0].t


async def test_a_leap_begins_a_new_history_shortly_before(made):
    feed, sessions = made
    assert await at(feed) == 1000
    assert feed.playback.seek(0.5)
    assert await at(feed) == pytest.approx(3500, abs=1)
    (session,) = sessions
    assert len(session.timeline("tank").rates.series._times) > WARM / 2
    assert await at(feed) == pytest.approx(3501, abs=1)
    assert feed.playback.share == pytest.approx(0.5, abs=0.01)


async def test_a_step_ahead_passes_nothing_over(made):
    feed, sessions = made
    await at(feed)
    feed.playback.seek(0.02)
    assert await at(feed) == pytest.approx(1100, abs=1)
    assert sessions == []


async def test_back_to_the_start(made):
    feed, sessions = made
    for _ in range(5):
        await at(feed)
    feed.playback.seek(-1.0)
    assert await at(feed) == 1000
    assert len(sessions) == 1


async def test_it_goes_on_after_its_end(made):
    feed, _ = made
    await at(feed)
    feed.playback.seek(1.0)
    assert await at(feed) == 5999
    assert await feed.next() is None
    feed.playback.seek(-0.1)
    assert await at(feed) == pytest.approx(5500, abs=1)


async def test_a_pause_holds_and_a_step_is_shown_all_the_same(made):
    feed, _ = made
    await at(feed)
    feed.playback.toggle()
    waiting = asyncio.create_task(at(feed))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    feed.playback.seek(0.1)
    assert await waiting == pytest.approx(1500, abs=2)
    held = asyncio.create_task(at(feed))
    await asyncio.sleep(0.05)
    assert not held.done()
    feed.playback.toggle()
    assert await held == pytest.approx(1501, abs=2)


async def test_a_newer_wish_is_not_lost_on_the_way(made):
    feed, _ = made
    await at(feed)
    feed.playback.seek(0.2)
    waiting = asyncio.create_task(at(feed))
    await asyncio.sleep(0)
    feed.playback.seek(0.5)
    assert await waiting == pytest.approx(4500, abs=2)


async def test_a_line_that_cannot_be_read_does_not_end_a_leap_back(tmp_path):
    path = tmp_path / "r"
    lines = [json.dumps({"t": t, "text": POOL}) for t in range(1000, 1400)]
    path.write_text("\n".join(["no sample", *lines, ""]))
    feed = ReplayFeed(ReplaySource(str(path), 1e9), Session(), Session)
    for _ in range(300):
        await at(feed)
    feed.playback.seek(-0.5)
    there = await at(feed)
    assert there == pytest.approx(1100, abs=1)
    assert feed.playback.t == there


async def test_a_recording_that_is_gone_ends_a_leap_with_its_name(made, tmp_path):
    feed, _ = made
    await at(feed)
    (tmp_path / "r").unlink()
    feed.playback.seek(0.5)
    with pytest.raises(ZconsoleError, match="No such file"):
        await feed.next()
