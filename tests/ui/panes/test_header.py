"""The header: health, redundancy left, notable problems, age and clock."""

from __future__ import annotations

from tests.factory import frame, noisy_pool
from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.drawn import LOOK, plain
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import Pool, Vdev
from zconsole.ui.panes.header import header_lines
from zconsole.ui.panes.overview import overview_lines
from zconsole.ui.view_state import HeaderStatus

STATUS = HeaderStatus("nas1", (), 1.0, 0.4, frames.NOW)


def header(frame, status=STATUS, width=80, height=24):
    return [plain(line) for line in header_lines(frame, status, LOOK, width, height)]


def roles(lines, needle):
    return {span.role for line in lines for span in line if needle in span.text}


def _without(bare, name):
    """Return the rows of a frame, a device of which is gone."""
    return tuple(
        row._replace(missing_since=frames.NOW) if row.vdev.name == name else row
        for row in bare.rows
    )


class TestHeader:
    @rows(("width", "height", "lines"), [(60, 15, 4), (80, 24, 5), (120, 40, 8)])
    def test_an_alarm_takes_no_more_lines_than_a_calm_pool(self, width, height, lines):
        for name in ("healthy", "resilver", "swap", "suspended", "deserted", "unrestored"):
            assert len(header(frames.ALL[name](), STATUS, width, height)) == lines, name

    @rows(("width", "height"), [(60, 15), (80, 24), (120, 40)])
    @rows(("live", "age", "said"), [(True, 0.4, "<2s"), (True, 9, "9s"), (False, 9, "9s")])
    def test_a_sample_says_its_age(self, width, height, live, age, said):
        status = STATUS._replace(live=live, age=age)
        (first, *_) = header(frames.healthy(), status, width, height)
        assert f" age {said} " in first

    @rows(("width", "height"), [(60, 15), (80, 24), (120, 40)])
    def test_a_sample_of_a_recording_is_not_said_to_be_new(self, width, height):
        status = STATUS._replace(live=False, interval=0.0)
        assert "age" not in header(frames.healthy(), status, width, height)[0]

    def test_where_there_is_one_line_it_says_what_not_to_touch(self):
        *_, last = header(frames.suspended(), STATUS, 60, 15)
        assert last.startswith(" Do not pull any other disk of raidz2-0")

    @rows("disks", [6, 8, 12])
    def test_the_disks_that_must_stay_are_all_told_at_80_columns(self, disks):
        names = [f"ata-WDC_WD40EFRX-68N32N0_WD-WCC7K0F{n:04d}" for n in range(disks + 1)]
        leaves = (Vdev(names[0], "disk", state="REMOVED"), *(Vdev(n, "disk") for n in names[1:]))
        top = Vdev("raidz1-0", "raidz1", state="DEGRADED", children=leaves)
        pool = Pool("tank", "DEGRADED", Vdev("tank", "root", state="DEGRADED", children=(top,)))
        said = "\n".join(header(frame(pool, frames.NOW))[3:])
        assert "more" not in said
        assert all(name[-4:] in said for name in names[1:])

    def test_the_first_word_says_how_it_is(self):
        assert header(frames.healthy())[0].startswith(" OK  backup on nas1")
        assert header(frames.resilver())[0].startswith(" DEGRADED  tank on nas1")

    def test_a_healthy_pool_is_not_colored(self):
        lines = header_lines(frames.healthy(), STATUS, LOOK, 80)
        assert {span.role for line in lines for span in line} <= {"", "bold", "dim"}

    def test_an_online_pool_whose_device_collects_errors_is_marked_with_its_name(self):
        noisy = frame(noisy_pool(), frames.NOW)
        lines = header(noisy)
        assert lines[0].startswith(" ATTENTION  tank on ")
        assert " sda: 12 checksum errors" in lines
        assert roles(header_lines(noisy, STATUS, LOOK, 80), "ATTENTION") == {"badge-warning"}
        (line,) = overview_lines([noisy], LOOK, 200)
        assert plain(line).split()[:2] == ["tank", "ATTENTION"]
        assert plain(line).rstrip().endswith("sda: 12 checksum errors")

    @staticmethod
    def of(*reasons):
        base = frames.unrestored()
        return replace(base, health=base.health._replace(reasons=reasons), redundancy=())

    def test_a_reason_has_the_lines_there_are_before_it_is_cut(self):
        reason = "keep the old disk: " + "it still counts and still reads " * 3 + "as before"
        lines = header(self.of(reason))
        assert " ".join(line.strip() for line in lines[-2:]) == reason

    def test_reasons_left_out_are_counted_with_the_place_that_has_them(self):
        reasons = [f"reason {n} of the three that are told here" for n in range(3)]
        *_, last = header(self.of(*reasons))
        assert last.endswith("+1 more: Enter on the pool's row")

    def test_finished_is_not_safe(self):
        lines = header(frames.unrestored())
        assert lines[0].startswith(" NOT RESTORED  tank")
        assert "replacing-0 still there" in "\n".join(lines)

    def test_which_device_left_and_when_is_told_before_what_is_told_elsewhere(self):
        _, _, _, first, second, *_ = header(frames.deserted(), height=40)
        assert first == " reconnect ata-W…WCC7K0F9785, then clear the pool (A)"
        assert second.startswith(
            " ata-WDC…0_WD-WCC7K0F9785 missing since 12:40 · kernel says SUSPENDED"
        )
        rows = tuple(replace(row, missing_since=frames.NOW) for row in frames.resilver().rows)
        many = replace(frames.suspended(), rows=rows)
        assert "more missing" in "\n".join(header(many, width=240))

    def test_age_interval_flags_and_clock(self):
        status = HeaderStatus("nas1", ("PAUSED",), 5.0, 131.0, frames.NOW)
        first = header(frames.resilver(), status)[0]
        assert "PAUSED" in first
        assert "age 2m11s  every 5s  12:41" in first

    def test_a_late_sample_stands_out(self):
        late = header_lines(frames.resilver(), STATUS._replace(age=9.0), LOOK, 80)
        assert roles(late, "age") == {"warning"}
        never = header_lines(frames.resilver(), STATUS._replace(age=None), LOOK, 80)
        assert roles(never, "never seen") == {"warning"}
        assert roles(header_lines(frames.resilver(), STATUS, LOOK, 80), "age") == {"dim"}

    def test_the_age_is_the_last_to_go_when_narrow(self):
        first = header(frames.resilver(), STATUS, 30)[0]
        assert "age" in first
        assert "every" not in first

    def test_disks_not_to_be_pulled_are_not_told_by_name_beside_others_being_filled(self):
        lines = header(frames.swap())
        said = " ".join(lines[4:]).strip()
        assert said.endswith("Do not pull any other disk of raidz2-0")

    def test_disks_not_to_be_removed_are_told_by_their_bays_and_those_already_out_are_not(self):
        bays = {f"sd{n}": LeafDisk(bay=f"Slot {n}") for n in range(1, 7)}
        disks = (
            Vdev(name, "disk", state="REMOVED" if name == "sd6" else "ONLINE", disk=bay)
            for name, bay in bays.items()
        )
        top = Vdev("raidz1-0", "raidz1", state="DEGRADED", children=tuple(disks))
        pool = Pool("tank", "DEGRADED", Vdev("tank", "root", state="DEGRADED", children=(top,)))
        bare = frame(pool, frames.NOW)
        assert " Do not pull any other disk of raidz1-0: Slots 1-5" in header(bare)
        said = header(replace(bare, rows=_without(bare, "sd2")))
        assert " Do not pull any other disk of raidz1-0: Slots 1, 3-5" in said

    @rows("kind", ["replacing", "spare"])
    def test_disks_being_filled_or_replaced_are_named_with_those_not_to_be_pulled(self, kind):
        """Those not listed seemed free to be pulled: the one still read, and the one filled."""

        def at(slot: int, **fields) -> Vdev:
            return Vdev(f"sd{slot}", "disk", disk=LeafDisk(bay=f"Slot {slot:02d}"), **fields)

        pair = (at(7, resilvering=True), at(12, resilvering=True))
        disks = (
            *(at(slot) for slot in (1, 2, 3)),
            at(4, state="REMOVED"),
            at(5, resilvering=True),
            Vdev(f"{kind}-5", kind, children=pair),
        )
        top = Vdev("raidz2-0", "raidz2", state="DEGRADED", children=disks)
        pool = Pool("tank", "DEGRADED", Vdev("tank", "root", state="DEGRADED", children=(top,)))
        bare = frame(pool, frames.NOW)
        assert " Do not pull any other disk of raidz2-0: Slots 01-03, 05, 07, 12" in header(bare)
        said = header(replace(bare, rows=_without(bare, "sd12")))
        assert " Do not pull any other disk of raidz2-0: Slots 01-03, 05, 07" in said

    def test_a_disk_that_was_removed_is_told_before_one_taken_offline_and_by_its_bay(self):
        disks = (
            Vdev("sda", "disk", state="OFFLINE", disk=LeafDisk(bay="Slot 07")),
            Vdev("sdb", "disk", state="REMOVED", disk=LeafDisk(bay="Slot 08")),
            *(Vdev(f"sd{n}", "disk") for n in "cdef"),
        )
        top = Vdev("raidz2-0", "raidz2", state="DEGRADED", children=disks)
        pool = Pool("tank", "DEGRADED", Vdev("tank", "root", state="DEGRADED", children=(top,)))
        step = "reconnect or change Slot 08 (C)"
        assert f" Slot 08 REMOVED · Slot 07 OFFLINE · {step}" in header(frame(pool, frames.NOW))

    def test_a_pool_that_does_not_answer_says_what_the_kernel_says(self):
        said = "\n".join(header(frames.suspended(), height=40))
        assert "no answer from ZFS within 5s" in said
        assert "kernel says SUSPENDED" in said
        assert "stale: 2m08s old" in said
