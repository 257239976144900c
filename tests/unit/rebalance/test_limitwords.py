from __future__ import annotations

import argparse

import pytest

from zconsole.rebalance.limitwords import share, size_above_0, window


def test_limits_are_read():
    assert (size_above_0("10m"), share("0.25"), window("22:00-06:00")) == (
        10 << 20,
        0.25,
        "22:00-06:00",
    )


@pytest.mark.parametrize(
    ("read", "word"),
    [
        (size_above_0, "x"),
        (size_above_0, "0"),
        (share, "1.5"),
        (share, "nan"),
        (share, "10%"),
        (window, "22"),
        (window, "25:00-06:00"),
    ],
)
def test_anything_else_is_told_in_words(read, word):
    with pytest.raises(argparse.ArgumentTypeError, match=f"'{word}' is no (size|share|window)"):
        read(word)
