"""Text of the rebalance screens, at any width, for any job and plan, and the keys of a job."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.records import replace
from tests.table import rows
from tests.ui.drawn import plain, text
from tests.ui.rebalance.samples import JOB, ODD, PLAN, shown
from zconsole.rebalance.backend import REPLACED, Counted, JobView
from zconsole.rebalance.planning.settings import EVEN
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.rebalance.job_screen import KEYS, job_lines, job_rows, job_title, possible_actions
from zconsole.ui.rebalance.job_watch import reason
from zconsole.ui.rebalance.plan_screen import counting_lines
from zconsole.ui.widgets.draw import width_of
from zconsole.ui.widgets.graph import ASCII, UNICODE


def said(
    job: JobView,
    *,
    width: int = 100,
    now: float = 0.0,
    spreads: Mapping[str, float | None] | None = None,
) -> str:
    """Return the text of a job."""
    return text(job_lines(job, now, spreads or {}, DisplayFormat(), width))


@rows("look", [DisplayFormat(UNICODE), DisplayFormat(ASCII)])
@rows("width", [54, 60, 80, 200])
def test_lines_keep_to_the_width_and_hold_nothing_a_terminal_acts_on(width, look):
    for lines in (
        job_lines(JOB, 0.0, {"raidz1-0": 0.9, "raidz1-1": None}, look, width),
        job_rows((JOB, replace(JOB, state="dead", bytes_total=None)), look, width),
        shown(PLAN, "not root", look, width),
        counting_lines(Counted(5, 10, ODD), 12.0, look, width),
    ):
        assert all(width_of(line) <= width for line in lines), text(lines)
        assert "\x1b" not in text(lines)
        assert look.glyphs is UNICODE or text(lines).isascii()


@rows("width", [80, 100])
def test_the_list_of_jobs_tells_the_end_of_a_directory_beside_the_eta(width):
    dirs = ("/storage/media/films",)
    job = replace(JOB, settings=replace(JOB.settings, dirs=dirs), eta_seconds=75_720.0)
    row = plain(job_rows((job,), DisplayFormat(), width)[1])
    assert "ETA 21h02m  /stora" in row
    assert row.rstrip().endswith("films")


def test_a_job_tells_everything_there_is():
    told = said(JOB, spreads={"raidz1-0": 0.83, "raidz1-1": 0.2})
    for words in (
        "running      25.0 %",
        "1G of 4G",
        "ETA 1h00m",
        "7 of 40 files moved, 12 skipped, 1 failed",
        "rate limit 4.77M/s",
        "stop at a spread of 5 % (even)",
        "Vdevs: spread 93.0 % at the start, 63.0 % now",
        "-10.0",
        "+20.0",
        "Skipped 12: 9 changed, 3 open for writing",
        "Failed 1: No space left on device",
        "skipped: /tank/b/log: open for writing",
        "and 11 more",
        "2026-11-20",
        "new snapshot of tank/\\x1b",
    ):
        assert words in told, words


def test_files_that_another_job_moved_are_counted_apart():
    job = replace(JOB, skipped={REPLACED: 1000, "changed": 2}, files_skipped=1002)
    job = replace(job, files_done=1020, files_total=2000)
    told = said(job, width=120)
    assert "17 of 2,000 files moved, 1,000 need no move, 2 skipped, 1 failed" in told
    assert "Need no move 1,000: replaced since the walk" in told
    assert "Skipped 2: changed" in told
    assert "and 1 more; y copies the command that lists more" in told
    finished = replace(job, state="finished", skipped={REPLACED: 1000})
    assert "tries skipped files" not in said(finished, width=120)


@rows(("handled", "stays"), [(1, True), (4, False)])
def test_a_job_that_ended_at_its_target_tells_how_much_it_did_not_touch(handled, stays):
    size = handled << 30
    job = replace(JOB, state="finished", bytes_handled=size, bytes_goal=size, why="target")
    assert ("Stays where it is: 3G of 4G logical" in said(job)) == stays


@rows("state", ["running", "paused", "stopped", "finished"])
@rows("width", [60, 80, 100])
def test_that_only_a_new_job_tries_skipped_files_again_is_told_from_the_first_on(state, width):
    """Only the finished job said it: until then they seemed to be tried again."""
    again = "Only a new job tries skipped files again; it also moves all others again"
    said = text(job_lines(replace(JOB, state=state), 0.0, {}, DisplayFormat(), width))
    assert again in " ".join(said.split())
    changed = "Changed: others wrote, replaced or removed them meanwhile"
    assert (changed in " ".join(said.split())) == ("changed" in JOB.skipped)
    immutable = replace(JOB, state=state, skipped={"immutable or append-only": 2})
    assert "others wrote" not in text(job_lines(immutable, 0.0, {}, DisplayFormat(), width))
    none = replace(JOB, state=state, skipped={})
    assert "skipped files" not in text(job_lines(none, 0.0, {}, DisplayFormat(), width))


def test_names_that_the_walk_left_out_are_none_of_the_files_that_were_done():
    job = replace(JOB, files_skipped=9, files_failed=1)
    assert "10 of 40 files moved, 12 skipped" in said(job, width=120)


def test_a_job_that_has_ended_says_when_and_how_long_after_its_beginning():
    ended = replace(JOB, state="finished", began=86_400.0, t=86_400.0 + 5400)
    told = said(ended, now=100_000.0)
    assert f"Ended {DisplayFormat().when(91_800.0, 100_000.0)}, 1h30m after it began" in told
    assert "Ended" not in said(JOB, now=100_000.0)


def test_a_job_with_a_goal_is_measured_by_it():
    job = replace(JOB, bytes_goal=2 << 30)
    assert "50.0 %" in said(job)
    assert "1G of 2G" in said(job)


def test_a_change_is_that_of_the_figures_beside_it():
    job = replace(JOB, before={"raidz1-0": 0.00345, "raidz1-1": 0.5})
    told = said(job, spreads={"raidz1-0": 0.0036, "raidz1-1": 0.5})
    assert "0.4 %  was   0.3 %   +0.1" in told


def test_nothing_is_less_than_nothing():
    told = said(JOB, spreads={"raidz1-0": 0.92999, "raidz1-1": -1e-9})
    assert "-0.0" not in told


def test_a_job_that_was_told_to_stop_is_not_said_to_be_stopped_by_stop():
    stopped = replace(JOB, state="stopped", why="stop")
    assert reason(stopped) == ""
    assert "  stop  " not in plain(job_rows((stopped,), DisplayFormat(), 120)[1])
    said = [plain(line).strip() for line in job_lines(stopped, 0.0, {}, DisplayFormat(), 80)]
    assert "stop" not in said
    assert reason(replace(stopped, why="the free-space floor")) == "the free-space floor"


@rows(
    ("state", "why", "first"),
    [
        ("paused", "paused", "paused"),
        ("stopped", "stop", "stopped"),
        ("stopped", "terminated", "interrupted"),
        ("dead", None, "interrupted"),
    ],
)
def test_a_job_that_does_not_run_says_so_once_and_what_is_left_and_how_to_go_on(state, why, first):
    job = replace(JOB, state=state, why=why)
    for width in (60, 80):
        lines = [plain(line).strip() for line in job_lines(job, 0.0, {}, DisplayFormat(), width)]
        told = " ".join(lines)
        assert "3G logical in 20 files left. P resumes the job." in told
        assert told.startswith(first)
        assert told.lower().count(first) == 1
    told = said(JOB, width=80)
    assert "left. P" not in told
    assert "\n\n" not in told


def test_large_numbers_of_files_are_grouped():
    job = replace(JOB, files_done=347_306, files_total=955_000, skipped={"changed": 1_231})
    job = replace(job, files_skipped=1_231)
    told = said(job)
    assert "346,074 of 955,000 files moved, 1,231 skipped, 1 failed" in told


def test_the_files_of_a_day_are_those_that_moved_as_in_the_line_above():
    day = {"day": "2026-11-20", "moved_bytes": 5, "files_done": 347_306, "files_skipped": 1_231}
    job = replace(JOB, files_done=347_306, files_total=955_000, skipped={"changed": 1_231})
    job = replace(job, files_skipped=1_231)
    job = replace(job, failed={}, files_failed=0, days=(day,))
    told = said(job).splitlines()
    assert "346,075 of 955,000 files moved" in "".join(told)
    assert any(line.split()[:1] == ["2026-11-20"] and " 346,075 " in line for line in told)


@rows("state", ["paused", "waiting"])
def test_a_job_that_moves_nothing_now_names_no_file_rate_or_end(state):
    job = replace(JOB, state=state, rate=None, eta_seconds=None, current="/tank/b/log")
    told = said(job)
    assert not {word for word in (" now ", "ETA none", "\n at ") if word in told.split("Vdevs")[0]}


def test_a_job_tells_the_spread_it_stops_at_as_the_options_and_the_plan_do():
    even = replace(JOB, limits=replace(JOB.limits, until_spread=EVEN))
    told = said(even)
    assert "stop at a spread of 5 % (even)" in told


def test_a_job_without_a_target_says_that_it_does_all_files_until_it_has_ended():
    """ "all files move" stood beside skipped files; "no early stop" beside the key to stop."""
    endless = replace(JOB, limits=replace(JOB.limits, until_spread=None))
    told = said(endless, width=80)
    assert "until all files are done" in told
    assert "spread of none" not in told
    ended = replace(endless, state="finished", t=5.0)
    assert "until" not in said(ended, width=80, now=10.0)


@rows(
    ("goal", "moved", "left"), [(None, "7 of 40 files", " in 20 files"), (3 << 30, "7 files", "")]
)
def test_files_are_counted_against_all_only_if_the_bytes_are(goal, moved, left):
    job = replace(JOB, bytes_goal=goal)
    assert f"{moved} moved, 12 skipped" in said(job)
    told = said(replace(job, state="stopped"))
    assert f"G logical{left} left." in told


TWO_DAYS = (
    {"day": "2026-11-27", "moved_bytes": 40 << 40, "files_done": 900, "files_skipped": 90},
    {"day": "2026-11-28", "moved_bytes": 42 << 40, "files_done": 960, "files_skipped": 100},
)


@rows(
    ("skipped", "failed", "goal", "shown", "why"),
    [
        ({"changed": 1704}, {}, None, "99.9 %", "1,704 skipped"),
        ({"changed": 7}, {"I/O error": 1}, None, "99.9 %", "7 skipped, 1 failed"),
        ({}, {"I/O error": 1}, None, "99.9 %", "1 failed"),
        ({REPLACED: 3}, {}, None, "100.0 %", ""),
        ({}, {}, None, "100.0 %", ""),
        ({"changed": 1}, {}, 1 << 30, "100.0 %", ""),
    ],
)
def test_a_job_that_left_files_out_is_not_at_100_percent(skipped, failed, goal, shown, why):
    """It stood above "387,241 of 387,499 files moved, 258 skipped"; alone it seemed unfinished."""
    handled = JOB.bytes_total if goal is None else goal
    job = replace(JOB, state="finished", skipped=skipped, failed=failed, bytes_goal=goal)
    job = replace(job, bytes_handled=handled)
    line = said(job).splitlines()[0]
    assert f"finished    {shown:>7} " in line
    row = plain(job_rows((job,), DisplayFormat(), 120)[1])
    for each in (line, row):
        assert re.findall(r"[\d,]+ skipped, \d failed|[\d,]+ (?:skipped|failed)", each) == [
            why
        ] * bool(why)


@rows(("state", "shown"), [("running", "74.9 %"), ("paused", "74.9 %"), ("finished", "75.0 %")])
def test_the_day_that_goes_on_has_the_spread_of_now_as_the_line_above_it(state, shown):
    day = {"day": "2026-11-27", "spread": 0.75}
    told = said(
        replace(JOB, state=state, days=(day,)), spreads={"raidz1-0": 0.949, "raidz1-1": 0.2}
    )
    assert ", 74.9 % now" in told
    (row,) = (line for line in told.splitlines() if line.startswith(" 2026-11-27"))
    assert shown in row


@rows(
    ("state", "at_end", "said_so"),
    [("finished", 0.75, True), ("finished", 0.749, False), ("running", 0.75, False)],
)
def test_a_spread_that_is_another_since_the_job_ended_is_told_from_that_at_its_end(
    state, at_end, said_so
):
    """Above the last day's 66.3 % it said 66.2 % of what seemed to be the same moment."""
    job = replace(JOB, state=state, days=({"day": "2026-11-27", "spread": at_end},))
    told = said(job, spreads={"raidz1-0": 0.949, "raidz1-1": 0.2})
    end = ", 75.0 % at its end" * said_so
    assert f"Vdevs: spread 93.0 % at the start{end}, 74.9 % now" in told


def test_a_day_has_what_moved_on_it_and_not_the_total_so_far():
    days = tuple(day | {"files_failed": 0, "eta_seconds": 7620.0} for day in TWO_DAYS)
    told = said(replace(JOB, days=days), width=60).splitlines()
    (second,) = (line.split() for line in told if line.startswith(" 2026-11-28"))
    assert second[1:4] == ["2T", "50", "10"]


def test_files_that_failed_and_are_moved_the_day_after_count_there():
    first = {"day": "2026-11-27", "files_done": 10, "files_skipped": 1, "files_failed": 3}
    second = {"day": "2026-11-28", "files_done": 12, "files_skipped": 1, "files_failed": 0}
    lines = job_lines(replace(JOB, days=(first, second)), 0.0, {}, DisplayFormat(), 60)
    told = (line.split() for line in text(lines).splitlines() if line.startswith(" 2026-11-2"))
    assert [line[2:4] for line in told] == [["6", "1"], ["5", "0"]]


def test_a_job_that_has_ended_shows_no_eta_of_a_day():
    days = tuple(day | {"eta_seconds": 7620.0} for day in TWO_DAYS)
    ended = replace(JOB, state="finished", rate=None, eta_seconds=None, days=days)
    told = said(ended)
    assert "ETA" not in told
    assert "2h07m" not in told


def test_a_million_files_of_a_day_keep_apart_from_its_bytes():
    day = {"day": "2026-11-20", "moved_bytes": 33 << 40, "files_done": 1_056_795}
    day |= {"files_skipped": 0, "files_failed": 0}
    told = said(replace(JOB, days=(day,)), width=72)
    assert "T 1,056,795 " in told


def test_the_history_of_a_job_has_a_heading_that_is_no_end_date():
    told = said(JOB, width=80)
    head = next(line for line in told.splitlines() if " moved " in line and " spread " in line)
    assert head.split()[0] == "Day"


def test_a_long_reason_of_a_job_is_wrapped():
    why = "the filesystem of /tank/films has less free space than its floor, and waits for more"
    lines = [plain(line) for line in job_lines(replace(JOB, why=why), 0.0, {}, DisplayFormat(), 60)]
    assert why in " ".join(line.strip() for line in lines)


def test_the_title_leaves_a_gap_after_its_first_word_which_is_a_badge_in_focus():
    assert plain(job_title(JOB, DisplayFormat())).startswith(" REBALANCE  abc123  copy")


ALL = frozenset(key.action for key in KEYS)


def test_the_keys_that_do_something_follow_the_state():
    assert possible_actions(JOB) == ALL
    assert possible_actions(replace(JOB, state="paused")) == ALL
    assert possible_actions(replace(JOB, state="dead")) == frozenset({"hold"})
    assert possible_actions(replace(JOB, state="finished")) == frozenset({"hold"})
    assert possible_actions(replace(JOB, state="finished", failed={})) == frozenset()
    assert possible_actions(replace(JOB, files_total=None, why="counting files")) == ALL
    assert possible_actions(None) == frozenset()
