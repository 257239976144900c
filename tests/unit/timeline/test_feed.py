"""Rounds of frames: how often they are taken, from what; seeking in a recording."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import threading
import time
from types import SimpleNamespace

import pytest

from tests.table import rows
from tests.unit.system.test_no_threads import refuse_threads
from zconsole.errors import NotUnderstoodError
from zconsole.sim.source import SimulatedSource
from zconsole.system.state_dir import StateError
from zconsole.timeline import feed as feed_module
from zconsole.timeline.devices import described
from zconsole.timeline.feed import (
    WARM_ROUNDS,
    Feed,
    ReplayFeed,
    SessionFeed,
    Update,
)
from zconsole.timeline.pool import PoolTimeline
from zconsole.timeline.session import Session
from zconsole.timeline.store import HistoryStore
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.sources.recording import Gaps
from zconsole.zfs.sources.replay import ReplaySource


class Still(Feed):
    """Rounds without a pool."""

    async def sample(self) -> Update:
        return Update((), Capabilities("demo"))


async def test_who_waits_for_a_sample_does_not_wait_for_the_interval() -> None:
    feed = Still(3600.0)
    await feed.next()
    waiting = asyncio.create_task(feed.next())
    await asyncio.sleep(0)
    with feed.hurried(0.001):
        await asyncio.wait_for(waiting, 30)
        assert feed.pace == 0.001
    assert feed.pace == feed.interval


class Counted:
    """A source that records when it is sampled and ends after some samples."""

    def __init__(self, samples: int) -> None:
        self.left = samples
        self.times: list[float] = []
        self.closed = False

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities("demo")

    async def sample(self):
        self.times.append(asyncio.get_running_loop().time())
        self.left -= 1
        return () if self.left >= 0 else None

    async def aclose(self) -> None:
        self.closed = True


POOL = "  pool: tank\n state: ONLINE\n"


def feed_of(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    gaps = Gaps()
    return SessionFeed(ReplaySource(str(path), None, gaps), Session(gaps=gaps), 0.0), gaps


async def test_the_console_shows_a_gap_and_goes_on_after_it(tmp_path):
    good = [json.dumps({"t": t, "text": POOL}) for t in (1, 9)]
    empty = json.dumps({"t": 4, "text": "no pools available\n"})
    feed, gaps = feed_of(tmp_path / "r", good[0], "junk", empty, good[1])
    rounds = []
    while (update := await feed.next()) is not None:
        rounds.append(update.frames)
    assert [len(frames) for frames in rounds] == [1, 1, 1, 1]
    shown = [(f.t, f.stale_seconds, f.problem and f.problem.split(": ")[-1]) for (f,) in rounds]
    assert shown == [
        (1, 0, None),
        (1, 0, "not JSON"),
        (1, 3, "no pool in it"),
        (9, 0, None),
    ]
    assert [event.name for event in rounds[-1][0].events] == ["gap"]
    assert gaps.words == f"{tmp_path}/r: line 2: not JSON (the first of 2 gaps in the recording)"
    await feed.aclose()


async def test_the_console_ends_where_nothing_can_be_read(tmp_path):
    feed, _ = feed_of(tmp_path / "r", '{"t": 1, "text": "what is this"}')
    assert (await feed.next()).frames == ()
    with pytest.raises(NotUnderstoodError, match="line 1"):
        await feed.next()
    await feed.aclose()


async def test_a_disk_that_hangs_at_the_end_leaves_no_source_behind():
    class Hanging(Session):
        def close(self) -> None:
            assert source.closed
            time.sleep(0.02)
            closed.append(True)

    source, closed = Counted(1), []
    await SessionFeed(source, Hanging(), 1.0).aclose(0.01)
    assert closed


async def test_a_source_that_hangs_at_the_end_loses_no_history():
    class Stuck(Counted):
        async def aclose(self) -> None:
            await asyncio.Event().wait()

    class Kept(Session):
        def close(self) -> None:
            closed.append(True)

    closed = []
    await SessionFeed(Stuck(1), Kept(), 1.0).aclose(0.01)
    assert closed


async def test_the_first_sample_comes_at_once():
    source = Counted(1)
    await asyncio.wait_for(SessionFeed(source, Session(), 3600.0).next(), 30)
    assert len(source.times) == 1


async def test_the_next_sample_comes_an_interval_later():
    source = Counted(2)
    feed = SessionFeed(source, Session(), 0.05)
    began = asyncio.get_running_loop().time()
    await feed.next()
    await feed.next()
    assert source.times[1] - began >= 0.049  # the first may have been slow to start


async def test_a_shorter_interval_takes_effect_at_once():
    source = Counted(2)
    feed = SessionFeed(source, Session(), 3600.0)
    await feed.next()
    waiting = asyncio.create_task(feed.next())
    await asyncio.sleep(0)
    feed.set_interval(0.001)
    await asyncio.wait_for(waiting, 30)
    assert len(source.times) == 2


async def test_the_end_of_a_recording_is_none_and_closing_closes_the_source():
    source = Counted(0)
    feed = SessionFeed(source, Session(), 0.0)
    assert await feed.next() is None
    await feed.aclose()
    assert source.closed


async def test_a_state_directory_that_is_full_is_told_once(tmp_path):
    def full(path, *_):
        raise StateError(f"{path.name}: No space left on device")

    tmp_path.chmod(0o700)
    session = Session(
        store=HistoryStore(tmp_path, writer=SimpleNamespace(write=full)),
        notes=["no history kept: why"],
    )
    times = itertools.count(0.0, 60.0)
    feed = SessionFeed(SimulatedSource("healthy", clock=lambda: next(times)), session, 0.0)
    first, second = await feed.next(), await feed.next()
    assert first.notes[0] == "no history kept: why"
    assert first.notes[1].endswith("json: No space left on device")
    assert (len(first.notes), second.notes) == (2, ())


async def test_details_are_asked_by_the_path_of_the_row():
    asked: list[str] = []

    async def details(path: str):
        asked.append(path)
        return (("serial", "X1"),)

    feed = SessionFeed(SimulatedSource("healthy"), Session(), 0.0, details)
    update = await feed.next()
    frame = update.frames[0]
    leaf = next(row for row in frame.rows if row.vdev.path)
    assert await feed.details(frame.pool, leaf.key) == (("serial", "X1"),)
    assert await feed.details(frame.pool, frame.rows[0].key) == ()
    assert asked == [leaf.vdev.path]


@rows(
    ("facts", "pairs"),
    [
        ({}, ()),
        (
            {"serial": "S", "size": "1073741824", "rotational": "1", "physical_sector": "4096"},
            (
                ("serial", "S"),
                ("capacity", "1G"),
                ("kind", "rotating disk"),
                ("physical", "sectors of 4096 bytes"),
            ),
        ),
    ],
)
def test_device_facts_are_put_into_words(facts, pairs):
    assert described(facts) == pairs


class Hanging(HistoryStore):
    """A state directory that answers when it is told to."""

    answers = threading.Event()

    def recall(self, guid: str, timeline: PoolTimeline) -> str | None:
        assert self.answers.wait(30)
        return "asked"


async def test_others_go_on_while_the_state_directory_hangs(tmp_path):
    store = Hanging(tmp_path)
    feed = SessionFeed(SimulatedSource("healthy", 1, 0.0), Session(store=store), 0.0)
    first = asyncio.ensure_future(feed.next())
    await asyncio.sleep(0.1)
    assert not first.done()
    store.answers.set()
    assert any("asked" in note for note in (await first).notes)
    await feed.aclose()


async def test_a_moment_without_threads_only_puts_off_what_was_stored(tmp_path):
    store = Hanging(tmp_path)
    store.answers.set()
    feed = SessionFeed(SimulatedSource("healthy", 1, 0.0), Session(store=store), 0.0)
    with pytest.MonkeyPatch.context() as patch:
        refuse_threads(patch)
        update = await feed.next()
    assert "can't start new thread" in update.frames[0].problem
    update = await feed.next()
    assert update.frames[0].problem is None
    assert any("asked" in note for note in update.notes)
    await feed.aclose()


@pytest.fixture
def made(tmp_path):
    """A feed over 5000 seconds of a pool, and the sessions made for other positions."""
    path = tmp_path / "r"
    lines = (json.dumps({"t": t, "text": POOL}) for t in range(1000, 6000))
    path.write_text("".join(f"{line}\n" for line in lines))
    sessions: list[Session] = []

    def anew() -> Session:
        sessions.append(Session())
        return sessions[-1]

    return ReplayFeed(ReplaySource(str(path), 1e9), Session(), anew), sessions


async def at(feed: ReplayFeed) -> float:
    """Return the time of the next round."""
    update = await feed.next()
    assert update is not None
    return update.frames[0].t


@pytest.mark.slow
async def test_a_leap_begins_a_new_history_shortly_before(made):
    feed, sessions = made
    assert await at(feed) == 1000
    assert feed.playback.seek(0.5)
    assert await at(feed) == pytest.approx(3500, abs=1)
    (session,) = sessions
    assert len(session.timeline("tank").rates.series._times) > WARM_ROUNDS / 2
    assert await at(feed) == pytest.approx(3501, abs=1)
    assert feed.playback.share == pytest.approx(0.5, abs=0.01)


@pytest.mark.slow
async def test_keys_have_their_turn_where_samples_are_due_sooner_than_they_can_be_read(made):
    feed, _ = made
    turns = 0

    async def press_keys():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    pressing = asyncio.create_task(press_keys())
    for _ in range(50):
        await feed.next()
    pressing.cancel()
    assert turns >= 50


async def test_a_step_ahead_passes_nothing_over(made):
    feed, sessions = made
    await at(feed)
    feed.playback.seek(0.02)
    assert await at(feed) == pytest.approx(1100, abs=1)
    assert sessions == []


@pytest.mark.slow
async def test_back_to_the_start(made):
    feed, sessions = made
    for _ in range(5):
        await at(feed)
    feed.playback.seek(-1.0)
    assert await at(feed) == 1000
    assert len(sessions) == 1


@pytest.mark.slow
async def test_it_goes_on_after_its_end(made):
    feed, _ = made
    await at(feed)
    feed.playback.seek(1.0)
    assert await at(feed) == 5999
    assert await feed.next() is None
    feed.playback.seek(-0.1)
    assert await at(feed) == pytest.approx(5500, abs=1)


@pytest.mark.slow
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


@pytest.mark.slow
async def test_a_newer_wish_is_not_lost_on_the_way(made):
    feed, _ = made
    await at(feed)
    feed.playback.seek(0.2)
    waiting = asyncio.create_task(at(feed))
    await asyncio.sleep(0)
    feed.playback.seek(0.5)
    assert await waiting == pytest.approx(4500, abs=2)


@pytest.mark.slow
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


@pytest.mark.slow
async def test_a_recording_that_is_gone_ends_a_leap_where_it_was_with_a_note(made, tmp_path):
    feed, sessions = made
    t = await at(feed)
    (tmp_path / "r").unlink()
    feed.playback.seek(0.5)
    update = await feed.next()
    assert (update.frames[0].t, sessions, feed.playback.jumps) == (t, [], False)
    (note,) = update.notes
    assert note.endswith("r: No such file or directory")
    assert await at(feed) > t, "what was open already plays on"


async def test_a_leap_to_what_was_cut_off_meanwhile_ends_with_the_recording(tmp_path):
    path = tmp_path / "r"
    lines = (json.dumps({"t": t, "text": POOL}) for t in range(1000, 1400))
    path.write_text("".join(f"{line}\n" for line in lines))
    feed = ReplayFeed(ReplaySource(str(path), 1e9), Session(), Session)
    await at(feed)
    os.truncate(path, path.stat().st_size // 2)
    feed.playback.seek(1.0)
    update = await asyncio.wait_for(feed.next(), 30)
    assert update is not None
    assert update.frames[0].t == pytest.approx(1200, abs=2)
    assert await feed.next() is None


PAIR = "\n".join(
    (
        "  pool: tank",
        " state: {pool}",
        "config:",
        "",
        "\tNAME        STATE     READ WRITE CKSUM",
        "\ttank        {pool}       0     0     0",
        "\t  mirror-0  {pool}     0     0     0",
        "\t    sda     ONLINE     0     0     0",
        "\t    sdb     {state}    {read}     0     0",
        "",
    )
)
ROUNDS = 1300
"""Rounds of a recording with errors and disconnects early."""


def troubled(path, interval=1.0):
    """Return the feed of a recording of a pool with a disk in trouble."""
    with path.open("w") as file:
        for n in range(ROUNDS):
            state = "REMOVED" if 150 <= n < 190 or 430 <= n < 435 else "ONLINE"
            pool = "ONLINE" if state == "ONLINE" else "DEGRADED"
            text = PAIR.format(pool=pool, state=state, read=min(n // 20, 7))
            file.write(f"{json.dumps({'t': 1e9 + n * interval, 'text': text})}\n")
    return ReplayFeed(ReplaySource(str(path), 1e9), Session(goes_on=True), Session)


def told(frame):
    """Return what a frame says of the last hour, and the rest that depends on the past."""
    return (
        *(frame.troubles, frame.minutes_watched, frame.quiet_since, frame.health, frame.events),
        *(frame.redundancy, frame.rows),
    )


async def place(feed, n):
    """Return the frame of a round that was jumped to."""
    feed.playback.go_to(1e9 + n)
    (frame,) = (await feed.next()).frames
    assert frame.t == 1e9 + n
    return frame


async def test_a_place_of_a_recording_looks_the_same_however_one_gets_there(tmp_path):
    interval = 2.0
    feed = troubled(tmp_path / "r", interval)
    played = [told((await feed.next()).frames[0]) for _ in range(ROUNDS)]
    assert [len(played[n][0]) for n in (0, 100, 1250)] == [0, 1, 1]
    assert "disconnected and returned 2 times" in played[1250][0][0].text
    for n in (1200, 700, 1250, 40, 170):  # back, and on again
        assert told(await place(feed, n * interval)) == played[n], n
    for n in (1200, 700):
        other = troubled(tmp_path / "r", interval)
        await other.next()
        assert told(await place(other, n * interval)) == played[n], n


async def test_of_a_large_recording_a_jump_tells_how_long_it_has_watched(tmp_path, monkeypatch):
    """Rounds were left out: it told of an hour without what was in them, and `(` missed events."""
    monkeypatch.setattr(feed_module, "FAR_BYTES", 100_000)
    feed = troubled(tmp_path / "r", 2.5)
    await feed.next()
    frame = await place(feed, 1290 * 2.5)
    assert 10 <= frame.minutes_watched <= 40
    found = []
    for _ in range(4):
        feed.playback.search(-1)
        found.append(((await feed.next()).frames[0].t - 1e9) / 2.5)
    assert found == [435, 430, 190, 150]


async def test_a_place_asked_for_on_the_way_to_another_knows_as_much(tmp_path):
    """It went on from the hour before the other, of which only some minutes had been played."""
    feed = troubled(tmp_path / "r", 5.0)
    await feed.next()
    feed.playback.go_to(1e9 + 1250 * 5)
    jumping = asyncio.create_task(feed.next())
    while not 560 * 5 < (feed.playback.t or 0.0) - 1e9 < 1200 * 5:
        await asyncio.sleep(0)
    feed.playback.go_to(1e9 + 600 * 5)
    (frame,) = (await jumping).frames
    direct = troubled(tmp_path / "r", 5.0)
    await direct.next()
    assert told(frame) == told(await place(direct, 600 * 5))


async def test_a_step_back_after_a_jump_does_not_read_the_hour_again(tmp_path):
    feed = troubled(tmp_path / "r", 10.0)
    await feed.next()
    await place(feed, 12000)
    rounds = 0
    took = feed._round

    async def count():
        nonlocal rounds
        rounds += 1
        return await took()

    feed._round = count
    await place(feed, 11990)
    assert rounds <= WARM_ROUNDS


def of_two_pools(path, rounds, apart):
    """Record two pools, the second so many seconds after the first; errors come now and then."""
    with path.open("w") as file:
        for n in range(rounds):
            for late, pool in ((0.0, "tank"), (apart, "pond")):
                text = PAIR.format(pool="ONLINE", state="ONLINE", read=n // 3)
                at = 1e9 + n + late
                file.write(json.dumps({"t": at, "pool": pool, "text": text.replace("tank", pool)}))
                file.write("\n")
    return ReplayFeed(ReplaySource(str(path), None), Session(goes_on=True), Session)


@rows("apart", [0.0, 0.25])
async def test_of_several_pools_no_sample_is_lost_where_a_jump_goes_on(tmp_path, apart):
    end = 429
    feed, played = of_two_pools(tmp_path / "r", end + 1, apart), {}
    while (update := await feed.next()) is not None:
        played |= {(f.pool, f.t): told(f) for f in update.frames}
    for n, shown in ((320, 320), (380, 380), (100, 100), (end + apart, end)):
        feed.playback.go_to(1e9 + n)
        frames = (await feed.next()).frames
        assert (len(frames), frames[0].t) == (2, 1e9 + shown)
        for frame in frames:
            assert told(frame) == played[frame.pool, frame.t], n
