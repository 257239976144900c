"""The verdict on every cause of the simulated pool, in seeded variations."""

from __future__ import annotations

import os
from collections import defaultdict

import pytest

from tests.table import rows
from tests.unit.diagnosis.bottleneck.watching import watched
from zconsole import units
from zconsole.diagnosis.bottleneck.evidence import Disk, Evidence, LeafStats, PoolLoad, StageCycles
from zconsole.diagnosis.bottleneck.finding import CAUSES as WORDS
from zconsole.diagnosis.bottleneck.rules import RULES, SMALL, Figure, judge
from zconsole.pool.model import IoRates, Scan
from zconsole.sim.source import World
from zconsole.timeline.session import Session

pytestmark = pytest.mark.slow

SEEDS = range(1, 11 if os.environ.get("ZCONSOLE_SEEDS") == "all" else 4)
NEEDED = 0.9
"""Share of them."""
CAUSES = {
    "new-disk": "new-disk",
    "nvme": "new-disk",
    "sequential": "new-disk",
    "straggler": "slow-disk",
    "resilver": "slow-disk",
    "random": "random",
    "six-disk-swap": "random",
    "foreground": "foreground",
    "scrub-delay": "throttle",
    "few-requests": "throttle",
    "memory-limited": "memory",
    "cpu": "cpu",
    "shared-bus": "bus",
    "shingled": "smr",
    "mirror-scrub": "disks",
}
ONE_DISK = ("new-disk", "slow-disk", "smr")
"""Causes that are one device."""
TIMES = {"shingled": (600.0, 30.0), "shared-bus": (110.0, 2.0)}
"""Seconds to watch and between samples, where what is to be seen comes later."""


@pytest.mark.slow
@rows(("scenario", "cause"), CAUSES.items())
def test_the_cause_is_found_in_nine_of_ten_variations(scenario, cause):
    seconds, step = TIMES.get(scenario, (24.0, 2.0))
    found = [watched(scenario, seed, seconds, step).limit for seed in SEEDS]
    right = [verdict for verdict in found if verdict is not None and verdict.cause == cause]
    assert len(right) >= NEEDED * len(found), [verdict and verdict.text for verdict in found]
    assert all(verdict.figures and 0.5 < verdict.sure <= 1.0 for verdict in right)
    assert all("\n" not in verdict.text for verdict in right)
    assert all(verdict.disk in verdict.text for verdict in right)
    assert all(bool(verdict.disk) == (cause in ONE_DISK) for verdict in right)


@pytest.mark.slow
def test_no_disk_of_a_draid_is_new_that_rebuilds_to_its_distributed_spare():
    found = [watched("draid", seed) for seed in (1, 2, 3)]
    assert all(frame.limit is not None and "new" not in frame.limit.text for frame in found)
    assert all(frame.ceiling is None or "new" not in frame.ceiling.text for frame in found)


@rows("scenario", ["paused", "healthy", "removal", "damaged"])
def test_a_pool_without_a_running_scan_has_no_limit(scenario):
    frame = watched(scenario, 1, 10.0)
    assert frame.limit is None
    assert frame.ceiling is None


def test_every_rule_names_a_known_cause_and_its_words_take_any_figure():
    assert {rule.cause for rule in RULES} == WORDS.keys()
    told = defaultdict(lambda: Figure(0.5))
    assert all(part.format_map(told) for rule in RULES for part in rule.words)


def test_before_a_transaction_group_was_seen_nothing_is_clear():
    limit = watched("new-disk", 1, 2.0).limit
    assert limit is not None
    assert limit.cause == "unclear"
    assert limit.sure == 0


def test_the_first_report_seeks_on_old_fragmented_disks():
    limit = watched("six-disk-swap", 3).limit
    assert limit is not None
    assert limit.figures["request_bytes"] < 262144
    assert "seek" in limit.text


def test_the_second_report_waits_for_its_one_new_disk():
    """``limited by roughly the performance of one of the five drives``: 85 % busy, others 20 %."""
    limit = watched("new-disk", 3).limit
    assert limit is not None
    assert limit.figures["busy"] > 0.85
    assert limit.figures["others_busy"] < 0.6
    assert "HDN724020ALE640" in limit.text


def test_the_third_report_names_the_tunable_that_held_its_scrub():
    limit = watched("scrub-delay", 3).limit
    assert limit is not None
    assert "zfs_scrub_delay" in limit.text
    assert "zfs_scrub_delay=0" in limit.advice


@rows(("unsteady", "sure"), [(0.02, False), (0.3, True)])
def test_large_reads_that_take_long_and_go_evenly_may_wait_for_a_link(unsteady, sure):
    """What the third report's mirrors looked like once the tunable was gone: 50 MB/s a disk."""
    rates = IoRates(50e6, 0.0, 70.0, 0.0, 0.03, 0.99)
    disks = tuple(Disk(f"d{i}", f"m{i // 2}", False, rates, LeafStats()) for i in range(4))
    found = crowd(disks=disks, load=PoolLoad(200e6, 202e6, unsteady))
    assert found.cause == "random"
    assert (found.sure > 0.5) == sure
    assert ("shared link" in found.text) == (not sure)


@rows(
    ("request_bytes", "said"),
    [(602 * 1024.0, "(62.9M/s)"), (SMALL, "(26.8M/s)"), (16 * 1024.0, "random I/O")],
)
def test_reads_are_called_small_only_where_they_are(request_bytes, said):
    """At 107 reads of 602K each second a disk moves 63M/s: it seeks, but not for small blocks."""
    rates = IoRates(107 * request_bytes, 0.0, 107.0, 0.0, 0.03, 0.99)
    disks = tuple(Disk(f"d{i}", "raidz2-0", False, rates, LeafStats()) for i in range(4))
    found = crowd(disks=disks, load=PoolLoad(200e6, 202e6, 0.3))
    assert found.cause == "random"
    assert said in found.text
    small = request_bytes < SMALL
    assert ("small" in found.advice, "random I/O" in found.text) == (small, small)
    assert "scattered blocks: raise zfs_vdev_scrub_max_active" in found.advice


def test_the_fifth_report_is_bound_by_what_the_replaced_drive_writes():
    limit = watched("nvme", 3).limit
    assert limit is not None
    assert limit.figures["write_rate"] == pytest.approx(1.86e9, rel=0.1)


@rows("busy", [0.85, 0.9, 0.93, 0.99])
def test_a_busy_disk_at_its_ceiling_is_never_a_throttle(busy):
    """Live, a new disk capped at 4 MB/s was called one, with a tunable that could not help."""
    past = LeafStats(pending={"async_w": 20.0}, active={"async_w": 2.2})
    new = Disk("new", "raidz1-0", True, IoRates(0.0, 4e6, 0.0, 40.0, 0.05, busy), past)
    olds = [
        Disk(f"d{n}", "raidz1-0", False, IoRates(4e6, 0.0, 40.0, 0.0, 0.002, 0.2), LeafStats())
        for n in range(2)
    ]
    scan = Scan("resilver", "running", "issuing", total_bytes=10**12, scanned_bytes=10**12)
    found = judge(Evidence(scan, "issuing", 12e6, (new, *olds), seconds=60.0))
    assert found is not None
    assert found.cause == "new-disk"
    assert "raise" not in found.advice


@pytest.mark.parametrize(
    ("busy", "latency", "writes"), [(0.8, 2.0, 5.0), (0.818, 0.588, 2.8), (0.8, 0.153, 12.0)]
)
def test_a_disk_whose_writes_take_long_is_no_throttle_however_idle_it_looks(busy, latency, writes):
    """Live, one capped at 3 MB/s: busy time is counted as a request ends."""
    past = LeafStats(pending={"async_w": 60.0}, active={"async_w": 2.0})
    new = Disk("new", "mirror-0", True, IoRates(0.0, 3e6, 0.0, writes, latency, busy), past)
    old = Disk("old", "mirror-0", False, IoRates(3e6, 0.0, 5.0, 0.0, 0.002, 0.2), LeafStats())
    scan = Scan("resilver", "running", "issuing", total_bytes=10**12, scanned_bytes=10**12)
    found = judge(Evidence(scan, "issuing", 3e6, (new, old), seconds=60.0))
    assert found is None or found.cause != "throttle"


def test_disks_that_nobody_measured_are_not_called_idle():
    """A recording without the disks' own counters tells no limit, least of all a throttle."""
    world, session = World("new-disk", 1), Session()
    for elapsed in range(0, 60, 2):
        world.advance(float(elapsed))
        bare = [{key: raw[key] for key in BARE} for raw in world.raws()]
        for raw in bare:
            strip(raw["libzfs"]["vdev_tree"])
        frame = session.advance(bare)[0]
    assert frame.limit.cause == "unclear"
    assert "how busy" in frame.limit.text


BARE = ("t", "clock", "boot", "source", "pool", "libzfs")


def strip(vdev: dict) -> None:
    vdev.pop("vdev_stats_ex", None)
    vdev["vdev_stats"] = [0, *vdev["vdev_stats"][1:]]
    for child in vdev.get("children", ()):
        strip(child)


def test_stages_that_take_turns_speak_for_memory_in_either_of_them():
    walking = Evidence(
        Scan("scrub", "running", "scanning", total_bytes=100, scanned_bytes=40, issued_bytes=30),
        "scanning",
        0.0,
        disks=crowded_disks(),
        seconds=60.0,
        turns=StageCycles(4),
        walked=0.4,
    )
    assert judge(walking).cause == "memory"
    assert 0.5 < judge(walking).sure <= 1.0
    assert judge(walking._replace(turns=StageCycles(1))).cause == "metadata"


def test_a_frozen_scan_is_not_waited_for_while_it_scans_metadata():
    scan = Scan("scrub", "running", "scanning", total_bytes=100, scanned_bytes=0, issued_bytes=0)
    still = IoRates(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    idle = tuple(disk._replace(rates=still) for disk in crowded_disks())
    seen = Evidence(scan, "scanning", 0.0, disks=idle, seconds=60.0, walked=0.0)
    assert judge(seen).cause == "metadata"
    frozen = judge(seen._replace(tunables={"zfs_scan_suspend_progress": 1}))
    assert frozen.cause == "throttle"
    assert "zfs_scan_suspend_progress is 1" in frozen.text
    assert "restore zfs_scan_suspend_progress" in frozen.advice


@rows(("target", "cause"), [(True, "new-disk"), (False, "slow-disk")])
def test_a_disk_that_answers_nothing_is_what_everything_waits_for(target, cause):
    quiet = IoRates(0.0, 0.0, 0.1, 0.0, 0.01, 0.04)
    hangs = IoRates(0.0, 0.0, 0.0, 0.0, None, 0.99)
    disks = (
        Disk("sda", "top", False, quiet, LeafStats()),
        Disk("sdb", "top", target, hangs, LeafStats()),
    )
    scan = Scan("resilver", "running", "issuing", total_bytes=100, scanned_bytes=100)
    found = judge(Evidence(scan, "issuing", 0.0, disks, seconds=60.0))
    assert found.cause == cause
    assert found.disk == "sdb"
    assert "sdb, does not answer" in found.text
    busy = disks[0]._replace(rates=hangs._replace(read_ops=200.0, read=2e7))
    both = judge(Evidence(scan, "issuing", 0.0, (busy, disks[1]), seconds=60.0))
    assert "does not answer" not in both.text


@rows(
    ("other_busy", "other_wait", "named"),
    [(0.02, 0.001, True), (0.6, 0.001, False), (0.2, 0.3, False)],
)
def test_of_a_mirror_of_two_the_disk_is_named_that_the_other_waits_for(
    other_busy, other_wait, named
):
    slow = IoRates(600e3, 0.0, 20.0, 0.0, 0.35, 1.0)
    other = IoRates(700e3, 0.0, 25.0, 0.0, other_wait, other_busy)
    disks = (
        Disk("sda", "top", False, slow, LeafStats()),
        Disk("sdb", "top", False, other, LeafStats()),
    )
    scan = Scan("scrub", "running", "issuing", total_bytes=100, scanned_bytes=100)
    found = judge(Evidence(scan, "issuing", 0.0, disks, seconds=60.0))
    assert found.text.startswith("sda is slow: 100 % busy, siblings 2 %") == named


def crowded_disks():
    rates = IoRates(100e6, 0.0, 100.0, 0.0, 0.03, 0.99)
    return tuple(Disk(f"d{i}", "top", False, rates, LeafStats(seen_read=200e6)) for i in range(6))


def crowd(**changes):
    """Six busy disks that read half of what each did alone, together as much as ever."""
    found = {
        "disks": crowded_disks(),
        "load": PoolLoad(600e6, 610e6, 0.01),
        "seconds": 60.0,
        "rate": 600e6,
    }
    scan = Scan("scrub", "running", "issuing", total_bytes=10**13, scanned_bytes=10**13)
    return judge(Evidence(scan, "issuing", **(found | changes)))


def test_disks_that_were_faster_alone_and_move_as_much_as_ever_share_a_link():
    found = crowd()
    assert found.cause == "bus"
    assert found.figures["alone"] == 200e6
    each = units.rate(found.figures["rate"] / found.figures["disks"])
    assert f" {each} each" in found.text


@rows(
    "load",
    [PoolLoad(600e6, 1200e6, 0.01), PoolLoad(600e6, 610e6, 0.2)],
)
def test_disks_that_are_slower_than_before_for_another_reason_share_none(load):
    assert crowd(load=load).cause != "bus"


@rows(("usual", "sure"), [(0.5, 0.95), (0.7, 0.8)])
def test_a_new_disk_that_is_a_little_busier_than_the_others_is_less_sure(usual, sure):
    source = IoRates(50e6, 0.0, 60.0, 0.0, 0.01, usual)
    disks = [Disk(f"d{i}", "top", False, source, LeafStats()) for i in range(5)]
    new = Disk("new", "top", True, IoRates(0.0, 80e6, 0.0, 90.0, 0.01, 0.9), LeafStats())
    found = crowd(disks=(*disks, new))
    assert (found.cause, found.disk, found.sure) == ("new-disk", "new", sure)


@pytest.mark.slow
def test_the_share_of_applications_is_steady_and_leaves_some_to_a_scan_that_goes_on():
    world, session, texts = World("foreground", 1), Session(), []
    for second in range(60):
        world.advance(float(second))
        limit = session.advance(world.raws())[0].limit
        assert limit is not None
        if limit.cause == "foreground":
            texts.append(limit)
    shown = [limit.figures["others"] for limit in texts[-20:]]
    assert len(shown) == 20
    assert max(shown) - min(shown) < 0.15
    assert not any("100 % of the requests" in limit.text for limit in texts)


def test_rates_that_a_source_gives_in_whole_numbers_are_told_as_all_are():
    """Such as zpool iostat: whole bytes a second."""
    idle = [
        Disk(name, "raidz1-0", False, IoRates(1000, 0, 10, 0, 0.001, 0.1), LeafStats())
        for name in ("a", "b", "c")
    ]
    scan = Scan("scrub", "running", "issuing", total_bytes=10**12, scanned_bytes=10**12)
    found = judge(Evidence(scan, "issuing", 3000, tuple(idle), seconds=60.0))
    assert found is not None
    assert "2.93K/s" in found.text
