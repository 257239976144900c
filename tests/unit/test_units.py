from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tests.table import rows
from zconsole import units
from zconsole.units import parse_size
from zconsole.zfs.decode.values import number


@rows(
    ("text", "value"),
    [
        ("0", 0), ("88", 88), ("0B", 0), ("512B", 512), ("4K", 4096), ("1.50K", 1536),
        ("12.9T", round(12.9 * 1024**4)), ("9,12T", round(9.12 * 1024**4)), ("1023K", 1023 * 1024),
        ("-", None), ("", None), ("junk", None), ("1.2.3K", None),
    ],
)  # fmt: skip
def test_parse_size(text, value):
    assert units.parse_size(text) == value


@rows(
    ("text", "value"),
    [
        ("18T", 18 * 1024**4), ("18TiB", 18 * 1024**4), ("18TB", 18 * 1000**4),
        ("1.92TB", 1920 * 1000**3), ("500GB", 500 * 1000**3), ("88B", 88), ("88", 88),
        ("18tb", None), ("TB", None), ("9" * 400 + "TB", None), ("99999EB", None),
    ],
)  # fmt: skip
def test_a_typed_size_with_a_b_is_what_is_printed_on_a_drive(text, value):
    assert units.typed_size(text) == value


@rows(
    ("text", "seconds"),
    [
        ("62h28m", 224880), ("0h2m", 120), ("1m35s", 95), ("00:00:09", 9),
        ("1 days 02:03:04", 93784),
        ("0 days 01:24:38", 5078), ("2d03h", 183600), ("soon", None), ("1h2", None),
    ],
)  # fmt: skip
def test_parse_duration(text, seconds):
    assert units.parse_duration(text) == seconds


@rows("form", ["{}d", "{}:00:00", "{} days 01:00:00"])
def test_more_digits_than_a_duration_has_are_none(form):
    for digits in (10, 400, 5000):
        assert units.parse_duration(form.format("9" * digits)) is None


@rows(
    ("value", "text"),
    [
        (0, "0"), (88, "88"), (4096, "4K"), (1536, "1.50K"), (12.9 * 1024**4, "12.9T"),
        (1023 * 1024, "1023K"), (None, "-"), (-4096, "-4K"), (float("nan"), "-"),
        (3 * 2.0**70, "3072E"),
    ],
)  # fmt: skip
def test_size_is_printed_as_zpool_does(value, text):
    assert units.size(value) == text


@given(st.integers(0, 2**63))
def test_a_printed_size_is_short_and_reads_back_within_its_own_rounding(value):
    text = units.size(value)
    assert len(text) <= 5
    read = units.parse_size(text)
    assert abs(read - value) <= units.size_resolution(text) + 1


@rows(("text", "step"), [("88", 0.0), ("88B", 0.0), ("16K", 512.0), ("soon", 0.0)])
def test_half_the_step_of_the_last_digit_is_the_doubt(text, step):
    assert units.size_resolution(text) == step


@given(st.floats(0, 1e9))
def test_a_duration_reads_back_within_its_smaller_unit(seconds):
    read = units.parse_duration(units.duration(seconds))
    assert abs(read - seconds) <= (3600 if seconds >= 86400 else 60 if seconds >= 3600 else 1)


@rows("text", ["9" * 400, "9" * 400 + "K", "99999E", "9" * 30])
def test_more_than_zfs_can_count_is_no_size(text):
    assert parse_size(text) is None
    assert number(text) is None


@rows("value", [10**400, -(10**400), 1e300, float("inf"), float("nan"), 2**70])
def test_more_than_zfs_can_count_is_no_number(value):
    assert number(value) is None


def test_all_of_64_bits_is_a_number():
    assert (number(str(2**64 - 1)), number(2**64 - 1)) == (2**64 - 1, 2**64 - 1)
    assert parse_size("16.0E") == 2**64


def test_a_count_agrees_with_its_noun():
    assert units.counted(1, "error") == "1 error"
    assert units.counted(2_279_999, "file") == "2,279,999 files"
    assert [units.counted(n, "more device") for n in (0, 2)] == ["0 more devices", "2 more devices"]


@rows("value", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_is_unknown(value):
    assert units.size(value) == units.rate(value) == units.percent(value) == "-"
    assert units.latency(value, "-") == units.duration(value) == "-"


@rows(
    ("share", "digits", "said"),
    [
        (None, 1, "-"),
        (0.3824, 1, "38.2 %"),
        (1.0, 0, "100 %"),
        (-0.0, 1, "0.0 %"),
        (-0.0004, 1, "0.0 %"),
        (-0.004, 0, "0 %"),
        (-0.01, 1, "-1.0 %"),
    ],
)
def test_a_share_never_reads_as_less_than_nothing_where_it_rounds_to_it(share, digits, said):
    assert units.percent(share, digits) == said
