from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.table import rows
from tests.unit.zfs.sources.sampled import JSON, source
from tests.unit.zfs.sources.source_fakes import CONFIG, HANG, STATUS, CannedRunner, printed, settle
from zconsole.system.async_process import ProcessRunner
from zconsole.zfs.decode import decode
from zconsole.zfs.sources import occasional
from zconsole.zfs.sources.occasional import (
    LINES,
    HistoryReader,
    SitOutReader,
    VolumeReader,
    names_in_history,
    past_scrubs,
)

HEAD = "History for 'tank':\n2026-01-01.10:00:00 [txg:4] set feature@x=enabled\n"
SCRUB = """\
2026-10-04.02:00:00 [txg:900] scan setup func=1 mintxg=0 maxtxg=900
2026-10-04.02:00:00 (75ms) ioctl scrub
    input:
        scan_type: 1

2026-10-04.09:30:00 [txg:980] scan done errors=0
2026-10-04.09:30:00 zpool scrub -w tank
"""
END = datetime(2026, 10, 4, 9, 30, tzinfo=UTC).timestamp()


def at(*clock: int) -> float:
    return datetime(2026, 11, *clock, tzinfo=UTC).timestamp()


def record(day: int, text: str, txg: int = 1000) -> str:
    return f"2026-11-{day:02}.02:00:00 [txg:{txg}] {text}\n"


def setup(day: int, function: int = 1, least: int = 0, most: int = 1000) -> str:
    return record(day, f"scan setup func={function} mintxg={least} maxtxg={most}")


def done(day: int) -> str:
    return record(day, "scan done errors=0", 1100)


def full_end(text: str) -> float | None:
    ends = [s["end"] for s in past_scrubs(HEAD + text, UTC)["scrubs"] if s["full"] and s["end"]]
    return max(ends, default=None)


def test_a_full_scrub_ends_when_it_is_done():
    assert full_end(SCRUB) == END


@rows(
    "later",
    [
        setup(3) + record(4, "scan cancelled errors=0"),
        setup(3, least=900) + done(4),  # scrub -C, or -S
        setup(3, most=700) + done(4),  # scrub -E
        setup(3, function=2, least=3) + done(4),
        record(3, "error scrub setup func=3 mintxg=0 maxtxg=1000")
        + record(4, "error scrub done errors=0"),
        setup(3),
        setup(3, function=2) + record(4, "scan aborted, restarting errors=0"),
        "2026-13-45.02:00:00 [txg:1] scan setup func=1 mintxg=0 maxtxg=1\n",
    ],
)
def test_what_is_no_finished_full_scrub_does_not_take_its_place(later):
    assert full_end(SCRUB + later) == END


def test_the_newest_scrub_is_told_beside_the_last_full_one():
    found = past_scrubs(HEAD + SCRUB + setup(3, least=900) + done(4), UTC)
    assert [(s["full"], s["start"]) for s in found["scrubs"]][:1] == [(False, at(3, 2))]
    assert len(found["scrubs"]) == 2
    assert len(past_scrubs(HEAD + SCRUB, UTC)["scrubs"]) == 1


def test_the_first_record_is_the_creation_of_the_pool():
    created = datetime(2026, 1, 1, 10, tzinfo=UTC).timestamp()
    assert past_scrubs(HEAD, UTC) == {"created": created, "scrubs": []}
    assert past_scrubs("", UTC) == {"created": None, "scrubs": []}


def test_a_captured_history_is_read():
    path = Path(__file__).parents[3] / "fixtures/history/permanent-errors.txt"
    found = past_scrubs(path.read_text(), UTC)
    scrub = datetime(2026, 11, 20, 10, 8, 23, tzinfo=UTC).timestamp()
    assert found["created"] == scrub - 8
    assert found["scrubs"] == [{"start": scrub, "end": scrub, "full": True}]


async def test_only_lines_about_scans_are_kept_of_a_long_history(tmp_path):
    long = tmp_path / "history"
    filler = "2026-11-01.02:00:00 [txg:7] snapshot tank@a (5)\n"
    long.write_text(HEAD + filler * 50_000 + SCRUB + filler * 50_000)
    done = await ProcessRunner(LINES).run(("cat", str(long)), 30)
    assert len(done.stdout) < 1000
    assert past_scrubs(done.stdout, UTC) == past_scrubs(HEAD + SCRUB, UTC)


def form(state: int = 2, end: int = 200) -> dict:
    tree = {**CONFIG["vdev_tree"], "scan_stats": [1, state, 100, end, *[0] * 18]}
    return {"libzfs": {**CONFIG, "vdev_tree": tree}}


def reader(answer) -> tuple[HistoryReader, CannedRunner]:
    runner = CannedRunner({("zpool", "history", "-i", "tank"): answer})
    return HistoryReader(runner, "tank"), runner


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(occasional, "AT_MOST_EVERY", 0.0)


@pytest.mark.usefixtures("at_once")
async def test_history_is_asked_at_the_start_and_again_when_a_scan_starts_or_ends():
    asked, runner = reader(printed(HEAD + SCRUB))
    await asked.first(5)
    for state, end in ((2, 200), (2, 200), (1, 0), (1, 0), (2, 900), (2, 900)):
        assert len(asked.newest(form(state, end))["history"]["scrubs"]) == 1
        await settle()
    assert len(runner.asked) == 3


async def test_a_resilver_that_restarts_all_the_time_is_not_asked_about_each_time():
    asked, runner = reader(printed(HEAD + SCRUB))
    await asked.first(5)
    for start in range(5):
        asked.newest(form(1, start))
        await settle()
    assert len(runner.asked) == 1


@pytest.mark.usefixtures("at_once")
@rows("key", ["status", "text"])
async def test_progress_of_a_scan_is_no_reason_to_ask_again(key):
    asked, runner = reader(printed(HEAD))
    await asked.first(5)
    for issued in (1, 2, 3):
        stats = {"function": "SCRUB", "state": "SCANNING", "start_time": 5, "issued": issued}
        text = f"  scan: scrub in progress since Sun\n\t{issued}G issued\n"
        asked.newest(
            {"status": {"pools": {"tank": {"scan_stats": stats}}}}
            if key == "status"
            else {"text": text}
        )
        await settle()
    assert len(runner.asked) == 1


@pytest.mark.usefixtures("at_once")
@rows("answer", [HANG, printed("", 1, "permission denied")])
async def test_a_history_that_cannot_be_read_is_unknown_and_not_asked_every_second(answer):
    asked, runner = reader(answer)
    await asked.first(5)
    for _ in range(3):
        assert asked.newest(form()) == {}
        await settle()
    assert len(runner.asked) == 1


@pytest.mark.usefixtures("at_once")
async def test_what_was_read_stays_true_when_the_next_command_fails():
    asked, runner = reader(printed(HEAD + SCRUB))
    await asked.first(5)
    asked.newest(form())
    runner.answers = {}
    asked.newest(form(1, 0))
    await settle()
    assert len(asked.newest(form(1, 0))["history"]["scrubs"]) == 1


HISTORY = """\
History for 'tank':
2026-11-20.10:19:15 [txg:4] create tank/a b (539)  (on host)
2026-11-20.10:19:16 (12ms) zpool scrub tank
2026-11-20.10:19:17 [txg:9] rename tank/a b (539) -> tank/c
2026-11-20.10:19:18 [txg:10] destroy tank/c (539) (bptree, mintxg=1)
2026-11-20.10:19:18 [txg:11] destroy tank/c@x (54)
2026-11-20.10:19:19 [txg:12] set other (539) x=(540)
"""


def test_the_last_name_in_the_history_counts():
    ids = ["0x21b", "0x36", "0x7"]
    assert names_in_history(HISTORY, "tank", ids) == {"0x21b": "tank/c", "0x36": "tank/c@x"}


async def test_a_sample_names_what_was_destroyed_and_asks_the_history_once(tmp_path):
    pool = {**STATUS["pools"]["tank"], "error_count": 1, "errlist": ["<0x21b>:<0x8>"]}
    status = printed(json.dumps({**STATUS, "pools": {"tank": pool}}))
    answers = {**JSON, ("zpool", "status", "-jvP"): status, ("zpool", "history"): printed(HISTORY)}
    made = source(tmp_path, answers=answers)
    (raw,) = await made.sample()
    await settle()
    assert raw["message"]["destroyed"] == {"0x21b": "tank/c"}
    (sample,) = decode(raw)
    assert sample.pool.destroyed == {"0x21b": "tank/c"}
    await made.aclose()


async def test_a_history_that_is_not_permitted_leaves_the_errors(tmp_path):
    pool = {**STATUS["pools"]["tank"], "error_count": 1, "errlist": ["<0x21b>:<0x8>"]}
    status = printed(json.dumps({**STATUS, "pools": {"tank": pool}}))
    made = source(tmp_path, answers={**JSON, ("zpool", "status", "-jvP"): status})
    (raw,) = await made.sample()
    assert raw["message"]["errors"] == ["<0x21b>:<0x8>"]
    assert "destroyed" not in raw["message"]
    await made.aclose()


LEAF = {"guid": "7", "path": "/dev/sda1", "name": "sda"}


def answer(value: str = "on", autosit: str = "off") -> str:
    """Return the output of ``zpool get -j --json-int sit_out,autosit tank all-vdevs``."""

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


def sit_out_form(slow: int = 0, kind: str = "raidz") -> dict:
    stats = [0] * 48
    stats[34] = slow
    leaf = {"type": "disk", "guid": 7, "vdev_stats": stats}
    top = {"type": kind, "guid": 8, "vdev_stats": [0] * 48, "children": [leaf]}
    return {"libzfs": {**CONFIG, "vdev_tree": {"children": [top]}}}


def sit_out_reader(found=None, version: str = "2.4.4") -> tuple[SitOutReader, CannedRunner]:
    runner = CannedRunner({("zpool", "get"): found or printed(answer())})
    return SitOutReader(runner, "tank", version, 5), runner


def sitting(asked: SitOutReader, seen: dict) -> list:
    return asked.newest(seen).get("sitting_out", [])


async def test_the_leaves_whose_property_is_on_are_named():
    asked, _ = sit_out_reader()
    await asked.first(5)
    assert sitting(asked, sit_out_form()) == [LEAF]
    asked, _ = sit_out_reader(printed(answer("off")))
    await asked.first(5)
    assert sitting(asked, sit_out_form()) == []


async def test_before_2_4_nothing_is_asked():
    asked, runner = sit_out_reader(version="2.3.9")
    await asked.first(5)
    assert sitting(asked, sit_out_form(slow=1)) == []
    assert runner.asked == []


async def test_a_slow_request_asks_again_but_not_at_once(monkeypatch):
    asked, runner = sit_out_reader()
    await asked.first(5)
    for slow in (0, 0, 1):
        asked.newest(sit_out_form(slow))
        await settle()
    assert len(runner.asked) == 1
    monkeypatch.setattr(occasional, "AT_MOST_EVERY", 0.0)
    asked.newest(sit_out_form(1))
    await settle()
    asked.newest(sit_out_form(1))
    await settle()
    assert len(runner.asked) == 2


async def test_while_a_leaf_sits_out_it_is_asked_whether_it_still_does(monkeypatch):
    monkeypatch.setattr(occasional, "STILL_EVERY", 0.0)
    asked, runner = sit_out_reader()
    await asked.first(5)
    runner.answers["zpool", "get"] = printed(answer("off"))
    assert sitting(asked, sit_out_form()) == [LEAF]
    await settle()
    assert sitting(asked, sit_out_form()) == []
    await settle()
    assert len(runner.asked) == 2


async def test_other_sources_ask_now_and_then(monkeypatch):
    """JSON and text start a process for every sample anyway."""
    monkeypatch.setattr(occasional, "STILL_EVERY", 0.0)
    asked, runner = sit_out_reader(printed(answer("off")))
    for _ in range(3):
        asked.newest({"text": ""})
        await settle()
    assert len(runner.asked) == 3


async def test_leaves_of_mirrors_never_sit_out():
    asked, runner = sit_out_reader(printed(answer("off")))
    assert sitting(asked, sit_out_form(kind="mirror")) == []
    await settle()
    assert runner.asked == []


@rows("found", [HANG, printed("junk"), printed("", 1, "no"), printed('{"vdevs": 1}')])
async def test_without_an_answer_none_is_known(found):
    asked, _ = sit_out_reader(found)
    await asked.first(5)
    assert sitting(asked, sit_out_form()) == []


@rows("value", ["on", "off"])
async def test_the_vdevs_with_autosit_are_told_with_its_value(value):
    asked, _ = sit_out_reader(printed(answer(autosit=value)))
    await asked.first(5)
    assert asked.newest(sit_out_form())["autosit"] == [
        {"guid": "8", "name": "raidz1-0", "value": value}
    ]


async def test_an_answer_that_fails_forgets_who_sits_out(monkeypatch):
    monkeypatch.setattr(occasional, "STILL_EVERY", 0.0)
    asked, runner = sit_out_reader()
    await asked.first(5)
    runner.answers["zpool", "get"] = printed("", 1)
    asked.newest(sit_out_form())
    await settle()
    assert asked.newest(sit_out_form()) == {}


LISTED = "volume\t900\t50\toff\nvolume\t70\t0\toff\nvolume\t-\t-\toff\n"


@pytest.mark.usefixtures("at_once")
async def test_volumes_are_added_up_once_and_kept_when_the_next_list_fails():
    runner = CannedRunner({("zfs", "list", "-Hp", "-t", "volume"): printed(LISTED)})
    asked = VolumeReader(runner, "tank")
    await asked.first(5)
    for _ in range(3):
        assert asked.newest(form()) == {"volumes": {"count": 3, "bytes": 1020}}
        await settle()
    assert len(runner.asked) == 1
    assert runner.asked[0][-2:] == ("-r", "tank")
    runner.answers = {}
    asked.pause = 0.0
    for _ in range(2):
        assert asked.newest(form())["volumes"]["count"] == 3
        await settle()


@rows("dedup", ["on", "sha256,verify", "-"])
async def test_volumes_that_may_share_blocks_are_not_added_up(dedup):
    listed = printed(f"{LISTED}volume\t5\t0\t{dedup}\n")
    asked = VolumeReader(CannedRunner({("zfs", "list"): listed}), "tank")
    await asked.first(5)
    assert asked.newest(form()) == {}
