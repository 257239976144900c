"""The text of the panes about a frame."""

from __future__ import annotations

import re

import pytest

from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.drawn import LOOK, flat, plain, text
from tests.ui.fakes import FakeFeed, view_state
from tests.ui.frames import of_scan
from tests.ui.panes.test_activities import with_activities
from tests.worlds import world_of
from zconsole.diagnosis.bottleneck.finding import NOTHING_TO_DO, Suggestion
from zconsole.pool.model import Activity, Scan
from zconsole.sim.scenarios import names
from zconsole.timeline.eta.estimate import Estimate, nothing
from zconsole.timeline.eta.past import Comparison
from zconsole.timeline.frame import AUTOPILOT, ActivityView
from zconsole.timeline.scan_rate import Mark, PastRates
from zconsole.timeline.session import Session
from zconsole.tunables.hold_latency import LEVERS
from zconsole.ui.panes.header import header_lines
from zconsole.ui.panes.reasons import suggested
from zconsole.ui.panes.scan import graphed_scan, scan_lines
from zconsole.ui.view_state import HeaderStatus

SCRUBBED = Scan("scrub", "finished", end=frames.NOW - 86_400, duration=51_120.0,
                processed_bytes=6_196_000, errors=3)  # fmt: skip


SCAN = frames.resilver().scans[0].scan


def limited(**fields):
    """Return the resilver with other fields of its limit."""
    base = frames.resilver()
    return replace(base, limit=replace(base.limit, **fields))


@pytest.mark.slow
def test_no_advice_of_any_scenario_is_cut_before_its_command():
    """At 80 columns a low screen has one line for it, and "small, …" is no advice."""
    told = set()
    for scenario in set(names()) - {"thousand"}:  # that takes half a minute
        world, session = world_of(scenario), Session()
        for t in range(0, 70, 5):
            world.advance(float(t))
            shown = session.advance(world.raws())
        for frame in shown:
            if (advice := suggested(frame)) is None:
                continue
            told.add(scenario)
            for low in (True, False):
                drawn = flat(text(scan_lines(frame, LOOK, 80, compact=low)))
                said = drawn[drawn.index(" try ") :].partition(" new errors ")[0]
                act = LOOK.said(advice._replace(words="{act}").text) if advice.act else "try"
                assert act in said, (scenario, said)
                assert low or "…" not in said, (scenario, said)
    assert len(told) > 8


class TestScan:
    def test_several_restarts_are_counted_and_the_newest_is_named(self):
        """At 80x24 an ETA stood beside "restarted 12:17 after …", and it was the third time."""
        times = [frames.NOW - 6000, frames.NOW - 4500, frames.NOW - 1800]
        past = PastRates(marks=tuple(Mark(t, "restart") for t in times))
        notes = [f"restarted {LOOK.when(t, frames.NOW)} after bay03 returned" for t in times[::-1]]
        short = Estimate(800.0, 700.0, 900.0, "")
        again = of_scan(notes=tuple(notes), restarts=3, past=past, estimate=short)
        first, second, last = (LOOK.when(t, frames.NOW) for t in times)
        for form in ({"compact": True}, {}, {"roomy": True}):
            for width in (80, 120):
                said = text(scan_lines(again, LOOK, width, **form))
                assert f"restarted 3 times since {first}   last {last} after bay03" in said
                assert f"{second} after" not in said
        whole = text(scan_lines(again, LOOK, 120, roomy=True, whole=True))
        assert all(f"restarted {at} after bay03" in whole for at in (first, second))

    @rows(
        ("ago", "eta", "ends"),
        [
            ((6000, 4500, 1800), 10800.0, False),
            ((6000, 4500, 1800), 800.0, True),  # 2600 s in all, and it ran for 2700 s before
            ((6000, 4500, 1800), None, True),  # not known
            ((9000, 7500, 4800), 10800.0, True),  # the restarts seem to have stopped
            ((4500, 1800), 10800.0, False),
        ],
    )
    @rows("width", [60, 80, 120])
    def test_a_scan_that_restarts_before_it_can_end_says_so_first(self, ago, eta, ends, width):
        """Its ETA of 3 h stood above "restarted 3 times since 11:07", every 40 minutes."""
        times = [frames.NOW - each for each in ago]
        past = PastRates(marks=tuple(Mark(t, "restart") for t in times))
        estimate = Estimate(eta, None, None, "")
        again = of_scan(notes=(), restarts=len(ago), past=past, estimate=estimate)
        said = text(scan_lines(again, LOOK, width, compact=width < 80))
        assert ("can't end: restarts about every " in said) is not ends
        assert ("restarted 3 times since" in said) is ends
        if not ends:
            since = f"({len(ago)} times since {LOOK.when(times[0], frames.NOW)})"
            assert f"about every {'35m' if len(ago) > 2 else '45m'} {since}" in said

    def test_restarts_from_before_the_known_past_are_counted(self):
        again = of_scan(notes=("restarted 11:32",), restarts=2, past=PastRates())
        assert "restarted 2 times   last 11:32" in text(scan_lines(again, LOOK, 80, compact=True))

    def test_scanning_has_two_bars_and_says_when_redundancy_is_full(self):
        said = text(scan_lines(frames.swap(), LOOK, 80, compact=True))
        assert "resilvering      3.1 %" in said
        assert "finding blocks  25.0 %" in said
        assert "full redundancy 1d01h" in said
        assert "rate  " not in said

    def test_a_scan_paused_while_metadata_is_walked_keeps_its_bar(self):
        base = frames.swap()
        views = [v._replace(stage=None, scan=replace(v.scan, state="paused")) for v in base.scans]
        said = text(scan_lines(replace(base, scans=tuple(views)), LOOK, 60, compact=True))
        assert "PAUSED           3.1 %" in said
        assert "finding blocks  25.0 %" in said

    @rows(("width", "form"), [(60, {"compact": True}), (80, {})])
    @rows(
        "words",
        [
            "rate rose 4m10s ago; ETA 6h48m if it holds",
            "ETA by the rate since tunables changed 8m00s ago",
        ],
    )
    def test_what_an_eta_does_after_the_rate_changed_is_told_in_the_lines_there_are(
        self, width, form, words
    ):
        lines = scan_lines(of_scan(lag=words, notes=()), LOOK, width, **form)
        assert words in text(lines)
        assert len(lines) == len(scan_lines(frames.resilver(), LOOK, width, **form))

    def test_a_thorough_scrub_is_called_one(self):
        scrub = replace(SCAN, function="scrub", thorough=True)
        assert " thorough scrub checking " in text(scan_lines(of_scan(scan=scrub), LOOK, 80))

    def test_what_does_not_fit_at_all_is_shown_as_far_as_it_goes(self):
        base = frames.rebuilds()
        lines = scan_lines(base, LOOK, 80, room=2)
        assert "rebuild of draid2" in plain(lines[0])
        assert plain(lines[1]) == f" +{len(base.scans) + len(base.activities) - 1} more"

    def test_an_error_scrub_has_no_amounts_and_no_rate(self):
        scan = Scan("errorscrub", "running", percent=40.0, two_stage=False)
        found = of_scan(
            scan=scan, key="scan:errorscrub:", percent=40.0, issue_rate=None, scan_rate=None
        )
        lines = scan_lines(found, LOOK, 120)
        assert "error scrub" in plain(lines[0])
        assert "40.0 %" in plain(lines[0])
        assert " of " not in plain(lines[0])
        assert not [line for line in lines if plain(line).startswith(" rate")]

    def test_a_rebuild_walks_no_metadata(self):
        base = frames.rebuilds()
        base = replace(base, scans=tuple(replace(v, stage="scanning") for v in base.scans))
        said = text(scan_lines(base, LOOK, 100))
        assert "scanned at 2G/s" in said
        assert "metadata" not in said

    def test_long_names_give_way_to_the_figures_where_it_is_narrow(self):
        base = frames.rebuilds()
        trim = replace(
            base.activities[0],
            activity=Activity("trim", "running", "ata-Samsung_SSD_870_EVO_1TB_UYFMMYT8",
                              done_bytes=1 << 30, total_bytes=1 << 34),
        )  # fmt: skip
        base = replace(base, activities=(trim,))
        for line in map(plain, scan_lines(base, LOOK, 60, compact=True)):
            assert len(line) <= 60
            assert "…" not in line[-8:]
        said = text(scan_lines(base, LOOK, 60, compact=True))
        assert "rebuild of dra…" in said
        assert "UYFMMYT8 running" in said
        assert "1G of 16G" in said

    def test_a_past_scan_leaves_out_what_was_repaired_where_it_is_narrow(self):
        scan = replace(frames.healthy().scans[0], scan=SCRUBBED)
        said = text(scan_lines(replace(frames.healthy(), scans=(scan,)), LOOK, 60))
        assert said.rstrip() == " scrub finished yesterday 12:41, after 14h12m, errors 3"

    @rows(("roomy", "most"), [(False, 2), (True, 4)])
    def test_a_suggestion_ends_with_a_whole_clause(self, roomy, most):
        clauses = "; ".join(f"do number {n} of the many things that can be done" for n in range(9))
        long = limited(suggestion=Suggestion(clauses))
        said = [plain(line) for line in scan_lines(long, LOOK, 80, roomy=roomy)]
        first = next(n for n, line in enumerate(said) if line.startswith(" try "))
        told = " ".join(" ".join(said[first : first + most]).split())
        assert told.endswith("that can be done; …")
        assert "new errors" not in "".join(said)
        whole = " ".join(text(scan_lines(long, LOOK, 80, roomy=True, whole=True)).split())
        assert f"try {clauses}" in whole

    @rows("form", [{}, {"compact": True}, {"roomy": True, "graph": 6}])
    @rows("width", [60, 80, 120, 200])
    def test_what_may_come_has_its_lines(self, form, width):
        """The same scan takes as many lines whatever is known or reported about it."""
        base = frames.resilver()
        view = base.scans[0]
        told = replace(base, troubles=frames.flaky().troubles * 3, tunables=frames.flaky().tunables)
        bare = view._replace(notes=(), restarts=None, past=PastRates(), issue_rate=None)
        stopped = view._replace(stalled=600.0, notes=("restarted 12:03",) * 8)
        walking = view._replace(stage="scanning", full=Estimate(9e4, 8e4, 1e5, "two wait; long"))
        long = base.limit._replace(
            text="word " * 60, suggestion=Suggestion("; ".join(["do it"] * 60))
        )
        frame_of = (
            base,
            told,
            replace(base, limit=None, ceiling=None, troubles=()),
            replace(told, limit=long),
            replace(base, limit=long),
            *(replace(told, scans=(v,)) for v in (bare, stopped, walking)),
            replace(base, problem="no answer", stale_seconds=9.0),
        )
        counts = {len(scan_lines(each, LOOK, width, **form)) for each in frame_of}
        assert len(counts) == 1

    def test_a_long_name_in_a_limit_gives_way_to_its_figures(self):
        name = frames.resilver().rows[-1].vdev.name
        text_of = f"{name} is slow: 97 % busy, siblings 40 %"
        long = limited(text=text_of)
        assert "7K02B5AF is slow: 97 % busy, siblings 40 %" in text(scan_lines(long, LOOK, 80))
        assert text_of in text(scan_lines(long, LOOK, 120))

    def test_a_long_limit_has_the_lines_of_what_has_nothing_to_say(self):
        base = replace(frames.resilver(), troubles=())
        long = base.limit._replace(
            text="the new disk sda: 90 % busy" * 4 + "; at last", suggestion=NOTHING_TO_DO
        )
        lines = scan_lines(replace(base, limit=long), LOOK, 80)
        assert "at last" in text(lines)
        assert len(lines) == len(scan_lines(base, LOOK, 80))
        told = replace(
            base, limit=long._replace(suggestion=Suggestion("x")), troubles=frames.flaky().troubles
        )
        assert "at last" not in text(scan_lines(told, LOOK, 80))
        assert "at last" in text(scan_lines(told, LOOK, 80, whole=True))

    @rows("troubles", [(), frames.flaky().troubles])
    def test_a_suggestion_keeps_its_row_whatever_the_limit(self, troubles):
        """A live resilver moved it down and up again as the limit was described in more words."""
        rows = set()
        for words in ("sda is slow", "the new disk sda: 90 % busy" * 4 + "; at last"):
            found = replace(
                limited(text=words, suggestion=Suggestion("check sda")), troubles=troubles
            )
            lines = text(scan_lines(found, LOOK, 80)).splitlines()
            rows.add(next(n for n, line in enumerate(lines) if "check sda" in line))
        assert len(rows) == 1

    def test_a_paused_scan_waits_for_nothing(self):
        paused = of_scan(scan=replace(SCAN, state="paused"))
        for found, waits in ((paused, False), (frames.resilver(), True)):
            said = text(scan_lines(replace(found, limit=None), LOOK, 80))
            assert ("not known yet" in said) == waits

    def test_a_limit_that_is_not_sure_is_called_so(self):
        assert "slowed by   perhaps WCC7K0F34DA" in text(scan_lines(limited(sure=0.2), LOOK, 140))

    def test_a_pool_that_was_never_reached_is_not_said_to_have_had_no_scan(self):
        unseen = replace(frames.healthy(), rows=(), scans=(), problem="refused", stale_seconds=None)
        assert "not sampled yet" in text(scan_lines(unseen, LOOK, 80))

    def test_only_the_worst_trouble_is_told_where_room_is_scarce(self):
        found = frames.flaky().troubles[0]
        many = replace(frames.flaky(), troubles=(found,) * 5)
        assert text(scan_lines(many, LOOK, 80)).count("new errors") == 1
        assert text(scan_lines(many, LOOK, 200, roomy=True)).count("new errors") == 2
        assert text(scan_lines(many, LOOK, 200, roomy=True, whole=True)).count("new errors") == 5

    def test_how_it_goes_against_the_last_one_is_told_at_every_size_once(self):
        base = frames.resilver()
        against = Comparison("resilver", 33_120.0, 2_400.0, "resilver")
        estimate = base.scans[0].estimate._replace(reason=f"{against.words}; resilvering at 124M/s")
        first = base.scans[0]._replace(comparison=against, estimate=estimate, notes=())
        seen = replace(base, scans=(first, *base.scans[1:]))
        for shape in ({}, {"compact": True}):
            said = text(scan_lines(seen, LOOK, 80, **shape))
            assert said.count("last resilver 9h12m, this one 40m00s ahead") == 1
        roomy = text(scan_lines(seen, LOOK, 120, roomy=True))
        assert f"based on    {against.words}; resilvering at" in roomy
        assert roomy.count("last resilver") == 1

    def test_what_an_estimate_rests_on_is_told_where_there_is_room(self):
        base = frames.resilver()
        first = Estimate(
            600.0, 500.0, 700.0, "resilvering at 124M/s over 5m00s, zpool averages 98M/s"
        )
        full = Estimate(9000.0, 8000.0, 9900.0, "1 device waits for another full pass, 2h20m")
        seen = replace(base, scans=(replace(base.scans[0], estimate=first, full=full),))
        wide = text(scan_lines(seen, LOOK, 120, roomy=True))
        assert f"based on    {first.reason}; {full.reason}" in wide
        narrow = text(scan_lines(seen, LOOK, 80, roomy=True))
        assert f"based on    {first.reason}; …" in narrow
        assert "based on" not in text(scan_lines(seen, LOOK, 80))

    def test_the_load_of_the_machine_is_told_where_there_is_room(self):
        said = text(scan_lines(frames.resilver(), LOOK, 80, roomy=True))
        assert "machine     processor 10 %, memory 8G of 16G used" in said
        assert "machine" not in text(scan_lines(frames.resilver(), LOOK, 80))
        assert "machine" not in text(scan_lines(frames.suspended(), LOOK, 80, roomy=True))

    def test_paused_and_stalled_are_said(self):
        paused = of_scan(scan=replace(SCAN, state="paused", paused_since=frames.NOW))
        assert "PAUSED" in text(scan_lines(paused, LOOK, 80))
        stalled = of_scan(stalled=600.0)
        assert "STALLED: no progress for 10m00s" in text(scan_lines(stalled, LOOK, 80))

    def test_beyond_a_hundred_percent_is_shown_as_printed(self):
        beyond = of_scan(percent=134.0, estimate=nothing("beyond 100 %"))
        assert "134.0 %" in text(scan_lines(beyond, LOOK, 80))
        lines = header_lines(beyond, HeaderStatus("nas1", (), 1.0, 0.4, frames.NOW), LOOK, 80)
        assert plain(lines[2]).startswith(" beyond 100 %")


def test_a_suggestion_names_the_key_of_the_console():
    for found, said in (
        (Suggestion("{act} (now 2)", "set", "zfs_x", 8), "press T, set zfs_x=8 (now 2)"),
        (Suggestion("{act}", "raise", "zfs_x"), "raise zfs_x (T)"),
        (Suggestion("{act}", "restore", "zfs_x"), "press T, then U"),
        (
            Suggestion("less load, or {act}: as allowed", "hold"),
            "less load, or limit application latency (T, then V): as allowed",
        ),
    ):
        assert f"try         {said}" in text(scan_lines(limited(suggestion=found), LOOK, 140))


@rows("name", LEVERS)
def test_nothing_is_suggested_to_set_that_a_running_autopilot_sets(name):
    shown = limited(cause="scan-reads", suggestion=Suggestion("{act}", "set", name, 9))
    assert f"set {name}=9" in text(scan_lines(shown, LOOK, 120))
    held = ActivityView(Activity(AUTOPILOT, "holds 20ms"), None, nothing(""))
    said = text(scan_lines(replace(shown, activities=(held,)), LOOK, 120))
    assert "autopilot holds 20ms" in said
    assert name not in said


@rows("name", LEVERS)
def test_a_limit_that_a_running_autopilot_sets_is_said_to_be_its(name):
    """ "a tunable: … is 1 (default 3)" reads as if somebody had set it wrong."""
    text_of_rule = f"a tunable: {name} is 1 (default 3), disks at most 40 % busy"
    shown = limited(text=text_of_rule, suggestion=Suggestion("{act}", "release", name, 3))
    assert f"slowed by   a tunable: {name}" in text(scan_lines(shown, LOOK, 120))
    held = ActivityView(Activity(AUTOPILOT, "holds 20ms"), None, nothing(""))
    shown = replace(shown, activities=(held,))
    assert f"slowed by   the autopilot: {name} is 1" in text(scan_lines(shown, LOOK, 120))
    assert "slowed by   the autopilot: " in text(scan_lines(shown, LOOK, 60, compact=True))


class TestLow:
    """Screens with room for only two lines of advice."""

    @staticmethod
    def last(frame):
        lines = scan_lines(frame, LOOK, 60, compact=True)[-2:]
        return [plain(line).strip().partition(" ")[0] for line in lines]

    def test_they_are_there_with_nothing_to_say(self):
        lines = len(scan_lines(frames.flaky(), LOOK, 60, compact=True))
        calm = replace(frames.flaky(), troubles=(), limit=None)
        assert len(scan_lines(calm, LOOK, 60, compact=True)) == lines
        assert self.last(frames.healthy())[-1] == ""


@rows(
    ("advice", "kept"),
    [
        (
            "reduce the load, or raise zfs_resilver_min_time_ms to 6000 (now 3000, slows "
            "applications)",
            "reduce the load, or raise zfs_resilver_min_time_ms to 6000 …",
        ),
        ("check the first disk, now; it has 3 errors (and a long story of " + "x" * 60 + ")",
         "check the first disk, now; it has 3 errors …"),
    ],
)  # fmt: skip
def test_advice_that_is_too_long_loses_its_aside_before_what_to_do(advice, kept):
    shown = replace(limited(suggestion=Suggestion(advice)), troubles=frames.flaky().troubles)
    assert kept in text(scan_lines(shown, LOOK, 80))


LONG = (
    "the new disk is busy at 97 % (its writes, not its reads), its siblings at 40 %, for 12 minutes"
)


@rows("width", range(54, 120, 3))
def test_a_limit_that_is_too_long_ends_with_a_whole_phrase(width):
    shown = replace(
        limited(text=f"{LONG}; latency 61ms", suggestion=NOTHING_TO_DO, sure=1.0),
        troubles=frames.flaky().troubles,
    )
    lines = [plain(line).rstrip() for line in scan_lines(shown, LOOK, width)]
    first = next(n for n, line in enumerate(lines) if line.startswith(" slowed by"))
    said = " ".join(line.strip() for line in lines[first : first + 2]).removeprefix("slowed by")
    said = said.strip().partition("  ")[0]
    assert said.endswith(("…", "61ms"))
    kept = said.removesuffix("…").rstrip(" ;,")
    assert f"{LONG}; latency 61ms".startswith(kept)
    assert f"{LONG}; latency 61ms"[len(kept) :][:1] in (";", ",", "")
    assert kept.count("(") == kept.count(")")


def span(screen):
    """Return the time span at the end of the graph's only row."""
    row = next(line for line in screen.splitlines() if line.startswith(" rate "))
    return re.search(r"(last \S+|(to )?\S+ ago|\S+ to \S+)$", row.strip())[0]


async def test_keys_go_through_the_time_of_the_scan_and_its_beginning_is_told():
    async with view_state(frames.resilver(), notifications=True) as (app, pilot, screen):
        await pilot.press("left", "pageup", "home")  # of the list
        assert span(screen()) == "last 40m32s"
        app.main_screen.scan.focus()
        for keys, shown in (
            ("left", "to 4m16s ago"),
            ("end pageup", "to 20m16s ago"),
            ("pageup pagedown", "to 20m16s ago"),
            ("end", "last 40m32s"),
            ("home escape", "last 40m32s"),
            ("pageup pagedown right", "last 40m32s"),
            ("home", "5h33m-4h53m ago"),
        ):
            await pilot.press(*keys.split())
            await pilot.pause()
            assert span(screen()) == shown, keys
            assert "no older history" not in screen()
        await pilot.press("left", "pageup")
        await pilot.pause()
        assert span(screen()) == "5h33m-4h53m ago"
        assert "no older history" in screen()


async def test_a_time_gone_back_to_stays_while_samples_come():
    feed = FakeFeed((frames.resilver(),))
    async with view_state(feed=feed) as (app, pilot, screen):
        app.main_screen.scan.focus()
        await pilot.press("pageup")
        past = frames.resilver().scans[0].past
        feed.put(of_scan(past=past._replace(rates=(*past.rates, 1.0, 1.0))))
        await pilot.pause()
        assert span(screen()) == "to 20m16s ago"


async def test_a_scan_that_ended_shows_now_when_the_next_one_runs():
    feed = FakeFeed((frames.resilver(),))
    async with view_state(feed=feed) as (app, pilot, screen):
        app.main_screen.scan.focus()
        await pilot.press("pageup")
        feed.put(frames.unrestored())
        await pilot.pause()
        past = frames.resilver().scans[0].past
        feed.put(of_scan(past=past._replace(begin=past.begin + 7 * 3600)))
        await pilot.pause()
        assert span(screen()) == "last 40m32s"


async def test_the_past_of_a_scan_that_ended_is_drawn_where_rows_are_free():
    async with view_state(frames.unrestored(), size=(120, 50)) as (_, _, screen):
        assert sum("⣿⣿" in line for line in screen().splitlines()) == 4


def test_a_scan_that_ended_before_a_rate_was_known_has_no_empty_graph():
    over = replace(frames.resilver().scans[0], scan=Scan("resilver", "finished"))
    for rates in ((None,), (None, 0.0), ()):
        unknown = over._replace(past=PastRates(1.0, 1.0, rates))
        assert graphed_scan(replace(frames.resilver(), scans=(unknown,))) is None
    assert graphed_scan(replace(frames.resilver(), scans=(over,))) is over


async def test_the_past_of_a_scan_that_ended_is_in_its_pane_zoomed_and_can_be_scrolled():
    async with view_state(frames.unrestored()) as (app, pilot, screen):
        assert "⣿⣿" not in screen()
        app.main_screen.scan.focus()
        await pilot.press("z")
        await pilot.pause()
        drawn = [line for line in screen().splitlines() if "⣿⣿" in line]
        assert len(drawn) > 10
        axis = next(line for line in screen().splitlines() if "0 ┴" in line)
        assert not axis.endswith("now")
        await pilot.press("pageup")
        await pilot.pause()
        assert next(line for line in screen().splitlines() if "0 ┴" in line) != axis
        await pilot.press("end")
        await pilot.pause()
        assert next(line for line in screen().splitlines() if "0 ┴" in line) == axis


async def test_a_scan_of_which_no_rate_is_known_has_no_graph_once_it_is_over():
    async with view_state(frames.healthy(), size=(120, 50)) as (app, pilot, screen):
        app.main_screen.scan.focus()
        await pilot.press("z")
        await pilot.pause()
        assert "┤" not in screen()


async def test_without_a_graph_pages_are_those_of_the_lines():
    work = (
        Activity("trim", "running", f"disk{n:02}", done_bytes=n, total_bytes=99) for n in range(40)
    )
    async with view_state(with_activities(*work), size=(80, 24)) as (app, pilot, screen):
        app.main_screen.scan.focus()
        await pilot.press("z")
        for key, shown, gone in (
            ("pagedown", "disk14", "disk01"),
            ("end", "disk39", "disk14"),
            ("pageup", "disk25", "disk39"),
            ("home", "disk01", "disk39"),
        ):
            await pilot.press(key)
            await pilot.pause()
            assert shown in screen(), key
            assert gone not in screen(), key


async def test_the_first_line_shows_the_focus():
    async with view_state(frames.resilver()) as (app, pilot, _):
        scan = app.main_screen.scan
        assert {s.role for s in scan._at(0, 0)[0] if "resilver " in s.text} == {"title"}
        await pilot.press("tab")
        assert {s.role for s in scan._at(0, 0)[0] if "resilver " in s.text} == {"focus"}


async def test_a_tall_screen_draws_several_rows_and_a_zoomed_scan_more():
    async with view_state(frames.resilver(), size=(120, 40)) as (app, pilot, screen):
        assert sum("⣿⣿" in line for line in screen().splitlines()) == 4
        app.main_screen.scan.focus()
        await pilot.press("z")
        await pilot.pause()
        assert sum("⣿⣿" in line for line in screen().splitlines()) > 10
