"""The building blocks of lines."""

from __future__ import annotations

from datetime import UTC

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.table import rows
from tests.ui.drawn import plain
from zconsole.ui.display_format import DisplayFormat, count
from zconsole.ui.widgets.draw import Span, broken, crop, fit, joined, merged, spread, width_of
from zconsole.ui.widgets.graph import ASCII, UNICODE, bar, scale, sparkline

NOW = 1795178467.0


@given(st.text(max_size=40), st.integers(0, 30), st.booleans())
def test_fit_is_exactly_as_wide_as_asked(text, width, right):
    assert cell_len(fit(text, width, right=right)) == width


def test_fit_marks_what_it_cut():
    assert fit("abcdef", 4) == "abc…"
    assert fit("ab", 4, right=True) == "  ab"


def test_fit_has_no_room_for_the_mark_in_one_cell():
    assert fit("abcdef", 1) == "a"
    assert fit("abcdef", 0) == fit("abcdef", -1) == ""


@given(st.lists(st.text(max_size=10), max_size=5), st.integers(1, 30))
def test_crop_never_leaves_more_than_the_width(texts, width):
    assert width_of(crop(tuple(Span(t) for t in texts), width)) <= width


def test_spread_puts_ends_at_the_edges_and_the_left_gives_way():
    line = spread((Span("left"),), (Span("right"),), 14)
    assert plain(line) == "left     right"
    assert plain(spread((Span("a long left"),), (Span("right"),), 10)) == "a l… right"


def test_merged_joins_what_looks_the_same():
    line = (Span("a"), Span(" "), Span("b"), Span(""), Span("c", "error"))
    assert merged(line) == (Span("a b"), Span("c", "error"))


def test_merged_keeps_a_badge_to_itself():
    line = (Span(" ", "badge-error"), Span(" "), Span("x"))
    assert merged(line) == (Span(" ", "badge-error"), Span(" x"))


def test_joined_wraps_between_parts_only():
    parts = [(Span("one"),), (Span("two"),), (Span("three"),)]
    assert [plain(line) for line in joined(parts, "  ", 9)] == ["one  two", "three"]


@rows(
    ("share", "drawn"),
    [
        (0.0, "····"),
        (0.001, "▏···"),
        (0.5, "██··"),
        (0.99, "███▉"),
        (1.0, "████"),
        (1.4, "████"),
        (-1.0, "····"),
        (None, "····"),
        (float("nan"), "····"),
    ],
)
def test_bar(share, drawn):
    assert plain(bar(share, 4, UNICODE)) == drawn


def test_bar_in_ascii_has_no_part_cells():
    assert plain(bar(0.5, 5, ASCII)) == "##..."


def test_scale_is_the_next_power_of_two_and_never_zero():
    assert scale([3.0, None, 100.0]) == 128.0
    assert scale([]) == scale([None, 0.0]) == 1.0


def test_equal_rates_draw_equally_high_on_one_scale():
    top = scale([200.0, 100.0])
    assert sparkline([200.0], 1, top, UNICODE) == "▇"
    assert sparkline([100.0], 1, top, UNICODE) == "▄"


def test_a_steady_rate_is_not_an_empty_floor():
    assert sparkline([200e6] * 4, 4, scale([200e6]), UNICODE) == "▆▆▆▆"


def test_sparkline_is_blank_before_the_first_sample_and_marks_gaps():
    assert sparkline([None, None, 8.0, None, 8.0], 6, 8.0, UNICODE) == "   █·█"


def test_the_smallest_rate_can_be_seen_and_idle_is_blank():
    assert sparkline([0.0, 0.001], 2, 1024.0, UNICODE) == " ▁"


@rows(
    ("seconds", "said"),
    [
        (0, "12:41"),
        (18 * 3600, "tomorrow 06:41"),
        (-86400, "yesterday 12:41"),
        (3 * 86400, "Mon 12:41"),
        (30 * 86400, "20 Dec 12:41"),
        (60 * 86400, "2027-01-19 12:41"),
    ],
)
def test_times_as_people_say_them(seconds, said):
    assert DisplayFormat(zone=UTC).when(NOW + seconds, NOW) == said


def test_tomorrow_in_fewer_cells_is_its_day():
    assert DisplayFormat(zone=UTC).when(NOW + 86400, NOW, brief=True) == "Sat 12:41"
    assert DisplayFormat(zone=UTC).when(NOW - 86400, NOW, brief=True) == "yesterday 12:41"


def test_units():
    value = 1536 * 2**20
    assert DisplayFormat().size(value) == "1.50G"
    assert DisplayFormat(unit="decimal").size(value) == "1.61G"
    assert DisplayFormat(unit="exact").size(value) == "1610612736"
    assert DisplayFormat(unit="exact").number > DisplayFormat().number


@given(st.floats(0, 1e21))
def test_sizes_fit_their_column(value):
    for unit in ("binary", "decimal"):
        look = DisplayFormat(unit=unit)
        assert len(look.size(value)) <= look.number


@given(st.integers(0, 10**18))
def test_counts_fit_four_cells(number):
    assert len(count(number)) <= 4


def test_outside_text_is_never_raw():
    assert DisplayFormat().text("a\x1b[31m\x9b") == "a\\x1b[31m\\x9b"
    assert DisplayFormat(ASCII).text("é") == "\\xe9"


@rows("width", [5, 10, 20])
@rows("text", ["磁碟一號" * 6, "a" * 37, "x 磁碟 y e\u0301 zz  two", "m磁a碟b一c號d 磁"])
def test_broken_text_fits_in_cells_and_loses_nothing(text, width):
    lines = broken(text, width)
    assert max(map(cell_len, lines)) <= width
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_no_text_is_one_line():
    assert broken("", 10) == ("",)
