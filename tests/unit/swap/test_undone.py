"""Every step has a way back, or is announced as final."""

from __future__ import annotations

import pytest

from tests.unit.swap.playing import NEW, OLD, Play
from zconsole.swap.stage import SwapStage
from zconsole.swap.steps import STEPS, WAYS


def test_every_step_has_an_inverse_or_is_final():
    acting = {step for way in WAYS.values() for step in way.steps}
    assert all(STEPS[name].undo or STEPS[name].final for name in acting)
    assert set(STEPS) - acting == {"explain", "report"}


def test_no_way_back_is_told_of_a_step_that_cannot_be_taken_now(play: Play):
    play.begin()
    play.hands.pull("Slot 06")
    stage = play.answer("meant")
    assert stage.plan.refused
    assert stage.undo is None


def follows(play: Play, step: str) -> SwapStage:
    """Return the stage after ``step``, which must announce its way back, or that it has none."""
    stage = play.look()
    assert stage.step == step
    assert stage.undo or stage.final
    return play.do()


@pytest.mark.slow
def test_back_undoes_what_was_announced():
    play = Play(lights=True)
    play.begin()
    stage = follows(play, "offline")
    assert stage.back.text.endswith("online again")
    stage = follows(play, "light")
    assert stage.back.text == "switch the light off"
    assert stage.undo, "that of the pull"
    play.hands.pull(OLD)
    stage = play.look()
    assert stage.back.text.startswith("put the old disk")
    assert f"back into {OLD}:" in stage.back.text
    assert stage.undo
    play.hands.insert(NEW, OLD)
    stage = follows(play, "replace")
    assert stage.back.text.startswith("detach")
    assert stage.final
    play.until("light-off")
    stage = follows(play, "light-off")
    assert stage.back.text == "switch the light on again"
    assert play.back().step == "light-off"
    follows(play, "light-off")
    stage = follows(play, "scrub")
    assert stage.back.text == "stop the scrub"


@pytest.fixture
def scrubbing(play: Play) -> Play:
    """Return a swap whose scrub is running."""
    play.offline()
    play.exchanged()
    play.do()
    play.wait(20.0)
    return play


@pytest.mark.slow
def test_a_scrub_that_is_stopped_is_offered_again(scrubbing: Play):
    stage = scrubbing.back()
    assert stage.plan is not None
    assert stage.title == "Scrub tank"
    assert [e.result for e in scrubbing.checklist.log if e.step == "scrub"] == ["started", "done"]
    assert scrubbing.answer("no-scrub").over
    assert "still ran" not in " ".join(scrubbing.look().text)


def test_the_old_disk_that_is_put_online_can_be_taken_offline_again(play: Play):
    play.inserted(2)
    stage = follows(play, "replace")
    assert stage.step == "resilver"
    assert stage.back.text.endswith("offline again")
    assert play.back().step == "replace"
