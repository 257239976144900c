from __future__ import annotations

import pytest

from zconsole.pool.model import Activity, Scan, Vdev
from zconsole.timeline.eta.work import (
    activity_work,
    issued_bytes,
    repaired_share,
    scan_reading,
    scan_work,
)

TIB = 2**40


def disk(name: str, **fields) -> Vdev:
    return Vdev(name, "disk", **fields)


def root(*tops: Vdev) -> Vdev:
    return Vdev("tank", "root", children=tops)


def test_exact_bytes_are_taken_as_they_are():
    scan = Scan("scrub", "running", total_bytes=1000, issued_bytes=300, percent=30.1)
    assert issued_bytes(scan) == (300.0, 0.0)


def test_the_percentage_is_finer_than_rounded_bytes_of_a_large_pool():
    scan = Scan(
        "scrub",
        "running",
        total_bytes=10 * TIB,
        issued_bytes=TIB,
        percent=10.42,
        resolution=0.005 * TIB,
    )
    done, step = issued_bytes(scan)
    assert done == pytest.approx(1.042 * TIB)
    assert step == pytest.approx(0.00005 * 10 * TIB)


def test_one_stage_dialects_work_as_they_scan():
    scan = Scan("scrub", "running", total_bytes=1000, scanned_bytes=400, two_stage=False)
    assert issued_bytes(scan) == (400.0, 0.0)
    assert scan_work(scan, root()).issued == 400


def test_what_walks_metadata_takes_turns_and_exact_counters_say_what_is_left_to_walk():
    walks = Scan("scrub", "running", "scanning", total_bytes=9, issued_bytes=1, skipped_bytes=0)
    assert (scan_work(walks, root()).by_turns, scan_work(walks, root()).to_scan) == (True, 9)
    for fields in ({"stage": "issuing"}, {"two_stage": False}, {"function": "rebuild"}):
        assert not scan_work(walks._replace(scanned_bytes=1, **fields), root()).by_turns, fields
    for fields in ({"printed": True}, {"resolution": 1.0}, {"skipped_bytes": None}):
        assert scan_work(walks._replace(**fields), root()).to_scan is None, fields


def test_nothing_known_is_no_work():
    assert scan_work(Scan("scrub", "running"), root()) is None
    assert scan_reading(1.0, 1.0, Scan("scrub", "running")) is None
    assert scan_work(Scan("scrub", "running", issued_bytes=5), root()) is None


def test_skipped_bytes_are_off_the_total():
    scan = Scan("resilver", "running", total_bytes=1000, skipped_bytes=400, issued_bytes=5)
    assert scan_work(scan, root()).total == 600


def test_repaired_bytes_too_coarse_to_follow_are_left_out():
    fine = Scan("resilver", "running", total_bytes=2**40, issued_bytes=2**38, processed_bytes=2**36)
    assert scan_work(fine, root()).processed == 2**36
    coarse = Scan(
        "resilver",
        "running",
        total_bytes=100 * TIB,
        issued_bytes=10 * TIB,
        processed_bytes=int(1.31 * TIB),
        percent=10.0,
        resolution=0.05 * TIB,
    )
    assert scan_work(coarse, root()).processed == 0


RAIDZ = Vdev(
    "raidz2-0",
    "raidz2",
    children=(
        disk("a"),
        disk("b"),
        disk("c"),
        Vdev("replacing-3", "replacing", children=(disk("d"), disk("e", resilvering=True))),
        disk("f"),
    ),
)


def test_the_share_of_issued_bytes_that_is_repaired():
    scan = Scan("resilver", "running")
    mirror = Vdev("mirror-0", "mirror", children=(disk("a"), disk("b", resilvering=True)))
    assert repaired_share(scan, root(RAIDZ)) == 0.2
    assert repaired_share(scan, root(mirror, Vdev("mirror-1", "mirror"))) == 1.0
    assert repaired_share(scan, root(RAIDZ, mirror)) is None
    assert repaired_share(scan, root(disk("a"))) is None


def test_the_share_of_a_rebuild_is_that_of_its_own_vdev():
    mirror = Vdev("mirror-1", "mirror", children=(disk("a"), disk("b")))
    scan = Scan("rebuild", vdev="mirror-1")
    assert repaired_share(scan, root(RAIDZ, mirror)) == 1.0
    assert repaired_share(Scan("rebuild", vdev="gone"), root(mirror)) is None
    assert repaired_share(Scan("rebuild", vdev="d"), root(Vdev("d", "draid1"))) is None


def test_the_share_of_a_draid_rebuild_is_that_of_the_groups_it_does_not_skip():
    spare = Vdev("draid1-0-0", "dspare", resilvering=True)
    group = Vdev("spare-0", "spare", children=(disk("a", state="OFFLINE"), spare))
    others = (disk("b", resilvering=True), disk("c", resilvering=True), disk("d"))
    draid = Vdev("d", "draid1", nparity=1, data_disks=2, children=(group, *others))
    assert repaired_share(Scan("rebuild", vdev="d"), root(draid)) == pytest.approx(1 / 3)
    unknown = draid._replace(data_disks=None)
    assert repaired_share(Scan("rebuild", vdev="d"), root(unknown)) is None


def test_what_a_rebuild_skips_it_need_not_issue():
    scan = Scan("rebuild", total_bytes=1000, scanned_bytes=500, issued_bytes=400)
    told = Scan("rebuild", total_bytes=1000, scanned_bytes=500, issued_bytes=400, skipped_bytes=100)
    assert scan_work(told, root()).total == 800  # 2.3 says what was skipped, 2.1 does not
    assert scan_work(scan, root()).total == 800
    begun = Scan("rebuild", total_bytes=1000, scanned_bytes=0, issued_bytes=0)
    assert scan_work(begun, root()).total == 1000


def test_an_activity_needs_its_total():
    assert activity_work(Activity("removal", "running", done_bytes=5)) is None
    assert activity_work(Activity("removal", "running", done_bytes=5, total_bytes=9)).total == 9


def test_a_raidz_whose_devices_are_cut_off_tells_no_share():
    scan = Scan("resilver", "running", processed_bytes=5)
    assert repaired_share(scan, root(Vdev("raidz1-0", "raidz1", resilvering=True))) is None
