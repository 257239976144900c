"""Several disks by keys: all replaced at once, and each led to its pull."""

from __future__ import annotations

from tests.ui.swap.steps import Swapping, swapping
from tests.unit.swap.playing import fresh
from zconsole.sim.places import slot_name
from zconsole.swap.checklist import Checklist
from zconsole.swap.disk import proposed
from zconsole.system.state_dir import StateError
from zconsole.ui.dialogs.confirm import ConfirmScreen
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.swap import flow
from zconsole.ui.swap.swap_screen import SwapScreen


def two_failing(s: Swapping) -> None:
    """A second disk with errors, and two free disks."""
    world = s.feed.world
    leaf = next(x for x in world.pools[0].leaves() if slot_name(x.slot) == "Slot 08")
    leaf.reads.errors = 12.0
    s.swap.hands.insert(0, "Slot 11")
    world.pools[0].host.shelf = [*world.pools[0].host.shelf, fresh()]
    s.feed.step()


async def at_once(s: Swapping) -> str:
    """C, all of them, the plan; the screen after."""
    await s.press("C")
    await s.pick("Replace all 2 at once, with a checklist for each")
    shown = await s.read(s.on(PickScreen))
    assert "Plan these 2" in shown
    assert "stays" not in shown
    await s.press("enter")
    assert "Replace 2 devices at once" in await s.read(s.on(ConfirmScreen))
    await s.press("right", "enter")
    await s.settled()
    await s.press("escape")
    return await s.read(s.on(SwapScreen))


async def listed(s: Swapping, seconds: float) -> str:
    """The devices that a swap is offered for, some time later."""
    s.feed.step(seconds)
    await s.settled()
    await s.press("C")
    return await s.read(s.on(PickScreen))


async def test_all_at_once_has_each_disk_chosen_and_begins_a_checklist_for_each():
    async with swapping() as s:
        two_failing(s)
        await s.settled()
        await at_once(s)
        shown = await s.read(s.pass_by())
        assert "Wait until" in shown
        kept = s.swap.make_store(False).read()
        assert sorted(c.old.bay for c in kept) == ["Slot 07", "Slot 08"]
        assert all(c.new is not None and c.at == "resilver" for c in kept[:1])


async def test_after_the_resilver_each_old_disk_is_still_to_be_found():
    async with swapping() as s:
        two_failing(s)
        await s.settled()
        await at_once(s)
        await s.seen("Switch on the light of Slot 07")
        assert "Pull Slot 07" in await s.read(s.do())
        assert "Switch off the light" in await s.read(s.pull("Slot 07"))
        await s.press("escape")
        await s.to("JE64U42M")  # the new disk of the other swap
        await s.press("C")
        assert "SWAP Slot 08" in await s.read(s.on(SwapScreen))
        assert "Switch on the light of Slot 08" in await s.read(s.pass_by())


async def test_a_plan_that_is_only_read_begins_no_checklist():
    async with swapping() as s:
        two_failing(s)
        await s.settled()
        await s.press("C")
        await s.pick("Replace all 2 at once")
        await s.until(lambda: "Plan these 2" in s.screen)
        await s.press("escape")
        assert "SWAP  2 devices" in await s.read(s.on(PickScreen))
        await s.press("escape")
        await s.settled()
        assert len(s.app.screen_stack) == 1
        assert not s.swap.make_store(False).read()


async def test_disks_that_are_being_replaced_all_get_a_checklist_with_one_key(monkeypatch):
    async with swapping() as s:
        two_failing(s)
        await s.settled()
        await at_once(s)
        s.swap.make_store(True).kept.clear()  # type: ignore[attr-defined]
        await s.press("escape")
        await s.settled()
        await s.press("C")
        with monkeypatch.context() as full:
            full.setattr(flow, "begin_adopted", unkept)
            await s.pick("Begin a checklist for each of the 2 that are being replaced")
            assert "no checklist was started: the disk is full" in await s.read(s.settled())
        await s.press("C")
        await s.pick("Begin a checklist for each of the 2 that are being replaced")
        await s.on(SwapScreen)
        assert len(s.swap.make_store(False).read()) == 2


def unkept(*_: object) -> tuple[Checklist, ...]:
    raise StateError("the disk is full")


async def test_disks_whose_cable_is_the_likely_cause_are_checked_before_they_are_replaced():
    async with swapping(scenario="damaged", size=(120, 40)) as s:
        shown = await listed(s, 60.0)
        assert "SWAP  2 devices have errors" in shown
        assert shown.count("Likely cable, port or power: Slot ") >= 2
        assert "Replace all 2 at once: not advised" in shown
        assert "check the cable and port, then clear the errors" in shown
        await s.press("enter")
        lines = (await s.read(s.on(ConfirmScreen))).splitlines()
        assert lines[1].strip() == "First"
        assert "Likely cable, port or power" in lines[2]


async def test_esc_on_the_plan_of_one_of_several_goes_back_to_the_list_and_there_leaves():
    async with swapping(scenario="damaged", size=(80, 24)) as s:
        shown = await listed(s, 60.0)
        (cursor,) = (line for line in shown.splitlines() if line.startswith("›"))
        await s.press("j", "enter")
        await s.on(ConfirmScreen)
        await s.press("escape")
        back = await s.read(s.on(PickScreen))
        assert "SWAP  2 devices have errors" in back
        (again,) = (line for line in back.splitlines() if line.startswith("›"))
        assert again != cursor
        await s.press("escape")
        await s.settled()
        assert len(s.app.screen_stack) == 1


async def test_esc_leaves_the_plan_where_no_list_is_left_to_go_back_to(monkeypatch):
    """Of two devices one had recovered meanwhile: its plan came back after every Esc."""
    async with swapping(scenario="damaged", size=(80, 24)) as s:
        await listed(s, 60.0)
        await s.press("enter")
        await s.on(ConfirmScreen)
        monkeypatch.setattr(flow, "proposed", lambda v: proposed(v)[:1])
        await s.press("escape")
        await s.on(ConfirmScreen)
        await s.press("escape")
        await s.settled()
        assert len(s.app.screen_stack) == 1


async def test_a_device_beside_one_that_is_being_replaced_is_named_by_its_bay():
    async with swapping(scenario="flaky", size=(80, 24)) as s:
        shown = await listed(s, 30.0)
        assert "Swap Slot 03 (serial ZWZJRW70) of raidz2-0: REMOVED" in shown
        assert "Swap Slot 06 (serial G4PXTEXR) of raidz2-0: ONLINE, being replaced" in shown
        assert "Replace the 1 not being replaced yet, with a checklist for each" in shown
        assert "one after the other: Slot 03, then Slot 06" in shown


async def test_what_cannot_be_done_now_is_not_picked():
    async with swapping() as s:
        two_failing(s)
        s.feed.world.pools[0].host.shelf = []
        s.feed.step()
        await s.settled()
        await s.press("C")
        await s.pick("Replace all 2 at once: not now")
        await s.settled()
        assert isinstance(s.app.screen, PickScreen)
        assert any("free disks needed" in message.message for message in s.app.messages)
