"""The plan on its screen: its text, the assumed pace, and options that the release lacks."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.ui.drawn import flat, text
from tests.ui.rebalance.samples import JOB, LOOK, PLAN, SETTINGS, shown
from tests.ui.rebalance.steps import SCENARIO
from tests.worlds import world_of
from zconsole.pool.balance import Balance, VdevBalance
from zconsole.rebalance.backend import by_hand
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.sim.backends.rebalance import SimulatedRebalance
from zconsole.ui.rebalance.plan_screen import pace_of, plan_lines

ROOMY = Balance()
"""A pool in which no single vdev takes most of the writes."""


def test_a_plan_tells_everything_there_is():
    said = text(shown(PLAN, "read-only"))
    for words in (
        "Not possible",
        "2 skipped: special file",
        "3 open for writing",
        "no engine",
        "spread 93.0 %, then 10.0 %",
        "5 % (even) is out of reach",
        "duration unknown until it runs",
        "1G (compressed) of old blocks stay, held by snapshots",
        "the next incremental send grows by 7",
        "a scrub is running",
        "Would run",
        "read-only",
    ):
        assert words in said, words


def test_the_command_of_a_plan_is_said_to_run_where_it_does():
    able = replace(PLAN, refused=None)
    assert "Runs in the background" in text(shown(able))
    assert "To run by hand" in text(shown(able, "read-only"))
    assert "Runs in the background" not in text(shown(PLAN))


def test_a_plan_that_moves_more_than_the_spread_needs_says_where_to_stop():
    free = replace(PLAN, bytes_to_target=1 << 30)
    said = text(shown(free, settings=replace(SETTINGS, limits=Limits())))
    assert '5 % needs only 1G logical; set "Stop at a spread of" to 5' in said
    said = text(shown(free))
    assert "Stop at" not in said


def test_the_pace_is_that_of_a_job_then_of_a_scan_then_the_limit():
    plan = replace(PLAN, raw_factor=2.0)
    assert pace_of(plan, None, (), None, ROOMY) is None
    assert pace_of(plan, None, (), 9e6, ROOMY) == (1.5e6, "33 % of the last scan's rate")
    assert pace_of(plan, None, (JOB,), 8e6, ROOMY) == (1e6, "pace of another job")
    assert pace_of(plan, 5e6, (), None, ROOMY) == (5e6, "the rate limit")
    assert pace_of(plan, 5e6, (JOB,), None, ROOMY) == (1e6, "pace of another job")


def test_what_is_rewritten_is_not_read_back_and_one_vdev_may_have_most_to_do():
    rewritten = tuple(replace(each, engine="rewrite") for each in PLAN.directories)
    plan = replace(PLAN, directories=rewritten, raw_factor=2.0)
    assert pace_of(plan, None, (), 8e6, ROOMY) == (2e6, "half the last scan's rate")
    old = VdevBalance("mirror-0", "mirror", 9, 9, 0, 1.0, None, None, 0.0)
    new = old._replace(name="mirror-5", alloc_bytes=0, new_write_share=1.0)
    one_new = Balance(vdevs=(*[old] * 5, new))
    assert pace_of(plan, None, (), 8e6, one_new) == (8e5, "20 % of the last scan's rate")


def test_the_pace_of_the_last_job_of_its_engine_goes_before_half_of_a_scan():
    plan, free = replace(PLAN, raw_factor=2.0), Limits()
    over = replace(JOB, state="stopped", rate=None, mean_rate=3e6, limits=free)
    older = replace(over, mean_rate=2e6)
    assert pace_of(plan, None, (over, older), 8e6, ROOMY) == (3e6, "as the last job did")
    assert pace_of(plan, None, (JOB, over), 8e6, ROOMY) == (1e6, "pace of another job")
    assert pace_of(plan, 1e6, (over,), 8e6, ROOMY) == (1e6, "the rate limit")
    held, other = replace(over, limits=JOB.limits), replace(over, engine="rewrite")
    for unlike in (held, other, replace(over, mean_rate=None)):
        assert pace_of(plan, None, (unlike, older), 8e6, ROOMY) == (2e6, "as the last job did")


@rows(
    ("version", "letters", "reason"),
    [
        ("2.4.4", "P", ""),
        ("2.4.99", "SC", ""),
        ("2.4.99", "PSC", ""),
        ("2.3.9", "P", "zfs rewrite -P needs OpenZFS 2.4"),
        ("2.4.4", "SC", "zfs rewrite -S needs OpenZFS 2.5"),
    ],
)
async def test_the_command_has_the_options_that_were_chosen_where_the_release_has_them(
    version, letters, reason
):
    world = world_of(SCENARIO)
    world.pools[0].version = version
    desk = SimulatedRebalance(world)
    settings = Settings(("/storage/films",), rewrite_options=letters)
    plan = [step async for step in desk.plan(settings)][-1]
    command = by_hand(desk, settings)
    assert command == f"zconsole rebalance run --rewrite-options={letters} /storage/films"
    said = flat(text(plan_lines(plan, settings, None, command, "", LOOK, 100)))
    assert ("Not possible" in said) == bool(reason)
    assert reason in said
    assert command in said


def test_a_plan_tells_that_sizes_may_change():
    assert "may change" not in text(shown(PLAN))
    part = replace(PLAN.directories[0], allocated_bytes=100 << 20, differs=("copies=2: one", "b"))
    lines = text(shown(replace(PLAN, directories=(part,)), width=200))
    assert "takes 100M compressed, may change: copies=2: one; b" in lines


def test_a_plan_for_an_even_pool_says_so_and_what_moves_files_anyway():
    even = replace(PLAN, spread_before=0.02, bytes_to_target=0, refused=None)
    said = text(shown(even, width=200))
    assert "Nothing to move" in said
    assert "the pool is even already: its spread is 2.0 %, the job stops at 5.0 %." in said
    assert 'set "Stop at a spread of" to none' in said
    assert "0 to move" not in said
    assert "zconsole …" not in said
    said = text(shown(even, settings=replace(SETTINGS, limits=Limits())))
    assert "Nothing to move" not in said
    assert "1.00T logical to move" in said


def test_a_plan_for_empty_directories_says_that_there_is_nothing_to_move():
    parts = tuple(replace(part, files=0, bytes=0) for part in PLAN.directories)
    said = text(shown(replace(PLAN, directories=parts, refused=None)))
    assert "no data to move in these directories" in said
    assert "even already" not in said
