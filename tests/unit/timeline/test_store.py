"""Timelines on disk: running and finished scans."""

from __future__ import annotations

import json
import math
from datetime import UTC
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.records import replace
from tests.table import rows
from zconsole.pool.model import IoCounters, Pool, Sample, Scan, Vdev
from zconsole.system.state_dir import StateError
from zconsole.timeline.frame import Additions
from zconsole.timeline.pool import PoolTimeline
from zconsole.timeline.scans import MOST_PAST, ScanTracker
from zconsole.timeline.store import (
    PAST_FORMAT,
    HistoryStore,
    decode_history,
    decode_past,
    encode_history,
    encode_past,
    restore_history,
)

pytestmark = pytest.mark.slow

T = 1_800_000_000.0
MIB = 2**20
GUID = "123456"
PLACE = Path("past.json")


def sample(second: float, start: float = 0.0, boot: float = 0.0, leaves: int = 2) -> Sample:
    """Return a resilver at 50 MiB/s; ``boot`` is the offset of the monotonic clock."""
    devices = tuple(
        Vdev(f"d{n}", "disk", guid=f"{n}", io=IoCounters(second, 1, 1, int(second) * MIB, 0))
        for n in range(leaves)
    )
    scan = Scan(
        "resilver",
        "running",
        "issuing",
        start=T + start,
        total_bytes=10_000 * MIB,
        scanned_bytes=10_000 * MIB,
        issued_bytes=int((second - start) * 50 * MIB),
        skipped_bytes=0,
        pass_start=T + start,
    )
    pool = Pool("tank", "ONLINE", Vdev("tank", "root", guid="r", children=devices), GUID)
    return Sample(T + second, second - boot, "libzfs", True, replace(pool, scans=(scan,)))


def watched(seconds: range, **fields) -> PoolTimeline:
    timeline = PoolTimeline()
    for second in seconds:
        timeline.push(sample(second, **fields))
    return timeline


def again(timeline: PoolTimeline, t: float = T) -> PoolTimeline:
    new = PoolTimeline()
    restore_history(new, *decode_history(json.loads(encode_history(timeline, GUID, t)), GUID))
    return new


def view(timeline: PoolTimeline):
    return timeline.frame.scans[0]


def test_a_dropped_session_loses_neither_estimate_nor_sparkline_nor_restarts():
    timeline = again(watched(range(2, 100)))
    after = sample(130, boot=5000.0)
    timeline.push(after)
    found = view(timeline)
    assert found.restarts == 0
    assert found.window is not None
    assert found.issue_rate == pytest.approx(50 * MIB, rel=0.01)
    assert found.estimate.eta == pytest.approx(70, rel=0.1)
    series = timeline.rates.series
    assert series.tail("0", "read", 5)[0] == pytest.approx(MIB, rel=0.01)
    assert series.tail(found.key, "issue_rate", 4)[0] == pytest.approx(50 * MIB, rel=0.01)


def test_a_restart_while_nobody_watched_is_found_in_history():
    timeline = again(watched(range(2, 100)))
    after = sample(130, start=120.0)
    timeline.push(after)
    found = view(timeline)
    assert found.restarts == 1
    assert found.notes == ("restarted 08:02",)


def test_a_scan_that_must_have_ended_meanwhile_was_not_restarted():
    timeline = again(watched(range(2, 100)))
    after = sample(5000, start=4990.0)
    timeline.push(after)
    assert view(timeline).restarts == 0


def test_an_import_while_nobody_watched_is_bridged_without_a_leap():
    timeline = again(watched(range(2, 100)))
    after = sample(400, start=380.0)
    imported = replace(after.pool.scan, start=T, pass_start=T + 380)
    timeline.push(replace(after, pool=replace(after.pool, scans=(imported,))))
    found = view(timeline)
    assert found.restarts == 0
    assert found.notes[0].startswith("the pool was imported again by ")
    assert found.issue_rate == pytest.approx(50 * MIB, rel=0.05)


def test_a_scrub_that_was_paused_while_nobody_watched_ends_by_the_rate_it_had():
    """What is stored of its estimate is as old as the last look, and no range."""
    scan = replace(sample(2).pool.scans[0], function="scrub")
    scrubbed = PoolTimeline()
    for second in range(2, 100):
        scrubbed.push(scrubbing(second, replace(scan, issued_bytes=second * 50 * MIB)))
    issued = 150 * 50 * MIB
    paused = {"state": "paused", "paused_since": T + 150, "pass_issued": issued, "pass_paused": 0.0}
    timeline = again(scrubbed)
    frame = timeline.push(scrubbing(3600, replace(scan, issued_bytes=issued, **paused)))
    found = frame.joined(Additions(hours="22:00-06:00")).scan.estimate
    assert found.reason == "with pauses outside 22:00-06:00; it ran at 50M/s until paused"
    assert found.low < found.eta < found.high


def scrubbing(second: float, scan: Scan) -> Sample:
    taken = sample(second)
    return replace(taken, pool=replace(taken.pool, scans=(scan,)))


@rows("moved", [1, 2**10, 2**17, 2**18, 2**20, 2**26])
def test_a_hole_in_which_hardly_anything_was_done_is_no_damage(moved):
    """It counts as much work as bytes: as milliseconds here, which files do not have."""
    timeline, new = watched(range(2, 100)), PoolTimeline()
    for second in (4000, 4001, 8000, 8001, 8002):
        before = view(timeline).scan.issued_bytes
        after = sample(second)
        scan = replace(after.pool.scan, issued_bytes=before + moved)
        timeline.push(replace(after, pool=replace(after.pool, scans=(scan,))))
        new = again(timeline)
    kept, restored = (
        [track.course.points[n] for track in each.scans.tracks for n in (0, -1)]
        for each in (timeline, new)
    )
    assert [point.issued for point in restored] == [point.issued for point in kept]
    assert [point.x for point in restored] == pytest.approx([point.x for point in kept], abs=0.01)
    xs = [point.x for track in new.scans.tracks for point in track.course.points]
    assert all(a < b for a, b in pairwise(xs))


def test_the_store_keeps_and_recalls(tmp_path):
    store = HistoryStore(tmp_path)
    assert store.recall(GUID, PoolTimeline()) is None
    assert store.keep(GUID, watched(range(2, 50)), T)
    store.close()
    timeline = PoolTimeline()
    assert HistoryStore(tmp_path).recall(GUID, timeline) is None
    assert [len(t.course.points) for t in timeline.scans.tracks] == [48]


def test_it_is_written_every_two_minutes_and_when_asked_to(tmp_path):
    store, timeline = HistoryStore(tmp_path), watched(range(2, 10))
    kept = [store.keep(GUID, timeline, T + n) for n in range(0, 280, 40)]
    assert kept == [True, False, False, True, False, False, True]
    assert store.keep(GUID, timeline, T + 241, at_once=True)


def test_a_clock_that_was_set_back_delays_no_write(tmp_path):
    store, timeline = HistoryStore(tmp_path), watched(range(2, 10))
    assert store.keep(GUID, timeline, T)
    kept = [store.keep(GUID, timeline, T - 7200 + n) for n in (1, 40, 121)]
    assert kept == [True, False, True]


def test_at_rest_it_is_written_every_five_minutes_and_when_a_scan_has_ended(tmp_path):
    store, timeline = HistoryStore(tmp_path), watched(range(2, 60))
    assert store.keep(GUID, timeline, T)
    last = sample(200)
    over = replace(last.pool.scans[0], state="finished", end=T + 200)
    timeline.push(replace(last, pool=replace(last.pool, scans=(over,))))
    assert timeline.scans.past
    kept = [t for t in range(0, 700, 10) if store.keep(GUID, timeline, T + t)]
    assert kept == [120, 420]


def test_a_second_console_reads_but_does_not_write(tmp_path):
    first, second = HistoryStore(tmp_path), HistoryStore(tmp_path)
    assert first.keep(GUID, watched(range(2, 10)), T)
    assert not second.keep(GUID, watched(range(2, 99)), T)
    timeline = PoolTimeline()
    assert second.recall(GUID, timeline) is None
    assert len(timeline.scans.tracks) == 1
    first.close()
    assert second.keep(GUID, timeline, T + 60)


def test_without_a_directory_nothing_is_kept():
    store = HistoryStore(None)
    assert not store.keep(GUID, watched(range(2, 5)), T)
    assert store.recall(GUID, PoolTimeline()) is None


def test_another_readers_directory_is_looked_into(tmp_path):
    (tmp_path / "system").mkdir()
    HistoryStore(tmp_path / "system").keep(GUID, watched(range(2, 10)), T)
    timeline = PoolTimeline()
    store = HistoryStore(tmp_path, readable=(tmp_path, tmp_path / "system"))
    assert store.recall(GUID, timeline) is None
    assert len(timeline.scans.tracks) == 1


def test_a_guid_that_is_none_becomes_no_path(tmp_path):
    with pytest.raises(StateError, match="no GUID"):
        HistoryStore(tmp_path).keep("../../etc/passwd", PoolTimeline(), T)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "3", '{"format": 1}', '{"format": "2"}', "{}", "\x00", "[" * 9999],
)
@pytest.mark.parametrize("kind", ["history", "past"])
def test_a_damaged_file_is_a_note_and_a_fresh_start(tmp_path, kind, text):
    put(tmp_path, text, f"{kind}-{GUID}.json")
    timeline = PoolTimeline()
    assert "damaged" in (HistoryStore(tmp_path).recall(GUID, timeline) or "")
    assert timeline.scans.tracks == ()
    timeline.push(sample(5))


@pytest.mark.parametrize(
    ("kind", "note"), [("history", "history not read"), ("past", "earlier scans not read")]
)
def test_a_link_in_the_files_place_is_a_note(tmp_path, kind, note):
    (tmp_path / f"{kind}-{GUID}.json").symlink_to("/etc/passwd")
    assert note in (HistoryStore(tmp_path).recall(GUID, PoolTimeline()) or "")


def test_the_file_stays_small_whatever_the_pool(monkeypatch):
    small, large = watched(range(2, 150)), watched(range(2, 5), leaves=100)
    assert len(encode_history(small, GUID, T)) < 100_000
    assert set(json.loads(encode_history(large, GUID, T))["series"]) <= {"scan:resilver:"}
    monkeypatch.setattr("zconsole.timeline.store.MOST_BYTES", 15_000)
    assert json.loads(encode_history(small, GUID, T))["series"] == {}


@given(st.data())
def test_no_damage_to_a_file_gets_further_than_a_note(data):
    document = json.loads(DOCUMENT)
    places = [place for place in _places(document) if not isinstance(place[0], list)]
    holder, key = data.draw(st.sampled_from(places + list(_places(document))[-20:]))
    holder[key] = data.draw(
        st.one_of(
            st.none(),
            st.text(max_size=3),
            st.floats(),
            st.integers(-(2**70), 2**70),
            st.lists(st.floats(), max_size=3),
            st.dictionaries(st.text(max_size=2), st.none(), max_size=2),
        )
    )
    timeline = PoolTimeline()
    try:
        restore_history(timeline, *decode_history(document, GUID))
    except (ValueError, LookupError, TypeError, AttributeError):
        return
    last = sample(120)
    timeline.push(last)
    estimate = view(timeline).estimate
    assert estimate.eta is None or estimate.eta >= 0


def _document() -> bytes:
    timeline = watched(range(2, 20))
    timeline.scans.tracks[0].rates.mark(T + 10, "zfs_vdev_scrub_max_active=6")
    return encode_history(timeline, GUID, T)


DOCUMENT = _document()


def _places(node):
    pairs = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in pairs:
        yield node, key
        if isinstance(value, (dict, list)):
            yield from _places(value)


def test_a_history_of_an_earlier_version_is_read():
    kept = Path(__file__).parents[2] / "fixtures" / "state" / "history.json"
    document = json.loads(kept.read_text())
    timeline = PoolTimeline()
    restore_history(timeline, *decode_history(document, document["guid"]))
    (track,) = timeline.scans.tracks
    assert (track.scan.function, track.scan.start) == ("resilver", document["scans"][0]["start"])
    assert len(track.course.points) == 30
    assert track.course.last is not None
    assert timeline.rates.series.tail("scan:resilver:", "issue_rate", 3)[0] is not None


def test_a_note_says_what_is_wrong_with_a_file(tmp_path):
    document = json.loads(DOCUMENT)
    document["scans"][0]["total"] = "much"
    put(tmp_path, json.dumps(document), f"history-{GUID}.json")
    note = HistoryStore(tmp_path).recall(GUID, PoolTimeline()) or ""
    assert note.endswith("is damaged (scans[0].total is not a whole number)")


def test_the_rates_of_the_whole_scan_are_kept_with_their_marks():
    old = watched(range(2, 100))
    (track,) = old.scans.tracks
    track.rates.mark(T + 50, "restart")
    (new,) = again(old).scans.tracks
    assert len(new.rates.past.rates) == 98
    assert new.rates.past.rates[-1] == pytest.approx(50 * MIB, rel=0.01)
    assert new.rates.past.marks == ((T + 50, "restart"),)


def test_a_file_of_a_version_that_kept_no_rates_is_read():
    document = json.loads(DOCUMENT)
    del document["scans"][0]["past"]
    timeline = PoolTimeline()
    restore_history(timeline, *decode_history(document, GUID))
    assert timeline.scans.tracks[0].rates.past.rates == ()


@rows(
    "past",
    [
        [0.0, 0.0, [1.0], []],
        [0.0, 1.0, [-1.0], []],
        [0.0, 1.0, [1.0] * 601, []],
        [0.0, 1.0, [], [[-1.0, "restart"]]],
        [0.0, 1.0, []],
    ],
)
def test_rates_that_cannot_be_are_refused(past):
    document = json.loads(DOCUMENT)
    document["scans"][0]["past"] = past
    timeline = PoolTimeline()
    with pytest.raises(ValueError, match=r"rates|counter|values"):
        restore_history(timeline, *decode_history(document, GUID))
    assert not timeline.scans.tracks


NAME = f"past-{GUID}.json"


@cache
def finished(start: float = 0.0) -> PoolTimeline:
    """Return a pool whose resilver was watched to its end; tests only read it."""
    first = int(start)
    timeline = watched(range(first + 2, first + 200), start=start)
    last = sample(start + 200, start=start)
    over = replace(last.pool.scans[0], state="finished", stage=None, end=T + start + 200)
    timeline.push(replace(last, pool=replace(last.pool, scans=(over,))))
    return timeline


@cache
def _encoded() -> bytes:
    return encode_past(finished().scans.past, GUID)


def document() -> dict:
    return json.loads(_encoded())


def put(directory, text: str, name: str = NAME):
    path = directory / name
    path.write_text(text)
    path.chmod(0o600)
    return path


def recalled(*directories) -> PoolTimeline:
    timeline = PoolTimeline()
    assert HistoryStore(None, directories).recall(GUID, timeline) is None
    return timeline


def test_finished_scans_are_kept_to_predict_the_next_ones():
    (kept,) = finished().scans.past
    (past,) = decode_past(document(), GUID, PLACE)
    assert past == kept._replace(points=past.points)
    for shown, known in zip(past.points, kept.points, strict=True):
        assert shown == pytest.approx(known, abs=0.1)


def test_the_store_keeps_finished_scans_in_a_file_that_earlier_versions_ignore(tmp_path):
    assert HistoryStore(tmp_path).keep(GUID, finished(), T)
    assert len(recalled(tmp_path).scans.past) == 1
    names = json.loads((tmp_path / f"history-{GUID}.json").read_text()).keys()
    assert names == {"format", "guid", "t", "scans", "series"}


def test_the_file_is_written_only_when_a_scan_has_finished(tmp_path):
    written = []
    writer = SimpleNamespace(write=lambda path, *_: written.append(path.name))
    store = HistoryStore(tmp_path, writer=writer)
    timeline = finished()
    for n in range(5):
        store.keep(GUID, timeline, T + 60 * n)
    assert written.count(NAME) == 1


def test_what_one_reader_learned_is_added_to_what_another_did(tmp_path):
    own, system = tmp_path / "own", tmp_path / "system"
    own.mkdir()
    system.mkdir()
    HistoryStore(own).keep(GUID, finished(), T)
    HistoryStore(system).keep(GUID, finished(start=5000.0), T)
    assert [past.start for past in recalled(own, system).scans.past] == [T + 5000, T]


def test_a_damaged_file_costs_the_earlier_scans_and_not_the_running_one(tmp_path):
    HistoryStore(tmp_path).keep(GUID, watched(range(2, 50)), T)
    path = put(tmp_path, "{")
    timeline = PoolTimeline()
    note = HistoryStore(tmp_path).recall(GUID, timeline)
    assert note == f"earlier scans not read: {path} is damaged (JSONDecodeError)"
    assert len(timeline.scans.tracks) == 1
    assert timeline.scans.past == ()


def test_a_file_of_a_later_version_is_left_alone(tmp_path):
    path = put(tmp_path, json.dumps({**document(), "format": PAST_FORMAT + 1, "new": 1}))
    before = path.read_text()
    store, timeline = HistoryStore(tmp_path), finished()
    note = store.recall(GUID, timeline)
    assert note == f"earlier scans not read: a later version wrote {path}"
    assert store.keep(GUID, timeline, T, at_once=True)
    assert path.read_text() == before


def test_another_pools_scans_are_not_read():
    with pytest.raises(ValueError, match="another pool"):
        decode_past(document(), "99", PLACE)


def test_of_any_number_of_scans_only_some_are_read():
    crowd = document()
    crowd["finished"] *= 100
    assert len(decode_past(crowd, GUID, PLACE)) == MOST_PAST


@rows(
    "change",
    [
        {3: 0.0},
        {3: -1.0},
        {3: float("nan")},
        {4: 0.0},
        {5: "all"},
        {6: []},
        {6: [[0.0, 0.0]]},
        {6: [[0.0, 0.0], [0.5, 300.0], [1.0, 198.0]]},
        {6: [[0.0, 0.0]] * 101},
        {6: [[0.0, 0.0], [float("nan"), 1.0], [1.0, 200.0]]},
        {7: []},
        {7: [0.0] * 24},
        {0: None},
    ],
)
def test_a_finished_scan_that_cannot_be_is_refused(change):
    changed = document()
    for place, value in change.items():
        changed["finished"][0][place] = value
    with pytest.raises(ValueError, match=r"finished|not a scan|neither"):
        decode_past(changed, GUID, PLACE)


def test_the_same_scan_dated_a_second_apart_is_learned_once():
    tracker = ScanTracker(UTC)
    (watched_one,) = finished().scans.past
    tracker.learn(watched_one._replace(start=T + 1, watched=0.0))
    tracker.learn(watched_one)
    tracker.learn(watched_one._replace(start=T + 2, watched=0.0))
    assert tracker.past == (watched_one,)


@given(st.data())
def test_no_damage_to_the_file_gets_further_than_an_estimate(data):
    damaged = document()
    scan = damaged["finished"][0]
    holder = data.draw(st.sampled_from([scan, scan[6], *scan[6], scan[7]]))
    index = data.draw(st.integers(0, len(holder) - 1))
    holder[index] = data.draw(
        st.one_of(
            st.none(), st.text(max_size=3), st.floats(), st.integers(-(2**70), 2**70), st.just([])
        )
    )
    timeline = PoolTimeline()
    try:
        for past in decode_past(damaged, GUID, PLACE):
            timeline.scans.learn(past)
    except (ValueError, LookupError, TypeError, AttributeError):
        return
    for second in range(2, 8):
        timeline.push(sample(second + 9000, start=9000.0))
    estimate = timeline.frame.scans[0].estimate
    assert estimate.eta is None or 0 <= estimate.low <= estimate.eta <= estimate.high < math.inf
