"""Vdevs that new data goes to, and the effect of rewriting directories on the balance."""

from __future__ import annotations

import pytest

from tests.worlds import world_of
from zconsole.sim.rewrite import move
from zconsole.sim.scan import begin
from zconsole.sim.state import SCRUB, Rewrite


@pytest.fixture
def storage():
    return world_of("added-vdev")


def fills(pool):
    return [top.alloc / top.space for top in pool.normal_tops()]


def test_the_allocator_weighs_free_bytes_and_data_disks_before_2_4(storage):
    pool = storage.pools[0]
    full, empty = tops = pool.normal_tops()
    shares = pool.write_shares(tops)
    assert sum(shares) == pytest.approx(1.0)
    assert shares[0] / shares[1] == pytest.approx(full.free * 6 / (empty.free * 4))
    pool.version = "2.4.4"
    shares = pool.write_shares(tops)
    assert shares[0] / shares[1] == pytest.approx(full.free / empty.free)


def test_a_vdev_being_removed_gets_nothing(storage):
    pool = storage.pools[0]
    tops = pool.normal_tops()
    tops[0].allocating = False
    assert pool.write_shares(tops) == [0.0, 1.0]


def test_moving_follows_the_formula_and_loses_nothing(storage):
    pool = storage.pools[0]
    pool.load.write = 0.0
    tops = pool.normal_tops()
    before = [top.alloc for top in tops]
    shares = pool.write_shares(tops)
    amount = 1e11
    directory = pool.directories[0]
    size = directory.size
    assert move(pool, directory, list(directory.held), amount) == amount
    for top, old, share in zip(tops, before, shares, strict=True):
        expected = amount * (share - old / sum(before))
        assert top.alloc - old == pytest.approx(expected, rel=0.01)
    assert sum(top.alloc for top in tops) == pytest.approx(sum(before))
    assert directory.size == pytest.approx(size)


def test_rewriting_half_of_it_levels_it_about_as_the_report_found(storage):
    """93.3 % and 0.2 % became 71.8 % and 59.6 %: each byte leaves its vdev once."""
    pool = storage.pools[0]
    pool.load.write = 0.0
    half = [d for d in pool.directories if d.path in ("/storage/films", "/storage/photos")]
    pool.rewrite = Rewrite(half)
    storage.advance(48 * 3600.0)
    assert not pool.rewrite.running
    assert fills(pool)[0] == pytest.approx(0.72, abs=0.02)
    assert fills(pool)[1] == pytest.approx(0.60, abs=0.05)


def test_rewriting_all_of_it_goes_too_far(storage):
    pool = storage.pools[0]
    pool.load.write = 0.0
    pool.rewrite = Rewrite(pool.directories)
    storage.advance(96 * 3600.0)
    assert fills(pool)[0] < fills(pool)[1]


def test_a_rate_limit_is_kept_and_the_end_is_reached(storage):
    pool = storage.pools[0]
    small = pool.directories[4]
    pool.rewrite = Rewrite([small], limit=200e6)
    storage.advance(100.0)
    assert pool.rewrite.done == pytest.approx(200e6 * 100, rel=0.02)
    pool.rewrite.limit = float("inf")
    storage.advance(48 * 3600.0)
    assert not pool.rewrite.running
    assert pool.rewrite.done == pytest.approx(4.1e12)


def test_rewriting_takes_about_twice_as_long_as_scrubbing_the_same_disks():
    begun, hour = 8 * 3600.0, 3600.0
    scrubbed, rewritten = world_of("added-vdev"), world_of("added-vdev")
    begin(scrubbed.pools[0], SCRUB)
    job = rewritten.pools[0].rewrite = Rewrite(list(rewritten.pools[0].directories))
    for world in (scrubbed, rewritten):
        world.advance(begun)
    scan = scrubbed.pools[0].scan
    before = scan.pass_issued, job.done
    for world in (scrubbed, rewritten):
        world.advance(begun + hour)
    share = (job.done - before[1]) / (scan.pass_issued - before[0])
    assert 0.45 < share < 0.65
