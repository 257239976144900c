"""Tunables listed, set and restored on the simulated pool, by script and by keys."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.table import rows
from tests.ui.actions.acting import RUN, acting
from tests.ui.actions.scripted import AGREED, ScriptedSession
from tests.ui.drawn import plain
from tests.ui.fakes import until
from zconsole.system.state_dir import StateError
from zconsole.tunables.catalog import named
from zconsole.tunables.control import Setting
from zconsole.ui.actions.session import FlowSession
from zconsole.ui.actions.tunables_flow import tunables_flow
from zconsole.ui.actions.tunables_pane import Shown, TunablesScreen, tunable_lines
from zconsole.ui.display_format import DisplayFormat


async def test_what_an_action_set_is_looked_at_with_the_next_round(monkeypatch):
    async with acting("mirror-scrub") as a:
        await a.pass_time(2, 1)
        looks = []

        async def _read_past(context):
            looks.append(context)

        monkeypatch.setattr(FlowSession, "read_past", _read_past)
        await a.pass_time(1, 1)
        assert looks == []
        await a.press("S", "escape")
        await a.pass_time(1, 1)
        assert looks


@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
async def test_the_keys_of_the_tunables_are_named_in_whole_words(size):
    async with acting("mirror-scrub", size) as a:
        keys = (await a.read(a.press("T"))).splitlines()[-1].strip()
        assert keys.startswith("Enter set  F faster  N gentle")
        assert keys.endswith("? help  Esc back")


async def test_tunables_have_headings_ranges_and_marks():
    async with acting("resilver", (80, 24)) as a:
        said = await a.read(a.press("T"))
        assert said.splitlines()[0].split() == [
            "TUNABLES",
            "VALUE",
            "DEFAULT",
            "UNIT",
            "NOTE",
            "↓",
        ]
        assert "1 to 60000 ms, default 3000" in said
        asked = await a.read(a.press("enter"))
        assert asked.splitlines()[6].strip() == "▌1 to 60000 ms, default 3000", "where to type"
        assert "3000 → 5000 ms" in await a.read(a.press(*"5000", "enter"))
        said = await a.read(a.press(*RUN, "escape"))
        assert said.splitlines()[1].startswith("›* zfs_resilver_min_time_ms")
        await a.press("U", *RUN, "escape")
        assert a.screen.splitlines()[1].startswith("›  zfs_resilver_min_time_ms")


async def test_the_list_opens_on_the_tunable_that_is_suggested_and_says_so():
    name = "zfs_vdev_async_write_min_active"
    async with acting("few-requests") as a:
        await a.pass_time(300, 20)
        assert name in a.app.view_state.frame.limit.advice
        for size in ((60, 15), (80, 24), (120, 40)):
            await a.resize(size)
            rows = (await a.read(a.press("T"))).splitlines()
            (row,) = (row for row in rows if row.startswith("›"))
            assert name in row, size
            assert size[0] < 80 or "suggested" in row
            assert any(row.startswith(" Suggested: set it to 8 (now 1)") for row in rows), size
            await a.press("escape")
            await a.press("T", "j")
            assert name not in next(row for row in a.screen.splitlines() if row.startswith("›"))
            await a.press("escape")


@rows("width", range(60, 140, 5))
def test_a_suggestion_that_does_not_fit_beside_the_old_value_is_left_to_the_lines_below(width):
    tunable = named("zfs_resilver_min_time_ms")
    setting = Setting(tunable, 5000, 3000, "", 5000, 3000)
    (line,) = tunable_lines([Shown(setting, suggested="set it")], DisplayFormat(), width)
    assert "was 3000" in plain(line)
    assert "sugg" not in plain(line) or "suggested" in plain(line)


async def test_without_a_suggestion_the_list_opens_at_its_top():
    async with acting("mirror-scrub") as a:
        await a.pass_time(300, 20)
        said = await a.read(a.press("T"))
        assert a.app.screen.view.cursor == 0
        assert "uggested" not in said


TIME = "zfs_resilver_min_time_ms"
"""The first tunable of the list."""


def asking(request: str) -> Callable[[TunablesScreen], int]:
    """Return an answer that presses a request's key with the cursor on the first tunable."""

    def _press(screen: TunablesScreen) -> int:
        screen.request = request
        return 0

    return _press


async def test_a_faster_preset_makes_the_simulated_resilver_faster():
    ui = ScriptedSession("few-requests")
    ui.pass_time(300.0, 20.0)
    slow = ui.frame.scan.issue_rate
    ui.answers.extend((asking("faster-resilver"), AGREED))
    await tunables_flow(ui, "")
    assert "too few writes to the new disk at once" in ui.plan
    assert "new-disk-writes" not in ui.plan
    ui.pass_time(300.0, 20.0)
    assert ui.frame.scan.issue_rate > slow
    changes = ui.backend.control.past().changes
    effect = ui.effects.effect(ui.frame.pool, changes[0], changes)
    assert effect.gain is not None
    assert effect.gain > 0
    assert list(ui.effects.events(ui.frame.pool, changes))


async def test_a_tunable_is_set_put_back_and_refused_out_of_range():
    ui = ScriptedSession("resilver", asking("set"), "5000", AGREED, asking("set"), "99999999")
    value = partial(ui.backend.control.setting, TIME)
    await tunables_flow(ui, "")
    assert "3000 → 5000" in ui.plan
    assert value().value == 5000
    assert any("99999999" in text for text in ui.messages)
    ui.answers.extend((asking("restore"), AGREED))
    await tunables_flow(ui, "")
    assert value().value == 3000


@pytest.mark.parametrize(("value", "warned"), [("5000", True), ("500", False)])
async def test_what_raising_does_is_a_warning_of_raising_only(value, warned):
    ui = ScriptedSession("resilver", asking("set"), value)
    await tunables_flow(ui, "")
    assert f"3000 → {value} ms" in ui.plan
    assert ("synchronous writes of every pool wait longer" in ui.plan) == warned


async def test_quitting_tells_of_tunables_that_wait_for_the_end_of_a_scan():
    async with acting("resilver") as a:
        await a.press("T", "enter", *"5000", "enter", *RUN, "escape", "E", "escape", "q")
        assert "zfs_resilver_min_time_ms" in a.screen
        await a.press("escape", "T", "U", *RUN, "escape", "escape", "q")
        await until(a.pilot, lambda: a.app.return_code is not None)
        assert a.app.return_code == 0


async def test_tunables_that_cannot_be_put_back_are_told_and_end_nothing(monkeypatch):
    def full(*_args):
        raise StateError("tunables.json: No space left on device")

    async with acting("resilver", notifications=True) as a:
        await a.press("T", "enter", *"5000", "enter", *RUN, "escape", "E")
        monkeypatch.setattr(a.backend.control, "restore", full)
        monkeypatch.setattr(a.backend.control, "settle", full)
        said = await a.read(a.press("U", *RUN))
        assert "No space left on device" in said
        assert "Esc back" in said
        await a.press("escape", "escape")
        for _ in range(60):
            await a.pass_time(3600, 3600)
            if "not restored" in a.screen:
                break
        said = "".join(a.screen.split())
        assert "zfs_resilver_min_time_msnotrestored" in said.replace("|", "")
        assert a.app.is_running


async def test_bytes_are_shown_scaled_and_may_be_typed_so():
    async with acting("mirror-scrub") as a:
        name = "zfs_scan_vdev_limit"
        names = [s.tunable.name for s in a.backend.control.list() if s.value is not None]
        said = await a.read(a.press("T", *["j"] * names.index(name)))
        row = next(line for line in said.splitlines() if name in line)
        assert row.replace("›", " ").split()[1:3] == ["16M", "16M"]
        assert "64K to 1G bytes, default 16M" in said
        asked = await a.read(a.press("enter"))
        assert "Now 16M; 64K to 1G bytes" in asked
        assert f"{name}  16M → 1.50M" in await a.read(a.press(*"1.5M", "enter"))
        assert f"{name} is 1.50M" in await a.read(a.press(*RUN))
        assert a.backend.control.setting(name).value == 3 << 19
        said = await a.read(a.press("escape"))
        assert "set here, was 16M" in said
        await a.press("enter", *"16000000", "enter")
        assert f"{name}  1.50M → 15.3M (16000000 bytes)" in a.screen


async def test_a_value_that_cannot_be_stays_to_be_corrected():
    async with acting("mirror-scrub", (120, 30)) as a:
        said = await a.read(a.press("T", "enter", *"9999999999999", "enter"))
        assert " SET " in said
        assert "9999999999999\n" in said
        await a.press("F")
        assert " SET " in a.screen, "letters are typed, no keys of the list"


async def test_the_plan_of_a_preset_has_headings_and_says_from_what_to_what():
    async with acting("few-requests", (100, 30)) as a:
        await a.pass_time(60, 5)
        said = await a.read(a.press("T", "F"))
        assert [line.strip() for line in said.splitlines()].index("Will set") > 0
        assert " → " in said
        assert "too few writes to the new disk at once" in said
        assert "new-disk-writes" not in said


async def test_a_preset_lists_only_what_it_changes():
    ui = ScriptedSession("resilver", asking("gentle"), AGREED, asking("gentle"))
    await tunables_flow(ui, "")
    changes = [line.split() for line in ui.plans[0].splitlines() if "→" in line]
    assert changes
    assert [words for words in changes if words[1] == words[3]] == []
    assert ui.plan.startswith("Preset gentle")
    assert any("nothing to change" in text for text in ui.messages)


async def test_without_a_scan_it_says_at_which_end_values_go_back():
    async with acting("healthy", (100, 30), notifications=True) as a:
        said = await a.read(a.press("T", "enter", *"5000", "enter", *RUN, "escape"))
        assert (
            "set here, was 3000: restored by zconsole in the background once this console is gone"
            in said
        )
        said = await a.read(a.press("E"))
        assert (
            "Values set here: restored when the next scan of vault ends, or once this console"
            in said
        )


async def test_the_main_screen_tells_of_what_is_set_while_no_scan_runs():
    async with acting("healthy", (80, 24)) as a:
        await a.press("T", "enter", *"5000", "enter", *RUN, "escape", "escape")
        said = await a.read(a.pass_time(2, 1))
        assert "tunables set here 1 (T lists them)" in said
        assert "REBALANCE" not in said
        await a.press("T", "U", *RUN, "escape", "escape")
        assert "set here" not in await a.read(a.pass_time(2, 1))


async def test_sizes_follow_the_units():
    async with acting("mirror-scrub", (100, 40)) as a:
        said = await a.read(a.press("u", "T"))
        row = next(line for line in said.splitlines() if "zfs_scan_vdev_limit" in line)
        assert row.split()[1:3] == ["16.8M", "16.8M"]
