"""The graph of a scan's rate: scale, time axis, marks, and going back in time."""

from __future__ import annotations

from tests.records import replace
from tests.ui import frames
from tests.ui.drawn import LOOK, plain
from zconsole.history.past_rates import Mark, PastRates
from zconsole.monitor.frame import DONE
from zconsole.pool.model import Event
from zconsole.ui.panes.rate_graph import Axis, rate_lines, shown_steps
from zconsole.ui.panes.scan_parts import Ink
from zconsole.ui.widgets.draw import width_of
from zconsole.ui.widgets.glyphs import ASCII

NOW = frames.NOW


def drawn(past, rows, width=60, until=None, look=LOOK, **fields):
    frame = replace(frames.resilver(), **fields)
    view = frame.scans[0]._replace(past=past)
    lines = rate_lines(view, Ink(look, width, NOW, frame), rows, until)
    assert max(map(width_of, lines)) <= width
    return [plain(line) for line in lines]


def hours(*marks, **fields):
    """Two hours at 2 MiB/s in steps of a minute that end now."""
    past = PastRates(NOW - 7200, 60.0, (2.0 * 2**20,) * 120, tuple(marks))
    return past._replace(**fields)


def test_one_row_says_its_scale_and_since_when():
    (line,) = drawn(hours(), 1)
    assert line.startswith(" rate      ██")
    assert line.endswith("  2M/s       last 23m00s")


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
    assert drawn(hours(), 1, problem="no answer")[0].endswith(" 23m00s to 12:41")
    assert drawn(hours(), 4, problem="no answer")[-1].endswith("─ 12:41")


def test_ascii_has_one_step_a_cell():
    lines = drawn(hours(), 4, look=replace(LOOK, glyphs=ASCII))
    assert all(line.isascii() for line in lines)
    assert lines[-2].count("@") == 46


def test_before_the_first_rate_its_lines_are_there():
    assert [line.strip() for line in drawn(PastRates(), 2)] == ["┤", "rate │", f"0 ┴{'─' * 46}"]
    assert len(drawn(PastRates(), 1)) == 1


def test_what_happened_is_marked_where_it_was():
    lines = drawn(hours(Mark(NOW - 5400, "issuing"), Mark(NOW - 1800, "restart")), 4, width=100)
    assert "─ issuing 11:11 ▴─" in lines[-1]
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
    assert line.endswith(" 1h23m-1h00m ago")
    assert drawn(past, 4, until=NOW - 600)[-1].endswith(" 12:31")


def test_never_further_back_than_the_beginning_nor_beyond_now():
    past = hours(rates=tuple(float(n) for n in range(120)))
    assert shown_steps(past, 30, 0.0).rates == tuple(float(n) for n in range(30))
    assert shown_steps(past, 30, NOW + 99).is_now
    assert shown_steps(past, 500, NOW - 3600).rates == past.rates


class TestAxis:
    def test_words_keep_a_space_from_each_other(self):
        axis = Axis(12, "-", "^")
        assert axis.put(0, "ab")
        assert not axis.put(2, "cd")
        assert axis.put(4, "cd")
        assert not axis.put(11, "ef")
        assert "".join(span.text for span in axis.spans()) == "ab  cd -----"
