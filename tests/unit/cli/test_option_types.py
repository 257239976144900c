from __future__ import annotations

import argparse

import pytest

from tests.table import rows
from zconsole.cli.option_types import positive, share, size_above_0


def test_numbers_are_read():
    assert (size_above_0("10m"), share("0.25"), positive("3")) == (10 << 20, 0.25, 3.0)


@rows(
    ("read", "word"),
    [
        (size_above_0, "x"),
        (size_above_0, "0"),
        (share, "1.5"),
        (share, "nan"),
        (share, "10%"),
        (positive, "0"),
        (positive, "inf"),
    ],
)
def test_anything_else_is_told_in_words(read, word):
    with pytest.raises(
        argparse.ArgumentTypeError, match=f"must be a (size|share|number) .*, not '{word}'"
    ):
        read(word)
