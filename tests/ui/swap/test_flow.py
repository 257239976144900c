"""A whole swap by keys: a wrong disk is detected; the swap is left, continued, undone, reported."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from tests.records import replace
from tests.ui.swap.steps import Swapping, main_line, question, ran, swapping
from tests.unit.swap.playing import fresh
from zconsole.sim.places import slot_name
from zconsole.swap.disk import Checklist, SwapDisk, proposed
from zconsole.swap.store import SwapSession
from zconsole.system.state_dir import StateError
from zconsole.ui.dialogs.confirm import ConfirmScreen
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.swap import flow
from zconsole.ui.swap.swap_screen import GIVE_UP, SwapScreen
from zconsole.units import duration


async def test_a_swap_from_the_first_key_to_the_report(tmp_path):
    async with swapping() as s:
        shown = await s.read(s.choose())
        assert "Pull first, then insert the new disk" in shown
        assert "SMART: passed, 45 reallocated" in " ".join(shown.split())
        await s.press("escape")
        shown = await s.read(s.to_pull())
        assert "Pull Slot 07 (serial RGYCXAL5)" in shown
        assert "The light of Slot 07 is on." in shown
        assert "Insert the new disk into Slot 07" in await s.read(s.pull("Slot 07"))
        new = s.swap.hands.drawer()[0].rpartition(" ")[2]
        assert f"Replace serial RGYCXAL5 with serial {new} in" in await s.read(
            s.insert(new, "Slot 07")
        )
        assert "what is on it is lost" in " ".join(s.screen.split())
        assert "SMART of the new disk: passed, 0 reallocated" in " ".join(s.screen.split())
        assert "Afterwards, until the resilver ends: Z detaches" in " ".join(s.screen.split())
        assert f"Wait until Slot 07 (serial {new}) is filled" in await s.read(s.do())
        await s.seen("Switch off the light")
        assert "Scrub tank" in await s.read(s.do())
        assert "Wait until tank is scrubbed" in await s.read(s.do())
        await s.seen("has replaced Slot 07 (serial RGYCXAL5)")
        assert "The scrub finished with 0 errors." in s.screen
        assert "What happened" in s.screen
        assert "Redundancy is restored: 2 more devices may fail in raidz2-0" in " ".join(
            s.screen.split()
        )
        assert "A saved report is a new file in" in s.screen
        assert "hot spare" not in s.screen
        assert "zpool scrub tank: started" in s.screen
        assert s.store_new().state == "done"
        assert ran(s) == ["offline", "light", "replace", "scrub"]
        await reported(s, tmp_path)


async def reported(s: Swapping, directory: Path) -> None:
    """Leave the last step and return to it, then save its report."""
    assert "X no report" in s.screen
    assert "  r save" not in s.screen
    await s.press("escape")
    assert await main_line(s) == "disk swap unfinished: Slot 07: Save the report  (C continues)"
    await s.press("C")
    await s.on(SwapScreen)
    gone = directory / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    await s.press("enter")
    assert "no report: No such file or directory" in await s.read(s.settled())
    os.chdir(directory)
    s.feed.clock.now += 2.0
    await s.press("enter")
    await s.settled()
    (report,) = directory.glob("zconsole-*.md")
    assert "Report saved: /" in s.screen
    assert s.app.screen.copies() == (("path", str(report)),)
    assert "✓ Save the report" in s.screen
    assert "Save the report as a file" not in s.screen
    assert "save report" not in s.screen
    assert "# Disk swap in tank" in report.read_text()
    assert "\n    $ zpool status -v tank\n      pool: tank\n" in report.read_text()
    assert "finished" in s.screen.splitlines()[0]
    assert "Finished: Esc leaves the checklist" in s.screen
    for key in ("enter", "r", "enter"):
        s.feed.clock.now += 2.0
        await s.press(key)
        assert "The report is saved:" in await s.read(s.settled())
    assert list(directory.glob("zconsole-*.md")) == [report]
    await s.press("escape")
    assert await main_line(s) == ""


async def test_the_wrong_disk_is_told_loudly_and_put_right():
    async with swapping() as s:
        await s.to_pull()
        shown = await s.read(s.pull("Slot 08"))
        assert "WRONG DISK: put Slot 07 online again, then put Slot 08" in shown
        assert "Pull nothing else" in shown
        assert shown.index("Put Slot 07 (serial") < shown.index("Look at the machine again")
        title = s.app.screen.query_one("#text").line_at(0)
        assert title[0].role == "badge-error"
        assert "raidz2-0 has no redundancy left." in shown.replace("\n", " ")
        assert "H light" not in shown
        shown = await s.read(s.press("enter"))
        assert "Looked again: still waiting for Slot 08" in shown
        assert isinstance(s.app.screen, SwapScreen), "nothing is meant by Enter"
        assert "stays until the alarm is over" in await s.read(s.press("H"))
        wrong = s.swap.hands.drawer()[-1].rpartition(" ")[2]
        await s.press("I")
        shown = await s.read(s.on(PickScreen))
        assert f"serial {wrong}" in next(x for x in shown.splitlines() if x.startswith("›"))
        await s.press("escape")
        assert "Bring Slot 08" in await s.read(s.insert(wrong, "Slot 08"))
        await s.do()
        assert "pull no disk before it ends" in await s.read(s.settled())
        assert "before it ends" not in await s.seen("Pull Slot 07")
        assert "Insert the new disk into Slot 07" in await s.read(s.pull("Slot 07"))


async def test_all_screens_say_alike_how_much_redundancy_there_is_while_a_disk_is_replaced():
    """The plan promised two disks, the main screen showed one, and none with a wrong disk out."""
    async with swapping((80, 24)) as s:
        s.feed.step(2.0)
        await s.begin("Replace first")
        await s.insert(s.swap.hands.drawer()[0].rpartition(" ")[2], "Slot 11")
        await s.press("enter")
        plan = " ".join((await s.read(s.on(ConfirmScreen))).split())
        assert "while it runs, 2 more devices may fail in raidz2-0" in plan
        assert "1 for blocks Slot 07 (serial RGYCXAL5) can't read" in plan
        await s.press("right", "enter", "escape")
        for _ in range(10):
            await s.pass_by(3.0)
        await s.press("escape")
        screen = await s.read(s.settled())
        assert "raidz2-0: 2 disks" in screen
        assert "redundancy left: 2 disks, 1 for blocks Slot 07 can't read" in screen
        await s.press("C")
        await s.pull("Slot 01")
        shown = await s.read(s.pass_by(3.0))
        assert "1 more device may fail in raidz2-0" in shown
        assert "losing data, none for" in shown
        await s.press("escape")
        screen = await s.read(s.settled())
        assert "raidz2-0: 1 disk " in screen
        assert "redundancy left: 1 disk, none for blocks Slot 07 can't read" in screen


async def test_a_swap_that_is_left_is_shown_and_continued_and_names_the_wrong_disk():
    async with swapping() as s:
        await s.to_pull()
        await s.press("escape")
        main = await s.seen("disk swap unfinished: Slot 07: Pull the old disk  (C continues)")
        assert "REBALANCE" not in main.splitlines()[0]
        await s.press("C")
        assert "Pull Slot 07 (serial RGYCXAL5)" in await s.read(s.on(SwapScreen))
        await s.pull("Slot 08")
        await s.at_another()
        shown = await s.read(s.on(PickScreen))
        assert "Continue: WRONG DISK: put Slot 07 online again, then put Slot 08" in shown
        assert shown.index("Continue: WRONG DISK") < shown.index("Begin another")
        await s.press("escape")
        said = "wrong disk pulled: put Slot 07 online again, then put Slot 08 back"
        assert await main_line(s) == f"disk swap unfinished: {said}  (C)"
        s.swap.hands.insert(len(s.swap.hands.drawer()) - 1, "Slot 08")
        await s.seen("disk swap unfinished: bring Slot 08 back into tank  (C)")
        await s.at_another()
        await s.pick("Continue: ")
        assert "Bring Slot 08" in await s.read(s.on(SwapScreen))
        await s.do()
        await s.seen("Pull Slot 07")
        await s.press("escape")
        await s.pass_by()
        assert all("W7H6TJMH" not in f.name for f in s.app.view_state.frame.troubles)


async def test_without_a_light_the_serial_number_is_said_and_where_it_stands(monkeypatch):
    monkeypatch.setattr("zconsole.sim.backends.actions.locate_of", lambda *_: None)
    async with swapping() as s:
        await s.begin()
        shown = await s.read(s.do())
        assert "Its label says serial RGYCXAL5" in shown
        assert "The serial number stands on its label after S/N" in shown
        assert "H light" not in s.screen
        assert "Insert the new disk into Slot 07" in await s.read(s.pull("Slot 07"))


async def test_a_step_with_two_answers_has_one_line_that_asks_which():
    async with swapping((80, 24)) as s:
        asked = await question(s, "Y")
        assert "No light is switched on." in asked
        assert "Switch on the light" not in asked
        await s.press("escape")
        new = s.swap.hands.drawer()[0].rpartition(" ")[2]
        shown = await s.read(s.insert(new, "Slot 11"))
        said = " ".join(line[33:].strip() for line in shown.splitlines())
        assert "Choose: Go on with Slot 11" in said
        assert "; or: Go on without the light: I know the bay" in said
        assert sum(line[33:].strip().startswith("Y ") for line in shown.splitlines()) == 1
        assert "Y choose" in shown


async def test_the_new_disk_leads_to_the_swap_that_it_is_part_of():
    async with swapping() as s:
        new = await s.swapped()
        await s.press("escape")
        s.feed.step()
        await s.settled()
        await s.to(new)
        await s.press("C")
        assert f"Wait until Slot 07 (serial {new}) is filled" in await s.read(s.on(SwapScreen))


async def test_nothing_that_is_healthy_is_taken_without_being_named():
    async with swapping() as s:
        for leaf in s.feed.world.pools[0].leaves():
            leaf.reads.errors, leaf.cksum_errors, leaf.error_rate = 0.0, 0.0, (0.0,) * 4
        s.feed.step()
        await s.settled()
        await s.press("C")
        await s.until(lambda: bool(list(s.app.messages)))
        assert "select the disk to change" in next(iter(s.app.messages)).message


async def test_a_look_that_a_plan_overtakes_writes_nothing_down():
    async with swapping() as s:
        await s.begin()
        screen = s.app.screen
        assert isinstance(screen, SwapScreen)
        context = s.session
        view = context.swaps.session.view
        await s.press("enter")
        await s.on(ConfirmScreen)

        async def _late(*args):
            while "OFFLINE" not in {row.vdev.state for row in context.frame.rows}:
                await asyncio.sleep(0.01)
            return await view(*args)

        context.swaps.session.view = _late
        looking = asyncio.create_task(screen.read())
        await s.press("right", "enter")
        await looking
        await s.settled()
        said = [entry.text for entry in s.store_new().log if entry.step == "offline"]
        assert "not needed" not in said
        assert len(said) == 1


async def test_the_first_sample_with_the_replacing_vdev_ends_the_step_however_long_a_look_takes():
    """It once stayed at Replace for 25 s: a slow check had judged the pool as of its start."""
    async with swapping() as s:
        await s.to_pull()
        await s.pull("Slot 07")
        await s.insert(s.swap.hands.drawer()[0].rpartition(" ")[2], "Slot 07")
        screen, context = s.app.screen, s.session
        assert isinstance(screen, SwapScreen)
        view, before = context.swaps.session.view, screen.stage
        assert before is not None
        assert before.step == "replace"

        async def _slow(*args):
            if any(row.vdev.kind == "replacing" for row in context.frame.rows):
                await asyncio.Event().wait()
            return await view(*args)

        context.swaps.session.view = _slow
        await s.press("enter")
        await s.on(ConfirmScreen)
        await s.press("right", "enter")
        await wait_for(s, lambda: "Started." in s.screen)
        await s.press("escape")
        s.feed.step(1.0)
        await wait_for(s, lambda: "Wait until" in s.screen)
        context.swaps.stages[screen.checklist.id] = before
        (line,) = context.swaps.shown(context.frame)
        note = context.look.text(line.activity.note)
        assert note == "Slot 07: Wait for the resilver  (C continues)"


async def wait_for(s: Swapping, seen: Callable[[], bool]) -> None:
    """Wait until ``seen`` returns true, for at most half a minute."""
    for _ in range(3000):
        await s.rest()
        if seen():
            return
        await s.pilot.pause(0.01)
    raise AssertionError(s.screen)


async def test_another_swap_is_begun_on_another_row_or_with_a_key_where_the_disk_has_two_pools():
    async with swapping() as s:
        await s.begin()
        await s.at_another()
        await s.pick("Begin another")
        shown = await s.read(s.on(ConfirmScreen))
        assert "SWAP Slot 01" in shown
        assert "shows no errors" in shown
        await s.press("escape")
        assert "Begin another" in await s.read(s.on(PickScreen))
        await s.press("escape")
        assert len(s.app.screen_stack) == 1
        await s.press("C")
        await s.pick("Continue: ")
        await s.on(SwapScreen)
        assert "No other pool needs a swap here" in await s.read(s.press("n"))
        assert "n other pool" not in s.screen
        await s.do("X")
        screen = s.app.screen
        assert isinstance(screen, SwapScreen)
        assert screen.stage is not None
        then = SwapDisk("d", str(next(iter(s.feed.world.pools[0].leaves())).guid), "tank")
        screen.stage = replace(screen.stage, then=(then,))
        await s.press("n")
        assert "SWAP Slot 01" in await s.read(s.on(ConfirmScreen))


async def test_a_suspended_pool_is_said_first_and_no_swap_can_be_begun_and_then_it_is_cleared():
    async with swapping(scenario="suspended") as s:
        s.feed.step(60.0)
        await s.settled()
        shown = await s.read(s.choose())
        assert "backup IS SUSPENDED: bring Slot 04 back, then clear it" in shown.splitlines()[0]
        assert "Begin" not in shown.splitlines()[-2]
        assert "Pull" not in shown
        await s.press("right", "enter")
        await s.settled()
        assert not s.swap.make_store(False).read()
        s.feed.step(120.0)
        await s.settled()
        assert "backup IS SUSPENDED: its disks are there: clear it" in await s.read(s.choose())


async def test_the_time_is_still_told_once_a_resilver_took_the_place_of_the_last_scrub():
    async with swapping(scenario="failed-disk") as s:
        shown = await s.read(s.choose())
        assert "Time: one resilver, about 9h18m: estimated from the last" in shown
        await s.press("right", "enter")
        await s.on(SwapScreen)
        await s.pass_by()
        await s.do()
        await s.do("X", word=GIVE_UP)
        await s.press("escape")
        await s.pass_by()
        shown = await s.read(s.choose())
        assert "Its replacement by" in shown
        assert "in all, and it runs already:" in " ".join(shown.split())


async def test_of_a_replacement_that_runs_the_time_left_is_that_of_the_main_screen():
    async with swapping(scenario="resilver") as s:
        for seconds in range(10, 130, 10):
            s.feed.step(float(seconds))
        await s.settled()
        shown = await s.read(s.choose())
        view = s.app.view_state.frame.scan
        assert f"Time: {duration(view.estimate.eta)} left of the resilver that runs" in shown


async def test_beside_a_checkpoint_only_that_is_spoken_of():
    async with swapping((80, 24), scenario="not-restored") as s:
        shown = await s.read(s.choose())
        assert "tank HAS A CHECKPOINT: discard it first" in shown
        assert "zpool checkpoint -d tank" in shown
        assert "Check first" not in shown
        assert "Begin" not in shown


def two_failing(s: Swapping) -> None:
    """Give a second disk errors, and add two free disks."""
    world = s.feed.world
    leaf = next(x for x in world.pools[0].leaves() if slot_name(x.slot) == "Slot 08")
    leaf.reads.errors = 12.0
    s.swap.hands.insert(0, "Slot 11")
    world.pools[0].host.shelf = [*world.pools[0].host.shelf, fresh()]
    s.feed.step()


async def at_once(s: Swapping) -> str:
    """Press C, choose all devices, then the plan; returns the screen."""
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
    """Return the devices that can be swapped, some time later."""
    s.feed.step(seconds)
    await s.settled()
    await s.press("C")
    return await s.read(s.on(PickScreen))


async def test_all_at_once_begins_a_checklist_for_each_which_leads_to_its_old_disk():
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
        assert not s.swap.make_store(False).read(), "the plan was only read"
        await at_once(s)
        shown = await s.read(s.pass_by())
        assert "Wait until" in shown
        kept = s.swap.make_store(False).read()
        assert sorted(c.old.bay for c in kept) == ["Slot 07", "Slot 08"]
        assert all(c.new is not None and c.at == "resilver" for c in kept[:1])
        await s.seen("Switch on the light of Slot 07")
        assert "Pull Slot 07" in await s.read(s.do())
        assert "Switch off the light" in await s.read(s.pull("Slot 07"))
        await s.press("escape")
        other = next(c for c in s.swap.make_store(False).read() if c.old.bay == "Slot 08")
        assert other.new is not None
        await s.to(other.new.serial)
        await s.press("C")
        assert "SWAP Slot 08" in await s.read(s.on(SwapScreen))
        assert "Switch on the light of Slot 08" in await s.read(s.pass_by())


async def test_disks_that_are_being_replaced_all_get_a_checklist_with_one_key(monkeypatch):
    async with swapping() as s:
        two_failing(s)
        host = s.feed.world.pools[0].host
        free, host.shelf = host.shelf, []
        s.feed.step()
        await s.settled()
        await s.press("C")
        await s.pick("Replace all 2 at once: not now")
        await s.settled()
        assert isinstance(s.app.screen, PickScreen), "what cannot be done now is not picked"
        assert any("free disks needed" in message.message for message in s.app.messages)
        await s.press("escape")
        host.shelf = free
        s.feed.step()
        await s.settled()
        await at_once(s)
        s.swap.make_store(True).memory.clear()
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


async def test_of_several_disks_those_with_a_bad_cable_are_checked_first_and_esc_leads_back(
    monkeypatch,
):
    """When one of two devices had recovered meanwhile, its plan came back after every Esc."""
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
        await s.press("escape")
        await s.on(PickScreen)
        await s.press("escape")
        await s.resize((80, 24))
        shown = await listed(s, 1.0)
        (cursor,) = (line for line in shown.splitlines() if line.startswith("›"))
        await s.press("j", "enter")
        await s.on(ConfirmScreen)
        await s.press("escape")
        back = await s.read(s.on(PickScreen))
        assert "SWAP  2 devices have errors" in back
        (again,) = (line for line in back.splitlines() if line.startswith("›"))
        assert again != cursor
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
        assert "Replace the one not being replaced yet, with a checklist for each" in shown
        assert "one after the other: Slot 03, then Slot 06" in shown


async def test_a_pool_that_goes_while_its_disk_is_asked_is_planned_for_as_it_was_seen(monkeypatch):
    view = SwapSession.view

    async def _gone(self, pool, disk=None):
        return None if disk is not None else await view(self, pool)

    async with swapping() as s:
        monkeypatch.setattr(SwapSession, "view", _gone)
        assert "Slot 07" in await s.read(s.choose())
