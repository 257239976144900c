"""Scans and rebuilds of the config nvlist: array layouts of every version, zpool's formulas."""

from __future__ import annotations

import pytest

from tests.unit.zfs.decode.configs import MIB, START, config, disk, read, stats, top
from zconsole.pool.model import Scan
from zconsole.timeline.frame import time_taken


def scan_stats(length: int, **at: int) -> list[int]:
    """Return a running resilver, 100 s old: 1000 of 4000 MiB scanned, 100 skipped, 500 issued."""
    values = [2, 1, START, 0, 4000 * MIB, 1000 * MIB, 100 * MIB, 7 * MIB, 0, 1000 * MIB, START]
    values += [0, 0, 2000 * MIB, 500 * MIB, *[0] * 8]
    values[13] = 2000 * MIB
    for key, value in at.items():
        values[int(key[1:])] = value
    return values[:length]


def scan(length: int, **at: int) -> Scan:
    return read(config(top(), scan_stats=scan_stats(length, **at))).scan


class TestScan:
    def test_2_2_takes_off_what_is_skipped(self) -> None:
        found = scan(22)
        assert (found.function, found.state, found.stage) == ("resilver", "running", "scanning")
        assert found.percent == pytest.approx(100 * 500 / 3900)
        assert (found.skipped_bytes, found.to_issue_bytes) == (100 * MIB, 3900 * MIB)
        assert found.zpool_scan_rate == 10 * MIB
        assert found.zpool_issue_rate == 20 * MIB
        assert found.zpool_eta == 170.0

    def test_0_8_to_2_1_do_not(self) -> None:
        found = scan(15)
        assert found.percent == 12.5
        assert (found.skipped_bytes, found.zpool_eta) == (None, 175.0)

    def test_before_0_8_the_walk_is_the_work(self) -> None:
        found = scan(13)
        assert (found.two_stage, found.stage, found.issued_bytes) == (False, None, None)
        assert found.percent == 25.0
        assert found.zpool_eta == 300.0

    def test_no_estimate_below_ten_mebibytes_a_second(self) -> None:
        assert scan(22, _13=999 * MIB).zpool_eta is None
        assert scan(22, _13=1000 * MIB).zpool_eta == 340.0

    def test_no_estimate_before_the_first_repair(self) -> None:
        assert scan(22, _7=0).zpool_eta is None
        assert scan(15, _7=0).zpool_eta is None

    def test_a_thorough_scrub_is_known_from_its_flags(self) -> None:
        found = [scan(23, _0=1, _22=1), scan(23, _0=1), scan(22, _0=1), scan(23, _0=2, _22=1)]
        assert [each.thorough for each in found] == [True, False, False, None]
        assert [each.name for each in found[:2]] == ["thorough scrub", "scrub"]

    def test_the_last_kilobytes_of_a_walk_do_not_keep_it_scanning(self) -> None:
        assert scan(22, _5=4000 * MIB - 4096).stage == "issuing"
        assert scan(22, _9=0).stage == "issuing"
        assert scan(15, _9=0).stage == "scanning"

    def test_paused(self) -> None:
        found = scan(22, _0=1, _11=START + 50, _12=20)
        assert (found.state, found.stage, found.paused_since) == ("paused", None, START + 50.0)
        assert (found.zpool_issue_rate, found.zpool_eta, found.pass_paused) == (None, None, 20.0)
        assert found.percent == pytest.approx(100 * 500 / 3900)

    def test_time_paused_does_not_count(self) -> None:
        assert scan(22, _12=50).zpool_issue_rate == 40 * MIB

    def test_finished(self) -> None:
        found = scan(22, _1=2, _3=START + 90)
        assert (found.state, found.percent, found.duration) == ("finished", None, 90.0)

    def test_an_error_scrub_beside_the_scan(self) -> None:
        more = {"_15": 3, "_16": 4, "_17": START + 95, "_19": 3, "_20": 1}
        scans = read(config(top(), scan_stats=scan_stats(22, _1=2, _3=START + 90, **more))).scans
        assert [s.function for s in scans] == ["errorscrub", "resilver"]
        assert (scans[0].state, scans[0].percent) == ("running", 75.0)
        assert (scans[0].start, scans[0].paused_since) == (START + 95.0, None)
        more |= {"_21": START + 97}
        paused = read(config(top(), scan_stats=scan_stats(22, **more))).scans[0]
        assert (paused.state, paused.paused_since) == ("paused", START + 97.0)

    def test_an_error_scrub_that_was_canceled_while_paused_took_time_like_any_scan(self) -> None:
        more = {"_15": 3, "_16": 3, "_17": START, "_18": START + 90, "_21": START + 60}
        scrub = read(config(top(), scan_stats=scan_stats(22, **more))).scans[1]
        assert (scrub.function, scrub.state, scrub.duration) == ("errorscrub", "canceled", 90.0)
        assert time_taken(scrub, "took") == "ran 1m00s"

    def test_of_the_same_second_the_error_scrub_is_the_newer(self) -> None:
        more = {"_15": 3, "_16": 2, "_17": START, "_18": START}
        ended = config(top(), scan_stats=scan_stats(22, _0=1, _1=2, _3=START, **more))
        assert [s.function for s in read(ended).scans] == ["errorscrub", "scrub"]

    def test_markers_of_the_leaves(self) -> None:
        leaves = [
            disk("a", vdev_stats=stats(_26=5)),
            disk("b", vdev_stats=stats(_33=1)),
            disk("c", vdev_stats=stats(_1=5, _26=5)),
        ]
        tree = config(top(children=leaves), scan_stats=scan_stats(22))
        found = list(read(tree).root.leaves())
        assert [v.note for v in found] == ["(resilvering)", "(awaiting resilver)", ""]
        assert [v.resilvering for v in found] == [True, False, False]
        assert [v.awaiting_resilver for v in found] == [False, True, False]
        tree["vdev_tree"]["scan_stats"][0] = 1
        assert next(read(tree).root.leaves()).note == "(repairing)"
        tree["vdev_tree"]["scan_stats"][1] = 2
        assert next(read(tree).root.leaves()).note == ""


RUNNING_REBUILD = [1, START, 0, 1000, 300 * MIB, 200 * MIB, 190 * MIB, 1000 * MIB - 1, 0, 9999]
RUNNING_REBUILD += [300 * MIB, 200 * MIB]


class TestRebuild:
    def rebuild(self, values: list[int]) -> Scan:
        return read(config(top(**{"org.openzfs:rebuild_stats": values}))).scan

    def test_running(self) -> None:
        found = self.rebuild(RUNNING_REBUILD)
        assert (found.function, found.vdev, found.state) == ("rebuild", "mirror-0", "running")
        assert found.percent == 30.0
        assert found.zpool_scan_rate == 30 * MIB
        assert found.zpool_eta == 23.0
        assert found.skipped_bytes is None
        assert (found.total_bytes, found.scanned_bytes) == (1000 * MIB - 1, 300 * MIB)
        assert (found.issued_bytes, found.processed_bytes) == (200 * MIB, 190 * MIB)
        assert self.rebuild([*RUNNING_REBUILD, 5]).skipped_bytes == 5

    def test_percent_never_passes_a_hundred(self) -> None:
        assert (
            self.rebuild([*RUNNING_REBUILD[:4], 2000 * MIB, *RUNNING_REBUILD[5:]]).percent == 100.0
        )

    def test_several_run_at_once_and_an_old_one_comes_last(self) -> None:
        done = [3, START - 500, START - 400, 100_000, *RUNNING_REBUILD[4:]]
        nodes = [
            top(index=i, **{"org.openzfs:rebuild_stats": values})
            for i, values in enumerate((done, RUNNING_REBUILD, RUNNING_REBUILD))
        ]
        scans = read(config(*nodes)).scans
        assert [s.vdev for s in scans] == ["mirror-1", "mirror-2", "mirror-0"]
        assert (scans[2].state, scans[2].duration) == ("finished", 100.0)
