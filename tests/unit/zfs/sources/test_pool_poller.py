"""Reading a pool, and the rounds in which samples are shown."""

from __future__ import annotations

import asyncio

from tests.table import rows
from tests.unit.zfs.sources.source_fakes import STATUS, settle
from zconsole.system.host import Clocks
from zconsole.timeline.session import Session
from zconsole.zfs.sources.pool_poller import PoolPoller
from zconsole.zfs.sources.reader import (
    FallbackReader,
    ReaderOption,
    ReaderUnusableError,
    ReadFailedError,
)


class Slow:
    """A reader whose answers come when they are told to."""

    def __init__(self, name="json"):
        self.name = name
        self.asked = []
        self.failure = None

    async def read(self, pool, deadline):
        self.asked.append(asyncio.Event())
        await self.asked[-1].wait()
        if self.failure is not None:
            raise self.failure
        return {"status": STATUS}

    async def aclose(self):
        pass


class Beside:
    """Counts the commands that run beside a reader."""

    readers = ("libzfs",)
    patience = 0.0
    task = None
    asked = 0

    async def first(self, patience):
        pass

    def newest(self, form):
        self.asked += 1
        return {}


@rows("took", [2.0, 59.0])
async def test_reads_that_end_after_their_round_are_shown_in_each_with_their_age(took):
    now, slow, shown = 0.0, Slow(), []
    clocks = Clocks(wall=lambda: 1000.0 + now, steady=lambda: now)
    poller = PoolPoller(
        "tank", FallbackReader([ReaderOption("json", lambda: slow, "")]), (), clocks, 90.0
    )
    session = Session()
    for begun in (0.0, 60.0, 120.0, 180.0):
        now = begun
        poller.begin("ONLINE")
        await settle()
        now = begun + 1.0
        reading = poller.collect()
        failure = {"t": clocks.wall(), "clock": now, "pool": "tank", "problem": poller.problem}
        shown += session.advance([reading or failure])
        now = begun + took
        slow.asked[-1].set()
        await settle()
    assert len(slow.asked) == 4
    silent, *late = shown
    assert silent.problem == "no answer for 1 s"
    assert [each.problem for each in late] == [None] * 3
    assert [each.stale_seconds for each in late] == [61.0 - took] * 3
    assert [each.t for each in late] == [1000.0 + t + took for t in (0.0, 60.0, 120.0)]


async def test_why_a_read_failed_after_its_round_is_told_by_the_next():
    now, slow = 0.0, Slow()
    slow.failure = ReadFailedError("zpool: permission denied")
    clocks = Clocks(wall=lambda: 1000.0 + now, steady=lambda: now)
    poller = PoolPoller(
        "tank", FallbackReader([ReaderOption("json", lambda: slow, "")]), (), clocks, 90.0
    )
    told = []
    for now in (0.0, 60.0, 120.0, 180.0):  # noqa: B007
        poller.begin("ONLINE")
        await settle()
        assert poller.collect() is None
        told.append(poller.problem)
        slow.asked[-1].set()
        await settle()
    assert told == ["no answer for 0 s", *["zpool: permission denied"] * 3]
    assert len(slow.asked) == 4, "a failure that was late must not cost a round"


async def test_a_pool_that_recovered_after_a_late_failure_is_shown_by_the_next_round():
    slow = Slow()
    slow.failure = ReadFailedError("zpool: permission denied")
    poller = PoolPoller(
        "tank", FallbackReader([ReaderOption("json", lambda: slow)]), (), Clocks(), 90
    )
    poller.begin("ONLINE")
    await settle()
    assert poller.collect() is None
    slow.asked[-1].set()
    await settle()
    slow.failure = None
    poller.begin("ONLINE")
    await settle()
    slow.asked[-1].set()
    await settle()
    assert poller.collect()["status"] == STATUS


@rows("late", [False, True])
async def test_a_pool_that_never_answered_is_asked_once_while_it_is_suspended(late):
    """Earlier a read that failed while the pool was ONLINE counted as the one read."""
    libzfs = Slow("libzfs")
    libzfs.failure = ReadFailedError("the helper ended")
    readers = FallbackReader([ReaderOption("libzfs", lambda: libzfs)])
    poller = PoolPoller("tank", readers, (), Clocks(), 90.0)
    poller.begin("ONLINE")
    await settle()
    if late:
        assert poller.collect() is None
    libzfs.asked[-1].set()
    await settle()
    if not late:
        assert poller.collect() is None
    for _ in range(3):
        poller.begin("SUSPENDED")
        await settle()
        libzfs.asked[-1].set()
        await settle()
        assert poller.collect() is None
        assert "SUSPENDED" in poller.problem
    assert len(libzfs.asked) == 2


async def test_a_pool_whose_first_reading_was_late_is_not_asked_once_it_is_suspended():
    libzfs = Slow("libzfs")
    readers = FallbackReader([ReaderOption("libzfs", lambda: libzfs)])
    poller = PoolPoller("tank", readers, (), Clocks(), 90.0)
    poller.begin("ONLINE")
    await settle()
    assert poller.collect() is None
    libzfs.asked[-1].set()
    await settle()
    assert poller.begin("SUSPENDED") is None
    assert poller.collect()["source"] == "libzfs"
    assert poller.begin("SUSPENDED") is None
    assert len(libzfs.asked) == 1


async def test_a_read_that_ends_in_its_round_has_no_age_and_an_older_one_is_forgotten():
    now, slow = 0.0, Slow()
    clocks = Clocks(wall=lambda: 1000.0 + now, steady=lambda: now)
    poller = PoolPoller(
        "tank", FallbackReader([ReaderOption("json", lambda: slow, "")]), (), clocks, 90.0
    )
    poller.begin("ONLINE")
    await settle()
    assert poller.collect() is None
    slow.asked[-1].set()
    await settle()
    for now in (60.0, 120.0):
        poller.begin("ONLINE")
        await settle()
        slow.asked[-1].set()
        await settle()
        reading = poller.collect()
        assert (reading["clock"], "age" in reading) == (now, False)
    poller.begin("ONLINE")
    await settle()
    assert poller.collect() is None
    slow.asked[-1].set()
    await settle()


async def test_a_pool_that_is_suspended_during_a_read_is_not_asked_in_another_way():
    libzfs, json = Slow("libzfs"), Slow("json")
    libzfs.failure = ReaderUnusableError("vdev_stats has 3 entries")
    ways = [ReaderOption(each.name, lambda each=each: each) for each in (libzfs, json)]
    poller = PoolPoller("tank", FallbackReader(ways), (), Clocks(), 90.0)
    for state in ("ONLINE", "SUSPENDED"):
        poller.begin(state)
        await settle()
        assert poller.collect() is None
    libzfs.asked[-1].set()
    await settle()
    assert poller.collect() is None
    assert "SUSPENDED" in poller.problem
    assert (len(libzfs.asked), json.asked) == (1, [])
    poller.begin("ONLINE")
    await settle()
    json.asked[-1].set()
    await settle()
    assert poller.collect()["source"] == "json"


async def test_a_suspended_pool_is_not_asked_in_the_way_to_which_another_pool_turned():
    libzfs, json = Slow("libzfs"), Slow("json")
    readers = FallbackReader(
        [ReaderOption(each.name, lambda each=each: each) for each in (libzfs, json)]
    )
    poller = PoolPoller("tank", readers, (), Clocks(), 90.0)
    poller.begin("SUSPENDED")
    readers.give_up(readers.reader, "vdev_stats has 3 entries")
    await settle()
    assert poller.collect() is None
    assert "SUSPENDED" in poller.problem
    assert json.asked == []


async def test_a_pool_that_is_suspended_during_a_read_is_asked_for_nothing_beside_it():
    slow, beside = Slow("libzfs"), Beside()
    readers = FallbackReader([ReaderOption("libzfs", lambda: slow)])
    poller = PoolPoller("tank", readers, (beside,), Clocks(), 90.0)
    for state, asked in (("ONLINE", 1), ("ONLINE", 2), ("SUSPENDED", 2)):
        poller.begin("ONLINE")
        await settle()
        poller.begin(state)
        slow.asked[-1].set()
        await settle()
        assert poller.collect()["source"] == "libzfs"
        assert beside.asked == asked
