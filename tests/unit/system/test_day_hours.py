from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.table import rows
from zconsole.system.day_hours import DAY, day_hours


@rows(
    ("text", "hours"),
    [
        ("22:00-06:00", "22:00-06:00"),
        ("8:5 - 9:00", "08:05-09:00"),
        ("22:00-24:00", "22:00-00:00"),
        ("00:00-24:00", "00:00-00:00"),
    ],
)
def test_hours_are_read_as_people_type_them(text, hours):
    assert str(day_hours(text)) == hours


@rows(
    "text",
    [
        "",
        "night",
        "22-6",
        "22:00",
        "25:00-26:00",
        "24:01-01:00",
        "22:60-23:00",
        "1:00-2:00-3:00",
        "+1:00-2:00",
        "1_0:00-12:00",
        "\u0662:00-3:00",
        "001:00-2:00",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="is not"):
        day_hours(text)


@rows(
    ("text", "inside", "outside"),
    [
        ("22:00-06:00", [(22, 0), (0, 0), (5, 59)], [(21, 59), (6, 0)]),
        ("08:00-09:00", [(8, 0), (8, 59)], [(7, 59), (9, 0)]),
        ("22:00-24:00", [(22, 0), (23, 59)], [(0, 0), (21, 59)]),
        ("07:00-07:00", [(7, 0), (6, 59)], []),
    ],
)
def test_the_first_minute_is_inside_and_the_last_is_not(text, inside, outside):
    hours = day_hours(text)
    assert [hours.has(*time) for time in inside] == [True] * len(inside)
    assert [hours.has(*time) for time in outside] == [False] * len(outside)
    assert all(hour * 60 + minute in hours.minutes() for hour, minute in inside)


@pytest.mark.parametrize("text", ["22:00-06:00", "00:00-24:00", "09:30-09:31", "12:00-11:59"])
@pytest.mark.slow
def test_so_much_work_in_these_hours_takes_so_long(text: str) -> None:
    """Compare with counting minute by minute."""
    hours, begin = day_hours(text), datetime(2026, 3, 1, tzinfo=UTC)
    for start in range(0, DAY, 97):
        now = begin + timedelta(minutes=start)
        work = minutes = 0
        for goal in (1, 59, 61, 180, 700):
            while work < goal and minutes < 5 * DAY:
                work += hours.includes(now + timedelta(minutes=minutes))
                minutes += 1
            if work == goal:
                assert hours.until_worked(60.0 * goal, now) == 60.0 * minutes
