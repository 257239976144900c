"""Menus: the cursor is visible, and the full text of a shortened line is shown below the list."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.table import rows
from tests.ui.actions.acting import acting, reach
from tests.ui.actions.scripted import AGREED, ENTER, ESC, Run, ScriptedSession, kept
from tests.ui.drawn import plain, text
from tests.unit.actions.pools import at, mirror, pool, raidz2, top
from zconsole.errors import ZconsoleError
from zconsole.pool.model import MULTIHOST, Vdev
from zconsole.ui.actions.menu import (
    Entry,
    actions_flow,
    entry_about,
    first_entry,
    menu_lines,
    row_entries,
)
from zconsole.ui.actions.replace_flow import replace_flow
from zconsole.ui.actions.scan_flow import scan_entries, scans_flow
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import Span, at_most, width_of
from zconsole.ui.widgets.graph import ASCII, UNICODE

LOOK = DisplayFormat(UNICODE)
LAST = "zfs_prefetch_disable"


async def test_the_line_at_the_cursor_of_a_list_is_in_sight_also_when_one_comes_back_to_it():
    async with acting("mirror-scrub", (80, 24)) as a:
        assert LAST not in await a.read(a.press("T"))
        assert LAST in await a.read(a.press("G"))
        assert LAST in await a.read(a.press("enter", "escape"))
        assert LAST in await a.read(a.resize((60, 15)))


async def test_a_question_is_wrapped_anew_in_another_window():
    async with acting("mirror-scrub", (60, 15)) as a:
        narrow = await a.read(a.press("T", "enter", "4", "2"))
        await a.pilot.resize_terminal(120, 24)
        wide = await a.read(a.rest())
        assert wide.split() == narrow.split()
        less, more = (said[: said.index("42") + 2].splitlines() for said in (wide, narrow))
        assert len(less) < len(more)
        assert less[-1].strip() == "▌42"
        await a.pilot.resize_terminal(60, 15)
        assert await a.read(a.rest()) == narrow


async def test_disks_of_one_model_are_told_apart_where_it_is_narrow():
    async with acting("six-disk-swap", (60, 15)) as a:
        await a.to("NT51PRJG")
        await a.press("A")
        await reach(a, "Replace several")
        rows = [
            line.split("→")[0]
            for line in (await a.read(a.press("enter"))).splitlines()
            if "→" in line
        ]
        assert len(rows) == len(set(rows)) == 12
        said = await a.read(a.press("enter"))
        assert "9ZD1MSKA  4.55T" in said
        assert "/dev/disk/by-id/ata-ST5000DM000-1FK178_9ZD1MSKA" in said
        assert "→ " in await a.read(a.press("enter"))
        assert "9ZD1MSKA" in a.screen


async def test_a_plan_names_the_devices_whole():
    ui = ScriptedSession("six-disk-swap", "ata-ST5000DM000-1FK178_9ZD1MSKA")
    await replace_flow(ui, ui.key("NT51PRJG"))
    old, new = (rf"Slot \d\d \(serial {serial}\)" for serial in ("NT51PRJG", "9ZD1MSKA"))
    assert re.match(f"Replace {old} with {new}", ui.plan)


def test_a_name_in_an_entry_cannot_act_on_the_terminal() -> None:
    entry = Entry("Expand /tmp/\x1b[31mx", refused="no")
    assert "\x1b" not in plain(menu_lines([entry], LOOK, 80)[0])
    assert "\x1b" not in plain(menu_lines([Entry("Expand \x1b[31mx")], LOOK, 80)[0])


def test_what_an_entry_is_about_is_told_whole() -> None:
    entries = [Entry("Put online", about="Runs: zpool online"), Entry("Detach", refused="no " * 40)]
    assert plain(entry_about(entries[0], LOOK, 60)[0]).strip() == "Put online: Runs: zpool online"
    lines = entry_about(entries[1], LOOK, 60)
    assert all(width_of(line) <= 60 for line in lines)
    assert " ".join(plain(line) for line in lines).split().count("no") == 40
    assert entry_about(Entry("Replace", flow=replace_flow), LOOK, 60) == ()


async def test_every_entry_says_what_it_would_do_or_why_it_cannot():
    ui = ScriptedSession("failed-disk")
    entries = row_entries(await ui.situation_now(), ui.key("bay05"))
    for entry in entries:
        assert entry_about(entry, LOOK, 80), entry.text


@rows("row", ["bay05", "bay01", "tank"])
async def test_a_free_hot_spare_is_offered_for_the_failed_device_from_any_row(row):
    ui = ScriptedSession("failed-disk", "Let hot spare bay11", AGREED)
    await actions_flow(ui, ui.key(row))
    assert "Let hot spare bay11 stand in for bay05" in ui.shown[0]
    assert "hot spare bay11 only stands in" in " ".join(ui.plan.split())
    assert re.search(r"the resilver takes about \d+h\d+m", " ".join(ui.plan.split()))
    (command,) = ui.commands
    assert (command[0], command[-1]) == ("replace", "/dev/disk/by-vdev/bay11")
    ui.pass_time(60.0)
    assert ui.frame.spares == ()
    again = row_entries(await ui.situation_now(), ui.key("bay05"))
    assert not [entry for entry in again if "Let hot spare" in entry.text]


async def test_what_is_not_possible_stands_behind_one_line_that_opens_it():
    async with acting("failed-disk", (80, 24)) as a:
        await a.to("bay05")
        folded = await a.read(a.press("A"))
        assert "more that are not possible now" in folded
        assert "Put it online" not in folded
        view = a.app.screen.view
        count = view.line_count()
        before = [plain(view.line_at(n))[1:] for n in range(count - 1)]
        opened = await a.read(a.press("G", "enter"))
        assert "more that are not" not in opened
        assert view.line_count() > count
        assert view.cursor == count - 1, "on the first of them"
        assert [plain(view.line_at(n))[1:] for n in range(count - 1)] == before, "nothing moves"


async def test_what_lights_a_bay_is_not_beside_what_clears_errors():
    ui = ScriptedSession("failed-disk")
    await actions_flow(ui, ui.key("bay05"))
    lines = ui.shown[0].splitlines()
    lights, clears = (lines.index(text) for text in ("Light its bay", "Clear its errors"))
    assert abs(lights - clears) > 2


async def test_a_long_reason_has_all_the_rows_the_menu_leaves():
    async with acting("resilver", (50, 24)) as a:
        said = " ".join((await a.read(a.press("S", "g", "j"))).split())
        assert "…" not in said[said.index("Pause the scrub: ") :]


@rows(("glyphs", "sign"), [(UNICODE, "…"), (ASCII, "*")])
def test_lines_that_are_left_out_leave_a_sign(glyphs, sign) -> None:
    lines = [(Span(text),) for text in ("one", "two", "three")]
    assert [plain(line) for line in at_most(2, lines, glyphs.ellipsis)] == ["one", f"two{sign}"]
    assert at_most(3, lines, glyphs.ellipsis) == lines


@rows(
    ("scenario", "said"),
    [
        ("mirror-scrub", {"scrub running (25.4 %)": 3, "no resilver runs or waits": 1}),
        (
            "resilver",
            {
                "resilver running (45.7 %)": 4,
                "resilver running…\n": 2,
                "ZFS cannot pause or stop it": 1,
            },
        ),
    ],
)
async def test_the_reasons_of_the_scan_menu_stand_whole_or_end_with_a_clause_where_it_is_narrow(
    scenario, said
):
    entries = scan_entries(await ScriptedSession(scenario).situation_now())
    shown = text(menu_lines(entries, LOOK, 59))
    assert {words: shown.count(words) for words in said} == said


def test_only_what_cannot_be_done_stands_in_a_column() -> None:
    entries = [
        Entry("An action with a very long name that can be done"),
        Entry("Short", refused="no"),
    ]
    assert plain(menu_lines(entries, LOOK, 60)[1]) == "  Short  no"


def test_one_long_entry_takes_no_room_from_the_reasons_of_the_others() -> None:
    entries = [
        Entry("Put it online", refused="bay02 is online"),
        Entry("x" * 46, refused="not yet"),
    ]
    first, second = (plain(line) for line in menu_lines(entries, LOOK, 60))
    assert first.endswith("bay02 is online")
    assert second.endswith("not yet")
    assert all(width_of(line) <= 60 for line in menu_lines(entries, LOOK, 60))


def _order(said: str) -> list[str]:
    lines = [line.strip(" ›") for line in said.splitlines()[1:11]]
    return [" ".join(line.split()[:3]) for line in lines]


@pytest.mark.parametrize("scenario", ["mirror-scrub", "healthy", "failed-disk"])
async def test_the_scan_menu_keeps_its_order_and_begins_on_what_undoes_nothing(scenario):
    ui = ScriptedSession(scenario)
    await scans_flow(ui, "")
    assert _order(ui.shown[0]) == [
        "Start or resume",
        "Pause the scrub",
        "Stop the scrub",
        "Scrub only known",
        "Scrub only what",
        "Scrub a range",
        "Scrub only in",
        "Scrub at any",
        "Restart the resilver",
        "Pause or stop",
    ]
    entries = scan_entries(await ui.situation_now())
    assert entries[first_entry(entries)].text == "Start or resume a scrub"


async def test_a_slow_disk_sits_out_where_the_release_has_it():
    ui = ScriptedSession("sit-out", "Let reads go around it", AGREED)
    await actions_flow(ui, ui.key("bay04"))
    assert "zpool set sit_out=off tank" in ui.plan
    ui.pass_time(1.0, 1.0)
    (vdev,) = (row.vdev for row in ui.frame.rows if row.key == ui.key("bay04"))
    assert not vdev.sitting_out


@pytest.mark.parametrize("row", ["Let reads go around it", "Switch autosit of raidz2-0"])
async def test_what_an_older_release_lacks_is_grey_with_the_reason(row):
    ui = ScriptedSession("healthy")
    await actions_flow(ui, ui.key("bay04"))
    (line,) = (line for line in ui.shown[0].splitlines() if line.startswith(row))
    assert "needs OpenZFS 2.4" in line


def test_only_disks_with_parity_can_sit_out():
    rows = [[entry.text for entry in row_entries(s, "1000")] for s in (mirror(), raidz2())]
    assert [any("(sit out)" in text for text in texts) for texts in rows] == [False, True]


@rows(("vclass", "offered"), [("spare", []), ("cache", []), ("normal", ["Attach a device"])])
def test_what_has_no_devices_below_it_has_none_to_replace_and_a_spare_takes_none(vclass, offered):
    alone = Vdev("extra", "disk", vclass, guid="700")
    entries = row_entries(at(pool(top("raidz2", 0, 6), alone)), "700")
    words = ("Replace several", "Attach a device")
    assert [entry.text for entry in entries if entry.text.startswith(words)] == offered


async def test_what_was_written_between_dates_is_scrubbed():
    dates = "2026-11-09 to 2026-11-15"
    ui = ScriptedSession("sit-out", "Scrub a range of dates", "soon", dates, AGREED)
    await scans_flow(ui, "")
    assert [text[:22] for text in ui.shown[1:3]] == ["SCRUB WHAT WAS WRITTEN"] * 2
    assert "zpool scrub -S 2026-11-09 -E 2026-11-15 tank" in ui.plan
    assert "does not count as a full scrub" in ui.plan
    ui.pass_time(1.0, 1.0)
    assert ui.frame.scan.scan.state == "running"


async def test_a_scrub_is_kept_to_some_hours_until_they_are_dropped():
    ui = ScriptedSession("mirror-scrub")
    now = datetime.fromtimestamp(ui.backend.clock(), UTC).astimezone()
    hours = f"{(now.hour + 2) % 24:02}:00-{(now.hour + 3) % 24:02}:00"
    ui.answers.extend(("Scrub only in some hours", "night", hours, AGREED))
    await scans_flow(ui, "")
    assert ui.shown[2].startswith("SCRUB ONLY IN THESE HOURS"), "night is no time of the day"
    assert "the scrub is paused now" in ui.plan
    await ui.wait(7.0, 1.0)
    assert ui.frame.scan.scan.state == "paused"
    (view,) = (view for view in ui.frame.activities if view.activity.kind == "scrub hours")
    assert (view.activity.state, view.activity.note) == (hours, f"paused until {hours[:5]}")
    estimate = ui.frame.scan.estimate
    assert estimate.eta > 3600.0, "its hours begin in more than an hour"
    assert estimate.reason.startswith(f"with pauses outside {hours}; ")
    await ui.wait(2.5 * 3600.0, 600.0)
    assert ui.frame.scan.scan.state == "running"
    ui.answers.extend(("Scrub at any hour again", AGREED))
    await scans_flow(ui, "")
    assert any(f"Scrub only in some hours (set: {hours})" in shown for shown in ui.shown)
    assert "zconsole scrub off mirrors" in ui.plan
    assert f"drops the hours {hours}" in ui.plan
    assert ui.backend.windows.windows() == ()
    ui.pass_time(1.0, 1.0)
    shown = [view.activity.kind for view in ui.frame.activities]
    assert "scrub hours" not in shown, "it is known at once"


async def test_a_scrub_that_its_hours_paused_is_never_said_to_be_paused_by_hand():
    """Samples may be further apart than the looks at what is kept: in the demo, or by choice."""
    ui = ScriptedSession("healthy")
    now = datetime.fromtimestamp(ui.backend.clock(), UTC).astimezone()
    hours = f"{(now.hour + 2) % 24:02}:00-{(now.hour + 3) % 24:02}:00"
    ui.answers.extend(("Scrub only in some hours", hours, AGREED))
    await scans_flow(ui, "")
    ui.answers.extend(("Start or resume a scrub", AGREED))
    await scans_flow(ui, "")
    notes = []
    for _ in range(6):
        ui.stepped.step(30.0)
        await ui.silent.rest()  # what is kept is read before the keeper pauses the scrub
        await kept(ui.backend)
        notes += [v.activity.note for v in ui.frame.activities if v.activity.kind == "scrub hours"]
    assert notes[-1] == f"paused until {hours[:5]}"
    assert not [note for note in notes if "by hand" in note], notes


async def test_a_scrub_that_is_stopped_drops_its_hours_at_once():
    ui = ScriptedSession("mirror-scrub", "Scrub only in some hours", "22:00-06:00", AGREED)
    await scans_flow(ui, "")
    ui.answers.extend(("Stop the scrub", AGREED, "Start or resume a scrub"))
    await scans_flow(ui, "")
    assert "its hours (22:00-06:00) are dropped, too" in ui.plan
    assert "zconsole scrub off mirrors" in ui.plan
    assert ui.backend.windows.windows() == ()
    ui.pass_time(1.0, 1.0)
    assert not [view for view in ui.frame.activities if view.activity.kind == "scrub hours"]
    await scans_flow(ui, "")
    assert "(set: " not in ui.shown[-2]


async def test_the_question_for_hours_says_what_is_set():
    hours = "Scrub only in some hours"
    ui = ScriptedSession("healthy", hours, "22:00-06:00", AGREED)
    await scans_flow(ui, "")
    assert "no hours are set for its scrub" in ui.shown[0]
    assert "No hours are set now." in ui.shown[1]
    assert "for example 22:00-06:00" in ui.shown[1]
    ui.answers.extend(("Start or resume a scrub", ESC, hours))
    await scans_flow(ui, "")
    assert "hours are set (22:00-06:00): outside them the scrub is paused again" in ui.plan
    assert "Set now: 22:00-06:00" in ui.shown[-2]


async def test_hours_that_cannot_be_read_are_not_said_to_be_none(monkeypatch):
    ui = ScriptedSession("healthy", "Scrub only in some hours", "off")

    def damaged():
        raise ZconsoleError("scrub-windows.json is damaged")

    monkeypatch.setattr(ui.backend.windows, "windows", damaged)
    await scans_flow(ui, "")
    assert ui.messages == ["scrub-windows.json is damaged"]
    assert ui.plans == []


async def test_an_answer_about_a_menu_that_was_left_changes_no_other_one():
    class Late(ScriptedSession):
        """Shows each menu before the machine has answered."""

        async def pick(self, choice):
            shown.append(choice)
            if len(shown) > 1:
                before = [plain(line) for line in choice.lines(LOOK, 80)]
                self.pass_time(7200.0, 1800.0)  # the scrub has ended by then
                await shown[0].fill()
                assert [plain(line) for line in choice.lines(LOOK, 80)] == before
            return 1 if len(shown) == 1 else ESC

    shown = []
    ui = Late("mirror-scrub", ESC)
    await scans_flow(ui, "")
    assert len(shown) == 2


async def test_dates_are_judged_by_the_time_of_the_answer():
    """A question may stay open overnight."""
    ui = ScriptedSession("sit-out", "Scrub a range of dates")
    day = datetime.fromtimestamp(ui.backend.clock() + 86400.0, UTC).date().isoformat()

    def _next_day(_: object) -> str:
        ui.pass_time(2 * 86400.0, 86400.0)
        return day

    ui.answers.append(_next_day)
    await scans_flow(ui, "")
    assert f"zpool scrub -S {day} tank" in ui.plan


async def test_what_can_be_done_with_a_device_keeps_its_order():
    ui = ScriptedSession("mirror-scrub", "Light its bay", AGREED)
    key = next(row.key for row in ui.frame.rows if not row.vdev.children)
    orders = []
    for _ in range(2):
        await actions_flow(ui, key)
        ui.pass_time(1.0, 1.0)
        orders.append([line[:16] for line in ui.shown[-1 if orders else 0].splitlines()])
    assert orders[0] == orders[1]


async def test_escape_goes_one_step_back_from_a_plan_that_was_only_read():
    async with acting("failed-disk") as a:
        await a.to("bay05")
        first = await a.read(a.press("A"))
        picker = await a.read(a.press("j", "j", "j", "enter"))
        assert "REPLACE bay05 WITH" in picker
        assert "Cancel" in await a.read(a.press("enter"))
        assert await a.read(a.press("escape")) == picker
        assert (await a.read(a.press("escape"))).splitlines()[0] == first.splitlines()[0]
        await a.press("escape")
        assert a.app.main_on_top


async def test_the_way_out_of_a_resilver_that_a_checkpoint_blocks_is_shown_and_works():
    ui = ScriptedSession("not-restored")
    ui.pass_time(7200.0, 1200.0)
    blocked = "a checkpoint blocks the replacement"
    assert any(blocked in reason for reason in ui.frame.health.reasons)
    ui.answers.extend(("Discard the checkpoint", Run(typed="tank")))
    await actions_flow(ui, "")
    ui.pass_time(60.0, 10.0)
    assert not any(blocked in reason for reason in ui.frame.health.reasons)
    ui.answers.extend((ENTER, AGREED))
    await scans_flow(ui, "")
    assert ui.plan.startswith("Restart the resilver"), "what is wanted has the cursor"
    ui.pass_time(7200.0, 1200.0)
    assert ui.frame.health.word != "NOT RESTORED"


def test_what_resumes_a_suspended_pool_comes_first():
    calm = mirror()
    assert not row_entries(calm, "1000")[0].text.startswith(("Clear", "Resume"))
    stuck = replace(calm, suspended=True)
    assert row_entries(stuck, "1000")[0].text == "Resume the pool, and clear its errors"
    assert "Clear the errors of the pool" in [entry.text for entry in row_entries(calm, "1000")]
    assert len(row_entries(stuck, "1000")) == len(row_entries(calm, "1000"))


@rows("at_row", [False, True])
def test_the_cursor_does_not_begin_on_what_forgets_the_damage_of_a_pool(at_row):
    damaged = mirror()
    damaged = replace(damaged, pool=replace(damaged.pool, error_count=3))
    entries = row_entries(damaged, "1000" if at_row else damaged.pool.guid or "")
    clear = next(entry for entry in entries if entry.text.startswith("Clear the errors of the"))
    assert clear.refused is None
    first = entries[first_entry(entries)]
    assert first.refused is None
    assert not first.text.startswith(("Clear", "Resume"))


def test_a_pool_that_another_host_may_have_offers_no_clear():
    calm = mirror()
    taken = replace(calm, suspended=True, pool=replace(calm.pool, suspension=MULTIHOST))
    entries = [e for e in row_entries(taken, "1001") if e.text.startswith(("Clear", "Resume"))]
    assert entries
    assert all("no other host has it, then reboot and import it" in str(e.refused) for e in entries)
    assert not any(entry.wanted for entry in row_entries(taken, "1001"))
    others = [entry for entry in row_entries(taken, "1001") if entry not in entries]
    assert not [e.text for e in others if "clear the pool" in str(e.refused)]


def test_the_cursor_waits_on_what_resumes_a_suspended_pool_while_its_disk_is_away():
    clear, *others = row_entries(replace(mirror(), suspended=True), "1001")
    away = replace(clear, refused="the disk is not there")
    assert first_entry((away, *others)) == 0
    added = next(entry for entry in others if entry.text.startswith("Add a vdev"))
    assert "the pool is suspended" in str(added.refused)
    calm = row_entries(mirror(), "1001")
    assert calm[first_entry(calm)].refused is None
