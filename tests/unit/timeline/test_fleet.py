from __future__ import annotations

import asyncio

import pytest

from zconsole.errors import NotFoundError, UnavailableError
from zconsole.sim.source import EPOCH, SimulatedSource
from zconsole.system.host import Clocks
from zconsole.timeline import session as session_module
from zconsole.timeline.fleet import Fleet
from zconsole.timeline.session import Session
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.zpool_output import zpool_output


class Machine:
    """A host with one simulated pool, or with none."""

    def __init__(self, host, has_pool=True, failure="", missing=()):
        self.host, self.failure, self.missing, self.seen = host, failure, missing, has_pool
        self.capabilities = Capabilities("json", f"over ssh from {host}", denied="over ssh")
        self.closed = False
        self._pool = SimulatedSource("healthy") if has_pool else None

        self.answers = asyncio.Event()
        self.answers.set()
        self.asked = self.answered = 0
        self.fails = self.exported = False

    async def answer(self):
        """Answer, and wait until the answer was processed."""
        self.answers.set()
        while self.answered < self.asked:
            await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def sample(self):
        self.asked += 1
        await self.answers.wait()
        self.answered += 1
        if self.fails:
            name = "vault" if self.seen else self.host
            lost = {"t": EPOCH, "clock": 0.0, "pool": name, "problem": "ssh: refused"}
            return ({**lost, "absent": self.exported},)
        return await self._pool.sample() if self._pool else ()

    async def zpool_outputs(self, pool):
        return (zpool_output(f"zpool status -v {pool}", f"on {self.host}"),)

    async def aclose(self):
        self.closed = True


class Time:
    """Both clocks, which stand still until they are advanced."""

    def __init__(self):
        self.passed = 0.0
        self.clocks = Clocks(lambda: EPOCH + self.passed, lambda: self.passed)


def fleet(*machines, needed=False, at_once=False, notes=(), time=None, interval=0.0):
    clocks = (time or Time()).clocks
    return Fleet(machines, lambda: Session(notes=notes), interval, needed, at_once, clocks)


async def answered(rounds):
    """Return the first frame of the first round that is not overdue."""
    async with asyncio.timeout(60):
        while (frame := (await rounds.next()).frames[0]).problem is not None:
            await asyncio.sleep(0)
    return frame


async def test_pools_of_several_machines_carry_their_host():
    update = await fleet(Machine("a"), Machine("b")).next()
    assert [frame.pool for frame in update.frames] == ["a:vault", "b:vault"]
    assert update.capabilities.denied == "over ssh"
    (alone,) = (await fleet(Machine("a")).next()).frames
    assert alone.pool == "vault"


async def test_zpool_is_asked_on_the_machine_of_the_pool():
    one, two = Machine("a"), Machine("root@b:22")
    for asked, several in (("vault", fleet(two)), ("root@b:22:vault", fleet(one, two))):
        (output,) = await several.zpool_outputs(asked)
        assert output.text == "$ zpool status -v vault\non root@b:22"
    with pytest.raises(UnavailableError, match="a has not shown its pools"):
        await fleet(one, two).zpool_outputs("a")


async def test_what_is_true_of_one_machine_is_not_said_of_several():
    assert (await fleet(Machine("a")).next()).capabilities.reason == "over ssh from a"
    assert (await fleet(Machine("a"), Machine("b")).next()).capabilities.reason == ""


async def test_a_note_of_all_is_given_once():
    both = fleet(Machine("a"), Machine("b"), notes=["no history kept"])
    assert (await both.next()).notes == ("no history kept",)
    assert (await both.next()).notes == ()


async def test_the_first_round_raises_what_it_lacks_only_where_it_is_needed():
    gone = Machine("a", has_pool=False, failure="no route to host")
    assert (await fleet(gone).next()).frames == ()
    with pytest.raises(UnavailableError, match="a: no route to host"):
        await fleet(gone, needed=True).next()
    assert len((await fleet(gone, Machine("b"), needed=True).next()).frames) == 1


async def test_a_pool_that_no_machine_has_is_said_of_all_that_answer():
    lacking = [Machine(host, missing=("nope",)) for host in "ab"]
    with pytest.raises(NotFoundError, match="a, b: no such pool: nope"):
        await fleet(*lacking, needed=True).next()
    one = fleet(lacking[0], Machine("b"))
    await one.next()
    assert one.failures() == ()


async def test_closing_lets_go_of_every_machine():
    machines = Machine("a"), Machine("b")
    await fleet(*machines).aclose()
    assert all(machine.closed for machine in machines)


@pytest.mark.slow
async def test_a_slow_machine_holds_up_no_other_and_its_pool_says_its_age():
    time, slow, other = Time(), Machine("a"), Machine("b")
    both = fleet(slow, other, time=time, interval=60.0)
    await both.sample()
    slow.answers.clear()
    for passed in (1.0, 1.9):
        time.passed = passed
        late, fresh = (await both.sample()).frames
        assert (late.pool, late.problem, late.stale_seconds) == ("a:vault", None, passed)
        assert late.health.word == "OK"
        assert (fresh.problem, fresh.stale_seconds) == (None, 0.0)
    assert (slow.asked, other.asked) == (2, 3)
    await both.aclose()


async def test_an_answer_that_is_overdue_makes_a_pool_stale_until_it_comes():
    time, slow = Time(), Machine("a")
    alone = fleet(slow, time=time)
    await alone.next()
    slow.answers.clear()
    time.passed = 1.0
    await alone.next()
    time.passed = 4.0
    (late,) = (await alone.next()).frames
    assert (late.health.word, late.problem, late.stale_seconds) == (
        "STALE",
        "no answer for 3 s",
        4.0,
    )
    slow.answers.set()
    fresh = await answered(alone)
    assert (fresh.health.word, fresh.stale_seconds) == ("OK", 0.0)


@pytest.mark.slow
async def test_a_machine_that_always_takes_long_is_neither_waited_for_nor_stale():
    time, slow, other = Time(), Machine("a"), Machine("b")
    slow.answers.clear()
    both = fleet(slow, other, at_once=True, time=time)
    words = []
    for passed in range(1, 13):
        time.passed = float(passed)
        if passed % 4 == 0:
            await slow.answer()
            slow.answers.clear()
        words.append((await both.next()).frames[0].health.word)
    assert words == ["CONNECTING"] * 3 + ["OK"] * 9
    assert other.asked == 12
    await both.aclose()


@pytest.mark.slow
async def test_the_first_round_shows_what_has_come_where_it_is_wanted_at_once():
    slow, other = Machine("a"), Machine("b")
    slow.answers.clear()
    both = fleet(slow, other, at_once=True)
    first, second = (await both.next()).frames
    assert (first.pool, first.health.word, first.stale_seconds) == ("a", "CONNECTING", None)
    assert second.pool == "b:vault"
    slow.answers.set()
    whole = fleet(slow, other)
    assert [frame.pool for frame in (await whole.next()).frames] == ["a:vault", "b:vault"]
    await both.aclose()


async def test_why_a_machine_failed_stays_while_it_is_asked_again():
    time, away = Time(), Machine("a")
    alone = fleet(away, time=time)
    await alone.next()
    away.fails = True
    await alone.next()
    away.answers.clear()
    time.passed = 7.0
    await alone.next()
    (late,) = (await alone.next()).frames
    assert (late.problem, late.stale_seconds) == ("ssh: refused", 7.0)
    await alone.aclose()


@pytest.mark.slow
async def test_an_exported_pool_stays_so_while_its_machine_is_asked_again():
    """It is not a pool that does not answer, of which an alert would be sent."""
    time, machine = Time(), Machine("a")
    alone = fleet(machine, time=time)
    await alone.next()
    machine.fails = machine.exported = True
    await alone.next()
    machine.answers.clear()
    for time.passed in (1.0, 400.0):
        (exported,) = (await alone.next()).frames
        assert (exported.absent, exported.health.word) == (True, "NOT IMPORTED")
    await alone.aclose()


async def test_closing_abandons_what_is_in_flight():
    slow = Machine("a")
    slow.answers.clear()
    alone = fleet(slow, at_once=True)
    await alone.next()
    await asyncio.wait_for(alone.aclose(), 30)
    assert slow.closed


@pytest.mark.slow
async def test_an_answer_that_is_hard_to_read_does_not_hold_up_the_others(monkeypatch):
    """Decoding one host's answer never ends: its pools report it, those of others continue."""
    read = session_module.decode
    begun = []

    def endless(raw, *rest):
        if raw.get("text") != "hard":
            return read(raw, *rest)
        begun.append(raw)
        while True:
            pass

    class Hard(Machine):
        async def sample(self):
            return ({"t": EPOCH, "clock": 0.0, "pool": "pit", "text": "hard"},)

    monkeypatch.setattr(session_module, "decode", endless)
    machines = Hard("a"), Machine("b")
    rounds = Fleet(machines, lambda: Session(most_cpu=0.2), 0.0, clocks=Time().clocks)
    for _ in range(3):
        pit, vault = (await rounds.next()).frames
        assert "takes over 0.2 s to be read" in pit.problem
        assert vault.problem is None
    assert len(begun) == 1  # and is not retried at once
