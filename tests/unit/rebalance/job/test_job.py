"""What a job knows its directories by."""

from __future__ import annotations

import pytest

from zconsole.rebalance.job.job import is_same_filesystem


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        ("zfs:tank/data:17", "zfs:tank/data:17", True),
        ("zfs:tank/data:17", "zfs:tank/renamed:17", True),
        ("zfs:tank/data:17", "zfs:tank/data:18", False),
        ("zfs:tank/data:", "zfs:tank/other:", False),
        ("ext4:/dev/sda1:", "ext4:/dev/sda1:", True),
        ("ext4:/dev/sda1:", "ext4:/dev/sdb1:", False),
        ("", "zfs:tank/data:17", False),
    ],
)
def test_a_renamed_dataset_is_the_same(before: str, now: str, same: bool) -> None:
    assert is_same_filesystem(before, now) is same
