from __future__ import annotations

import re

import pytest

from tests.factory import frame, mirror_pool
from tests.table import rows
from tests.ui.actions.scripted import AGREED, ESC, ScriptedSession, asking
from tests.ui.drawn import LOOK, flat, plain, text
from zconsole.cli.options import LIMITED_BY
from zconsole.diagnosis.bottleneck.finding import ACTS, CAUSES, OUT_OF_REACH, Suggestion, Verdict
from zconsole.pool.model import Scan
from zconsole.tunables.catalog import LIMITS
from zconsole.ui.actions.tunables_flow import hopeless, likely_limit, tunables_flow
from zconsole.ui.actions.tunables_pane import TunablesScreen, about_lines
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.reasons import suggested

WRITES = "zfs_vdev_async_write_min_active"


def seen(cause: str, function: str = "resilver", tunable: str = "", state: str = "running"):
    limit = Verdict(cause, "why", suggestion=Suggestion("{act}", "raise", tunable))
    return frame(mirror_pool(Scan(function, state)), limit=limit)


@rows(
    ("found", "limit"),
    [
        (seen("throttle", tunable=WRITES), "new-disk-writes"),
        (seen("throttle", tunable="zfs_vdev_scrub_max_active"), "scan-reads"),
        (seen("throttle", "rebuild"), "rebuild"),
        (seen("foreground"), "txg-time"),
        (seen("memory"), "memory"),
        (seen("new-disk"), None),
        (seen("new-disk", tunable=WRITES), "new-disk-writes"),
        (seen("unclear"), None),
        (seen("throttle", state="finished"), None),
        (frame(mirror_pool()), None),
    ],
)
def test_the_preset_aims_at_the_verdict(found, limit):
    assert likely_limit(found) == limit


async def test_the_faster_preset_names_and_sets_the_tunable_that_limits():
    """It aimed at "too few reads at once" in a scrub held back by zfs_scrub_delay."""
    ui = ScriptedSession("scrub-delay", asking("faster-resilver"), AGREED, ESC)
    ui.pass_time(40, 2)
    await tunables_flow(ui, "")
    assert "Aims at the likely limit: zfs_scrub_delay is 4." in ui.plan
    assert "zfs_scrub_delay 4 → 0 ticks" in ui.plan
    assert ui.backend.parameters.read("zfs_scrub_delay") == 0


def changed(plan: str) -> set[str]:
    """Return the names of the tunables that a plan sets."""
    return {line.split()[0] for line in plan.splitlines() if "→" in line}


async def test_after_what_fits_the_limit_the_faster_preset_offers_the_rest_of_it(monkeypatch):
    """It said "nothing to change, all values are set already", with nine of eleven at default."""
    monkeypatch.setattr("zconsole.ui.actions.tunables_flow.likely_limit", lambda _: "txg-time")
    faster, hints = asking("faster-resilver"), []

    def _look(screen: TunablesScreen) -> int:
        (row, *_) = screen._now
        hints.append(flat(text(about_lines(row, LOOK, 80, fast=screen._fast))))
        return faster(screen)

    ui = ScriptedSession("foreground", _look, AGREED, _look, AGREED, _look)
    await tunables_flow(ui, "")
    narrow, rest = ui.plans
    assert changed(narrow) == {"zfs_resilver_min_time_ms", "zfs_scrub_min_time_ms"}
    assert "Aims at the likely limit: other I/O takes the scan's time." in flat(narrow)
    assert len(changed(rest)) == 9
    assert not changed(rest) & changed(narrow)
    assert "Goes beyond the likely limit: what lifts that is set already." in flat(rest)
    assert ui.messages == ["preset faster-resilver: nothing to change, all of it is set already"]
    limit = "for the likely limit: other I/O takes the scan's time"
    assert f"F sets 2 tunables {limit}" in hints[0]
    assert "F sets 9 tunables beyond the likely limit: what lifts that is set already" in hints[1]
    assert "F sets nothing: the whole faster preset is set already" in hints[2]


async def test_where_no_limit_is_known_it_is_said_that_all_of_the_faster_preset_is_set():
    hints = []
    ui = ScriptedSession("foreground", lambda screen: hints.append(screen._fast))
    await tunables_flow(ui, "")
    assert hints == ["F sets 11 tunables, the whole faster preset"]


async def test_the_list_has_what_is_suggested_in_an_old_release():
    seen: list[str] = []

    def _look(screen: TunablesScreen) -> None:
        seen.extend(plain(line) for line in screen._make(LOOK, 160))

    ui = ScriptedSession("scrub-delay", _look)
    ui.pass_time(40, 2)
    await tunables_flow(ui, "")
    (line,) = (text for text in seen if "suggested 0" in text)
    assert line.startswith("   zfs_scrub_delay ")


async def test_a_preset_whose_value_was_measured_says_so():
    ui = ScriptedSession("foreground", asking("gentle"), AGREED, ESC)
    ui.pass_time(200, 10)
    await tunables_flow(ui, "")
    ui.pass_time(300, 10)
    ui.answers.extend([asking("restore"), AGREED, asking("gentle"), ESC, ESC])
    await tunables_flow(ui, "")
    assert "Set before: zfs_resilver_min_time_ms 3000 to 750" in ui.plan
    assert heading_of(ui.plans[-1], "Set before: ") == "Notes"


def heading_of(plan: str, text: str) -> str:
    """Return the heading above a text, which is indented by less."""
    above = plan[: plan.index(text)].splitlines()[:-1]
    return next(line.strip() for line in reversed(above) if not line.startswith("    "))


async def test_only_what_costs_something_is_a_warning():
    """Of advice and of good news, "Warnings" made dangers."""
    ui = ScriptedSession("straggler", asking("faster-resilver"), ESC, ESC)
    ui.pass_time(200, 2)
    doubt = hopeless(ui.frame)
    assert doubt is not None
    await tunables_flow(ui, "")
    assert doubt in ui.plan
    assert heading_of(ui.plans[-1], doubt[:20]) == "Notes"
    assert heading_of(ui.plans[-1], "zfs_resilver_min_time_ms: ") == "Warnings"


async def test_a_value_whose_effect_is_measured_is_not_said_to_wait(monkeypatch):
    """It is set: "was 2; wait" read as if it were not."""
    lines: list[str] = []

    def _look(screen: TunablesScreen) -> None:
        lines.extend(plain(line) for line in screen._make(LOOK, 100))

    ui = ScriptedSession("few-requests", _look)
    ui.pass_time(20, 2)
    ui.backend.control.set({WRITES: 3}, ui.backend.clock())
    await ui.read_past()
    found = Suggestion("{act} shows in some minutes", "wait", WRITES, 3)
    monkeypatch.setattr("zconsole.ui.actions.tunables_flow.suggested", lambda _: found)
    await tunables_flow(ui, "")
    (line,) = (line for line in lines if f" {WRITES} " in line)
    assert "measuring, was 1" in line


async def test_a_gentle_scan_is_said_to_be_set_so_with_the_key_that_undoes_it():
    """Its first low tunable was to be set to its default instead."""
    ui = ScriptedSession("foreground", asking("gentle"), AGREED, ESC)
    ui.pass_time(40, 2)
    await tunables_flow(ui, "")
    ui.pass_time(40, 2)
    told = ui.look.said(ui.frame.limit.suggestion.text)
    keys = ui.look.keys.shown("tunables", "restore")
    assert told == f"the scan was set to be gentle: press {keys} to undo that"


def test_a_limit_that_a_tunable_may_lift_is_not_said_to_gain_little():
    """Of a new disk busy with small writes the plan said so, and the scan got 50 % faster."""
    assert hopeless(seen("new-disk", tunable=WRITES)) is None


@rows("cause", CAUSES)
def test_every_cause_is_lifted_out_of_reach_or_unclear(cause):
    said = hopeless(seen(cause))
    assert (said is not None) == (cause in OUT_OF_REACH)
    assert said is None or ("latency rises" in said) == (cause not in ("cpu", "metadata"))
    assert cause == "unclear" or bool(said) != bool(likely_limit(seen(cause)))


@rows(
    ("found", "text", "said"),
    [
        (
            Suggestion("{act} (now 2)", "set", WRITES, 8),
            f"zconsole tunables set {WRITES}=8 (now 2)",
            "set it to 8 (now 2)",
        ),
        (
            Suggestion("{act} shows in some minutes", "wait", WRITES, 8),
            f"wait: what {WRITES}=8 brings shows in some minutes",
            "wait: what 8 brings shows in some minutes",
        ),
        (
            Suggestion("{act}", "restore", WRITES),
            f"zconsole tunables restore {WRITES}",
            "restore it",
        ),
        (
            Suggestion("{act}", "raise", WRITES),
            f"raise {WRITES} (zconsole tunables set)",
            "raise it",
        ),
        (
            Suggestion("reduce the load, or {act} to 4", "increase", WRITES, 4),
            f"reduce the load, or raise {WRITES} to 4",
            "reduce the load, or raise it to 4",
        ),
        (
            Suggestion("{act} so that it stops waiting", "change", WRITES, 0),
            f"set {WRITES}=0 so that it stops waiting",
            "set it to 0 so that it stops waiting",
        ),
    ],
)
def test_the_list_of_tunables_says_it_of_its_line(found, text, said):
    limit = Verdict("throttle", "why", suggestion=found)
    assert limit.suggestion.text == text
    assert suggested(frame(mirror_pool(Scan("resilver", "running")), limit=limit)) == found
    assert found.beside == said


@rows("act", ACTS)
def test_an_act_is_told_whole_to_whoever_asks(act):
    found = Suggestion("{act}", act, WRITES, 8)
    for told in (found.text, found.beside, DisplayFormat().text(found.text)):
        assert told
        assert not set(told) & set("{}")
    assert WRITES not in found.beside


def test_the_command_line_knows_every_limit():
    assert set(LIMITED_BY) == set(LIMITS)


async def effect_of_faster(monkeypatch: pytest.MonkeyPatch, seconds: float) -> tuple[str, ...]:
    """Return what the pane says of the faster preset soon after it was set, and minutes later.

    ``seconds``: for how long the console was open when it was set.
    """
    monkeypatch.setattr("zconsole.ui.actions.tunables_flow.likely_limit", lambda _: None)
    said: list[str] = []

    def _look(screen: TunablesScreen) -> None:
        (row, *_) = screen._now
        said.append(flat(text(about_lines(row, LOOK, 100))))

    ui = ScriptedSession("foreground")
    ui.pass_time(seconds, 1.0)
    ui.answers.extend((asking("faster-resilver"), AGREED, ESC))
    await tunables_flow(ui, "")
    for time in (20.0, 400.0):
        ui.pass_time(time, 10.0)
        ui.answers.append(_look)
        await tunables_flow(ui, "")
    return tuple(said)


async def test_of_what_was_set_before_the_scan_was_watched_no_effect_is_promised(monkeypatch):
    """It said "wait: what 6000 brings shows in some minutes", and no figure ever came."""
    for said in await effect_of_faster(monkeypatch, 3.0):
        assert "11 tunables set" in said
        assert "effect unknown, no scan watched long enough before it" in said
        assert "shows" not in said


async def test_what_was_set_after_the_first_rates_of_a_scan_has_a_rough_effect(monkeypatch):
    soon, later = await effect_of_faster(monkeypatch, 12.0)
    assert "11 tunables set" in soon
    assert "its effect shows after some minutes of a running scan" in soon
    assert re.search(r"issued about \S+ before, \S+ in the minutes after \(about \+\d+ %\)", later)
