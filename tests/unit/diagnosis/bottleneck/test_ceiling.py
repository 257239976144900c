from __future__ import annotations

import pytest

from tests.unit.diagnosis.bottleneck.watching import watched


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


def test_a_known_link_is_the_ceiling_of_the_disks_behind_it():
    ceiling = watched("shared-bus", 1, 110.0, 2.0).ceiling
    assert ceiling is not None
    assert ceiling.rate == pytest.approx(1.6e9, rel=0.03)
    assert ceiling.share > 0.95
    assert "shared link" in ceiling.text


def test_a_slow_source_leaves_room_below_what_the_new_disk_could_take_in():
    ceiling = watched("straggler", 1).ceiling
    assert ceiling is not None
    assert ceiling.share < 0.9


def test_walking_metadata_has_no_ceiling():
    frame = watched("thousand", 1, 20.0, 10.0)
    assert frame.scan is not None
    if frame.scan.stage == "scanning":
        assert frame.ceiling is None
        assert frame.limit.cause == "metadata"


def test_disks_that_were_only_seen_idle_tell_no_ceiling():
    """``the system's ceiling`` was 100 MB/s while a tunable held the scrub at 3 MB/s."""
    frame = watched("scrub-delay", 3)
    assert frame.limit is not None
    assert frame.limit.cause == "throttle"
    assert frame.ceiling is None
