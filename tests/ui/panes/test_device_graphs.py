"""Graphs of a device's past: their width, height and labels."""

from __future__ import annotations

import math

import pytest

from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.drawn import LOOK, plain
from zconsole.pool.model import Event, IoRates
from zconsole.timeline.frame import DONE
from zconsole.timeline.rates import CAPACITY
from zconsole.timeline.scan_rate import Mark
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.device_graphs import even_in_time, graphs, scrolled, shown_samples
from zconsole.ui.widgets.draw import width_of
from zconsole.ui.widgets.graph import ASCII

FRAME = frames.resilver()
SLOW = FRAME.rows[6]
NOW = FRAME.t


def drawn(width, rows, look=LOOK, frame=FRAME, row=SLOW, until=None):
    return [plain(line) for line in graphs(row, frame, look, width, rows, until)]


def with_marks(*marks, **fields):
    """Return the frame with these marks on its scan, and no events except those in ``fields``."""
    view = FRAME.scans[0]
    marked = view._replace(past=view.past._replace(marks=marks))
    return replace(FRAME, **{"events": (), "scans": (marked,), **fields})


@rows("rows", [1, 3])
def test_each_has_its_name_and_scale_and_all_have_one_time(rows):
    lines = drawn(80, rows)
    assert [line.split()[0] for line in lines if line[0] != " "] == ["latency", "read", "write"]
    assert lines[0].endswith("  scale 64ms")
    assert lines[rows].endswith("  scale 64M")
    assert lines[2 * rows] == "write        none"
    assert lines[-1].split() == ["last", {1: "53s", 3: "1m47s"}[rows], "now"]
    assert len(lines) == 2 * rows + 2


@rows("rows", [1, 3])
@rows("width", [*range(1, 130, 7), 200, 399])
def test_they_fit_and_are_no_wider_than_what_is_kept(width, rows):
    for line in graphs(SLOW, FRAME, LOOK, width, rows):
        assert width_of(line) <= min(width, len("operations   ") + CAPACITY + len("  scale 128ms"))


def test_plain_characters_do():
    lines = drawn(60, 3, DisplayFormat(ASCII))
    assert all(line.isascii() for line in lines)
    assert any("@" in line for line in lines)


def test_latency_below_a_millisecond_has_a_scale_in_microseconds():
    frame = frames.resilver()
    frame.series.rates = {SLOW.key: IoRates(latency=0.0001)}
    assert drawn(60, 1, frame=frame)[0].endswith("  scale 128us")


def test_a_device_of_which_nothing_is_known_has_none():
    assert drawn(80, 1, row=SLOW._replace(key="nothing")) == []


@rows(("rows", "apart"), [(1, 10), (3, 5)])
def test_what_happened_to_the_scan_is_marked_where_it_was(rows, apart):
    axis = drawn(100, rows, frame=with_marks(Mark(NOW - 10, "restart")))[-1]
    assert axis.index("restart 12:40 ▴") + len("restart 12:40 ▴") == len(axis) - apart


def test_what_was_done_and_what_befell_the_device_is_marked_and_nothing_of_its_siblings():
    name = SLOW.vdev.name
    events = (
        Event(NOW - 50, "statechange", f"{name} went REMOVED", "error", name),
        Event(NOW - 30, DONE, "preset gentle", "notice", origin="console"),
        Event(NOW - 10, "statechange", "other is ONLINE again", "notice", "other"),
    )
    axis = drawn(140, 1, frame=with_marks(events=events))[-1]
    assert axis.count("▴") == 2
    assert "▴ preset gentle 12:40 " in axis
    assert " went REMOVED 12:40 ▴" in axis
    assert name not in axis


def test_marks_of_another_time_than_the_shown_are_left_out():
    frame = with_marks(Mark(NOW - 100, "restart"))
    assert "▴" not in drawn(80, 1, frame=frame)[-1]
    axis = drawn(80, 1, frame=frame, until=NOW - 80)[-1]
    assert "▴" in axis
    assert axis.split()[0:2] == ["2m13s", "ago"]
    assert axis.endswith("  1m20s ago")


def test_rare_samples_after_frequent_ones_have_as_much_room_as_their_time():
    """Earlier, the first minute of ``last 3h38m`` took most of the width."""
    times = [*range(60), *range(120, 120 + 60 * 60, 60)]
    values = [1.0] * 60 + [2.0] * 60
    even = even_in_time([float(t) for t in times], values)
    assert len(even) == len(times)
    assert even.count(1.0) == pytest.approx(60 / (times[-1] / len(times)), abs=1.1)
    assert None not in even


def test_samples_as_far_apart_as_each_other_are_drawn_as_they_are():
    values = [0.5, None, 3.0, 2.0, None, 1.0]
    assert even_in_time([10.0, 12.1, 13.9, 16.0, 18.1, 20.0], values) == values


def test_a_time_without_samples_is_left_empty_between_them():
    even = even_in_time([0.0, 1.0, 2.0, 1000.0, 1001.0], [1.0] * 5)
    assert even == [1.0, None, None, None, 1.0]


def test_samples_of_an_earlier_run_without_their_time_are_drawn_as_they_came():
    assert even_in_time([math.nan, 1.0, 5.0], [1.0, 2.0, 3.0]) == [1.0, 2.0, 3.0]


def test_going_back_and_on_stays_within_what_is_kept():
    seen, until = [], None
    for _ in range(100):
        until = scrolled(FRAME, 60, until, -1)
        seen.append(until)
    assert seen[0] == NOW - 7
    assert seen[-1] == NOW - 180
    assert shown_samples(FRAME, 60, until).times[0] == NOW - 239
    for _ in range(100):
        until = scrolled(FRAME, 60, until, 1)
    assert until is None
    assert scrolled(FRAME, 0, None, -1) is None
    assert scrolled(FRAME, 240, None, -1) is None


@rows("rows", [1, 3])
def test_the_time_that_is_shown_begins_where_the_samples_do(rows):
    frame = frames.resilver()
    frame.series.length = 40
    lines = drawn(100, rows, frame=frame)
    first = next(n for n, cell in enumerate(lines[rows - 1]) if cell != " " and n > len("latency"))
    assert lines[-1].index("last 39s") == first
