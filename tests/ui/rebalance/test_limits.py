"""Limits as people write them."""

from __future__ import annotations

import pytest

from zconsole.errors import ZconsoleError
from zconsole.ui.rebalance.limits import LIMITS, MIN_FREE, RATE, TARGET


@pytest.mark.parametrize(
    ("limit", "answer", "value"),
    [
        (RATE, "200M", 200 << 20),
        (RATE, "200m/s", 200 << 20),
        (RATE, "none", None),
        (TARGET, "5", 0.05),
        (TARGET, "7.5 %", 0.075),
        (MIN_FREE, "12%", 0.12),
        (LIMITS[2], "50ms", 0.05),
        (LIMITS[2], "2s", 2.0),
        (LIMITS[5], "22:00-06:00", "22:00-06:00"),
    ],
)
def test_limits_are_understood_as_people_write_them(limit, answer, value):
    assert limit.value(answer) == pytest.approx(value) if value != answer else value


@pytest.mark.parametrize(
    ("limit", "answer"),
    [
        (RATE, "fast"), (RATE, "-5M"), (TARGET, "101"), (TARGET, "x"), (LIMITS[2], "soon"),
        (LIMITS[5], "late"), (LIMITS[5], "25:00-26:00"),
    ],
)  # fmt: skip
def test_nonsense_is_refused_in_words(limit, answer):
    with pytest.raises(ZconsoleError, match="not a"):
        limit.value(answer)
