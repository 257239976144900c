"""Several pools on the console: switching, pools that come and go, the overview."""

from __future__ import annotations

from datetime import UTC
from itertools import takewhile

import pytest
from textual import events

from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.drawn import LOOK, plain
from tests.ui.fakes import FakeFeed, until, view_state
from zconsole.pool.health import Health
from zconsole.pool.model import Activity
from zconsole.pool.redundancy import Redundancy
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.frame import ActivityView
from zconsole.timeline.scrubs import ScrubAge
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.overview import by_trouble, overview_head, overview_lines, tab_line
from zconsole.ui.widgets.draw import width_of


async def test_pools_by_bracket_and_from_the_overview():
    made = (frames.resilver(), frames.healthy(), frames.imbalance())
    async with view_state(*made) as (app, pilot, screen):
        await pilot.press("right_square_bracket")
        assert " OK  backup" in screen()
        await pilot.press("left_square_bracket", "left_square_bracket")
        assert " OK  media" in screen()
        await pilot.press("o")
        assert isinstance(app.screen, PickScreen)
        await pilot.press("g", "enter")
        await pilot.pause()
        assert " DEGRADED  tank" in screen()
        await pilot.press("o", "G", "enter")
        await pilot.pause()
        assert " OK  media" in screen()


async def test_a_pool_that_is_imported_later_does_not_take_the_screen():
    feed = FakeFeed((frames.resilver(),))
    async with view_state(feed=feed) as (_, pilot, screen):
        assert " DEGRADED  tank" in screen()
        feed.put(frames.healthy(), frames.resilver())
        await pilot.pause()
        assert "backup OK" in screen()
        assert " DEGRADED  tank" in screen()


async def test_a_machine_that_answers_at_last_keeps_its_place():
    waiting = [replace(frames.healthy(), pool=name) for name in ("a", "b")]
    feed = FakeFeed(waiting)
    async with view_state(feed=feed) as (app, pilot, screen):
        await pilot.press("right_square_bracket", "o")
        feed.put(waiting[0], replace(frames.healthy(), pool="b:vault"))
        await pilot.pause()
        assert app.screen.view.cursor == 1
        await pilot.press("escape")
        await pilot.pause()
        assert " OK  b:vault" in screen()


@rows(("seconds", "shown"), [(100.0, "STALE 1m40s"), (None, "STALE  ")])
def test_a_stale_pool_says_its_age_where_it_is_listed(seconds, shown):
    health = Health("STALE", "warning", ("no answer",))
    stale = replace(frames.healthy(), health=health, problem="no answer", stale_seconds=seconds)
    for width in (60, 80, 200):
        (row,) = overview_lines([stale], LOOK, width)
        assert shown in plain(row)


def exported(frame, seconds):
    health = Health("NOT IMPORTED", "warning", ("not imported any more", "last seen 2m00s ago"))
    return replace(frame, absent=True, stale_seconds=seconds, health=health, problem="gone")


async def test_a_pool_that_was_exported_leaves_the_list_after_a_while_unless_it_is_on_show():
    tank, backup, media = frames.resilver(), frames.healthy(), frames.imbalance()
    feed = FakeFeed((backup, media, tank))
    async with view_state(feed=feed) as (_, pilot, screen):
        feed.put(exported(backup, 90.0), exported(media, 30.0), tank)
        await pilot.pause()
        assert " NOT IMPORTED  backup" in screen()
        assert "media NOT IMPORTED" in screen()
        await pilot.press("left_square_bracket")
        silent = replace(tank, stale_seconds=900.0, problem="no answer")
        feed.put(exported(backup, 90.0), exported(media, 90.0), silent)
        await until(pilot, lambda: "backup" not in screen())
        assert "media" not in screen()
        assert " DEGRADED  tank" in screen()
        feed.put(backup, tank)
        await until(pilot, lambda: "backup OK" in screen())
        assert " DEGRADED  tank" in screen()


async def test_an_exported_pool_that_was_asked_for_stays():
    tank, backup = frames.resilver(), frames.healthy()
    async with view_state(tank, exported(backup, 900.0), pools=("tank", "backup")) as (
        _,
        _,
        screen,
    ):
        assert "backup NOT IMPORTED" in screen()


def test_a_pool_is_as_full_as_it_says_itself():
    healthy = frames.healthy()
    root = replace(healthy.root, size_bytes=1000, alloc_bytes=130)
    line = plain(overview_lines((replace(healthy, root=root),), LOOK, 80)[0])
    assert " 13 %" in line


def listed(said):
    """Return the names in the overview, from the top."""
    lines = takewhile(str.strip, said.splitlines()[1:])
    return [line.strip(" ›").split()[0] for line in lines]


async def test_the_worst_pool_is_first_and_the_cursor_stays_on_its_pool():
    tank, backup = frames.resilver(), frames.healthy()
    feed = FakeFeed((backup, replace(frames.unrestored(), pool="old"), tank))
    async with view_state(feed=feed) as (_, pilot, screen):
        await pilot.press("o")
        assert listed(screen()) == ["old", "tank", "backup"]
        await pilot.press("G", "up")
        feed.put(backup, replace(frames.healthy(), pool="old"), tank)
        await until(pilot, lambda: listed(screen()) == ["tank", "backup", "old"])
        await pilot.press("enter")
        await until(pilot, lambda: " DEGRADED  tank" in screen())


@rows("width", [60, 80, 100, 120, 160, 200])
def test_every_row_fits_under_its_headings_at_every_width(width):
    made = by_trouble(tuple(make() for make in frames.ALL.values()))
    look = DisplayFormat(zone=UTC)
    lines = overview_lines(made, look, width)
    head = "".join(span.text for span in overview_head(made, look, width))
    assert all(width_of(line) <= width for line in lines)
    for title in ("POOL", "STATE", "REDUNDANCY", "DONE", "ETA"):
        assert title in head
    at = head.index("ETA") + 3
    etas = ["".join(span.text for span in line)[:at].split()[-1] for line in lines]
    assert "17h52m" in etas
    assert ("RATE" in head) == (width >= 120)


@rows(("width", "cells"), [(60, 0), (80, 5), (120, 12), (200, 12)])
def test_state_redundancy_work_eta_sparkline_and_fill_are_there_at_every_width(width, cells):
    (line,) = overview_lines((frames.resilver(),), LOOK, width)
    said = plain(line)
    assert said.split()[:3] == ["tank", "DEGRADED", "1"]
    assert "38.2 %" in said
    assert "17h52m" in said
    assert said.split("17h52m")[1].count(" %") == 1  # the fill
    assert ("resilver" in said) == (width >= 80)
    assert sum(len(span.text) for span in line if span.role == "spark") == cells


@rows("width", range(80, 140))
def test_the_redundancy_is_not_read_as_a_number_of_the_work(width):
    """With one blank in between, "1 resilver" looked like one fact."""
    (line,) = overview_lines((frames.resilver(),), LOOK, width)
    assert " 1  resilver " in plain(line)


def test_a_longer_name_takes_the_cells_of_the_work_first():
    (line,) = overview_lines((replace(frames.resilver(), pool="tank-of-the-lab"),), LOOK, 80)
    assert "tank-of-the-lab" in plain(line)
    assert "resilver" not in plain(line)
    assert {"spark", "track"} <= {span.role for span in line}
    assert "…" not in plain(line)


def test_pools_of_several_hosts_keep_what_tells_them_apart():
    made = tuple(replace(frames.healthy(), pool=f"nas{n}.example.com:tank") for n in (1, 2))
    said = ["".join(s.text for s in line) for line in overview_lines(made, DisplayFormat(), 100)]
    assert "nas1.example.com:tank" in said[0]
    assert "nas2.example.com:tank" in said[1]
    narrow = ["".join(s.text for s in line) for line in overview_lines(made, DisplayFormat(), 60)]
    assert narrow[0].split()[0] != narrow[1].split()[0]


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (200, 50)])
async def test_the_reasons_of_the_pool_at_the_cursor_are_shown_in_full(size):
    reasons = ("first reason of a pool that is degraded", "second reason, which tells the rest")
    sick = replace(frames.resilver(), health=Health("DEGRADED", "warning", reasons))
    async with view_state(sick, frames.healthy(), size=size) as (_, pilot, screen):
        await pilot.press("o", "g")
        await pilot.pause()
        said = " ".join(screen().split())
        assert all(reason in said for reason in reasons)


def test_an_overdue_scrub_is_a_reason_to_look_at_a_healthy_pool():
    late = ScrubAge(1.0, 41 * 86400.0, overdue=True)
    pools = [replace(frames.healthy(), scrub=late), frames.healthy()]
    first, second = map(plain, overview_lines(pools, LOOK, 140))
    assert first.rstrip().endswith("last scrub 41 days ago")
    assert "scrub" not in second


def many():
    tank, backup = frames.resilver(), frames.healthy()
    return replace(backup, pool="alpha"), replace(frames.imbalance(), pool="media"), tank


async def test_the_overview_is_sorted_and_says_by_what_and_the_cursor_stays_on_its_pool():
    async with view_state(*many()) as (_, pilot, screen):
        await pilot.press("o")
        assert listed(screen()) == ["tank", "alpha", "media"]
        assert "▾" not in screen()
        for title, order in (
            ("POOL▾", ["alpha", "media", "tank"]),
            ("FILL▾", ["tank", "media", "alpha"]),
            ("ETA▾", ["tank", "alpha", "media"]),
            ("POOL ", ["tank", "alpha", "media"]),
        ):
            await pilot.press("s")
            assert title in screen().splitlines()[0]
            assert listed(screen()) == order, title
        assert "s sort" in screen().splitlines()[-1]
        await pilot.press("G", "s", "enter")
        await until(pilot, lambda: " OK  media" in screen())


async def test_the_overview_is_filtered_as_it_is_typed():
    async with view_state(*many()) as (app, pilot, screen):
        await pilot.press("o", "slash", *"MED")
        assert listed(screen()) == ["media"]
        assert "F1 help" in screen().splitlines()[-1]
        await pilot.press("enter")
        assert "POOL /MED" in screen().splitlines()[0]
        await pilot.press("slash", "backspace", "enter")
        assert "POOL /ME" in screen().splitlines()[0]
        await pilot.press("escape")
        assert listed(screen()) == ["tank", "alpha", "media"]
        await pilot.press("slash", *"degraded", "enter", "enter")
        await until(pilot, lambda: " DEGRADED  tank" in screen())
        await pilot.press("o", "slash", *"zzz")
        assert "nothing matches" in screen()
        await pilot.press("enter", "enter", "y")
        assert "nothing to copy here" in screen()
        await pilot.press("escape")
        assert listed(screen()) == ["tank", "alpha", "media"]
        await pilot.press("escape")
        assert app.main_on_top


async def test_a_filter_that_comes_in_one_packet_acts_on_no_pool():
    async with view_state(*many()) as (app, pilot, screen):
        for name in ("o", "slash", *"sq"):
            app.post_message(events.Key(name, "/" if name == "slash" else name))
        await until(pilot, lambda: "nothing matches" in screen())
        assert isinstance(app.screen, PickScreen)


def test_a_pool_that_scans_comes_before_an_idle_one_of_the_same_health():
    idle = replace(frames.healthy(), pool="scratch", redundancy=(Redundancy("sdx", 0, ()),))
    busy = replace(frames.resilver(), pool="tank", health=idle.health)
    assert [frame.pool for frame in by_trouble((idle, busy))] == ["tank", "scratch"]


class TestSeveralPools:
    def test_the_current_tab_stays_in_sight(self):
        many = [replace(frames.healthy(), pool=f"pool-{i:02}") for i in range(30)]
        assert "pool-29" in plain(tab_line(many, 29, LOOK, 80))
        assert "pool-00" in plain(tab_line(many, 0, LOOK, 80))

    def test_overview_shows_a_job_where_no_scan_runs(self):
        job = Activity("rebalance", "running", percent=25.0)
        view = ActivityView(job, 50e6, Estimate(3600.0, None, None, ""))
        made = [replace(f, activities=(view,)) for f in (frames.healthy(), frames.resilver())]
        idle, scanned = (plain(line) for line in overview_lines(made, LOOK, 80))
        assert "rebalance █▎···  25.0 %  1h00m" in idle
        assert "resilver " in scanned
