"""Dates as people type them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.table import rows
from zconsole.actions.scrub import EXAMPLE, ScrubDates, read_dates
from zconsole.errors import ZconsoleError

NOW = datetime(2026, 11, 25, 15, 0, tzinfo=UTC)


@rows(
    ("typed", "start", "end"),
    [
        ("2026-11-01", "2026-11-01", ""),
        ("from  2026-11-01  06:30", "2026-11-01 06:30", ""),
        (EXAMPLE, "2026-11-01", "2026-11-20 18:00"),
        ("2026-11-01..2026-11-20", "2026-11-01", "2026-11-20"),
        ("until 2026-11-20", "", "2026-11-20"),
        ("2026-11-20 06:00 to 2026-11-20", "2026-11-20 06:00", "2026-11-20"),
        ("2026-11-20 06:00 to 2026-11-20 06:00", "2026-11-20 06:00", "2026-11-20 06:00"),
    ],
)
def test_dates_are_read_in_the_ways_people_write_them(typed, start, end):
    assert read_dates(typed, NOW) == ScrubDates(start, end)


@rows(
    ("typed", "why"),
    [
        ("", "not dates"),
        ("to", "not dates"),
        ("yesterday", "not dates"),
        ("2026-11-01; reboot", "not dates"),
        ("-S 2026-11-01", "not dates"),
        ("2026-02-30", "no such day"),
        ("2026-11-01 25:00", "no such day"),
        ("1969-12-31", "too early"),
        ("2026-11-26", "in the future"),
        ("2026-11-20 to 2026-11-19", "is before"),
    ],
)
def test_what_are_no_dates_is_refused_with_the_reason(typed, why):
    with pytest.raises(ZconsoleError, match=why):
        read_dates(typed, NOW)
