"""The headline: cells that keep their places, whatever is known."""

from __future__ import annotations

import math
import re
from functools import cache

from tests.factory import view
from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.drawn import LOOK, plain, text
from tests.ui.frames import of_scan
from zconsole.pool.model import Activity, ErrorCounters, Scan
from zconsole.pool.redundancy import Redundancy
from zconsole.pool.scan_outcome import BY_SPARE, KEEP_OLD
from zconsole.timeline.eta.estimate import Estimate, nothing
from zconsole.timeline.frame import ActivityView, Frame
from zconsole.timeline.scan_rate import PastRates
from zconsole.timeline.scrubs import ScrubAge
from zconsole.ui.panes.header import header_lines, headline
from zconsole.ui.panes.scan import scan_lines
from zconsole.ui.view_state import HeaderStatus
from zconsole.ui.widgets.draw import width_of
from zconsole.ui.widgets.graph import ASCII

STATUS = HeaderStatus("nas1", (), 1.0, 0.4, frames.NOW)
DAY = 86400.0
SIZES = ((60, 15), (80, 24), (120, 40), (200, 50))


def said(frame, width=80, rows=2, look=LOOK):
    return [plain(line) for line in headline(frame, look, width, rows)]


def role_of(frame, needle, width=80):
    return {s.role for line in headline(frame, LOOK, width, 2) for s in line if needle in s.text}


def test_an_idle_pool_tells_of_its_last_scan_and_its_fill():
    first, second = said(frames.healthy())
    assert first.startswith(" LAST SCRUB 16 Nov 12:41 ")
    assert "FILL 33.3 %" in first
    assert second.startswith(" no errors  took 4h12m ")
    assert "all vdevs: 1 disk" in second
    none = replace(frames.healthy(), scans=())
    assert said(none)[0].startswith(" LAST SCAN none recorded")
    unknown = replace(none, scans_known=False)
    assert said(unknown)[0].startswith(" LAST SCAN unknown")
    assert " scan unknown" in text(scan_lines(unknown, LOOK, 80))
    pool = replace(none.sample.pool, root=none.root._replace(alloc_bytes=None))
    assert "FILL unknown" in said(replace(none, sample=replace(none.sample, pool=pool)))[0]


def test_a_rate_over_the_pass_is_not_read_as_the_best():
    assert "over this pass" in said(of_scan(window=None), rows=3)[2]


def test_errors_of_the_last_scan_stand_out_and_a_canceled_one_is_called_so():
    assert role_of(frames.unrestored(), "2 errors") == {"error"}
    base = frames.unrestored()
    scan = replace(base.scans[0].scan, state="canceled", errors=0)
    view = base.scans[0]._replace(scan=scan, percent=0.7)
    first, row = said(replace(base, scans=(view,)))
    assert first.startswith(" RESILVER CANCELED ")
    assert role_of(replace(base, scans=(view,)), "CANCELED") == {"warning"}
    assert row.startswith(" at 0.7 %  after 5h23m  ")
    assert "no errors" not in row
    bad = view._replace(scan=replace(scan, errors=2))
    assert role_of(replace(base, scans=(bad,)), "2 errors") == {"error"}


CANCELED = Scan("scrub", "canceled", start=frames.NOW - 9000, end=frames.NOW - 3600, errors=0)


def idle(scan: Scan, scrub: ScrubAge) -> Frame:
    """Return an idle pool whose newest scan is this one."""
    return replace(frames.healthy(), scans=(view(scan, percent=43.0),), scrub=scrub)


@rows("width", [60, 80, 100])
def test_after_a_canceled_scrub_the_last_full_one_stays_in_sight(width):
    first, second = said(idle(CANCELED, ScrubAge(1.0, 12.7 * DAY, overdue=False)), width)
    assert first.startswith(" SCRUB CANCELED 11:41")
    full = "full " * (width >= 80)
    assert second.startswith(f" last {full}scrub 12 days ago ")


@rows("width", [80, 90, 99, 100, 160])
def test_what_a_canceled_scrub_took_is_not_read_as_the_time_of_the_last_full_one(width):
    """``last scrub 4 days ago  ran 51s`` was."""
    short = replace(CANCELED, end=CANCELED.start + 51)
    rows = 3 if width >= 100 else 2
    shown = said(idle(short, ScrubAge(1.0, 4 * DAY, overdue=False)), width, rows=rows)
    (about,) = (row for row in shown if "scrub 4 days ago" in row)
    assert "last full scrub" in about
    assert "51s" not in about


@rows("width", [60, 80, 100])
@rows("scan", [CANCELED, frames.healthy().scans[0].scan])
def test_an_overdue_scrub_stands_out_whatever_ended_last(scan, width):
    late = idle(scan, ScrubAge(scan.end, 41 * DAY, overdue=True))
    shown = " last scrub 41 days ago, overdue " if width >= 80 else " last scrub 41 days ago "
    assert said(late, width)[1].startswith(shown)
    assert role_of(late, "last scrub") == {"warning"}


def test_a_scrub_in_time_is_told_once():
    done = frames.healthy().scans[0].scan
    shown = said(idle(done, ScrubAge(done.end, 2 * DAY, overdue=False)))
    assert shown[1].startswith(" no errors  took 4h12m ")


def test_a_pool_never_scrubbed_is_called_so():
    never = replace(frames.healthy(), scans=(), scrub=ScrubAge(never=True))
    assert said(never, 60)[1].startswith(" never scrubbed ")
    late = replace(never, scrub=ScrubAge(age=412 * DAY, overdue=True, never=True))
    assert said(late, 60)[1].startswith(" no scrub in 412 days ")
    assert role_of(late, "no scrub") == {"warning"}


def test_a_finished_repair_says_that_redundancy_is_restored():
    done = frames.unrestored().scans[0]
    view = done._replace(scan=replace(done.scan, errors=0))
    whole = replace(frames.healthy(), scans=(view,), over_since=frames.NOW - 60)
    assert "redundancy restored" in said(whole)[1]
    assert role_of(whole, "restored") == {"good"}
    assert "restored" not in said(frames.unrestored())[1]


@rows(("growth", "way"), [(1.0, "▲"), (-0.5, "▼"), (0.01, "=")])
def test_the_rate_says_where_it_goes(growth, way):
    past = PastRates(0.0, 1.0, (10.0,) * 300 + (10.0 * (1 + growth),) * 300)
    assert f"RATE 124M/s {way} " in said(of_scan(past=past))[0]
    ascii_way = {"▲": "^", "▼": "v"}.get(way, way)
    assert f"124M/s {ascii_way} " in said(of_scan(past=past), look=replace(LOOK, glyphs=ASCII))[0]


def test_what_is_not_known_is_said_in_its_cell():
    unknown = replace(
        of_scan(estimate=Estimate(None, None, None, "no estimate yet: 1 sample"), issue_rate=None),
        redundancy=(),
        ceiling=None,
    )
    first, second = said(unknown)
    assert first.startswith(" ETA not known yet ")
    assert "RATE - " in first
    assert second.startswith(" no estimate yet: 1 sample ")
    assert "best unknown" in second
    assert "unknown  " in second


@rows(
    ("zpool", "beside"),
    [(41.0, " zpool says 41s "), (None, " 2 samples ")],
)
def test_while_it_is_measured_the_figure_of_zpool_is_shown(zpool, beside):
    young = Estimate(None, None, None, "measuring, 2 samples")
    view = frames.resilver().scans[0]
    first, second = said(of_scan(estimate=young, scan=view.scan._replace(zpool_eta=zpool)))
    assert first.startswith(" ETA measuring ")
    assert second.startswith(beside)


def test_the_best_rate_is_told_also_where_no_share_of_it_is_reached():
    ceiling = frames.resilver().ceiling._replace(share=None)
    assert " best seen 410M/s " in said(replace(frames.resilver(), ceiling=ceiling), 90)[1]


def test_of_a_reason_without_room_whole_clauses_are_told():
    why = "still finding blocks, nothing issued yet"
    scanning = of_scan(estimate=Estimate(None, None, None, why))
    assert said(scanning)[1].startswith(" still finding blocks  ")
    assert why in said(scanning, 120)[1]


@rows("width", [60, 80])
def test_how_long_the_last_scan_took_stands_below_an_eta_that_is_not_known(width):
    reason = "last scrub took 9h02m; finding blocks, nothing issued yet"
    first, second = said(of_scan(estimate=nothing(reason)), width)
    assert first.startswith(" ETA not known yet ")
    assert second.startswith(" last scrub took 9h02m ")


def test_of_a_paused_scan_no_eta_will_come():
    assert said(of_scan(estimate=nothing("paused")))[0].startswith(" ETA none ")


def test_nothing_moves_in_a_suspended_pool_whatever_was_measured_before():
    for frame in (frames.suspended(), replace(frames.suspended(), failure=None)):
        for width, _ in SIZES:
            shown = "\n".join(said(frame, width, 3))
            assert "ETA none" in shown
            assert "17h52m" not in shown
            assert "124M/s" not in shown
    live = replace(frames.suspended(), failure=None)
    assert "suspended: nothing moves" in said(live)[1]
    assert said(live, 60)[1].startswith(" nothing moves ")


def test_a_failed_disk_does_not_stand_beside_a_bare_0():
    """Its errors are older than the console: 0 in the last hour looked like none at all."""
    frame = replace(frames.flaky(), troubles=())
    every = sum(row.vdev.errors.total for row in frame.rows if not row.vdev.children)
    assert said(frame)[1].rstrip().endswith(f"  0, {every} old")
    assert said(frame, 60)[1].endswith("  0 new")
    assert said(frame, 120, 3)[1].rstrip().endswith("0 in 1 h")


@rows(("minutes", "span"), [(0, "<1m"), (12, "12m"), (59, "59m")])
def test_errors_name_the_time_watched_if_that_is_less_than_an_hour(minutes, span):
    some = replace(frames.flaky(), minutes_watched=minutes)
    for frame, new in ((some, 43), (replace(some, troubles=()), 0)):
        assert said(frame)[1].rstrip().endswith(f"  {new} in {span}")
        assert said(frame, 60)[0].endswith(f"  ERR{span}")
        assert said(frame, 78)[0].endswith(f"  ERR {span}")
    many = replace(some, troubles=some.troubles * 100)
    assert said(many)[1].rstrip().endswith("  4300")


def test_the_headline_and_the_scan_name_the_same_time_without_errors():
    frame = replace(frames.resilver(), minutes_watched=37)
    (row,) = (line for line in scan_lines(frame, LOOK, 140) if "new errors" in plain(line))
    assert plain(row).split("none ")[1].strip() == "since 12:04"
    assert said(frame, 140)[1].rstrip().endswith("  0 since 12:04")


def test_the_vdev_that_is_worst_off_is_told_and_how_the_others_are():
    left = (Redundancy("raidz2-0", 2), Redundancy("raidz2-1", 0), Redundancy("raidz2-2", 1))
    pool = replace(frames.resilver(), redundancy=left)
    assert "raidz2-1: NONE" in said(pool)[1]
    assert role_of(pool, "NONE") == {"error"}
    assert "others: 1 disk or more" in said(pool, 120, 3)[2]
    calm = replace(frames.healthy(), redundancy=(Redundancy("sda", 0),))
    assert "sda: none" in said(calm)[1]
    assert role_of(calm, "sda") == {""}


def test_after_a_repair_that_is_not_complete_redundancy_is_said_to_hang_on_the_old_disk():
    base = frames.unrestored()
    frame = replace(base, health=base.health._replace(reasons=(KEEP_OLD,)))
    assert " 1 with old disk " in said(frame)[1]
    assert " raidz2-0: 1 with old disk " in said(frame, 200)[1]
    assert "old disk" not in "".join(said(base, 200))


def test_redundancy_that_is_full_by_a_spare_says_so_beside_not_restored():
    """Users saw NOT RESTORED next to "raidz2-0: 2 disks"; "2 with a spare" looked like a loss."""
    base = frames.unrestored()
    frame = replace(base, health=base.health._replace(reasons=(BY_SPARE,)))
    whole = replace(frame, redundancy=(Redundancy("raidz2-0", 2),))
    assert " raidz2-0: 2 left, spare used " in said(whole, 200)[1]
    assert " 2 left, spare used " in said(whole)[1]
    other = (Redundancy("raidz2-0", 2), Redundancy("raidz2-1", 1))
    assert "spare" not in "".join(said(replace(frame, redundancy=other), 200))


def test_a_removal_has_the_cells_where_no_scan_runs_and_a_trim_has_not():
    def at_work(kind):
        activity = Activity(kind, "running", "mirror-2", done_bytes=1, total_bytes=1 << 40)
        view = ActivityView(activity, float(200 << 20), Estimate(2600, 2000, 3000, "copying"))
        return said(replace(frames.healthy(), activities=(view,)))

    first, second = at_work("removal")
    assert first.startswith(" ETA 43m20s  ends 13:24 ")
    assert "RATE 200M/s " in first
    assert second.startswith(" removal of mirror-2 ")
    assert at_work("trim")[0].startswith(" LAST SCRUB")


@rows("size", SIZES)
@rows("look", [LOOK, replace(LOOK, unit="exact")])
def test_no_cell_moves_while_values_come_and_go(size, look):
    gone = Estimate(None, None, None, "a reason that is longer than any cell has room for, really")
    shown = (
        frames.resilver(),
        frames.flaky(),
        of_scan(estimate=gone, issue_rate=None, past=PastRates()),
        of_scan(estimate=Estimate(9e6, 8e6, 9e7, ""), issue_rate=1e12),
        replace(frames.resilver(), ceiling=None, redundancy=(), problem="no answer"),
        replace(frames.resilver(), redundancy=(Redundancy("draid2:4d:11c:1s-0" * 3, 1),)),
    )
    columns = set()
    for frame in shown:
        lines = header_lines(frame, STATUS, look, *size)
        assert {width_of(line) for line in lines[1:3]} == {width_of(lines[1])}
        row = next(plain(line) for line in lines if "ETA" in plain(line))
        redundancy = "REDUNDANCY LEFT"[: 15 if size[0] >= 80 else 10]
        columns.add((len(lines), *(row.index(w) for w in ("ETA", "RATE", redundancy, "ERR"))))
    assert len(columns) == 1


def test_a_frame_holds_the_cells_where_it_is_tall_and_wide():
    lines = [plain(line) for line in header_lines(frames.resilver(), STATUS, LOOK, 120, 40)]
    assert lines[0].startswith("╭─ tank on nas1 ─")
    assert lines[0].endswith("─  age <2s  every 1s  12:41 ─╮")
    assert lines[1].startswith("│ DEGRADED         ETA 17h52m  ends tomorrow 06:33 ")
    assert lines[-1] == f"╰{'─' * 118}╯"
    assert {len(line) for line in lines} == {120}
    for size in ((99, 40), (120, 37)):
        assert plain(header_lines(frames.resilver(), STATUS, LOOK, *size)[0]).startswith(
            " DEGRADED"
        )


def test_the_estimate_of_a_removal_is_called_stale_where_the_pool_does_not_answer():
    activity = Activity("removal", "running", "mirror-2", done_bytes=1, total_bytes=1 << 40)
    view = ActivityView(activity, float(200 << 20), Estimate(2600, 2000, 3000, "copying"))
    gone = replace(frames.healthy(), activities=(view,), problem="no answer", stale_seconds=125.0)
    assert said(gone)[1].startswith(" stale: 2m05s old ")
    assert said(gone, 120, 3)[2].startswith(" removal of mirror-2 ")


@rows("unit", ["binary", "decimal", "exact"])
@rows("rate", [math.inf, math.nan])
def test_a_rate_that_is_not_finite_is_unknown(rate, unit):
    shown = said(of_scan(issue_rate=rate), look=replace(LOOK, unit=unit))[0]
    assert "RATE - " in shown


def test_errors_say_their_hour_on_a_small_screen_too():
    label, value = said(frames.flaky(), 60)
    assert label.endswith("  ERR 1h")
    assert value.endswith("  43 new")
    many = replace(frames.flaky(), troubles=frames.flaky().troubles * 1000)
    assert said(many, 60)[1].endswith("   43K")
    assert said(many)[1].rstrip().endswith("  43K in 1h")


@rows("width", [54, 57, 59])
def test_the_last_cell_is_whole_on_a_narrow_screen(width):
    for look in (LOOK, replace(LOOK, unit="exact")):
        label, value = said(frames.resilver(), width, look=look)
        assert len(label) == len(value) == width
        assert value.endswith("   0 new")
        assert "ETA 17h52m  " in label


@rows(
    ("errors", "width", "told"),
    [
        (3, 80, "0, 3 old"),
        (637, 80, "0, 637 old"),
        (43_000, 80, "0, 43K old"),
        (12_345_678, 80, "0, 12M old"),
        (3, 60, "0 new"),
        (637, 60, "0 new"),
    ],
)
def test_errors_of_before_are_not_taken_for_new_ones(errors, width, told):
    """Both "0 of 637" and "637" alone were read as new errors."""
    base = frames.healthy()
    at, row = next((n, row) for n, row in enumerate(base.rows) if not row.vdev.children)
    worn = row._replace(vdev=row.vdev._replace(errors=ErrorCounters(errors, 0, 0)))
    frame = replace(base, rows=(*base.rows[:at], worn, *base.rows[at + 1 :]))
    assert said(frame, width)[1].rstrip().endswith(f"  {told}")


@cache
def crowded():
    """Return frames whose cells have more text than room."""
    return tuple(_crowded())


def _crowded():
    yield from (made() for made in frames.ALL.values())
    yield of_scan(estimate=Estimate(9e6, 8e6, 9e7, ""), issue_rate=1023 * 2.0**20)
    yield of_scan(estimate=nothing("last scrub took 9h02m; finding blocks"))
    both = (Redundancy("raidz2-10", 2), Redundancy("raidz2-11", 2))
    yield replace(frames.flaky(), redundancy=both, troubles=frames.flaky().troubles * 99)
    base = frames.unrestored()
    for state in ("finished", "canceled"):
        ended = replace(base.scans[0].scan, state=state, end=frames.NOW - DAY)
        yield replace(base, scans=(base.scans[0]._replace(scan=ended, percent=99.9),))
    for reason in (BY_SPARE, KEEP_OLD):
        held = replace(base, health=base.health._replace(reasons=(reason,)))
        yield replace(held, redundancy=both[:1])
    late = ScrubAge(age=412 * DAY, overdue=True, never=True)
    yield replace(frames.healthy(), scans=(), scrub=late)


@rows("width", [*range(54, 120, 3), 140, 160, 180, 200])
@rows("unit", ["binary", "exact"])
def test_cells_are_shortened_by_worth_not_cut_and_parted_by_two_blanks(width, unit):
    """With only one blank in between, "best seen 403M/s raidz2-0" was read as one fact."""
    for frame in crowded():
        rows = said(frame, width, 2 + (width >= 80), replace(LOOK, unit=unit))
        starts = [rows[0].index(word) for word in ("REDUNDANCY", "ERR 1h" if width < 80 else "NEW")]
        starts.append(min(at for word in ("RATE", "FILL") if (at := rows[0].find(word)) > 0))
        for row in rows:
            assert {row[at - 2 : at] for at in starts} == {"  "}, rows
            assert width < 60 or unit == "exact" or not re.search(r"…(  |$)", row), row


@rows("width", [*range(60, 120, 3), 140, 160, 180, 200])
def test_labels_are_whole_and_apart_at_every_width(width):
    labels = said(frames.resilver(), width)[0]
    assert re.search(r"REDUNDANCY( LEFT)? {2,}(NEW ERRORS|ERR 1h)", labels)
