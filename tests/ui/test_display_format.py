"""Formatting of figures."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.table import rows
from zconsole.ui.display_format import DisplayFormat, count


def test_rates_in_a_text_follow_the_units():
    said = "the new disk sda-4T: 122M/s in 64K pieces, 40 reads/s"
    assert DisplayFormat().rates(said) == said
    assert DisplayFormat(unit="decimal").rates(said) == said.replace("122M", "128M")
    assert DisplayFormat(unit="exact").rates(said) == said


@rows(
    ("days", "said"),
    [(0, "12:00"), (-1, "yesterday 12:00"), (-6, "19 Nov 12:00"), (2, "Fri 12:00")],
)
def test_a_day_of_the_week_is_only_of_the_time_to_come(days, said):
    now = datetime(2026, 11, 25, 12, tzinfo=UTC).timestamp()
    assert DisplayFormat(zone=UTC).when(now + 86400 * days, now) == said


@rows(
    ("number", "said"),
    [(9999, "9999"), (12_345, "12K"), (999_600, "1.0M"), (2_280_000, "2.3M"), (9_960_000, "10M")],
)
def test_a_count_has_two_digits_at_least(number, said):
    assert count(number) == said
