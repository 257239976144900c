from __future__ import annotations

import pytest

from zconsole.diagnosis.bottleneck.evidence import AVERAGED, FRESH, LeafStats
from zconsole.pool.model import IoRates, Vdev


def after(*depths: tuple[int, int], seconds: float = 10.0) -> LeafStats:
    """A disk whose scrub queue had these depths, its others none."""
    stats = LeafStats()
    for number, depth in enumerate(depths):
        queues = {"scrub": depth, "sync_r": (0, 0)}
        stats.add(number * seconds, Vdev("sda", "disk", queues=queues), IoRates())
    return stats


def test_depths_are_averaged_from_the_first_sample_on() -> None:
    stats = after((8, 4))
    assert (stats.pending, stats.active, stats.flying) == ({"scrub": 8}, {"scrub": 4}, {"scrub": 4})


def test_an_empty_first_sample_counts_in_the_average() -> None:
    stats = after((0, 0), (8, 4))
    assert stats.pending == {"scrub": pytest.approx(FRESH * 8)}
    assert stats.active == {"scrub": pytest.approx(FRESH * 4)}


def test_a_queue_that_empties_again_falls_off_slowly() -> None:
    stats = after((8, 4), (0, 0))
    assert stats.active == {"scrub": pytest.approx((1 - FRESH) * 4)}
    (flying,) = after((0, 3), (0, 6), seconds=AVERAGED).flying.values()
    assert 3 < flying <= 6


def test_a_queue_that_never_held_anything_takes_no_room() -> None:
    stats = after((0, 0), (1, 0))
    assert "sync_r" not in {*stats.pending, *stats.active, *stats.flying}
    assert "scrub" not in stats.active
