"""Scrubs limited to certain hours: what is due when, and what the plan says."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import raidz2, running, said
from zconsole.actions.scrub import EXAMPLE, ScrubDates, plan_pause, plan_scrub, read_dates
from zconsole.actions.scrub_window import (
    NAME,
    MachineWindows,
    due,
    hours_words,
    plan_beside_window,
    plan_pause_beside_window,
    plan_stop_beside_window,
    plan_window,
    plan_window_off,
    read_hours,
)
from zconsole.errors import ZconsoleError
from zconsole.pool.model import Scan
from zconsole.pool.scrub_window import ScrubWindow
from zconsole.system import keeper
from zconsole.system.state_dir import StateError

NIGHT = ScrubWindow("tank", "1", "22:00-06:00")
RUNS, PAUSED = running("scrub"), running("scrub", state="paused")
IN, OUT = datetime(2026, 11, 25, 23, 0, tzinfo=UTC), datetime(2026, 11, 25, 12, 0, tzinfo=UTC)


@rows(
    ("window", "scans", "local", "command", "after"),
    [
        ({}, (), IN, "zpool scrub tank", {}),
        ({}, (), OUT, None, {}),
        ({}, (RUNS,), IN, None, {"begun": True}),
        ({}, (RUNS,), OUT, "zpool scrub -p tank", {"begun": True, "paused": True}),
        ({"paused": True}, (PAUSED,), OUT, None, {"begun": True, "paused": True}),
        ({"paused": True}, (PAUSED,), IN, "zpool scrub tank", {"begun": True, "paused": True}),
        ({"begun": True}, (PAUSED,), IN, None, {"begun": True}),
        ({"begun": True, "paused": True}, (RUNS,), IN, None, {"begun": True}),
    ],
)
def test_what_is_due_follows_from_the_clock_and_the_scrub(window, scans, local, command, after):
    base = {"pool": "tank", "guid": "1", "hours": NIGHT.hours}
    found = due(ScrubWindow(**base, **window), raidz2(*scans), local)
    assert (found.plan.steps[0].command if found.plan else None) == command
    assert found.window == ScrubWindow(**base, **after)
    assert not found.over


@rows(
    ("window", "state", "local", "words"),
    [
        ({}, "", IN, "not started"),
        ({}, "", OUT, "starts at 22:00"),
        ({"begun": True}, "running", IN, "may run until 06:00"),
        ({"begun": True}, "running", OUT, "outside its hours, will be paused"),
        ({"begun": True, "paused": True}, "running", IN, "may run until 06:00"),
        ({"begun": True, "paused": True}, "paused", IN, "resumes now"),
        ({"begun": True, "paused": True}, "paused", OUT, "paused until 22:00"),
        ({"begun": True}, "paused", IN, "paused by hand, stays paused"),
        ({"begun": True}, "", OUT, "its scrub has ended"),
    ],
)
def test_it_is_told_how_the_scrub_fares_that_is_kept_to_hours(window, state, local, words):
    """Hours set for a paused scrub were "paused until 22:00" while it ran."""
    assert hours_words(replace(NIGHT, **window), state, local) == words


def test_the_window_is_over_with_its_scrub():
    ended = running("scrub", state="finished", end=950.0)
    begun = ScrubWindow("tank", "1", NIGHT.hours, begun=True)
    assert due(begun, raidz2(ended), OUT).over
    assert not due(NIGHT, raidz2(ended), OUT).over


@rows(
    ("resilver", "local", "refused", "command"),
    [
        (running("resilver"), IN, True, True),
        (running("resilver", state="finished", end=950.0), IN, False, True),
        (running("resilver", state="canceled", end=950.0), OUT, None, False),
    ],
)
def test_hours_are_kept_for_a_scrub_that_a_resilver_discarded(resilver, local, refused, command):
    """Nothing was completed: it starts anew once the resilver is over."""
    begun = ScrubWindow("tank", "1", NIGHT.hours, begun=True, paused=True)
    found = due(begun, raidz2(resilver), local)
    assert not found.over
    assert found.window == NIGHT
    assert (found.plan is not None) == command
    assert found.plan is None or (found.plan.refused is not None) == refused


def test_a_resilver_makes_it_wait():
    found = due(NIGHT, raidz2(running("resilver")), IN)
    assert found.plan.refused is not None
    assert not found.over


@rows(("text", "hours"), [("22:00-06:00", "22:00-06:00"), ("8:5 - 9:00", "08:05-09:00")])
def test_hours_are_read(text, hours):
    assert read_hours(text) == hours


@rows("text", ["", "night", "22-6", "22:00", "25:00-26:00", "22:00-06:00-07:00"])
def test_what_are_no_hours_is_refused(text):
    with pytest.raises(ZconsoleError, match="not hours"):
        read_hours(text)


@rows("text", ["22:00-22:00", "00:00-24:00"])
def test_the_whole_day_is_refused_as_hours(text):
    with pytest.raises(ZconsoleError, match="the whole day"):
        read_hours(text)


@rows(
    ("scans", "inside", "says"),
    [
        ((), True, "a scrub starts now"),
        ((RUNS,), True, "the scrub goes on"),
        ((PAUSED,), True, "the scrub resumes now"),
        ((), False, "a scrub starts at "),
        ((RUNS,), False, "paused now, at 38.2 %, and resumes at "),
        ((PAUSED,), False, "the scrub resumes at "),
    ],
)
def test_the_plan_says_what_happens_at_once(scans, inside, says):
    now = datetime.fromtimestamp(1000.0, UTC).astimezone()
    hours = f"{now.hour:02}:00-{(now.hour + 1) % 24:02}:00"
    other = f"{(now.hour + 2) % 24:02}:00-{(now.hour + 3) % 24:02}:00"
    plan = plan_window(raidz2(*scans), hours if inside else other)
    assert plan.refused is None
    assert says in said(plan)
    assert "also over a reboot" in said(plan)
    order = plan.steps[0].window
    assert (order.guid, order.begun) == ("1", any(s.function == "scrub" for s in scans))


@rows(
    ("hours", "took", "says"),
    [
        (1, 12 * 3600 + 360.0, "it ends in about 12 days: the last scrub took 12h06m"),
        (8, 8 * 3600 + 60.0, "it ends in about 1 day: the last scrub took 8h01m"),
        (8, 3600.0, ""),
        (8, None, ""),
    ],
)
def test_the_plan_says_on_how_many_days_the_scrub_runs(hours, took, says):
    """01:00-02:00 was set for a scrub of 12 hours, and nothing said that it takes 12 nights."""
    now = datetime.fromtimestamp(960.0, UTC).astimezone()  # whole minutes
    span = f"{now.hour:02}:{now.minute:02}-{(now.hour + hours) % 24:02}:{now.minute:02}"
    end = 900.0
    start = None if took is None else end - took - 900.0
    known = Scan("scrub", "finished", start=start, end=end, pass_paused=900.0)
    told = said(plan_window(replace(raidz2(known), t=960.0), span))
    assert ("in these hours it ends" in told) is bool(says)
    assert says in told


def test_a_resilver_comes_before_any_scrub():
    assert "resilver running" in (
        plan_window(raidz2(running("resilver")), NIGHT.hours).refused or ""
    )


def test_hours_that_are_not_set_cannot_be_dropped():
    assert plan_window_off(raidz2(), ()).refused == "no hours are set for its scrub"
    plan = plan_window_off(raidz2(PAUSED), (NIGHT,))
    assert plan.refused is None
    assert "paused: resume it" in said(plan)
    assert "drops the hours 22:00-06:00" in said(plan)


@rows(
    ("scans", "stopped", "paused"),
    [
        ((RUNS,), True, False),
        ((PAUSED,), True, False),
        ((RUNS,), False, False),
        ((PAUSED,), False, True),
        ((), False, False),
    ],
)
def test_only_a_scrub_that_stays_paused_waits_to_be_resumed(scans, stopped, paused):
    made = plan_stop_beside_window if stopped else plan_window_off
    kept = replace(NIGHT, pool="renamed since", begun=True, paused=True)
    order = made(raidz2(*scans), (kept,)).steps[-1].window
    assert order is not None
    assert order.pool == "tank"
    assert ("until you resume it" in order.ordered) is paused


def test_a_pause_by_hand_says_that_the_hours_do_not_resume_the_scrub():
    """As ``due`` leaves it paused."""
    stays = "the hours set (22:00-06:00) don't resume it: it stays paused until you do"
    assert stays in plan_pause_beside_window(raidz2(RUNS), (NIGHT,)).consequences
    assert plan_pause_beside_window(raidz2(RUNS)).consequences == plan_pause(raidz2()).consequences


def test_a_scrub_that_is_started_beside_hours_says_that_they_pause_it():
    local = datetime.fromtimestamp(raidz2().t, UTC).astimezone()
    begins, ends = (f"{(local.hour + later) % 24:02}:00" for later in (2, 4))
    away, now = (replace(NIGHT, hours=h) for h in (f"{begins}-{ends}", f"{ends}-{begins}"))
    warned = f"hours are set ({away.hours}): outside them the scrub is paused again"
    assert any(warned in text for text in plan_beside_window(raidz2(), (away,)).warnings)
    runs = (
        f"hours are set ({now.hours}): the scrub runs until {begins}, then is paused until {ends}"
    )
    assert runs in plan_beside_window(raidz2(), (now,)).warnings
    # The menu has only the first consequence.
    first = plan_beside_window(raidz2(PAUSED), (away,)).consequences[0]
    assert first == f"continues where it was paused; the hours set ({away.hours}) pause it again"
    first = plan_beside_window(raidz2(PAUSED), (now,)).consequences[0]
    assert first.endswith(f"; the hours set ({now.hours}) pause it at {begins}")
    other = ScrubWindow("media", "2", NIGHT.hours)
    assert plan_beside_window(raidz2(), (other,)).warnings == plan_scrub(raidz2()).warnings


# Scrub windows on disk, and the keeper that is started for them.

BEGUN = ScrubWindow("tank", "1", "22:00-06:00", begun=True)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
def woken(monkeypatch) -> list[Path]:
    """The state directories for which a keeper was requested."""
    asked: list[Path] = []
    monkeypatch.setattr(keeper, "ask", lambda state, options, **order: asked.append(state))
    return asked


def test_hours_that_are_set_are_kept_and_the_keeper_woken(state, woken):
    machine = MachineWindows(state)
    said = machine.switch(ScrubWindow("tank", "1", "22:00-06:00", begun=True))
    assert said == "tank is scrubbed only in the hours 22:00-06:00"
    assert MachineWindows(state).windows() == (BEGUN,)
    assert woken == [state]
    said = machine.switch(ScrubWindow("tank", "1", ""))
    assert said == "the hours of the scrub of tank are dropped"
    assert machine.windows() == ()


@pytest.mark.usefixtures("woken")
def test_a_scrub_paused_for_other_hours_is_paused_for_the_new_ones_too(state):
    machine = MachineWindows(state)
    machine.switch(ScrubWindow("tank", "1", "22:00-06:00", begun=True, paused=True))
    machine.switch(ScrubWindow("tank", "1", "23:00-05:00", begun=True))
    (window,) = machine.windows()
    assert (window.hours, window.paused) == ("23:00-05:00", True)


def test_after_a_reboot_the_keeper_is_started_again_where_hours_are_set(state, woken):
    machine = MachineWindows(state)
    machine.resume()
    assert woken == []
    with MachineWindows(state).open() as windows:
        windows["1"] = BEGUN
    machine.resume()
    assert woken == [state]


def test_what_somebody_else_changed_meanwhile_is_left_alone(state):
    records = MachineWindows(state)
    with records.open() as windows:
        windows["1"] = BEGUN
    other = ScrubWindow("tank", "1", "01:00-02:00")
    assert records.replaced(other, None) is False
    assert records.replaced(BEGUN, other) is True
    assert records.windows() == (other,)
    assert records.replaced(other, None) is True
    assert records.windows() == ()


def test_a_damaged_file_is_named(state):
    (state / NAME).write_text("{}")
    (state / NAME).chmod(0o600)
    with pytest.raises(StateError, match="is damaged"):
        MachineWindows(state).windows()


# Dates as people type them.

NOW = datetime(2026, 11, 25, 15, 0, tzinfo=UTC)


@rows(
    ("typed", "start", "end"),
    [
        ("2026-11-01", "2026-11-01", ""),
        ("from  2026-11-01  06:30", "2026-11-01 06:30", ""),
        (EXAMPLE, "2026-11-01", "2026-11-20 18:00"),
        ("2026-11-01..2026-11-20", "2026-11-01", "2026-11-20"),
        ("until 2026-11-20", "", "2026-11-20"),
        ("2026-11-20 06:00 to 2026-11-20", "2026-11-20 06:00", "2026-11-20"),
        ("2026-11-20 06:00 to 2026-11-20 06:00", "2026-11-20 06:00", "2026-11-20 06:00"),
    ],
)
def test_dates_are_read_in_the_ways_people_write_them(typed, start, end):
    assert read_dates(typed, NOW) == ScrubDates(start, end)


@rows(
    ("typed", "why"),
    [
        ("", "not dates"),
        ("to", "not dates"),
        ("yesterday", "not dates"),
        ("2026-11-01; reboot", "not dates"),
        ("-S 2026-11-01", "not dates"),
        ("2026-02-30", "no such day"),
        ("2026-11-01 25:00", "no such day"),
        ("1969-12-31", "too early"),
        ("2026-11-26", "in the future"),
        ("2026-11-20 to 2026-11-19", "is before"),
    ],
)
def test_what_are_no_dates_is_refused_with_the_reason(typed, why):
    with pytest.raises(ZconsoleError, match=why):
        read_dates(typed, NOW)
