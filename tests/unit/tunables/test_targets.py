from __future__ import annotations

import time

import pytest

from tests.table import rows
from zconsole.errors import UsageError
from zconsole.tunables.pilot import targets


def at(words: str, clock: str) -> float:
    hour, minute = map(int, clock.split(":"))
    now = time.struct_time((2026, 11, 25, hour, minute, 0, 2, 329, 0))
    return targets(words.split()).at(0.0, lambda _: now)


@rows(("word", "seconds"), [("20ms", 0.02), ("0.02", 0.02), ("1.5s", 1.5)])
def test_a_latency_is_read_in_seconds_or_milliseconds(word, seconds):
    assert targets([word]).usual == seconds


@rows(
    ("clock", "seconds"),
    [("21:59", 0.02), ("22:00", 0.1), ("00:00", 0.1), ("05:59", 0.1), ("06:00", 0.02)],
)
def test_hours_over_midnight_have_their_own(clock, seconds):
    assert at("20ms 22:00-06:00=100ms", clock) == seconds


def test_hours_may_follow_each_other():
    words = "20ms 06:00-12:00=50ms 12:00-18:00=10ms"
    assert (at(words, "11:59"), at(words, "12:00"), at(words, "18:00")) == (0.05, 0.01, 0.02)


@rows(
    "words",
    [
        "",
        "fast",
        "-1",
        "nan",
        "1e-2",
        "0",
        "60",
        "20 ms",
        "22:00-06:00=100ms",
        "20ms 22:00-25:00=100ms",
        "20ms 00:00-24:00=100ms",
        "20ms 22:00-22:00=100ms",
        "20ms 22:00-06:00=100ms 05:00-07:00=50ms",
        "20ms 22:00-06:00",
        "\u0662\u0660ms",
    ],
)
def test_other_words_are_refused(words):
    with pytest.raises(UsageError):
        targets(words.split())


def test_its_words_read_the_same():
    made = targets(["20ms", "22:00-06:00=100ms"])
    assert targets(made.words) == made
    assert str(made) == "20ms, 22:00-06:00 100ms"
