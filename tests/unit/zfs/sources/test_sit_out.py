from __future__ import annotations

import json

from tests.table import rows
from tests.unit.zfs.sources.source_fakes import CONFIG, HANG, CannedRunner, printed, settle
from zconsole.zfs.sources import occasional
from zconsole.zfs.sources.occasional import SitOutReader

LEAF = {"guid": "7", "path": "/dev/sda1", "name": "sda"}


def answer(value: str = "on", autosit: str = "off") -> str:
    """What ``zpool get -j --json-int sit_out,autosit tank all-vdevs`` prints."""

    def properties(sits: str, auto: str) -> dict:
        source = {"source": {"type": "NONE", "data": "-"}}
        return {"sit_out": {"value": sits, **source}, "autosit": {"value": auto, **source}}

    leaf = {"name": "sda", "vdev_type": "disk", "guid": 7, "path": "/dev/sda1", "class": "normal"}
    top = {"name": "raidz1-0", "vdev_type": "raidz", "guid": 8, "class": "normal"}
    vdevs = {
        "raidz1-0": {**top, "properties": properties("-", autosit)},
        "sda": {**leaf, "properties": properties(value, "-")},
    }
    return json.dumps({"vdevs": vdevs})


def form(slow: int = 0, kind: str = "raidz") -> dict:
    stats = [0] * 48
    stats[34] = slow
    leaf = {"type": "disk", "guid": 7, "vdev_stats": stats}
    top = {"type": kind, "guid": 8, "vdev_stats": [0] * 48, "children": [leaf]}
    return {"libzfs": {**CONFIG, "vdev_tree": {"children": [top]}}}


def reader(found=None, version: str = "2.4.4") -> tuple[SitOutReader, CannedRunner]:
    runner = CannedRunner({("zpool", "get"): found or printed(answer())})
    return SitOutReader(runner, "tank", version, 5), runner


def sitting(asked: SitOutReader, seen: dict) -> list:
    return asked.newest(seen).get("sitting_out", [])


async def test_the_leaves_whose_property_is_on_are_named():
    asked, _ = reader()
    await asked.first(5)
    assert sitting(asked, form()) == [LEAF]
    asked, _ = reader(printed(answer("off")))
    await asked.first(5)
    assert sitting(asked, form()) == []


async def test_before_2_4_nothing_is_asked():
    asked, runner = reader(version="2.3.9")
    await asked.first(5)
    assert sitting(asked, form(slow=1)) == []
    assert runner.asked == []


async def test_a_slow_request_asks_again_but_not_at_once(monkeypatch):
    asked, runner = reader()
    await asked.first(5)
    for slow in (0, 0, 1):
        asked.newest(form(slow))
        await settle()
    assert len(runner.asked) == 1
    monkeypatch.setattr(occasional, "AT_MOST_EVERY", 0.0)
    asked.newest(form(1))
    await settle()
    asked.newest(form(1))
    await settle()
    assert len(runner.asked) == 2


async def test_while_a_leaf_sits_out_it_is_asked_whether_it_still_does(monkeypatch):
    monkeypatch.setattr(occasional, "STILL_EVERY", 0.0)
    asked, runner = reader()
    await asked.first(5)
    runner.answers["zpool", "get"] = printed(answer("off"))
    assert sitting(asked, form()) == [LEAF]
    await settle()
    assert sitting(asked, form()) == []
    await settle()
    assert len(runner.asked) == 2


async def test_other_sources_ask_now_and_then(monkeypatch):
    """JSON and text start a process for every sample anyway."""
    monkeypatch.setattr(occasional, "STILL_EVERY", 0.0)
    asked, runner = reader(printed(answer("off")))
    for _ in range(3):
        asked.newest({"text": ""})
        await settle()
    assert len(runner.asked) == 3


async def test_leaves_of_mirrors_never_sit_out():
    asked, runner = reader(printed(answer("off")))
    assert sitting(asked, form(kind="mirror")) == []
    await settle()
    assert runner.asked == []


@rows("found", [HANG, printed("junk"), printed("", 1, "no"), printed('{"vdevs": 1}')])
async def test_without_an_answer_none_is_known(found):
    asked, _ = reader(found)
    await asked.first(5)
    assert sitting(asked, form()) == []


@rows("value", ["on", "off"])
async def test_the_vdevs_with_autosit_are_told_with_its_value(value):
    asked, _ = reader(printed(answer(autosit=value)))
    await asked.first(5)
    assert asked.newest(form())["autosit"] == [{"guid": "8", "name": "raidz1-0", "value": value}]


async def test_an_answer_that_fails_forgets_who_sits_out(monkeypatch):
    monkeypatch.setattr(occasional, "STILL_EVERY", 0.0)
    asked, runner = reader()
    await asked.first(5)
    runner.answers["zpool", "get"] = printed("", 1)
    asked.newest(form())
    await settle()
    assert asked.newest(form()) == {}
