"""Every scenario decodes, is reproducible, makes progress, and matches its description."""

from __future__ import annotations

import json

import pytest

from tests.table import rows
from tests.worlds import world_of
from zconsole.pool.model import Sample, SampleFailure
from zconsole.sim.scenarios import find, names
from zconsole.sim.source import World, samples
from zconsole.zfs.decode import decode

pytestmark = pytest.mark.slow

BEGINS = {"shared-bus": 100}
"""Seconds after which a scenario reaches its subject."""
LIMITS = {
    "six-disk-swap": "random",
    "new-disk": "new-disk",
    "scrub-delay": "delay",
    "nvme": "new-disk",
    "mirror-scrub": "disks",
    "memory-limited": "memory",
    "foreground": "foreground",
    "straggler": "straggler",
    "random": "random",
    "few-requests": "throttle",
    "shared-bus": "bus",
    "cpu": "cpu",
}
SMALL = [name for name in names() if name != "thousand"]


def pools(raws):
    """Return the decoded samples of one moment."""
    return [sample for raw in raws for sample in decode(raw)]


def test_what_was_paused_before_the_story_is_told_of_then():
    (sample,) = pools(world_of("paused").raws())
    (current,) = sample.pool.scans
    assert [(event.t, event.text) for event in sample.events] == [
        (pytest.approx(current.start, abs=1), "scrub started"),
        (pytest.approx(current.paused_since, abs=1), "scrub paused"),
    ]


@rows("name", names())
def test_a_scenario_decodes_and_survives_json(name):
    world = world_of(name)
    world.advance(3.0)
    for raw in world.raws():
        again = json.loads(json.dumps(raw))
        (sample,) = decode(again)
        assert isinstance(sample, Sample)
        assert sample.exact
        assert sample.source == "demo"
        assert sample.pool.name == raw["pool"]
        assert sample.pool.state in ("ONLINE", "DEGRADED")
        host = sample.host
        assert host is not None
        assert host.memory_total is not None
        assert host.memory_available is not None
        assert 0 < (host.arc_bytes or 0) < host.memory_total - host.memory_available
        keys = [vdev.guid for vdev in sample.pool.root.walk() if vdev.vclass != "spare"]
        assert len(set(keys)) == len(keys)


@rows("name", names())
def test_no_replacement_begins_while_a_checkpoint_exists(name):
    """ZFS refuses it (spa_vdev_attach): a checkpoint may only be taken after that."""
    for pool in find(name).build(1, 1e9):
        if pool.checkpoint is not None and pool.resilvering:
            assert pool.checkpoint.start > pool.scan.start


@rows("name", SMALL)
def test_progress_never_goes_back_within_one_scan(name):
    last: dict[object, float] = {}
    world = world_of(name)
    for step in range(5):
        world.advance(300.0 * step)
        raws = world.raws()
        for raw, sample in zip(raws, pools(raws), strict=True):
            if isinstance(sample, SampleFailure):
                assert raw["kstat"] == "SUSPENDED"
                continue
            for scan in sample.pool.scans:
                if scan.percent is not None:
                    assert 0.0 <= scan.percent <= 100.0
                    assert scan.percent >= last.get(scan.key, 0.0) - 1e-9
                    last[scan.key] = scan.percent


@rows(("name", "cause"), LIMITS.items())
@rows("seed", [1, 7])
def test_the_limit_is_the_one_the_scenario_is_about(name, cause, seed):
    world = World(name, seed)
    for elapsed in (1, 8, 40, 160, 600):
        world.advance(float(elapsed))
        found = set(world.pools[0].limits.values())
        if found and elapsed >= BEGINS.get(name, 0):
            assert found == {cause}, elapsed


def rate(name, seconds, after=0.0, seed=1):
    """Return the bytes/s issued over ``seconds``, starting ``after`` seconds."""
    world = World(name, seed)
    world.advance(after)
    before = world.pools[0].scan.issued
    world.advance(after + seconds)
    return (world.pools[0].scan.issued - before) / seconds


def test_the_delay_clamps_to_three_megabytes_and_release_gives_a_hundred():
    assert rate("scrub-delay", 60) == pytest.approx(25 * 131072, rel=0.02)
    world = world_of("scrub-delay")
    world.pools[0].tunables["zfs_scrub_delay"] = 0
    before = world.pools[0].scan.issued
    world.advance(60.0)
    released = (world.pools[0].scan.issued - before) / 60
    assert released == pytest.approx(100 * (1 << 20), rel=0.1)


def test_the_six_disks_take_about_a_day_and_a_half():
    assert 30 < 14.2e12 / rate("six-disk-swap", 600) / 3600 < 40


def test_the_new_disk_of_the_freebsd_pool_is_busy_and_the_others_wait():
    world = world_of("new-disk")
    world.advance(60.0)
    leaves = {leaf.model.name: leaf for leaf in world.pools[0].leaves() if leaf.online}
    new, old = leaves["ata-HGST_HDN724020ALE640"], leaves["ata-Hitachi_HDS721010CLA332"]
    assert 9e6 < rate("new-disk", 600) / 5 < 14e6
    assert new.busy_time > 1.5 * old.busy_time


def test_the_new_nvme_drive_writes_at_its_own_rate():
    assert rate("nvme", 60) / 10 == pytest.approx(1.86e9, rel=0.05)


def test_mirrors_scrub_at_the_sum_of_one_disk_each():
    world = world_of("mirror-scrub")
    leaves = [next(top.leaves()) for top in world.pools[0].tops]
    ceiling = sum(x.model.outer + (x.model.inner - x.model.outer) * x.position for x in leaves)
    assert 0.85 * ceiling < rate("mirror-scrub", 300) <= 1.03 * ceiling


def test_the_added_vdev_is_nearly_empty_and_gets_most_new_writes():
    world = world_of("added-vdev")
    full, empty = world.pools[0].tops
    assert full.alloc / full.space == pytest.approx(0.933, abs=0.002)
    assert empty.alloc / empty.space == pytest.approx(0.0021, abs=0.001)
    before = full.alloc, empty.alloc
    world.advance(3600.0)
    assert empty.alloc - before[1] > 2 * (full.alloc - before[0]) > 0


def test_the_shingled_disk_collapses_while_one_watches():
    early, late = rate("shingled", 60), rate("shingled", 600, after=900.0)
    assert late < 0.35 * early


def test_the_flaky_disk_restarts_the_resilver_within_two_minutes():
    starts = set()
    for raws in samples("flaky", 3, 20.0, 7):
        starts |= {sample.pool.scan.start for sample in pools(raws)}
    assert len(starts) == 2


def test_the_suspended_pool_gives_its_last_words():
    world = world_of("suspended")
    (first,) = decode(world.raws()[0])
    assert isinstance(first, Sample)
    world.advance(30.0)
    raw = world.raws()[0]
    (trouble,) = decode(raw)
    assert isinstance(trouble, SampleFailure)
    assert raw["kstat"] == "SUSPENDED"
    assert "io_failure" in [event["name"] for event in raw["events"]]
