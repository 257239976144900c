"""The detail of a row in the device list."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.drawn import LOOK, plain, text
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.health import SpareProblem
from zconsole.pool.model import DatasetLoad
from zconsole.pool.volumes import VolumeLimit
from zconsole.timeline.devices import LABELS, described
from zconsole.ui.panes.device_detail import detail_lines


class TestDetail:
    def test_everything_known_about_a_device(self):
        frame = frames.resilver()
        row = next(r for r in frame.rows if r.slow_sibling)
        said = text(detail_lines(row, frame, (("serial", "WD-1"),), LOOK, 100))
        for wanted in (
            row.vdev.name,
            "/dev/disk/by-id/",
            "12399887766554433221",
            "ashift 9",
            "prefers 4096",
            "read 3",
            "scrub 31+3",
            "serial       WD-1",
            "read latency",
            "half within",
        ):
            assert wanted in said

    def test_the_pools_own_row_says_every_reason_of_its_state(self):
        """Earlier, at 60x15, the header said ``+1 more``, and nothing said which."""
        frame = frames.resilver()
        reasons = ("resilver again: zpool resilver tank", "keep the old disk: it still counts")
        frame = replace(frame, health=frame.health._replace(reasons=reasons))
        root, disk = frame.rows[0], frame.rows[-1]
        said = [plain(line).strip() for line in detail_lines(root, frame, (), LOOK, 60)]
        assert said[:2] == [f"why          {reasons[0]}", reasons[1]]
        assert "why" not in text(detail_lines(disk, frame, (), LOOK, 60))

    @rows("name", ["suspended", "deserted"])
    def test_what_the_header_counts_of_a_suspended_pool_is_all_in_its_row(self, name):
        """At 80x24 the header once said ``+4 more: Enter on the pool's row``; that had two."""
        rows = tuple(replace(r, missing_since=frames.NOW) for r in frames.resilver().rows)
        for frame in (frames.ALL[name](), replace(frames.ALL[name](), rows=rows)):
            said = text(detail_lines(frame.rows[0], frame, (), LOOK, 80))
            gone = [row.vdev.name for row in frame.rows if row.gone]
            assert said.count("missing since") == len(gone)
            assert f"kernel says {frame.kstat}" in said
            assert "more missing" not in said
            assert "then clear the pool (A)" in said
            flat = " ".join(said.split())
            assert all(reason in flat for reason in frame.health.reasons)

    def test_where_the_disk_is_and_which_comes_before_all_that_is_drawn(self):
        frame = frames.resilver()
        row = next(r for r in frame.rows if r.slow_sibling)
        disk = LeafDisk(bay="Slot 07", serial="WCC7K0F34DA")
        row = replace(row, vdev=row.vdev._replace(disk=disk))
        first, second, *rest = (plain(each) for each in detail_lines(row, frame, (), LOOK, 80))
        assert first.split() == ["bay", "Slot", "07"]
        assert second.split() == ["serial", "WCC7K0F34DA"]
        assert not any(line.split()[:1] in (["bay"], ["serial"]) for line in rest)

    def test_what_is_known_of_a_disk_has_room_for_its_label(self):
        frame = frames.resilver()
        facts = dict.fromkeys(LABELS, "4096")
        said = text(detail_lines(frame.rows[-1], frame, described(facts), LOOK, 80))
        for label in LABELS.values():
            assert f" {label} " in said
        assert "…" not in said

    def test_a_spare_in_trouble_says_why(self):
        frame = frames.resilver()
        spare = frame.rows[-1].vdev._replace(name="sp", vclass="spare", state="UNAVAIL")
        row = frame.rows[-1]._replace(vdev=spare)
        found = SpareProblem("failed", "sp", "spare sp is UNAVAIL")
        said = text(detail_lines(row, replace(frame, spares=(found,)), (), LOOK, 80))
        assert "trouble  spare sp is UNAVAIL" in " ".join(said.split("   "))

    def test_a_device_in_trouble_says_since_when_and_why(self):
        frame = frames.flaky()
        row = next(r for r in frame.rows if r.vdev.name.endswith("F34DA"))
        old = (("SMART", "passed, 0 reallocated, 0 pending, 0 uncorrectable, 90 CRC errors"),)
        said = " ".join(text(detail_lines(row, frame, old, LOOK, 80)).split())
        assert "40 checksum errors in 25m00s; disconnected and returned 2 times in 1 h" in said
        assert "the kernel resets its link" in said
        assert "last 12:05" in said
        assert "SMART passed, 0 reallocated, 0 pending, 0 uncorrectable, 112 CRC" in said
        assert said.count("SMART") == 1, "not as it was when the row was opened"
        other = next(r for r in frame.rows if r.vdev.name.endswith("F9785"))
        assert "trouble" not in text(detail_lines(other, frame, (), LOOK, 80))

    def test_what_lost_a_device_is_degraded_and_not_gone(self):
        frame = frames.resilver()
        for state, word in (
            ("DEGRADED", "degraded"),
            ("OFFLINE", "offline"),
            ("REMOVED", "missing"),
        ):
            row = frame.rows[1]
            row = replace(row, vdev=replace(row.vdev, state=state), missing_since=frame.t - 60)
            assert f"note         {word} since " in text(detail_lines(row, frame, (), LOOK, 80))

    def test_a_path_too_long_for_the_width_goes_on_below(self):
        frame = frames.resilver()
        row = next(r for r in frame.rows if r.vdev.path)
        row = replace(row, vdev=replace(row.vdev, path="/dev/disk/by-id/" + "x" * 80 + "SERIAL"))
        said = text(detail_lines(row, frame, (("devid", "磁" * 60),), LOOK, 60))
        assert "…" not in said
        assert row.vdev.path in "".join(said.split())
        assert "磁" * 60 in "".join(said.split())

    def test_empty_queues_are_said_to_be_empty(self):
        frame = frames.resilver()
        row = frame.rows[-1]
        row = replace(row, vdev=replace(row.vdev, queues={"sync_r": (0, 0)}))
        assert "all empty" in text(detail_lines(row, frame, (), LOOK, 100))


def test_where_a_disk_sits_and_which_it_is_is_said_once():
    frame = frames.resilver()
    row = next(r for r in frame.rows if not r.vdev.children)
    disk = LeafDisk("A1", "0x5001", "Slot 07", "pci-1", "ZC1A", "naa.5", "LAB 2T", 41.0)
    row = replace(row, vdev=replace(row.vdev, disk=disk))
    said = text(detail_lines(row, frame, (("serial", "ZC1A"), ("kind", "flash")), LOOK, 100))
    for wanted in (
        "A1 (Slot 07 of 0x5001)",
        "pci-1",
        "naa.5",
        "LAB 2T",
        "temp         41C",
        "flash",
    ):
        assert wanted in said
    assert said.count("ZC1A") == 1


def test_the_pools_own_row_names_the_datasets_with_the_most_io_and_says_what_is_counted():
    loads = (
        DatasetLoad("tank/vm\x1b[31m", 180 * 2**20, 5e3, 9.0, 9.0),
        DatasetLoad("tank/db", 0.0, 2**20, 9.0, 9.0),
    )
    frame = replace(frames.resilver(), busiest_datasets=loads)
    said = [plain(each).strip() for each in detail_lines(frame.rows[0], frame, (), LOOK, 80)]
    assert said[-3:] == [
        r"busiest      tank/vm\x1b[31m: reads 180M/s, writes 4.88K/s",
        "tank/db: reads 0/s, writes 1M/s",
        "logical I/O of mounted datasets and volumes, ARC hits included",
    ]
    assert "busiest" not in text(detail_lines(frame.rows[1], frame, (), LOOK, 80))
    unknown = replace(frame, busiest_datasets=None)
    assert "logical" not in text(detail_lines(frame.rows[0], unknown, (), LOOK, 80))


def test_the_pools_own_row_says_what_its_volumes_keep_uneven():
    limit = VolumeLimit(12, 18 << 40, 0.36, ("raidz1-0",))
    balance = frames.resilver().balance._replace(volumes=limit)
    frame = replace(frames.resilver(), balance=balance)
    said = " ".join(text(detail_lines(frame.rows[0], frame, (), LOOK, 80)).split())
    assert (
        "volumes 12 volumes hold 18T, which no rebalance moves; moving files leaves a spread of"
        " at least 36.0 %: the volumes on raidz1-0; to move a volume: zfs send and receive, or"
    ) in said
    assert "volumes" not in text(detail_lines(frame.rows[1], frame, (), LOOK, 80))
