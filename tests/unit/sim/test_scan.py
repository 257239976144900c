"""The two-stage scan: what is conserved, and the order things happen in."""

from __future__ import annotations

import pytest

from zconsole.sim import scan
from zconsole.sim.build import Build
from zconsole.sim.models import EXOS_16T, RED_4T
from zconsole.sim.simulation import PoolSimulation
from zconsole.sim.state import FINISHED, RESILVER, SCANNING, SCRUB, DataLayout, Host

MIB = 1 << 20


def raidz2(fill=0.02, memory=256 << 30, model=RED_4T):
    """A small raidz2 whose last disk is being replaced."""
    make = Build(3, "tank")
    disks = make.leaves(5, model)
    new = make.leaf(model)
    members = [*disks, make.replacing(make.leaf(model), new)]
    layout = DataLayout(block=float(MIB), run=32.0 * MIB, span=24.0 * MIB)
    pool = make.pool([make.raidz(2, members, fill)], layout=layout, host=Host(memory=memory))
    return PoolSimulation(pool, []), new


def run(engine, seconds):
    """The scan after each of ``seconds`` one-second steps."""
    for _ in range(seconds):
        engine.advance(engine.pool.t + 1.0)
        yield engine.pool.scan


def test_nothing_is_issued_before_all_metadata_has_been_walked():
    engine, new = raidz2()
    scan.begin(engine.pool, RESILVER, [new])
    seen_issuing = False
    for current in run(engine, 120):
        if current.examined < current.total - 1:
            assert current.issued == 0
        seen_issuing = seen_issuing or current.issued > 0
    assert seen_issuing


def test_bytes_are_conserved_at_every_step():
    engine, new = raidz2()
    scan.begin(engine.pool, RESILVER, [new])
    last = 0.0
    for current in run(engine, 1500):
        assert current.examined <= current.total + 1
        assert current.issued + current.queued + current.skipped == pytest.approx(current.examined)
        assert current.issued >= last
        assert current.processed == pytest.approx(new.scan_processed)
        last = current.issued
        if current.state != SCANNING:
            break
    assert current.state == FINISHED
    assert current.issued == pytest.approx(current.total)
    assert new.write_bytes == pytest.approx(current.processed)
    assert new.scan_processed == pytest.approx(current.total / 6)


def test_what_sources_read_is_what_was_issued():
    engine, new = raidz2()
    devices = list(engine.pool.leaves())
    scan.begin(engine.pool, RESILVER, [new])
    *_, current = run(engine, 900)
    metadata = current.total / engine.pool.layout.span * 16384
    read = sum(leaf.read_bytes for leaf in devices)
    assert read == pytest.approx(current.issued + metadata, rel=0.01)


def test_a_scan_short_of_memory_walks_and_issues_in_turn():
    engine, _ = raidz2(fill=0.5, memory=8 << 30, model=EXOS_16T)
    scan.begin(engine.pool, SCRUB)
    turns, was = 0, False
    limit = scan.memory_limit(engine.pool)
    for current in run(engine, 5000):
        turns += current.clearing != was
        was = current.clearing
        assert current.queued / MIB * scan.SIO_BYTES < limit * 1.2
    assert turns > 4
    assert current.queues[0].density < 0.5


def test_a_sorted_scan_is_more_sequential_than_one_short_of_memory():
    rates = []
    for memory in (256 << 30, 4 << 30):
        engine, _ = raidz2(fill=0.5, memory=memory, model=EXOS_16T)
        engine.pool.tunables.values["zfs_scan_checkpoint_intval"] = 10**9
        scan.begin(engine.pool, SCRUB)
        engine.advance(4 * 3600.0, 600)
        rates.append(engine.pool.scan.issued)
    assert rates[0] > 1.5 * rates[1]


def test_pass_counters_begin_again_when_the_walk_is_over():
    engine, new = raidz2()
    scan.begin(engine.pool, RESILVER, [new])
    started = engine.pool.scan.pass_start
    *_, current = run(engine, 200)
    assert current.pass_start > started
    assert current.pass_examined == 0
    assert current.pass_issued == pytest.approx(current.issued)
    assert current.start == started


def test_a_paused_scrub_does_not_move():
    engine, _ = raidz2()
    scan.begin(engine.pool, SCRUB)
    engine.advance(200.0)
    engine.pool.scan.paused_since = engine.pool.now
    before = engine.pool.scan.issued
    engine.advance(400.0)
    assert engine.pool.scan.issued == before > 0


def test_a_resilver_only_issues_what_lies_on_the_damaged_vdev():
    make = Build(5, "two")
    new = make.leaf(RED_4T)
    tops = [
        make.mirror([make.leaf(RED_4T), make.replacing(make.leaf(RED_4T), new)], 0.02),
        make.mirror(make.leaves(2, RED_4T), 0.02),
    ]
    pool = make.pool(tops)
    scan.begin(pool, RESILVER, [new])
    engine = PoolSimulation(pool, [])
    engine.advance(3600.0, 600)
    assert pool.scan.state == FINISHED
    assert pool.scan.skipped == pytest.approx(tops[1].alloc)
    assert pool.scan.issued == pytest.approx(tops[0].alloc)
    assert pool.scan.processed == pytest.approx(tops[0].alloc)


def test_a_one_stage_scan_issues_as_it_walks():
    engine, new = raidz2()
    engine.pool.one_stage = True
    scan.begin(engine.pool, RESILVER, [new])
    for current in run(engine, 50):
        assert current.examined == pytest.approx(current.issued)
        assert current.queued == 0
    assert current.issued > 0
