"""The time axis: labels that keep their distance, round times in any zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from tests.table import rows
from zconsole.ui.panes.rate_graph import TimeAxis, round_times

NOON = datetime(2026, 11, 20, 12, 7, tzinfo=UTC).timestamp()


def test_words_keep_a_space_from_each_other():
    axis = TimeAxis("-" * 12, "^")
    assert axis.put(0, "ab")
    assert not axis.put(2, "cd")
    assert axis.put(4, "cd")
    assert not axis.put(11, "ef")
    assert "".join(span.text for span in axis.spans()) == "ab  cd -----"
    assert not axis.put(9, "ef", away=4)
    assert axis.put(9, "ef", away=2)


def test_marks_stand_on_what_is_drawn():
    axis = TimeAxis("abc", "^", "spark")
    axis.mark(1)
    assert [(span.text, span.role) for span in axis.spans()] == [
        ("a", "spark"),
        ("^", "notice"),
        ("c", "spark"),
    ]


@rows(
    ("hours", "width", "said"),
    [
        (1, 70, ["11:15", "11:30", "11:45", "12:00"]),
        (10, 54, ["03:00", "06:00", "09:00", "12:00"]),
        (24, 32, ["00:00", "12:00"]),
        (24 * 60, 30, []),
    ],
)
def test_as_many_round_times_as_have_room(hours, width, said):
    found = round_times(NOON - 3600 * hours, NOON, width, UTC)
    assert [f"{datetime.fromtimestamp(t, UTC):%H:%M}" for t in found] == said


@rows("minutes", [330, -570, 60])
def test_they_are_round_where_the_operator_is(minutes):
    zone = timezone(timedelta(minutes=minutes))
    found = [datetime.fromtimestamp(t, zone) for t in round_times(NOON - 86400, NOON, 99, zone)]
    assert found
    assert {(t.hour % 6, t.minute, t.second) for t in found} == {(0, 0, 0)}
