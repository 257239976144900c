"""The choices before a plan."""

from __future__ import annotations

import pytest

from tests.records import replace
from tests.ui.drawn import plain
from tests.ui.rebalance.samples import SETTINGS
from zconsole.errors import ZconsoleError
from zconsole.rebalance.planning.settings import EVEN, Limits, Settings
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.rebalance.options import (
    AIM,
    LIMITS,
    MIN_FREE,
    RATE,
    TARGET,
    option_about,
    option_lines,
)
from zconsole.ui.rebalance.options import PLAN as LAST


def test_a_choice_that_is_cut_is_told_whole():
    settings = replace(SETTINGS, rewrite_options="SC")
    for width in (60, 80):
        for index in range(LAST + 1):
            whole = " ".join(
                plain(line).strip()
                for line in option_about(settings, index, DisplayFormat(), width)
            )
            row = plain(option_lines(settings, DisplayFormat(), width)[index])
            assert bool(whole) == ("…" in row)
    lines = map(plain, option_about(settings, LAST - 1, DisplayFormat(), 60))
    assert " ".join(lines).endswith("(2.5)")


def test_no_usual_choice_is_cut_on_a_small_screen_where_that_would_hide_the_way_on():
    settings = Settings(("/storage/films",), limits=Limits(until_spread=EVEN), accept_races=True)
    rows = map(plain, option_lines(settings, DisplayFormat(), 60))
    assert not [row for row in rows if "…" in row]


def test_a_target_that_was_typed_does_not_read_like_the_default():
    default, typed = (
        plain(option_lines(SETTINGS, DisplayFormat(), 80, each)[2]) for each in (False, True)
    )
    assert default.endswith("5.0 % (even), else everything")
    assert typed.endswith("  5.0 %")


def test_only_a_job_that_is_to_balance_stops_where_the_vdevs_are_even():
    settings = AIM.made(replace(SETTINGS, aim="recordsize"), "balance")
    assert (settings.aim, settings.limits.until_spread) == ("balance", EVEN)
    settings = AIM.made(settings, "width")
    assert (settings.aim, settings.limits.until_spread) == ("width", None)


def test_the_aim_there_is_picked_again_keeps_a_target_that_was_typed():
    settings = replace(SETTINGS, limits=Limits(until_spread=0.2))
    assert AIM.made(settings, settings.aim) == settings


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
