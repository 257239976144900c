"""Single values of zpool's output: the dates it prints."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.table import rows
from zconsole.zfs.decode.values import parse_date

AT = datetime(2014, 8, 3, 15, 14, 45, tzinfo=UTC).timestamp()


@rows(
    "text",
    [
        "Sun Aug  3 15:14:45 2014",
        "Sun Aug  3 15:14:45 UTC 2014",
        "Sun Aug  3 03:14:45 PM UTC 2014",
        "Sun 03 Aug 2014 15:14:45",
        "Sun 03 Aug 2014 03:14:45 PM UTC",
    ],
)
def test_a_date_is_read_in_each_of_the_forms_that_zpool_prints(text):
    assert parse_date(text, UTC) == AT


@rows("text", ["", "never", "Sun Zzz  3 15:14:45 2014", "Sun Feb 30 15:14:45 2014", "15:14:45"])
def test_what_is_no_date_is_none(text):
    assert parse_date(text, UTC) is None
