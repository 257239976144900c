"""The screen of a checklist; a console that may not act."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tests.ui.swap.steps import Swapping, swapping
from tests.worlds import world_of
from zconsole.actions.facts import MachineFacts
from zconsole.actions.plan import Facts
from zconsole.pool.model import Pool, SampleFailure
from zconsole.sim.backends.swap import simulated_swap
from zconsole.swap.disk import PULL_FIRST
from zconsole.swap.steps import WAYS
from zconsole.swap.store import SwapBackend, SwapStore
from zconsole.timeline.alerts.rules import Alert
from zconsole.timeline.feed import Update
from zconsole.ui.dialogs.confirm import ConfirmScreen
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.swap.swap_screen import SwapScreen
from zconsole.ui.widgets.lines_view import LinesView


def kept_in(tmp_path) -> SwapBackend:
    """Return a backend with checklists in a directory, as on a real machine."""
    return SwapBackend(
        lambda leads: SwapStore(tmp_path if leads else None, (tmp_path,)),
        simulated_swap(world_of("swap")).smart_of,
    )


async def begun(s: Swapping) -> None:
    """Begin a swap, and leave its screen."""
    await s.begin()
    await s.press("escape")
    await s.settled()


async def test_a_read_only_console_shows_the_ways_and_begins_nothing():
    async with swapping(read_only=True) as s:
        shown = await s.read(s.choose())
        assert "Unavailable" in shown
        assert "Begin" not in shown
        await s.press("right", "enter", "escape")
        assert s.swap.make_store(False).read() == ()


async def test_a_read_only_console_shows_an_open_checklist_and_does_not_lead_it(tmp_path):
    backend = kept_in(tmp_path)
    async with swapping(backend=backend) as s:
        await begun(s)
    async with swapping(backend=backend, read_only=True) as s:
        await s.press("C")
        shown = await s.read(s.on(SwapScreen))
        assert "Watching only: read-only." in shown
        assert "see the plan" not in shown
        await s.press("enter")
        plan = await s.read(s.on(ConfirmScreen))
        assert "To run by hand" in plan
        assert SwapStore(tmp_path, (tmp_path,)).leads(s.store_new().id)


async def test_a_fault_of_the_configuration_blocks_it():
    async with swapping(fault="theme: no such theme") as s:
        assert "theme: no such theme" in await s.read(s.choose())
        assert "Begin" not in s.screen


async def test_a_second_console_sees_the_checklist_and_does_not_act(tmp_path):
    backend = kept_in(tmp_path)
    async with swapping(backend=backend) as s:
        await begun(s)
        other = SwapStore(tmp_path, (tmp_path,))
        name = other.read()[0].id
        assert other.leads(name)
        await s.press("C")
        shown = await s.read(s.on(SwapScreen))
        assert "another console leads this checklist" in shown
        shown = await s.read(s.press("enter"))
        assert "watching only" in shown
        assert not isinstance(s.app.screen, ConfirmScreen)
        other.close()
        assert "You only watch" not in await s.read(s.pass_by())


async def test_a_device_that_is_not_guided_shows_the_manual_steps():
    async with swapping() as s:
        pool = s.feed.world.pools[0]
        leaf = next(leaf for leaf in pool.leaves() if leaf.slot == 3)
        leaf.kind = "file"
        s.feed.step()
        await s.settled()
        await s.to("ZWZJRW70")
        shown = await s.read(s.choose())
        assert "not guided" in shown
        assert "By hand" in shown
        assert "Begin" not in shown


async def test_the_key_that_gives_up_is_in_sight_at_every_step_on_a_narrow_screen():
    async with swapping((80, 24)) as s:
        seen = []

        async def _looked() -> None:
            *_, last = (await s.read(s.settled())).splitlines()
            assert "X give up" in last
            seen.append(s.app.screen.stage.step)

        await s.begin()
        await _looked()
        for _ in range(2):
            await s.do()
            await _looked()
        await s.pull("Slot 07")
        await _looked()
        await s.insert(s.swap.hands.drawer()[0].rpartition(" ")[2], "Slot 07")
        await _looked()
        await s.do()
        await _looked()
        await s.seen("Switch off the light of Slot 07")
        await _looked()
        await s.do()
        await _looked()
        assert "The last scrub took 1m30s." in s.screen
        await s.do()
        assert "the scrub of tank finished" not in await s.seen("The scrub finished with 0")
        assert seen == [*WAYS[PULL_FIRST].steps[:6], "light-off", "scrub"]


async def test_keys_are_in_the_help_and_say_why_where_they_do_nothing():
    async with swapping(size=(100, 50)) as s:
        await s.begin()
        shown = await s.read(s.press("question_mark"))
        assert "give up this swap, after asking" in shown
        assert "Demo's hands" in shown
        await s.press("escape", "H")
        shown = await s.read(s.on(ConfirmScreen))
        assert "Switch the light of Slot 07 on" in shown
        assert "ithout it" not in shown, "nothing is said of the disk"
        await s.press("escape")
        assert "Nothing to confirm here." in await s.read(s.press("Y"))
        await s.do()
        await s.do()
        assert "Waiting for" in await s.read(s.press("j"))
        await s.pull("Slot 07")
        assert "Still waiting for: a disk in Slot 07." in await s.read(s.press("enter"))
        assert "Put the old disk (serial RGYCXAL5) back into Slot 07" in " ".join(
            (await s.read(s.press("Z"))).split()
        )


async def test_the_footer_says_what_each_key_does_now():
    """ "Z undo" was another thing at each step, and "Enter do it" only showed a plan."""
    async with swapping((80, 24)) as s:

        async def footer() -> str:
            return (await s.read(s.settled())).splitlines()[-1]

        await s.begin()
        assert footer_keys(await footer()) == {"Enter": "see the plan", "Z": ""}
        await s.do()
        assert footer_keys(await footer()) == {"Enter": "see the plan", "Z": "put online"}
        await s.do()
        assert footer_keys(await footer()) == {"Enter": "", "Z": "light off"}
        await s.pull("Slot 07")
        assert footer_keys(await footer()) == {"Enter": "", "Z": "put back"}
        await s.insert(s.swap.hands.drawer()[0].rpartition(" ")[2], "Slot 07")
        await s.do()
        assert footer_keys(await footer()) == {"Enter": "", "Z": "detach"}
        await s.seen("Switch off the light")
        assert footer_keys(await footer()) == {"Enter": "see the plan", "Z": ""}
        await s.do()
        assert footer_keys(await footer()) == {"Enter": "see the plan", "Z": "light on"}
        await s.do()
        assert footer_keys(await footer()) == {"Enter": "", "Z": "stop scrub"}


async def test_a_narrow_footer_keeps_the_key_that_the_headline_of_an_alarm_asks_for_first():
    async with swapping((60, 24)) as s:
        await s.to_pull()
        shown = await s.read(s.pull("Slot 08"))
        assert "put Slot 07" in " ".join(shown.split())
        assert s.app.screen.stage.back.plan is not None
        assert "Z put online" in await s.read(s.settled())


async def test_how_far_time_is_skipped_is_said_before_the_key_is_pressed():
    async with swapping((80, 24)) as s:
        await s.begin()
        assert "f skip 1h00m" in await s.read(s.settled())
        await s.do()
        await s.do()
        await s.pull("Slot 07")
        await s.insert(s.swap.hands.drawer()[0].rpartition(" ")[2], "Slot 07")
        await s.do()
        assert "f skip to its end" in await s.read(s.settled())


async def test_a_word_to_type_is_said_beside_the_key_that_asks_for_it():
    async with swapping((120, 50)) as s:
        await s.to_pull()
        assert 'compared its label (then type "pulled")' in await s.read(s.settled())


def footer_keys(footer: str) -> dict[str, str]:
    """Return the labels of two keys in a footer, empty where a key is not offered."""
    parts = dict(part.split(" ", 1) for part in footer.strip().split("  "))
    return {key: parts.get(key, "") for key in ("Enter", "Z")}


async def test_the_light_is_switched_off_and_on_and_a_pull_that_nothing_shows_is_asked_for():
    async with swapping() as s:
        await s.to_pull()
        assert "Switch on the light" in await s.read(s.do("H"))
        assert "Pull Slot 07" in await s.read(s.do("H"))
        assert s.store_new().lit
        assert "Insert the new disk into Slot 07" in await s.read(s.do("Y", word="pulled"))


async def test_a_suspended_pool_is_looked_at_though_it_gives_no_sample():
    async with swapping() as s:
        await s.to_pull()
        frame = s.session.frame
        screen = s.app.screen
        screen._again()
        stuck = SampleFailure("tank", frame.t + 1, 1.0, "not asked", kstat="SUSPENDED", began=1.0)
        s.feed.queue.put_nowait(Update((replace(frame, failure=stuck),), s.feed.capabilities))
        await s.rest()
        screen._again()
        assert "tank is suspended" in await s.read(s.settled())


class SlowFacts:
    """Facts of a machine whose disks take long to read while ``answers`` is not set."""

    def __init__(self, facts: MachineFacts) -> None:
        self._facts = facts
        self.asked = 0
        self.answers = asyncio.Event()
        self.answers.set()

    async def __call__(self, pool: Pool, suspended: bool, paths: tuple[str, ...] = ()) -> Facts:
        self.asked += 1
        await self.answers.wait()
        return await self._facts(pool, suspended, paths)

    async def guid(self, pool: str) -> str | None:
        return await self._facts.guid(pool)


async def test_looks_do_not_queue_up_behind_a_slow_one():
    async with swapping() as s:
        slow = SlowFacts(s.backend.ask)
        s.use(replace(s.backend, ask=slow))
        await s.begin()
        screen = s.app.screen
        assert isinstance(screen, SwapScreen)
        slow.answers.clear()
        slow.asked = 0
        for _ in range(5):
            screen.look_again()
            await s.rest()
        assert slow.asked == 1
        slow.answers.set()
        await s.settled()
        assert 1 < slow.asked < 5, "those asked for meanwhile are one"


async def test_a_console_of_some_pools_only_leads_through_no_swap():
    async with swapping(pools=("tank",)) as s:
        await s.press("C")
        await s.until(lambda: bool(list(s.app.messages)))
        assert "start zconsole without pool names" in next(iter(s.app.messages)).message


async def test_the_key_comes_first_where_a_device_has_errors_and_an_alert_names_it():
    async with swapping((60, 15)) as s:
        assert "C Change disk  A Actions  S Scrub" in s.screen.splitlines()[-1]
        (frame,) = s.app.view_state.frames
        alert = Alert("device-error", "tank", frame.t, "sdg: 1 new error", "error")
        s.feed.queue.put_nowait(Update((frame,), s.feed.capabilities, (alert,)))
        await s.until(lambda: bool(list(s.app.messages)))
        said = next(iter(s.app.messages)).message
        assert said == "tank: sdg: 1 new error. C leads through changing the disk"


async def test_a_shelf_without_hands_offers_none():
    async with swapping() as s:
        s.session.swaps.machine_swaps = replace(s.swap, hands=None)
        await s.begin()
        assert "Demo's hands" not in s.screen
        assert "Key O does nothing here" in await s.read(s.press("O"))


async def test_every_new_step_starts_at_its_top_and_only_the_newest_lapse_of_time_is_told():
    async with swapping((60, 15)) as s:
        await s.begin()
        view = s.app.screen.query_one("#text", LinesView)
        await s.press("pagedown")
        assert view.scroll_offset.y
        await s.pass_by()
        assert view.scroll_offset.y  # a refresh must not scroll back
        await s.do()
        assert view.scroll_offset.y == 0
        assert "light of Slot 07" in s.screen
        s.app.answer("time passes: 5m00s", 60)
        await s.press("f")
        told = [each.message for each in s.app.messages if "time passes" in each.message]
        assert told == ["nothing runs; time passes: 1h00m"]


async def test_a_message_outlasts_the_step_it_came_with_but_not_the_next_one(monkeypatch):
    """ "Slot 07 is offline" stood below the steps in which its disk was pulled and replaced."""
    monkeypatch.setattr("zconsole.ui.swap.swap_screen.PAGE", 600.0)
    async with swapping((80, 40)) as s:
        await s.begin()
        for said in ("read before", "new"):
            s.app.notify(said, timeout=6000)
        s.app.messages.settle(s.app.screen, float("inf"))
        s.app.messages.said[1].begun -= 600
        await s.do()
        assert [each.message for each in s.app.messages if each.screen] == ["new"]
        await s.pass_by()
        assert [each.message for each in s.app.messages if each.screen] == ["new"]
        await s.do()
        assert not [each for each in s.app.messages if each.message == "new"]


async def test_the_key_of_an_answer_says_which_and_the_line_about_scrolling_does_not_keep_itself():
    async with swapping((80, 24)) as s:
        await s.to_pull()
        assert "Y done" in s.screen
        shown = await s.read(s.pull("Slot 08"))
        assert "Y disk stays out" in shown
        assert "Y done" not in shown
        await s.resize((80, 26))
        screen = s.app.screen
        assert isinstance(screen, SwapScreen)
        for said in ("", "", "a message that has left again", ""):
            screen._say(said)
            await s.settled()
            assert said or "scroll" not in s.screen


async def test_what_z_does_afterwards_is_not_tried_now_and_an_answer_goes_with_its_step(
    tmp_path, monkeypatch
):
    """Z was tried at once, as it was said to act until the resilver ends."""
    monkeypatch.chdir(tmp_path)
    async with swapping((80, 24)) as s:
        await s.begin("Replace first")
        screen = await s.read(s.insert(s.swap.hands.drawer()[0].rpartition(" ")[2], "Slot 11"))
        assert "Afterwards, until the resilver ends: Z" in screen
        assert "nothing to undo here" in await s.read(s.press("Z"))
        screen = await s.read(s.press("r"))
        assert "Report saved" in await s.read(s.settled())
        assert "✓ Save the report" not in s.screen, "it is the last step, and still to come"
        s.app.screen._say("of the step before")
        await s.do()
        await s.until(lambda: s.app.screen.stage.step == "resilver")
        assert "of the step before" not in s.screen
        screen = await s.seen("Switch on the light of Slot 07")
        assert "The light shows which disk to pull" in screen
        assert "no longer uses" not in screen, "when to pull it is what the checklist says"


async def test_an_old_disk_that_is_said_to_be_out_and_still_shown_is_told_of():
    async with swapping((80, 24)) as s:
        await s.begin("Replace first")
        await s.insert(s.swap.hands.drawer()[0].rpartition(" ")[2], "Slot 11")
        await s.do()
        await s.seen("Switch on the light of Slot 07")
        await s.do()
        still = "The machine still shows Slot 07 (serial"
        assert still not in s.screen
        await s.do("Y", "pulled")
        assert still in s.screen
        assert "Switch off the light" in s.screen
        await s.do()
        assert still in s.screen
        assert "If it is still in, pull it" in " ".join(s.screen.split())
        assert still in await s.read(s.do("Y")), "at the end as well"
        await s.pull("Slot 07")
        assert still not in await s.read(s.pass_by(2.0))


async def test_esc_in_the_choice_of_a_bay_goes_back_to_the_choice_of_a_disk():
    async with swapping((80, 24)) as s:
        await s.begin()
        await s.press("I")
        await s.on(PickScreen)
        await s.press("j", "enter")
        await s.until(lambda: "into which bay?" in s.screen)
        await s.press("escape")
        await s.until(lambda: "insert which disk" in s.screen)
        assert s.app.screen.view.cursor == 1
        await s.press("escape")
        await s.on(SwapScreen)
