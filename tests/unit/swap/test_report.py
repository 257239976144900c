"""A swap as a report and as JSON."""

from __future__ import annotations

import json

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.swap.playing import EMPTY, OLD, WRONG, Play
from zconsole.pool.model import Scan
from zconsole.sim import commands
from zconsole.sim.places import slot_name
from zconsole.swap.disk import DONE, PULL_FIRST, Checklist, SwapDisk
from zconsole.swap.report import checklist_record, choice_record, markdown, summary
from zconsole.swap.several import started
from zconsole.timeline.eta.estimate import Estimate
from zconsole.units import duration

pytestmark = pytest.mark.slow


def test_a_report_compares_the_time_predicted_with_the_time_taken(play: Play):
    choice = play.choice()
    told = Estimate(5400.0, 3600.0, 7200.0, "estimated from the last scrub's speed")
    play.guide = started(choice, choice.ways[-1], play.store, play.now, told)
    play.do()
    play.hands.pull(OLD)
    play.look()
    play.hands.insert(0, OLD)
    play.do()
    play.wait(40000.0)  # nobody looks for long after its end
    assert play.look().step == "scrub"
    (scan,) = (s for s in play.situation(play.pool).pool.scans if s.function == "resilver")
    assert scan.start is not None
    assert scan.end is not None
    took = scan.end - scan.start
    assert took > 0
    (line,) = [x for x in markdown(play.checklist).splitlines() if x.startswith("- resilver")]
    assert line == (
        "- resilver: predicted 1h30m (estimated from the last scrub's speed), took"
        f" {duration(took)}"
    )


def the_resilver(play: Play) -> Scan:
    """Return the resilver that the pool tells of, once it has ended."""
    while (now := play.situation(play.pool)).repairing:
        play.wait(20.0)
    return next(scan for scan in now.pool.scans if scan.function == "resilver")


@rows("caught_up", ["in an alarm", "afterwards", "while nobody looked"])
@rows("mode", ["replace-first", "pull-first"])
def test_a_report_tells_the_time_of_the_resilver_that_filled_the_new_disk(mode, caught_up):
    """Not that of the next one, of what a wrong disk missed that was pulled and put back."""
    play, wrong = Play(), str(Play().leaf(WRONG).guid)
    if mode == "replace-first":
        play.begin(mode)
        play.hands.insert(0, EMPTY)
    else:
        play.inserted()
    play.do()
    if caught_up == "afterwards":
        filled = the_resilver(play)
        play.look()
    play.hands.pull(WRONG)
    if caught_up != "while nobody looked":
        play.look()
    if caught_up != "afterwards":
        filled = the_resilver(play)
    drawer = [slot_name(leaf.slot) for leaf in play.pool.host.drawer]
    play.hands.insert(drawer.index(WRONG), WRONG)
    if caught_up == "while nobody looked":
        commands.online(play.pool, wrong)
        assert the_resilver(play).start > filled.start
        play.look()
    else:
        play.run_alarm()
        play.refilled()
    assert the_resilver(play).start > filled.start
    lines = [line for line in markdown(play.checklist).splitlines() if "- resilver:" in line]
    took = f"- resilver: not predicted, took {duration(filled.end - filled.start)}"
    assert lines == ([] if caught_up == "while nobody looked" else [took])


def test_a_report_holds_no_control_characters():
    play = Play()
    play.leaf().name = "a\x1b[2J"
    play.begin()
    assert "\x1b" not in markdown(play.checklist)


def test_a_report_names_both_disks_in_the_form_of_zpool_status():
    play = Play()
    play.begin()
    new = SwapDisk("/dev/disk/by-id/ata-B", whole="/dev/disk/by-id/ata-B")
    swap = replace(play.checklist, new=new, old=replace(play.checklist.old, name="ata-A"))
    assert "| name | ata-A | ata-B |" in markdown(swap)
    assert " | /dev/disk/by-id/ata-B |" in markdown(swap)


def test_a_report_holds_no_html_and_no_image():
    play = Play()
    play.leaf().name = 'a<img src="//e">`<b>![x](//e)'
    play.begin()
    text = markdown(play.checklist)
    assert "&lt;img" in text
    assert "<" not in text
    assert "![" not in text


def test_no_disk_is_said_to_have_taken_the_place_where_none_was_seen():
    c = Checklist("00000001", "tank", None, 1.0, SwapDisk("sda"), "mirror-0", PULL_FIRST)
    said = " ".join(summary(replace(c, state=DONE, ended=61.0)))
    assert "sda is no longer in mirror-0 of tank, 1m00s after this swap began." in said
    assert "has replaced" not in said


def test_a_choice_says_ways_effects_and_what_must_stay():
    found = json.loads(json.dumps(choice_record(Play().choice())))
    assert found["old"]["bay"] == "Slot 07"
    assert [way["mode"] for way in found["ways"]] == ["replace-first", "pull-first"]
    assert found["effects"][0]["left"] == 1
    assert found["refused"] is None


def test_a_step_with_a_plan_is_a_question_and_a_wait_is_not():
    play = Play()
    stage = play.begin()
    assert stage.asks
    found = checklist_record(play.checklist, stage)
    assert found["question"]
    assert found["commands"][0].startswith("zpool offline tank")
    stage = play.do()
    assert not stage.asks


def test_unknown_facts_of_a_disk_are_null():
    play = Play()
    play.devices = lambda found: tuple(replace(device, wwn="") for device in found)
    play.begin()
    assert checklist_record(play.checklist, None)["old"]["wwn"] is None
