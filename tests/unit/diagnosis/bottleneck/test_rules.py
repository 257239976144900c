"""Verdicts on every cause in the simulated pool, in seeded variations."""

from __future__ import annotations

import os
from collections import defaultdict

import pytest

from tests.table import rows
from tests.ui.drawn import LOOK
from tests.unit.diagnosis.bottleneck.watching import watched
from zconsole import units
from zconsole.diagnosis.bottleneck import advice
from zconsole.diagnosis.bottleneck.evidence import Disk, Evidence, LeafStats, PoolLoad, StageCycles
from zconsole.diagnosis.bottleneck.finding import CAUSES as WORDS
from zconsole.diagnosis.bottleneck.rules import RULES, SMALL, Figure, judge
from zconsole.pool.model import DatasetLoad, IoRates, Scan, Vdev
from zconsole.sim.source import World
from zconsole.timeline.session import Session
from zconsole.ui.panes.reasons import paragraph

pytestmark = pytest.mark.slow

SEEDS = range(1, 11 if os.environ.get("ZCONSOLE_SEEDS") == "all" else 2)
NEEDED = 0.9
"""Share of variations that must be judged correctly."""
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
"""Seconds to watch and between samples, for causes that become visible later."""


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
    """The report: ``limited by roughly the performance of one of the five drives``, 85 % busy."""
    limit = watched("new-disk", 3).limit
    assert limit is not None
    assert limit.figures["busy"] > 0.85
    assert limit.figures["others_busy"] < 0.6
    assert "HDN724020ALE640" in limit.text


def test_the_third_report_names_the_tunable_that_held_its_scrub():
    limit = watched("scrub-delay", 3).limit
    assert limit is not None
    assert "zfs_scrub_delay" in limit.text
    assert "zfs_scrub_delay=0" in limit.suggestion.text


@rows(("unsteady", "sure"), [(0.02, False), (0.3, True)])
def test_large_reads_that_take_long_and_go_evenly_may_wait_for_a_link(unsteady, sure):
    """The third report's mirrors looked like this once the tunable was restored: 50 MB/s a disk."""
    rates = IoRates(50e6, 0.0, 70.0, 0.0, 0.03, 0.99)
    disks = tuple(Disk(f"d{i}", f"m{i // 2}", False, rates, LeafStats()) for i in range(4))
    found = crowd(disks=disks, load=PoolLoad(200e6, 202e6, unsteady))
    assert found.cause == "random"
    assert (found.sure > 0.5) == sure
    assert ("waiting for a link" in found.text) == (not sure)


@rows(
    ("request_bytes", "said"),
    [(602 * 1024.0, "(62.9M/s)"), (SMALL, "(26.8M/s)"), (16 * 1024.0, "random I/O")],
)
def test_reads_are_called_small_only_where_they_are(request_bytes, said):
    """With 107 reads of 602K each second a disk moves 63M/s: it seeks, but not for small blocks."""
    rates = IoRates(107 * request_bytes, 0.0, 107.0, 0.0, 0.03, 0.99)
    disks = tuple(Disk(f"d{i}", "raidz2-0", False, rates, LeafStats()) for i in range(4))
    found = crowd(disks=disks, load=PoolLoad(200e6, 202e6, 0.3))
    assert found.cause == "random"
    assert said in found.text
    small = request_bytes < SMALL
    assert ("small" in found.suggestion.text, "random I/O" in found.text) == (small, small)
    assert found.suggestion.text.startswith(
        "raise zfs_vdev_scrub_max_active so that disks reorder more"
    )


def test_the_fifth_report_is_bound_by_what_the_replaced_drive_writes():
    limit = watched("nvme", 3).limit
    assert limit is not None
    assert limit.figures["write_rate"] == pytest.approx(1.86e9, rel=0.1)


@rows("busy", [0.85, 0.9, 0.93, 0.99])
def test_a_busy_disk_at_its_ceiling_is_never_a_throttle(busy):
    """A live new disk limited to 4 MB/s was once called one, with a tunable that could not help."""
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
    assert "raise" not in found.suggestion.text


@pytest.mark.parametrize(
    ("busy", "latency", "writes"), [(0.8, 2.0, 5.0), (0.818, 0.588, 2.8), (0.8, 0.153, 12.0)]
)
def test_a_disk_whose_writes_take_long_is_no_throttle_however_idle_it_looks(busy, latency, writes):
    """Seen live at 3 MB/s: busy time is counted only when a request ends."""
    past = LeafStats(pending={"async_w": 60.0}, active={"async_w": 2.0})
    new = Disk("new", "mirror-0", True, IoRates(0.0, 3e6, 0.0, writes, latency, busy), past)
    old = Disk("old", "mirror-0", False, IoRates(3e6, 0.0, 5.0, 0.0, 0.002, 0.2), LeafStats())
    scan = Scan("resilver", "running", "issuing", total_bytes=10**12, scanned_bytes=10**12)
    found = judge(Evidence(scan, "issuing", 3e6, (new, old), seconds=60.0))
    assert found is None or found.cause != "throttle"


def test_disks_that_nobody_measured_are_not_called_idle():
    """A recording without the disks' own counters shows no limit, and certainly no throttle."""
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
        cycles=StageCycles(4),
        walked=0.4,
    )
    assert judge(walking).cause == "memory"
    assert 0.5 < judge(walking).sure <= 1.0
    assert judge(walking._replace(cycles=StageCycles(1))).cause == "metadata"


def test_a_frozen_scan_is_not_waited_for_while_it_scans_metadata():
    scan = Scan("scrub", "running", "scanning", total_bytes=100, scanned_bytes=0, issued_bytes=0)
    still = IoRates(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    idle = tuple(Disk(d.name, d.top, d.target, still, d.past) for d in crowded_disks())
    seen = Evidence(scan, "scanning", 0.0, disks=idle, seconds=60.0, walked=0.0)
    assert judge(seen).cause == "metadata"
    frozen = judge(seen._replace(tunables={"zfs_scan_suspend_progress": 1}))
    assert frozen.cause == "throttle"
    assert "zfs_scan_suspend_progress is 1" in frozen.text
    assert "restore zfs_scan_suspend_progress" in frozen.suggestion.text


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
    reads = hangs._replace(read_ops=200.0, read=2e7)
    busy = Disk("sda", "top", False, reads, LeafStats())
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
    """Return evidence of six busy disks: each reads half its best, together as much as ever."""
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
    assert not any("100 % of requests" in limit.text for limit in texts)


def test_rates_that_a_source_gives_in_whole_numbers_are_told_as_all_are():
    """For example, zpool iostat gives whole bytes per second."""
    idle = [
        Disk(name, "raidz1-0", False, IoRates(1000, 0, 10, 0, 0.001, 0.1), LeafStats())
        for name in ("a", "b", "c")
    ]
    scan = Scan("scrub", "running", "issuing", total_bytes=10**12, scanned_bytes=10**12)
    found = judge(Evidence(scan, "issuing", 3000, tuple(idle), seconds=60.0))
    assert found is not None
    assert "2.93K/s" in found.text


MIB = float(1 << 20)
DONE = {"total_bytes": 10**13, "scanned_bytes": 10**13}


def disk(name, each, rate, busy, wait=None, *, new=False, past=None, others=0.0):
    """Return a disk that reads, or writes if it is new, ``rate`` requests/s of ``each`` bytes."""
    moved = (0.0, each * rate, others, rate) if new else (each * rate, 0.0, rate, others)
    service = busy / (rate + others) if rate else None
    rates = IoRates(*moved, wait if wait is not None else service, busy)
    return Disk(name, "top", new, rates, past or LeafStats())


def judged(*disks, function="scrub", stage="issuing", **changes):
    """Return the verdict on a scan that uses these disks."""
    found = {"rate": 1e6, "seconds": 60.0, "load": PoolLoad(1e8, 1e8, 0.3)} | changes
    return judge(Evidence(Scan(function, "running", stage, **DONE), stage, disks=disks, **found))


@rows(
    ("each", "rate", "slow"),
    [
        (16 * MIB, 9.0, False),
        (16 * MIB, 2.2, False),
        (16 * MIB, 0.2, True),
        (4 * MIB, 3.0, True),
        (MIB, 9.0, True),
        (128 * 1024.0, 9.0, True),
    ],
)
def test_a_disk_is_slow_where_its_requests_are_for_their_size(each, rate, slow):
    """ZFS requests may be 16 MiB large: at full speed one takes a tenth of a second."""
    found = judged(*(disk(f"d{n}", each, rate, 0.95) for n in range(2)))
    assert (found.cause == "slow-disk") == slow, found.text


@rows(("now", "wanted"), [(2, 8), (8, 10), (10, None)])
def test_a_longer_queue_is_never_above_its_maximum(now, wanted):
    """ZFS refuses a minimum above the maximum."""
    past = LeafStats(active={"async_w": 10.0})
    tunables = {"zfs_vdev_async_write_min_active": now, "zfs_vdev_async_write_max_active": 10}
    new = disk("new", 30 * 1024.0, 390.0, 0.99, new=True, past=past)
    old = disk("old", 30 * 1024.0, 390.0, 0.4)
    found = judged(new, old, function="resilver", tunables=tunables)
    assert found.suggestion.value == wanted


@rows(
    ("each", "sent", "helps"),
    [(30 * 1024.0, 2.0, True), (30 * 1024.0, 1.0, False), (MIB, 2.0, False)],
)
def test_a_longer_queue_may_help_a_new_disk_whose_queue_is_full_of_small_writes(each, sent, helps):
    past = LeafStats(active={"async_w": sent})
    tunables = {"zfs_vdev_async_write_min_active": 2}
    new = disk("new", each, 390.0, 0.99, new=True, past=past)
    found = judged(new, disk("old", each, 390.0, 0.4), function="resilver", tunables=tunables)
    assert found.cause == "new-disk"
    assert (found.suggestion.tunable == "zfs_vdev_async_write_min_active") == helps
    assert found.is_out_of_reach != helps


def test_large_writes_that_take_as_long_as_their_bytes_may_be_too_few():
    past = LeafStats(pending={"async_w": 60.0}, active={"async_w": 2.0})
    new = disk("new", 16 * MIB, 8.0, 0.7, 0.17, new=True, past=past)
    found = judged(new, disk("old", 16 * MIB, 8.0, 0.3), function="resilver")
    assert found.cause == "throttle"


def test_a_disk_that_takes_long_for_large_requests_does_answer():
    new = disk("new", 16 * MIB, 0.2, 0.99, 5.0, new=True)
    found = judged(new, disk("old", 16 * MIB, 0.2, 0.1), function="resilver")
    assert found.text.startswith("the new disk new: 99 % busy writing 3.2")


@rows(("count", "busy"), [(8, 0.45), (4, 0.59), (18, 0.2)])
def test_disks_that_are_idle_together_are_sent_too_little_rather_than_share_a_link(count, busy):
    """Members of a raidz always move as much; waiting for a link leaves requests in flight."""
    past = LeafStats(pending={"scrub": 2.0}, active={"scrub": 1.0})
    found = judged(*(disk(f"d{n}", MIB, 95.0, busy, past=past) for n in range(count)))
    assert found.cause == "throttle"


@rows(
    ("each", "rate", "cause"),
    [
        (64 * 1024.0, 150.0, "new-disk"),
        (128 * 1024.0, 80.0, "new-disk"),
        (MIB, 60.0, "new-disk"),
        (MIB, 21.0, "smr"),
        (128 * 1024.0, 20.0, "smr"),
    ],
)
def test_a_disk_is_shingled_only_where_its_writes_take_longer_than_seeks(each, rate, cause):
    writes = [each * rate * (0.7 if n % 2 else 1.3) for n in range(16)]
    new = disk("new", each, rate, 0.95, new=True, past=LeafStats(seen_write=180e6, writes=writes))
    found = judged(new, disk("old", each, rate, 0.2), function="resilver")
    assert found.cause == cause


@rows(
    ("each", "rate", "sequential"),
    [(8192.0, 40_000.0, False), (65536.0, 9000.0, False), (MIB, 170.0, True), (MIB, 3e3, True)],
)
def test_reads_are_called_sequential_only_where_they_are_large(each, rate, sequential):
    found = judged(*(disk(f"d{n}", each, rate, 0.99) for n in range(2)))
    assert found.cause == "disks"
    assert ("sequential" in found.text) == sequential
    assert (f"requests of {units.size(each)}" in found.text) != sequential
    assert (found.sure > 0.5) == sequential


@rows(
    ("wait", "pending", "cause"),
    [(0.0002, 300.0, "throttle"), (0.0002, 0.0, "new-disk"), (0.004, 300.0, "new-disk")],
)
def test_flash_is_not_at_its_limit_because_some_request_always_is_in_flight(wait, pending, cause):
    past = LeafStats(pending={"async_w": pending}, active={"async_w": 2.0})
    new = disk("new", 128 * 1024.0, 2 / wait, 0.97, wait, new=True, past=past)
    found = judged(new, disk("old", 128 * 1024.0, 2 / wait, 0.4), function="resilver")
    assert found.cause == cause


def test_flash_that_always_has_a_request_in_flight_may_wait_for_the_processor():
    disks = [disk(f"d{n}", 65536.0, 20_000.0, 0.97, 0.0002) for n in range(4)]
    found = judged(*disks, cpu=0.97)
    assert (found.cause, found.text) == ("cpu", "the processor: 97 % busy")
    heads = [disk(f"d{n}", MIB, 170.0, 0.97, 0.018) for n in range(4)]
    assert judged(*heads, cpu=0.97).cause == "disks"


def test_the_processor_is_busy_with_nobody_knows_what():
    found = judged(disk("d0", MIB, 50.0, 0.3), cpu=0.97)
    assert found.text == "the processor: 97 % busy, disks at most 30 %"


def held_by_applications(busy=0.7, **changes):
    past = LeafStats(
        active={"sync_r": 2.0, "scrub": 0.1}, active_mean={"sync_r": 2.0, "scrub": 0.1}
    )
    return judged(*(disk(f"d{n}", 65536.0, 100.0, busy, past=past) for n in range(2)), **changes)


@rows("stage", ["scanning", "issuing"])
@rows("busy", [0.0, 0.7, 0.99])
def test_what_freezes_a_scan_is_named_first(stage, busy):
    frozen = {"zfs_scan_suspend_progress": 1}
    found = judged(disk("d0", 65536.0, 100.0, busy), stage=stage, cpu=0.99, tunables=frozen)
    assert found.cause == "throttle"
    assert "zfs_scan_suspend_progress is 1" in found.text
    assert found.suggestion.tunable == "zfs_scan_suspend_progress"
    assert held_by_applications(tunables=frozen).cause == "throttle"
    assert held_by_applications().cause == "foreground"


@rows(
    ("function", "writes", "tunable"),
    [
        ("scrub", 0.0, "zfs_vdev_scrub_min_active"),
        ("scrub", 20e6, "zfs_scrub_min_time_ms"),
        ("resilver", 0.0, "zfs_vdev_scrub_min_active"),
        ("resilver", 20e6, "zfs_resilver_min_time_ms"),
        ("rebuild", 0.0, "zfs_vdev_rebuild_min_active"),
        ("rebuild", 20e6, "zfs_vdev_rebuild_min_active"),
    ],
)
def test_what_gives_a_scan_its_share_beside_applications_is_suggested(function, writes, tunable):
    """Scans give way to dirty data and to sync waiters, but not to reads alone."""
    found = held_by_applications(function=function, foreground_writes=writes, version=(2, 3, 0))
    assert found.suggestion.tunable == tunable


@rows(
    ("wait", "other", "cause"),
    [(0.4, 0.004, "slow-disk"), (0.4, 0.4, "slow-disk"), (0.01, 0.004, "metadata")],
)
def test_a_dying_disk_is_not_waited_for_while_metadata_is_scanned(wait, other, cause):
    disks = [disk("d0", 16384.0, 1 / wait, 0.99, wait), disk("d1", 16384.0, 5.0, 0.02, 0.004)]
    if other > 0.1:
        disks[1:] = [disk("d1", 16384.0, 1 / wait, 0.99, wait)]
    assert judged(*disks, stage="scanning", walked=0.3).cause == cause


def test_a_scan_at_its_memory_limit_does_not_hide_a_dying_disk_either():
    disks = disk("d0", 16384.0, 2.5, 0.99, 0.4), disk("d1", 16384.0, 2.5, 0.02, 0.004)
    found = judged(*disks, stage="scanning", walked=0.3, cycles=StageCycles(4))
    assert found.cause == "slow-disk"


@rows("busy", [0.0, None])
@rows(("seconds", "answers", "stuck"), [(20, 0.0, True), (2, 0.0, False), (20, 3.0, False)])
def test_a_disk_with_requests_in_flight_that_answers_none_is_stuck_however_idle_it_looks(
    busy, seconds, answers, stuck
):
    """Linux 5.0 to about 5.17 counts busy time only when a request begins or ends."""
    past = LeafStats()
    rates = IoRates(0.0, 0.0, answers, 0.0, 0.01 if answers else None, busy)
    for second in range(seconds):
        vdev = Vdev("sdb", "disk", queues={"sync_r": (4, 0), "scrub": (2, 3)})
        past.add(float(second), vdev, rates)
    hangs = Disk("sdb", "top", False, rates, past)
    found = judged(disk("sda", 16384.0, 1.0, 0.01), hangs)
    assert ("does not answer" in found.text) == stuck
    assert not stuck or (found.disk, found.text[-22:]) == ("sdb", "; 3 requests in flight")
    past.add(float(seconds), Vdev("sdb", "disk", queues={"scrub": (0, 0)}), rates)
    assert "does not answer" not in judged(disk("sda", 16384.0, 1.0, 0.01), hangs).text


@rows(("count", "unsteady", "link"), [(1, 0.02, True), (2, 0.02, True), (1, 0.3, False)])
def test_even_large_reads_of_few_disks_may_be_as_fast_as_their_link(count, unsteady, link):
    """For example a disk on USB 2: 35 reads/s of 1 MiB, whose heads alone would not need 29 ms."""
    disks = [disk(f"d{n}", MIB, 35.0, 0.99, 0.029) for n in range(count)]
    found = judged(*disks, load=PoolLoad(35e6 * count, 36e6 * count, unsteady))
    assert ("link" in found.text) == link
    assert (found.sure < 0.5) == link


@rows(
    ("name", "value", "named"),
    [
        ("zfs_vdev_max_active", 999, False),
        ("zfs_resilver_min_time_ms", 2999, False),
        ("zfs_resilver_min_time_ms", 300, True),
        ("zfs_vdev_scrub_max_active", 1, True),
        ("zfs_scan_vdev_limit", 16 * 10**6, False),
        ("zfs_scan_vdev_limit", 1 << 20, True),
    ],
)
def test_a_tunable_holds_a_scan_only_where_it_is_well_below_its_default(name, value, named):
    idle = [disk(f"d{n}", MIB, 20.0, 0.2) for n in range(2)]
    found = judged(*idle, function="resilver", version=(2, 3, 0), tunables={name: value})
    assert found.cause == "throttle"
    assert (name in found.text) == named
    assert (found.sure > 0.8) == named


@rows(("version", "cause"), [((2, 3, 0), "throttle"), ((0, 7, 13), "foreground")])
def test_a_scan_that_was_set_to_be_gentle_is_held_by_that_rather_than_by_applications(
    version, cause
):
    """The preset ``gentle`` made the limit "other I/O"; before 0.8 a delay is the default."""
    low = {"zfs_vdev_scrub_max_active": 1, "zfs_resilver_delay": 2}
    found = held_by_applications(function="resilver", version=version, tunables=low)
    assert found.cause == cause
    if cause == "throttle":
        assert "zfs_vdev_scrub_max_active is 1 (default 3)" in found.text
        assert "from applications" in found.text
        assert (
            found.suggestion.text
            == "zconsole tunables set zfs_vdev_scrub_max_active=3 (its default)"
        )


@rows(("scrub", "share"), [(0.02, "nearly all"), (2.0, "50 % of")])
def test_all_that_is_told_of_applications_has_room_on_a_screen_of_80_columns(scrub, share):
    """It was always cut: "50 % of the requests in flight are from applications, …"."""
    active = {"sync_r": 2.0, "scrub": scrub}
    past = LeafStats(active=active, active_mean=active)
    disks = (disk(f"d{n}", 65536.0, 100.0, 1.0, past=past) for n in range(2))
    found = judged(*disks, foreground_writes=15e6)
    assert found.text == f"other I/O: {share} requests, disks 100 % busy, 14.3M/s written"
    assert len(paragraph("slowed by", found.text, LOOK, 80)) == 1


LOW = {"version": (2, 3, 0), "tunables": {"zfs_vdev_scrub_max_active": 1}}


@rows(("busy", "told"), [(0.7, ", disks at most 70 % busy"), (0.99, "")])
def test_disks_that_applications_keep_fully_busy_are_not_told_to_have_capacity(busy, told):
    found = held_by_applications(busy, **LOW)
    assert found.text == (
        f"a tunable: zfs_vdev_scrub_max_active is 1 (default 3){told};"
        " nearly all requests in flight are from applications"
    )


@rows(("wait", "rate", "cause"), [(0.0001, 9900.0, "throttle"), (0.01, 99.0, "random")])
def test_flash_is_held_back_by_a_tunable_though_it_always_has_a_request_in_flight(
    wait, rate, cause
):
    found = judged(*(disk(f"d{n}", 65536.0, rate, 0.99, wait) for n in range(4)), **LOW)
    assert found.cause == cause
    if cause == "throttle":
        assert found.text == "a tunable: zfs_vdev_scrub_max_active is 1 (default 3)"
        assert 0.5 < found.sure < 0.8


def test_no_least_is_suggested_above_the_most():
    least, most = "zfs_vdev_scrub_min_active", "zfs_vdev_scrub_max_active"
    assert "to 2 (now 1" in held_by_applications(tunables={least: 1, most: 3}).suggestion.text
    assert held_by_applications(tunables={least: 2, most: 3}).suggestion == advice.HOLD


@rows(("wait", "slow"), [(0.0003, False), (0.003, True)])
def test_flash_that_answers_at_once_is_not_slow_for_being_busier_than_its_siblings(wait, slow):
    busier = disk("d0", 8192.0, 3000.0, 0.97, wait)
    found = judged(busier, *(disk(f"d{n}", 8192.0, 3000.0, 0.7, 0.0001) for n in (1, 2, 3)))
    assert (found.cause == "slow-disk") == slow


@rows(("wait", "sure"), [(0.0003, False), (0.003, True)])
def test_flash_that_always_has_a_write_in_flight_is_perhaps_at_its_limit(wait, sure):
    new = disk("new", 65536.0, 2 / wait, 0.97, wait, new=True)
    found = judged(new, disk("old", 65536.0, 2 / wait, 0.4), function="resilver")
    assert found.cause == "new-disk"
    assert (found.sure > 0.5) == sure


SAID = "other I/O: nearly all requests, disks 70 % busy"


@rows(
    ("rates", "named"),
    [
        ((), ""),
        (((0.0, 0.0),), ""),
        (((180 * MIB, 5 * MIB),), "; tank/0 reads 180M/s (logical, ARC included)"),
        (
            ((9 * MIB, 10 * MIB), (12 * MIB, 0.0), (0.5 * MIB, 0.5 * MIB)),
            "; tank/0 writes 10M/s (logical, ARC included), tank/1 reads 12M/s",
        ),
    ],
)
def test_the_applications_that_limit_a_scan_are_named_by_their_datasets(rates, named):
    datasets = [DatasetLoad(f"tank/{n}", *both, 1.0, 1.0) for n, both in enumerate(rates)]
    assert held_by_applications(datasets=datasets).text == f"{SAID}{named}"


def test_the_demo_names_the_datasets_that_compete_with_its_scan():
    frame = watched("foreground", 1)
    names = [each.name for each in frame.busiest_datasets]
    assert set(names) == {"prod/postgres", "prod/vm-101-disk-0", "prod/home"}
    assert names[0] in frame.limit.text
    assert names[1] in frame.limit.text
    assert names[2] not in frame.limit.text
