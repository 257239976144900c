"""The steps of a checklist as the console lists them."""

from __future__ import annotations

from tests.unit.swap.playing import Play
from zconsole.ui.swap.steps import listed_steps


def states(play: Play) -> dict[str, str]:
    stage = play.look()
    return {step.words: step.state for step in listed_steps(play.checklist, stage.step)}


def test_a_wrong_pull_ticks_nothing_that_was_not_done():
    play = Play()
    play.begin()
    play.hands.pull("Slot 06")
    assert set(states(play).values()) == {"current", "to come"}


def test_giving_up_ticks_nothing_that_was_not_done():
    play = Play()
    play.begin()
    play.do()
    assert play.guide is not None
    play.guide.close(play.now, ("something",))
    assert [words for words, state in states(play).items() if state == "done"] == [
        "Take the old disk offline"
    ]
    assert states(play)["File the report"] == "current"
