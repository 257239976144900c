from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zconsole.eta.median import median

finite = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(st.lists(finite, min_size=1))
def test_it_is_that_of_statistics(values):
    assert median(values) == statistics.median(values)


def test_nothing_has_none():
    with pytest.raises(IndexError):
        median([])
