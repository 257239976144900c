from __future__ import annotations

import pytest

from zconsole.pool import allocator
from zconsole.pool.allocator import Space

GIB = 1 << 30


def pool(*fills: float) -> list[Space]:
    return [Space(f"mirror-{i}", 100 * GIB, fill * 100 * GIB) for i, fill in enumerate(fills)]


def test_spread_is_largest_less_smallest_fill() -> None:
    assert allocator.spread(pool(0.93, 0.0, 0.5)) == pytest.approx(0.93)
    assert allocator.spread([]) == 0


def test_new_writes_follow_free_bytes_times_weight() -> None:
    spaces = [Space("raidz1-0", 100, 50, 2.0), Space("mirror-1", 100, 0, 1.0)]
    assert allocator.new_write_shares(spaces) == pytest.approx([0.5, 0.5])


def test_rewriting_everything_keeps_the_total() -> None:
    before = pool(0.93, 0.0)
    after = allocator.rewritten(before, 93 * GIB)
    assert sum(s.alloc for s in after) == pytest.approx(sum(s.alloc for s in before))


def test_one_pass_over_a_full_vdev_overshoots() -> None:
    # Every rewritten byte leaves the full vdev for good, so the empty one ends the fuller.
    after = allocator.rewritten(pool(0.93, 0.0), 93 * GIB)
    assert after[1].alloc > after[0].alloc


def test_pinned_bytes_stay() -> None:
    before = pool(0.5, 0.0)
    after = allocator.rewritten(before, 10 * GIB, pinned=1.0)
    assert after[0].alloc >= before[0].alloc
    assert sum(s.alloc for s in after) == pytest.approx(sum(s.alloc for s in before) + 10 * GIB)


def test_bytes_to_a_target_reach_it() -> None:
    before = pool(0.93, 0.0)
    raw = allocator.raw_to_target(before, 0.2, 93 * GIB)
    assert raw is not None
    assert allocator.spread(allocator.rewritten(before, raw)) <= 0.2 + 0.01


def test_a_target_out_of_reach_is_none() -> None:
    assert allocator.raw_to_target(pool(0.93, 0.0), 0.2, 1 * GIB) is None
    assert allocator.raw_to_target(pool(0.93, 0.0), 0.2, 60 * GIB, pinned=1.0) is None
    assert allocator.raw_to_target(pool(0.93, 0.0), 0.2, 60 * GIB, pinned=0.0) is not None


def test_a_target_already_met_needs_nothing() -> None:
    assert allocator.raw_to_target(pool(0.5, 0.49), 0.05, GIB) == 0


def test_old_files_lie_on_the_vdevs_before_the_last() -> None:
    spaces = pool(0.6, 0.3, 0.1)
    assert allocator.by_age(spaces, 1.0) == pytest.approx([2 / 3, 1 / 3, 0])
    mixed = allocator.by_age(spaces, 0.5)
    assert sum(mixed) == pytest.approx(1)
    assert mixed[2] == pytest.approx(0.5 * 0.9 / 2)
