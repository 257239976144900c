"""The simulated pool as a source: pacing, sampling rates, events."""

from __future__ import annotations

import pytest

from tests.table import rows
from tests.worlds import world_of
from zconsole.sim.source import SimulatedSource, samples


def issued(interval, seconds, name="resilver"):
    """Return the bytes issued ``seconds`` after the first sample, sampled every ``interval``."""
    world = world_of(name)
    for step in range(1, round(seconds / interval) + 1):
        world.advance(step * interval)
    return world.pools[0].scan.issued


@pytest.mark.slow
@rows(
    ("name", "seconds", "intervals", "apart"),
    [
        ("resilver", 10.0, (1.0, 1 / 60, 10.0), 0.01),
        ("foreground", 10.0, (1.0, 1 / 60, 10.0), 0.01),
        ("shingled", 10.0, (1.0, 1 / 60, 10.0), 0.01),
        ("resilver", 1800.0, (30.0, 1800.0), 0.03),
    ],
)
def test_sampling_more_often_or_in_long_leaps_changes_little(name, seconds, intervals, apart):
    start = world_of(name).pools[0].scan.issued
    first, *others = (issued(interval, seconds, name) - start for interval in intervals)
    assert others == pytest.approx([first] * len(others), rel=apart)


async def test_simulated_time_follows_the_clock_times_speed():
    now = [100.0]
    source = SimulatedSource("resilver", 1, speed=60.0, start=5e8, clock=lambda: now[0])
    first = (await source.sample())[0]
    now[0] += 2.0
    second = (await source.sample())[0]
    assert first["t"] == pytest.approx(5e8)
    assert second["t"] - first["t"] == pytest.approx(120.0)
    assert second["clock"] - first["clock"] == pytest.approx(120.0)
    assert source.capabilities.flags == ("DEMO", "60x")
    await source.aclose()


async def test_another_speed_leaves_no_time_out():
    now = [100.0]
    source = SimulatedSource("resilver", 1, start=5e8, clock=lambda: now[0])
    assert source.capabilities.flags == ("DEMO",)
    await source.sample()
    now[0] += 10.0
    source.faster(1)
    assert source.capabilities.flags == ("DEMO", "2x")
    assert (await source.sample())[0]["t"] == pytest.approx(5e8 + 10.0)
    now[0] += 10.0
    source.faster(-1)
    now[0] += 5.0
    assert (await source.sample())[0]["t"] == pytest.approx(5e8 + 35.0)


async def test_a_clock_that_stands_still_gives_the_same_figures():
    source = SimulatedSource("healthy", 1)
    first, second = (await source.sample())[0], (await source.sample())[0]
    assert first["libzfs"] == second["libzfs"]


def test_an_event_is_handed_out_once():
    taken = [e["name"] for raws in samples("second-replace", 1, 15.0, 4) for e in raws[0]["events"]]
    assert taken.count("vdev_attach") == 1


def test_diskstats_move_with_the_leaf():
    world = world_of("resilver")
    first = world.raws()[0]
    world.advance(10.0)
    second = world.raws()[0]
    rows = [{row[2]: row for row in raw["diskstats"]} for raw in (first, second)]
    leaves = {leaf.path: leaf for leaf in world.pools[0].leaves()}
    for path, names in second["devices"].items():
        (name,) = names
        sectors = int(rows[1][name][5]), int(rows[1][name][9])
        assert sectors[0] * 512 == pytest.approx(leaves[path].reads.bytes, abs=512)
        assert sectors[1] * 512 == pytest.approx(leaves[path].writes.bytes, abs=512)
        busy = int(rows[1][name][12]) - int(rows[0][name][12])
        assert 0 <= busy <= 10_001
