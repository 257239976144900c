"""The scan that a checklist waits for, as its screen describes it."""

from __future__ import annotations

from tests.factory import view
from tests.records import replace
from tests.table import rows
from tests.ui.drawn import LOOK, plain, text
from tests.unit.swap.playing import NEW, OLD, Play
from zconsole.pool.model import Scan
from zconsole.sim import commands
from zconsole.swap.disk import PULL_FIRST, Checklist, SwapDisk
from zconsole.swap.stage import SwapStage
from zconsole.timeline.eta.estimate import Estimate, nothing
from zconsole.ui.swap.swap_lines import SIDE_FROM, eta_note, listed_steps, swap_lines
from zconsole.ui.widgets.draw import Span

KNOWN = Estimate(3600.0, 1800.0, 7200.0, "resilvering at 124M/s")
BARE = Estimate(3600.0, None, None, "resilvering at 124M/s")


def said(function: str, step: str, estimate: Estimate = KNOWN, **fields) -> str:
    scan = Scan(function, "running", start=1.0)
    return eta_note(view(scan)._replace(estimate=estimate), SwapStage("Wait", step=step, **fields))


@rows(("function", "step"), [("resilver", "resilver"), ("scrub", "scrub")])
def test_the_end_of_the_scan_that_is_waited_for_has_its_range(function, step):
    assert said(function, step) == f"The {function} ends in about 1h00m (30m00s to 2h00m)."
    assert said(function, step, BARE) == f"The {function} ends in about 1h00m."


def test_before_there_is_an_eta_the_prediction_stands_in():
    scan = view(Scan("resilver", "running", start=1.0))._replace(estimate=nothing("no data"))
    c = Checklist("1", "tank", None, 1.0, SwapDisk("sda"), "raidz2-0", PULL_FIRST)
    known = replace(c, predicted=5400.0, basis="estimated from the last scrub's speed")
    stage = SwapStage("Wait", step="resilver")
    said = "No ETA yet; predicted to take 1h30m in all (estimated from the last scrub's speed)."
    assert eta_note(scan, stage, known) == said
    assert eta_note(scan, stage, c) == ""
    assert eta_note(scan, SwapStage("Pull", step="pull"), known) == ""


def test_a_scrub_that_nobody_waits_for_here_is_not_told_of():
    assert said("scrub", "pull") == ""


def test_a_resilver_beside_the_step_is_called_the_running_one():
    assert said("resilver", "replace", BARE) == "The running resilver ends in about 1h00m."


@rows(
    ("changes", "sooner"),
    [
        ({"wrong": (SwapDisk("sdb"),)}, True),
        ({"wrong": (SwapDisk("sdb"),), "at": "resilver"}, False),  # it fills the new disk as well
        ({"same": True, "at": "resilver"}, True),
        ({}, False),
    ],
)
def test_a_resilver_of_what_a_disk_missed_may_end_much_sooner(changes, sooner):
    c = Checklist("1", "tank", None, 1.0, SwapDisk("sda"), "raidz2-0", PULL_FIRST, **changes)
    scan = view(Scan("resilver", "running", start=1.0))._replace(estimate=KNOWN)
    said = eta_note(scan, SwapStage("Wait", step=c.at), c)
    assert said.endswith(", or much sooner: only what the disk missed is written.") == sooner
    assert " ends in about 1h00m (30m00s to 2h00m)" in said


def test_a_resilver_of_other_disks_ends_before_that_of_this_one():
    c = Checklist("1", "tank", None, 1.0, SwapDisk("sda"), "raidz2-0", PULL_FIRST, predicted=5400.0)
    scan, stage = view(Scan("resilver", "running")), SwapStage("", step="resilver", deferred=True)
    for found, when in ((BARE, ", in about 1h00m"), (nothing("no data"), "")):
        told = eta_note(scan._replace(estimate=found), stage, c)
        said = f"This disk's resilver starts after the running one{when}; it takes about 1h30m."
        assert told == said
    assert "starts after the running one, in about" in eta_note(
        scan._replace(estimate=KNOWN), stage, replace(c, predicted=None)
    )


def states(play: Play) -> dict[str, str]:
    stage = play.look()
    return {step.words: step.state for step in listed_steps(play.checklist, stage.step)}


def shown(play: Play, stage: SwapStage) -> str:
    return text(swap_lines(play.checklist, stage, (), LOOK, SIDE_FROM - 1))


@rows("alarm", [True, False])
def test_what_is_wrong_is_read_before_how_long_a_resilver_takes(alarm):
    c = Checklist("1", "tank", None, 1.0, SwapDisk("sda"), "raidz2-0", PULL_FIRST)
    stage = SwapStage("Put sdb back", ("sdb left.",), step="resilver", alarm=alarm)
    said = text(swap_lines(c, stage, [Span("It ends in about 1h00m.")], LOOK, 80))
    assert (said.index("sdb left.") < said.index("It ends in")) == alarm


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
    assert "Take the old disk offline\n     not needed\n" in shown(play, stage)
    assert states(play)["Take the old disk offline"] == "not needed"
    assert any(entry.text == "not needed: it is out already" for entry in play.checklist.log)
    assert play.answer("pulled").step == "insert"
    play.hands.insert(NEW, OLD)
    assert play.look().step == "replace"
    assert states(play)["Take the old disk offline"] == "not needed"


def test_a_pull_before_the_disk_is_offline_once_more_ticks_nothing():
    play = Play()
    play.offline()
    play.back()
    play.hands.pull(OLD)
    play.look()
    assert states(play)["Take the old disk offline"] == "not needed"


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
    assert states(play)["Scrub"] == "skipped"
    assert "Scrub\n     skipped\n" in shown(play, stage)
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
    assert states(play)["Scrub"] == "canceled"


def test_the_history_has_a_date_where_the_day_changes():
    begun, day = 1_800_000_000.0, 86_400.0
    c = Checklist("0", "tank", None, begun, SwapDisk("sda"), "mirror-0", PULL_FIRST)
    for t in (begun, begun + 1.0, begun + day):
        c = c.noting(t, "scrub", "looked at")
    said = text(swap_lines(c, SwapStage("Save the report", step="report", over=True), (), LOOK, 80))
    lines = [line.strip() for line in said.partition("What happened")[2].splitlines()[1:]]
    first, then = LOOK.day(begun), LOOK.day(begun + day)
    assert first != then
    assert [line in (first, then) for line in lines] == [True, False, False, True, False]


def test_the_text_stands_beside_the_steps_however_many_there_are():
    c = Checklist("1", "tank", None, 1.0, SwapDisk("sda"), "raidz2-0", PULL_FIRST)
    notes = [Span(f"Note {number} of this console.") for number in range(12)]
    stage = SwapStage("Pull the disk", ("Pull it.",), "pull")
    lines = [plain(line) for line in swap_lines(c, stage, notes, LOOK, SIDE_FROM)]
    at = {line.index("Note") for line in lines if "Note" in line}
    assert len(at) == 1
    steps = [line for line in lines if line[: min(at)].strip()]
    assert 3 < len(steps) < len(lines), "some lines have a step beside them, and some none"
