"""The two-stage scan: conserved quantities, and the order of events."""

from __future__ import annotations

import pytest

from tests.table import rows
from tests.worlds import world_of
from zconsole.sim import scan
from zconsole.sim.build import Build
from zconsole.sim.disk import EXOS_16T, RED_4T
from zconsole.sim.simulation import advance
from zconsole.sim.state import FINISHED, RESILVER, SCANNING, SCRUB, DataLayout, Host

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


def test_nothing_is_issued_before_all_metadata_has_been_walked():
    pool, new = raidz2()
    scan.begin(pool, RESILVER, [new])
    seen_issuing = False
    for current in run(pool, 120):
        if current.examined < current.total - 1:
            assert current.issued == 0
        seen_issuing = seen_issuing or current.issued > 0
    assert seen_issuing


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


def test_what_sources_read_is_what_was_issued():
    pool, new = raidz2()
    devices = list(pool.leaves())
    scan.begin(pool, RESILVER, [new])
    *_, current = run(pool, 900)
    metadata = current.total / pool.layout.span * 16384
    read = sum(leaf.reads.bytes for leaf in devices)
    assert read == pytest.approx(current.issued + metadata, rel=0.01)


@pytest.mark.slow
def test_a_scan_short_of_memory_walks_and_issues_in_turn():
    pool, _ = raidz2(fill=0.5, memory=8 << 30, model=EXOS_16T)
    scan.begin(pool, SCRUB)
    turns, was = 0, False
    limit = scan.memory_limit(pool)
    for current in run(pool, 2500):
        turns += current.clearing != was
        was = current.clearing
        assert current.queued / MIB * scan.SIO_BYTES < limit * 1.2
    assert turns > 4
    assert current.queues[0].density < 0.5


@pytest.mark.slow
def test_a_sorted_scan_is_more_sequential_than_one_short_of_memory():
    rates = []
    for memory in (256 << 30, 4 << 30):
        pool, _ = raidz2(fill=0.5, memory=memory, model=EXOS_16T)
        pool.tunables["zfs_scan_checkpoint_intval"] = 10**9
        scan.begin(pool, SCRUB)
        advance(pool, 4 * 3600.0, 600)
        rates.append(pool.scan.issued)
    assert rates[0] > 1.5 * rates[1]


def test_pass_counters_begin_again_when_the_walk_is_over():
    pool, new = raidz2()
    scan.begin(pool, RESILVER, [new])
    started = pool.scan.pass_start
    *_, current = run(pool, 200)
    assert current.pass_start > started
    assert current.pass_examined == 0
    assert current.pass_issued == pytest.approx(current.issued)
    assert current.start == started


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


def test_a_paused_scrub_does_not_move():
    pool, _ = raidz2()
    scan.begin(pool, SCRUB)
    advance(pool, 200.0)
    pool.scan.paused_since = pool.now
    before = pool.scan.issued
    advance(pool, 400.0)
    assert pool.scan.issued == before > 0


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


def test_a_one_stage_scan_issues_as_it_walks():
    pool, new = raidz2()
    pool.one_stage = True
    scan.begin(pool, RESILVER, [new])
    for current in run(pool, 50):
        assert current.examined == pytest.approx(current.issued)
        assert current.queued == 0
    assert current.issued > 0
