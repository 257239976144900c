"""The two-stage scan: conserved quantities, and the order of events."""

from __future__ import annotations

import pytest

from tests.table import rows
from tests.worlds import world_of
from zconsole.sim import scan
from zconsole.sim.build import Build
from zconsole.sim.disk import RED_4T
from zconsole.sim.simulation import advance
from zconsole.sim.state import FINISHED, RESILVER, SCANNING, DataLayout, Host

MIB = 1 << 20


def raidz2(fill=0.02, memory=256 << 30, model=RED_4T):
    """Return a small raidz2 whose last disk is being replaced."""
    make = Build(3, "tank")
    disks = make.leaves(5, model)
    new = make.leaf(model)
    members = [*disks, make.replacing(make.leaf(model), new)]
    layout = DataLayout(block=float(MIB), run=32.0 * MIB, span=24.0 * MIB)
    pool = make.pool([make.raidz(2, members, fill)], layout=layout, host=Host(memory=memory))
    return pool, new


def run(pool, seconds):
    """Yield the scan after each of ``seconds`` one-second steps."""
    for _ in range(seconds):
        advance(pool, pool.t + 1.0)
        yield pool.scan


def test_bytes_are_conserved_at_every_step():
    pool, new = raidz2()
    scan.begin(pool, RESILVER, [new])
    last = 0.0
    for current in run(pool, 1500):
        assert current.examined <= current.total + 1
        assert current.issued + current.queued + current.skipped == pytest.approx(current.examined)
        assert current.issued >= last
        assert current.processed == pytest.approx(new.scan_processed)
        last = current.issued
        if current.state != SCANNING:
            break
    assert current.state == FINISHED
    assert current.issued == pytest.approx(current.total)
    assert new.writes.bytes == pytest.approx(current.processed)
    assert new.scan_processed == pytest.approx(current.total / 6)


@rows("slow", [True, False])
def test_more_requests_and_time_do_not_speed_up_a_scan_that_one_slow_disk_limits(slow):
    rates = []
    for faster in (False, True):
        world = world_of("resilver")
        pool = world.pools[0]
        if not slow:
            for leaf in pool.leaves():
                leaf.slow = 1.0
        if faster:
            pool.tunables.update(zfs_vdev_scrub_max_active=10, zfs_resilver_min_time_ms=6000)
        before = pool.scan.issued
        world.advance(600.0)
        rates.append(pool.scan.issued - before)
    assert (rates[1] < 1.05 * rates[0]) == slow, rates


def test_a_resilver_only_issues_what_lies_on_the_damaged_vdev():
    make = Build(5, "two")
    new = make.leaf(RED_4T)
    tops = [
        make.mirror([make.leaf(RED_4T), make.replacing(make.leaf(RED_4T), new)], 0.02),
        make.mirror(make.leaves(2, RED_4T), 0.02),
    ]
    pool = make.pool(tops)
    scan.begin(pool, RESILVER, [new])
    advance(pool, 3600.0, 600)
    assert pool.scan.state == FINISHED
    assert pool.scan.skipped == pytest.approx(tops[1].alloc)
    assert pool.scan.issued == pytest.approx(tops[0].alloc)
    assert pool.scan.processed == pytest.approx(tops[0].alloc)
