from __future__ import annotations

import pytest

from zconsole.errors import NotFoundError, UnavailableError
from zconsole.monitor.fleet import Fleet
from zconsole.monitor.session import Session
from zconsole.sim.source import SimulatedSource
from zconsole.zfs.sources.base import Capabilities


class Machine:
    """A host with one simulated pool, or with none."""

    def __init__(self, host, has_pool=True, failure="", missing=()):
        self.host, self.failure, self.missing, self.seen = host, failure, missing, has_pool
        self.capabilities = Capabilities("json", denied="over ssh")
        self.closed = False
        self._pool = SimulatedSource("healthy") if has_pool else None

    async def sample(self):
        return await self._pool.sample() if self._pool else ()

    async def aclose(self):
        self.closed = True


def fleet(*machines, needed=False, notes=()):
    return Fleet(machines, lambda: Session(notes=notes), 0.0, needed)


async def test_pools_of_several_machines_carry_their_host():
    update = await fleet(Machine("a"), Machine("b")).next()
    assert [frame.pool for frame in update.frames] == ["a:vault", "b:vault"]
    assert update.capabilities.denied == "over ssh"
    (alone,) = (await fleet(Machine("a")).next()).frames
    assert alone.pool == "vault"


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
