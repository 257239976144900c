from __future__ import annotations

import asyncio
import itertools
import json
import threading

import pytest

from tests.table import rows
from zconsole.errors import NotUnderstoodError
from zconsole.sim.source import SimulatedSource
from zconsole.system.state_dir import StateError
from zconsole.timeline import session_feed
from zconsole.timeline.device_details import described
from zconsole.timeline.pool import PoolHistory
from zconsole.timeline.session import Session
from zconsole.timeline.session_feed import SessionFeed
from zconsole.timeline.storage import HistoryStore
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.sources.replay import ReplaySource
from zconsole.zfs.sources.samples import Gaps


class Counted:
    """A source that notes when it is sampled and ends after some samples."""

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


class Noting(Session):
    """A session that notes each pool, and a key pressed while that was worked on."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def push(self, seen):
        self.notes.append(seen.pool.name)
        asyncio.get_running_loop().call_soon(self.notes.append, "key")
        return super().push(seen)


class Large(Counted):
    async def sample(self):
        return tuple({"t": 1.0, "text": POOL.replace("tank", name)} for name in ("tank", "big"))


@pytest.mark.parametrize(
    ("busy", "order"),
    [
        (-1.0, ["tank", "key", "big", "key"]),
        (60.0, ["tank", "big"]),
    ],
)
async def test_a_key_is_answered_between_two_pools_that_take_long(busy, order, monkeypatch):
    monkeypatch.setattr(session_feed, "BUSY", busy)
    session = Noting()
    feed = SessionFeed(Large(2), session, 0.0)
    await feed.sample()
    await asyncio.sleep(0)
    session.notes.clear()
    await feed.sample()
    assert session.notes == order


async def test_the_first_round_is_not_held_up_for_keys(monkeypatch):
    monkeypatch.setattr(session_feed, "BUSY", -1.0)
    session = Noting()
    await SessionFeed(Large(1), session, 0.0).sample()
    assert session.notes == ["tank", "big"]


async def test_the_console_ends_where_nothing_can_be_read(tmp_path):
    feed, _ = feed_of(tmp_path / "r", '{"t": 1, "text": "what is this"}')
    assert (await feed.next()).frames == ()
    with pytest.raises(NotUnderstoodError, match="line 1"):
        await feed.next()
    await feed.aclose()


async def test_the_first_sample_comes_at_once():
    feed = SessionFeed(Counted(1), Session(), 3600.0)
    await asyncio.wait_for(feed.next(), 30)


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
    def full(path, _data):
        raise StateError(f"{path.name}: No space left on device")

    tmp_path.chmod(0o700)
    session = Session(store=HistoryStore(tmp_path, write=full), notes=["no history kept: why"])
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

    def recall(self, guid: str, history: PoolHistory) -> str | None:
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
