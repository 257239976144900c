from __future__ import annotations

import itertools
import json

import pytest

from tests.table import rows
from zconsole.errors import NotUnderstoodError
from zconsole.sim.source import samples
from zconsole.timeline.session import Session
from zconsole.timeline.store import HistoryStore
from zconsole.zfs.sources.recording import Gaps


def rounds(count: int, scenario: str = "resilver"):
    return list(itertools.islice(samples(scenario, 1, 1.0, count), count))


def test_another_pool_of_the_same_name_has_a_past_of_its_own(tmp_path):
    tmp_path.chmod(0o700)
    raws = rounds(1)[0]
    (old,) = Session().advance(raws)
    text = json.dumps(raws[0]["libzfs"])
    other = {**raws[0], "libzfs": json.loads(text.replace(old.guid, "4711"))}
    session = Session(store=HistoryStore(tmp_path))
    session.advance(raws)
    before = session.timeline(old.pool)
    (new,) = session.advance([other])
    assert (new.pool, new.guid) == (old.pool, "4711")
    assert session.timeline(old.pool) is not before
    session.close()
    assert {path.name for path in tmp_path.glob("history-*.json")} == {
        f"history-{old.guid}.json",
        "history-4711.json",
    }


def test_a_pool_that_stops_answering_keeps_its_tree_and_says_its_age():
    session = Session()
    (raw,) = rounds(1)[0]
    session.advance([raw])
    silent = {"t": raw["t"] + 30, "pool": raw["pool"], "kstat": "SUSPENDED", "problem": "it hangs"}
    (frame,) = session.advance([silent])
    assert (frame.stale_seconds, frame.problem, frame.kstat) == (30, "it hangs", "SUSPENDED")
    assert frame.health.word == "SUSPENDED"
    assert len(frame.rows) > 5


def test_a_pool_that_never_answered_has_no_age():
    (frame,) = Session().advance([{"t": 1.0, "pool": "tank", "problem": "it hangs"}])
    assert (frame.stale_seconds, frame.problem) == (None, "it hangs")


def test_a_pool_that_stops_answering_shows_what_diskstats_tells_of_its_disks():
    session = Session()
    first, second, third = (raws[0] for raws in rounds(3))
    session.advance([first])
    path, lost = list(first["devices"])[:2]
    devices = {path: first["devices"][path], lost: ("gone",)}
    beside = {"pool": first["pool"], "problem": "it hangs", "devices": devices}
    for raw in (second, third):
        counters = {key: raw[key] for key in ("t", "clock", "boot", "diskstats")}
        (frame,) = session.advance([{**beside, **counters}])
    rows = {row.vdev.path: row for row in frame.rows}
    assert rows[path].rates.busy is not None
    assert (rows[path].missing_since, rows[lost].missing_since) == (None, second["t"])


def test_a_sample_that_cannot_be_read_is_a_problem_of_its_pool():
    session = Session()
    (frame,) = session.advance([{"t": 1.0, "pool": "tank", "text": "what is this"}])
    assert (frame.pool, frame.health.word) == ("tank", "STALE")
    assert frame.problem
    with pytest.raises(NotUnderstoodError):
        session.advance([{"t": 1.0, "text": "what is this"}])


def test_two_pools_have_two_histories():
    session = Session()
    for raws in rounds(5, "two-pools"):
        frames = session.advance(raws)
    names = [frame.pool for frame in frames]
    assert len(set(names)) == 2
    assert session.timeline(names[0]) is not session.timeline(names[1])


def test_a_pool_twice_in_one_saved_output_has_no_past_the_second_time():
    scan = "  scan: scrub in progress since Tue Mar  {0} 10:20:30 2024\n"
    pool = (
        "  pool: tank\n state: ONLINE\n" + scan + "\t1.00T scanned, {0}0.0G issued, 4.00T total\n"
        "\t0B repaired, {0}.00% done\nconfig:\n\n\tNAME STATE READ WRITE CKSUM\n"
        "\ttank ONLINE 0 0 0\n\t  sda ONLINE {0} 0 0\n\nerrors: No known data errors\n\n"
    )
    text = pool.format(5) + pool.format(6)
    (first, second) = Session().advance([{"t": 1709800000.0, "source": "text", "text": text}])
    assert [view.scan.start for view in (first.scan, second.scan)] == [1709634030.0, 1709720430.0]
    assert (second.scan.restarts, second.scan.notes, second.troubles) == (None, (), ())


def test_a_frame_says_when_the_newest_look_began_also_one_that_found_nothing():
    session = Session()
    (raw,) = rounds(1)[0]
    (frame,) = session.advance([{**raw, "began": 40.0}])
    assert frame.looked == 40.0
    silent = {"t": raw["t"] + 9, "began": 49.0, "pool": raw["pool"], "problem": "it hangs"}
    (frame,) = session.advance([silent])
    assert (frame.looked, frame.problem) == (49.0, "it hangs")
    (blank,) = Session().advance([silent])
    assert blank.looked == 49.0
    (undated,) = Session().advance([{k: v for k, v in raw.items() if k != "began"}])
    assert undated.looked is None


def test_no_rate_is_worked_out_across_a_gap():
    gaps = Gaps()
    session = Session(gaps=gaps)
    taken = [raws[0] for raws in rounds(6)]
    for raw in taken[:3]:
        (before,) = session.advance([raw])
    missing = {"t": taken[3]["t"], "gap": "not JSON", "place": "r: line 4"}
    (shown,) = session.advance([missing])
    (first,) = session.advance([taken[4]])
    (second,) = session.advance([taken[5]])
    reads = [frame.rows[0].rates.read for frame in (before, first, second)]
    assert [read is not None for read in reads] == [True, False, True]
    assert shown.problem == "gap in the recording: r: line 4: not JSON"
    assert [event.text for event in second.events if event.name == "gap"] == [shown.problem]
    assert gaps.words == "r: line 4: not JSON (1 gap in the recording)"


def test_a_gap_is_no_sign_that_the_clock_was_set():
    session = Session(gaps=Gaps())
    first, second, third = (raws[0] for raws in rounds(3))
    (before,) = session.advance([first])
    session.advance([{"t": second["t"], "gap": "not JSON", "place": "r"}])
    (after,) = session.advance([third])
    assert before.events
    assert after.events[: len(before.events)] == before.events


def test_a_gap_is_of_the_pool_that_it_names():
    session = Session(gaps=Gaps())
    (raws,) = rounds(1, "two-pools")
    names = [frame.pool for frame in session.advance(raws)]
    gap = {"t": raws[0]["t"] + 1, "gap": "not JSON", "place": "r"}
    assert [f.pool for f in session.advance([{**gap, "pool": names[1]}])] == names[1:]
    assert [f.pool for f in session.advance([gap])] == names
    assert session.advance([{**gap, "pool": "never seen"}]) == ()


@pytest.mark.slow
def test_a_pool_that_is_renamed_keeps_its_past(tmp_path):
    """It is imported under another name, and back: its newest history is kept."""
    tmp_path.chmod(0o700)
    taken = rounds(30)
    old = taken[0][0]["libzfs"]["name"]

    def named(raws, name):
        text = json.dumps(raws[0]["libzfs"]).replace(f'"{old}"', f'"{name}"')
        return [{**raws[0], "events": [], "libzfs": json.loads(text)}]

    session = Session(store=HistoryStore(tmp_path))
    for at, raws in enumerate(taken):
        (frame,) = session.advance(named(raws, "a" if at < 10 or at >= 20 else "b"))
    assert frame.pool == "a"
    assert len(frame.scan.past.rates) == 30
    session.close()
    (path,) = tmp_path.glob("history-*.json")
    kept = json.loads(path.read_text())
    assert kept["t"] == frame.t
    assert kept["scans"][0]["last"][0] == frame.t


@rows("name", ["memory-limited", "suspended", "two-pools"])
def test_copied_timelines_go_on_as_the_session_they_are_from_does(name):
    *before, last = samples(name, 1, 20.0, 8)
    session, other = Session(goes_on=True), Session(goes_on=True)
    for raws in before:
        session.advance(raws)
    kept = session.timelines()
    for _ in range(2):  # going on changes nothing of what was kept
        other.go_on_from(kept)
        gone_on = other.advance(last)
    assert [frame.scans for frame in gone_on] == [frame.scans for frame in session.advance(last)]
