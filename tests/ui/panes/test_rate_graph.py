"""The graph of a scan's rate: scale, time axis, marks, and moving back in time."""

from __future__ import annotations

import re

import pytest

from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.drawn import LOOK, plain
from zconsole.pool.model import Event
from zconsole.timeline.frame import DONE
from zconsole.timeline.scan_rate import Mark, PastRates
from zconsole.ui.panes.pane import Ink
from zconsole.ui.panes.rate_graph import graph_width, rate_lines, shown_steps
from zconsole.ui.widgets.draw import width_of
from zconsole.ui.widgets.graph import ASCII

NOW = frames.NOW


def drawn(past, rows, width=60, until=None, look=LOOK, **fields):
    frame = replace(frames.resilver(), **fields)
    view = frame.scans[0]._replace(past=past)
    lines = rate_lines(view, Ink(look, width, frame), rows, until)
    assert max(map(width_of, lines)) <= width
    return [plain(line).rstrip() for line in lines]


def hours(*marks, **fields):
    """Return two hours at 2 MiB/s, in steps of a minute, that end now."""
    past = PastRates(NOW - 7200, 60.0, (2.0 * 2**20,) * 120, tuple(marks))
    return past._replace(**fields)


def test_one_row_says_its_scale_and_since_when():
    (line,) = drawn(hours(), 1)
    assert len(line) == 59, "the last column is free, as of the bars above"
    assert line.startswith(" rate      ██")
    assert line.endswith(" scale 2M/s        last 18m00s")


@rows("width", [60, 80])
@rows("said", ["restart", "paused", "resilvering", "zfs_vdev_scrub_max_active=3"])
def test_one_row_carries_a_mark_where_something_happened(said, width):
    look, past = LOOK, hours(Mark(NOW - 600, said))
    frame = frames.resilver()
    ink = Ink(look, width, frame)
    (line,) = rate_lines(frame.scans[0]._replace(past=past), ink, 1, None)
    (mark,) = (span for span in line if span.role == "notice")
    before = plain(line[: line.index(mark)])
    assert mark.text == "▴"
    assert len(before) == 11 + graph_width(width, 1, look.number) - 1 - 10
    assert plain(line).count("█") == graph_width(width, 1, look.number) - 1


def test_one_row_scrolled_back_has_the_marks_of_that_time():
    past = hours(Mark(NOW - 3600 - 60, "restart"))
    assert "▴" not in drawn(past, 1)[0]
    assert "▴" in drawn(past, 1, until=NOW - 3600)[0]


def test_several_rows_have_a_scale_and_a_time_axis():
    lines = drawn(hours(), 4, width=100)
    assert len(lines) == 5
    assert lines[0].startswith("       2M/s ┤")
    assert lines[1].startswith("       rate │")
    assert lines[-1].startswith("          0 ┴──")
    assert " 10:41 ──" in lines[-1]
    assert lines[-1].endswith("─ now")
    assert lines[0].index("⣿") == lines[-1].index("10:41")


def test_the_newest_step_of_a_pool_that_does_not_answer_is_not_of_now():
    assert drawn(hours(), 1, problem="no answer")[0].endswith(" 12:23-12:41")
    assert drawn(hours(), 4, problem="no answer")[-1].endswith("─ 12:41")


def test_a_scan_that_has_just_begun_says_when():
    axis = drawn(PastRates(NOW - 8, 1.0, (2.0 * 2**20,) * 8), 4)[-1]
    assert axis.endswith("─ 12:40  now")


def test_between_the_ends_of_the_time_axis_stand_round_times():
    lines = drawn(hours(rates=(2.0 * 2**20,) * 120, step=300.0, begin=NOW - 36000), 4, width=100)
    columns = [lines[-1].index(said) for said in ("02:41", "06:00", "09:00", "now")]
    assert columns[2] - columns[1] == 3 * 3600 / (2 * 300)
    assert columns[1] - columns[0] == pytest.approx((6 - 2.685) * 3600 / (2 * 300), abs=1)


def test_no_time_stands_on_the_axis_twice():
    begin = NOW - NOW % 60 - 70  # starts and ends at 50 seconds past a full minute
    past = hours(rates=(2.0 * 2**20,) * 120, step=1.0, begin=begin)
    lines = drawn(past, 4, width=100, problem="no answer")
    clocks = re.findall(r"[0-9]{2}:[0-9]{2}", lines[-1])
    assert clocks
    assert len(clocks) == len({*clocks})


def test_a_round_time_gives_way_to_words():
    axis = drawn(hours(Mark(NOW - 2400, "paused")), 4, width=100)[-1]
    assert "▴ paused 12:01" in axis or "paused 12:01 ▴" in axis
    assert "12:00" not in axis


def test_ascii_has_one_step_a_cell():
    lines = drawn(hours(), 4, look=replace(LOOK, glyphs=ASCII))
    assert all(line.isascii() for line in lines)
    assert lines[-2].count("@") == 46


def test_before_the_first_rate_its_lines_are_there():
    assert [line.strip() for line in drawn(PastRates(), 2)] == ["┤", "rate │", f"0 ┴{'─' * 46}"]
    assert len(drawn(PastRates(), 1)) == 1


def test_what_happened_is_marked_where_it_was():
    lines = drawn(hours(Mark(NOW - 5400, "resilvering"), Mark(NOW - 1800, "restart")), 4, width=100)
    assert "─ resilvering 11:11 ▴─" in lines[-1]
    assert "─ restart 12:11 ▴─" in lines[-1]
    assert 99 - 1 - lines[-1].index("12:11 ▴") - len("12:11 ") == 1800 / 120


def test_a_mark_near_the_end_has_its_words_at_its_left():
    assert drawn(hours(Mark(NOW - 10, "paused")), 4)[-1].endswith("── paused 12:40 ▴")


def test_marks_without_room_for_words_are_marks_all_the_same():
    marks = [Mark(NOW - 60 * n, f"mark{n}") for n in range(60, 0, -1)]
    axis = drawn(hours(*marks), 4, width=100)[-1]
    assert axis.count("▴") >= 28


def test_what_was_done_from_a_console_is_told_and_not_what_it_changed():
    done = Event(NOW - 1801, DONE, "preset gentle", "notice", origin="console")
    axis = drawn(hours(Mark(NOW - 1800, "3 tunables changed")), 4, 100, events=(done,))[-1]
    assert "preset gentle 12:11 ▴" in axis
    assert "tunables changed" not in axis


def test_outside_text_on_the_axis_is_made_safe():
    done = Event(NOW - 1801, DONE, "\x1b[2J初期化", "notice", origin="console")
    axis = drawn(hours(), 4, 100, events=(done,))[-1]
    assert "\x1b" not in axis
    assert "▴" in axis


def test_going_back_shows_earlier_steps_and_which():
    past = hours(rates=tuple(float(n) for n in range(120)))
    shown = shown_steps(past, 30, NOW - 3600)
    assert shown.rates == tuple(float(n) for n in range(30, 60))
    assert (shown.begin, shown.end, shown.is_now) == (NOW - 5400, NOW - 3600, False)
    (line,) = drawn(past, 1, until=NOW - 3600)
    assert line.endswith(" 1h18m-1h00m ago")
    seconds = hours(rates=past.rates, step=10.0, begin=NOW - 1200)
    assert drawn(seconds, 1, until=NOW - 605)[0].endswith(" to 10m00s ago")
    assert drawn(past, 4, until=NOW - 600)[-1].endswith(" 12:31")


def test_never_further_back_than_the_beginning_nor_beyond_now():
    past = hours(rates=tuple(float(n) for n in range(120)))
    assert shown_steps(past, 30, 0.0).rates == tuple(float(n) for n in range(30))
    assert shown_steps(past, 30, NOW + 99).is_now
    assert shown_steps(past, 500, NOW - 3600).rates == past.rates
