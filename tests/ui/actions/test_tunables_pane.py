"""Tunables listed, set and restored on the simulated pool, by script and by keys."""

from __future__ import annotations

import dataclasses

import pytest

from tests.table import rows
from tests.ui.actions.acting import RUN, acting
from tests.ui.actions.scripted import AGREED, ESC, ScriptedSession, asking
from tests.ui.drawn import LOOK, flat, plain, text
from zconsole.system.state_dir import StateError
from zconsole.tunables.catalog import TUNABLES, named
from zconsole.tunables.control import Setting
from zconsole.ui.actions.session import FlowSession
from zconsole.ui.actions.tunables_flow import tunables_flow
from zconsole.ui.actions.tunables_pane import (
    MEASURING,
    TunableRow,
    TunablesScreen,
    about_lines,
    head_line,
    tunable_lines,
)
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.help import keys_line


async def test_what_an_action_set_is_looked_at_with_the_next_round(monkeypatch):
    ui, looks = ScriptedSession("mirror-scrub"), []

    async def _read_past(context):
        looks.append(context)

    await ui.wait(2.0, 1.0)
    monkeypatch.setattr(FlowSession, "read_past", _read_past)
    await ui.wait(1.0, 1.0)
    assert looks == []
    ui.reread_soon()
    await ui.wait(1.0, 1.0)
    assert looks


@rows("width", [60, 80, 91, 200])
def test_the_keys_of_the_tunables_are_named_in_whole_words(width):
    keys = plain(keys_line(TunablesScreen.groups, LOOK, width)).strip()
    assert keys.startswith("Enter set  F fast  N gentle")
    assert keys.endswith("? help  Esc back")
    assert "  U undo  " in keys
    assert ("  E undo at end  V latency  " in keys) == (width >= 80)
    assert ("  D default  " in keys) == (width >= 91)


async def test_the_key_that_restores_at_the_scans_end_says_what_it_would_change():
    """``E auto-undo`` acts at once: it was taken for a list to edit."""
    async with acting("resilver", (80, 24)) as a:
        await a.press("T", "F", *RUN, "escape")
        assert "E undo at end" in await a.read(a.press("T"))
        assert "E keep" in await a.read(a.press("E"))
        assert "E auto-undo" in await a.read(a.press("E"))
        assert "E undo at end" in await a.read(a.press("E"))


async def test_the_list_opens_on_the_tunable_that_is_suggested_and_says_so():
    name = "zfs_vdev_async_write_min_active"
    async with acting("few-requests", (60, 15)) as a:
        await a.pass_time(300, 20)
        assert name in a.app.view_state.frame.limit.suggestion.text
        await a.press("T")
        for size in ((60, 15), (80, 24), (120, 40)):
            rows = (await a.read(a.resize(size))).splitlines()
            (row,) = (row for row in rows if row.startswith("›"))
            assert name in row, size
            assert size[0] < 80 or "suggested 8" in row
            assert any(row.startswith(" Suggested: set it to 8 (now 1)") for row in rows), size


@rows("width", range(60, 140, 5))
def test_a_suggestion_that_does_not_fit_beside_the_old_value_is_left_to_the_lines_below(width):
    tunable = named("zfs_resilver_min_time_ms")
    setting = Setting(tunable, 5000, 3000, "", 5000, 3000)
    (line,) = tunable_lines([TunableRow(setting, suggested="set it")], DisplayFormat(), width)
    assert "was 3000" in plain(line)
    assert "sugg" not in plain(line) or "suggested" in plain(line)


@rows("width", range(76, 140, 4))
def test_that_its_effect_is_being_measured_is_not_what_a_narrow_list_cuts(width):
    tunable = named("zfs_scan_vdev_limit")
    setting = Setting(tunable, 1 << 30, 16 << 20, "", 1 << 30, 16 << 20)
    shown = TunableRow(setting, suggested="wait", advice=MEASURING)
    (line,) = tunable_lines([shown, TunableRow(Setting(LONGEST, 1, 1, ""))], LOOK, width)[:1]
    assert "measuring" in plain(line)


@rows("width", range(50, 80))
def test_no_note_is_begun_where_there_is_no_room_for_its_heading(width):
    """ "was" was all of it that 60 columns showed."""
    tunable = named("zfs_txg_timeout")
    shown = [TunableRow(Setting(tunable, 9, 5, "", 9, 5)), TunableRow(Setting(LONGEST, 1, 1, ""))]
    line = plain(tunable_lines(shown, LOOK, width)[0]).strip()
    has_heading = "NOTE" in plain(head_line(shown, width))
    assert ("wa" in line) == has_heading


LONGEST = max(TUNABLES, key=lambda tunable: len(tunable.name))
TIME = "zfs_resilver_min_time_ms"
"""The first tunable of the list."""


@rows("action", ["faster-resilver", "restore"])
async def test_after_a_change_the_list_opens_on_what_was_set_and_tells_its_effect(action):
    """It opened on the first tunable: the effect showed only once the cursor moved."""
    ui = ScriptedSession("scrub-delay")
    ui.pass_time(120.0, 20.0)
    ui.answers.extend((asking("faster-resilver"), AGREED))
    if action == "restore":
        ui.answers.extend((asking("restore"), AGREED))
    opened = []
    ui.answers.append(lambda screen: opened.append(screen._choice.start))
    await tunables_flow(ui, "")
    ui.pass_time(300.0, 20.0)
    ui.answers.append(lambda screen: opened.append(screen._choice.start))
    await tunables_flow(ui, "")
    names = [each.tunable.name for each in ui.backend.control.list() if each.value is not None]
    newest = ui.past.changes[-1].t
    set_last = {change.name for change in ui.past.changes if change.t == newest}
    assert len(opened) == 2
    assert {names[row] for row in opened} <= set_last


@rows("scenario", ["few-requests", "new-disk"])
async def test_a_faster_preset_makes_the_simulated_resilver_faster(scenario):
    """To a new disk busy with small writes it brought half as much again: "unmeasurable"."""
    ui = ScriptedSession(scenario)
    ui.pass_time(300.0, 20.0)
    slow = ui.frame.scan.issue_rate
    ui.answers.extend((asking("faster-resilver"), AGREED))
    await tunables_flow(ui, "")
    assert "Will set" in ui.plan
    assert "too few writes to the new disk at once" in ui.plan
    assert "new-disk-writes" not in ui.plan
    ui.pass_time(300.0, 20.0)
    assert ui.frame.scan.issue_rate > slow
    changes = ui.backend.control.past().changes
    effect = ui.effects.effect(ui.frame, changes[0], changes)
    assert effect.gain is not None
    assert effect.gain > 0
    assert effect.issue_clear
    assert list(ui.effects.events(ui.frame, changes))
    ui.answers.extend((asking("restore"), AGREED))
    await tunables_flow(ui, "")
    ui.pass_time(300.0, 20.0)
    restored = ui.backend.control.past().changes
    effects = [ui.effects.effect(ui.frame, each, restored) for each in (restored[0], restored[-1])]
    assert [each.issue_clear and each.gain > 0 for each in effects] == [True, False]
    assert ui.frame.limit.suggestion.tunable in {change.name for change in changes}, "it helped"


async def test_the_value_that_is_suggested_is_typed_already():
    async with acting("few-requests", (80, 24)) as a:
        await a.pass_time(300, 20)
        await a.press("T", "enter")
        assert "Suggested: set it to 8" in a.screen
        assert "1 → 8" in flat(await a.read(a.press("enter")))


async def test_what_the_pane_tells_of_a_tunable_can_be_read_to_its_end():
    """It ended with "when the scan ends: E…" while something was suggested, too."""
    async with acting("few-requests", (80, 24)) as a:
        await a.pass_time(300, 20)
        await a.press("T", "F", *RUN, "escape", "escape")
        await a.pass_time(400, 20)
        await a.press("T", "g")
        for _ in range(20):
            detail = a.app.screen.query_one("#about")._lines
            assert not plain(detail[-1]).endswith("…"), "\n".join(map(plain, detail))
            await a.press("j")


async def test_after_a_restore_the_pane_tells_of_the_restore():
    ui = ScriptedSession("few-requests")
    ui.pass_time(300.0, 20.0)
    ui.answers.extend((asking("faster-resilver"), AGREED))
    await tunables_flow(ui, "")
    await ui.wait(400.0, 10.0)
    ui.answers.extend((asking("restore"), AGREED))
    await tunables_flow(ui, "")
    await ui.wait(400.0, 10.0)
    ui.answers.append(lambda screen: seen.extend(screen._now))
    seen: list[TunableRow] = []
    await tunables_flow(ui, "")
    (row,) = (
        each for each in seen if each.setting.tunable.name == "zfs_vdev_async_write_min_active"
    )
    told = flat(text(about_lines(row, LOOK, 80)))
    assert "restored: issued" in told
    assert "before that, " in told


@pytest.mark.parametrize(("value", "warned"), [("5000", True), ("500", False)])
async def test_what_raising_does_is_a_warning_of_raising_only(value, warned):
    ui = ScriptedSession("resilver", asking("set"), value)
    await tunables_flow(ui, "")
    assert f"3000 → {value} ms" in ui.plan
    assert ("synchronous writes of every pool wait longer" in ui.plan) == warned


async def test_tunables_that_cannot_be_put_back_are_told_and_end_nothing(monkeypatch):
    def full(*_args):
        raise StateError("tunables.json: No space left on device")

    ui = ScriptedSession("resilver", asking("set"), "5000", AGREED, asking("until"), ESC)
    await tunables_flow(ui, "")
    monkeypatch.setattr(ui.backend.control, "restore", full)
    monkeypatch.setattr(ui.backend.control, "settle", full)
    ui.answers.append(asking("restore"))
    ui.answers.append(AGREED)
    await tunables_flow(ui, "")
    assert "No space left on device" in ui.messages[-1]
    while any(view.scan.active for view in ui.frame.scans):
        await ui.wait(4 * 3600.0, 3600.0)
    await ui.wait(10.0, 5.0)
    assert f"{TIME} not restored: tunables.json: No space left" in ui.messages[-1]


async def test_bytes_are_shown_scaled_and_may_be_typed_so():
    name = "zfs_scan_vdev_limit"
    ui = ScriptedSession("mirror-scrub")
    names = [s.tunable.name for s in ui.backend.control.list() if s.value is not None]
    index = names.index(name)
    ui.answers.extend((asking("set", index), "1.5M", AGREED, asking("set", index), "16000000"))
    await tunables_flow(ui, "")
    (row,) = (line for line in ui.shown[0].splitlines() if name in line)
    assert row.split()[1:3] == ["16M", "16M"]
    assert "Now 16M; values 64K to 1G bytes, default 16M" in ui.shown[1]
    assert f"{name} 16M → 1.50M" in flat(ui.plans[0])
    assert f"{name} is 1.50M" in ui.ran[0]
    assert ui.backend.control.setting(name).value == 3 << 19
    (row,) = (line for line in ui.shown[3].splitlines() if name in line)
    assert "was 16M" in row
    assert f"{name} 1.50M → 15.3M (16000000 bytes)" in ui.plan
    ui.silent.view_state.look = dataclasses.replace(ui.look, unit="decimal")
    await tunables_flow(ui, "")
    (row,) = (line for line in ui.shown[-1].splitlines() if name in line)
    assert "1.57M" in row, "sizes follow the units"


async def test_a_preset_lists_only_what_it_changes():
    ui = ScriptedSession("resilver", asking("gentle"), AGREED, asking("gentle"))
    await tunables_flow(ui, "")
    changes = [line.split() for line in ui.plans[0].splitlines() if "→" in line]
    assert changes
    assert [words for words in changes if words[1] == words[3]] == []
    assert ui.plan.startswith("Preset gentle")
    assert any("nothing to change" in text for text in ui.messages)


async def test_every_plan_of_tunables_says_where_it_writes_and_its_command():
    where = "Will set in demo:/sys/module/zfs/parameters"
    ui = ScriptedSession("resilver", asking("set"), "5000", AGREED, asking("gentle"), ESC)
    await tunables_flow(ui, "")
    ui.answers.extend((asking("restore"), ESC))
    await tunables_flow(ui, "")
    commands = (f"set {TIME}=5000", "set ", "restore")
    for plan, command in zip(ui.plans, commands, strict=True):
        lines = [line.strip() for line in plan.splitlines()]
        assert where in lines
        assert lines[lines.index("By hand") + 1].startswith(f"zconsole tunables {command}")
    ui.answers.extend((asking("hold"), "500ms", ESC))
    await tunables_flow(ui, "")
    assert "By hand zconsole tunables hold-latency 0.5" in ui.plan


async def test_the_limit_that_a_preset_aims_at_is_no_warning(monkeypatch):
    monkeypatch.setattr("zconsole.ui.actions.tunables_flow.likely_limit", lambda _: "scan-reads")
    ui = ScriptedSession("resilver", asking("faster-resilver"), AGREED)
    await tunables_flow(ui, "")
    warned, told = ui.plan.split("What it does")
    assert "Aims at the likely limit" in told
    assert "Aims at the likely limit" not in warned


async def test_without_a_scan_it_says_at_which_end_values_go_back():
    ui = ScriptedSession("healthy", asking("set"), "5000", AGREED, asking("until"))
    await tunables_flow(ui, "")
    assert "Kept while this console is open, even after the scan's end; restored" in ui.plan
    said = "Each value set here is restored when the next scan of vault ends, or once this console"
    assert ui.messages[-1].startswith(said)


async def test_the_main_screen_tells_of_what_is_set_while_no_scan_runs():
    ui = ScriptedSession("healthy", asking("set"), "5000", AGREED)
    await tunables_flow(ui, "")
    await ui.wait(6.0, 1.0)
    (view,) = ui.frame.activities
    assert (view.activity.state, view.activity.note) == ("set here", "1 (T lists them)")
    assert "REBALANCE" not in ui.frame.flags
    ui.answers.extend((asking("restore"), AGREED))
    await tunables_flow(ui, "")
    await ui.wait(6.0, 1.0)
    assert ui.frame.activities == ()
