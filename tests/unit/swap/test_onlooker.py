from __future__ import annotations

import asyncio

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.swap.playing import OLD, Play
from zconsole.actions.plan import Facts
from zconsole.diagnosis.device_errors.faults import SmartCounts
from zconsole.errors import ZconsoleError
from zconsole.sim.backends.actions import simulated_backend
from zconsole.sim.source import World
from zconsole.swap.disk import MachineView, SwapDisk
from zconsole.swap.session import AGE, SwapSession
from zconsole.swap.store import MemorySwapStore, SwapBackend
from zconsole.timeline.frame import Frame
from zconsole.timeline.session import Session


class Shelf:
    """A session on a shelf, and the disks that were asked for their SMART counts."""

    def __init__(self, world: World, patience: float = 60.0) -> None:
        self.asked: list[str] = []
        self.session = Session()
        self.later = 0.0
        """Seconds by which its frames are later than the machine's clock."""
        self.backend = simulated_backend(world)
        self._world = world
        self._patience = patience
        self._swaps: SwapSession | None = None

    async def smart_of(self, node: str) -> SmartCounts | None:
        self.asked.append(node)
        return SmartCounts(pending=2)

    async def frames(self) -> tuple[Frame, ...]:
        found = self.session.advance(self._world.raws())
        return tuple(replace(frame, t=frame.t + self.later) for frame in found)

    async def view(self, pool: str, disk: SwapDisk | None = None) -> MachineView | None:
        if self._swaps is None:
            swaps = SwapBackend(lambda _: MemorySwapStore(), self.smart_of, "boot")
            self._swaps = SwapSession(self.backend, swaps, self.frames, self._patience)
        return await self._swaps.view(lambda s: s.pool.name == pool, disk)


@pytest.fixture
def old(play: Play) -> SwapDisk:
    """The disk to swap; looked up before there is an event loop."""
    return play.choice(OLD).old


async def test_the_disk_of_the_swap_and_free_disks_are_asked_once_in_a_while(play, old):
    shelf = Shelf(play.world)
    play.hands.insert(0, "Slot 11")
    found = await shelf.view("tank", old)
    assert found is not None
    assert (found.boot, len(found.smart)) == ("boot", 2)
    assert found.smart[old.whole].pending == 2
    await shelf.view("tank", old)
    assert len(shelf.asked) == 2
    play.wait(AGE)
    await shelf.view("tank", old)
    assert len(shelf.asked) == 4


async def test_disks_are_asked_again_where_the_clock_was_set_back(play):
    """Else what a disk said yesterday counts until that hour comes again."""
    play.hands.insert(0, "Slot 11")
    shelf = Shelf(play.world)
    for shelf.later in (0.0, -3600.0):
        await shelf.view("tank")
    assert len(shelf.asked) == 2


async def test_a_machine_that_does_not_answer_is_given_up():
    async def _never(*_: object) -> Facts:
        await asyncio.Event().wait()
        raise AssertionError

    shelf = Shelf(World("swap", 1), patience=0.01)
    shelf.backend = replace(shelf.backend, ask=_never)
    with pytest.raises(ZconsoleError, match=r"did not answer within 0\.01 s"):
        await shelf.view("tank")


async def test_another_disk_at_the_same_path_is_asked_for_itself(play):
    """Where disks are named by their bay, the new one has the path of the old."""
    play.hands.insert(0, "Slot 11")
    shelf = Shelf(play.world)
    facts = shelf.backend.ask

    async def _asked(pool, suspended, paths=()):
        found = await facts(pool, suspended, paths)
        return replace(found, devices=tuple(replace(d, serial=serial) for d in found.devices))

    shelf.backend = replace(shelf.backend, ask=_asked)
    for number, serial in enumerate(("S1", "S2"), 1):
        await shelf.view("tank")
        assert len(shelf.asked) == number, serial


async def test_other_pools_come_with_the_same_disks():
    found = await Shelf(World("two-pools", 1)).view("scratch")
    assert found is not None
    assert [s.pool.name for s in found.situations] == ["scratch", "tank"]
    assert found.others[0].facts.devices == found.devices


@rows("name", ["none", ""])
async def test_without_the_pool_there_is_nothing_to_see(name: str):
    assert await Shelf(World("swap", 1)).view(name) is None
