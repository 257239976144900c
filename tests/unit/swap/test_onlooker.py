from __future__ import annotations

import asyncio

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.swap.playing import OLD, Play
from zconsole.actions.plan import Facts
from zconsole.diagnosis.device_errors.faults import SmartCounts
from zconsole.errors import ZconsoleError
from zconsole.sim.backends.actions import SimulatedFacts
from zconsole.sim.source import World
from zconsole.swap.disk import SwapDisk
from zconsole.swap.session import AGE, Onlooker
from zconsole.timeline.frame import Frame
from zconsole.timeline.session import Session


class Smart:
    """Answers for every disk, and counts the questions."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, node: str) -> SmartCounts | None:
        self.asked.append(node)
        return SmartCounts(pending=2)


def frames(world: World, session: Session) -> tuple[Frame, ...]:
    return session.advance(world.raws())


@pytest.fixture
def old(play: Play) -> SwapDisk:
    """The disk to swap; looked up before there is an event loop."""
    return play.choice(OLD).old


async def test_the_disk_of_the_swap_and_free_disks_are_asked_once_in_a_while(play, old):
    session, smart = Session(), Smart()
    play.hands.insert(0, "Slot 11")
    look = Onlooker(SimulatedFacts(play.world), smart, "boot")
    found = await look.look(frames(play.world, session), lambda s: s.pool.name == "tank", old)
    assert found is not None
    assert (found.boot, len(found.smart)) == ("boot", 2)
    assert found.smart[old.whole].pending == 2
    await look.look(frames(play.world, session), lambda s: True, old)
    assert len(smart.asked) == 2
    play.wait(AGE)
    await look.look(frames(play.world, session), lambda s: True, old)
    assert len(smart.asked) == 4


async def test_disks_are_asked_again_where_the_clock_was_set_back(play):
    """Else what a disk said yesterday counts until that hour comes again."""
    play.hands.insert(0, "Slot 11")
    session, smart = Session(), Smart()
    look = Onlooker(SimulatedFacts(play.world), smart, "boot")
    found = frames(play.world, session)
    for t in (0.0, -3600.0):
        await look.look([replace(f, t=f.t + t) for f in found], lambda _: True)
    assert len(smart.asked) == 2


async def test_a_machine_that_does_not_answer_is_given_up():
    world = World("swap", 1)

    async def _never(*_: object) -> Facts:
        await asyncio.Event().wait()
        raise AssertionError

    look = Onlooker(_never, Smart(), patience=0.01)  # type: ignore[arg-type]
    with pytest.raises(ZconsoleError, match=r"did not answer within 0\.01 s"):
        await look.look(frames(world, Session()), lambda _: True)


async def test_another_disk_at_the_same_path_is_asked_for_itself(play):
    """Where disks are named by their bay, the new one has the path of the old."""
    play.hands.insert(0, "Slot 11")
    facts, session, smart = SimulatedFacts(play.world), Session(), Smart()

    async def _asked(pool, suspended, paths=()):
        found = await facts(pool, suspended, paths)
        return replace(found, devices=tuple(replace(d, serial=serial) for d in found.devices))

    look = Onlooker(_asked, smart, "boot")
    for number, serial in enumerate(("S1", "S2"), 1):
        await look.look(frames(play.world, session), lambda s: True)
        assert len(smart.asked) == number, serial


async def test_other_pools_come_with_the_same_disks():
    world = World("two-pools", 1)
    look = Onlooker(SimulatedFacts(world), Smart(), "")
    found = await look.look(frames(world, Session()), lambda s: s.pool.name == "scratch")
    assert found is not None
    assert [s.pool.name for s in found.situations] == ["scratch", "tank"]
    assert found.others[0].facts.devices == found.devices


@rows("name", ["none", ""])
async def test_without_the_pool_there_is_nothing_to_see(name: str):
    world = World("swap", 1)
    look = Onlooker(SimulatedFacts(world), Smart(), "")
    assert await look.look(frames(world, Session()), lambda s: s.pool.name == name) is None
