"""Activities in the scan pane: trims, copies, checkpoints."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.drawn import LOOK, flat, plain, text
from tests.ui.frames import of_scan
from zconsole.pool.model import Activity
from zconsole.timeline.eta.estimate import Estimate, nothing
from zconsole.timeline.eta.past import Comparison
from zconsole.timeline.frame import SCRUB_HOURS, ActivityView
from zconsole.ui.panes.header import headline
from zconsole.ui.panes.scan import scan_lines
from zconsole.ui.widgets.draw import width_of

SSD = "nvme-Samsung_SSD_980_PRO_2TB_DL11UBLR"
DISCARDING = Activity("checkpoint", "running", start=1.0, total_bytes=11 << 20)


def with_activities(*activities):
    """Return a frame without scans in which the activities have been running for some time."""
    estimate = Estimate(600.0, 500.0, 700.0, "moving at 1M/s")
    views = tuple(ActivityView(a, 1 << 20, estimate) for a in activities)
    return replace(frames.healthy(), scans=(), activities=views)


def test_metadata_being_condensed_is_counted_in_its_own_units():
    running = Activity("condense", "running", "log_spacemap", percent=25.0,
                       note="104/416 metaslabs")  # fmt: skip
    done = replace(running, state="finished", percent=None, note="416 metaslabs")
    said = text(scan_lines(with_activities(running, done), LOOK, 80))
    assert " condense of log_spacemap running   25.0 %" in said
    assert " 104/416 metaslabs" in said
    assert " condense of log_spacemap finished 416 metaslabs" in said


def test_one_that_ended_says_how_much_it_did():
    trim = Activity("trim", "finished", "sda", done_bytes=11 << 20, total_bytes=12 << 20)
    assert text(scan_lines(with_activities(trim), LOOK, 80)).rstrip() == " trim of sda finished 11M"


def test_a_checkpoint_being_discarded_says_what_remains():
    said = text(scan_lines(with_activities(DISCARDING), LOOK, 80))
    assert said.rstrip() == " checkpoint discarding, 11M remaining"


@rows("width", [54, 60, 80])
@rows("name", [SSD, "初期化された記憶装置の長い名前"])
def test_the_name_gives_way_and_never_the_amount(width, name):
    trim = Activity("trim", "running", name, done_bytes=(561 << 30) // 10,
                    total_bytes=(1117 << 30))  # fmt: skip
    for activity in (trim, replace(trim, kind="initialize")):
        first = scan_lines(with_activities(activity), LOOK, width)[0]
        assert width_of(first) <= width
        assert plain(first).rstrip().endswith("56.1G of 1.09T") or width == 54
        assert "56.1G" in plain(first)


def test_every_byte_of_an_amount_is_shown_or_the_total_goes():
    trim = Activity("trim", "running", SSD, done_bytes=10**12, total_bytes=2 * 10**12)
    look = replace(LOOK, unit="exact")
    wide, narrow = (plain(scan_lines(with_activities(trim), look, w)[0]) for w in (80, 54))
    assert wide.rstrip().endswith("1000000000000 of 2000000000000")
    assert narrow.rstrip().endswith("  1000000000000")


def test_activities_without_room_are_counted():
    trims = [Activity("trim", "running", f"sd{n}", done_bytes=1, total_bytes=2) for n in "abcd"]
    lines = scan_lines(with_activities(*trims), LOOK, 80, roomy=True, room=6)
    assert [plain(line).split()[0] for line in lines[:5]] == [
        "trim",
        "ETA",
        "trim",
        "ETA",
        "+2",
    ]
    assert [plain(line) for line in lines[4:]] == [" +2 more", ""]
    assert len(scan_lines(with_activities(*trims), LOOK, 80, roomy=True, room=8)) == 8


def test_devices_at_the_same_work_are_told_together_unless_there_is_room():
    def at(n, eta, **more):
        trim = Activity("trim", "running", f"sd{n}", done_bytes=n << 30, total_bytes=8 << 30)
        estimate = Estimate(eta, None, None, "warming up")
        return ActivityView(replace(trim, **more), (n << 20) * 1.0, estimate)

    views = [at(1, 60.0), at(2, 3600.0), at(3, 20.0), at(4, 30.0, state="paused")]
    frame = replace(frames.healthy(), scans=(), activities=tuple(views))
    said = [plain(line) for line in scan_lines(frame, LOOK, 80)]
    assert said[0].startswith(" trim of 3 devices running   25.0 %")
    assert said[0].rstrip().endswith("6G of 24G")
    assert said[1].startswith(" slowest ETA 1h00m")
    assert said[1].endswith("at 6M/s   last sd2")
    assert said[2].startswith(" trim of sd4 paused")
    each = [plain(line) for line in scan_lines(frame, LOOK, 80, roomy=True)]
    assert [line.split()[2] for line in each if "trim" in line] == ["sd1", "sd2", "sd3", "sd4"]
    two = replace(frame, activities=tuple(views[:2]))
    assert "devices" not in text(scan_lines(two, LOOK, 80))


def test_where_one_of_them_has_no_estimate_the_last_has_none():
    names = [(60.0, "sda"), (None, "sdb"), (20.0, "sdc")]
    views = [
        ActivityView(
            Activity("initialize", "running", name, done_bytes=1, total_bytes=2),
            None,
            Estimate(eta, None, None, "warming up"),
        )
        for eta, name in names
    ]
    frame = replace(frames.healthy(), scans=(), activities=tuple(views))
    assert "slowest ETA not known yet: warming up" in text(scan_lines(frame, LOOK, 80))


def test_what_zpool_says_of_a_copy_is_told_as_of_a_scan():
    removal = Activity("removal", "running", "mirror-1", done_bytes=1 << 30,
                       total_bytes=1 << 40, zpool_eta=3720.0)  # fmt: skip
    assert "zpool says 1h02m" in text(scan_lines(with_activities(removal), LOOK, 80))


def test_a_bar_too_short_to_tell_anything_is_left_out():
    trim = Activity("trim", "running", vdev="ata-Samsung_SSD_870_EVO_1TB_UYFMMYT8",
                    start=1.0, done_bytes=94 << 30, total_bytes=559 << 30)  # fmt: skip
    (line, *_) = scan_lines(with_activities(trim), LOOK, 80)
    assert "16.8 %" in plain(line)
    assert not {"▏", "·"} & set(plain(line))
    (line, *_) = scan_lines(with_activities(trim), LOOK, 120)
    assert "·" in plain(line)


def kept_to_hours(note: str, **fields: object):
    """Return the frame of a scrub that is kept to hours, with other fields of its view."""
    hours = ActivityView(Activity(SCRUB_HOURS, "22:00-06:00", note=note))
    return replace(of_scan(**fields), activities=(hours,))


def test_an_eta_that_includes_the_pauses_between_hours_says_so():
    """ "ETA 1d04h  ends Wed 02:14" of a scrub with six hours of work left, and no word why."""
    said = "the ETA includes the pauses"
    for width, counted in ((80, True), (60, True), (80, False)):
        running = kept_to_hours("running until 06:00", working=7200.0 if counted else None)
        assert (said in flat(text(scan_lines(running, LOOK, width)))) == counted


@rows("counted", [True, False])
def test_a_comparison_beside_an_eta_of_hours_is_said_to_be_in_running_time(counted):
    """ "ETA 2d00h" stood beside "last scrub 12h06m, this one 2h41m ahead"."""
    past = Comparison("scrub", 43560.0, 9660.0, "scrub")
    kept = kept_to_hours("", comparison=past, working=7200.0 if counted else None)
    said = "last scrub 12h06m, this one 2h41m ahead"
    shown = text(scan_lines(kept, LOOK, 200))
    assert said in shown
    assert (f"{said} in running time" in shown) is counted


def test_a_scrub_that_is_paused_says_when_it_goes_on():
    scan = frames.resilver().scans[0].scan._replace(function="scrub", state="paused")
    paused = kept_to_hours("paused until 22:00", scan=scan, estimate=nothing("paused"))
    assert "ETA none" in plain(headline(paused, LOOK, 80, 2)[0])
    assert "paused until 22:00" in plain(headline(paused, LOOK, 80, 2)[1])
