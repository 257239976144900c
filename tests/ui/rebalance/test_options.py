"""The options of a plan, as displayed and as chosen."""

from __future__ import annotations

import pytest

from tests.records import replace
from tests.table import rows
from tests.ui.actions.scripted import AGREED, ENTER, ESC, Reply, ScriptedSession
from tests.ui.drawn import flat, plain, text
from tests.ui.rebalance.samples import SETTINGS
from tests.ui.rebalance.steps import SCENARIO
from zconsole.errors import ZconsoleError
from zconsole.rebalance.planning.settings import EVEN, HELP, Limits, Settings
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.help import screen_help_lines
from zconsole.ui.rebalance.flow import rebalance_flow
from zconsole.ui.rebalance.folder_screen import FoldersScreen
from zconsole.ui.rebalance.options import (
    AIM,
    ASKED,
    ENTRIES,
    LIMITS,
    MIN_FREE,
    MORE,
    OTHERS,
    RACES,
    RATE,
    TARGET,
    NewJob,
    OptionChoice,
    ask_choice,
    entry_about,
    entry_lines,
    option_about,
    option_lines,
    option_topics,
)
from zconsole.ui.rebalance.plan_screen import PlanScreen


def test_a_choice_that_is_cut_is_told_whole():
    new, look = NewJob(replace(SETTINGS, rewrite_options="SC")), DisplayFormat()
    for width in (60, 80):
        for index, row in enumerate(entry_lines(ENTRIES, new, look, width)):
            entry, about = ENTRIES[index], entry_about(ENTRIES, new, index, look, width)
            whole = " ".join(plain(line).strip() for line in about)
            assert whole.startswith(entry.label[:10]) == ("…" in plain(row))
    lines = map(plain, entry_about(MORE[-1:], new, 0, look, 60))
    assert "not what snapshots or clones hold (2.5)" in " ".join(" ".join(lines).split())


SWITCHES = [e for e in ENTRIES if isinstance(e, OptionChoice) and set(e.values) == {False, True}]


@rows("entry", SWITCHES)
def test_the_explanation_of_a_switch_is_that_of_the_choice_it_stands_at(entry):
    """ "wait until they end" stood above "Don't wait for scans to end"."""
    off, on = (
        text(entry_about((entry,), NewJob(entry.made(SETTINGS, each)), 0, DisplayFormat(), 300))
        for each in (False, True)
    )
    assert flat(on) != flat(off)
    assert HELP[entry.name][1:] in flat(on)
    assert HELP[entry.name][1:] not in flat(off)
    topics = dict(option_topics())[entry.label]
    for value, said in ((False, off), (True, on)):
        assert f"{entry.values[value]}: {flat(said).strip()}" in topics


ALWAYS = [e for e in ENTRIES if e not in SWITCHES]


@rows("entry", ALWAYS)
def test_each_choice_says_what_it_is_for_as_the_help_of_its_option_does(entry):
    lines = entry_about((entry,), NewJob(SETTINGS), 0, DisplayFormat(), 100)
    assert HELP[entry.name][1:] in " ".join(" ".join(map(plain, lines)).split())


def test_three_things_are_asked_and_what_is_set_of_the_others_shows():
    look = DisplayFormat()
    said = [plain(line).strip() for line in option_lines(NewJob(SETTINGS), look, 80)]
    assert [line.split("  ")[0] for line in said[:-1]] == [*(e.label for e in ASKED), "More"]
    assert len(ASKED) == 3
    new = NewJob(Settings(("/a",)))
    assert plain(option_lines(new, look, 80)[OTHERS]).endswith("  9 options at their defaults")
    new = NewJob(Settings(("/a",), "copy", limits=Limits(window="22:00-06:00")))
    row = plain(option_lines(new, look, 80)[OTHERS])
    assert row.endswith("  set: Engine, Only between")
    about = " ".join(" ".join(map(plain, option_about(new, OTHERS, look, 80))).split())
    assert all(entry.label in about for entry in MORE)


def test_the_choice_of_lost_writes_says_when_it_applies():
    for accepts in (False, True):
        new = NewJob(replace(SETTINGS, accept_races=accepts))
        lines = entry_about((RACES,), new, 0, DisplayFormat(), 80)
        assert "NFS or SMB" in " ".join(map(plain, lines))


def test_the_question_of_the_target_says_its_default():
    """A job's "Now: none: all files move" stood against "5 % (even)" among its options."""
    assert f"by default {EVEN * 100:g}" in TARGET.question
    assert "all files move" in TARGET.question


def test_no_usual_choice_is_cut_on_a_small_screen_where_that_would_hide_the_way_on():
    settings = Settings(("/storage/films",), limits=Limits(until_spread=EVEN), accept_races=True)
    rows = map(plain, option_lines(NewJob(settings), DisplayFormat(), 60))
    assert not [row for row in rows if "…" in row]


def test_a_target_that_was_typed_does_not_read_like_the_default():
    default, typed = (
        plain(option_lines(NewJob(SETTINGS, each), DisplayFormat(), 80)[1])
        for each in (False, True)
    )
    assert default.endswith("5 % (even), or all files moved")
    assert typed.endswith("  5 % (even)")


def test_only_a_job_that_is_to_balance_stops_where_the_vdevs_are_even():
    settings = AIM.made(replace(SETTINGS, aim="recordsize"), "balance")
    assert (settings.aim, settings.limits.until_spread) == ("balance", EVEN)
    settings = AIM.made(settings, "width")
    assert (settings.aim, settings.limits.until_spread) == ("width", None)


def test_the_aim_there_is_picked_again_keeps_a_target_that_was_typed():
    settings = replace(SETTINGS, limits=Limits(until_spread=0.2))
    assert AIM.made(settings, settings.aim) == settings


@rows(
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


@rows(
    ("limit", "answer"),
    [
        (RATE, "fast"), (RATE, "-5M"), (TARGET, "101"), (TARGET, "x"), (LIMITS[2], "soon"),
        (LIMITS[5], "late"), (LIMITS[5], "25:00-26:00"),
    ],
)  # fmt: skip
def test_nonsense_is_refused_in_words(limit, answer):
    with pytest.raises(ZconsoleError, match="not a"):
        limit.value(answer)


def test_the_help_of_the_options_tells_what_each_is_for():
    lines = screen_help_lines(("Menu",), DisplayFormat(), 100, option_topics())
    said = flat("\n".join(map(plain, lines)))
    for entry in ENTRIES:
        assert entry.label in said
        assert flat(HELP[entry.name])[1:] in said


async def test_a_typed_target_stays_and_a_dropped_default_shows_on_the_options():
    plans: list[str] = []

    async def _read(screen: PlanScreen) -> None:
        await screen.make()
        plans.append(text(screen.lines(100)))

    ui = planning("Show the plan", _read, "Stop at", "5", "Show the plan", _read)
    await rebalance_flow(ui, "")
    assert any(
        "5 % (even) is out of reach for these directories: all their files move" in shown
        for shown in ui.shown
    )
    assert ["--until-spread=0.05" in plan for plan in plans] == [False, True]


def directories(_: FoldersScreen) -> tuple[str, ...]:
    """Choose the films."""
    return ("/storage/films",)


def planning(*answers: Reply) -> ScriptedSession:
    """Return a session at the options of a new job for the films."""
    return ScriptedSession(SCENARIO, "New job", directories, *answers)


def row(ui: ScriptedSession, label: str) -> str:
    """Return the row with this label in the options shown last."""
    shown = next(text for text in reversed(ui.shown) if text.startswith("REBALANCE  options"))
    (line,) = (line for line in shown.splitlines() if line.startswith(label))
    return line.removeprefix(label).strip()


async def test_every_option_is_chosen_from_a_list_or_asked_for():
    made: list[Settings] = []
    ui = planning(
        "Aim", "new data-to-parity ratio",
        "Stop at", "10",
        "Rate limit", "nonsense", ESC,
        "More", "Engine", "copy: verified copies", "Rewrite", "-P: incremental sends do not grow",
        "Rewrite", "all blocks", "Risk", "accept", AGREED, ESC,
        "Show the plan", lambda screen: made.append(screen.new.settings),
    )  # fmt: skip
    await rebalance_flow(ui, "")
    assert ui.messages == ["nonsense: not a size such as 200M"]
    assert row(ui, "Aim") == "new data-to-parity ratio, after a raidz expansion"
    assert row(ui, "Rate limit") == "none"
    assert row(ui, "More") == "set: Engine, Risk (copy engine)"
    (settings,) = made
    assert (settings.engine, settings.aim, settings.limits.until_spread) == ("copy", "width", 0.1)
    assert settings.accept_races
    assert not settings.rewrite_options


CHOICES = [entry for entry in ENTRIES if isinstance(entry, OptionChoice)]


@rows("entry", CHOICES)
async def test_a_choice_shows_all_its_values_and_enter_on_the_present_one_keeps_it(entry):
    ui = ScriptedSession(SCENARIO, ENTER, ESC)
    for _ in range(2):
        assert await ask_choice(ui, entry, SETTINGS) == SETTINGS
        (now,) = (row for row in ui.shown[-1].splitlines() if row.endswith("(now)"))
        values = [row.removesuffix("(now)").strip() for row in ui.shown[-1].splitlines()[1:]]
        assert values == list(entry.values.values())
        assert now.startswith(entry.shown(SETTINGS))


async def test_options_stay_while_other_directories_are_chosen():
    ui = planning("Aim", "new data-to-parity ratio", ESC, directories)
    await rebalance_flow(ui, "")
    assert row(ui, "Aim") == "new data-to-parity ratio, after a raidz expansion"


async def test_the_risk_of_a_lost_write_is_asked_about_and_taken_back_with_the_options():
    ui = planning("More", "Risk", "accept", ESC, "Risk", "accept", AGREED, "Risk", "refuse")
    await rebalance_flow(ui, "")
    risks = [text for text in ui.shown if text.startswith("REBALANCE  more options")]
    refuse, accept = "refuse if a write could be lost", "accept if a write"
    assert [refuse in text for text in risks] == [True, True, False, True]
    assert [accept in text for text in risks] == [False, False, True, False]
    assert len(ui.plans) == 2, "the way back to safety needs no question"
    assert all(text.startswith("Accept that writes may be lost?") for text in ui.plans)
    assert "can't be undone" in ui.plan
