from __future__ import annotations

from tests.records import replace
from tests.unit.swap.playing import OLD, Play
from zconsole.swap.light import blinking_ends, plan_blink


def dark(**fields) -> Play:
    """A shelf whose bays have no lights, before the pull."""
    play = Play(blinks=True, **fields)
    play.begin()
    play.do()
    return play


def test_a_disk_whose_bay_has_no_light_is_made_to_blink():
    play = dark()
    stage = play.look()
    assert (stage.step, stage.title) == ("light", "Make Slot 07 (serial RGYCXAL5) blink")
    assert "It ends after the pull." in stage.text[0]
    stage = play.do()
    assert stage.step == "pull"
    assert any("The disk blinks" in line for line in stage.text)
    assert list(play.led.blinking) == [f"/dev/{play.leaf().disk}"]
    assert not play.checklist.lit


def test_the_blinking_is_listed_like_in_the_plan():
    play = Play(blinks=True)
    choice = play.choice()
    planned = choice.steps(choice.ways[0])
    stage = play.begin()
    assert planned == play.checklist.listed(stage.step)
    assert "light" in planned
    assert "light-off" not in planned


def test_other_busy_disks_are_named_since_blinking_proves_nothing_then():
    play = dark()
    v = replace(play.view(), busy={"sdq": 0.42})
    stage = play.guide.look(v, play.now)
    (warning,) = stage.plan.warnings
    assert warning.startswith("blinking proves nothing now: other disks are busy, too (sdq 42 %)")


def test_a_disk_pulled_while_it_is_looked_for_is_the_pull_that_was_waited_for():
    play = dark()
    assert play.look().step == "light"
    play.hands.pull(OLD)
    assert play.look().step == "insert"
    assert not play.checklist.was_gone


def test_blinking_no_longer_counts_once_its_time_is_over():
    play = dark()
    play.do()
    play.wait(1900.0)
    assert not any("The disk blinks" in line for line in play.look().text)


def test_disks_that_cannot_be_read_for_a_while_leave_no_step_out():
    play = dark()
    play.devices = lambda _: ()
    stage = play.look()
    assert (stage.step, stage.waits) == ("light", "the machine's disks to be read")
    play.devices = lambda found: found
    assert play.look().plan is not None
    assert not any(entry.step == "light" for entry in play.checklist.log)


def test_a_disk_that_has_left_the_pool_blinks_too():
    play = Play(blinks=True)
    play.hands.insert(0, "Slot 11")
    play.begin()
    play.do()
    assert play.until("light").plan is not None
    assert play.do().step == "pull"


def test_a_disk_that_is_gone_can_not_blink():
    play = dark()
    old = play.checklist.old
    play.hands.pull(OLD)
    plan = plan_blink(play.situation(play.pool), old, {})
    assert plan.refused == "the system no longer sees it"
    assert (blinking_ends(old).on, blinking_ends(old).device.node) == (False, old.node)
