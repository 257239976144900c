"""Physics of leaves: what a device can do, and what its counters show."""

from __future__ import annotations

import pytest

from zconsole.sim.disk import RED_4T, SHINGLED_8T, Leaf

MIB = 1 << 20


def leaf(model=RED_4T, **changes):
    return Leaf("/dev/disk/by-id/a-part1", "a", 7, model, "sda1", **changes)


def capacity(disk, size, run, queue, write):
    return disk.capacity(size, disk.media_time(size, run, queue, write), queue)


def test_a_shingled_disk_collapses_when_its_cache_is_full_and_recovers_when_idle():
    disk = leaf(SHINGLED_8T)
    before = capacity(disk, MIB, 64 * MIB, 2, True)
    for _ in range(2000):
        disk.write_cached(150e6, 1.0)
    after = capacity(disk, MIB, 64 * MIB, 2, True)
    assert disk.collapsed
    assert after < 0.3 * before
    for _ in range(2000):
        disk.write_cached(0.0, 1.0)
    assert capacity(disk, MIB, 64 * MIB, 2, True) == pytest.approx(before)
