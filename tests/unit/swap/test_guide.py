from __future__ import annotations

from pathlib import Path

import pytest

from tests.records import replace
from tests.unit.swap.playing import EMPTY, NEW, OLD, Play
from zconsole.swap.checklist import Answer
from zconsole.swap.session import Guide, started
from zconsole.swap.store import FileSwapStore, MemorySwapStore
from zconsole.system.state_dir import StateError


class Broken(MemorySwapStore):
    def save(self, checklist):
        raise StateError("the disk is full")

    def leads(self, name):
        raise StateError("the disk is full")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


def test_a_second_console_sees_what_the_first_does_and_may_not_act(place: Path):
    play = Play(store=FileSwapStore(place))
    play.begin()
    other = Guide(play.checklist, FileSwapStore(place))
    assert not other.leads
    play.do()
    assert other.look(play.view(), play.now).step == "pull"
    assert other.checklist == play.checklist


def test_the_second_console_leads_once_the_first_is_gone(place: Path):
    play = Play(store=FileSwapStore(place))
    play.begin()
    other = Guide(play.checklist, FileSwapStore(place))
    play.store.close()
    other.look(play.view(), play.now)
    assert other.leads


def test_a_disk_has_one_open_checklist(place: Path):
    play = Play(store=FileSwapStore(place))
    play.begin()
    choice = play.choice()
    again = started(choice, choice.ways[0], play.view(), play.store, play.now)
    assert again.checklist.id == play.checklist.id


def test_a_swap_goes_on_where_nothing_can_be_kept_and_says_so():
    play = Play(store=Broken())
    play.begin()
    assert play.do().step == "pull"
    assert play.guide is not None
    assert play.guide.problem == "the disk is full"


def test_a_command_that_failed_is_in_the_log_with_its_words():
    play = Play()
    stage = play.begin()
    assert stage.plan is not None
    assert play.guide is not None
    step = replace(stage.plan.steps[0], argv=("zpool", "offline", "tank", "none"))
    plan = replace(stage.plan, steps=(step,))
    play.guide.ran(stage, plan, play.execute(plan), play.now)
    entry = play.checklist.log[-1]
    assert entry.command == "zpool offline tank none"
    assert "no such device in pool" in entry.result
    assert play.look().step == "offline"


def test_what_was_refused_is_in_the_log():
    play = Play()
    stage = play.begin()
    assert stage.plan is not None
    assert play.guide is not None
    play.pool.guid += 1
    play.guide.ran(stage, stage.plan, play.execute(stage.plan), play.now)
    assert "not run: another pool" in play.checklist.log[-1].text


def test_an_answer_about_a_disk_that_is_back_meanwhile_changes_nothing():
    play = Play()
    play.begin()
    assert play.guide is not None
    play.guide.answer(Answer("meant", "it was meant to go"), play.now)
    assert play.look().step == "offline"
    assert play.leaf(OLD).online


def test_giving_up_while_a_new_disk_is_filled_names_the_whole_command_and_the_way_without_it():
    play = Play()
    play.hands.insert(NEW, EMPTY)
    play.begin()
    play.do()
    stage = play.look()
    new = play.checklist.new
    assert new is not None
    (said,) = stage.undone
    assert "let the resilver go on, nothing is lost" in said
    assert f"zpool detach tank {new.whole}" in said


@pytest.mark.slow
def test_a_finished_swap_shows_its_report_while_its_pool_is_not_imported():
    play = Play()
    play.begin()
    play.do()
    play.exchanged()
    assert play.answer("no-scrub").over
    assert play.guide is not None
    stage = play.guide.look(None, play.now)
    assert stage.over
    assert any("has replaced" in text for text in stage.text)
