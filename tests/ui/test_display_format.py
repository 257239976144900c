"""How figures are written."""

from __future__ import annotations

import pytest

from zconsole.ui.display_format import percent


@pytest.mark.parametrize(
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
    assert percent(share, digits) == said
