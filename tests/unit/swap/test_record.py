from __future__ import annotations

import json

from tests.records import replace
from tests.unit.swap.playing import Play
from zconsole.swap.report import checklist_record, choice_record


def test_a_choice_says_ways_effects_and_what_must_stay():
    found = json.loads(json.dumps(choice_record(Play().choice())))
    assert found["old"]["bay"] == "Slot 07"
    assert [way["mode"] for way in found["ways"]] == ["pull-first"]
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
