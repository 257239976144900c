from __future__ import annotations

import pytest

from zconsole.ui.panes.device_columns import COLUMNS, arrange


def keys(width, longest=20, number=5):
    return [column.key for column in arrange(width, longest, number)]


@pytest.mark.parametrize("width", range(12, 260))
def test_columns_fit(width):
    columns = arrange(width, 60)
    assert sum(c.width for c in columns) + len(columns) - 1 <= max(width, 15)


def test_a_wider_screen_never_has_fewer_facts():
    seen = 0
    for width in range(40, 260):
        facts = {"err" if k.startswith("err") else k for k in keys(width)}
        assert len(facts) >= seen
        seen = len(facts)


def test_the_order_never_changes():
    for width in range(20, 260, 7):
        shown = keys(width)
        assert shown == [c.key for c in COLUMNS if c.key in shown]


def test_sixty_columns_keep_rates_latency_and_errors():
    assert keys(58) == ["name", "state", "read", "write", "lat", "err"]


def test_eighty_columns_have_sparklines_and_busy():
    assert {"read_spark", "write_spark", "busy"} <= set(keys(78))


def test_two_hundred_have_everything():
    assert {"queue", "slow", "note", "read_ops", "err_cksum"} <= set(keys(198))


def test_exact_numbers_get_room():
    assert next(c for c in arrange(120, 20, 12) if c.key == "read").width == 12
