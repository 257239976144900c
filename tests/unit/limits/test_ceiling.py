from __future__ import annotations

import pytest

from tests.unit.limits.watching import watched


def test_mirrors_top_out_at_one_disk_each_summed():
    ceiling = watched("mirror-scrub", 1).ceiling
    assert ceiling is not None
    assert ceiling.rate == pytest.approx(3 * 178e6, rel=0.1)
    assert ceiling.share > 0.85


def test_a_resilver_tops_out_at_the_new_disks_writes_times_the_width():
    ceiling = watched("nvme", 1).ceiling
    assert ceiling is not None
    assert ceiling.rate == pytest.approx(10 * 1.86e9, rel=0.1)
    assert "new disk" in ceiling.text


def test_idle_disks_leave_room_below_the_ceiling():
    ceiling = watched("shared-bus", 1).ceiling
    assert ceiling is not None
    assert ceiling.share < 0.4


def test_walking_metadata_has_no_ceiling():
    frame = watched("thousand", 1, 20.0, 10.0)
    assert frame.scan is not None
    if frame.scan.stage == "scanning":
        assert frame.ceiling is None
        assert frame.limit.cause == "metadata"
