"""Disks pulled by mistake, or possibly missing: nothing continues until they are back."""

from __future__ import annotations

import pytest

from tests.table import rows
from tests.unit.actions.pools import disk, group
from tests.unit.swap.playing import EMPTY, NEW, OLD, SMALL, WRONG, Play, fresh
from tests.unit.swap.views import chosen, view
from zconsole.pool.model import Scan
from zconsole.sim import lifecycle
from zconsole.sim.disk import FAULTED, REMOVED
from zconsole.swap.disk import PULL_FIRST, REPLACE_FIRST
from zconsole.swap.several import started
from zconsole.swap.stage import SwapStage
from zconsole.swap.steps import PUT_BACK, just_ran
from zconsole.swap.store import SwapStore
from zconsole.swap.watch import noticed


def test_a_wrong_disk_is_noticed_put_back_and_resilvered_before_anything_else(play: Play):
    stage = play.wrong()
    assert stage.alarm
    assert "then put Slot 06" in stage.title
    assert stage.plan is None
    stage = play.put_back()
    assert stage.alarm
    assert stage.plan.steps[0].argv[:3] == ("zpool", "online", "tank")
    assert play.do().alarm, "it is not complete yet"
    assert not any("back and complete." in text for text in play.look().text)
    stage = play.refilled()
    assert stage.title.startswith(f"Pull {OLD}")
    assert stage.text[0].startswith("Slot 06 (serial ")
    assert stage.text[0].endswith(") is back and complete.")
    play.wait(1.0)
    play.hands.pull(OLD)
    stage = play.look()
    assert stage.step == "insert"
    assert not any("back and complete." in text for text in stage.text)


def back_unnoticed(play: Play) -> SwapStage:
    """Pull and return a wrong disk while its pool is idle, so that ZFS does not notice.

    The machine shows a pull at once, the newest sample of the pool a while later.
    """
    play.devices = lambda found: tuple(d for d in found if d.bay != "Slot 06")
    stage = play.look()
    assert "then put Slot 06" in stage.title
    assert stage.text[0] == "raidz2-0 has no redundancy left."
    assert stage.plan is None
    play.devices = lambda found: found
    return play.look()


@pytest.mark.slow
def test_a_wrong_disk_that_zfs_gives_up_after_its_return_is_brought_back_again(play: Play):
    play.offline()
    back_unnoticed(play)
    play.do()
    play.refilled()
    wrong = play.leaf("Slot 06")
    lifecycle.lose(play.pool, wrong, REMOVED)
    wrong.present = True
    stage = play.look()
    assert stage.alarm
    assert stage.title.startswith("Bring Slot 06")
    play.do()
    assert play.refilled().title.startswith(f"Pull {OLD}")


def test_a_pool_that_a_wrong_pull_suspends_is_cleared(play: Play):
    play.offline()
    other = play.leaf("Slot 01")
    lifecycle.lose(play.pool, other, FAULTED, aux=11)
    play.hands.pull("Slot 06")
    assert play.pool.suspended
    stage = play.look()
    assert stage.alarm
    assert any("suspended" in text for text in stage.text)
    stage = play.put_back()
    assert stage.alarm
    assert stage.plan.action == "clear"
    play.do()
    assert play.refilled().step in ("offline", "pull")


def test_a_disk_of_no_pool_may_go_without_an_alarm(play: Play):
    play.hands.insert(SMALL, EMPTY)
    play.offline()
    play.hands.pull(EMPTY)
    stage = play.look()
    assert not stage.alarm
    assert any("holds no pool" in text for text in stage.text)


@pytest.fixture
def other(play: Play) -> Play:
    """Return another checklist on the same machine, begun after the first."""
    play.begin()
    other = Play(world=play.world, store=play.store)
    other.begin(bay="Slot 06")
    return other


@pytest.mark.usefixtures("other")
def test_the_disk_of_another_open_checklist_must_stay_until_that_says_to_pull_it(play: Play):
    play.do()
    play.hands.pull("Slot 06")
    assert "then put Slot 06" in play.look().title


def test_the_disk_of_another_open_checklist_may_be_pulled(play: Play, other: Play):
    other.do()
    play.hands.pull("Slot 06")
    stage = play.look()
    assert not stage.alarm
    assert "is missing or being filled" in (stage.plan.refused or "")


def test_a_hot_spare_pulled_by_mistake_only_has_to_return(play: Play):
    spare = fresh()
    play.pool.spares.append(spare)
    play.begin(PULL_FIRST)
    play.do()
    play.hands.pull("Slot 12")
    assert play.look().alarm
    play.hands.insert(2, "Slot 12")
    assert not play.look().alarm


def test_a_wrong_disk_pulled_at_the_first_step_leaves_the_checklist_there(play: Play):
    play.begin()
    play.hands.pull("Slot 06")
    stage = play.look()
    assert stage.alarm
    assert stage.step == "offline"
    play.put_back()
    assert play.look().step == "offline"
    play.do()
    assert play.refilled().step == "offline"
    assert {e.step for e in play.checklist.log if e.command} == {"put-back"}


def test_a_wrong_disk_that_is_back_before_the_pool_noticed_is_opened_again(play: Play):
    play.offline()
    stage = back_unnoticed(play)
    assert stage.alarm, "the pool may still use it as it was before"
    assert "has not noticed" in " ".join(stage.text)
    assert stage.plan.steps[0].argv[:3] == ("zpool", "online", "tank")
    assert play.do().alarm, "a resilver may be about to begin"
    assert play.refilled().title.startswith(f"Pull {OLD}")


def test_a_wrong_disk_that_is_out_once_more_is_not_known_to_the_pool(play: Play):
    play.offline()
    for _ in range(2):
        assert back_unnoticed(play).plan is not None
        play.do()


def test_another_disk_in_the_bay_of_a_wrong_one_is_named(play: Play):
    play.offline()
    serial = play.leaf("Slot 06").serial
    play.hands.pull("Slot 06")
    play.look()
    play.hands.insert(SMALL, "Slot 06")
    stage = play.look()
    assert "then put Slot 06" in stage.title
    (said,) = [text for text in stage.text if "not the one" in text]
    assert said.startswith("Slot 06 holds serial ")
    assert said.endswith(f"Take it out, insert serial {serial}.")
    play.look()
    (once,) = [e.text for e in play.checklist.log if "not the one" in e.text]
    assert once.startswith("Slot 06 holds serial ")


def test_a_wrong_disk_in_the_bay_of_the_old_one_stays_there(play: Play):
    serial = play.leaf(WRONG).serial
    stage = play.moved()
    where = f"{WRONG} or Slot 11 or Slot 12"
    assert stage.title == f"Insert the new disk into {where}"
    assert stage.waits == f"a disk in {where}"
    assert f"{OLD} holds serial {serial} of tank, which stays there." in stage.text
    assert not any("labelclear" in text or "Pull" in text for text in stage.text)
    assert stage.back.text.endswith(f"back into {where}: it is put online again")
    play.hands.insert(SMALL, EMPTY)
    assert play.look().title.endswith("does not fit")
    play.hands.insert(NEW, "Slot 12")
    play.look()
    assert play.do().step == "resilver"
    assert play.until("scrub").step == "scrub"
    assert not play.pool.tops[0].lost()


@rows("bay", [OLD, EMPTY])
def test_a_wrong_disk_in_another_bay_is_called_by_the_bay_where_it_is(bay: str):
    play = Play()
    mark = f"serial {play.leaf(WRONG).serial}"
    play.wrong()
    play.hands.pull(OLD)
    play.look()
    stage = play.put_back(into=bay)
    assert stage.title == f"Bring {bay} ({mark}) back into tank"
    assert f"{bay} ({mark}), which was in {WRONG}, is in again. " in " ".join(stage.text)
    assert stage.plan.title == f"Put {bay} ({mark}) online"
    play.do()
    assert f"{bay} ({mark}) is back and complete." in play.refilled().text
    told = [e.text for e in play.checklist.log if mark in e.text][1:]
    assert told == [
        f"{bay} ({mark}), which was in {WRONG}, is in again",
        f"Put {bay} ({mark}) online",
        f"{bay} ({mark}) is back and complete",
    ]
    play.hands.pull(bay)
    assert play.look().title == f"WRONG DISK: put {bay} ({mark}) back now"


def test_a_disk_that_was_meant_to_go_and_returns_to_another_bay_is_called_by_that(play: Play):
    mark = f"serial {play.leaf(WRONG).serial}"
    play.wrong()
    play.answer("meant")
    assert play.put_back(into=EMPTY).title == f"Bring {EMPTY} ({mark}) back into tank"
    said = f"{EMPTY} ({mark}), which was in {WRONG}, is in again"
    assert said in [entry.text for entry in play.checklist.log]


def test_the_old_disk_in_the_bay_of_a_wrong_one_is_called_by_that(play: Play):
    play.wrong()
    play.hands.pull(OLD)
    play.look()
    stage = play.put_back(OLD, into=WRONG)
    assert stage.title.startswith(f"WRONG DISK: put {WRONG} online again, then put {WRONG} (")
    assert stage.back.text.startswith(f"put {WRONG} (")


def test_the_old_disk_may_return_to_another_bay_if_its_own_is_taken(play: Play):
    mark = f"serial {play.leaf(OLD).serial}"
    play.moved()
    stage = play.put_back(OLD, into=WRONG)
    assert play.checklist.same
    assert stage.title == f"Put {WRONG} ({mark}) online again"
    assert stage.plan.title == f"Put {WRONG} ({mark}) online"
    assert play.do().title == f"Wait until {WRONG} ({mark}) is filled"
    play.until("scrub")
    assert play.answer("no-scrub").text[0].startswith(f"{WRONG} ({mark}) is online again")


def test_a_wrong_disk_in_the_bay_of_another_wrong_one_stays_there(play: Play):
    play.begin()
    play.hands.pull("Slot 06")
    play.look()
    play.hands.pull("Slot 08")
    play.look()
    stage = play.put_back("Slot 08", into="Slot 06")
    told = " ".join(stage.text)
    assert "not the one" not in told
    assert "Slot 06 holds serial " in told
    assert "which stays there: insert serial " in told
    play.do()
    play.put_back("Slot 06", into="Slot 08")
    play.do()
    assert play.refilled().step == "offline"


def test_two_wrong_disks_are_both_named(play: Play):
    play.begin()
    play.hands.pull("Slot 06")
    play.look()
    play.hands.pull("Slot 08")
    stage = play.look()
    assert stage.title.startswith("WRONG DISKS: put Slot 06 (serial ")
    assert "and Slot 08 (serial " in stage.title
    stage = play.put_back()
    assert stage.title.startswith("WRONG DISK: put Slot 08")
    assert stage.plan.action == "online"
    assert "Slot 06" in next(text for text in stage.text if "is in again" in text)
    assert stage.answers[0].text.startswith("Do not wait for Slot 08")
    play.do()
    play.put_back("Slot 08")
    play.do()
    stage = play.refilled()
    assert stage.step == "offline"
    assert [text[:7] for text in stage.text if text.endswith("is back and complete.")] == [
        "Slot 06",
        "Slot 08",
    ]


def test_a_disk_that_is_out_is_not_to_be_left_in(play: Play):
    play.wrong()
    play.hands.pull(OLD)
    stage = play.look()
    assert "WRONG DISK: put Slot 06" in stage.title
    assert any("which this checklist swaps, is out too" in text for text in stage.text)
    assert not any(f"Do not pull {OLD}" in text for text in play.put_back().text)
    play.do()
    assert play.refilled().step == "insert"


def test_a_disk_meant_to_go_is_named_until_it_is_back(play: Play):
    play.lights = True
    play.offline()
    play.do()
    play.hands.pull("Slot 06")
    stage = play.answer("meant")
    assert not stage.alarm
    assert "is still out: put it back" in stage.warnings[0]
    assert "(raidz2-0 has no redundancy left)" in stage.warnings[0]
    assert "Put Slot 07" in stage.warnings[1]
    assert "online again first" in stage.warnings[1]
    assert stage.back.plan.action == "online"
    play.put_back()
    assert play.look().title.startswith("Bring Slot 06")
    play.do()
    assert "is still out" not in " ".join(play.refilled().warnings)


def test_giving_up_names_what_is_out_and_what_to_do(play: Play):
    play.begin()
    play.hands.pull("Slot 06")
    stage = play.answer("meant")
    (said,) = stage.undone
    assert said.startswith("Slot 06 (serial ")
    assert "is still out: put it back, then run zpool online tank " in said
    assert stage.back is None or not stage.back.closes
    play.guide.close(play.now, stage.undone)
    assert play.look().text == ("Given up. Not undone:", said)
    assert play.look().reminders == (said,)


def test_giving_up_names_a_disk_left_offline_a_light_left_on_and_one_that_is_out(play: Play):
    play.lights = True
    play.offline()
    stage = play.do()
    assert any("is still OFFLINE: run zpool online tank" in text for text in stage.undone)
    assert any("zconsole light off" in text for text in stage.undone)
    play.hands.pull(OLD)
    assert play.look().undone[0].startswith(f"{OLD} (serial ")
    assert "or replace it (zpool replace)" in play.look().undone[0]


@pytest.mark.parametrize("mode", [PULL_FIRST, REPLACE_FIRST])
def test_giving_up_while_the_new_disk_is_filled_gives_one_order(play: Play, mode):
    play.begin(mode)
    if mode == PULL_FIRST:
        play.do()
        play.hands.pull(OLD)
    play.hands.insert(NEW, OLD if mode == PULL_FIRST else EMPTY)
    play.look()
    assert play.do().step == "resilver"
    if mode == REPLACE_FIRST:
        play.hands.pull(OLD)
    told = [text for text in play.look().undone if "(serial " in text]
    assert len(told) == 1
    assert "let the resilver go on, nothing is lost" in told[0]


def test_the_end_of_a_scan_has_its_own_time_also_if_it_is_noticed_late(play: Play):
    play.begin(PULL_FIRST)
    play.do()
    play.hands.pull(OLD)
    play.look()
    play.hands.insert(NEW, OLD)
    play.look()
    for step in ("resilver", "scrub"):
        play.do()
        play.wait(100_000.0)
        play.look()
        (end,) = (scan.end for scan in play.view().pool.scans if scan.function == step)
        (at,) = (e.t for e in play.checklist.log if e.step == step and not e.command)
        assert at == end
        assert end < play.now - 1000.0


def test_after_a_wrong_pull_the_old_disk_that_is_only_offline_can_be_put_online_again(play: Play):
    stage = play.wrong()
    assert stage.alarm
    assert stage.title.startswith(f"WRONG DISK: put {OLD} online again, then put Slot 06 (serial ")
    assert stage.brief == f"wrong disk pulled: put {OLD} online again, then put Slot 06 back"
    assert stage.text[0] == "raidz2-0 has no redundancy left."
    # One order: no line says what else comes first, or now.
    assert not any(word in text for text in stage.text for word in (" first", " now", "online"))
    assert stage.final == ""
    assert stage.back.plan.action == "online"
    assert stage.back.plan.refused is None
    assert play.guide is not None
    play.run(stage, stage.back.plan)
    stage = play.look()
    assert stage.title.startswith("WRONG DISK: put Slot 06")
    assert stage.title.endswith("back now")
    assert stage.back is None


def test_why_a_disk_that_the_resilver_only_repairs_lowers_redundancy_is_said(play: Play):
    stage = play.wrong("Slot 08")
    why = f"{OLD} does not count until the resilver ends, which writes to it, too."
    play.run(stage, stage.back.plan)
    assert why in play.look().text, "it lacks what was written meanwhile"
    play.wait(60.0)
    play.put_back("Slot 08")
    stage = play.do()
    assert stage.text[0] == "1 more device may fail in raidz2-0 without losing data."
    assert why not in stage.text
    play.leaf().scan_processed += 2**17  # a block that could not be read is written again
    stage = play.look()
    assert stage.text[:2] == ("raidz2-0 has no redundancy left.", why)


def test_a_return_to_the_offline_step_is_said(play: Play):
    play.begin()
    said = f"{OLD} (serial {play.leaf().serial}) is online again: take it offline once more."
    assert said not in play.look().text
    play.do()
    stage = play.back()
    assert stage.step == "offline"
    assert said in stage.text
    play.do()
    play.hands.pull(WRONG)
    stage = play.back()
    play.put_back()
    play.run_alarm()
    stage = play.refilled()
    assert stage.step == "offline"
    assert said in stage.text


def test_what_is_said_of_a_wrong_disk_names_it(play: Play):
    stage = play.wrong()
    assert f"tank needs the data on {WRONG}." in stage.text
    assert f"If nobody pulled {WRONG}, it may have failed: check it." in stage.text
    play.hands.pull("Slot 08")
    stage = play.look()
    both = f"{WRONG} and Slot 08"
    assert f"Pull nothing else until {both} are back and complete." in stage.text


def test_a_disk_that_is_in_again_does_not_count_for_redundancy_before_it_is_complete(play: Play):
    play.begin()
    play.hands.pull("Slot 06")
    play.look()
    play.put_back()
    play.do()
    told = set()
    for _ in range(400):
        stage = play.look()
        if not stage.alarm:
            break
        told.add(stage.text[0])
        play.wait(1.0)
    assert told == {"1 more device may fail in raidz2-0 without losing data."}
    assert play.look().step == "offline"


@rows("start, waits", [(90.0, True), (100.0, False)])
def test_a_resilver_that_has_ended_is_not_waited_for(play: Play, start: float, waits: bool):
    play.begin()
    swap = play.checklist.noting(100.5, PUT_BACK, "", "zpool online tank 42", "done")
    over = Scan("resilver", "finished", start=start, end=102.0)
    assert just_ran(swap, view(scans=(over,)).pool, 103.0) == waits


def test_no_stage_of_a_wrong_pull_speaks_of_undoing(play: Play):
    play.pulled()
    play.look()
    play.hands.pull("Slot 08")
    finals = [play.look().final]
    play.put_back("Slot 08")
    finals.append(play.look().final)
    play.run_alarm()
    stage = play.look()
    assert stage.title.startswith("Wait until Slot 08")
    assert [*finals, stage.final] == [""] * 3


def test_clearing_a_wrong_disk_says_what_is_lost(play: Play):
    play.wrong("Slot 08")
    play.put_back("Slot 08")
    play.leaf("Slot 08").state = FAULTED
    assert play.look().final == "Error counts are reset. Cannot be undone"


def test_a_disk_put_into_the_bay_of_a_wrong_one_is_in_the_report_once(play: Play):
    play.wrong("Slot 08")
    play.hands.insert(NEW, "Slot 08")
    play.look()
    play.look()
    (said,) = [e.text for e in play.checklist.log if "not the one" in e.text]
    assert said.startswith("Slot 08 holds serial ")


def test_a_replace_whose_new_disk_a_hot_spare_stands_in_for_is_gone_on_with():
    choice = chosen(view())
    swap = started(choice, choice.ways[0], SwapStore(None, memory={}), 5.0).checklist
    newcomer = group("spare", disk("new", 9, "FAULTED"), disk("sp", 10))
    busy = view(group("replacing", disk("d00", 1000), newcomer))
    for seen in (
        noticed(swap, busy, 6.0),
        started(chosen(busy), chosen(busy).ways[0], SwapStore(None, memory={}), 6.0).checklist,
    ):
        assert seen.new.name == "new"
