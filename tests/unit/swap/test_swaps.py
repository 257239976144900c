"""Swaps that take an unusual course; the usual ones are cases of the lock (plans/swap)."""

from __future__ import annotations

import pytest

from tests.unit.swap.playing import EMPTY, NEW, OLD, SMALL, Play, fresh
from zconsole.pool.redundancy import redundancy
from zconsole.sim import commands, lifecycle
from zconsole.sim.disk import FAULTED, Leaf
from zconsole.sim.source import World
from zconsole.swap.disk import PULL_FIRST, REPLACE_FIRST, SPARE_FIRST
from zconsole.swap.steps import listed

pytestmark = pytest.mark.slow


def test_a_new_disk_in_a_free_bay_is_filled_before_the_old_one_is_pulled(play: Play):
    play.begin(REPLACE_FIRST)
    play.hands.insert(SMALL, "Slot 12")
    waits = play.look().waits
    assert waits == "a disk that fits in Slot 11, or in Slot 12 once this one is out"
    play.guide.close(play.now)
    assert play.begin(REPLACE_FIRST).title == "Insert the new disk into Slot 11"
    play.hands.insert(NEW, EMPTY)
    assert play.look().step == "replace"
    play.hands.pull(EMPTY)
    assert play.look().step == "insert"
    play.hands.insert(len(play.hands.drawer()) - 1, EMPTY)
    play.look()
    assert play.do().step == "resilver"
    play.until("pull")
    play.hands.pull(OLD)
    assert play.look().step == "scrub"


def test_a_wrong_disk_is_noticed_while_a_new_one_is_awaited(play: Play):
    play.begin(REPLACE_FIRST)
    play.hands.pull("Slot 06")
    assert play.look().title.startswith("WRONG DISK: put Slot 06")


def test_a_new_disk_may_still_be_put_into_the_bay_of_the_old_one(play: Play):
    play.begin(REPLACE_FIRST)
    play.hands.pull(OLD)
    assert not any("Leave" in text for text in play.look().text)
    play.hands.insert(NEW, OLD)
    play.look()
    assert play.do().text == ("Pull nothing until it ends.",)
    assert play.until("scrub").step == "scrub"


@pytest.mark.parametrize("offline", [False, True])
def test_a_new_disk_that_appears_before_the_pull_is_offered_to_go_on_with(play: Play, offline):
    play.begin(PULL_FIRST)
    if offline:
        play.do()
    play.hands.insert(SMALL, "Slot 12")
    assert [answer.name for answer in play.look().answers] == ["pulled"] * offline
    play.hands.insert(NEW, EMPTY)
    stage = play.answer("use-now")
    if offline:
        assert stage.title.startswith(f"Put {OLD}")
        stage = play.do()
    assert stage.step == "replace"
    assert stage.title.startswith(f"Replace {OLD}")
    assert "offline" not in listed(play.checklist, stage.step)
    play.do()
    play.until("pull")
    play.hands.pull(OLD)
    assert play.look().step == "scrub"


def test_an_old_disk_that_somebody_replaced_before_its_pull_is_still_pulled(play: Play):
    play.begin(PULL_FIRST)
    play.hands.insert(NEW, EMPTY)
    play.replaced_elsewhere()
    assert play.look().step == "resilver"
    assert play.until("pull").title.startswith(f"Pull {OLD}")


@pytest.mark.parametrize("filling", [False, True])
def test_an_old_disk_that_somebody_replaced_before_the_spare_stands_in_is_still_pulled(
    play: Play, filling
):
    play.pool.spares.append(fresh())
    play.begin(SPARE_FIRST)
    if filling:
        play.do()
    play.hands.insert(NEW, EMPTY)
    play.replaced_elsewhere()
    assert play.look().step == "resilver"
    assert play.until("pull").title.startswith(f"Pull {OLD}")
    play.hands.pull(OLD)
    assert play.until("scrub").plan is not None


def test_of_a_further_disk_that_somebody_puts_in_the_checklist_goes_on(play: Play):
    play.pulled()
    play.hands.insert(NEW, OLD)
    play.look()
    play.do()
    first, host = play.checklist.new, play.pool.host
    model = next(leaf.model for leaf in play.pool.leaves() if leaf.serial == first.serial)
    third = Leaf("", "", 77, model, "sdz1", devid=f"{model.name}_THIRD77").named_by("")
    host.drawer = [third]
    play.hands.insert(0, next(bay for bay, disk in play.hands.bays().items() if not disk))
    commands.replace(play.pool, play.checklist.old.key, third.path)
    assert play.look().step == "resilver"
    assert play.checklist.new != first
    assert play.checklist.new.serial == third.serial
    play.until("scrub")


@pytest.mark.parametrize("seen", [False, True])
def test_somebody_may_replace_before_or_after_the_new_disk_was_seen(play: Play, seen: bool):
    play.inserted()
    if seen:
        play.look()
    play.replaced_elsewhere()
    assert play.look().step == "resilver"
    assert any("started elsewhere" in entry.text for entry in play.checklist.log) != seen
    play.until("scrub")


def test_a_wrong_disk_is_noticed_in_a_pool_that_got_another_name(play: Play):
    play.offline()
    play.pool.name = "bowl"
    play.look()
    play.hands.pull("Slot 06")
    assert play.look().alarm
    assert play.checklist.pool == "bowl"


def test_a_scrub_that_is_canceled_is_told_as_such(play: Play):
    play.offline()
    play.exchanged()
    play.do()
    play.wait(5.0)
    play.look()
    commands.scrub(play.pool, "stop")
    play.wait(20.0)
    assert play.look().text[-1] == "The scrub was canceled before its end."


def test_the_steps_of_the_plan_are_those_of_the_checklist(play: Play):
    for lights in (False, True):
        play.lights = lights
        for mode in (REPLACE_FIRST, PULL_FIRST):
            choice = play.choice()
            (steps,) = (listed(choice.checklist(way)) for way in choice.ways if way.mode == mode)
            stage = play.begin(mode)
            assert steps == listed(play.checklist, stage.step)
            assert ("light-off" in steps) == lights
            assert "return-spare" not in steps
            play.guide.close(play.now)


def test_the_steps_with_a_hot_spare_return_it(play: Play):
    play.pool.spares.append(fresh())
    choice = play.choice()
    (steps,) = (listed(choice.checklist(way)) for way in choice.ways if way.mode == SPARE_FIRST)
    play.begin(SPARE_FIRST)
    assert "return-spare" in steps
    assert "return-spare" in listed(play.checklist, "spare")


def test_a_disk_that_left_the_pool_by_its_replacement_is_not_taken_offline(play: Play):
    play.hands.insert(NEW, EMPTY)
    choice = play.choice()
    assert choice.way.mode == REPLACE_FIRST
    assert "offline" not in listed(choice.checklist(choice.way))
    play.offline()
    play.until("pull")
    assert "offline" not in listed(play.checklist, "pull")
    assert not any(entry.text == "not needed" for entry in play.checklist.log)


def test_a_faulted_disk_is_not_said_to_count_for_redundancy(play: Play):
    lifecycle.lose(play.pool, play.leaf(), FAULTED, aux=11)
    play.hands.insert(NEW, EMPTY)
    play.begin(REPLACE_FIRST)
    assert "ZFS doesn't read from it" in play.do().text[0]


def test_a_disk_whose_resilver_waits_for_another_one_does_not_show_that_as_its_own():
    play = Play(World("second-replace", 1))
    play.wait(60.0)  # by now the second disk is also being replaced
    stage = play.begin(REPLACE_FIRST, "Slot 06")
    assert stage.step == "resilver"
    assert stage.deferred
    assert stage.waits.startswith("its own resilver, which starts after the running one (resilver")


def test_a_disk_that_is_being_repaired_itself_counts_no_more_than_the_pool_says(play: Play):
    play.leaf().error_rate = (7200.0, 0.0, 0.0, 0.0)  # a read fails within the first second
    play.hands.insert(NEW, EMPTY)
    play.begin(REPLACE_FIRST)
    assert "it is still read" in play.do().text[0]
    ((_, left),) = redundancy(play.view().situation.pool)
    assert left.left == 1
