"""Parameters change a rate when they are its limit, and barely otherwise."""

from __future__ import annotations

import pytest

from tests.table import rows
from tests.worlds import world_of
from zconsole.errors import ZconsoleError
from zconsole.sim.backends.actions import SimulatedParameters
from zconsole.sim.source import World
from zconsole.sim.state import defaults


def speedup(scenario, changes, seed=1):
    """Return how many times faster the scan issues with ``changes`` than without."""
    rates = []
    for wanted in ({}, changes):
        world = World(scenario, seed)
        for name, value in wanted.items():
            SimulatedParameters(world).write(name, value)
        pool = world.pools[0]
        before = pool.scan.issued
        world.advance(300.0)
        rates.append(pool.scan.issued - before)
    return rates[1] / rates[0]


HARDLY = (0.94, 1.06)


@pytest.mark.slow
@rows(
    ("scenario", "changes", "speeds"),
    [
        ("few-requests", {"zfs_vdev_async_write_min_active": 6}, (1.5, 9.0)),
        ("foreground", {"zfs_resilver_min_time_ms": 9000}, (1.1, 9.0)),
        ("foreground", {"zfs_vdev_scrub_min_active": 4}, (1.2, 9.0)),
        ("scrub-delay", {"zfs_scrub_delay": 1}, (3.5, 9.0)),
        ("nvme", {"zfs_vdev_async_write_min_active": 8}, HARDLY),
        ("nvme", {"zfs_resilver_min_time_ms": 9000}, HARDLY),
        ("straggler", {"zfs_vdev_async_write_min_active": 8}, HARDLY),
        (
            "mirror-scrub",
            {"zfs_vdev_scrub_max_active": 8, "zfs_scan_vdev_limit": 128 << 20},
            HARDLY,
        ),
        ("shared-bus", {"zfs_vdev_scrub_max_active": 16}, HARDLY),
        ("cpu", {"zfs_vdev_scrub_max_active": 16}, HARDLY),
        ("few-requests", {"zfs_resilver_min_time_ms": 9000}, HARDLY),
        (
            "resilver",
            {"zfs_scan_vdev_limit": 262144, "zfs_vdev_scrub_max_active": 1},
            (0.0, 0.95),
        ),
        ("foreground", {"zfs_resilver_min_time_ms": 300}, (0.0, 0.95)),
        ("resilver", {"zfs_scan_suspend_progress": 1}, (0.0, 0.0)),
    ],
)
def test_a_parameter_that_limits_makes_it_faster_and_any_other_hardly(scenario, changes, speeds):
    assert speeds[0] <= speedup(scenario, changes) <= speeds[1]


def test_writes_are_refused_as_the_kernel_refuses_them():
    world = world_of("resilver")
    kernel = SimulatedParameters(world)
    with pytest.raises(ZconsoleError, match="No such file or directory"):
        kernel.write("zfs_scrub_delay", 0)
    assert world.pools[0].tunables == defaults("2.3.9")
    kernel.write("zfs_scan_vdev_limit", 1048576)
    assert kernel.read("zfs_scan_vdev_limit") == 1048576
    assert defaults("2.3.9")["zfs_scan_vdev_limit"] == 16 << 20


def test_a_kernel_has_the_parameters_of_its_time():
    old, new = defaults("0.7.13"), defaults("2.3.9")
    assert (old["zfs_scrub_delay"], old["zfs_scan_min_time_ms"]) == (4, 1000)
    assert "zfs_scrub_delay" not in new
    assert "zfs_scan_vdev_limit" not in old
    assert (old["zfs_vdev_scrub_max_active"], new["zfs_vdev_scrub_max_active"]) == (2, 3)
