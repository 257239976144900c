"""Plans as text for people."""

from __future__ import annotations

import pytest

from zconsole.rebalance.planning.plan_text import size_line

MIB = 1 << 20


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (104 * MIB, "takes 100M, afterwards about as much (lz4)"),
        (40 * MIB, "takes 100M, afterwards about 40M (lz4)"),
        (0, "takes 100M, afterwards about 0 (lz4)"),
        (None, "takes 100M; afterwards not known: lz4"),
    ],
)
def test_what_files_take_afterwards(after: int | None, said: str) -> None:
    assert size_line(100 * MIB, after, "lz4") == said


def test_off_zfs_there_is_nothing_to_say() -> None:
    assert size_line(100 * MIB, None, None) is None
    assert size_line(0, 0, "lz4") is None
