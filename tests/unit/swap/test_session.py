"""Facts read for a swap, and checklists that one console leads and others see."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.swap.playing import EMPTY, NEW, OLD, Play
from zconsole.actions.plan import Facts
from zconsole.diagnosis.device_errors.faults import SmartCounts
from zconsole.errors import ZconsoleError
from zconsole.sim.backends.actions import simulated_backend
from zconsole.sim.source import World
from zconsole.swap.disk import MachineView, SwapDisk
from zconsole.swap.several import started
from zconsole.swap.stage import Answer
from zconsole.swap.store import AGE, Guide, SwapBackend, SwapSession, SwapStore
from zconsole.swap.watch import on_purpose
from zconsole.system.state_dir import StateError
from zconsole.timeline.frame import Frame
from zconsole.timeline.session import Session


class Broken(SwapStore):
    def save(self, checklist):
        raise StateError("the disk is full")

    def leads(self, name):
        raise StateError("the disk is full")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


def test_a_second_console_sees_what_the_first_does_and_may_not_act(place: Path):
    play = Play(store=SwapStore(place))
    play.begin()
    other = Guide(play.checklist, SwapStore(place))
    assert not other.leads
    play.do()
    assert other.look(play.view(), play.now).step == "pull"
    assert other.checklist == play.checklist


def test_the_second_console_leads_once_the_first_is_gone(place: Path):
    play = Play(store=SwapStore(place))
    play.begin()
    other = Guide(play.checklist, SwapStore(place))
    play.store.close()
    other.look(play.view(), play.now)
    assert other.leads


def test_a_disk_has_one_open_checklist(place: Path):
    play = Play(store=SwapStore(place))
    play.begin()
    choice = play.choice()
    again = started(choice, choice.ways[0], play.store, play.now)
    assert again.checklist.id == play.checklist.id


def test_a_swap_goes_on_where_nothing_can_be_kept_and_says_so():
    play = Play(store=Broken(None))
    play.begin()
    assert play.do().step == "pull"
    assert play.guide is not None
    assert play.guide.problem == "the disk is full"


def test_a_command_that_failed_is_in_the_log_with_its_words():
    play = Play()
    stage = play.begin()
    assert stage.plan is not None
    assert play.guide is not None
    step = replace(stage.plan.steps[0], argv=("zpool", "offline", "tank", "none"))
    plan = replace(stage.plan, steps=(step,))
    play.guide.ran(play.now, stage, plan, play.execute(plan))
    entry = play.checklist.log[-1]
    assert entry.command == "zpool offline tank none"
    assert "no such device in pool" in entry.result
    assert play.look().step == "offline"


def test_what_was_refused_is_in_the_log():
    play = Play()
    stage = play.begin()
    assert stage.plan is not None
    assert play.guide is not None
    play.pool.guid += 1
    play.guide.ran(play.now, stage, stage.plan, play.execute(stage.plan))
    assert "not run: another pool" in play.checklist.log[-1].text


def test_an_answer_about_a_disk_that_is_back_meanwhile_changes_nothing():
    play = Play()
    play.begin()
    assert play.guide is not None
    meant = Answer("meant", "it was meant to go", "disk stays out", "", change=on_purpose)
    play.guide.answer(play.now, meant)
    assert play.look().step == "offline"
    assert play.leaf(OLD).online


def test_giving_up_while_a_new_disk_is_filled_names_the_whole_command_and_the_way_without_it():
    play = Play()
    play.hands.insert(NEW, EMPTY)
    play.begin()
    play.do()
    stage = play.look()
    new = play.checklist.new
    assert new is not None
    (said,) = stage.undone
    assert "let the resilver go on, nothing is lost" in said
    assert f"zpool detach tank {new.whole}" in said


@pytest.mark.slow
def test_a_finished_swap_shows_its_report_while_its_pool_is_not_imported():
    play = Play()
    play.begin()
    play.do()
    play.exchanged()
    assert play.answer("no-scrub").over
    assert play.guide is not None
    stage = play.guide.look(None, play.now)
    assert stage.over
    assert any("has replaced" in text for text in stage.text)


class Shelf:
    """A session on a shelf, and the disks that were asked for their SMART counts."""

    def __init__(self, world: World, patience: float = 60.0) -> None:
        self.asked: list[str] = []
        self.session = Session()
        self.later = 0.0
        """Seconds by which its frames are ahead of the machine's clock."""
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
            swaps = SwapBackend(lambda _: SwapStore(None, memory={}), self.smart_of, "boot")
            self._swaps = SwapSession(self.backend, swaps, self.frames, self._patience)
        return await self._swaps.view(lambda s: s.pool.name == pool, disk)


@pytest.fixture
def old(play: Play) -> SwapDisk:
    """Return the disk to swap; looked up before there is an event loop."""
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
    """Otherwise yesterday's answer would count until that time comes again."""
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
    """If disks are named by bay, the new one has the old one's path."""
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


async def test_a_pool_that_is_suspended_has_facts_of_its_own():
    """Its labels are read, to learn which pool a returned disk belongs to."""
    shelf, asked = Shelf(World("two-pools", 1)), []
    facts, frames = shelf.backend.ask, shelf.frames

    async def _asked(pool, suspended, paths=()):
        asked.append((pool.name, suspended))
        return replace(await facts(pool, suspended, paths), version=pool.name)

    async def _frames():
        return tuple(
            replace(frame, kstat="SUSPENDED") if frame.pool == "tank" else frame
            for frame in await frames()
        )

    shelf.backend, shelf.frames = replace(shelf.backend, ask=_asked), _frames
    found = await shelf.view("scratch")
    assert asked == [("scratch", False), ("tank", True)]
    assert [s.facts.version for s in found.situations] == ["scratch", "tank"]


@rows("name", ["none", ""])
async def test_without_the_pool_there_is_nothing_to_see(name: str):
    assert await Shelf(World("swap", 1)).view(name) is None
