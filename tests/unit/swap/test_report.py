from __future__ import annotations

from tests.unit.swap.playing import OLD, Play
from zconsole.swap.checklist import DONE, PULL_FIRST, Checklist
from zconsole.swap.disk import SwapDisk
from zconsole.swap.report import markdown, summary


def test_a_report_has_disks_times_commands_and_results():
    play = Play()
    play.begin()
    old, new = play.leaf().devid[-8:], play.pool.host.drawer[0].devid[-8:]
    play.do()
    play.hands.pull(OLD)
    play.look()
    play.hands.insert(0, OLD)
    play.do()
    play.until("scrub")
    play.answer("no-scrub")
    text = markdown(play.checklist)
    assert f"| serial | {old} | {new} |" in text
    assert f"| bay | {OLD} | {OLD} |" in text
    assert "`zpool replace tank" in text
    assert ": done" in text
    assert "(done)" in text
    assert "UTC" in text


def test_a_report_holds_no_control_characters():
    play = Play()
    play.leaf().name = "a\x1b[2J"
    play.begin()
    assert "\x1b" not in markdown(play.checklist)


def test_no_disk_is_said_to_have_taken_the_place_where_none_was_seen():
    c = Checklist("00000001", "tank", None, 1.0, SwapDisk("sda"), "mirror-0", PULL_FIRST)
    said = " ".join(summary(c.ending(61.0, DONE)))
    assert "sda is no longer in mirror-0 of tank" in said
    assert "has replaced" not in said
