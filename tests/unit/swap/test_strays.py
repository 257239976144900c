"""Disks that were pulled by mistake, or may be out: nothing goes on before they are back."""

from __future__ import annotations

import pytest

from tests.unit.swap.playing import EMPTY, OLD, SMALL, Play, fresh
from zconsole.sim import lifecycle
from zconsole.sim.disk import FAULTED
from zconsole.swap.checklist import PULL_FIRST


def test_a_wrong_disk_is_noticed_put_back_and_resilvered_before_anything_else(play: Play):
    play.begin()
    play.do()
    play.hands.pull("Slot 06")
    stage = play.look()
    assert stage.alarm
    assert "WRONG DISK: put Slot 06" in stage.title
    assert stage.plan is None
    play.hands.insert(2, "Slot 06")
    stage = play.look()
    assert stage.alarm
    assert stage.plan is not None
    assert stage.plan.steps[0].argv[:3] == ("zpool", "online", "tank")
    assert play.do().alarm, "it is not complete yet"
    stage = play.refilled()
    assert stage.title.startswith(f"Pull {OLD}")
    play.hands.pull(OLD)
    assert play.look().step == "insert"


def test_both_disks_out_the_wrong_one_comes_first(play: Play):
    play.begin()
    play.do()
    play.hands.pull("Slot 06")
    play.look()
    play.hands.pull(OLD)
    assert "WRONG DISK: put Slot 06" in play.look().title
    play.hands.insert(2, "Slot 06")
    play.do()
    assert play.refilled().step == "insert"


def test_a_pool_that_a_wrong_pull_suspends_is_cleared(play: Play):
    play.begin()
    play.do()
    other = play.leaf("Slot 01")
    lifecycle.lose(play.pool, other, FAULTED, aux=11)
    play.hands.pull("Slot 06")
    assert play.pool.suspended
    stage = play.look()
    assert stage.alarm
    assert any("suspended" in text for text in stage.text)
    play.hands.insert(2, "Slot 06")
    stage = play.look()
    assert stage.alarm
    assert stage.plan is not None
    assert stage.plan.action == "clear"
    play.do()
    assert play.refilled().step in ("offline", "pull")


def test_a_disk_of_no_pool_may_go_without_an_alarm(play: Play):
    play.hands.insert(SMALL, EMPTY)
    play.begin()
    play.do()
    play.hands.pull(EMPTY)
    stage = play.look()
    assert not stage.alarm
    assert any("holds no pool" in text for text in stage.text)


@pytest.fixture
def other(play: Play) -> Play:
    """Another checklist on the same machine, begun after the first."""
    play.begin()
    other = Play(world=play.world, store=play.store)
    other.begin(bay="Slot 06")
    return other


@pytest.mark.usefixtures("other")
def test_the_disk_of_another_open_checklist_must_stay_until_that_says_to_pull_it(play: Play):
    play.do()
    play.hands.pull("Slot 06")
    assert "WRONG DISK: put Slot 06" in play.look().title


def test_the_disk_of_another_open_checklist_may_be_pulled(play: Play, other: Play):
    other.do()
    play.hands.pull("Slot 06")
    stage = play.look()
    assert not stage.alarm
    assert stage.plan is not None
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
