from __future__ import annotations

import pytest

from zconsole.errors import UnavailableError, UsageError
from zconsole.pool.model import Pool, Scan, Vdev
from zconsole.tunables.pilot import HoldOrder, Targets, order, plan

NAME = "zfs_vdev_scrub_max_active"
READ = tuple(1000 if bucket == 20 else 0 for bucket in range(37))
HOLD = HoldOrder(Targets(0.02))
BELOW = HoldOrder(Targets(0.02), below=True)


def pool(name: str, mirrored: bool = True, function: str = "scrub", read=READ) -> Pool:
    disk = {"state": "ONLINE", "histograms": {"sync_r": read} if read else {}}
    leaves = tuple(Vdev(f"{name}{i}", "disk", **disk) for i in range(2))
    tops = (Vdev("mirror-0", "mirror", children=leaves),) if mirrored else leaves
    return Pool(
        name, "ONLINE", Vdev(name, "root", children=tops), scans=(Scan(function, "running"),)
    )


def test_words_give_an_order_and_an_order_its_words():
    found = order(["20ms", "22:00-06:00=100ms", "below-defaults"])
    assert found.below
    assert order(found.words) == found
    with pytest.raises(UsageError):
        order(["below-defaults"])


def test_it_names_every_pool_that_scans_and_what_it_steers_by(kernel):
    made = plan(HOLD, [pool("tank"), pool("data", function="resilver")], kernel.parameters, {})
    assert made.pools == ("tank: scrub running", "data: resilver running")
    assert "in ZFS's queue and in the disk" in "\n".join(made.effects)
    assert f"{NAME}  1 to 10, now 3" in made.sets
    assert made.warnings == ()


def test_without_redundancy_it_says_that_it_is_never_below_the_defaults(kernel):
    made = plan(HOLD, [pool("tank", mirrored=False)], kernel.parameters, {})
    assert f"{NAME}  3 to 10, now 3" in made.sets
    assert (
        "tank can't lose another device: its scan is never made slower than by the defaults"
        in made.warnings[0]
    )


def test_below_the_defaults_it_says_the_hours_that_costs(kernel):
    tank = pool("tank", mirrored=False, function="resilver")
    made = plan(BELOW, [tank], kernel.parameters, {"tank": 7200.0})
    assert f"{NAME}  1 to 10, now 3" in made.sets
    # a quarter of the requests in the disks, and a quarter of the time: 16 times 2 hours
    assert "up to 16 times as long: up to 1d06h more without redundancy" in made.warnings[0]


def test_where_nothing_scans_there_is_nothing_to_steer(kernel):
    with pytest.raises(UnavailableError, match="nothing to steer"):
        plan(HOLD, [], kernel.parameters, {})


def test_without_histograms_it_is_blind(kernel):
    with pytest.raises(UnavailableError, match="tank: no latency histograms"):
        plan(HOLD, [pool("tank", read=())], kernel.parameters, {})
