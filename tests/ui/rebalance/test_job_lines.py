"""What the screens of a rebalance say, at any width, of any job and plan."""

from __future__ import annotations

import asyncio

import pytest

from tests.records import replace
from tests.ui import frames
from zconsole.errors import UnavailableError, ZconsoleError
from zconsole.monitor.join import joined
from zconsole.rebalance.backend import Counted, JobView
from zconsole.rebalance.planning.plan_document import PlanDocument, PlannedDirectory, PredictedFill
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.rebalance.flow import scan_pace
from zconsole.ui.rebalance.job_lines import job_lines
from zconsole.ui.rebalance.job_list import job_rows
from zconsole.ui.rebalance.job_screen import offered
from zconsole.ui.rebalance.job_watch import JobWatch, reason
from zconsole.ui.rebalance.limits import LIMITS, MIN_FREE, RATE, TARGET
from zconsole.ui.rebalance.options import PLAN as LAST
from zconsole.ui.rebalance.options import option_about, option_lines
from zconsole.ui.rebalance.plan_lines import JobPace, counting_lines, pace_of, plan_lines
from zconsole.ui.widgets.draw import plain, width_of
from zconsole.ui.widgets.glyphs import ASCII, UNICODE

ODD = "/tank/a\x1b[31m\udcff" + "x" * 300
SETTINGS = Settings((ODD, "/tank/b"), limits=Limits(rate=5e6, until_spread=0.05))
JOB = JobView(
    "abc123",
    "running",
    None,
    SETTINGS,
    SETTINGS.limits,
    "copy",
    files_done=10,
    files_total=30,
    bytes_done=1 << 30,
    bytes_total=4 << 30,
    rate=1e6,
    eta_seconds=3600.0,
    current=ODD,
    before={"raidz1-0": 0.93, "raidz1-1": 0.0},
    skipped={"open for writing": 3, "changed": 9},
    failed={"No space left on device": 1},
    left_out=(
        {"path": ODD, "outcome": "failed", "reason": "No space left on device"},
        {"path": "/tank/b/log", "outcome": "skipped", "reason": "open for writing"},
    ),
    days=({"day": "2026-11-20", "moved_bytes": 5, "files_done": 1, "spread": 0.5},),
    notes=("new snapshot of tank/\x1b: what moves from now on stays allocated twice",),
)
EMPTY = PlannedDirectory(
    dir="/tank/b",
    dataset="tank/b",
    files=5,
    bytes=1 << 30,
    skipped={},
    sampled={},
    engine=None,
    why="dedup is on",
    space_needed_bytes=0,
    pinned_bytes={"snapshots": None},
    next_incremental_bytes=None,
    allocated_bytes=0,
    allocated_after_bytes=None,
    sizes_from=None,
    old_bytes=None,
    below=(),
)
PLAN = PlanDocument(
    (
        replace(
            EMPTY,
            dir=ODD,
            files=10,
            bytes=1 << 40,
            engine="copy",
            why="no rewrite",
            skipped={"special file": 2},
            pinned_bytes={"snapshots": 1 << 30},
            next_incremental_bytes=7,
            sampled={"opened": 40, "open for writing": 3},
        ),
        EMPTY,
    ),
    spread_before=0.93,
    spread_after=0.1,
    target_spread=0.05,
    available_bytes=1 << 40,
    vdevs=(PredictedFill("raidz1-0", 0.93, 0.7), PredictedFill("raidz1-1", 0.0, 0.6)),
    notes=("a scrub is running: the job waits for its end",),
    refused=f"{ODD}: not possible",
)


def text(lines) -> str:
    return "\n".join(plain(line) for line in lines)


LOOK = DisplayFormat()


def shown(plan, denied="", look=LOOK, width=100, settings=SETTINGS, pace=None):
    return plan_lines(plan, settings, pace, "zconsole …", denied, look, width)


@pytest.mark.parametrize(
    "look", [DisplayFormat(UNICODE), DisplayFormat(ASCII)], ids=["unicode", "ascii"]
)
@pytest.mark.parametrize("width", [54, 60, 80, 200])
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


def test_a_job_tells_everything_there_is():
    said = text(job_lines(JOB, 0.0, {"raidz1-0": 0.83, "raidz1-1": 0.2}, DisplayFormat(), 100))
    for words in (
        "running      25.0 %",
        "1G of 4G",
        "ETA 1h00m",
        "10 of 30 files",
        "rate limit 4.77M/s",
        "stop at a spread of 5.0 %",
        "spread 93.0 % at the beginning, 63.0 % now",
        "-10.0",
        "+20.0",
        "Skipped 12: 9 changed, 3 open for writing",
        "Failed 1: 1 No space left on device",
        "skipped: /tank/b/log: open for writing",
        "and 11 more",
        "2026-11-20",
        "new snapshot of tank/\\x1b",
    ):
        assert words in said, words


def test_a_plan_tells_everything_there_is():
    said = text(shown(PLAN, "read-only"))
    for words in (
        "Not possible",
        "2 skipped: special file",
        "3 open for writing",
        "no engine",
        "spread 93.0 %, then 10.0 %",
        "takes more than these directories hold",
        "time unknown until it runs",
        "1G of old blocks stay, held by snapshots",
        "the next incremental send grows by 7",
        "a scrub is running",
        "To run by hand",
        "read-only",
    ):
        assert words in said, words


def test_a_plan_that_moves_more_than_the_spread_needs_says_where_to_stop():
    free = replace(PLAN, bytes_to_target=1 << 30)
    said = text(shown(free, settings=replace(SETTINGS, limits=Limits())))
    assert "a spread of 5 % takes 1G of it: stop at a spread of 5 to move no more" in said
    said = text(shown(free))
    assert "to move no more" not in said


def test_the_keys_that_do_something_follow_the_state():
    assert offered(JOB) == frozenset("psltf")
    assert offered(replace(JOB, state="paused")) == frozenset("rsltf")
    assert offered(replace(JOB, state="dead")) == frozenset("r")
    assert offered(replace(JOB, state="finished")) == frozenset("r")
    assert offered(replace(JOB, state="finished", failed={})) == frozenset()
    assert offered(replace(JOB, files_total=None, why="counting files")) == frozenset("psltf")
    assert offered(None) == frozenset()


@pytest.mark.parametrize(
    ("limit", "answer", "value"),
    [
        (RATE, "200M", 200 << 20),
        (RATE, "200m/s", 200 << 20),
        (RATE, "none", None),
        (TARGET, "5", 0.05),
        (TARGET, "7.5 %", 0.075),
        (MIN_FREE, "12%", 0.12),
        (LIMITS[2], "50ms", 0.05),
        (LIMITS[2], "2s", 2.0),
        (LIMITS[5], "22:00-06:00", "22:00-06:00"),
    ],
)
def test_limits_are_understood_as_people_write_them(limit, answer, value):
    assert limit.value(answer) == pytest.approx(value) if value != answer else value


@pytest.mark.parametrize(
    ("limit", "answer"),
    [
        (RATE, "fast"), (RATE, "-5M"), (TARGET, "101"), (TARGET, "x"), (LIMITS[2], "soon"),
        (LIMITS[5], "late"), (LIMITS[5], "25:00-26:00"),
    ],
)  # fmt: skip
def test_nonsense_is_refused_in_words(limit, answer):
    with pytest.raises(ZconsoleError, match="not a"):
        limit.value(answer)


def test_the_pace_is_that_of_a_job_then_of_a_scan_then_the_limit():
    plan = replace(PLAN, raw_factor=2.0)
    assert pace_of(plan, None, (), None) is None
    assert pace_of(plan, None, (), 8e6) == JobPace(2e6, "half the pace of the last scan")
    assert pace_of(plan, None, (JOB,), 8e6) == JobPace(1e6, "the pace of another job")
    assert pace_of(plan, 5e6, (), None) == JobPace(5e6, "the rate limit")
    assert pace_of(plan, 5e6, (JOB,), None) == JobPace(1e6, "the pace of another job")


def test_the_pace_of_a_scan_is_its_mean():
    healthy = frames.ALL["healthy"]()
    view = healthy.scans[0]
    ended = replace(view.scan, state="finished", start=0.0, end=100.0, issued_bytes=5000)
    assert scan_pace(replace(healthy, scans=(replace(view, scan=ended),))) == 50.0
    running = replace(ended, state="running")
    assert scan_pace(replace(healthy, scans=(replace(view, scan=running),))) is None
    assert scan_pace(replace(healthy, scans=())) is None


class Desk:
    """Gives the rounds of jobs put in."""

    def __init__(self, *rounds) -> None:
        self.rounds = list(rounds)

    async def jobs(self, pool):
        found = self.rounds.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


async def test_the_watch_tells_of_interrupted_jobs_once_and_of_ends():
    dead, over = replace(JOB, state="dead"), replace(JOB, state="finished", why="done", failed={})
    gone = replace(JOB, state="dead", why="its process is gone; resume it")
    rebalance_backend = Desk((dead,), (dead,), (JOB,), (over,), (JOB,), (gone,))
    watch = JobWatch(lambda: rebalance_backend)
    told = [[news.text for news in await watch.look("tank")] for _ in range(6)]
    assert "was interrupted" in told[0][0]
    assert told[1] == told[2] == told[4] == []
    assert told[3] == ["Rebalance job abc123 is over: done"]
    assert "its process is gone" in told[5][0]


async def test_frames_are_marked_with_the_job_at_work_or_interrupted():
    frame = replace(frames.ALL["healthy"](), pool="tank")
    watch = JobWatch(lambda: Desk((JOB,), (replace(JOB, state="dead"),), UnavailableError("stuck")))
    assert joined(frame, watch.extras("tank")) is frame
    await watch.look("tank")
    marked = joined(frame, watch.extras("tank"))
    assert "REBALANCE" in marked.flags
    assert marked.activities[-1].activity.percent == 25.0
    await watch.look("tank")
    marked = joined(frame, watch.extras("tank"))
    assert "REBALANCE" not in marked.flags
    assert marked.activities[-1].activity.state == "interrupted"
    await watch.look("tank")
    assert watch.problem == "stuck"
    assert joined(frame, watch.extras("tank")) == marked


async def test_a_look_that_takes_long_is_not_overtaken():
    class Slow(Desk):
        async def jobs(self, pool):
            await gate.wait()
            return await super().jobs(pool)

    gate = asyncio.Event()
    watch = JobWatch(lambda: Slow((replace(JOB, state="dead"),), ()))
    first = asyncio.create_task(watch.round(["tank"]))
    await asyncio.sleep(0)
    assert await watch.round(["tank"]) == ()
    gate.set()
    assert len(await first) == 1


def test_a_job_that_was_told_to_stop_is_not_said_to_be_stopped_by_stop():
    stopped = replace(JOB, state="stopped", why="stop")
    assert reason(stopped) == ""
    assert "  stop  " not in plain(job_rows((stopped,), DisplayFormat(), 120)[1])
    said = [plain(line).strip() for line in job_lines(stopped, 0.0, {}, DisplayFormat(), 80)]
    assert "stop" not in said
    assert reason(replace(stopped, why="the free-space floor")) == "the free-space floor"


def test_a_long_reason_of_a_job_is_wrapped():
    why = "the filesystem of /tank/films has less free space than its floor, and waits for more"
    lines = [plain(line) for line in job_lines(replace(JOB, why=why), 0.0, {}, DisplayFormat(), 60)]
    assert why in " ".join(line.strip() for line in lines)


def test_a_choice_that_is_cut_is_told_whole():
    settings = replace(SETTINGS, accept_races=True)
    for width in (60, 80):
        for index in range(LAST + 1):
            whole = " ".join(
                plain(line).strip()
                for line in option_about(settings, index, DisplayFormat(), width)
            )
            row = plain(option_lines(settings, DisplayFormat(), width)[index])
            assert bool(whole) == ("…" in row)
    lines = map(plain, option_about(settings, LAST - 1, DisplayFormat(), 60))
    assert " ".join(lines).endswith("lost")


@pytest.mark.parametrize(
    ("aim", "after", "said"),
    [
        ("balance", 100 << 20, None),
        ("properties", 100 << 20, "takes 100M, afterwards about as much (lz4, 9 blocks tried)"),
        ("balance", 60 << 20, "takes 100M, afterwards about 60M (lz4, 9 blocks tried)"),
        ("balance", None, "takes 100M; afterwards not known: lz4, 9 blocks tried"),
    ],
)
def test_a_plan_tells_sizes_where_they_matter(aim, after, said):
    sizes = {"allocated_bytes": 100 << 20, "allocated_after_bytes": after}
    part = replace(PLAN.directories[0], **sizes, sizes_from="lz4, 9 blocks tried")
    lines = text(shown(replace(PLAN, directories=(part,)), settings=replace(SETTINGS, aim=aim)))
    assert said in lines if said else "afterwards" not in lines
