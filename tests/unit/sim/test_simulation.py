"""Work other than scans, advanced in simulated time."""

from __future__ import annotations

import pytest

from tests.worlds import world_of
from zconsole.sim.state import FINISHED


def test_a_mirror_is_evacuated():
    world = world_of("removal")
    pool = world.pools[0]
    total = pool.alloc - pool.removal.moved  # until the end, copied data is in both places
    assert 0 < pool.removal.moved < pool.removal.total
    world.advance(24 * 3600.0)
    assert pool.removal.state == FINISHED
    assert pool.tops[2].kind == "indirect"
    assert pool.data_tops() == pool.tops[:2]
    assert pool.alloc == pytest.approx(total, rel=0.01)


def test_a_resilver_takes_a_small_part_of_the_processor():
    world = world_of("resilver")
    world.advance(60.0)
    assert 0.0 < world.pools[0].host.cpu < 0.2
