"""Physics of leaves: what a device can do, and what its counters show."""

from __future__ import annotations

import pytest

from zconsole.sim.disk import NVME_1T5, RED_4T, REMOTE_4T, SHINGLED_8T, Flow, Leaf

MIB = 1 << 20


def leaf(model=RED_4T, **changes):
    return Leaf("/dev/disk/by-id/a-part1", "a", 7, model, "sda1", **changes)


def capacity(disk, size, run, queue, write):
    return disk.capacity(size, disk.media_time(size, run, queue, write), queue)


def test_a_disk_reads_faster_outside_than_inside():
    outer, inner = leaf(position=0.0), leaf(position=1.0)
    fast, slow = (capacity(x, MIB, 64 * MIB, 3, False) for x in (outer, inner))
    assert fast == pytest.approx(RED_4T.outer, rel=0.05)
    assert slow == pytest.approx(RED_4T.inner, rel=0.05)


def test_short_runs_cost_seeks_on_a_disk_and_nothing_on_flash():
    disk, flash = leaf(), leaf(NVME_1T5)
    assert capacity(disk, 65536, 65536, 3, False) < 0.15 * capacity(disk, MIB, 64 * MIB, 3, False)
    assert capacity(flash, MIB, MIB, 8, False) == pytest.approx(
        capacity(flash, MIB, 64 * MIB, 8, False)
    )


def test_a_distant_disk_is_limited_by_how_much_is_in_flight():
    far = leaf(REMOTE_4T)
    two, four = (capacity(far, 131072, MIB, queue, True) for queue in (2, 4))
    assert two < 0.5 * REMOTE_4T.outer
    assert 1.7 < four / two < 2.1


def test_foreground_work_goes_first():
    free, busy = leaf(), leaf(used=0.5)
    assert capacity(busy, MIB, 64 * MIB, 3, False) < 0.5 * capacity(free, MIB, 64 * MIB, 3, False)
    one, eight = (capacity(busy, MIB, 64 * MIB, queue, False) for queue in (1, 8))
    assert eight > 1.5 * one


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


def test_counters_agree_with_each_other():
    disk = leaf()
    disk.flows = [
        Flow("scrub", False, 100.0, MIB, 0.006, 3.0),
        Flow("async_w", True, 20.0, 131072.0, 0.004, 2.0),
    ]
    disk.account(10.0)
    assert disk.reads.ops == pytest.approx(1000)
    assert disk.reads.bytes == pytest.approx(1000 * MIB)
    assert disk.writes.bytes == pytest.approx(200 * 131072)
    assert sum(disk.reads.waits.counts) == pytest.approx(disk.reads.ops)
    assert sum(disk.writes.waits.counts) == pytest.approx(disk.writes.ops)
    assert 0.6 * 10 < disk.busy_time <= 10
    assert disk.reads.time / disk.reads.ops >= 0.006


def test_a_saturated_disk_is_busy_all_the_time_with_its_queue_full():
    disk = leaf()
    ops = capacity(disk, MIB, 64 * MIB, 3, False) / MIB
    media = disk.media_time(MIB, 64 * MIB, 3, False)
    disk.flows = [Flow("scrub", False, ops, MIB, media, 3.0, pending=14.0)]
    disk.account(1.0)
    assert disk.busy_time == pytest.approx(1.0, abs=0.06)
    assert disk.queues["scrub"] == (14.0, pytest.approx(3.0, rel=0.1))
