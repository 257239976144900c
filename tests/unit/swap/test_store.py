"""Checklists on disk."""

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
from zconsole.swap import store as swap_store
from zconsole.swap.disk import DONE, Checklist, MachineView, SwapDisk, SwapEntry
from zconsole.swap.several import started
from zconsole.swap.stage import Answer
from zconsole.swap.store import AGE, Guide, SwapBackend, SwapSession, SwapStore, dumped
from zconsole.swap.watch import on_purpose
from zconsole.system.state_dir import StateError
from zconsole.timeline.frame import Frame
from zconsole.timeline.session import Session

ONE = Checklist(
    "0123abcd",
    "tank",
    "1",
    5.0,
    SwapDisk("d0", "1000", "tank", size=5, serial="S\udcff"),
    "raidz2-0",
    "pull-first",
    around=(SwapDisk("d1"),),
    log=(SwapEntry(5.0, "explain", "began"),),
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


def test_a_checklist_survives_its_process(place: Path):
    first = SwapStore(place)
    assert first.save(ONE)
    first.close()
    assert SwapStore(place).read() == (ONE,)


def test_one_process_leads_and_others_read(place: Path):
    first, second = SwapStore(place), SwapStore(place)
    assert first.save(ONE)
    assert not second.save(replace(ONE, pool="other"))
    assert second.read() == (ONE,)
    first.close()
    assert second.save(replace(ONE, pool="other"))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        b'{"format": 2, "checklist": {}}',
        b'{"format": 1, "checklist": {"id": "0123abcd"}}',
        dumped(replace(ONE, mode="sideways")),
        dumped(replace(ONE, at="nowhere")),
        dumped(replace(ONE, id="89abcdef")),
    ],
)
def test_a_damaged_file_is_left_out(place: Path, data: bytes):
    (place / "swap-0123abcd.json").write_bytes(data)
    (place / "swap-0123abcd.json").chmod(0o600)
    assert SwapStore(place).read() == ()


def test_an_id_never_becomes_another_path(place: Path):
    assert not SwapStore(place).save(replace(ONE, id="../../etc"))
    assert list(place.iterdir()) == []


def test_a_file_of_somebody_else_is_left_out(place: Path):
    (place / "swap-0123abcd.json").write_bytes(dumped(ONE))
    (place / "swap-0123abcd.json").chmod(0o622)
    assert SwapStore(place).read() == ()


def test_without_a_directory_nothing_is_kept():
    with pytest.raises(StateError):
        SwapStore(None).save(ONE)


def test_without_a_directory_the_swap_is_led_all_the_same():
    guide = Guide(ONE, SwapStore(None))
    assert guide.leads
    assert "not remembered" in guide.problem


@pytest.mark.slow
def test_closed_checklists_are_kept_for_their_reports_and_the_oldest_go(place: Path, monkeypatch):
    monkeypatch.setattr(swap_store, "KEPT", 3)
    store = SwapStore(place)
    for n in range(5):
        store.save(replace(ONE, id=f"{n:08x}", begun=float(n), state=DONE))
    kept = store.read()
    assert len(kept) == 3
    assert kept[0].begun == 4


# Facts read for a swap, and checklists that one console leads and others see.


class Broken(SwapStore):
    def save(self, checklist):
        raise StateError("the disk is full")

    def leads(self, name):
        raise StateError("the disk is full")


def test_a_second_console_sees_what_the_first_does_and_leads_only_once_that_is_gone(place: Path):
    play = Play(store=SwapStore(place))
    play.begin()
    other = Guide(play.checklist, SwapStore(place))
    assert not other.leads
    play.do()
    assert other.look(play.view(), play.now).step == "pull"
    assert other.checklist == play.checklist
    assert not other.leads
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
    assert play.guide.problem == "the disk is full"


def test_a_command_that_failed_is_in_the_log_with_its_words():
    play = Play()
    stage = play.begin()
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
    play.pool.guid += 1
    play.guide.ran(play.now, stage, stage.plan, play.execute(stage.plan))
    assert "not run: another pool" in play.checklist.log[-1].text


def test_an_answer_about_a_disk_that_is_back_meanwhile_changes_nothing():
    play = Play()
    play.begin()
    meant = Answer("meant", "it was meant to go", "disk stays out", "", change=on_purpose)
    play.guide.answer(play.now, meant)
    assert play.look().step == "offline"
    assert play.leaf(OLD).online


def test_giving_up_while_a_new_disk_is_filled_names_the_whole_command_and_the_way_without_it():
    play = Play()
    play.hands.insert(NEW, EMPTY)
    play.offline()
    stage = play.look()
    new = play.checklist.new
    (said,) = stage.undone
    assert "let the resilver go on, nothing is lost" in said
    assert f"zpool detach tank {new.whole}" in said


@pytest.mark.slow
def test_a_finished_swap_shows_its_report_while_its_pool_is_not_imported():
    play = Play()
    play.offline()
    play.exchanged()
    assert play.answer("no-scrub").over
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
