from __future__ import annotations

import json
import math
from datetime import UTC
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.records import replace
from tests.table import rows
from tests.unit.timeline.test_storage import GUID, T, sample, watched
from zconsole.timeline import past_file, storage
from zconsole.timeline.past_file import decoded, encoded
from zconsole.timeline.pool import PoolHistory
from zconsole.timeline.scans import MOST_PAST, ScanTracker
from zconsole.timeline.storage import HistoryStore

pytestmark = pytest.mark.slow

NAME = f"past-{GUID}.json"


def finished(start: float = 0.0) -> PoolHistory:
    """A pool whose resilver was watched to its end."""
    first = int(start)
    history = watched(range(first + 2, first + 200), start=start)
    last = sample(start + 200, start=start)
    over = replace(last.pool.scans[0], state="finished", stage=None, end=T + start + 200)
    history.push(replace(last, pool=replace(last.pool, scans=(over,))))
    return history


@cache
def _encoded() -> bytes:
    return encoded(finished().scans.past, GUID)


def document() -> dict:
    return json.loads(_encoded())


def put(directory, text: str):
    path = directory / NAME
    path.write_text(text)
    path.chmod(0o600)
    return path


def recalled(*directories) -> PoolHistory:
    history = PoolHistory()
    assert HistoryStore(None, directories).recall(GUID, history) is None
    return history


def test_finished_scans_are_kept_to_predict_the_next_ones():
    (kept,) = finished().scans.past
    (past,) = decoded(document(), GUID)
    assert past == kept._replace(points=past.points)
    assert past.when(0.6) == pytest.approx(kept.when(0.6), abs=1)


def test_the_store_keeps_finished_scans_in_a_file_that_earlier_versions_ignore(tmp_path):
    assert HistoryStore(tmp_path).keep(GUID, finished(), T)
    assert len(recalled(tmp_path).scans.past) == 1
    names = json.loads((tmp_path / f"history-{GUID}.json").read_text()).keys()
    assert names == {"format", "guid", "t", "scans", "series"}


def test_the_file_is_written_only_when_a_scan_has_finished(tmp_path):
    written = []
    store = HistoryStore(tmp_path, write=lambda path, data: written.append(path.name))
    history = finished()
    for n in range(5):
        store.keep(GUID, history, T + 60 * n)
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
    history = PoolHistory()
    note = HistoryStore(tmp_path).recall(GUID, history)
    assert note == f"earlier scans not read: {path} is damaged (JSONDecodeError)"
    assert len(history.scans.tracks) == 1
    assert history.scans.past == ()


def test_a_file_of_a_later_version_is_left_alone(tmp_path):
    path = put(tmp_path, json.dumps({**document(), "format": past_file.FORMAT + 1, "new": 1}))
    before = path.read_text()
    store, history = HistoryStore(tmp_path), finished()
    note = store.recall(GUID, history)
    assert note == f"earlier scans not read: a later version wrote {path}"
    assert store.keep(GUID, history, T, at_once=True)
    assert path.read_text() == before


def test_a_link_in_the_files_place_is_a_note(tmp_path):
    (tmp_path / NAME).symlink_to("/etc/passwd")
    assert "earlier scans not read" in (HistoryStore(tmp_path).recall(GUID, PoolHistory()) or "")


def test_another_pools_scans_are_not_read():
    with pytest.raises(ValueError, match="another pool"):
        decoded(document(), "99")


def test_of_any_number_of_scans_only_some_are_read():
    crowd = document()
    crowd["finished"] *= 100
    assert len(decoded(crowd, GUID)) == MOST_PAST


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
        decoded(changed, GUID)


@pytest.mark.parametrize("text", ["", "[]", "null", "3", '{"format": 1}', "{}", '{"format": "2"}'])
def test_whatever_is_in_the_file_it_is_a_note_and_a_fresh_start(tmp_path, text):
    put(tmp_path, text)
    history = PoolHistory()
    assert "damaged" in (HistoryStore(tmp_path).recall(GUID, history) or "")
    history.push(sample(5))


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
    history = PoolHistory()
    try:
        for past in decoded(damaged, GUID):
            history.scans.learn(past)
    except storage.DAMAGE:
        return
    for second in range(2, 8):
        history.push(sample(second + 9000, start=9000.0))
    estimate = history.scan_views[0].estimate
    assert estimate.eta is None or 0 <= estimate.low <= estimate.eta <= estimate.high < math.inf
