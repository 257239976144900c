from __future__ import annotations

from tests.unit.swap.playing import OLD, Play


def dark() -> Play:
    """A shelf whose bays have no lights, before the pull."""
    play = Play()
    play.begin()
    play.do()
    return play


def test_a_disk_whose_bay_has_no_light_is_found_by_its_serial_number():
    stage = dark().look()
    assert (stage.step, stage.title) == ("pull", "Pull Slot 07 (serial RGYCXAL5)")
    assert stage.text[:3] == (
        "The bay has no light that can be switched.",
        "Its label says serial RGYCXAL5, WDC_WD40EFRX-68N32N0.",
        "The serial number stands on its label after S/N or SN, beside a bar code.",
    )


def test_a_bay_without_a_light_has_no_step_for_it():
    play = Play()
    choice = play.choice()
    planned = choice.steps(choice.ways[0])
    stage = play.begin()
    assert planned == play.checklist.listed(stage.step)
    assert not {"light", "light-off"} & {*planned}


def test_a_disk_pulled_while_it_is_looked_for_is_the_pull_that_was_waited_for():
    play = dark()
    assert play.look().step == "pull"
    play.hands.pull(OLD)
    assert play.look().step == "insert"
    assert not play.checklist.was_gone
