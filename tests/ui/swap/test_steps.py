"""The steps of a checklist as the console lists them."""

from __future__ import annotations

from tests.ui.drawn import LOOK, text
from tests.unit.swap.playing import NEW, OLD, Play
from zconsole.sim import commands
from zconsole.swap.checklist import PULL_FIRST, Checklist, SwapStage
from zconsole.swap.disk import SwapDisk
from zconsole.ui.swap.swap_lines import listed_steps, swap_lines


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
    assert states(play)["Save the report"] == "current"


def test_a_disk_that_is_pulled_too_early_leaves_taking_it_offline_out():
    play = Play(lights=True)
    assert play.begin().step == "offline"
    play.hands.pull(OLD)
    stage = play.look()
    assert stage.step == "pull"
    assert "is out already" in stage.title
    assert "nothing was taken offline" in stage.text[0]
    assert states(play)["Take the old disk offline"] == "left out"
    assert any(entry.text == "not needed: it is out already" for entry in play.checklist.log)
    assert play.answer("pulled").step == "insert"
    play.hands.insert(NEW, OLD)
    assert play.look().step == "replace"
    assert states(play)["Take the old disk offline"] == "left out"


def test_a_disk_that_was_pulled_too_early_and_is_put_back_is_pulled_in_its_turn():
    play = Play(lights=True)
    play.begin()
    play.hands.pull(OLD)
    play.look()
    play.hands.insert(len(play.hands.drawer()) - 1, OLD)
    assert play.look().step == "light"
    assert play.do().step == "pull"
    assert states(play)["Find the bay by its light"] == "done"
    play.hands.pull(OLD)
    assert play.look().step == "insert"


def test_the_last_step_is_ticked_once_the_report_is_saved():
    play = Play()
    play.begin()
    play.do()
    play.exchanged()
    stage = play.answer("no-scrub")
    assert stage.over
    assert states(play)["Scrub"] == "left out"
    steps = listed_steps(play.checklist, stage.step)
    assert steps[-1].state == "current"
    steps = listed_steps(play.checklist, stage.step, filed=True)
    assert steps[-1].state == "done"


def test_a_scrub_that_was_canceled_is_not_ticked():
    play = Play()
    play.begin()
    play.do()
    play.exchanged()
    play.do()
    play.wait(20.0)
    play.look()
    commands.scrub(play.pool, "stop")
    play.wait(20.0)
    assert play.look().over
    assert states(play)["Scrub"] == "left out"


def test_the_history_has_a_date_where_the_day_changes():
    begun, day = 1_800_000_000.0, 86_400.0
    c = Checklist("0", "tank", None, begun, SwapDisk("sda"), "mirror-0", PULL_FIRST)
    for t in (begun, begun + 1.0, begun + day):
        c = c.noting(t, "scrub", "looked at")
    said = text(swap_lines(c, SwapStage("report", "Save the report", over=True), (), LOOK, 80))
    lines = [line.strip() for line in said.partition("What happened")[2].splitlines()[1:]]
    first, then = LOOK.day(begun), LOOK.day(begun + day)
    assert first != then
    assert [line in (first, then) for line in lines] == [True, False, False, True, False]
